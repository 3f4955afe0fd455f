"""The oracle on probabilities, with equal treatment and with labour statistics as the reference."""

from __future__ import annotations

from dataclasses import replace

import pytest
from judged import table_of

from auditor.core.registry import ORACLES
from auditor.core.types import Answer, Case, Edit, Variant
from auditor.measure.rates import exceeding
from auditor.tasks.oracles import ProbabilityOracle


def case(number: int = 0) -> Case:
    edit = Edit(
        attribute="occupation",
        kind="swap",
        source_group="pilot",
        target_group="nurse",
        source="pilot",
        target="nurse",
        where=(0, 5),
    )
    return Case(
        id=f"c{number}",
        suite="s",
        original=Variant(id=f"c{number}.o", input="pilot", groups={"occupation": "pilot"}),
        variants=(Variant(id=f"c{number}.v0", input="nurse", groups={"occupation": "nurse"}, edits=(edit,)),),
    )


def answer(p: float | None) -> Answer:
    return Answer(status="ok", value="his", scores=None if p is None else {"his": p, "her": 1 - p})


def judge(oracle: ProbabilityOracle, before: float | None, after: float | None, number: int = 0):  # type: ignore[no-untyped-def]
    answers = {f"c{number}.o": [answer(before)], f"c{number}.v0": [answer(after)]}
    return oracle.judge(case(number), answers)[0]


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (0.6, 0.6, "pass"),
        (0.6, 0.65, "pass"),
        (0.6, 0.651, "violation"),
        (0.65, 0.55, "violation"),
        (0.6, None, "skipped"),
    ],
)
def test_a_difference_beyond_epsilon(before: float, after: float | None, outcome: str) -> None:
    assert judge(ProbabilityOracle(epsilons=[0.05]), before, after).outcome == outcome


def test_with_shares_the_expected_difference_is_no_violation() -> None:
    oracle = ProbabilityOracle(epsilons=[0.05], reference="shares", shares={"pilot": 0.9, "nurse": 0.1})
    assert judge(oracle, 0.9, 0.1).outcome == "pass"
    equal = judge(oracle, 0.5, 0.5)
    assert equal.outcome == "violation"
    assert equal.distance == pytest.approx(0.8)
    unknown = ProbabilityOracle(reference="shares", shares={"pilot": 0.9})
    assert judge(unknown, 0.5, 0.5).outcome == "skipped"


def test_cases_beyond_each_epsilon() -> None:
    oracle = ProbabilityOracle()
    told = [judge(oracle, 0.5, 0.5 + d, i) for i, d in enumerate((0.0, 0.03, 0.08, 0.3))]
    told.append(judge(oracle, 0.5, None, 9))
    found = exceeding(table_of(replace(v, model="m", format="bare") for v in told), oracle.epsilons)
    assert [(row["epsilon"], row["violating_cases"], row["cases"]) for row in found] == [
        (0.01, 3, 4), (0.05, 2, 4), (0.1, 1, 4), (0.2, 1, 4),
    ]  # fmt: skip


def test_replicates_are_averaged_and_a_missing_one_skips() -> None:
    oracle = ProbabilityOracle(epsilons=[0.05])
    answers = {"c0.o": [answer(0.4), answer(0.6)], "c0.v0": [answer(0.5), answer(0.5)]}
    assert oracle.judge(case(), answers)[0].outcome == "pass"
    answers["c0.v0"] = [answer(0.5), answer(None)]
    assert oracle.judge(case(), answers)[0].outcome == "skipped"


def test_the_registry_and_settings() -> None:
    assert ORACLES.create("probability", epsilons=[0.1]).epsilons == (0.1,)
    for options in ({"epsilons": []}, {"epsilons": [2.0]}, {"reference": "shares"}):
        with pytest.raises(ValueError, match=r"toleran|shares"):
            ProbabilityOracle(**options)  # type: ignore[arg-type]
