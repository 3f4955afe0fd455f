"""Operational profiles: from which distribution rows are drawn (Themis, Definition 3.8).

A profile is a YAML file with the weight of values, column by column; columns are drawn independently and
columns that are left out uniformly::

    age:  {"17-29": 30, "30-49": 45, "50-90": 25}    # ranges of whole numbers, uniform within
    sex:  {Female: 0.33, Male: 0.67}

or a CSV file, whose rows are drawn with replacement.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.core import yamlfile
from auditor.core.errors import DataFileError
from auditor.tables.column import Column
from auditor.tables.given import Given, Rows
from auditor.tables.reading import read_table
from auditor.tables.schema import Schema, uniform

_RANGE = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(?:-|to|\.\.)\s*(-?\d+(?:\.\d+)?)\s*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """A distribution over rows."""

    name: str  # for reports
    # probability of each code, for the columns that are not uniform
    weights: Mapping[int, NDArray[np.float64]]
    rows: Given | None = None  # rows to draw from instead, as they are

    def sample(self, schema: Schema, n: int, rng: np.random.Generator) -> Rows:
        """Draw independent rows, shape (n, d)."""
        if self.rows is not None:
            return self.rows[rng.integers(0, len(self.rows), n)]
        out = uniform(schema, n, rng)
        for j, weight in self.weights.items():
            out[:, j] = np.searchsorted(np.cumsum(weight)[:-1], rng.random(n), side="right")
        return out


def load_profile(path: str | Path, schema: Schema) -> Profile:
    """Read a profile."""
    path = Path(path)
    if path.suffix not in (".yaml", ".yml"):
        return Profile(name=path.name, weights={}, rows=Given.of(schema, read_table(path), where=str(path)))
    value = yamlfile.load(path)
    if not isinstance(value, dict) or not value:
        raise DataFileError(f"{path}: expected columns with weights of values, e.g. `sex: {{Female: 1, Male: 2}}`")
    weights = {}
    for name, entry in value.items():
        if str(name) not in schema.names:
            raise DataFileError(f"{path}: the schema has no column {name!r}; columns: {', '.join(schema.names)}")
        j = schema.names.index(str(name))
        weights[j] = _weights(schema.columns[j], entry, path)
    return Profile(name=path.name, weights=weights)


def _weights(column: Column, entry: object, path: Path) -> NDArray[np.float64]:
    where = f"{path}, column {column.name!r}"
    if not isinstance(entry, dict) or not all(
        isinstance(w, int | float) and not isinstance(w, bool) and 0 <= w < float("inf") for w in entry.values()
    ):
        raise DataFileError(f"{where}: expected values with weights of at least 0")
    weight = np.zeros(column.codes)
    for value, share in entry.items():
        code = column.code_of(value)
        match = _RANGE.fullmatch(str(value)) if code is None else None
        if match and column.numeric:
            raw = np.array(column.raw_values(), dtype=float)
            inside = (raw >= float(match[1])) & (raw <= float(match[2]))
            if inside.any():
                weight[inside] += share / inside.sum()
                continue
        if code is None:
            raise DataFileError(f"{where}: there is no value {value!r}")
        weight[code] += share
    if not weight.sum() > 0:
        raise DataFileError(f"{where}: all weights are 0")
    return np.asarray(weight / weight.sum())
