"""Aequitas, Algorithms 1–4: uniform global search, then walks around each row it found, all at once."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded
from auditor.core.shown import plural, verb
from auditor.tables.coded import Seen, case_keys, uniform
from auditor.tables.columns import Codes, Mask
from auditor.tables.evaluate import Evaluator, Judged
from auditor.tables.method_options import AequitasOptions

CHUNK = 16384
STEP = 0.001  # Δv and Δpr: how far one answer moves the probability of a direction or of a column


class Stop(Exception):
    """A termination rule is met, which the text says. What cuts a search short is a `BudgetExceeded`."""


class Finds:
    """Counts every case once, by the exact key of its columns that are not protected.

    ``phases`` has for each phase cases asked (judged), discriminatory ones among them (hits), new cases (generated),
    new finds (discriminatory), and cases left undecided by rows without a label (not_judged).
    """

    def __init__(self, evaluator: Evaluator, options: AequitasOptions) -> None:
        self.schema, self.evaluator, self.options = evaluator.schema, evaluator, options
        self._seen, self._known = Seen(), Seen()
        self._rows: list[Codes] = [np.empty((0, self.schema.d), dtype=np.int32)]
        self.phases = defaultdict[str, Counter[str]](Counter)
        self.undecided = self.off_manifold = 0

    @property
    def generated(self) -> int:
        """Distinct cases judged."""
        return len(self._seen)

    @property
    def discriminatory(self) -> int:
        """Distinct discriminatory cases."""
        return len(self._known)

    def rows(self) -> Codes:
        """The discriminatory cases in the order in which they were found, shape (k, d)."""
        return np.concatenate(self._rows)

    def allowed(self, n: int) -> int:
        """How many of ``n`` cases may be judged now.

        Raises
        ------
        Stop, BudgetExceeded
            A termination rule is met; the limits of the evaluator allow none.
        """
        options, cases, made = self.options, self.discriminatory, self.generated
        if options.max_found is not None and cases >= options.max_found:
            raise Stop(f"{plural(cases, 'discriminatory case')} {verb(cases, 'was', 'were')} found")
        if options.generated is not None and made >= options.generated:
            raise Stop(f"{plural(made, 'case')} {verb(made, 'was', 'were')} generated")
        if self.evaluator.exhausted:
            raise BudgetExceeded("the limit of the evaluator was reached")
        room = min(n, self.evaluator.affordable(n))
        if options.generated is not None:
            room = min(room, options.generated - made)
        if n and room < 1:
            raise BudgetExceeded("the limit of model evaluations was reached")
        return room

    def judge(self, codes: Codes, phase: str) -> tuple[Judged, Mask]:
        """Ask all combinations of each case and count; also which cases were new finds, shape (n,)."""
        judged = self.evaluator.judge(codes)
        silent = int(judged.undecided.sum())
        keys = case_keys(self.schema, codes)
        first, hits = self._seen.add(keys), np.flatnonzero(judged.discriminatory)
        self.undecided += int((judged.undecided & first).sum())
        new = np.zeros(len(codes), dtype=bool)
        new[hits] = self._known.add(keys[hits])
        if new.any():
            self._rows.append(codes[new])
        self.off_manifold += int((judged.off_manifold & first).sum())
        self.phases[phase].update(
            judged=len(codes) - silent,
            hits=len(hits),
            generated=int(first.sum()),
            discriminatory=int(new.sum()),
            not_judged=silent,
        )
        return judged, new


class Probabilities:
    """σ_pr and σ_v of Algorithm 2, and their updates (Algorithms 3 and 4) for a batch of answers.

    ``column`` has the probability that a column is chosen (sums to 1), ``down`` that the chosen one is stepped down.
    """

    def __init__(self, columns: int) -> None:
        self.column = np.full(columns, 1 / columns)
        self.down = np.full(columns, 0.5)

    def update(self, chosen: NDArray[np.intp], delta: NDArray[np.int64], hit: Mask) -> None:
        """Learn from a batch of steps: column, signed step, and whether the row it led to is discriminatory.

        For σ_v the order of answers does not matter (except at 0 and 1). For σ_pr, k times "add Δpr to one entry, then
        normalise" is on average over orders ``q^k σ + (1 − q^k) × (share of each column)``, ``q = 1 / (1 + Δpr)``.
        """
        n = len(self.column)
        towards_down = np.where(hit == (delta < 0), 1.0, -1.0)
        push = np.bincount(chosen, weights=towards_down, minlength=n)
        self.down = np.clip(self.down + STEP * push, 0.0, 1.0)
        if hit.any():
            good = np.bincount(chosen[hit], minlength=n).astype(float)
            kept = (1 + STEP) ** -good.sum()
            self.column = kept * self.column + (1 - kept) * good / good.sum()
            self.column /= self.column.sum()


def global_search(finds: Finds, rng: np.random.Generator) -> Codes:
    """Algorithm 1: uniform rows, all protected combinations of each.

    Where the number of model evaluations is limited, at most half of them are spent here.
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
    """Run Algorithm 2 from every start row at once; return the learned probabilities, None without a walk."""
    schema, options = finds.schema, finds.options
    columns = schema.movable_index
    if not len(starts) or not len(columns):
        return None
    probabilities = Probabilities(len(columns))
    rows = starts
    for _ in range(options.local_n):
        rows = rows[: finds.allowed(len(rows))]
        chosen, delta, moved = step(rows, columns, schema.cards, probabilities, rng)
        judged, _ = finds.judge(moved, "local")
        probabilities.update(chosen, delta, judged.discriminatory)
        rows = moved if options.protocol == "aequitas" else np.where(judged.discriminatory[:, None], moved, rows)
    return probabilities


def step(
    rows: Codes,
    columns: NDArray[np.intp],
    cards: NDArray[np.int64],
    probabilities: Probabilities,
    rng: np.random.Generator,
) -> tuple[NDArray[np.intp], NDArray[np.int64], Codes]:
    """Move one column of each row by one; a step out of the domain goes the other way.

    The positions within ``columns`` that were chosen, the signed steps, and the rows after them.
    """
    n = len(rows)
    cumulative = np.cumsum(probabilities.column)
    chosen = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
    chosen = np.minimum(chosen, len(columns) - 1)
    delta = np.where(rng.random(n) < probabilities.down[chosen], -1, 1)
    position = columns[chosen]
    at = rows[np.arange(n), position].astype(np.int64)
    last = cards[position] - 1
    delta = np.where((at + delta < 0) | (at + delta > last), -delta, delta)
    moved = rows.copy()
    moved[np.arange(n), position] = np.clip(at + delta, 0, last)
    return chosen, delta, moved
