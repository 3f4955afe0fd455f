"""Aequitas written literally from the paper: Algorithms 1-4, one row and one ``predict`` call at a time.

Kept to what is printed: walks go on from wherever a step led to, probabilities are updated after every
step, rows are lists. Two things the paper leaves open: a step over the edge of the domain stays at the edge
(as in the released code), and a row counts once per value of its columns that are not protected.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

Row = list[int]
Mode = Literal["random", "semi", "fully"]


@dataclass
class Outcome:
    """Distinct cases judged and found, and what it cost."""

    generated: set[tuple[int, ...]] = field(default_factory=set)
    found: set[tuple[int, ...]] = field(default_factory=set)
    calls: int = 0
    seconds: float = 0.0
    stopped: bool = False
    column: list[float] = field(default_factory=list)
    down: list[float] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Distinct discriminatory cases / distinct cases."""
        return len(self.found) / max(1, len(self.generated))


class _Enough(Exception):
    pass


def aequitas(
    predict_one: Callable[[Row], float],
    cards: Sequence[int],
    protected: Sequence[int],
    *,
    mode: Mode,
    global_n: int,
    local_n: int,
    rng: random.Random,
    gamma: float = 0.0,
    delta_v: float = 0.001,
    delta_pr: float = 0.001,
    max_seconds: float = float("inf"),
    max_calls: float = float("inf"),
) -> Outcome:
    """Global search, then local search around each row that it found."""
    out = Outcome()
    free = [j for j in range(len(cards)) if j not in set(protected)]
    combos = list(product(*(range(cards[j]) for j in protected)))
    began = time.perf_counter()

    def discriminatory(row: Row) -> bool:
        answers = []
        for combo in combos:
            if out.calls >= max_calls or time.perf_counter() - began > max_seconds:
                raise _Enough
            for j, value in zip(protected, combo, strict=True):
                row[j] = value
            answers.append(predict_one(row))
            out.calls += 1
        key = tuple(row[j] for j in free)
        out.generated.add(key)
        verdict = any(abs(a - b) > gamma for a in answers for b in answers)
        if verdict:
            out.found.add(key)
        return verdict

    column = [1 / len(free)] * len(free)
    down = [0.5] * len(free)
    try:
        starts = []
        for _ in range(global_n):  # Algorithm 1
            row = [rng.randrange(card) for card in cards]
            if discriminatory(row):
                starts.append(row)
        for start in starts:  # Algorithm 2
            row = list(start)
            for _ in range(local_n):
                p = rng.choices(range(len(free)), weights=column)[0]
                delta = -1 if rng.random() < down[p] else 1
                row[free[p]] = min(max(row[free[p]] + delta, 0), cards[free[p]] - 1)
                hit = discriminatory(row)
                if mode in ("semi", "fully"):  # Algorithm 3
                    if hit == (delta == -1):
                        down[p] = min(down[p] + delta_v, 1)
                    else:
                        down[p] = max(down[p] - delta_v, 0)
                if mode == "fully" and hit:  # Algorithm 4
                    column[p] += delta_pr
                    total = sum(column)
                    column = [x / total for x in column]
    except _Enough:
        out.stopped = True
    out.seconds = time.perf_counter() - began
    out.column, out.down = column, down
    return out
