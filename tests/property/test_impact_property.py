"""Laws of impact ratios, for any counts."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.contrib.ll144.applicants import Cell, breakdown
from auditor.contrib.ll144.categories import RACES, SEXES
from auditor.measure.impact import (
    FOUR_FIFTHS,
    Count,
    below_four_fifths,
    impact_ratio,
    median_rule,
    ratio_text,
    round_half_up,
    table,
    to_best,
)  # fmt: skip

SMALL = settings(max_examples=60, deadline=None)


@st.composite
def counts(draw: st.DrawFn, most: int = 60) -> Count:
    n = draw(st.integers(0, most))
    return Count(category=draw(st.uuids()).hex, n=n, x=draw(st.integers(0, n)))


@SMALL
@given(counts(), counts())
def test_flag_and_exact_ratio_agree(a: Count, b: Count) -> None:
    ratio = impact_ratio(a, b)
    if ratio is not None:
        assert below_four_fifths(a, b) == (ratio < FOUR_FIFTHS)
        shown = Fraction(ratio_text(ratio))
        assert (shown < FOUR_FIFTHS, shown > FOUR_FIFTHS) == (ratio < FOUR_FIFTHS, ratio > FOUR_FIFTHS)


@SMALL
@given(st.fractions(-5, 5), st.integers(0, 6))
def test_rounding_is_within_half_a_step(value: Fraction, digits: int) -> None:
    assert abs(Fraction(round_half_up(value, digits)) - value) <= Fraction(1, 2 * 10**digits)


@SMALL
@given(st.lists(counts(), min_size=1, max_size=6))
def test_no_ratio_is_above_one_and_one_is_one(given_counts: list[Count]) -> None:
    found = table(given_counts)
    ratios = [r.ratio for r in found.rows if r.ratio is not None]
    assert all(0 <= r <= 1 for r in ratios)
    assert not ratios or max(ratios) == 1
    shares = [r.share for r in found.rows if r.share is not None]
    assert not shares or sum(shares) == 1


@SMALL
@given(st.lists(counts(), min_size=2, max_size=5), st.integers(2, 7))
def test_ratios_do_not_depend_on_the_size_of_the_pool(given_counts: list[Count], times: int) -> None:
    larger = [Count(category=c.category, n=c.n * times, x=c.x * times) for c in given_counts]
    assert [r.ratio for r in table(given_counts).rows] == [r.ratio for r in table(larger).rows]


@SMALL
@given(counts(40), counts(40))
def test_intervals_hold_the_ratio(a: Count, b: Count) -> None:
    if not a.n or not b.x:
        return
    found = to_best([(a.x, a.n), (b.x, b.n)])[0]
    ratio = impact_ratio(a, b)
    assert ratio is not None
    assert -1e-9 <= found[0] - 1e-9 <= min(1.0, float(ratio))
    assert float(ratio) <= found[1] + 1e-9


@SMALL
@given(st.lists(st.fractions(0, 5, max_denominator=4), min_size=1, max_size=40))
def test_at_most_half_are_above_the_median(scores: list[Fraction]) -> None:
    rule = median_rule(scores)
    below = sum(s < rule.median for s in scores)
    assert 2 * rule.above <= rule.n
    assert 2 * below <= rule.n
    assert below + rule.tied + rule.above == rule.n


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_bounds_hold_whatever_the_unknown_people_are(data: st.DataObject) -> None:
    """Any real allocation of the unknown people gives a ratio within the bounds."""
    cells = []
    for sex in SEXES:
        for race in RACES[:2]:
            n = data.draw(st.integers(3, 12))
            cells.append(Cell(sex=sex, race=race, n=n, x=data.draw(st.integers(1, n))))
    unknown = [
        (data.draw(st.sampled_from([None, *SEXES])), data.draw(st.booleans()))
        for _ in range(data.draw(st.integers(1, 5)))
    ]
    whole = breakdown([*cells, *(Cell(sex=s, race=None, n=1, x=int(hit)) for s, hit in unknown)])
    known = [
        Cell(sex=s or data.draw(st.sampled_from(SEXES)), race=data.draw(st.sampled_from(RACES)), n=1, x=int(hit))
        for s, hit in unknown
    ]
    real = breakdown([*cells, *known])
    for bound in whole.bounds:
        rows = {r.count.category: r.count for r in real.tables[bound.table].rows}
        ratio = impact_ratio(rows[bound.category], rows[bound.reference])
        assert bound.low <= ratio <= bound.high
