"""Decision functions whose discriminatory regions are known exactly."""

from __future__ import annotations

import numpy as np
import pytest

from auditor.tables.aequitas import run, share_estimate
from auditor.tables.evaluate import Evaluator
from auditor.tables.finds import Answers, with_examples
from auditor.tables.retraining import tied_cases
from auditor.tables.row_schema import Schema, case_keys
from auditor.tables.tabular_plan import AequitasOptions
from tests.asking import column

PEOPLE = Schema(
    columns=(
        column("sex", 2, protected=True), column("race", 3, protected=True),
        *(column(name, codes, ordered=True) for name, codes in (("age", 30), ("hours", 30), ("city", 12))),
    )
)  # fmt: skip


def box(x: np.ndarray) -> np.ndarray:
    """Label changes with sex in one box (4 % of cases) and with race in another (1 %), nowhere else."""
    first = (x[:, 2] < 6) & (x[:, 3] < 6) & (x[:, 0] == 1)
    second = (x[:, 2] >= 27) & (x[:, 3] >= 27) & (x[:, 1] == 2)
    return (first | second).astype(int)


@pytest.mark.parametrize("protocol", ["default", "aequitas"])
def test_finds_lie_in_the_planted_boxes_only(protocol: str) -> None:
    evaluator = Evaluator(box, PEOPLE)
    options = {"protocol": protocol, "global_n": 600, "local_n": 150, "generated": 3000}
    result = run(evaluator, AequitasOptions.of(options), np.random.default_rng(2))
    result, _ = with_examples(evaluator, result)
    rows = result.finds
    assert rows is not None
    low = (rows[:, 2] < 6) & (rows[:, 3] < 6)
    high = (rows[:, 2] >= 27) & (rows[:, 3] >= 27)
    assert (low | high).all()
    assert low.any()
    assert len(np.unique(case_keys(PEOPLE, rows))) == len(rows) > 250
    planted = (36 + 9) * 12
    assert len(rows) <= planted
    (score,) = result.scores
    assert score.estimate.value == planted / PEOPLE.cases
    (sex, race, _both) = result.lattice
    assert sex.columns == ("sex",)
    assert sex.changes == 6 * int(low.sum())
    assert race.changes == 6 * int(high.sum())
    assert all(pair.changed in (("sex",), ("race",)) for pair in result.pairs)


def test_intervals_of_the_share_hold_the_planted_value() -> None:
    wide = Schema(columns=(*PEOPLE.columns, column("more", 1000, ordered=True)))
    truth = 45 * 12 / PEOPLE.cases
    held = 0
    for seed in range(200):
        estimate = share_estimate(Evaluator(box, wide), np.random.default_rng(seed), trials=1, trial_size=400)
        held += estimate.low <= truth <= estimate.high
    assert held >= 182


def test_votes_count_possible_rows_and_ties_are_named() -> None:
    schema = Schema(columns=(column("race", 3, protected=True), column("a", 4, ordered=True)))
    model = Evaluator(lambda x: ((x[:, 0] == 1) & (x[:, 1] > 0)).astype(int), schema)
    cases = np.array([[0, 0], [0, 1]], dtype=np.int32)
    votes = Answers(cases, model.grid(cases), model.possible(cases)).votes(range(2))
    assert votes.tolist() == [[3, 0], [2, 1]]
    assert not len(tied_cases(votes))
    assert tied_cases(np.array([[1, 1, 0], [0, 2, 1]])).tolist() == [0]
