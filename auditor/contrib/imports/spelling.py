"""One spelling for each label, group and number; values that name nobody."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from auditor.contrib.imports.answer_files import Column
from auditor.contrib.imports.known import KNOWN
from auditor.contrib.imports.mapping import fold, number

MISSING = frozenset({"nan", "n/a", "#n/a", "<na>", "null"})  # not "none", which is a group of many attributes
MISSING_R = "NA"  # as R writes it; "Na" is a name
WRITTEN = re.compile(
    r"(?:(?:score|rating|answer)\s*[:=]?\s*)?[$€£]?\s*(?P<number>[-+]?(?:\d[\d.,]*|[.,]\d+)(?:e[-+]?\d+)?)"
    r"\s*(?:%|points?|(?:/|out of)\s*(?P<of>\d+))?",
    re.IGNORECASE,
)
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
COMMA = re.compile(r"[-+]?\d*,\d+")


def missing(value: str | None) -> bool:
    """Whether a field says that there is nothing.

    Examples
    --------
    >>> [missing(v) for v in (None, " NaN", "NA", "Na", "none", "")]
    [True, True, True, False, False, True]
    """
    text = (value or "").strip()
    return not text or text == MISSING_R or text.lower() in MISSING


def spelled(values: Iterable[str], named: Iterable[str] = ()) -> dict[str, str]:
    """Each value → the one of its spellings that the mapping names, or else the most frequent one.

    Examples
    --------
    >>> spelled(["Yes", "yes", "YES.", "Yes", "no"])
    {'Yes': 'Yes', 'yes': 'Yes', 'YES.': 'Yes', 'no': 'no'}
    """
    count = Counter(values)
    best: dict[str, str] = {}
    named = list(named)
    for value in [*named, *sorted(count, key=lambda v: (-count[v], v))]:
        best.setdefault(fold(value), value.strip())
    return {value: value if value in named else best[fold(value)] for value in count}


def numbers(column: Column) -> Column:
    """A column of numbers as Python writes them; what holds no number, or is out of another maximum, is None.

    A comma is a decimal sign where one value of the column can be read in no other way.

    Examples
    --------
    >>> numbers(["47,5", "1,234"]), numbers(["$85,000", "90,500.5"]), numbers(["72/100", "**80**", "7/10", "8/100"])
    (['47.5', '1.234'], ['85000', '90500.5'], ['72', '80', None, '8'])
    """
    matches = {v: WRITTEN.fullmatch(v.strip(" \t\r\n*_`\"'")) for v in set(column) - {None} if v}
    raw = [m["number"].rstrip(".,") for m in matches.values() if m]
    decimal = any(COMMA.fullmatch(n) and not THOUSANDS.fullmatch(n) for n in raw)
    limits = Counter(m["of"] for v in column if v and (m := matches[v]) and m["of"])
    limit = max(limits, key=limits.__getitem__, default=None)
    read: dict[str, str | None] = {}
    for value, match in matches.items():
        text = match["number"].rstrip(".,") if match and match["of"] in (None, limit) else ""
        if decimal and "," in text:
            text = text.replace(".", "").replace(",", ".") if COMMA.fullmatch(text) else ""
        elif THOUSANDS.fullmatch(text):
            text = text.replace(",", "")
        read[value] = text if number(text) is not None else None
    return [read[v] if v else None for v in column]


def nobody(value: str) -> bool:
    """Say whether a value of a column of groups names nobody in particular: the control arm.

    Examples
    --------
    >>> [nobody(v) for v in ("none", "None-Control", "N/A", "no_name (control)", "NA", "Na", "white", "none of these")]
    [True, True, True, True, True, False, False, False]
    """
    words = [word for word in re.split(r"[\s_\-+,&()]+", value.lower()) if word]
    if value.strip() == "Na" or not words:
        return False
    at = 0
    while at < len(words):
        size = next((n for n in (2, 1) if at + n <= len(words) and " ".join(words[at : at + n]) in KNOWN.nobody), 0)
        if not size:
            return False
        at += size
    return True
