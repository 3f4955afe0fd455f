"""Signed differences: which variants have a direction, the correction below opened claims, what is bounded."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from auditor.stats.directions import (
    MAX_OPEN,
    Place,
    direction_findings,
    label_tests,
    outcome_of,
    silence_findings,
    silence_tests,
)
from auditor.stats.directions import Test as Difference
from auditor.stats.summary import EditInfo
from auditor.types import ClaimVerdict, Estimate, Finding, Verdict

ONE = (("a", "x", "y"),)


def made(
    p: float | None, limit: float = 0.5, *, model: str = "m", value: float = 0.2, n: int = 0
) -> Difference:
    estimate = Estimate(
        value=value, low=value - 0.1, high=value + 0.1, level=0.95, n=50, n_skipped=0, method="t"
    )
    place = Place(model, "plain", ("a",), (("a", "x", f"y{n}"),))
    return Difference(place, "yes", estimate, p, 10 if p is not None else 3, limit)


def verdicts_of(
    families: list[list[Difference]],
    candidates: int,
    delta: float | None = None,
    control: dict[str, bool | None] | None = None,
) -> list[Finding]:
    return direction_findings(families, candidates, alpha=0.05, delta=delta, positive_control=control or {})


@pytest.mark.parametrize(("candidates", "verdict"), [(1, "shown"), (4, "shown"), (5, "not_determined")])
def test_q_values_are_times_claims_per_opened_family(candidates: int, verdict: ClaimVerdict) -> None:
    (found,) = verdicts_of([[made(0.012)]], candidates)
    assert found.p_adjusted == pytest.approx(0.012 * candidates)
    assert found.verdict == verdict
    first, second = verdicts_of([[made(0.012)], [made(0.9, n=1)]], candidates)
    assert first.p_adjusted == pytest.approx(0.012 * candidates / 2)
    assert second.p_adjusted == pytest.approx(min(1.0, 0.9 * candidates / 2))


@pytest.mark.parametrize(
    ("p", "limit", "delta", "control", "verdict"),
    [
        (0.5, 0.049, 0.05, True, "bounded"),
        (None, 0.049, 0.05, True, "bounded"),
        (0.5, 0.05, 0.05, True, "not_determined"),  # not below
        (0.5, 0.049, 0.05, False, "not_determined"),
        (0.5, 0.049, 0.05, None, "not_determined"),
        (0.5, 0.049, None, True, "not_determined"),
        (0.001, 0.049, 0.05, True, "shown"),
        (0.05, 0.5, None, True, "not_determined"),  # q is not below 5 %
    ],
)
def test_verdicts(
    p: float | None, limit: float, delta: float | None, control: bool | None, verdict: ClaimVerdict
) -> None:
    (found,) = verdicts_of([[made(p, limit)]], 1, delta, {"m": control})
    assert found.verdict == verdict


def test_what_is_not_shown_is_cut_and_what_is_shown_is_not() -> None:
    family = [made(0.5 + n / 1000, n=n) for n in range(MAX_OPEN + 7)] + [
        made(1e-6, n=100 + n) for n in range(30)
    ]
    found = verdicts_of([family], 1)
    assert sum(f.verdict == "shown" for f in found) == 30
    rest = [f for f in found if f.verdict != "shown"]
    assert len(rest) == MAX_OPEN
    assert [f.p_value for f in rest] == sorted(f.p_value for f in rest if f.p_value is not None)


def verdict(case: str, name: str, attributes: tuple[str, ...] = ("a",)) -> Verdict:
    return Verdict(
        case_id=case,
        variant_id=name,
        order=len(attributes),
        attributes=attributes,
        outcome="violation",
        model="m",
        format="plain",
    )


def differences_of(
    pairs: list[tuple[tuple[str, ...], tuple[str, ...]]],
    directions: tuple[tuple[str, str, str], ...] = ONE,
    label: str = "yes",
) -> list[Difference]:
    answers = {
        (f"c{i}", "plain"): {f"c{i}.o": before, f"c{i}.v": after} for i, (before, after) in enumerate(pairs)
    }
    verdicts = [verdict(f"c{i}", f"c{i}.v") for i in range(len(pairs))]
    edits = {f"c{i}.v": EditInfo(directions, ("swap",)) for i in range(len(pairs))}
    return label_tests(verdicts, edits, {"m": answers}, label, rng=np.random.default_rng(0), resamples=1999)


def test_shares_are_of_the_changed_text_less_the_original() -> None:
    (found,) = differences_of([(("no", "no"), ("yes", "no"))] * 8 + [(("yes",), ("yes",))] * 2)
    assert found.estimate.value == pytest.approx(0.4)
    assert (found.discordant, found.estimate.n) == (8, 10)
    assert found.p_value == pytest.approx(2 / 2**8)


@pytest.mark.parametrize(("seeds", "tested"), [(5, False), (6, True)])
def test_five_discordant_seeds_are_not_tested(seeds: int, tested: bool) -> None:
    (found,) = differences_of([(("no",), ("yes",))] * seeds + [(("no",), ("no",))] * 20)
    assert (found.p_value is not None) is tested


def test_seeds_without_an_answer_on_one_side_are_left_out() -> None:
    (found,) = differences_of([(("no",), ("yes",)), ((), ("yes",)), (("no",), ())])
    assert found.estimate.n == 1


def test_two_source_groups_have_no_one_direction() -> None:
    assert differences_of([(("no",), ("yes",))] * 8, (("a", "x", "y"), ("a", "z", "y"))) == []


def test_a_set_counts_for_each_label_it_holds() -> None:
    assert outcome_of("a")(("a", "b")) == 1.0
    assert outcome_of("a")("ab") == 0.0


def test_refusals_are_a_family_for_each_model() -> None:
    verdicts, edits, silent = [], {}, {}
    for i in range(12):
        for model in "mn":
            v = dataclasses.replace(verdict(f"c{i}", f"c{i}.v"), model=model)
            verdicts.append(v)
        edits[f"c{i}.v"] = EditInfo(ONE, ("swap",))
        silent[f"c{i}", "plain"] = {f"c{i}.v": 1.0}
    tests = silence_tests(
        verdicts, edits, {"m": silent, "n": {}}, rng=np.random.default_rng(0), resamples=1999
    )
    # A model that answered everything has nothing to test.
    assert {t.place.model for t in tests} == {"m"}
    assert tests[0].estimate.value == 1.0
    (found,) = silence_findings(tests, alpha=0.05)
    assert (found.code, found.verdict) == ("REF120", "shown")
    many = [made(0.02, n=n) for n in range(1)] + [made(0.9, n=5 + n) for n in range(3)]
    assert silence_findings(many, alpha=0.05) == []
    others = [dataclasses.replace(one, id="") for one in silence_findings([many[0]], alpha=0.05)]
    assert len(others) == 1
