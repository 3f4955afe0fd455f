"""Slices: subgroups of independently drawn cases in which labels change most often.

A slice is one value (or range of values) of one or two columns that are not protected. Intervals are exact and hold
for all slices that were looked at together (Clopper-Pearson at level 1 - (1 - level) / slices); p values are those of
Fisher's exact test against the other cases, adjusted by Holm's method. A slice of two columns is shown only if its
interval lies above the rates of both of its halves: else the second column adds nothing that the data show.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from auditor.core.types import Estimate
from auditor.measure.intervals import clopper_pearson
from auditor.measure.multiplicity import holm
from auditor.tables.column import LACKING, Codes, Column
from auditor.tables.schema import Schema

RANGES = 4  # of columns with more values than FEW
FEW = 12
LEAST = 50  # cases in a slice


@dataclass(frozen=True, kw_only=True, slots=True)
class Slice:
    """One subgroup."""

    where: tuple[tuple[str, str], ...]  # what its cases have in common
    n: int  # its cases, and those whose label changes
    changes: int
    estimate: Estimate  # their share; the interval holds for all slices together
    rest: float  # the share among all other cases
    p: float  # adjusted, of "not above the other cases"


@dataclass(frozen=True, kw_only=True, slots=True)
class Slices:
    """The slices with the highest lower limits."""

    population: str  # which cases: ``given rows`` or ``domain (uniform)``
    n: int  # all cases, and those whose label changes
    changes: int
    tested: int  # slices that were looked at
    level: float  # of all intervals together
    shown: tuple[Slice, ...]
    evaluations: int = 0  # rows that the model was asked about for this


@dataclass(frozen=True, slots=True)
class _Cell:
    columns: tuple[int, ...]
    values: tuple[int, ...]
    n: int
    changes: int


def slices(
    schema: Schema,
    codes: Codes,
    changed: NDArray[np.bool_],
    *,
    population: str,
    show: int = 10,
    level: float = 0.95,
    least: int = LEAST,
    evaluations: int = 0,
) -> Slices:
    """Find the slices in which labels change most often."""
    total, hits = len(codes), int(changed.sum())
    columns = [j for j in schema.free_index.tolist() if schema.columns[j].codes > 1]
    parts, names = _parts(schema, codes, columns)
    cells = [cell for size in (1, 2) for cell in _cells(parts, columns, changed, size, least)]
    empty = Slices(population=population, n=total, changes=hits, tested=len(cells), level=level, shown=())
    if not cells or not hits:
        return empty
    each = 1 - (1 - level) / len(cells)
    adjusted = holm(_p_values(cells, total, hits))
    single = {(c.columns[0], c.values[0]): c.changes / c.n for c in cells if len(c.columns) == 1}
    found = []
    for cell, p in zip(cells, adjusted, strict=True):
        if p is None or p > 1 - level:
            continue
        estimate = clopper_pearson(cell.changes, cell.n, each)
        halves = [single.get(half, 0.0) for half in zip(cell.columns, cell.values, strict=True)]
        if len(halves) == 2 and estimate.low <= max(halves):
            continue
        others = total - cell.n
        found.append(
            Slice(
                where=tuple((schema.names[j], names[j][v]) for j, v in zip(cell.columns, cell.values, strict=True)),
                n=cell.n,
                changes=cell.changes,
                estimate=estimate,
                rest=(hits - cell.changes) / others if others else 0.0,
                p=p,
            )
        )
    found.sort(key=lambda s: (-s.estimate.low, s.where))
    return Slices(
        population=population,
        n=total,
        changes=hits,
        tested=len(cells),
        level=level,
        shown=tuple(found[:show]),
        evaluations=evaluations,
    )


def _parts(
    schema: Schema, codes: Codes, columns: list[int]
) -> tuple[dict[int, NDArray[np.int64]], dict[int, list[str]]]:
    """For each column the part of every case, and how parts are written."""
    parts: dict[int, NDArray[np.int64]] = {}
    names: dict[int, list[str]] = {}
    for j in columns:
        column, values = schema.columns[j], codes[:, j].astype(np.int64)
        if column.codes <= FEW or not column.ordered:
            parts[j], names[j] = values, [_range(column, k, k) for k in range(column.codes)]
            continue
        cuts = np.unique(np.quantile(values, np.linspace(0, 1, RANGES + 1)[1:-1], method="lower"))
        cuts = cuts[cuts > values.min()]
        edges = [int(values.min()), *cuts.astype(int).tolist(), int(values.max()) + 1]
        parts[j] = np.searchsorted(cuts, values, side="right")
        names[j] = [_range(column, a, b - 1) for a, b in pairwise(edges)]
    return parts, names


def _range(column: Column, low: int, high: int) -> str:
    if column.may_lack and high == column.codes - 1:
        return LACKING if low == high else f"{_range(column, low, high - 1)} or {LACKING}"
    if column.kind == "binned" and column.edges:
        if low == 0:
            return f"below {column.edges[high]:g}" if high < len(column.edges) else "any"
        start = f"{column.edges[low - 1]:g}"
        return f"{start} or more" if high == len(column.edges) else f"{start} to below {column.edges[high]:g}"
    return str(column.raw(low)) if low == high else f"{column.raw(low)} to {column.raw(high)}"


def _cells(
    parts: dict[int, NDArray[np.int64]], columns: list[int], changed: NDArray[np.bool_], size: int, least: int
) -> list[_Cell]:
    result = []
    for chosen in combinations(columns, size):
        widths = [int(parts[j].max()) + 1 for j in chosen]
        key = np.ravel_multi_index([parts[j] for j in chosen], widths)
        count = np.bincount(key)
        hits = np.bincount(key, weights=changed)
        for at in np.flatnonzero(count >= least).tolist():
            values = tuple(int(v) for v in np.unravel_index(at, widths))
            result.append(_Cell(chosen, values, int(count[at]), int(hits[at])))
    return result


def _p_values(cells: list[_Cell], total: int, hits: int) -> list[float]:
    """Fisher's exact test, one-sided: as many changes or more by chance, given all margins."""
    from scipy.stats import hypergeom

    n = np.array([c.n for c in cells])
    k = np.array([c.changes for c in cells])
    return [min(1.0, float(p)) for p in hypergeom.sf(k - 1, total, hits, n)]
