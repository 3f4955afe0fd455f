"""The word lists of ``auditor/embedded/gate.yaml``."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from auditor.core import reading
from auditor.perturb.dictionaries import load, persons


class _File(msgspec.Struct, forbid_unknown_fields=True):
    lists: dict[str, str]
    belongs: dict[str, dict[str, str]]
    countries: dict[str, str]


FILE = msgspec.convert(reading.load_yaml(reading.shipped("embedded", "gate.yaml")), _File)
LISTS = {name: frozenset(words.split()) for name, words in FILE.lists.items()}


@cache
def pattern(text: str) -> re.Pattern[str]:
    """The words of a text of the file, which are regular expressions, as one."""
    return re.compile(rf"\b(?:{'|'.join(text.split())})\b".replace("~", " "), re.IGNORECASE)


@cache
def belongings(attribute: str) -> tuple[tuple[frozenset[str], re.Pattern[str]], ...]:
    """Return what belongs to some groups of an attribute, after the groups."""
    rows = FILE.belongs.get(attribute, {}).items()
    return tuple((frozenset(groups.split()), pattern(things)) for groups, things in rows)


@cache
def person_nouns() -> frozenset[str]:
    """Return the nouns, in lower case, that name a person or several."""
    singular, plural, _ = persons()
    return singular | plural


@cache
def gendered_words() -> dict[str, str]:
    """Return "f" or "m" for each word of the dictionary that names one person's gender."""
    out: dict[str, str] = {}
    for term in load("gender").sources:
        word, group = term.text.lower().rstrip("."), {"female": "f", "male": "m"}.get(term.group)
        if group is not None and " " not in word and term.number != "pl":
            out[word] = group
    return out
