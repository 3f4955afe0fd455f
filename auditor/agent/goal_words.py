"""The words by which goals are read (``embedded/agent/goal.toml``), and which groups a goal compares by them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from auditor.core import reading

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
    def of_goals(self) -> list[str]:
        """What a goal may say beside its people."""
        return [*self.of_tasks, *self.legal, *self.intent]

    @property
    def ignored(self) -> frozenset[str]:
        """Words that name nobody."""
        return frozenset((*self.generic.split(), *self.nobody.split()))


@lru_cache(maxsize=1)
def known_words() -> Words:
    """The words by which goals are read."""
    text = reading.shipped("embedded", "agent", "goal.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=Words)


def plain_words(text: str) -> str:
    """Lower case, without accents, one space between words; of the signs between words commas stay."""
    decomposed = unicodedata.normalize("NFKD", text)
    bare = "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()
    spaced = bare.replace("’", "'").replace("_", " ").replace(",", " , ")
    return " ".join(re.sub(r"[^\w', -]", " ", spaced).split())


def found_in(word: str, plain: str) -> str | None:
    """The words of ``plain`` that ``word`` (a star for any ending) matches."""
    body = re.escape(word.rstrip("*")) + (r"\w*" if word.endswith("*") else "")
    match = re.search(rf"(?<![\w-]){body}(?![\w])", plain)
    return None if match is None else match.group()


@lru_cache(maxsize=1)
def terms() -> dict[str, tuple[tuple[str, str], ...]]:
    """Phrase → (attribute, group), of the shipped dictionaries and of `Words`; a word of two attributes has both."""
    from auditor.perturb import dictionaries

    known = known_words()
    phrases = {phrase: {(at.partition(":")[0], at.partition(":")[2])} for phrase, at in known.groups.items()}
    phrases |= {name: {("nationality", group)} for name, group in known.countries.items()}
    for loaded in map(dictionaries.load, dictionaries.builtin()):
        for term in loaded.terms:
            phrase = plain_words(term.text)
            apart = term.role == "name" or term.slot.startswith(SKIPPED_SLOTS) or loaded.groups[term.group].unmarked
            if len(phrase) < 3 or phrase in known.not_groups or apart:
                continue
            plural = " " not in phrase and phrase.endswith(("an", "ish", "er", "or", "st", "im"))
            for form in (phrase, phrase + "s") if plural else (phrase,):
                phrases.setdefault(form, set()).add((loaded.attribute, term.group))
    return {phrase: tuple(sorted(places)) for phrase, places in phrases.items() if len(places) == 1}


THAN = re.compile(r"\b(?:than|versus|vs|compared (?:to|with)|as opposed to|instead of|over(?![ -]?\d))\b")
# These compare only two groups, and only where the goal asks for a difference.
AND = re.compile(r"\b(?:and|or|from)\b")
DIFFERENCE = re.compile(r"\b(?:between|differ\w*|equal\w*|unequal\w*|same|alike|gap|prefer\w*|rather)\b")
SIDE_BY_SIDE = re.compile(r",(?=.*\b(?:and|or)\b)|\b(?:and|or|nor|as well as|than|versus|vs|plus)\b")
Place = tuple[int, str, str]  # where in a goal a group is named: its attribute and name


def compared(plain: str, places: Iterable[Place]) -> dict[str, set[str]]:
    """Return the groups behind the word that compares, by attribute; ``places`` is where the goal names which group.

    Examples
    --------
    >>> compared("women vs men", [(0, "gender", "female"), (9, "gender", "male")])
    {'gender': {'male'}}
    >>> compared("women and men", [(0, "gender", "female"), (10, "gender", "male")])
    {}
    """
    by_attribute: dict[str, list[tuple[int, str]]] = {}
    for start, attribute, group in places:
        by_attribute.setdefault(attribute, []).append((start, group))
    words = [(match.start(), True) for match in THAN.finditer(plain)]
    if DIFFERENCE.search(plain):
        words += [(match.start(), False) for match in AND.finditer(plain)]
    out: dict[str, set[str]] = {}
    for attribute, named in by_attribute.items():
        for at, strong in words:
            before, behind = ({g for start, g in named if (start < at) is side} for side in (True, False))
            if before and behind and not before & behind and (strong or len(named) == 2):
                out[attribute] = behind
                break
    return out
