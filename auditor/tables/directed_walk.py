"""Aequitas, Algorithms 1–4: uniform global search, then walks around each row it found, all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.tables.core import Codes, Schema, uniform
from auditor.tables.directed_finds import Finds
from auditor.tables.directed_options import Options

CHUNK = 16384
WALK = (
    10_000  # trials of one walk where there are so few start rows that a step of all walks is a small batch
)


class Probabilities:
    """σ_pr and σ_v of Algorithm 2, and their updates (Algorithms 3 and 4) for a batch of answers.

    Parameters
    ----------
    columns : int
        How many columns may be changed.
    options : Options
        Mode, Δv and Δpr.

    Attributes
    ----------
    column : array of float, shape (columns,)
        σ_pr: probability that a column is chosen; sums to 1.
    down : array of float, shape (columns,)
        σ_v: probability that the chosen column is stepped down.
    """

    def __init__(self, columns: int, options: Options) -> None:
        self._options = options
        self.column = np.full(columns, 1 / columns)
        self.down = np.full(columns, 0.5)

    def update(self, chosen: NDArray[np.intp], delta: NDArray[np.int64], hit: NDArray[np.bool_]) -> None:
        """Learn from a batch of steps.

        Parameters
        ----------
        chosen, delta, hit : arrays, shape (n,)
            Column, signed step, and whether the row it led to is discriminatory.

        Notes
        -----
        A batch is one update per answer in unknown order. For σ_v the sum does not depend on the order
        (except at 0 and 1). For σ_pr, k times "add Δpr to one entry, then normalise" is
        ``q^k σ + (1 − q^k) × (share of each column among the k)`` averaged over orders, with
        ``q = 1 / (1 + Δpr)``.
        """
        options, n = self._options, len(self.column)
        if options.mode in ("semi", "fully"):
            towards_down = np.where(hit == (delta < 0), 1.0, -1.0)
            push = np.bincount(chosen, weights=towards_down, minlength=n)
            self.down = np.clip(self.down + options.delta_v * push, 0.0, 1.0)
        if options.mode == "fully" and hit.any():
            good = np.bincount(chosen[hit], minlength=n).astype(float)
            kept = (1 + options.delta_pr) ** -good.sum()
            self.column = kept * self.column + (1 - kept) * good / good.sum()
            self.column /= self.column.sum()


def global_search(finds: Finds, rng: np.random.Generator) -> Codes:
    """Algorithm 1: uniform rows, all protected combinations of each.

    Where the number of model evaluations is limited, at most half of them are spent here.

    Returns
    -------
    array of int32, shape (k, d)
        Those of the rows that are discriminatory, one per case.

    Raises
    ------
    Stop
        A termination rule was met.
    """
    total, drawn, rows = finds.options.global_n, 0, []
    if (left := finds.evaluator.remaining) is not None:
        total = min(total, max(1, left // (2 * len(finds.schema.combos))))
    while drawn < total:
        n = finds.allowed(min(CHUNK, total - drawn))
        batch = uniform(finds.schema, n, rng)
        _, new = finds.judge(batch, "global")
        rows.append(batch[new])
        drawn += n
    return np.concatenate(rows)


def local_search(finds: Finds, starts: Codes, rng: np.random.Generator) -> Probabilities | None:
    """Algorithm 2 from every start row at once: step ``i`` of all walks, then step ``i + 1``.

    The printed algorithm finishes one walk before the next begins; here the probabilities learn from all
    walks in step. Where a start row has more than `WALK` trials and start rows are few, its trials are shared
    out to several walks. Returns the learned probabilities; None if there was nothing to do.
    """
    schema, options = finds.schema, finds.options
    columns = schema.movable_index
    if not len(starts) or not len(columns):
        return None
    sizes = step_sizes(schema, options)
    probabilities = Probabilities(len(columns), options)
    walks = min(-(-options.local_n // WALK), max(1, CHUNK // len(starts)))
    left = options.local_n * len(starts)
    rows = np.tile(starts, (walks, 1))
    while left:
        n = finds.allowed(min(len(rows), left))
        left -= n
        if n < len(rows):
            rows = rows[:n]
        chosen, delta, moved = step(rows, columns, schema.cards, sizes, probabilities, rng)
        judged, _ = finds.judge(moved, "local")
        probabilities.update(chosen, delta, judged.discriminatory)
        if options.walk == "drift":
            rows = moved
        else:
            rows = np.where(judged.discriminatory[:, None], moved, rows)
    return probabilities


def step_sizes(schema: Schema, options: Options) -> list[NDArray[np.int64]]:
    """The sizes of a step for each column that may be changed."""
    return [
        np.asarray(options.steps.get(schema.names[int(j)], (1,)), dtype=np.int64)
        for j in schema.movable_index
    ]


def step(
    rows: Codes,
    columns: NDArray[np.intp],
    cards: NDArray[np.int64],
    sizes: list[NDArray[np.int64]],
    probabilities: Probabilities,
    rng: np.random.Generator,
) -> tuple[NDArray[np.intp], NDArray[np.int64], Codes]:
    """One perturbation (Definition 2) of each row.

    A step over the edge of the domain is turned round; if that leaves the domain too, it ends at the far edge.

    Returns
    -------
    chosen, delta : arrays, shape (n,)
        Position within ``columns`` and the signed step taken.
    moved : array of int32, shape (n, d)
        The rows after it.
    """
    n = len(rows)
    cumulative = np.cumsum(probabilities.column)
    chosen = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
    chosen = np.minimum(chosen, len(columns) - 1)
    size = _draw_sizes(chosen, sizes, rng)
    delta = np.where(rng.random(n) < probabilities.down[chosen], -size, size)
    position = columns[chosen]
    at = rows[np.arange(n), position].astype(np.int64)
    last = cards[position] - 1
    over = (at + delta < 0) | (at + delta > last)
    back = (at - delta >= 0) & (at - delta <= last)
    roomier = np.where(2 * at < last, size, -size)
    delta = np.where(over, np.where(back, -delta, roomier), delta)
    target = np.clip(at + delta, 0, last)
    moved = rows.copy()
    moved[np.arange(n), position] = target
    return chosen, delta, moved


def _draw_sizes(
    chosen: NDArray[np.intp], sizes: list[NDArray[np.int64]], rng: np.random.Generator
) -> NDArray[np.int64]:
    if all(len(s) == 1 for s in sizes):
        return np.array([int(s[0]) for s in sizes], dtype=np.int64)[chosen]
    widest = max(map(len, sizes))
    table = np.array([np.resize(s, widest) for s in sizes], dtype=np.int64)
    count = np.array([len(s) for s in sizes])
    return np.asarray(table[chosen, rng.integers(0, count[chosen])])
