"""Counts behind group and causal scores, in constant memory, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.core.counting import plural, verb
from auditor.core.record.rows import GroupRate, Score, ScoreDetail
from auditor.core.types import Estimate
from auditor.tables.coded import Rows, Seen, binned, joined, row_keys, within
from auditor.tables.columns import Codes
from auditor.tables.evaluate import NOT_JUDGED, Evaluator, Labels
from auditor.tables.schema import Schema

Interval = Callable[[int, int, float], tuple[float, float]]
LEAST_OF_GROUP = 30  # rows below which the share of a group says too little to be an extreme
KEEP_FOUND = 10_000  # discriminatory cases kept for pairs and export
KEEP_FIRST = 4_096  # first draws kept for the lattice
KEEP_JUDGED = 100_000  # first draws whose verdicts are kept, to be laid beside those of another run
Mask = NDArray[np.bool_]


class Tally:
    """Counts of one set of columns over independent rows."""

    def __init__(self, schema: Schema, evaluator: Evaluator, index: NDArray[np.intp], *, keep: int = 0) -> None:
        self._left, self._judged = keep, list[tuple[Rows, Mask]]()
        self.schema, self.evaluator, self.index = schema, evaluator, index
        self.combos = schema.combos_of(index)
        self.draws = self.rows = self.flips = self.off = self.impossible = self.flipped_draws = 0
        self._label_rows: dict[int, NDArray[np.int64]] = {}  # label → rows with it, per combination
        self.group_rows = np.zeros(len(self.combos), dtype=np.int64)
        self._counted = self.group_rows.copy()
        self._found: list[Rows] = []
        self._seen = Seen()
        self._first: list[tuple[Codes, Labels, Mask]] = []
        self._first_left = KEEP_FIRST

    def add(self, rows: Rows, *, weigh: str = "row") -> None:
        """Judge rows and count them.

        Parameters
        ----------
        rows : array of int32, shape (n, d), or Given
            Independent rows.
        weigh : {"row", "cells", "given"}
            ``row``: a draw counts once, by its own cell; groups are read off every cell (common random
            numbers). ``cells``: every possible cell of the case counts (enumeration). ``given``: groups are
            read off the rows' own cells only (apparent scores).
        """
        codes = binned(rows)
        labels = self.evaluator.grid(rows, self.index, self.combos)
        constrained = bool(self.schema.constraints) or self.evaluator.not_judged > 0
        possible = self.evaluator.possible(rows, self.index, self.combos) if constrained else None
        if self.evaluator.not_judged and possible is not None:
            possible = self._known(labels, possible)
        own = None
        if weigh != "cells" and (constrained or weigh == "given" or self.evaluator.distance.kind != "exact"):
            own = row_keys(codes[:, self.index], self.schema.cards[self.index])
        differ = self.evaluator.differ(labels, possible)
        changed = self._count_rows(labels, possible, own, differ, weigh)
        self._count_groups(labels, possible, own if weigh == "given" else None)
        self.draws += len(codes)
        self._keep(rows, codes, labels, possible, differ)
        if self._left:
            clear = np.ones(len(codes), bool) if possible is None else possible.any(axis=1)
            part = np.flatnonzero(clear)[: self._left]
            self._left -= len(part)
            self._judged.append((rows[part], changed[part]))

    def _known(self, labels: Labels, possible: Mask) -> Mask:
        """Without rows that got no label, and without cases that this leaves undecided."""
        judged = possible & (labels != NOT_JUDGED)
        undecided = (judged != possible).any(axis=1) & ~self.evaluator.differ(labels, possible)
        return np.asarray(judged & ~undecided[:, None])

    def _count_rows(
        self, labels: Labels, possible: Mask | None, own: NDArray[np.generic] | None, differ: Mask, weigh: str
    ) -> Mask:
        """Count rows and changes; whether the label of each draw changes, shape (n,)."""
        n, m = labels.shape
        exact = self.evaluator.distance.kind == "exact"
        if possible is not None:
            self.off += int((self.evaluator.differ(labels) & ~differ).sum())
        if weigh == "cells":
            self.rows += n * m if possible is None else int(possible.sum())
            self.impossible += 0 if possible is None else int((~possible).sum())
            quick = exact and possible is None
            self.flips += int(differ.sum()) * m if quick else int(self.evaluator.each(labels, possible).sum())
            self.flipped_draws += int(differ.sum())
            return differ
        mine = differ
        if not exact:  # the row's own label counts, and under a threshold it may lie between two that differ
            assert own is not None
            mine = self.evaluator.each(labels, possible)[np.arange(n), own]
        if possible is not None:
            assert own is not None
            real = possible[np.arange(n), own]
            self.impossible += int((~real).sum())
            n, mine = int(real.sum()), mine & real
        self.rows += n
        self.flips += int(mine.sum())
        self.flipped_draws += int(mine.sum())
        return mine if not exact else differ

    def _count_groups(self, labels: Labels, possible: Mask | None, own: NDArray[np.generic] | None) -> None:
        n, m = labels.shape
        if own is not None:
            real = np.ones(n, dtype=bool) if possible is None else possible[np.arange(n), own]
            mine = labels[np.arange(n), own][real]
            self.group_rows += np.bincount(own[real], minlength=m)
            self._counted = self.group_rows.copy()
            for label in np.unique(mine):
                self._of(int(label), m)[:] += np.bincount(own[real][mine == label], minlength=m)
            return
        self.group_rows += n if possible is None else possible.sum(axis=0)
        low, high = (int(labels.min()), int(labels.max())) if labels.size else (0, -1)
        values: Sequence[int] = range(low, high + 1) if high - low <= 16 else np.unique(labels).tolist()[:64]
        left = self.group_rows - self._counted  # what no earlier label of this batch explains
        for k, label in enumerate(values):
            if k + 1 < len(values) or len(values) > 17:
                same = labels == label
                counts = np.array(
                    [
                        np.count_nonzero(same[:, j] if possible is None else same[:, j] & possible[:, j])
                        for j in range(m)
                    ]
                )
                left = left - counts
            else:
                counts = left
            if counts.any():
                self._of(label, m)[:] += counts
        self._counted = self.group_rows.copy()

    def _of(self, label: int, m: int) -> NDArray[np.int64]:
        return self._label_rows.setdefault(label, np.zeros(m, dtype=np.int64))

    def _keep(self, rows: Rows, codes: Codes, labels: Labels, possible: Mask | None, differ: Mask) -> None:
        if n := min(self._first_left, len(codes)):
            whole = np.ones(labels[:n].shape, bool) if possible is None else possible[:n].copy()
            self._first.append((codes[:n].copy(), labels[:n].copy(), whole))
            self._first_left -= n
        if len(self._seen) < KEEP_FOUND and differ.any():
            found = rows[differ][:KEEP_FOUND]
            rest = np.setdiff1d(np.arange(self.schema.d), self.index)
            schema, plain = within(self.schema, found)
            new = self._seen.add(row_keys(plain[:, rest], schema.cards[rest]))
            self._found.append(found[new])

    @property
    def first(self) -> tuple[Codes, Labels, Mask] | None:
        """The first draws, at most `KEEP_FIRST`, with labels and possible rows; None before any."""
        if not self._first:
            return None
        codes, labels, possible = zip(*self._first, strict=True)
        return np.concatenate(codes), np.concatenate(labels), np.concatenate(possible)

    @property
    def judged(self) -> tuple[Rows, Mask]:
        """The first draws that have a possible row, and whether the label of their case changes."""
        if not self._judged:
            return np.empty((0, self.schema.d), dtype=np.int32), np.empty(0, dtype=bool)
        return joined([c for c, _ in self._judged]), np.concatenate([d for _, d in self._judged])

    @property
    def found(self) -> Rows:
        """Distinct discriminatory cases, the first of them at most, shape (k, d)."""
        if not self._found:
            return np.empty((0, self.schema.d), dtype=np.int32)
        return joined(self._found)[:KEEP_FOUND]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that are varied."""
        return tuple(self.schema.names[int(i)] for i in self.index)

    def causal(self, level: float, interval: Interval | None, method: str, *, note: str = "") -> Estimate | None:
        """Share of rows whose label changes when the columns change; ``interval`` None means exact."""
        if not self.rows:
            return None
        value = self.flips / self.rows
        low, high = (value, value) if interval is None else interval(self.flips, self.rows, level)
        return Estimate(
            value=value,
            low=low,
            high=high,
            level=level,
            n=self.rows,
            n_skipped=self.impossible,
            method=method,
            note=note,
        )

    def no_group(self) -> str:
        """Why there is no group score; empty where only rows are lacking."""
        if self.evaluator.distance.kind == "absolute":
            return "it counts a label, and the model returns numbers"
        if not self._label_rows or counted_label(self.evaluator, self._label_rows) is not None:
            return ""
        return uncounted(self.evaluator, self._label_rows)

    def group(
        self, level: float, interval: Interval | None, method: str, *, note: str = ""
    ) -> tuple[Estimate, ScoreDetail] | None:
        """Largest minus smallest share of favourable labels over the groups.

        Intervals hold for all groups together (Bonferroni); the upper end also respects that the group
        score is at most the causal one (Theorem 4.3), on half of the error probability.
        """
        if self.evaluator.distance.kind == "absolute":
            return None
        label = counted_label(self.evaluator, self._label_rows)
        wanted = self.schema.favourable
        least = 1 if method_is_uniform(method) else LEAST_OF_GROUP
        seen = np.flatnonzero(self.group_rows >= least)
        if label is None or len(seen) < 2:
            return None
        small = int(np.count_nonzero(self.group_rows)) - len(seen)
        good = self._label_rows.get(label, np.zeros(len(self.combos), dtype=np.int64))[seen]
        rows = self.group_rows[seen]
        rates = good / rows
        value = float(rates.max() - rates.min())
        low = high = value
        if interval is not None:
            strict = 1 - (1 - level) / 2 / len(seen)
            limits = [interval(int(g), int(r), strict) for g, r in zip(good, rows, strict=True)]
            lows, highs = np.array([a for a, _ in limits]), np.array([b for _, b in limits])
            low = max(0.0, float(lows.max() - highs.min()))
            high = min(1.0, float(highs.max() - lows.min()))
            if method_is_uniform(method) and not self.schema.constraints:
                bound = interval(self.flips, self.rows, 1 - (1 - level) / 2)[1] if self.rows else 1.0
                high = max(low, min(high, bound))
            value_low, value_high = min(low, value), max(high, value)
            low, high = value_low, value_high
        estimate = Estimate(
            value=value,
            low=low,
            high=high,
            level=level,
            n=int(rows.min()),
            n_skipped=0,
            method=method,
            note="; ".join(part for part in (note, _left_out(small)) if part),
        )

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
        result = []
        if (estimate := self.causal(level, interval, method)) is not None:
            result.append(Score(name=f"{prefix}causal", columns=self.names, estimate=estimate, population=population))
        note = "largest minus smallest rate over several groups leans upwards in small samples"
        found = self.group(level, interval, method, note="" if interval is None else note)
        if found is not None:
            result.append(
                Score(
                    name=f"{prefix}group", columns=self.names, estimate=found[0], population=population, detail=found[1]
                )
            )
        return tuple(result)


def counted_label(evaluator: Evaluator, labels: Collection[int]) -> int | None:
    """The label whose shares a group score compares: the favourable one, or the one of two that sorts last.

    With two labels the score is the same for both, so none needs to be called good. None where the label cannot be
    chosen without a guess; `uncounted` says why.
    """
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


def _left_out(groups: int) -> str:
    if not groups:
        return ""
    return f"{plural(groups, 'group')} of fewer than {LEAST_OF_GROUP} rows {verb(groups, 'is', 'are')} left out"


def method_is_uniform(method: str) -> bool:
    """Whether groups share their rows, so that the group score is bounded by the causal one."""
    return "own rows" not in method
