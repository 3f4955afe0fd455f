"""Start rows near a decision boundary, from labels alone.

Two judged rows with different labels have a boundary between them. One is turned into the other column by
column; halving finds the column at which the label changes, halving again the value. Rows there are far more
often discriminatory than rows drawn at random, because a protected column has little to outweigh.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from auditor.tables.core import Codes, Judged
from auditor.tables.directed_finds import Finds

Keep = Callable[[Codes, Judged, NDArray[np.bool_]], None]
KEPT = 512  # rows remembered
CASES_PER_PAIR = 10


class Boundary:
    """Remembers judged rows with the label of their first combination, and looks between them."""

    def __init__(self, d: int) -> None:
        self._rows = np.empty((0, d), dtype=np.int32)
        self._labels = np.empty(0, dtype=np.int64)

    def remember(self, rows: Codes, judged: Judged) -> None:
        """Keep rows; where one label has more than half of the places, its oldest rows give way."""
        self._rows = np.concatenate([self._rows, rows])
        self._labels = np.concatenate([self._labels, judged.labels[:, 0]])
        if len(self._rows) > KEPT:
            names, inverse, count = np.unique(self._labels, return_inverse=True, return_counts=True)
            common = np.flatnonzero(inverse == count.argmax())
            drop = common[: len(self._rows) - KEPT] if len(names) > 1 else np.arange(len(self._rows) - KEPT)
            self._rows = np.delete(self._rows, drop, axis=0)
            self._labels = np.delete(self._labels, drop)

    @property
    def ready(self) -> bool:
        """Whether two labels were seen."""
        return len(self._labels) > 1 and bool((self._labels != self._labels[0]).any())

    def pairs(self, n: int, rng: np.random.Generator) -> tuple[Codes, Codes, NDArray[np.int64]]:
        """``n`` pairs of rows with different labels, and the label of the first of each."""
        names = np.unique(self._labels)
        first = rng.choice(names, n)
        second = names[(np.searchsorted(names, first) + 1 + rng.integers(0, len(names) - 1, n)) % len(names)]
        a, b = (
            np.array([rng.choice(np.flatnonzero(self._labels == v)) for v in side])
            for side in (first, second)
        )
        return self._rows[a], self._rows[b], first

    def search(self, finds: Finds, cases: int, rng: np.random.Generator, keep: Keep) -> None:
        """Halve the way between pairs, at a cost of about ``cases`` cases.

        ``keep(rows, judged, new)`` gets every batch that was judged; ``new`` says which are new finds.
        """
        columns = finds.schema.movable_index
        a, b, label = self.pairs(finds.allowed(max(1, cases // CASES_PER_PAIR)), rng)
        n = len(a)
        every = np.arange(n)
        rank = rng.permuted(np.tile(np.arange(len(columns)), (n, 1)), axis=1)  # when a column is taken over

        def same(rows: Codes) -> NDArray[np.bool_] | None:
            room = finds.allowed(n)
            judged, new = finds.judge(rows[:room], "boundary")
            keep(rows[:room], judged, new)
            return None if room < n else judged.labels[:, 0] == label

        def between(middle: NDArray[np.int64]) -> Codes:
            rows = a.copy()
            rows[:, columns] = np.where(rank < middle[:, None], b[:, columns], a[:, columns])
            return rows

        low, high = np.zeros(n, dtype=np.int64), np.full(n, len(columns))
        while (high - low > 1).any():
            middle = (low + high) // 2
            if (answer := same(between(middle))) is None:
                return
            low, high = np.where(answer, middle, low), np.where(answer, high, np.maximum(middle, low + 1))
        rows = between(low)
        column = columns[(rank == low[:, None]).argmax(axis=1)]
        near, far = rows[every, column].astype(np.int64), b[every, column].astype(np.int64)
        while (np.abs(far - near) > 1).any():
            rows = rows.copy()
            rows[every, column] = middle = (near + far) // 2
            if (answer := same(rows)) is None:
                return
            near, far = np.where(answer, middle, near), np.where(answer, far, middle)
