"""Decision functions whose discriminatory regions are known exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from auditor.core.errors import ConfigError
from auditor.tables.aequitas import run, share_estimate
from auditor.tables.coded import case_keys
from auditor.tables.columns import Column
from auditor.tables.evaluate import Evaluator
from auditor.tables.finds import answers_of, plain, with_examples
from auditor.tables.method_options import AequitasOptions
from auditor.tables.retraining import retrain, tied_cases
from auditor.tables.row_schema import Schema


def column(name: str, codes: int, **kwargs: Any) -> Column:
    return Column(name=name, kind="integer", codes=codes, ordered=True, **kwargs)


PEOPLE = Schema(
    columns=(
        column("sex", 2, protected=True),
        column("race", 3, protected=True),
        column("age", 30),
        column("hours", 30),
        column("city", 12),
    )
)


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
    result = with_examples(evaluator, result, answers_of(evaluator, result.finds))
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
    wide = Schema(columns=(*PEOPLE.columns, column("more", 1000)))
    truth = 45 * 12 / PEOPLE.cases
    held = 0
    for seed in range(200):
        estimate = share_estimate(Evaluator(box, wide), np.random.default_rng(seed), trials=1, trial_size=400)
        held += estimate.low <= truth <= estimate.high
    assert held >= 182


def planted_data(n: int = 3000) -> tuple[Schema, np.ndarray, np.ndarray]:
    """Pay depends on hours; in the data women are also paid less."""
    schema = Schema(columns=(column("sex", 2, protected=True), column("hours", 60), column("city", 40)))
    rng = np.random.default_rng(11)
    codes = np.stack([rng.integers(0, c, n) for c in schema.cards], axis=1).astype(np.int32)
    labels = np.where(codes[:, 1] + 12 * codes[:, 0] + rng.normal(0, 2, n) > 36, "high", "low")
    return schema, codes, labels


def test_the_retrained_model_is_better_on_the_held_out_estimate() -> None:
    from sklearn.linear_model import LogisticRegression

    schema, codes, labels = planted_data()
    untouched = LogisticRegression(max_iter=2000)
    outcome = retrain(
        untouched, schema, codes, labels, np.random.default_rng(3), search=AequitasOptions(trials=0), sample=4000
    )
    assert outcome.figures.before.low > 0.1
    assert outcome.figures.after.high < outcome.figures.before.low
    assert outcome.figures.accuracy_after.n == 750
    assert outcome.figures.accuracy_before.value > 0.9
    assert not hasattr(untouched, "coef_")
    for i, portion in enumerate(outcome.figures.portions, start=2):
        assert 2 ** (i - 2) <= portion.percent <= min(2 ** (i - 1), 100)
        assert portion.ties == portion.cases  # two sexes never have a majority
        assert portion.rows == 2 * portion.cases
    kept = [p.kept for p in outcome.figures.portions]
    assert all(kept[:-1])
    assert kept[-1] is (outcome.figures.stopped != "a portion did not lower the share")
    record = plain(outcome.figures)
    assert "model" not in record
    assert record["after"]["n"] == 4000


def test_retraining_that_cannot_help_returns_the_model_before() -> None:
    from sklearn.dummy import DummyClassifier

    fitted = []

    class Counted(DummyClassifier):
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            fitted.append(self)
            return super().fit(X, y, sample_weight)

    schema, codes, labels = planted_data(200)
    outcome = retrain(Counted(strategy="prior"), schema, codes, labels, np.random.default_rng(3), sample=500)
    assert outcome.model is fitted[0]
    assert len(fitted) == 1
    assert outcome.figures.portions == ()
    assert outcome.figures.before.value == outcome.figures.after.value == 0
    assert outcome.figures.stopped == "no discriminatory case was found"
    with pytest.raises(ConfigError, match="same label"):
        retrain(DummyClassifier(), schema, codes, np.ones(200), np.random.default_rng(3))


def test_votes_count_possible_rows_and_ties_are_named() -> None:
    schema = Schema(columns=(column("race", 3, protected=True), column("a", 4)))
    model = Evaluator(lambda x: ((x[:, 0] == 1) & (x[:, 1] > 0)).astype(int), schema)
    votes = model.judge(np.array([[0, 0], [0, 1]], dtype=np.int32)).votes(range(2))
    assert votes.tolist() == [[3, 0], [2, 1]]
    assert not len(tied_cases(votes))
    assert tied_cases(np.array([[1, 1, 0], [0, 2, 1]])).tolist() == [0]
