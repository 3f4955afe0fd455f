"""Identities that name several groups at once (*black woman*, *asian_male*), by the words of dictionaries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from auditor.contrib.imports.tables import Column
from auditor.perturb import dictionaries

BETWEEN = re.compile(r"[\s_\-/+,&]+")
NOBODY = frozenset({"none", "nobody", "neutral", "unspecified", "no identity", "baseline", "control"})
ANYBODY = frozenset(("a", "an", "the", "and", "person", "people", "applicant", "candidate", "patient", "individual"))


def split(column: Column) -> dict[str, dict[str, str]]:
    """What each value of a column stands for, by attribute; values that stand for nobody are left out.

    Nothing where a value holds a word that no dictionary knows, or where not all name the same two or more attributes.

    Examples
    --------
    >>> split(["Black woman", "asian-man", "none"])
    {'Black woman': {'gender': 'female', 'race': 'black'}, 'asian-man': {'gender': 'male', 'race': 'asian'}}
    >>> split(["woman", "man"])
    {}
    """
    values = sorted({v for v in column if v is not None})
    found = {value: _groups(value) for value in values if value.strip().lower() not in NOBODY}
    named = {tuple(sorted(groups)) for groups in found.values()}
    if len(named) != 1 or len(next(iter(named))) < 2:
        return {}
    return {value: dict(sorted(groups.items())) for value, groups in found.items()}


def _groups(value: str) -> dict[str, str]:
    """The groups that the words of a value name; none where one is not known, or two are of one attribute."""
    words = [word for word in BETWEEN.split(value.lower()) if word]
    out: dict[str, str] = {}
    at = 0
    while at < len(words):
        size = next((n for n in (3, 2, 1) if " ".join(words[at : at + n]) in _terms() and at + n <= len(words)), 0)
        if size:
            attribute, group = _terms()[" ".join(words[at : at + size])]
            if out.setdefault(attribute, group) != group:
                return {}
        elif words[at] not in ANYBODY:
            return {}
        at += size or 1
    return out


@cache
def _terms() -> Mapping[str, tuple[str, str]]:
    """Word → attribute and group, of the attributes that an audit looks for by itself; names of groups too."""
    out: dict[str, tuple[str, str]] = {}
    for one in map(dictionaries.load, dictionaries.builtin()):
        if one.default:
            for name in one.groups:
                out.setdefault(name.replace("_", " "), (one.attribute, name))
            for term in one.sources:
                out.setdefault(term.text.lower(), (one.attribute, term.group))
    return out
