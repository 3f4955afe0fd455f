"""The evaluator: grids, caches, limits; the lattice; labels and distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from auditor.core.errors import BudgetExceeded, ConfigError, PluginError
from auditor.tables import method_options, themis, themis_search
from auditor.tables.coded import uniform
from auditor.tables.columns import Column
from auditor.tables.distance import Distance
from auditor.tables.evaluate import Evaluator, Limit
from auditor.tables.finds import TabularResult, lattice
from auditor.tables.row_schema import Schema


def schema(*rules: str) -> Schema:
    return Schema(
        columns=(
            Column(name="x", kind="integer", codes=8),
            Column(name="sex", kind="category", codes=2, values=("F", "M"), protected=True),
            Column(name="role", kind="category", codes=3, values=("Husband", "Wife", "none")),
            Column(name="race", kind="integer", codes=3, low=1, protected=True),
        ),
        constraints=rules,
    )


def planted(rows: Any) -> Any:
    """x + [M] + race >= 8."""
    return rows[:, 0].astype(float) + (rows[:, 1] == "M") + rows[:, 3].astype(float) >= 8


def literal(s: Schema, row: Any) -> set[bool]:
    out = set()
    for sex in (0, 1):
        for race in (1, 2, 3):
            if not s.constraints or s.on_manifold(np.array([[row[0], sex, row[2], race - 1]], dtype=np.int32))[0]:
                out.add(row[0] + sex + race >= 8)
    return out


@pytest.mark.parametrize("rules", [(), ("role == Husband implies sex == M", "role == Wife implies sex == F")])
@pytest.mark.parametrize("cache", [None, True])
@pytest.mark.parametrize("batch", [1, 7, 65536])
def test_verdicts_match_one_row_at_a_time(rules: tuple[str, ...], cache: bool | None, batch: int) -> None:
    s = schema(*rules)
    rows = uniform(s, 80, np.random.default_rng(7))
    evaluator = Evaluator(planted, s, cache=cache, batch=batch)
    judged = evaluator.judge(rows)
    assert judged.discriminatory.tolist() == [len(literal(s, row)) > 1 for row in rows]
    anything = [len(literal(schema(), row)) > 1 for row in rows]
    assert (judged.discriminatory | judged.off_manifold).tolist() == anything
    assert judged.off_manifold.any() == bool(rules)
    assert not (judged.off_manifold & judged.discriminatory).any()
    if cache:
        assert evaluator.evaluations + evaluator.cache_hits == 480
        assert evaluator.evaluations <= 8 * 3 * 6
    else:
        assert evaluator.evaluations == 480


def test_limits_stop_before_asking() -> None:
    s = schema()
    asked = []

    def predict(rows: Any) -> Any:
        asked.append(len(rows))
        return planted(rows)

    evaluator = Evaluator(predict, s, budget=Limit(evaluations=100))
    rows = uniform(s, 17, np.random.default_rng(7))
    assert evaluator.affordable(17) == 16
    with pytest.raises(BudgetExceeded, match="100"):
        evaluator.grid(rows)
    assert asked == []
    evaluator.grid(rows[:16])
    assert evaluator.remaining == 4
    assert evaluator.affordable(17) == 0
    with pytest.raises(BudgetExceeded, match="0 s"):
        Evaluator(predict, s, budget=Limit(seconds=0)).labels(rows)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda rows: planted(rows)[:-1], PluginError, "one label a row"),
        (lambda rows: np.full(len(rows), np.nan), PluginError, "NaN"),
        (lambda rows: np.full(len(rows), 0.5), ConfigError, "not whole"),
        (lambda rows: np.zeros((len(rows), 2)), PluginError, "shape"),
    ],
)
def test_answers_that_are_no_labels(answer: Any, error: type[Exception], message: str) -> None:
    s = schema()
    with pytest.raises(error, match=message):
        Evaluator(answer, s).labels(uniform(s, 5, np.random.default_rng(7)))


@pytest.mark.parametrize("base", [0.0, 0.1, 7.0])
def test_scores_as_far_apart_as_the_threshold_are_equal(base: float) -> None:
    """Definition 3.3 has "above the threshold"; 0.29 is no whole multiple of anything in binary."""
    for k in range(1, 100):
        far = Distance(k / 100)
        codes = far.codes(np.array([[base, base + k / 100], [base, base + k / 100 + 1e-8]]))
        assert far.differ(codes, None).tolist() == [False, True]


def test_under_a_threshold_a_row_counts_by_its_own_output() -> None:
    """Every way to count changes, against a loop over pairs of rows, on random outputs."""
    grades = np.array([0.0, 0.1, 0.3, 0.6, 0.7, 1.0])
    distance = Distance(0.4)
    rng = np.random.default_rng(5)
    at = rng.integers(0, 6, (4, 3, 3))
    s = Schema(
        columns=(
            Column(name="x", kind="integer", codes=4),
            Column(name="sex", kind="integer", codes=3, protected=True),
            Column(name="race", kind="integer", codes=3, protected=True),
        )
    )

    def model(rows: Any) -> Any:
        return grades[at[tuple(rows.astype(int).T)]]

    def share(columns: tuple[int, ...]) -> float:
        changed = 0
        for cell in np.ndindex(4, 3, 3):
            others = [o for o in np.ndindex(4, 3, 3) if all(o[i] == cell[i] for i in range(3) if i not in columns)]
            changed += any(abs(grades[at[cell]] - grades[at[o]]) > 0.4 + 1e-12 for o in others)
        return changed / 36

    def ask(given: Any = None, **options: Any) -> TabularResult:
        settings = method_options.ThemisOptions.of(options)
        return themis.run(Evaluator(model, s, distance=distance), settings, np.random.default_rng(7), given)

    exact = ask().scores[0]
    assert (exact.name, exact.estimate.value) == ("causal", pytest.approx(share((1, 2))))
    assert 0 < share((1, 2)) < 1
    sampled = ask(max_samples=4000, epsilon=0.001).scores[0].estimate
    assert sampled.low <= share((1, 2)) <= sampled.high
    literal = ask(protocol="themis", max_samples=4000, epsilon=0.01).scores[0].estimate
    assert literal.value == pytest.approx(share((1, 2)), abs=0.05)
    rows = np.array(list(np.ndindex(4, 3, 3)), dtype=np.int32)
    assert ask(rows).scores[0].estimate.value == pytest.approx(share((1, 2)))
    for prune in (True, False):
        settings = method_options.ThemisOptions(theta=0.0)
        asked = Evaluator(model, s, distance=distance)
        result = themis_search.search(asked, settings, np.random.default_rng(7), prune=prune)
        for test in result.details["tests"]:  # type: ignore[attr-defined]
            assert test["value"] == pytest.approx(share(tuple(s.index_of(n) for n in test["columns"])))
    evaluator = Evaluator(model, s, distance=distance)
    for subset in lattice(evaluator, evaluator.judge(rows[::9])):
        assert subset.changes / subset.rows == pytest.approx(share(tuple(map(s.index_of, subset.columns))))
