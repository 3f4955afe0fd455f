"""A dictionary: its groups and terms, and what may replace what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from auditor.perturb.combine import grouped
from auditor.text.english import word_set

NAMED = re.compile(r"\w[\w .-]*")  # an attribute: it is typed in options, and stands in pages and commands
NAMES = "letters, digits, blanks, dots, _ and - are allowed in the name of an attribute"
# Conditions under which a term counts, as ``dictionaries/README.md`` tells them, and: found or written, but not both.
TAGS = word_set(
    "case lower start spoken no_exclamation before:person after:person after:pointer after:comma before:name as:noun "
    "as:adjective name source-only target-only"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """One group of an attribute.

    ``unmarked`` groups name nobody's attribute (people, person) and are never a target. The terms of ``fallback`` stand
    in where this group has none in a slot. ``agrees`` is the gender whose pronouns go with it.
    """

    name: str
    label: str
    unmarked: bool = False
    fallback: str | None = None
    agrees: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Term:
    """One word or phrase of one group.

    ``slot`` says what may replace it, ``pos`` is its Penn tag, ``number`` "sg", "pl" or "", ``tags`` are of
    `TAGS`.
    """

    text: str
    attribute: str
    group: str
    slot: str
    pos: str = ""
    number: str = ""
    role: str = ""
    register: str = "neutral"
    tags: frozenset[str] = frozenset()
    not_before: frozenset[str] = frozenset()
    not_after: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """The groups and terms of one attribute.

    ``pairs`` are those of a raw dictionary; counterparts of a typed one (None) come from slots. ``default``: an audit
    that names no attributes looks for this one. ``primary`` are the group that is compared first, and its reference.
    ``notes`` says what was passed over while reading.
    """

    attribute: str
    groups: Mapping[str, Group]
    terms: tuple[Term, ...]
    pairs: tuple[tuple[Term, Term], ...] | None = None
    version: int = 1
    name: str = ""
    sha256: str = ""
    default: bool = True
    primary: tuple[str, str] | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def raw(self) -> bool:
        """Whether the pairs were given one by one."""
        return self.pairs is not None

    @cached_property
    def sources(self) -> tuple[Term, ...]:
        """The terms that are looked for in texts."""
        if self.pairs is not None:
            return tuple(dict.fromkeys(source for source, _ in self.pairs))
        return tuple(t for t in self.terms if "target-only" not in t.tags)

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The groups that an edit may lead to, sorted."""
        if self.pairs is not None:
            return tuple(sorted({target.group for _, target in self.pairs}))
        return tuple(sorted(g.name for g in self.groups.values() if not g.unmarked))

    def counterparts(self, term: Term, group: str) -> Sequence[Term]:
        """Return what may replace ``term`` to name ``group``, the usual word first."""
        if self.pairs is not None:
            return self._by_pair.get((term, group), ())
        own = self._by_slot.get((term.slot, group), ())
        fallback = self.groups[group].fallback
        return own or (self._by_slot.get((term.slot, fallback), ()) if fallback else ())

    def named(self, groups: Iterable[str]) -> str:
        """Return the groups that a text names, joined by "+"; unmarked ones only where no other is named."""
        every = set(groups)
        marked = {group for group in every if not self.groups[group].unmarked}
        implied = {self.groups[group].fallback for group in marked}
        return "+".join(sorted(marked - implied or marked or every))

    def alternatives(self, term: Term) -> tuple[Term, ...]:
        """Return other surface forms for the same group in the same slot, for a placebo."""
        if self.pairs is not None or term.slot.startswith("pronoun."):
            return ()
        same = {term.text.lower(): term}  # a form that two slots hold counts once, as the first one
        for other in self._by_kind.get((_kind(term), term.group), ()):
            same.setdefault(other.text.lower(), other)
        return tuple(t for t in same.values() if t is not term and t.register in (term.register, "neutral"))

    @cached_property
    def _by_kind(self) -> dict[tuple[tuple[str, ...], str], list[Term]]:
        return grouped(((_kind(t), t.group), t) for t in self.terms if "source-only" not in t.tags)

    @cached_property
    def _by_slot(self) -> dict[tuple[str, str], list[Term]]:
        return grouped(((t.slot, t.group), t) for t in self.terms if "source-only" not in t.tags)

    @cached_property
    def _by_pair(self) -> dict[tuple[Term, str], list[Term]]:
        return grouped(((source, target.group), target) for source, target in self.pairs or ())


def _kind(term: Term) -> tuple[str, ...]:
    """What two terms must share to stand for one another; nouns for people may differ in register, not in nation."""
    loose = term.role in {"person", "kin"} and not term.slot.startswith("nation.")
    slot = term.slot.partition(".")[0] if loose else term.slot
    return slot, term.pos, term.number, term.role
