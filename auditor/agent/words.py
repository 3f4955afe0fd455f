"""The words by which goals are read (``embedded/agent/goal.toml``)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from auditor.core import data

SKIPPED_SLOTS = ("pronoun.", "title.", "address.")


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """The words of ``embedded/agent/goal.toml``; a star stands for any ending."""

    generic: str
    nobody: str
    persons: tuple[str, ...]
    intent: tuple[str, ...]
    not_groups: frozenset[str]
    traits: frozenset[str]
    legal: tuple[str, ...]
    legal_tasks: tuple[str, ...]
    tasks: dict[str, tuple[str, ...]]
    attributes: dict[str, tuple[str, ...]]
    groups: dict[str, str]
    countries: dict[str, str]

    @property
    def of_tasks(self) -> list[str]:
        """The words of all tasks."""
        return [word for words in self.tasks.values() for word in words]

    @property
    def ignored(self) -> frozenset[str]:
        """Words that name nobody."""
        return frozenset((*self.generic.split(), *self.nobody.split()))


@lru_cache(maxsize=1)
def known_words() -> Words:
    """The words by which goals are read."""
    text = data.path("embedded", "agent", "goal.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=Words)


def plain_words(text: str) -> str:
    """Lower case, without accents, one space between words; of the signs between words commas stay."""
    decomposed = unicodedata.normalize("NFKD", text)
    bare = "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()
    spaced = bare.replace("’", "'").replace("_", " ").replace(",", " , ")
    return " ".join(re.sub(r"[^\w', -]", " ", spaced).split())


@lru_cache(maxsize=1)
def terms() -> dict[str, tuple[tuple[str, str], ...]]:
    """Phrase → (attribute, group), of the shipped dictionaries and of `Words`; a word of two attributes has both."""
    from auditor.perturb import dictionaries

    known = known_words()
    phrases: dict[str, set[tuple[str, str]]] = {}
    for phrase, where in known.groups.items():
        attribute, _, place = where.partition(":")
        phrases[phrase] = {(attribute, place)}
    phrases |= {name: {("nationality", group)} for name, group in known.countries.items()}
    for name in dictionaries.builtin():
        loaded = dictionaries.load(name)
        for term in loaded.terms:
            phrase = plain_words(term.text)
            group = loaded.groups[term.group]
            if (
                len(phrase) < 3
                or phrase in known.not_groups
                or group.unmarked
                or term.slot.startswith(SKIPPED_SLOTS)
                or term.role == "name"
            ):
                continue
            for form in _forms(phrase):
                phrases.setdefault(form, set()).add((loaded.attribute, term.group))
    return {phrase: tuple(sorted(places)) for phrase, places in phrases.items() if len(places) == 1}


def _forms(phrase: str) -> Iterable[str]:
    yield phrase
    if " " not in phrase and phrase.endswith(("an", "ish", "er", "or", "st", "im")):
        yield phrase + "s"
