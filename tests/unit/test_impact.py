"""Selection rates and impact ratios: exact where it counts."""

from __future__ import annotations

from fractions import Fraction

import pytest

from auditor.measure import impact


def c(category: str, x: int, n: int) -> impact.Count:
    return impact.Count(category=category, n=n, x=x)


def test_rounding_does_not_lift_a_ratio_over_the_mark() -> None:
    a, b = c("a", 79960, 100000), c("b", 10000, 10000)
    assert impact.below_four_fifths(a, b)
    ratio = impact.impact_ratio(a, b)
    assert (impact.round_half_up(ratio, 3), impact.ratio_text(ratio)) == ("0.800", "0.7996")


def test_a_reference_with_rate_zero_gives_no_ratio() -> None:
    found = impact.table([c("a", 0, 5), c("b", 0, 9), c("none", 0, 0)])
    zero = "not computable: the rate of the reference is 0"
    told = [(row.ratio, row.p, row.reason) for row in found.rows]
    assert told == [(None, None, zero), (None, None, zero), (None, None, "nobody in this category")]
    assert found.rows[2].count.rate is None


def test_one_person_flip() -> None:
    counts = [c("a", 7, 17), c("b", 215, 412)]
    assert impact.below_four_fifths(*counts)
    assert impact.one_person_flip(counts, "a", "b") is True
    assert impact.one_person_flip([c("a", 10, 100), c("b", 50, 100)], "a", "b") is False
    # exactly at the mark: one selection less falls below it
    assert impact.one_person_flip([c("a", 40, 100), c("b", 50, 100)], "a", "b") is True
    assert impact.one_person_flip([c("a", 0, 5), c("b", 1, 9)], "a", "b") is True
    assert impact.table(counts).rows[1].one_person_flip is None
    # b and c have one rate; moving a selection away from b leaves c on top, and a stays below
    assert impact.one_person_flip([c("a", 78, 100), c("b", 10, 10), c("c", 100, 100)], "a", "c") is False


@pytest.mark.parametrize("pair", [(555, 1181, 667, 1390), (700, 1700, 21500, 41200), (300, 900, 1200, 1600)])
def test_two_large_categories_have_the_score_interval_of_a_library(pair: tuple[int, int, int, int]) -> None:
    """With two categories and many people nothing is chosen, and exact limits are near Koopman's."""
    from statsmodels.stats.proportion import confint_proportions_2indep

    x, n, x0, n0 = pair
    found = impact.to_best([(x, n), (x0, n0)])[0]
    expected = confint_proportions_2indep(x, n, x0, n0, compare="ratio", method="score", correction=False)
    assert found == pytest.approx(expected, rel=0.005)


def test_more_categories_widen_the_interval_and_one_person_decides_little() -> None:
    without = [[(0, 5), (0, 7)], [(3, 5), (0, 7)], [(3, 5)]]  # nobody elsewhere was selected
    assert [impact.to_best(counts)[0] for counts in without] == [None] * 3
    two, three = (impact.to_best([(6, 42), (90, 200), (90, 200)][:k])[0] for k in (2, 3))
    assert three[0] == two[0]
    assert three[1] > two[1]
    one = impact.to_best([(20, 100), (1, 1)])[0]
    assert one[1] > 1  # the one person may have had luck


def test_first_places_condition_on_both() -> None:
    found = impact.to_best([(106, 1000), (181, 1000)], one_per_run=True)[0]
    assert found == pytest.approx((0.457, 0.748), abs=0.001)
    assert impact.exact_test(1, 4, 1, 4, one_per_run=True) == 1.0
    assert impact.exact_test(0, 4, 0, 4, one_per_run=True) == 1.0
    assert impact.z_score(3, 3, 5, 5) is None


def test_a_reference_of_few_people_is_not_trusted() -> None:
    counts = [c("few", 19, 20), c("many", 250, 500), c("other", 200, 500)]
    found = impact.table(counts)
    assert (found.reference, found.steady_reference) == ("few", "many")
    assert found.rows[2].ratio_to_steady == Fraction(4, 5)
    assert found.rows[2].p_holm < 0.05
    assert impact.table([*counts, c("low", 100, 500)]).rows[3].below_four_fifths
    assert impact.table(counts[1:]).steady_reference is None
    assert impact.table([c("a", 10, 20), c("b", 2, 10)]).steady_reference is None


def test_omnibus() -> None:
    assert impact.omnibus([(1, 2)]) is None
    assert impact.omnibus([(0, 2), (0, 3)]) is None
    assert impact.omnibus([(50, 100), (50, 100)]) == pytest.approx(1.0)
    assert impact.omnibus([(500, 1000), (500, 1000)], one_per_run=True) == pytest.approx(1.0)
