"""The result of a search: counts and scores, which sets of columns change a label, minimal pairs, slices, files.

A slice is one value (or range of values) of one or two columns that are not protected. Intervals of slices are exact
and hold for all slices that were looked at together (Clopper-Pearson at level 1 - (1 - level) / slices); p values are
those of Fisher's exact test against the other cases, adjusted by Holm's method. A slice of two columns is shown only if
its interval lies above the rates of both of its halves: else the second column adds nothing that the data show.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded, RunFolderError
from auditor.core.record.rows import ColumnSet, RowPair, Score, Slice, Slices
from auditor.core.shown import csv_text
from auditor.core.types import Sampling
from auditor.measure.intervals import clopper_pearson
from auditor.measure.p_values import holm
from auditor.tables.coded import row_keys
from auditor.tables.columns import LACKING, Codes, Column
from auditor.tables.evaluate import NOT_JUDGED, Evaluator, Judged
from auditor.tables.row_schema import Schema

LATTICE_COLUMNS = 6  # sets double with each further protected column
SHOWN = 20  # exemplary pairs of a run
LATTICE_CASES = 20_000  # finds that the lattice of a directed search is about
PAIRS = 100_000  # finds of which a pair is written
LATE = 10_000  # the same after a limit was reached
RANGES = 4  # slices of a column with more values than FEW
FEW = 12
LEAST = 50  # cases in a slice
LEVEL = 0.95  # of all slices together


@dataclass(frozen=True, kw_only=True, slots=True)
class TabularResult:
    """The outcome of Themis, Aequitas or SG on one model."""

    method: Literal["themis", "aequitas", "sg"]
    mode: str  # ``score`` or ``search``; ``fully``; ``symbolic``
    sampling: Sampling  # only cases that were drawn independently of earlier verdicts ("iid") enter a rate
    options: Mapping[str, object]
    # At least ``generated`` (distinct cases judged), ``discriminatory``, ``off_manifold`` (their label differs only on
    # rows that nobody could be) and ``evaluations`` (rows passed to the model).
    counts: Mapping[str, float]
    scores: tuple[Score, ...] = ()
    minimal_sets: tuple[Score, ...] = ()
    lattice: tuple[ColumnSet, ...] = ()  # smaller sets first
    pairs: tuple[RowPair, ...] = ()
    details: Mapping[str, object] = field(default_factory=dict)  # tables of the method's own
    whole_cases: bool = True  # whether all rows of a case were asked about, whatever the answers were
    finds: Codes | None = None  # discriminatory cases that were drawn or searched for
    given_finds: Codes | None = None  # given rows whose label changes
    # independent draws and whether the label of their case changes, by place (``domain``, ``given``)
    judged: Mapping[str, tuple[Codes, NDArray[np.bool_]]] = field(default_factory=dict)
    status: Literal["complete", "partial"] = "complete"
    status_reason: str = ""
    notes: tuple[str, ...] = ()

    def to_record(self) -> dict[str, object]:
        """The result as plain data (JSON), without the arrays."""
        if self.sampling == "directed" and any(s.name == "causal" for s in self.scores):
            raise ValueError(f"{self.method}: a directed search cannot carry a causal score")
        arrays = ("finds", "given_finds", "judged", "whole_cases")
        return {f.name: plain(getattr(self, f.name)) for f in dataclasses.fields(self) if f.name not in arrays}


def plain(value: object) -> Any:
    """``value`` as JSON holds it, NumPy's scalars and arrays too."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=lambda array: array.tolist())


def lattice(evaluator: Evaluator, judged: Judged) -> tuple[ColumnSet, ...]:
    """How often each set of protected columns changes a label, and how often no smaller set does."""
    schema = evaluator.schema
    p, combos = len(schema.protected_index), schema.combos
    if p > LATTICE_COLUMNS:
        return ()
    flips: dict[tuple[int, ...], NDArray[np.bool_]] = {}  # by set: rows whose label changes when it is varied
    for chosen in (chosen for size in range(1, p + 1) for chosen in combinations(range(p), size)):
        rest = [j for j in range(p) if j not in chosen]
        groups = row_keys(combos[:, rest], schema.cards[schema.protected_index[rest]])
        flips[chosen] = np.zeros(judged.labels.shape, dtype=bool)
        for group in np.unique(groups):
            cells = np.flatnonzero(groups == group)
            flips[chosen][:, cells] = evaluator.each(judged.labels[:, cells], judged.possible[:, cells])
        flips[chosen] &= judged.possible
    rows = int(judged.possible.sum())
    return tuple(
        ColumnSet(
            columns=tuple(schema.protected[j] for j in chosen),
            rows=rows,
            changes=int(changed.sum()),
            minimal=_beyond(flips, chosen, range(1, len(chosen))),
            hidden=_beyond(flips, chosen, [1]) if len(chosen) > 1 else 0,
        )
        for chosen, changed in flips.items()
    )


def _beyond(flips: dict[tuple[int, ...], NDArray[np.bool_]], chosen: tuple[int, ...], sizes: Iterable[int]) -> int:
    """Rows that a set changes and none of its parts of some sizes does."""
    result = flips[chosen].copy()
    for size in sizes:
        for part in combinations(chosen, size):
            result &= ~flips[part]
    return int(result.sum())


class Answers(NamedTuple):
    """Finds, shape (k, d), and what the model said about them as far as it is known."""

    codes: Codes
    judged: Judged

    def first(self, n: int) -> Answers:
        """The first ``n``."""
        return Answers(self.codes[:n], self.judged.part(np.arange(min(n, len(self.codes)))))


def answers_of(evaluator: Evaluator, finds: Codes | None) -> Answers | None:
    """Return the labels of finds without asking a slow or limited model again; None where none are known."""
    late = evaluator.exhausted and not evaluator.slow
    if finds is None or not len(finds):
        return None
    codes = finds[: LATE if late else PAIRS]
    try:
        return Answers(codes, evaluator.recall(codes))
    except BudgetExceeded:
        return None


def with_examples(evaluator: Evaluator, result: TabularResult, answers: Answers | None) -> TabularResult:
    """Return the result with minimal pairs, of given rows first, and after a directed search the lattice of its finds.

    ``answers`` are those of ``result.finds``.
    """
    own = None if result.given_finds is None else answers_of(evaluator, result.given_finds[: 4 * SHOWN])
    pairs = [pair for one in (own, answers) if one is not None for pair in pairs_of(evaluator, one.first(4 * SHOWN))]
    sets = result.lattice
    if result.sampling == "directed" and answers is not None:
        sets = lattice(evaluator, answers.first(LATTICE_CASES).judged)
    return dataclasses.replace(result, pairs=tuple(pairs[:SHOWN]), lattice=sets)


def pairs_of(evaluator: Evaluator, answers: Answers) -> Iterator[RowPair]:
    """Yield one minimal counterfactual pair for each find of which two different answers are known."""
    schema, (codes, judged) = evaluator.schema, answers
    for i, (a, b) in enumerate(witnesses(evaluator, judged).tolist()):
        if a < 0:
            continue
        rows = schema.crossed(codes[i : i + 1], schema.protected_index, schema.combos[[a, b]])
        one, other = schema.row(rows[0]), schema.row(rows[1])
        changed = tuple(name for name in schema.protected if one[name] != other[name])
        names = [evaluator.label_name(int(judged.labels[i, k])) for k in (a, b)]
        yield RowPair(row=one, other=other, changed=changed, label=names[0], other_label=names[1])


def witnesses(evaluator: Evaluator, judged: Judged) -> NDArray[np.intp]:
    """Two possible combinations of each case with different labels that differ in as few columns as possible.

    Shape (k, 2); -1 where no two known answers differ.
    """
    combos = evaluator.schema.combos
    result = np.full((len(judged.labels), 2), -1, dtype=np.intp)
    apart = (combos[:, None, :] != combos[None, :, :]).sum(axis=2)
    pairs = sorted(combinations(range(len(combos)), 2), key=lambda pair: int(apart[pair]))
    left = np.arange(len(result))
    for a, b in pairs:
        if not len(left):
            break
        both = judged.possible[left][:, [a, b]]
        hit = evaluator.differ(judged.labels[left][:, [a, b]], both) & both.all(axis=1)
        result[left[hit]] = a, b
        left = left[~hit]
    return result


def pairs_csv(evaluator: Evaluator, answers: Answers) -> str:
    """One pair of rows per find: both labels, both values of each protected column, then what they share."""
    schema = evaluator.schema
    guarded = [schema.columns[i] for i in schema.protected_index.tolist()]
    shared = [schema.columns[i] for i in schema.free_index.tolist()]
    header = ["pair", "changed", "label A", "label B"]
    header += [f"{c.name} {side}" for c in guarded for side in "AB"] + [c.name for c in shared]
    rows: list[Sequence[object]] = [header]
    chosen = witnesses(evaluator, answers.judged)
    free = answers.codes[:, schema.free_index].tolist()
    names: dict[int, str] = {}
    for i in np.flatnonzero(chosen[:, 0] >= 0).tolist():
        a, b = chosen[i].tolist()
        one, other = schema.combos[a].tolist(), schema.combos[b].tolist()
        changed = [c.name for c, x, y in zip(guarded, one, other, strict=True) if x != y]
        labels = [int(answers.judged.labels[i, k]) for k in (a, b)]
        said = [names.setdefault(label, evaluator.label_name(label)) for label in labels]
        values = [c.raw(code) for c, *two in zip(guarded, one, other, strict=True) for code in two]
        same = [c.raw(code) for c, code in zip(shared, free[i], strict=True)]
        rows.append([len(rows), " + ".join(changed), *said, *values, *same])
    return csv_text(rows)


def save_judged(path: Path, schema: Schema, judged: Mapping[str, tuple[Codes, NDArray[np.bool_]]]) -> None:
    """Write draws and their verdicts, by place: ``<place>_codes`` (n, k), ``<place>_changes`` (n,).

    The codes are of the columns that are not protected. Given rows have their own values of binned columns beside them,
    ``<place>_values``.
    """
    width = np.uint16 if int(schema.cards.max(initial=0)) <= 1 << 16 else np.int32
    arrays: dict[str, NDArray[np.generic]] = {}
    for place, (rows, changes) in judged.items():
        if (rows >= schema.cards).any():
            bins = [(j, c) for j, c in enumerate(schema.columns) if c.kind == "binned"]
            values = [np.array(column.all_values(), dtype=float)[rows[:, j]] for j, column in bins]
            arrays[f"{place}_values"] = np.stack(values, axis=1)
        arrays[f"{place}_codes"] = schema.binned(rows)[:, schema.free_index].astype(width)
        arrays[f"{place}_changes"] = changes
    np.savez_compressed(path, allow_pickle=False, **arrays)


def save_votes(path: Path, evaluator: Evaluator, answers: Answers) -> None:
    """Write finds and how many combinations got which label: ``codes`` (k, d), ``votes`` (k, l), ``labels`` (l,)."""
    judged = answers.judged
    labels = [x for x in np.unique(judged.labels[judged.possible]).tolist() if x != NOT_JUDGED]
    names = np.array([evaluator.label_name(x) for x in labels], dtype=np.str_)
    np.savez_compressed(path, codes=answers.codes, votes=judged.votes(labels).astype(np.int32), labels=names)


def arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """The arrays of an .npz file by name; none where there is no file."""
    import zipfile
    import zlib

    if not path.is_file():
        return {}
    try:
        if zipfile.is_zipfile(path):  # numpy takes other files for pickles
            with np.load(path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        pass
    raise RunFolderError(f"{path} cannot be read: it is broken or was changed. See: audit verify {path.parent}")


class _Cell(NamedTuple):
    columns: tuple[int, ...]
    values: tuple[int, ...]
    n: int
    changes: int


def slices(
    schema: Schema, codes: Codes, changed: NDArray[np.bool_], *, population: str, show: int = 10, evaluations: int = 0
) -> Slices:
    """Find the slices in which labels change most often."""
    total, hits = len(codes), int(changed.sum())
    columns = [j for j in schema.free_index.tolist() if schema.columns[j].codes > 1]
    parts, names = _parts(schema, codes, columns)
    cells = [cell for size in (1, 2) for cell in _cells(parts, columns, changed, size)]
    single = {(c.columns[0], c.values[0]): c.changes / c.n for c in cells if len(c.columns) == 1}
    shown = []
    for cell, p in zip(cells, holm(_p_values(cells, total, hits)), strict=True):
        if p is None or p > 1 - LEVEL:
            continue
        estimate = clopper_pearson(cell.changes, cell.n, 1 - (1 - LEVEL) / len(cells))
        halves = [single.get(half, 0.0) for half in zip(cell.columns, cell.values, strict=True)]
        if len(halves) == 2 and estimate.low <= max(halves):
            continue
        others = total - cell.n
        where = tuple((schema.names[j], names[j][v]) for j, v in zip(cell.columns, cell.values, strict=True))
        rest = (hits - cell.changes) / others if others else 0.0
        shown.append(Slice(where=where, n=cell.n, changes=cell.changes, estimate=estimate, rest=rest, p=p))
    shown.sort(key=lambda s: (-s.estimate.low, s.where))
    return Slices(
        population=population,
        n=total,
        changes=hits,
        tested=len(cells),
        level=LEVEL,
        shown=tuple(shown[:show]),
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
    parts: dict[int, NDArray[np.int64]], columns: list[int], changed: NDArray[np.bool_], size: int
) -> list[_Cell]:
    result = []
    for chosen in combinations(columns, size):
        widths = [int(parts[j].max()) + 1 for j in chosen]
        key = np.ravel_multi_index([parts[j] for j in chosen], widths)
        count = np.bincount(key)
        hits = np.bincount(key, weights=changed)
        for at in np.flatnonzero(count >= LEAST).tolist():
            values = tuple(int(v) for v in np.unravel_index(at, widths))
            result.append(_Cell(chosen, values, int(count[at]), int(hits[at])))
    return result


def _p_values(cells: list[_Cell], total: int, hits: int) -> list[float]:
    """Fisher's exact test, one-sided: as many changes or more by chance, given all margins."""
    from scipy.stats import hypergeom

    k, n = (np.array([getattr(c, name) for c in cells]) for name in ("changes", "n"))
    return [min(1.0, float(p)) for p in hypergeom.sf(k - 1, total, hits, n)] if hits else [1.0] * len(cells)
