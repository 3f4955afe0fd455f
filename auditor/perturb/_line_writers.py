"""What is written in front of a text: a full name, or a sentence; each says how it changes with a group."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from auditor.core.types import Edit, EditKind
from auditor.perturb.dictionaries import Dictionary, Term
from auditor.perturb.dictionaries.full_names import First, full_names
from auditor.text.english import article_for

GENDER, RACE = "gender", "race"


class Name:
    """A line with a full name: race moves first and last name, gender the first name alone."""

    def __init__(self, subject: str, rng: Random, race: str, gender: str) -> None:
        self._rng, self._gender = rng, gender
        self._race = race
        self._first, self._last = self._full(race, gender)
        start = f"{subject.removeprefix('the ').capitalize()}: "
        self.line = f"{start}{self._first.name} {self._last}"
        self._at = len(start)

    def _full(self, race: str, gender: str, *, others: bool = False) -> tuple[First, str]:
        pool = [f for f in full_names()[race, gender] if not others or f != self._first]
        first = self._rng.choice(pool)
        lasts = [last for last in first.lasts if not others or last != self._last]
        return first, self._rng.choice([last for last in lasts if last != first.name] or lasts)

    def _beside(self, gender: str) -> First | None:
        """Another first name that goes with the same last name."""
        pool = [
            f
            for f in full_names()[self._race, gender]
            if f.lasts == self._first.lasts and f.name not in (self._first.name, self._last)
        ]
        return self._rng.choice(pool) if pool else None

    def change(self, attribute: str, source: str, target: str) -> tuple[Edit, ...]:
        if attribute == RACE:
            return self._edits(attribute, "name_line", source, target, *self._full(target, self._gender))
        first = self._beside(target)
        return () if first is None else self._edits(attribute, "name_line", source, target, first)

    def placebo(self, attribute: str, group: str) -> tuple[Edit, ...]:
        """Another name of the same group, in as many words."""
        if attribute == RACE:
            new = self._full(self._race, self._gender, others=True)
            return self._edits(attribute, "placebo", group, group, *new)
        first = self._beside(self._gender)
        return () if first is None else self._edits(attribute, "placebo", group, group, first)

    def _edits(
        self, attribute: str, kind: EditKind, source: str, target: str, first: First, last: str = ""
    ) -> tuple[Edit, ...]:
        second = self._at + len(self._first.name) + 1
        places = [(self._at, self._first.name, first.name)]
        places += [(second, self._last, last)] if last and last != self._last else []
        return tuple(_edit(attribute, kind, source, target, *place) for place in places)


class Statement:
    """A sentence that says who it is; its placebos are those of any text."""

    def __init__(
        self, subject: str, rng: Random, known: Mapping[str, Dictionary], race: str | None, gender: str | None
    ) -> None:
        self._rng, self._known = rng, known
        self._adjective = "" if race is None else rng.choice(adjectives(known[RACE], race)).text
        self._noun = "person" if gender is None else _noun(known[GENDER], gender)
        phrase = f"{self._adjective} {self._noun}".strip()
        start = f"{subject.capitalize()} is "
        self._article, self._at = article_for(phrase), len(start)
        self.line = f"{start}{self._article} {phrase}."

    def change(self, attribute: str, source: str, target: str) -> tuple[Edit, ...]:
        adjective, noun = self._adjective, self._noun
        at = self._at + len(self._article) + 1
        if attribute == RACE:
            adjective = self._rng.choice(adjectives(self._known[RACE], target)).text
            changed = _edit(attribute, "statement", source, target, at, self._adjective, adjective)
        else:
            at += len(adjective) + bool(adjective)
            noun = _noun(self._known[GENDER], target)
            changed = _edit(attribute, "statement", source, target, at, self._noun, noun)
        article = article_for(f"{adjective} {noun}".strip())
        if article == self._article:
            return (changed,)
        return (_edit(attribute, "agreement", source, target, self._at, self._article, article), changed)

    def placebo(self, attribute: str, group: str) -> tuple[Edit, ...]:
        return ()


def _edit(attribute: str, kind: EditKind, source: str, target: str, at: int, out: str, into: str) -> Edit:
    return Edit(
        attribute=attribute,
        kind=kind,
        source_group=source,
        target_group=target,
        source=out,
        target=into,
        where=(at, at + len(out)),
    )


def adjectives(race: Dictionary, group: str) -> list[Term]:
    """The adjectives that may be written for a group."""
    return [t for t in race.terms if (t.slot, t.group) == ("adjective", group) and "source-only" not in t.tags]


def _noun(gender: Dictionary, group: str) -> str:
    return next(t.text for t in gender.terms if (t.slot, t.group) == ("adult.sg", group))
