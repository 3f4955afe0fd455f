"""Full names as carriers of gender and of race or ethnicity, for lines that name a person."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from auditor.core import data, yamlfile
from auditor.perturb.dictionaries.files import load


class First(NamedTuple):
    """A first name, and the last names that go with it."""

    name: str
    lasts: tuple[str, ...]


@lru_cache(maxsize=1)
def full_names() -> Mapping[tuple[str, str], tuple[First, ...]]:
    """Return the first names of each (race or ethnicity, gender), each with its last names.

    First names are those of ``names.yaml`` but for the ambiguous ones of ``shared/name_lines.yaml``; last names are of
    the latter. The groups are those of the attributes race and gender. Sources stand in the two files.

    Examples
    --------
    >>> pools = full_names()
    >>> sorted({race for race, _ in pools})
    ['asian', 'black', 'hispanic', 'middle_eastern', 'white']
    >>> min(len(names) for names in pools.values()) >= 20
    True
    """
    content: Any = yamlfile.load(data.path("dictionaries", "shared", "name_lines.yaml"))
    firsts = load("names")
    found: dict[tuple[str, str], list[First]] = {}
    for term in firsts.terms:
        gender = firsts.groups[term.group].agrees or ""
        race = term.group.removesuffix(f"_{gender}")
        if term.text in content["ambiguous"]:
            continue
        pools = content["last"][race]
        lasts = next((p for p in pools if term.text in p.get("first", ())), None)
        lasts = lasts or next(p for p in pools if "first" not in p)
        found.setdefault((race, gender), []).append(First(term.text, tuple(lasts["names"])))
    return {group: tuple(names) for group, names in found.items()}
