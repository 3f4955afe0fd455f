"""The path of one input through a decision tree, grown without growing the tree (SG, `get_path`).

A CART tree is grown greedily from the top, so the nodes that an input passes depend on nothing off its path.
`PathGrower` looks for the best split of those nodes only. Codes are whole numbers from small ranges, so a
node is a histogram of codes per class, and the histogram of the side that is kept is its parent's less that
of the side that is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.tables.column import Codes

MAX_CLASSES = 32
SCORE_CLASSES = 8


@dataclass(frozen=True, slots=True)
class Predicate:
    """One decision on a path: ``code[column] <= cut`` if ``below``, else ``code[column] > cut``.

    ``confidence`` is the share of the node's rows that take the same side, in (0, 1).

    Examples
    --------
    >>> Predicate(2, True, 4, 0.75).toggled()
    Predicate(column=2, below=False, cut=4, confidence=0.75)
    """

    column: int
    below: bool
    cut: int
    confidence: float = 1.0

    def toggled(self) -> Predicate:
        """Its negation."""
        return Predicate(self.column, not self.below, self.cut, self.confidence)

    def holds(self, codes: Codes) -> NDArray[np.bool_]:
        """Which rows satisfy it, shape (n,)."""
        return np.asarray((codes[:, self.column] <= self.cut) == self.below)


Path = tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """What each column may hold: ``low[j] <= code[j] <= high[j]``.

    Examples
    --------
    >>> box = Box.of([Predicate(0, True, 4), Predicate(0, False, 1)], [10, 3])
    >>> box.low, box.high, box.empty
    ((2, 0), (4, 2), False)
    """

    low: tuple[int, ...]
    high: tuple[int, ...]

    @classmethod
    def of(cls, predicates: Iterable[Predicate], cards: Sequence[int]) -> Box:
        """The box that a conjunction of predicates leaves of the domain."""
        low, high = [0] * len(cards), [card - 1 for card in cards]
        for p in predicates:
            if p.below:
                high[p.column] = min(high[p.column], p.cut)
            else:
                low[p.column] = max(low[p.column], p.cut + 1)
        return cls(tuple(low), tuple(high))

    @property
    def empty(self) -> bool:
        """Whether no row lies in it: the predicates contradict each other."""
        return any(low > high for low, high in zip(self.low, self.high, strict=True))

    def clip(self, row: Codes) -> Codes | None:
        """The row of the box nearest to ``row``, shape (d,): a column keeps its value or moves to a bound."""
        if self.empty:
            return None
        return np.minimum(np.maximum(row, np.array(self.low, np.int32)), np.array(self.high, np.int32))

    def draw(self, rng: np.random.Generator) -> Codes | None:
        """A row drawn uniformly from the box, shape (d,)."""
        if self.empty:
            return None
        return rng.integers(np.array(self.low), np.array(self.high) + 1).astype(np.int32)


def average_confidence(path: Sequence[Predicate]) -> float:
    """Mean confidence of a conjunction's predicates (1 for none)."""
    return sum(p.confidence for p in path) / len(path) if path else 1.0


class PathGrower:
    """Grows paths over one domain."""

    def __init__(self, cards: Sequence[int] | NDArray[np.int64], rng: np.random.Generator) -> None:
        self._cards = np.asarray(cards, dtype=np.int64)
        self._offsets = np.concatenate([[0], np.cumsum(self._cards)[:-1]])
        self._total = int(self._cards.sum())
        self._column = np.repeat(np.arange(len(self._cards)), self._cards)
        self._rng = rng

    def grow(self, row: Codes, rows: Codes, labels: NDArray[np.int64]) -> Path:
        """The decisions that ``row`` meets in a CART tree (Gini, grown until pure)."""
        classes, y = np.unique(labels, return_inverse=True)
        if len(classes) > MAX_CLASSES:
            cuts = np.quantile(labels, np.linspace(0, 1, SCORE_CLASSES + 1)[1:-1])
            classes, y = np.unique(np.searchsorted(cuts, labels, side="right"), return_inverse=True)
        k = len(classes)
        flat = rows + self._offsets
        hist = self._histogram(flat, y, k)
        path: list[Predicate] = []
        while (split := self._best_split(hist, np.bincount(y, minlength=k))) is not None:
            column, cut = split
            below = bool(row[column] <= cut)
            kept = (flat[:, column] <= cut + self._offsets[column]) == below
            count = int(np.count_nonzero(kept))
            path.append(Predicate(column, below, cut, count / len(y)))
            if count == 0:
                break
            if 2 * count >= len(y):
                dropped = ~kept
                hist = hist - self._histogram(flat[dropped], y[dropped], k)
                flat, y = flat[kept], y[kept]
            else:
                flat, y = flat[kept], y[kept]
                hist = self._histogram(flat, y, k)
        return tuple(path)

    def _histogram(self, flat: NDArray[np.int64], y: NDArray[np.intp], k: int) -> NDArray[np.int64]:
        if k <= 4:
            parts = [np.bincount(flat[y == c].ravel(), minlength=self._total) for c in range(k)]
            return np.stack(parts) if parts else np.zeros((0, self._total), np.int64)
        shifted = (flat + (y * self._total)[:, None]).ravel()
        return np.bincount(shifted, minlength=k * self._total).reshape(k, self._total)

    def _best_split(self, hist: NDArray[np.int64], totals: NDArray[np.intp]) -> tuple[int, int] | None:
        n = int(totals.sum())
        if np.count_nonzero(totals) < 2:
            return None
        left = np.cumsum(hist, axis=1) - totals[:, None] * self._column
        present = hist.sum(axis=0) > 0
        n_left = left.sum(axis=0)
        at = np.flatnonzero(present & (n_left < n) & (n_left > 0))
        if not len(at):
            return None
        below = left[:, at].astype(np.float64)
        above = totals[:, None] - below
        gain = (below**2).sum(axis=0) / n_left[at] + (above**2).sum(axis=0) / (n - n_left[at])
        best = np.flatnonzero(gain >= gain.max() - 1e-9)
        position = int(at[best[self._rng.integers(len(best))] if len(best) > 1 else best[0]])
        column = int(self._column[position])
        after = position + 1 + int(np.argmax(present[position + 1 :]))
        first = int(self._offsets[column])
        return column, (position - first + after - first) // 2
