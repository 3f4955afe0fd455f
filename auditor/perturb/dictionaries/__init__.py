"""Dictionaries: which words name which group, and what may replace what.

A typed dictionary (YAML) puts terms into slots; terms of equal slots in different groups are counterparts.
A raw pair file (``source;target`` lines, as HInter publishes them) states its pairs one by one. Both become
a `Dictionary`. The file format is described in ``dictionaries/README.md``.
"""

from auditor.perturb.dictionaries.entries import TAGS, Dictionary, Group, Term
from auditor.perturb.dictionaries.files import (
    VIEWS,
    builtin,
    load,
    load_options,
    load_pairs,
    neutral,
    parse_option,
    view,
)
from auditor.perturb.dictionaries.shared_words import check, gendered, nations, persons, single_nationals, titles

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
    "load_pairs",
    "nations",
    "neutral",
    "parse_option",
    "persons",
    "single_nationals",
    "titles",
    "view",
]
