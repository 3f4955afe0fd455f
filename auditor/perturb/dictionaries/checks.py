"""Says what is doubtful about dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from auditor.core import data, yamlfile
from auditor.perturb.dictionaries.entries import Dictionary, Term

# What tells an everyday word from the person or group: any of these conditions.
_CONDITIONS = frozenset(
    ("case", "lower", "name", "before:person", "after:person", "before:name", "as:noun", "as:adjective")
)


@lru_cache(maxsize=1)
def everyday() -> frozenset[str]:
    """Return words that a text uses for a thing far more often than for a person or group, in lower case."""
    content: Any = yamlfile.load(data.path("dictionaries", "shared", "everyday.yaml"))
    return frozenset(content["words"].split())


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
            problems += _check_slots(one) + _check_groups(one)
        problems += _check_everyday(one)
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


def _check_groups(one: Dictionary) -> list[str]:
    written = {t.group for t in one.terms if "source-only" not in t.tags}
    return [
        f"{one.attribute}: no word of group {name!r} can be written, so no edit leads to it"
        for name in one.targets
        if name not in written
    ]


def _check_everyday(one: Dictionary) -> list[str]:
    loose = {t.text for t in one.sources if t.text.lower() in everyday() and not t.tags & _CONDITIONS}
    return [
        f"{one.attribute}: {word!r} is an everyday word, and no condition tells its uses apart"
        for word in sorted(loose)
    ]
