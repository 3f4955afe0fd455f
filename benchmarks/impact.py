"""How often tables of impact ratios are marked although all rates are equal, and how often intervals hold.

Tables of 3 and 14 categories are drawn with a fixed seed, of equal and of very unequal size. Three plants: all rates
are equal; every other category lies exactly at four-fifths; one category has half the rate of all others. A mark is
false where the true ratio is 0.8 or more.

    python benchmarks/impact.py [--tables 400]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from common import Row

from auditor.measure.impact import Count, table
from auditor.measure.intervals import clopper_pearson

CATEGORIES, PEOPLE, RATES = (3, 14), (60, 120, 300, 1000, 3000), (0.1, 0.3, 0.6)
PLANTS = ("all equal", "half at 0.8", "one at 0.5")
MOST_MARKED, LEAST_HELD = 0.05, 0.93


@dataclass(frozen=True)
class Found:
    """Of ``tables``: with a false mark, with a true one; of ``intervals``: those that hold the true ratio."""

    name: str
    tables: int
    false: int
    true: int
    intervals: int
    held: int


def sizes(categories: int, people: int, even: bool) -> np.ndarray:
    """People of each category, at least one."""
    weights = np.ones(categories) if even else 0.7 ** np.arange(categories)
    return np.maximum(1, np.round(people * weights / weights.sum())).astype(int)


def planted(plant: str, categories: int, rate: float) -> np.ndarray:
    """True rates of the categories; the highest is ``rate``."""
    rates = np.full(categories, rate)
    if plant == "half at 0.8":
        rates[1::2] *= 0.8
    elif plant == "one at 0.5":
        rates[1] *= 0.5
    return rates


def draw(plant: str, categories: int, people: int, rate: float, even: bool, tables: int, seed: int = 1) -> Found:
    """Draw tables and look at the marks and intervals that reports print."""
    rng = np.random.default_rng([seed, categories, people, int(1000 * rate), even, PLANTS.index(plant)])
    n, rates = sizes(categories, people, even), planted(plant, categories, rate)
    truth = rates / rates.max()
    false = true = intervals = held = 0
    for _ in range(tables):
        counts = zip(n, rng.binomial(n, rates), strict=True)
        rows = table([Count(category=str(i), n=int(a), x=int(x)) for i, (a, x) in enumerate(counts)]).rows
        marked = {bool(truth[i] < 0.8) for i, row in enumerate(rows) if row.below_four_fifths}
        false, true = false + (False in marked), true + (True in marked)
        for i, row in enumerate(rows):
            if row.interval is not None:
                intervals += 1
                held += row.interval[0] - 1e-12 <= truth[i] <= row.interval[1] + 1e-12
    name = f"{plant}, {categories} categories, {people:,} people, rate {rate:g}, {'even' if even else 'uneven'}"
    return Found(name, tables, false, true, intervals, held)


def settings(tables: int) -> Iterator[Found]:
    """Draw every setting of the target."""
    for plant in PLANTS:
        for categories in CATEGORIES:
            for people in PEOPLE:
                for rate in RATES:
                    for even in (True, False):
                        yield draw(plant, categories, people, rate, even, tables)


def measure(tables: int = 400) -> list[Row]:
    """Give the worst setting of each plant, and the mean of the true marks."""
    rows, every = [], list(settings(tables))
    for plant in PLANTS:
        mine = [f for f in every if f.name.startswith(plant)]
        worst = max(mine, key=lambda f: f.false)
        limit = clopper_pearson(worst.false, worst.tables, 0.95)
        note = f"{worst.name}; 95 % limits {100 * (limit.low or 0):.1f} to {100 * (limit.high or 0):.1f}"
        rows.append(Row(f"impact: {plant}: tables with a false mark", 100 * worst.false / tables, "%", note=note))
        least = min(mine, key=lambda f: f.held / max(f.intervals, 1))
        note = f"{least.name}; {least.intervals:,} intervals"
        rows.append(Row(f"impact: {plant}: intervals that hold", 100 * least.held / least.intervals, "%", note=note))
        for people in PEOPLE if plant == "one at 0.5" else ():
            some = [f for f in mine if f" {people:,} people" in f.name]
            share = sum(f.true for f in some) / sum(f.tables for f in some)
            rows.append(Row(f"impact: half the rate is marked, {people:,} people", 100 * share, "%"))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=400)
    for row in measure(parser.parse_args().tables):
        print(f"{row.name}: {row.value:.1f} {row.unit}  {row.note}")
