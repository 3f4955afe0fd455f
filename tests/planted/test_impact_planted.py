"""Marks and intervals of impact ratios where the true rates are planted; `benchmarks/impact.py` draws more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import impact

# One table of the settings in which an earlier version marked 8 to 36 of 100 tables of equal rates.
EQUAL = [(3, 60, 0.3, True), (3, 1000, 0.1, True), (14, 60, 0.1, False), (14, 60, 0.6, True), (14, 300, 0.6, True)]
EQUAL += [(14, 3000, 0.3, True)]


@pytest.mark.slow
@pytest.mark.parametrize(("categories", "people", "rate", "even"), EQUAL)
def test_equal_rates_are_rarely_marked(categories: int, people: int, rate: float, even: bool) -> None:
    found = impact.draw("all equal", categories, people, rate, even, tables=200)
    assert found.false <= impact.MOST_MARKED * found.tables, found
    assert found.held >= impact.LEAST_HELD * found.intervals, found


@pytest.mark.slow
def test_a_category_at_four_fifths_is_rarely_marked_and_one_at_half_often_is() -> None:
    border = impact.draw("half at 0.8", 14, 3000, 0.3, True, tables=100)
    assert border.false <= 0.1 * border.tables, border
    assert border.held >= impact.LEAST_HELD * border.intervals, border
    half = impact.draw("one at 0.5", 3, 1000, 0.3, True, tables=100)
    assert half.true >= 0.8 * half.tables, half
