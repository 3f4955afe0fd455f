"""What a grammar file holds: rules, alternatives, terminals.

A grammar generates sentences. Some rules are *sensitive*: their terminals name people by group, and
replacing one by a terminal of another group gives the counterpart of a sentence (ASTRAEA, §6, G_sens). Some
are *ground-truth* rules: their terminals fix the right label of the sentence (§7.1, predictive oracle).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """Literal text inside an alternative."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Ref:
    """``{rule}`` or ``{rule#2}``: one expansion of a rule; ``name`` is what agreement refers to."""

    rule: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Agree:
    """``{feels/feel@person}``: one form for each value of a feature of what ``{person}`` became."""

    forms: tuple[str, ...]
    name: str
    feature: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Article:
    """``{a}``: *a* or *an*, by the sound of what follows."""


Part = Text | Ref | Agree | Article


@dataclass(frozen=True, kw_only=True, slots=True)
class Alternative:
    """One right-hand side that is more than a terminal; ``weight`` is relative to the others (published: all equal)."""

    parts: tuple[Part, ...]
    weight: float = 1.0
    line: int = 0

    @property
    def refs(self) -> tuple[Ref, ...]:
        """The expansions inside, in order."""
        return tuple(p for p in self.parts if isinstance(p, Ref))


@dataclass(frozen=True, kw_only=True, slots=True)
class Terminal:
    """One right-hand side that is plain text.

    Attributes
    ----------
    text : str
        As it stands inside a sentence; its first letter is capitalised where a sentence begins.
    attribute, group : str or None
        What a sensitive terminal says about whom ("gender", "female"); None elsewhere.
    label : str or None
        The right label of a sentence that holds it, for ground-truth rules.
    weight : float
        Relative to the other alternatives of its rule, at least 0.
    features : mapping of str to str
        For agreement: ``number`` to ``pl``.
    source : str
        Where the word or the fact comes from.
    facts : mapping of str to float
        Figures about the word, e.g. ``women_percent``.
    """

    text: str
    attribute: str | None = None
    group: str | None = None
    label: str | None = None
    weight: float = 1.0
    features: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    facts: Mapping[str, float] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One left-hand side and its alternatives.

    ``aligned`` says that the i-th terminals of all groups are each other's counterparts (father, mother);
    otherwise any terminal of another group is one.
    """

    name: str
    alternatives: tuple[Alternative | Terminal, ...]
    attribute: str | None = None
    aligned: bool = False
    source: str = ""
    line: int = 0

    @property
    def terminals(self) -> tuple[Terminal, ...]:
        """The alternatives that are terminals."""
        return tuple(a for a in self.alternatives if isinstance(a, Terminal))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of a sensitive rule, in the file's order."""
        return tuple(dict.fromkeys(t.group for t in self.terminals if t.group is not None))


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """A part of a grammar under a name of its own: another start, or fewer alternatives of some rules.

    ``only`` maps a rule to the symbols that its alternatives may refer to (ASTRAEA's G_bias).
    """

    start: str | None = None
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Grammar:
    """A grammar as it was read; `auditor.perturb.grammar.space` makes it ready to draw from."""

    name: str
    start: str
    rules: Mapping[str, Rule]
    features: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)
    view: str = ""
    task: str | None = None
    description: str = ""
    directed: tuple[str, ...] | None = None  # the rules that PROB weights (G_prob); None: all
    path: Path | None = None
    sha256: str = ""
    start_line: int = 0

    @property
    def full_name(self) -> str:
        """``name``, or ``name:view``."""
        return f"{self.name}:{self.view}" if self.view else self.name

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of the sensitive rules that can be reached, sorted."""
        return tuple(sorted({self.rules[r].attribute or "" for r in self.reachable()} - {""}))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that ground-truth rules give, sorted."""
        return tuple(sorted({t.label for r in self.reachable() for t in self.rules[r].terminals if t.label}))

    def reachable(self) -> tuple[str, ...]:
        """The rules that the start symbol leads to, in the file's order."""
        seen: set[str] = set()
        todo = [self.start]
        while todo:
            name = todo.pop()
            if name in seen or name not in self.rules:
                continue
            seen.add(name)
            for alternative in self.rules[name].alternatives:
                if isinstance(alternative, Alternative):
                    todo += [ref.rule for ref in alternative.refs]
        return tuple(name for name in self.rules if name in seen)

    def terminals(self) -> Iterator[tuple[str, Terminal]]:
        """(rule, terminal) of everything that can be reached, in the file's order."""
        for name in self.reachable():
            for terminal in self.rules[name].terminals:
                yield name, terminal

    def where(self, line: int) -> str:
        """``file, line n`` for messages."""
        return f"{self.path or self.name}, line {line}" if line else f"{self.path or self.name}"
