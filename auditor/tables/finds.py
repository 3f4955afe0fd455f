"""The result of a search: counts and scores, which sets of columns change a label, minimal pairs, files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded, RunFolderError
from auditor.core.record.rows import ColumnSet, GroupRate, RowPair, Score, ScoreDetail
from auditor.core.shown import csv_text, plural, verb
from auditor.core.types import Estimate, Sampling
from auditor.tables.columns import Codes, Mask
from auditor.tables.evaluate import NOT_JUDGED, Evaluator, Labels
from auditor.tables.row_schema import add_to, row_keys

LATTICE_COLUMNS = 6  # sets double with each further protected column
SHOWN = 20  # exemplary pairs of a run
LATTICE_CASES = 20_000  # finds that the lattice of a directed search is about
PAIRS = 100_000  # finds of which a pair is written
LATE = 10_000  # the same after a limit was reached
Interval = Callable[[int, int, float], tuple[float, float]]
Counts = NDArray[np.int64]
LEAST_OF_GROUP = 30  # rows below which the share of a group says too little to be an extreme
KEEP_FINDS = 10_000  # discriminatory cases kept for pairs and export
KEEP_FIRST = 4_096  # first draws kept for the lattice


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
    status_reason: str = ""  # why it was cut short
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> Literal["complete", "partial"]:
        """Whether a limit cut it short."""
        return "partial" if self.status_reason else "complete"

    def to_record(self) -> dict[str, object]:
        """The result as plain data (JSON), without the arrays."""
        arrays = ("finds", "given_finds", "whole_cases")
        names = ["status", *(f.name for f in dataclasses.fields(self) if f.name not in arrays)]
        return {name: plain(getattr(self, name)) for name in names}


def plain(value: object) -> Any:
    """``value`` as JSON holds it, NumPy's scalars and arrays too."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=lambda array: array.tolist())


def lattice(evaluator: Evaluator, labels: Labels, possible: Mask) -> tuple[ColumnSet, ...]:
    """How often each set of protected columns changes a label of a grid, and how often no smaller set does."""
    schema = evaluator.schema
    p, combos = len(schema.protected_index), schema.combos
    if p > LATTICE_COLUMNS:
        return ()
    flips: dict[tuple[int, ...], NDArray[np.bool_]] = {}  # by set: rows whose label changes when it is varied
    for chosen in (chosen for size in range(1, p + 1) for chosen in combinations(range(p), size)):
        rest = [j for j in range(p) if j not in chosen]
        groups = row_keys(combos[:, rest], schema.cards[schema.protected_index[rest]])
        flips[chosen] = np.zeros(labels.shape, dtype=bool)
        for group in np.unique(groups):
            cells = np.flatnonzero(groups == group)
            flips[chosen][:, cells] = evaluator.each(labels[:, cells], possible[:, cells])
        flips[chosen] &= possible
    rows = int(possible.sum())
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
    labels: Labels
    possible: Mask

    def first(self, n: int) -> Answers:
        """The first ``n``."""
        return Answers(self.codes[:n], self.labels[:n], self.possible[:n])

    def votes(self, labels: Iterable[int]) -> NDArray[np.int64]:
        """Count the possible combinations of each find that got each of ``labels``, shape (k, labels)."""
        return np.stack([((self.labels == label) & self.possible).sum(axis=1) for label in labels], axis=1)


def answers_of(evaluator: Evaluator, finds: Codes | None) -> Answers | None:
    """Return the labels of finds without asking a slow or limited model again; None where none are known."""
    late = evaluator.remaining == 0 and not evaluator.slow
    if finds is None or not len(finds):
        return None
    codes = finds[: LATE if late else PAIRS]
    try:
        judged = evaluator.recall(codes)
        return Answers(codes, judged.labels, judged.possible)
    except BudgetExceeded:
        return None


class Known(NamedTuple):
    """What the model said about finds: given rows, as they are, and cases of the method."""

    of_rows: Answers | None
    of_method: Answers | None

    def pairs(self, evaluator: Evaluator, most: int = PAIRS) -> Iterator[RowPair]:
        """Yield a pair for each find, at most so many of each kind, given rows first."""
        return (pair for one in self if one is not None for pair in pairs_of(evaluator, one.first(most)))


def with_examples(evaluator: Evaluator, result: TabularResult) -> tuple[TabularResult, Known]:
    """Add minimal pairs, and after a directed search the lattice of its finds; also what is known of all finds."""
    known = Known(answers_of(evaluator, result.given_finds), answers_of(evaluator, result.finds))
    sets = result.lattice
    if result.sampling == "directed" and known.of_method is not None:
        first = known.of_method.first(LATTICE_CASES)
        sets = lattice(evaluator, first.labels, first.possible)
    pairs = tuple(known.pairs(evaluator, 4 * SHOWN))[:SHOWN]
    return dataclasses.replace(result, pairs=pairs, lattice=sets), known


def pairs_of(evaluator: Evaluator, answers: Answers) -> Iterator[RowPair]:
    """Yield one minimal counterfactual pair for each find of which two different answers are known."""
    schema, chosen = evaluator.schema, witnesses(evaluator, answers)
    at = np.flatnonzero(chosen[:, 0] >= 0)
    sides = [schema.put(answers.codes[at], schema.protected_index, schema.combos[chosen[at, k]]) for k in (0, 1)]
    labels = [answers.labels[at, chosen[at, k]].tolist() for k in (0, 1)]
    for a, b, *said in zip(*sides, *labels, strict=True):
        one, other = schema.row(a), schema.row(b)
        names = [evaluator.label_name(label) for label in said]
        changed = tuple(name for name in schema.protected if one[name] != other[name])
        yield RowPair(row=one, other=other, changed=changed, label=names[0], other_label=names[1])


def witnesses(evaluator: Evaluator, answers: Answers) -> NDArray[np.intp]:
    """Return two combinations per case, (k, 2), with different labels and few changed columns; -1 without any."""
    combos = evaluator.schema.combos
    result = np.full((len(answers.codes), 2), -1, dtype=np.intp)
    apart = (combos[:, None, :] != combos[None, :, :]).sum(axis=2)
    pairs = sorted(combinations(range(len(combos)), 2), key=lambda pair: int(apart[pair]))
    left = np.arange(len(result))
    for a, b in pairs:
        if not len(left):
            break
        both = answers.possible[left][:, [a, b]]
        hit = evaluator.differ(answers.labels[left][:, [a, b]], both) & both.all(axis=1)
        result[left[hit]] = a, b
        left = left[~hit]
    return result


def pairs_csv(evaluator: Evaluator, known: Known) -> str:
    """One pair of rows per find: both labels, both values of each protected column, then what they share."""
    protected, names = evaluator.schema.protected, evaluator.schema.names
    shared = [name for name in names if name not in protected]
    rows: list[Sequence[object]] = [
        ["pair", "changed", "label A", "label B", *(f"{name} {side}" for name in protected for side in "AB"), *shared]
    ]
    for pair in known.pairs(evaluator):
        values = [side[name] for name in protected for side in (pair.row, pair.other)]
        same = [pair.row[name] for name in shared]
        rows.append([len(rows), " + ".join(pair.changed), pair.label, pair.other_label, *values, *same])
    return csv_text(rows)


def save_votes(path: Path, evaluator: Evaluator, answers: Answers) -> None:
    """Write finds and how many combinations got which label: ``codes`` (k, d), ``votes`` (k, l), ``labels`` (l,)."""
    labels = [x for x in np.unique(answers.labels[answers.possible]).tolist() if x != NOT_JUDGED]
    names = np.array([evaluator.label_name(x) for x in labels], dtype=np.str_)
    np.savez_compressed(path, codes=answers.codes, votes=answers.votes(labels).astype(np.int32), labels=names)


def arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """The arrays of an .npz file by name."""
    import zipfile
    import zlib

    try:
        if zipfile.is_zipfile(path):  # numpy takes other files for pickles
            with np.load(path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        pass
    raise RunFolderError(f"{path} cannot be read: it is broken or was changed. See: audit verify {path.parent}")


# -- counts behind group and causal scores, in constant memory, and what they say -----------------------------


class Tally:
    """Counts of one set of columns over independent rows."""

    def __init__(self, evaluator: Evaluator, index: NDArray[np.intp]) -> None:
        schema = evaluator.schema
        self.schema, self.evaluator, self.index = schema, evaluator, index
        self.combos = schema.combos_of(index)
        self.draws = self.rows = self.flips = self.off = self.impossible = self.flipped_draws = 0
        self._label_rows: dict[int, Counts] = {}  # label → rows with it, per combination
        self.group_rows = np.zeros(len(self.combos), dtype=np.int64)
        self._finds: list[Codes] = [np.empty((0, schema.d), dtype=np.int32)]
        self._seen = set[object]()
        self._first: list[tuple[Labels, Mask]] = []
        self._first_left = KEEP_FIRST

    def add(self, rows: Codes, *, weigh: str = "row") -> None:
        """Judge independent rows and count them.

        By ``row`` a draw counts once, by its own cell, and groups are read off every cell (common random numbers). By
        ``cells`` every possible cell counts (enumeration). By ``given`` groups are read off the rows' own cells.
        """
        evaluator, codes = self.evaluator, self.schema.binned(rows)
        labels = evaluator.grid(rows, (self.index, self.combos))
        possible = evaluator.possible(rows, (self.index, self.combos))
        if evaluator.not_judged:
            # Without rows that got no label, and without cases that this leaves undecided.
            judged = possible & (labels != NOT_JUDGED)
            undecided = (judged != possible).any(axis=1) & ~evaluator.differ(labels, possible)
            possible = np.asarray(judged & ~undecided[:, None])
        differ = evaluator.differ(labels, possible)
        cells = np.full(labels.shape, weigh == "cells")  # that count
        if weigh != "cells":
            own = row_keys(codes[:, self.index], self.schema.cards[self.index]).astype(np.intp)
            cells[np.arange(len(labels)), own] = True
        real = cells & possible
        mine = evaluator.each(labels, possible) & real
        self.rows += int(real.sum())
        self.flips += int(mine.sum())
        self.flipped_draws += int(mine.any(axis=1).sum())
        self.off += int((evaluator.differ(labels) & ~differ).sum())
        self.impossible += int((cells & ~possible).sum())
        self._count_groups(labels, real if weigh == "given" else possible)
        self.draws += len(codes)
        self._keep(rows, labels, possible, differ)

    def _count_groups(self, labels: Labels, cells: Mask) -> None:
        """Count the labels of groups in some cells."""
        self.group_rows += cells.sum(axis=0)
        low, high = int(labels.min()), int(labels.max())
        values: Sequence[int] = range(low, high + 1) if high - low <= 16 else np.unique(labels).tolist()[:64]
        for label in values:
            counts = np.count_nonzero((labels == label) & cells, axis=0)
            if counts.any():
                self._label_rows[label] = self._label_rows.get(label, 0) + counts

    def _keep(self, rows: Codes, labels: Labels, possible: Mask, differ: Mask) -> None:
        if k := min(self._first_left, len(labels)):
            self._first.append((labels[:k].copy(), possible[:k].copy()))
            self._first_left -= k
        if len(self._seen) < KEEP_FINDS and differ.any():
            finds = rows[differ][:KEEP_FINDS]
            rest = np.setdiff1d(np.arange(self.schema.d), self.index)
            self._finds.append(finds[add_to(self._seen, row_keys(finds[:, rest], self.schema.sizes[rest]))])

    @property
    def lattice(self) -> tuple[ColumnSet, ...]:
        """The lattice of the first draws, at most `KEEP_FIRST`; empty before any."""
        first = [np.concatenate(parts) for parts in zip(*self._first, strict=True)]
        return lattice(self.evaluator, *first) if first else ()

    @property
    def finds(self) -> Codes:
        """Distinct discriminatory cases, the first of them at most, shape (k, d)."""
        return np.concatenate(self._finds)[:KEEP_FINDS]

    def causal(self, level: float, interval: Interval | None, method: str) -> Estimate | None:
        """Share of rows whose label changes when the columns change; ``interval`` None means exact."""
        if not self.rows:
            return None
        value = self.flips / self.rows
        limits = (value, value) if interval is None else interval(self.flips, self.rows, level)
        return estimate_of(value, limits, level, self.rows, method, skipped=self.impossible)

    def no_group(self) -> str:
        """Why there is no group score; empty where only rows are lacking."""
        if self.evaluator.distance.numeric:
            return "it counts a label, and the model returns numbers"
        return counted_label(self.evaluator, self._label_rows)[1] if self._label_rows else ""

    def group(
        self, level: float, interval: Interval | None, method: str, *, note: str = ""
    ) -> tuple[Estimate, ScoreDetail] | None:
        """Return the largest minus the smallest share of favourable labels over the groups.

        Intervals hold for all groups together (Bonferroni); the upper end uses Theorem 4.3 on half of the error.
        """
        if self.evaluator.distance.numeric:
            return None
        label, _ = counted_label(self.evaluator, self._label_rows)
        wanted = self.schema.favourable
        shared = "own rows" not in method  # by all groups, so that the causal score bounds that of groups
        seen = np.flatnonzero(self.group_rows >= (1 if shared else LEAST_OF_GROUP))
        if label is None or len(seen) < 2:
            return None
        good = self._label_rows.get(label, np.zeros(len(self.combos), dtype=np.int64))[seen]
        rows = self.group_rows[seen]
        rates = good / rows
        value = low = high = float(rates.max() - rates.min())
        notes = [note] if note else []
        if interval is not None:
            strict = 1 - (1 - level) / 2 / len(seen)
            limits = [interval(int(g), int(r), strict) for g, r in zip(good, rows, strict=True)]
            lows, highs = np.array(limits).T
            low = max(0.0, float(lows.max() - highs.min()))
            high = min(1.0, float(highs.max() - lows.min()))
            if shared and not self.schema.constraints:
                bound = interval(self.flips, self.rows, 1 - (1 - level) / 2)[1] if self.rows else 1.0
                high = max(low, min(high, bound))
            low, high = min(low, value), max(high, value)
        if small := int(np.count_nonzero(self.group_rows)) - len(seen):
            are = verb(small, "is", "are")
            notes.append(f"{plural(small, 'group')} of fewer than {LEAST_OF_GROUP} rows {are} left out")
        estimate = estimate_of(value, (low, high), level, int(rows.min()), method, note="; ".join(notes))

        def extreme(at: int) -> GroupRate:
            values = zip(self.index.tolist(), self.combos[seen[at]].tolist(), strict=True)
            group = {self.schema.names[i]: self.schema.columns[i].raw(c) for i, c in values}
            return GroupRate(group=group, rate=float(rates[at]), n=int(rows[at]))

        return estimate, ScoreDetail(
            label=self.evaluator.label_name(label) if wanted is None else str(wanted),
            favourable=wanted is not None,
            largest=extreme(int(rates.argmax())),
            smallest=extreme(int(rates.argmin())),
        )

    def scores(
        self, population: str, level: float, interval: Interval | None, method: str, *, prefix: str = ""
    ) -> tuple[Score, ...]:
        """Causal and group score, those of them that can be computed."""
        columns = tuple(self.schema.names[int(i)] for i in self.index)
        scores = {"causal": (self.causal(level, interval, method), ScoreDetail())}
        note = "largest minus smallest rate over several groups leans upwards in small samples"
        if (group := self.group(level, interval, method, note="" if interval is None else note)) is not None:
            scores["group"] = group
        return tuple(
            Score(name=prefix + name, columns=columns, estimate=estimate, population=population, detail=detail)
            for name, (estimate, detail) in scores.items()
            if estimate is not None
        )


def estimate_of(
    value: float, limits: tuple[float, float], level: float, n: int, method: str, *, skipped: int = 0, note: str = ""
) -> Estimate:
    """An estimate with its limits."""
    low, high = limits
    return Estimate(value=value, low=low, high=high, level=level, n=n, n_skipped=skipped, method=method, note=note)


def counted_label(evaluator: Evaluator, labels: Collection[int]) -> tuple[int | None, str]:
    """Return the label that a group score counts: the favourable one, or the one of two that sorts last.

    Where there is none, the second value says why, and what to do.
    """
    names = {code: evaluator.label_name(code) for code in labels}
    wanted = evaluator.schema.favourable
    if wanted is not None:
        code = evaluator.label_code(wanted)
        if code in names or len(names) < 2:
            return code, ""
    elif 0 < len(names) <= 2:
        return max(names, key=lambda code: _sorted_as(names[code])), ""
    listed = ", ".join(sorted(names.values(), key=_sorted_as)[:12])
    if wanted is None:
        return None, f"the model returned {len(names)} labels ({listed}); say which one is good: --favourable LABEL"
    return None, f"the model never returned {wanted!r}, which is called favourable (--favourable); its labels: {listed}"


def _sorted_as(name: str) -> tuple[bool, float, str]:
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name
