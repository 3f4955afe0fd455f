"""Words that dictionaries share (``dictionaries/shared/``), and what is doubtful about dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from auditor.core import reading
from auditor.perturb.dictionaries.entries import Dictionary, Term
from auditor.perturb.dictionaries.files import load

_FIRST_PEOPLES = frozenset(("alaska", "indigenous", "nations"))
# What tells an everyday word from the person or group: any of these conditions.
_CONDITIONS = frozenset(
    ("case", "lower", "name", "before:person", "after:person", "before:name", "as:noun", "as:adjective")
)


def _shared(name: str) -> Any:
    return reading.load_yaml(reading.shipped("dictionaries", "shared", f"{name}.yaml"))


@lru_cache(maxsize=1)
def persons() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return singular and plural person nouns and the modifiers that may precede them, in lower case."""
    content = _shared("persons")
    irregular = dict(content["irregular"])
    singular = {noun for noun in content["nouns"].split() if noun not in irregular}
    plural = {_plural(noun) for noun in singular} | set(irregular)
    for term in load("gender").sources:
        if term.pos == "NNS":
            plural.add(term.text.lower().split()[-1])
        elif term.pos == "NN" and term.role in {"person", "kin", "occupation", "rank"}:
            singular.add(term.text.lower().split()[-1])
    return frozenset(singular), frozenset(plural), frozenset(content["modifiers"].split())


@lru_cache(maxsize=1)
def titles() -> dict[str, tuple[str, ...]]:
    """Return titles of films, books and the like, in lower case, by their longest words."""
    out: dict[str, list[str]] = {}
    for title in _shared("titles")["titles"].splitlines():
        out.setdefault(max(title.split(), key=len), []).append(title)
    return {word: tuple(titles) for word, titles in out.items()}


@lru_cache(maxsize=1)
def gendered() -> frozenset[str]:
    """Return the words, in lower case, that name a gender (she, Mr, wife): the marked terms of one word."""
    gender = load("gender")
    marked = [t.text.lower().rstrip(".") for t in gender.sources if not gender.groups[t.group].unmarked]
    return frozenset(word for word in marked if word.isalpha())


@lru_cache(maxsize=1)
def nations() -> frozenset[str]:
    """Return the words, in lower case, that a term of a nationality ends with (american, britons, african).

    With them the words of first peoples, which say whose land it is: *Indigenous British* is another people than meant.
    """
    return frozenset(t.text.lower().split()[-1] for t in load("nationality").sources) | _FIRST_PEOPLES


@lru_cache(maxsize=1)
def single_nationals() -> frozenset[str]:
    """Return the words, in lower case, that stand for one person of a nation (*American, Finn*; not *Finnish*)."""
    return frozenset(t.text.lower() for t in load("nationality").terms if t.slot == "noun.sg")


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


@lru_cache(maxsize=1)
def everyday() -> frozenset[str]:
    """Return words that a text uses for a thing far more often than for a person or group, in lower case."""
    return frozenset(_shared("everyday")["words"].split())


def check(dictionaries: Sequence[Dictionary]) -> list[str]:
    """Say what is doubtful about ``dictionaries``; empty if nothing is.

    Reported: a word that two attributes look for, an attribute given twice, a word in two slots of one group
    that nothing tells apart, a word without counterpart in any group, a group without a word that can be
    written, and an everyday word (Will, May, old, short) without a condition that tells its uses apart.
    """
    problems: list[str] = []
    owner: dict[str, str] = {}
    for one in dictionaries:
        mine = {t.text.lower(): t for t in one.sources}
        for word in sorted(mine):
            if word in owner and owner[word] != one.attribute:
                problems.append(f"{word!r} belongs to {owner[word]} and {one.attribute}; keep it in one of them")
            elif word in owner:
                problems.append(f"{one.attribute}: two dictionaries hold {word!r}")
            owner.setdefault(word, one.attribute)
        if not one.raw:
            problems += _check_slots(one)
            written = {t.group for t in one.terms if "source-only" not in t.tags}
            problems += [
                f"{one.attribute}: no word of group {name!r} can be written, so no edit leads to it"
                for name in one.targets
                if name not in written
            ]
        loose = {t.text for t in one.sources if t.text.lower() in everyday() and not t.tags & _CONDITIONS}
        problems += [
            f"{one.attribute}: {word!r} is an everyday word, and no condition tells its uses apart"
            for word in sorted(loose)
        ]
    return problems


def _check_slots(one: Dictionary) -> list[str]:
    problems = []
    seen: dict[str, Term] = {}
    for term in one.sources:
        other = seen.setdefault(term.text.lower(), term)
        told_apart = (other.tags ^ term.tags) & {"as:noun", "as:adjective", "before:person"}
        if other is not term and not told_apart and not term.slot.startswith("pronoun."):
            problems.append(f"{one.attribute}: {term.text!r} stands in {other.slot} and in {term.slot}")
        if not any(one.counterparts(term, g) for g in one.targets if g != term.group):
            problems.append(f"{one.attribute}: {term.text!r} ({term.slot}) has no counterpart in any group")
    return problems
