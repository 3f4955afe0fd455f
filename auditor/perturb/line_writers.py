"""What is written in front of a text: a full name, or a sentence; each says how it changes with a group."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from auditor.core import reading
from auditor.core.types import Edit, EditKind
from auditor.perturb.dictionaries import Dictionary, Term, load
from auditor.perturb.edits import replacing
from auditor.text.english import article_for

GENDER, RACE = "gender", "race"


class First(NamedTuple):
    """A first name, and the last names that go with it."""

    name: str
    lasts: tuple[str, ...]


@lru_cache(maxsize=1)
def full_names() -> Mapping[tuple[str, str], tuple[First, ...]]:
    """Return the first names of each (race or ethnicity, gender), each with its last names.

    First names are those of ``names.yaml`` but for the ambiguous ones of ``shared/name_lines.yaml``; last names are of
    the latter. The groups are those of the attributes race and gender. Sources stand in the two files.
    >>> pools = full_names()
    >>> sorted({race for race, _ in pools})
    ['asian', 'black', 'hispanic', 'middle_eastern', 'white']
    >>> min(len(names) for names in pools.values()) >= 20
    True
    """
    content: Any = reading.load_yaml(reading.shipped("dictionaries", "shared", "name_lines.yaml"))
    firsts = load("names")
    by_group: dict[tuple[str, str], list[First]] = {}
    for term in firsts.terms:
        gender = firsts.groups[term.group].agrees or ""
        race = term.group.removesuffix(f"_{gender}")
        if term.text in content["ambiguous"]:
            continue
        pools = content["last"][race]
        lasts = next((p for p in pools if term.text in p.get("first", ())), None)
        lasts = lasts or next(p for p in pools if "first" not in p)
        by_group.setdefault((race, gender), []).append(First(term.text, tuple(lasts["names"])))
    return {group: tuple(names) for group, names in by_group.items()}


class NameLine:
    """A line with a full name: race moves first and last name, gender the first name alone."""

    def __init__(self, subject: str, rng: Random, race: str, gender: str) -> None:
        self._rng, self._race, self._gender = rng, race, gender
        self._first, self._last = self._full(race, gender)
        start = f"{subject.removeprefix('the ').capitalize()}: "
        self.line = f"{start}{self._first.name} {self._last}"
        self._at = len(start)

    def _full(self, race: str, gender: str, *, others: bool = False) -> tuple[First, str]:
        pool = [f for f in full_names()[race, gender] if not others or f != self._first]
        first = self._rng.choice(pool)
        lasts = [last for last in first.lasts if not others or last != self._last]
        return first, self._rng.choice([last for last in lasts if last != first.name] or lasts)

    def _beside(self, gender: str) -> tuple[First, str] | None:
        """Another first name that goes with the same last name."""
        names, standing = full_names()[self._race, gender], (self._first.name, self._last)
        pool = [f for f in names if f.lasts == self._first.lasts and f.name not in standing]
        return (self._rng.choice(pool), self._last) if pool else None

    def change(self, attribute: str, source: str, target: str) -> tuple[Edit, ...]:
        """The edits that lead from one group to another; empty where no name does."""
        new = self._full(target, self._gender) if attribute == RACE else self._beside(target)
        return self._edits(attribute, "name_line", (source, target), new)

    def placebo(self, attribute: str, group: str) -> tuple[Edit, ...]:
        """Another name of the same group, in as many words."""
        race = attribute == RACE
        new = self._full(self._race, self._gender, others=True) if race else self._beside(self._gender)
        return self._edits(attribute, "placebo", (group, group), new)

    def _edits(
        self, attribute: str, kind: EditKind, groups: tuple[str, str], new: tuple[First, str] | None
    ) -> tuple[Edit, ...]:
        if new is None:
            return ()
        second = self._at + len(self._first.name) + 1
        spans = {(self._at, second - 1): new[0].name, (second, len(self.line)): new[1]}
        return tuple(
            replacing(self.line, span, text, attribute, kind, groups)
            for span, text in spans.items()
            if span[0] == self._at or text != self._last
        )


class Statement:
    """A sentence that says who it is, without ``race`` or ``gender`` where they are ""; any text has its placebos."""

    def __init__(self, subject: str, rng: Random, known: Mapping[str, Dictionary], race: str, gender: str) -> None:
        self._rng, self._known = rng, known
        self._adjective = rng.choice(adjectives(known[RACE], race)).text if race else ""
        self._noun = _noun(known[GENDER], gender) if gender else "person"
        phrase = f"{self._adjective} {self._noun}".strip()
        start = f"{subject.capitalize()} is "
        self._article, self._at = article_for(phrase), len(start)
        self.line = f"{start}{self._article} {phrase}."

    def change(self, attribute: str, source: str, target: str) -> tuple[Edit, ...]:
        """The edits that lead from one group to another."""
        adjective, noun, groups = self._adjective, self._noun, (source, target)
        at = self._at + len(self._article) + 1
        if attribute == RACE:
            adjective = self._rng.choice(adjectives(self._known[RACE], target)).text
            span, new = (at, at + len(self._adjective)), adjective
        else:
            at += len(adjective) + bool(adjective)
            noun = _noun(self._known[GENDER], target)
            span, new = (at, at + len(self._noun)), noun
        changed = replacing(self.line, span, new, attribute, "statement", groups)
        article = article_for(f"{adjective} {noun}".strip())
        if article == self._article:
            return (changed,)
        span = (self._at, self._at + len(self._article))
        return (replacing(self.line, span, article, attribute, "agreement", groups), changed)

    def placebo(self, attribute: str, group: str) -> tuple[Edit, ...]:
        """No edit."""
        return ()


def adjectives(race: Dictionary, group: str) -> list[Term]:
    """The adjectives that may be written for a group."""
    return [t for t in race.terms if (t.slot, t.group) == ("adjective", group) and "source-only" not in t.tags]


def _noun(gender: Dictionary, group: str) -> str:
    return next(t.text for t in gender.terms if (t.slot, t.group) == ("adult.sg", group))
