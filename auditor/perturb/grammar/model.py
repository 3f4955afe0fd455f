"""What a grammar file holds (rules, alternatives, terminals), and what is wrong with it, each with its line.

A grammar generates sentences. Some rules are *sensitive*: their terminals name people by group, and
replacing one by a terminal of another group gives the counterpart of a sentence (ASTRAEA, §6, G_sens). Some
are *ground-truth* rules: their terminals fix the right label of the sentence (§7.1, predictive oracle).
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple


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


Part = str | Ref | Agree | Article  # a string: literal text


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
    """One right-hand side that is plain text, as it stands inside a sentence."""

    text: str
    attribute: str | None = None
    group: str | None = None
    label: str | None = None
    weight: float = 1.0
    features: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, float] = field(default_factory=dict)
    line: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """One left-hand side and its alternatives."""

    name: str
    alternatives: tuple[Alternative | Terminal, ...]
    attribute: str | None = None
    aligned: bool = False
    line: int = 0

    @property
    def terminals(self) -> tuple[Terminal, ...]:
        """The alternatives that are terminals."""
        return tuple(a for a in self.alternatives if isinstance(a, Terminal))

    @property
    def refers(self) -> list[str]:
        """The rules that it refers to."""
        return list(dict.fromkeys(ref.rule for a in self.alternatives if isinstance(a, Alternative) for ref in a.refs))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of a sensitive rule, in the file's order."""
        return tuple(dict.fromkeys(t.group for t in self.terminals if t.group is not None))


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """A part of a grammar under a name of its own: another start, or fewer alternatives of some rules."""

    start: str | None = None
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Grammar:
    """A grammar as it was read; `auditor.perturb.grammar.Space` makes it ready to draw from."""

    name: str
    start: str
    rules: Mapping[str, Rule]
    features: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)
    view: str = ""
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
            if name not in seen and name in self.rules:
                seen.add(name)
                todo += self.rules[name].refers
        return tuple(name for name in self.rules if name in seen)

    def terminals(self) -> Iterator[tuple[str, Terminal]]:
        """(rule, terminal) of everything that can be reached, in the file's order."""
        for name in self.reachable():
            for terminal in self.rules[name].terminals:
                yield name, terminal

    def where(self, line: int) -> str:
        """``file, line n`` for messages."""
        return f"{self.path or self.name}, line {line}" if line else f"{self.path or self.name}"


class Problem(NamedTuple):
    """One problem; ``fatal`` ones make drawing impossible, the others are worth a look."""

    line: int
    message: str
    fatal: bool = True


def check(grammar: Grammar) -> list[Problem]:
    """Look for all problems of ``grammar``, the fatal ones first, then by line."""
    problems = list(_symbols(grammar))
    if not problems:
        problems += _endless(grammar)
    for rule in grammar.rules.values():
        problems += [*_weights(rule), *_sensitive(rule), *_duplicates(rule)]
    problems += _unreachable(grammar)
    return sorted(problems, key=lambda p: (not p.fatal, p.line, p.message))


def _near(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _symbols(grammar: Grammar) -> Iterator[Problem]:
    """Names that stand for nothing."""
    known = grammar.rules
    named = [(grammar.start, grammar.start_line), *((name, 0) for name in grammar.directed or ())]
    views = () if grammar.view else grammar.views.values()  # inside a view, rules have fewer alternatives
    for view in views:
        named += [(view.start, view.lines["start"])] if view.start is not None else []
        named += [(name, view.lines[name]) for name in view.only]
    for rule in known.values():
        for alternative in rule.alternatives:
            if not isinstance(alternative, Alternative):
                continue
            named += [(ref.rule, alternative.line) for ref in alternative.refs]
            names = {ref.name for ref in alternative.refs}
            for part in alternative.parts:
                if isinstance(part, Agree) and part.name not in names:
                    message = f"a form agrees with {part.name}, which is not in the same alternative"
                    yield Problem(alternative.line, message)
    for name, line in named:
        if name not in known:
            yield Problem(line, f"the symbol {name} is not defined{_near(name, known)}")
    for view in views:
        for name, symbols in view.only.items():
            offered = known[name].refers if name in known else symbols
            for symbol in symbols:
                if symbol not in offered:
                    message = f"no alternative of {name} refers to {symbol}{_near(symbol, known)}"
                    yield Problem(view.lines[name], message)


def _endless(grammar: Grammar) -> Iterator[Problem]:
    """A rule that leads back to itself: it never ends, or its language has no end."""
    try:
        TopologicalSorter({name: rule.refers for name, rule in grammar.rules.items()}).prepare()
    except CycleError as error:
        loop = error.args[1][:0:-1]  # each refers to the next one, and the last one to the first
        first = loop.index(min(loop, key=list(grammar.rules).index))
        loop = loop[first:] + loop[:first]
        why = "recurses without end, so its language has no size" if _ending(grammar) >= {*loop} else "never ends"
        message = f"the rule {loop[0]} {why}: {' -> '.join([*loop, loop[0]])}"
        yield Problem(grammar.rules[loop[0]].line, message)


def _ending(grammar: Grammar) -> set[str]:
    """The rules from which a sentence can be finished."""
    ends: set[str] = set()
    size = -1
    while size < len(ends):
        size = len(ends)
        for name, rule in grammar.rules.items():
            if any(isinstance(a, Terminal) or all(r.rule in ends for r in a.refs) for a in rule.alternatives):
                ends.add(name)
    return ends


def _weights(rule: Rule) -> Iterator[Problem]:
    if not rule.alternatives:
        yield Problem(rule.line, f"the rule {rule.name} has no alternatives")
    elif not math.fsum(a.weight for a in rule.alternatives) > 0:
        yield Problem(rule.line, f"the weights of the rule {rule.name} sum to zero")


def _sensitive(rule: Rule) -> Iterator[Problem]:
    if rule.attribute is None:
        return
    terminals = rule.terminals
    if len(terminals) < 2:
        count = f"has {len(terminals)} terminal, so nothing can replace it"
        yield Problem(rule.line, f"the sensitive rule {rule.name} {count}")
        return
    for terminal in terminals:
        if terminal.group is None:
            message = f"the terminal {terminal.text!r} of the sensitive rule {rule.name} has no group"
            yield Problem(terminal.line, message)
    if len(rule.groups) < 2:
        yield Problem(rule.line, f"the sensitive rule {rule.name} has one group only ({', '.join(rule.groups)})")
    sizes = Counter(t.group for t in terminals)
    if rule.aligned and len(set(sizes.values())) > 1:
        listed = ", ".join(f"{g}: {n}" for g, n in sizes.items())
        yield Problem(rule.line, f"the groups of the aligned rule {rule.name} differ in size ({listed})")


def _duplicates(rule: Rule) -> Iterator[Problem]:
    seen: dict[tuple[str, frozenset[tuple[str, str]]], Terminal] = {}
    for terminal in rule.terminals:
        # "deer" singular and "deer" plural are two terminals.
        first = seen.setdefault((terminal.text, frozenset(terminal.features.items())), terminal)
        if first is not terminal:
            same = (first.group, first.label) == (terminal.group, terminal.label)
            message = f"the terminal {terminal.text!r} is twice in the rule {rule.name} (also line {first.line})"
            yield Problem(terminal.line, message + ("" if same else ", in different groups"), fatal=not same)


def _unreachable(grammar: Grammar) -> Iterator[Problem]:
    if grammar.view:  # a view leaves rules out on purpose
        return
    starts = [grammar.start, *(view.start for view in grammar.views.values() if view.start is not None)]
    reached = {name for start in starts for name in dataclasses.replace(grammar, start=start).reachable()}
    for name, rule in grammar.rules.items():
        if name not in reached:
            yield Problem(rule.line, f"no start symbol leads to the rule {name}", fatal=False)
