"""Tables from CSV files: numbers, truth values and missing values as what they are, and what was not plain in them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.core import row_files
from auditor.core.errors import DataFileError
from auditor.core.shown import plural

# What pandas reads as missing, so that a model gets what it was trained on.
MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "null", "NULL", "None", "<NA>", "#N/A", "#NA")
)
_NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*")  # also with commas


class Table(dict[str, NDArray[np.generic]]):
    """Columns by name, and in ``notes`` what a reader has to know about how they were read.

    int64, float64 (NaN where missing), bool, or object (text or truth values, None where missing), shape (n,).
    """

    notes: tuple[str, ...]

    def __init__(self, columns: Mapping[str, NDArray[np.generic]], notes: Iterable[str] = ()) -> None:
        super().__init__(columns)
        self.notes = tuple(notes)

    def without_missing(self, names: Sequence[str]) -> Table:
        """The rows in which none of some columns is missing; what was left out becomes a note."""
        notes, keep = list(self.notes), np.ones(len(next(iter(self.values()))), dtype=bool)
        for name in names:
            gone = missing(self[name])
            if gone.any():
                notes.append(f"{name} is missing in {plural(int(gone.sum()), 'row')}: left out.")
            keep &= ~gone
        if not keep.any():
            raise DataFileError(f"no row has a value in all of {', '.join(names)}")
        return self if keep.all() else Table({n: v[keep] for n, v in self.items()}, notes)


def missing(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Which values are missing: None, NaN or empty."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values), dtype=bool)
    if values.dtype.kind in "iub":
        return np.zeros(values.shape, dtype=bool)
    return np.array([v is None or v == "" or (isinstance(v, float) and math.isnan(v)) for v in values], dtype=bool)


def read_table(path: str | Path) -> Table:
    """A CSV file (comma, semicolon or tab, also ``.csv.gz``) with a header line, by column."""
    path = Path(path)
    table = row_files.parse(path, row_files.decode(path, row_files.content(path)))
    row_files.distinct(path, table.columns)
    rows = [row for _, row in table.rows]
    if not rows:
        raise DataFileError(f"{path}: there is a header and no line below it")
    notes: list[str] = []
    columns = {name: read_column(name, [row[j].strip() for row in rows], notes) for j, name in enumerate(table.columns)}
    for j, (name, values) in enumerate(columns.items()):
        if values.dtype.kind == "f" and len(beyond := np.flatnonzero(np.isinf(values))):
            raise DataFileError(
                f"{path}, row {beyond[0] + 1}: column {name!r} is {rows[beyond[0]][j].strip()}, not a finite number "
                f"({plural(len(beyond), 'such row')}). Give the number, or leave the field empty"
            )
    return Table(columns, notes)


def read_column(name: str, values: Sequence[str], notes: list[str]) -> NDArray[np.generic]:
    """The values of one column in the narrowest type that holds them; texts among numbers are added to ``notes``."""
    for kind in (int, float):
        try:
            if kind is int:
                return np.array([int(v) for v in values], dtype=np.int64)
            read = np.array([math.nan if v in MISSING else float(v) for v in values], dtype=np.float64)
        except (ValueError, OverflowError):
            continue
        _say(name, Counter(v for v in values if v and v in MISSING), notes)
        return read
    count = Counter(v for v in values if v not in MISSING)
    if {v.casefold() for v in count} <= {"true", "false"}:
        truth = [None if v in MISSING else v.casefold() == "true" for v in values]
        return np.array(truth, dtype=object if None in truth else bool)
    odd = [v for v in count if not _NUMBER.fullmatch(v)] or [v for v in count if "," in v]
    if (numbers := sum(n for v, n in count.items() if v not in odd)) * 2 > count.total():
        notes.append(
            f"{name}: {numbers:,} of {plural(count.total(), 'value')} are numbers; not {_listed(odd, count)}. It was "
            "read as text, each value a category. Write the others as numbers (2000, 1.5), or leave the field empty."
        )
    return np.array([None if v in MISSING else v for v in values], dtype=object)


def _say(name: str, count: Counter[str], notes: list[str]) -> None:
    if count:
        notes.append(f"{name}: read as missing, since all other values are numbers: {_listed([*count], count)}.")


def _listed(values: Sequence[str], count: Mapping[str, int]) -> str:
    shown = ", ".join(f"{v!r} ({plural(count[v], 'row')})" for v in values[:4])
    return shown + (f" and {len(values) - 4:,} more" if len(values) > 4 else "")
