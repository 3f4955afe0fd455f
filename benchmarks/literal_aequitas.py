"""Aequitas as printed and as released, one row and one ``predict`` call at a time.

`aequitas` is Algorithms 1-4 to the letter, fully directed: walks go on from wherever a step led to, probabilities are updated
after every step, rows are lists. Two things the paper leaves open: a step over the edge of the domain stays at
the edge (as in the released code), and a row counts once per value of its columns that are not protected.

`released` behaves as the fully directed script of the authors' repository does, written anew from a description
of it. What it does and the paper does not say:

- A walk is an optimiser's (basin hopping, temperature 1, on an objective of 2, or of 0 where the row is
  discriminatory): a step that loses the region is undone with probability 1 - e^-2.
- The protected column is among the columns that are stepped; steps at the edge of the domain go either way with
  equal probability and may stay where they are. Column probabilities are lowered after a failure, not only raised.
- The signal that the probabilities learn from is inverted: what they take for success is a row that is *not*
  discriminatory. ``signal="paper"`` puts it right.

The optimiser's finite differences, of which every one asks the same row again after ``int()``, are left out: they
change neither the rows that are judged nor the share, and make the released script 15 to 40 times dearer. All values
of the protected columns are asked where the script asks 0 and 1.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

Row = list[int]


@dataclass
class Outcome:
    """Distinct cases judged and found, and what it cost."""

    generated: set[tuple[int, ...]] = field(default_factory=set)
    found: set[tuple[int, ...]] = field(default_factory=set)
    calls: int = 0
    seconds: float = 0.0
    stopped: bool = False

    @property
    def share(self) -> float:
        """Distinct discriminatory cases / distinct cases."""
        return len(self.found) / max(1, len(self.generated))


class _Enough(Exception):
    pass


class _Judge:
    """Asks every combination of protected values of a row, and counts the row once."""

    def __init__(
        self,
        predict_one: Callable[[Row], float],
        cards: Sequence[int],
        protected: Sequence[int],
        *,
        max_seconds: float = float("inf"),
        max_calls: float = float("inf"),
    ) -> None:
        self.out, self.began = Outcome(), time.perf_counter()
        self.free = [j for j in range(len(cards)) if j not in set(protected)]
        self._predict, self._protected = predict_one, protected
        self._combos = list(product(*(range(cards[j]) for j in protected)))
        self._seconds, self._calls = max_seconds, max_calls

    def __call__(self, row: Row) -> bool:
        """Whether the row is discriminatory; changes its protected columns."""
        answers = []
        for combo in self._combos:
            if self.out.calls >= self._calls or time.perf_counter() - self.began > self._seconds:
                raise _Enough
            for j, value in zip(self._protected, combo, strict=True):
                row[j] = value
            answers.append(self._predict(row))
            self.out.calls += 1
        key = tuple(row[j] for j in self.free)
        self.out.generated.add(key)
        verdict = len(set(answers)) > 1
        if verdict:
            self.out.found.add(key)
        return verdict


def aequitas(
    predict_one: Callable[[Row], float],
    cards: Sequence[int],
    protected: Sequence[int],
    *,
    global_n: int,
    local_n: int,
    rng: random.Random,
    delta_v: float = 0.001,
    delta_pr: float = 0.001,
    max_seconds: float = float("inf"),
    max_calls: float = float("inf"),
) -> Outcome:
    """Global search, then local search around each row that it found."""
    judge = _Judge(predict_one, cards, protected, max_seconds=max_seconds, max_calls=max_calls)
    out, free = judge.out, judge.free
    column = [1 / len(free)] * len(free)
    down = [0.5] * len(free)
    try:
        starts = []
        for _ in range(global_n):  # Algorithm 1
            row = [rng.randrange(card) for card in cards]
            if judge(row):
                starts.append(row)
        for start in starts:  # Algorithm 2
            row = list(start)
            for _ in range(local_n):
                p = rng.choices(range(len(free)), weights=column)[0]
                delta = -1 if rng.random() < down[p] else 1
                row[free[p]] = min(max(row[free[p]] + delta, 0), cards[free[p]] - 1)
                hit = judge(row)
                if hit == (delta == -1):  # Algorithm 3
                    down[p] = min(down[p] + delta_v, 1)
                else:
                    down[p] = max(down[p] - delta_v, 0)
                if hit:  # Algorithm 4
                    column[p] += delta_pr
                    total = sum(column)
                    column = [x / total for x in column]
    except _Enough:
        out.stopped = True
    out.seconds = time.perf_counter() - judge.began
    return out


def released(
    predict_one: Callable[[Row], float],
    cards: Sequence[int],
    protected: Sequence[int],
    *,
    global_n: int,
    local_n: int,
    rng: random.Random,
    signal: Literal["released", "paper"] = "released",
    size: float = 0.001,
    max_seconds: float = float("inf"),
) -> Outcome:
    """The fully directed script: uniform rows, then a hopping walk from each row it found."""
    judge = _Judge(predict_one, cards, protected, max_seconds=max_seconds)
    column, down = [1 / len(cards)] * len(cards), [0.5] * len(cards)

    def step(row: Row) -> tuple[Row, bool]:
        row, p = list(row), rng.choices(range(len(cards)), weights=column)[0]
        at_edge = row[p] in (0, cards[p] - 1)
        delta = -1 if rng.random() < (0.5 if at_edge else down[p]) else 1
        row[p] = min(max(row[p] + delta, 0), cards[p] - 1)
        hit = judge(list(row))
        success = hit == (signal == "paper")
        towards = size if success == (delta == -1) else -size
        down[p] = min(max(down[p] + towards, 0.0), 1.0)
        column[p] = max(column[p] + (size if success else -size), 0.0)
        total = sum(column)
        column[:] = [x / total for x in column]
        return row, hit

    try:
        starts = {}
        for _ in range(global_n):
            row = [rng.randrange(card) for card in cards]
            if judge(row):
                starts[tuple(row[j] for j in judge.free)] = row
        for row in starts.values():
            inside = True
            for _ in range(local_n):
                moved, hit = step(row)
                if hit or not inside or rng.random() < math.exp(-2):
                    row, inside = moved, hit
    except _Enough:
        judge.out.stopped = True
    judge.out.seconds = time.perf_counter() - judge.began
    return judge.out
