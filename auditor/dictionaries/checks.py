"""Says what is doubtful about dictionaries."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.dictionaries.entries import Dictionary, Term


def check(dictionaries: Sequence[Dictionary]) -> list[str]:
    """Say what is doubtful about ``dictionaries``; empty if nothing is.

    Reported: a word that two attributes look for, a word in two slots of one group that nothing tells
    apart, a slot without counterpart, and an attribute given twice.
    """
    problems: list[str] = []
    owner: dict[str, str] = {}
    for one in dictionaries:
        mine = {t.text.lower(): t for t in one.sources}
        for word in sorted(mine):
            if word in owner and owner[word] != one.attribute:
                problems.append(
                    f"{word!r} belongs to {owner[word]} and {one.attribute}; keep it in one of them"
                )
            elif word in owner:
                problems.append(f"{one.attribute}: two dictionaries hold {word!r}")
            owner.setdefault(word, one.attribute)
        if not one.raw:
            problems += _check_slots(one)
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
