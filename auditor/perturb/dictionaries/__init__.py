"""Dictionaries: which words name which group, and what may replace what.

A typed dictionary (YAML) puts terms into slots; terms of equal slots in different groups are counterparts.
A raw pair file (``source;target`` lines, as HInter publishes them) states its pairs one by one. Both become
a `Dictionary`. The file format is described in ``dictionaries/README.md``.
"""

from auditor.perturb.dictionaries.entries import TAGS, Dictionary, Group, Term
from auditor.perturb.dictionaries.files import (
    VIEWS,
    builtin,
    check,
    gendered,
    load,
    load_options,
    nations,
    neutral,
    parse_option,
    persons,
    phrases,
    titles,
    unknown,
    view,
)

__all__ = [
    "TAGS",
    "VIEWS",
    "Dictionary",
    "Group",
    "Term",
    "builtin",
    "check",
    "gendered",
    "load",
    "load_options",
    "nations",
    "neutral",
    "parse_option",
    "persons",
    "phrases",
    "titles",
    "unknown",
    "view",
]
