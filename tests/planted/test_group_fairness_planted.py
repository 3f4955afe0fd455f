"""Group fairness on planted scores: the groups that were moved are found, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.contrib.astraea.group_scores import group_fairness, shrunken_means

GROUPS = 43  # occupations of the published study, 150 distinct sentences each


def scores(
    seed: int, moved: dict[int, float], spread: float = 0.0, k: int = GROUPS, n: int = 150
) -> dict[str, list[float]]:
    """p(his) with sentences that differ by themselves, and some groups moved."""
    rng = np.random.default_rng(seed)
    sentence = rng.normal(0.5, 0.15, size=n)
    own = rng.normal(0.0, spread, size=k) if spread else np.zeros(k)
    return {f"job {i:02d}": list(sentence + own[i] + moved.get(i, 0.0) + rng.normal(0, 0.05, size=n)) for i in range(k)}


@pytest.mark.parametrize("paired", [True, False])
def test_planted_groups_violate_and_stand_out_and_no_others(paired: bool) -> None:
    found = group_fairness(scores(1, {3: -0.25, 7: 0.25}, spread=0.0), paired=paired, rounds=1999)
    assert {g.name for g in found.groups if g.stands_out} == {"job 03", "job 07"}
    assert {g.name for g in found.groups if g.violates} >= {"job 03", "job 07"}
    assert found.violating is not None
    assert found.share_violating == found.violating / GROUPS


@pytest.mark.parametrize("paired", [True, False])
def test_one_far_group_does_not_make_the_others_stand_out(paired: bool) -> None:
    data = {name: [0.1 * v for v in values] for name, values in scores(21, {}, k=12, n=150).items()}
    data["job 00"] = [v + 0.9 for v in data["job 00"]]
    found = group_fairness(data, paired=paired, rounds=999)
    assert [g.name for g in found.groups if g.stands_out] == ["job 00"]


def test_equal_groups_seldom_stand_out_where_the_index_alone_marks_some() -> None:
    runs = [group_fairness(scores(100 + i, {}, k=12, n=40), paired=True, rounds=499) for i in range(40)]
    assert sum(r.standing_out > 0 for r in runs) <= 5
    assert sum((r.violating or 0) > 0 for r in runs) >= 8


@pytest.mark.parametrize("paired", [True, False])
def test_a_group_whose_scores_merely_vary_more_seldom_stands_out(paired: bool) -> None:
    """Twelve groups with one mean, one of them with four times the scatter."""
    found = 0
    for i in range(40):
        rng = np.random.default_rng(i)
        data = {f"job {j:02d}": list(rng.normal(0.5, 0.4 if j == 0 else 0.1, 40)) for j in range(12)}
        groups = group_fairness(data, paired=paired, rounds=399, seed=i).groups
        found += groups[0].stands_out
    assert found <= 4  # without standard errors in the test: half of them


def test_pairing_sees_what_the_sentences_hide() -> None:
    data = scores(5, {2: 0.03}, k=12, n=60)
    assert [g.name for g in group_fairness(data, paired=True, rounds=999).groups if g.stands_out] == ["job 02"]
    assert not group_fairness(data, paired=False, rounds=999).standing_out


def test_few_groups_have_no_index_but_a_test() -> None:
    found = group_fairness(scores(6, {0: 0.3}, k=4, n=60), paired=True, rounds=999)
    assert found.violating is None
    assert "fewer than 10" in found.reason
    assert found.groups[0].stands_out


def test_a_deviation_of_zero_is_said_and_the_test_still_speaks() -> None:
    data = {f"g{i}": [0.5] * 40 for i in range(12)} | {"odd": [0.5 if j % 2 else 0.1 for j in range(40)]}
    found = group_fairness(data, rounds=999)
    assert "median deviation is 0" in found.reason
    assert [g.name for g in found.groups if g.stands_out] == ["odd"]
    assert found.groups[0].low is None


def test_shrinkage_is_full_without_differences_and_small_with_many() -> None:
    rng = np.random.default_rng(3)
    equal = [rng.normal(0.5, 0.1, 150) for _ in range(20)]
    pulled = shrunken_means(equal)
    assert max(pulled) - min(pulled) < 0.5 * (max(x.mean() for x in equal) - min(x.mean() for x in equal))
    differ = [rng.normal(0.5 + 0.02 * i, 0.1, 150) for i in range(20)] + [rng.normal(1.5, 0.1, 2)]
    pulled = shrunken_means(differ)
    assert pulled[5] == pytest.approx(float(differ[5].mean()), abs=0.005)
    assert abs(pulled[-1] - differ[-1].mean()) > 0.02  # two sentences only


def test_missing_scores() -> None:
    data: dict[str, list[float | None]] = {k: list(v) for k, v in scores(9, {}, k=10, n=31).items()}
    data["job 00"][4] = None
    assert {g.n for g in group_fairness(data, paired=True, rounds=99).groups} == {30}
    assert [g.n for g in group_fairness(data, rounds=99).groups][:2] == [30, 31]
    with pytest.raises(ValueError, match="two or more groups"):
        group_fairness({"a": [0.1], "b": [None]})
    with pytest.raises(ValueError, match="equally many"):
        group_fairness({"a": [0.1], "b": [0.1, 0.2]}, paired=True)


def test_the_same_seed_gives_the_same_answer() -> None:
    data = scores(11, {1: 0.02}, k=10, n=30)
    assert group_fairness(data, rounds=199, seed=3) == group_fairness(data, rounds=199, seed=3)
