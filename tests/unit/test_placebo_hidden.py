from __future__ import annotations

import numpy as np
import pytest

from auditor.core.types import Verdict
from auditor.measure.arms import placebo_hidden


def joint(
    case: int,
    n: int,
    hidden: bool | None,
    *,
    order: int = 2,
    attributes: tuple[str, ...] = ("gender", "race"),
) -> Verdict:
    return Verdict(
        case_id=f"c{case}",
        variant_id=f"c{case}.{'v' if order else 'p'}{n}",
        order=order,
        attributes=attributes,
        outcome="violation" if hidden else "pass",
        hidden=hidden,
        model="m",
        format="f",
    )


def arms(
    cases: int, real: list[bool | None], placebo: list[bool | None]
) -> tuple[list[Verdict], list[Verdict]]:
    return (
        [joint(c, n, hidden) for c in range(cases) for n, hidden in enumerate(real)],
        [joint(c, n, hidden, order=0) for c in range(cases) for n, hidden in enumerate(placebo)],
    )


def test_hidden_in_one_arm_alone_is_more_than_placebo() -> None:
    (row,) = placebo_hidden(*arms(10, [True, True], [False, False, False]), rng=np.random.default_rng(0))
    assert row["attributes"] == ["gender", "race"]
    assert row["hidden"]["value"] == 1
    assert row["placebo"]["value"] == 0
    assert (row["placebo"]["n"], row["placebo"]["n_variants"]) == (10, 30)
    assert row["over"]["value"] == 1
    assert row["p_adjusted"] < 0.01


def test_equal_arms_are_no_more_than_placebo() -> None:
    (row,) = placebo_hidden(*arms(10, [True, False], [True, False]), rng=np.random.default_rng(0))
    assert row["over"]["value"] == 0
    assert row["p_adjusted"] > 0.4


def test_unsettled_single_and_unpaired_variants_are_left_out() -> None:
    real, placebo = arms(8, [True, None, False], [False, None])
    real.append(joint(0, 9, None, order=1, attributes=("gender",)))
    real += [joint(77, 0, True), joint(78, 0, True)]
    (row,) = placebo_hidden(real, placebo, rng=np.random.default_rng(0))
    assert row["hidden"]["n_variants"] == 16
    assert row["placebo"]["n_variants"] == 8
    assert row["placebo"]["n_skipped"] == 2
    assert row["over"]["n"] == 8


@pytest.mark.parametrize(("cases", "tested"), [(5, False), (6, True)])
def test_too_few_seeds_are_not_tested(cases: int, tested: bool) -> None:
    (row,) = placebo_hidden(*arms(cases, [True], [False]), rng=np.random.default_rng(0))
    assert (row["over"] is not None) is tested
    assert (row["p_adjusted"] is not None) is tested


def test_without_settled_placebo_variants_there_is_no_row() -> None:
    assert placebo_hidden(*arms(9, [True], [None]), rng=np.random.default_rng(0)) == []
    assert placebo_hidden(*arms(9, [True], []), rng=np.random.default_rng(0)) == []


def test_p_values_are_adjusted_over_the_pairs() -> None:
    real, placebo = arms(10, [True], [False])
    other = ("age", "race")
    real += [joint(c, 5, False, attributes=other) for c in range(10)]
    placebo += [joint(c, 5, False, order=0, attributes=other) for c in range(10)]
    first, second = placebo_hidden(real, placebo, rng=np.random.default_rng(0))
    assert first["attributes"] == ["age", "race"]
    assert first["p_adjusted"] == 1
    assert second["p_adjusted"] == pytest.approx(2 * second["over"]["p_value"])


def test_equal_noise_in_both_arms_is_called_more_in_at_most_18_of_200_worlds() -> None:
    called = 0
    for world in range(200):
        rng = np.random.default_rng(world)
        real, placebo = [], []
        for c in range(40):
            rate = rng.choice([0.0, 0.05, 0.3])
            real += [joint(c, n, bool(rng.random() < rate)) for n in range(3)]
            placebo += [joint(c, n, bool(rng.random() < rate), order=0) for n in range(2)]
        (row,) = placebo_hidden(real, placebo, rng=rng, resamples=99)
        called += row["p_adjusted"] <= 0.05
    assert called <= 18
