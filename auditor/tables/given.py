"""Given rows as they are: bins serve searching and sampling, and never stand in for a value that somebody has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from auditor.tables.column import Codes, Column, numbers
from auditor.tables.schema import Schema, cross


@dataclass(frozen=True, slots=True)
class Given:
    """Rows of a table, each with its own values."""

    bins: Codes  # codes within the schema of the run: of binned columns, the bin
    codes: Codes  # codes within ``schema``
    # as that of the run, but of binned columns every value that a given row has is a code of its own.
    # The schema of the run itself where no column is binned
    schema: Schema
    # binned column → the code in ``schema`` of the value that represents each bin
    stand: Mapping[int, NDArray[np.int32]]

    @classmethod
    def of(cls, schema: Schema, frame: Mapping[str, object], *, where: str = "the data") -> Given:
        """The rows of a table, read as `Schema.encode` reads them."""
        bins = schema.encode(frame, where=where)
        codes, columns, stand = bins.copy(), list(schema.columns), {}
        for j, column in enumerate(schema.columns):
            if column.kind == "binned":
                own = numbers(np.asarray(frame[column.name]))
                columns[j], stand[j], codes[:, j] = _widened(column, own)
        if not stand:
            return cls(bins, bins, schema, {})
        return cls(bins, codes, replace(schema, columns=tuple(columns)), stand)

    @classmethod
    def none(cls, schema: Schema) -> Given:
        """No row at all."""
        codes = np.empty((0, schema.d), dtype=np.int32)
        return cls(codes, codes, schema, {})

    def __len__(self) -> int:
        return len(self.bins)

    def __getitem__(self, part: slice | NDArray[np.generic]) -> Given:
        return replace(self, bins=self.bins[part], codes=self.codes[part])

    def crossed(self, index: NDArray[np.intp], combos: Codes) -> Given:
        """Rows with every combination, all rows with the first one first; as `domain.cross`.

        A row keeps its own value where a combination has the bin of that value, and takes the value that represents
        the bin elsewhere.
        """
        bins, codes = cross(self.bins, index, combos), np.tile(self.codes, (len(combos), 1))
        for j in index.tolist():
            told = bins[:, j]
            if j not in self.stand:
                codes[:, j] = told
                continue
            moved = told != np.tile(self.bins[:, j], len(combos))
            codes[moved, j] = self.stand[j][told[moved]]
        return replace(self, bins=bins, codes=codes)

    def beside(self, codes: Codes) -> Given:
        """Rows that are codes alone, to stand in one table with these."""
        wide = codes.copy()
        for j, stand in self.stand.items():
            wide[:, j] = stand[codes[:, j]]
        return replace(self, bins=codes, codes=wide)

    def values(self, index: Sequence[int]) -> NDArray[np.float64]:
        """Raw values of the binned columns among ``index``, shape (n, k); they mean the same in every table."""
        chosen = [j for j in index if j in self.stand]
        made = [np.array(self.schema.columns[j].values, dtype=float)[self.codes[:, j]] for j in chosen]
        return np.stack(made, axis=1) if made else np.empty((len(self), 0))


Rows = Codes | Given


def crossed(rows: Rows, index: NDArray[np.intp], combos: Codes) -> Rows:
    """Rows with every combination; see `domain.cross` and `Given.crossed`."""
    return rows.crossed(index, combos) if isinstance(rows, Given) else cross(rows, index, combos)


def joined(parts: Sequence[Rows]) -> Rows:
    """Parts of one table, or of one stream of rows, as one."""
    first = next((part for part in parts if isinstance(part, Given)), None)
    if first is None:
        return np.concatenate([binned(part) for part in parts])
    given = [part if isinstance(part, Given) else first.beside(part) for part in parts]
    return replace(
        first, bins=np.concatenate([part.bins for part in given]), codes=np.concatenate([part.codes for part in given])
    )


def binned(rows: Rows) -> Codes:
    """The codes of rows within the schema of the run."""
    return rows.bins if isinstance(rows, Given) else rows


def within(schema: Schema, rows: Rows) -> tuple[Schema, Codes]:
    """Rows as codes, and the schema that these codes are of: ``schema`` but for given rows."""
    return (rows.schema, rows.codes) if isinstance(rows, Given) else (schema, rows)


def _widened(column: Column, own: NDArray[np.float64]) -> tuple[Column, NDArray[np.int32], NDArray[np.int32]]:
    """A column with every value of its own, the codes of the representatives, and those of the rows."""
    stand = np.array(column.values, dtype=float)
    values = np.unique(np.concatenate([stand, own]))
    listed = [int(v) if v.is_integer() else v for v in values.tolist()]
    wide = replace(column, kind="category", codes=len(listed), values=tuple(listed), edges=(), ordered=column.ordered)
    at = [np.searchsorted(values, part).astype(np.int32) for part in (stand, own)]
    return wide, at[0], at[1]


def bins_note(schema: Schema) -> str:
    """What a report says about binned columns; empty without one."""
    binned = [c for c in schema.columns if c.kind == "binned"]
    if not binned:
        return ""
    named = ", ".join(f"{c.name} ({c.codes})" for c in binned)
    return (
        f"Searched, uniform and enumerated rows take one value for each bin of {named}: what a model does between "
        "these values they cannot show. Given rows in scores and slices were asked with the values that they have."
    )


def start_rows(options: Mapping[str, object]) -> Codes | None:
    """Where a directed search starts from: codes under ``data``; None where there are none."""
    data = options.get("data")
    return data if isinstance(data, np.ndarray) else None
