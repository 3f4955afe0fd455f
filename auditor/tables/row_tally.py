"""Counts behind group and causal scores, in constant memory, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.core.record.rows import ColumnSet, GroupRate, Score, ScoreDetail
from auditor.core.shown import plural, verb
from auditor.core.types import Estimate
from auditor.tables.columns import Codes, Mask
from auditor.tables.evaluate import NOT_JUDGED, Evaluator, Labels
from auditor.tables.finds import lattice
from auditor.tables.row_schema import add_to, row_keys

Interval = Callable[[int, int, float], tuple[float, float]]
Counts = NDArray[np.int64]
LEAST_OF_GROUP = 30  # rows below which the share of a group says too little to be an extreme
KEEP_FINDS = 10_000  # discriminatory cases kept for pairs and export
KEEP_FIRST = 4_096  # first draws kept for the lattice


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
        if not self._label_rows or counted_label(self.evaluator, self._label_rows) is not None:
            return ""
        return uncounted(self.evaluator, self._label_rows)

    def group(
        self, level: float, interval: Interval | None, method: str, *, note: str = ""
    ) -> tuple[Estimate, ScoreDetail] | None:
        """Return the largest minus the smallest share of favourable labels over the groups.

        Intervals hold for all groups together (Bonferroni); the upper end uses Theorem 4.3 on half of the error.
        """
        if self.evaluator.distance.numeric:
            return None
        label = counted_label(self.evaluator, self._label_rows)
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


def counted_label(evaluator: Evaluator, labels: Collection[int]) -> int | None:
    """Return the label that a group score counts: the favourable one, or the one of two that sorts last; else None."""
    wanted = evaluator.schema.favourable
    if wanted is None:
        return max(labels, key=lambda code: _sorted_as(evaluator.label_name(code))) if 0 < len(labels) <= 2 else None
    code = evaluator.label_code(wanted)
    return code if code in labels or len(labels) < 2 else None


def uncounted(evaluator: Evaluator, labels: Collection[int]) -> str:
    """Why `counted_label` has none, and what to do."""
    names = ", ".join(sorted((evaluator.label_name(code) for code in labels), key=_sorted_as)[:12])
    wanted = evaluator.schema.favourable
    if wanted is None:
        return f"the model returned {len(labels)} labels ({names}); say which one is good: --favourable LABEL"
    return f"the model never returned {wanted!r}, which is called favourable (--favourable); its labels: {names}"


def _sorted_as(name: str) -> tuple[bool, float, str]:
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name
