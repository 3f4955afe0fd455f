"""Decision functions whose scores are known exactly: Themis must find them."""

from __future__ import annotations

import csv
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor.tables import TabularPlan, audit_table, themis
from auditor.tables.evaluate import Evaluator
from auditor.tables.row_data import infer, read_table
from auditor.tables.row_schema import Schema
from auditor.tables.tabular_plan import ThemisOptions
from auditor.tables.themis import search
from tests.asking import column

CARDS = (3, 2, 4, 2, 5)
NAMES = ("a", "sex", "c", "race", "e")
Predict = Callable[[Any], Any]


def domain(*rules: str) -> Schema:
    columns = (column(n, k, protected=n in ("sex", "race")) for n, k in zip(NAMES, CARDS, strict=True))
    return Schema(columns=tuple(columns), favourable=1, constraints=rules)


def threshold(rows: Any) -> Any:
    return (rows[:, 0] + 2 * rows[:, 1] * (rows[:, 2] > 1) + rows[:, 3] + rows[:, 4] / 2 >= 4).astype(int)


def only_together(rows: Any) -> Any:
    return ((rows[:, 1] == 1) & (rows[:, 3] == 1) & (rows[:, 4] > 0)).astype(int)


def opposite(rows: Any) -> Any:
    """Group score 0 for sex, causal score 1: it helps and harms alike."""
    return ((rows[:, 1] + rows[:, 3]) % 2).astype(int)


def table(seed: int) -> Predict:
    labels = np.random.default_rng(seed).random(CARDS) < 0.3

    def predict(rows: Any) -> Any:
        return labels[tuple(rows.astype(int).T)].astype(int)

    return predict


FUNCTIONS: dict[str, Predict] = {
    "threshold": threshold, "only_together": only_together, "opposite": opposite, "table": table(3),
}  # fmt: skip


def brute(predict: Predict, columns: tuple[int, ...], schema: Schema) -> tuple[float, float]:
    """(causal, group) by the definitions, one row after another."""
    rows = np.array(list(itertools.product(*map(range, CARDS))), dtype=np.int32)
    rows = rows[schema.on_manifold(rows)]
    labels = dict(zip(map(tuple, rows.tolist()), predict(rows.astype(float)).tolist(), strict=True))
    changed = 0
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, label in labels.items():
        groups.setdefault(tuple(row[i] for i in columns), []).append(label)
        for values in itertools.product(*(range(CARDS[i]) for i in columns)):
            other = list(row)
            for i, value in zip(columns, values, strict=True):
                other[i] = value
            if labels.get(tuple(other), label) != label:
                changed += 1
                break
    rates = [sum(v) / len(v) for v in groups.values()]
    return changed / len(labels), max(rates) - min(rates)


def scores(predict: Predict, schema: Schema, seed: int = 7, **options: Any) -> dict[str, Any]:
    given, settings = options.pop("data", None), ThemisOptions.of(options)
    result = themis.run(Evaluator(predict, schema), settings, np.random.default_rng(seed), given)
    return {s.name: s for s in result.scores}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("rules", [(), ("a == 2 implies sex == 1", "c >= race")])
def test_enumeration_is_exact(name: str, rules: tuple[str, ...]) -> None:
    schema = domain(*rules)
    causal, group = brute(FUNCTIONS[name], (1, 3), schema)
    found = scores(FUNCTIONS[name], schema)
    assert found["causal"].estimate.value == pytest.approx(causal, abs=1e-12)
    assert found["group"].estimate.value == pytest.approx(group, abs=1e-12)
    assert found["causal"].estimate.method.startswith("enumeration")
    if not rules:
        assert group <= causal + 1e-12  # Theorem 4.3


@pytest.mark.parametrize(
    ("name", "rules"), [*((name, ()) for name in FUNCTIONS), ("threshold", ("a == 2 implies sex == 1", "c >= race"))]
)
def test_intervals_cover_after_stopping(name: str, rules: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """At 95 %, at least 88 of 100 runs that stop on their own interval hold the truth (95 expected at least).

    Exact intervals of 95 % would fail this with a probability of 0.15 %.
    """
    monkeypatch.setattr("auditor.tables.tabular_plan.LEAST", 20)
    schema = domain(*rules)
    causal, group = brute(FUNCTIONS[name], (1, 3), schema)
    held = {"causal": 0, "group": 0}
    for seed in range(100):
        found = scores(FUNCTIONS[name], schema, seed, confidence=0.95, epsilon=0.12, max_samples=320)
        for key, truth in (("causal", causal), ("group", group)):
            estimate = found[key].estimate
            held[key] += estimate.low - 1e-12 <= truth <= estimate.high + 1e-12
    assert min(held.values()) >= 88, held


@cache
def every_set(name: str) -> dict[frozenset[int], tuple[float, float]]:
    sets = (chosen for size in range(1, 6) for chosen in itertools.combinations(range(5), size))
    return {frozenset(chosen): brute(FUNCTIONS[name], chosen, domain()) for chosen in sets}


def minimal_by_force(name: str, theta: float, which: int) -> set[frozenset[str]]:
    above = [chosen for chosen, scored in every_set(name).items() if scored[which] > theta]
    return {frozenset(NAMES[i] for i in s) for s in above if not any(t < s for t in above)}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("measure", ["causal", "group"])
@pytest.mark.parametrize("theta", [0.2, 0.55])
def test_pruned_search_finds_what_brute_force_finds(name: str, measure: str, theta: float) -> None:
    schema = domain()
    truth = minimal_by_force(name, theta, 0 if measure == "causal" else 1)
    settings = ThemisOptions(theta=theta, measure=measure)  # type: ignore[arg-type]
    tested = {}
    for prune in (True, False):
        result = search(
            Evaluator(FUNCTIONS[name], schema.protecting(NAMES)), settings, np.random.default_rng(7), prune=prune
        )
        assert {frozenset(s.columns) for s in result.minimal_sets} == truth
        tested[prune] = result.counts["sets_tested"]
    assert tested[True] <= tested[False] == 31


def test_search_by_sampling_finds_them_too() -> None:
    """Scores far enough from theta to be decided by their intervals; pruning spares the model."""
    schema = domain()
    theta = 0.61
    truth = minimal_by_force("threshold", theta, 0)
    settings = ThemisOptions(theta=theta, max_samples=8000, epsilon=0.01)
    asked = {}
    for prune in (True, False):
        evaluator = Evaluator(threshold, schema.protecting(NAMES))
        result = search(evaluator, settings, np.random.default_rng(7), prune=prune)
        assert {frozenset(s.columns) for s in result.minimal_sets} == truth
        asked[prune] = evaluator.evaluations
    assert asked[True] < asked[False] / 2


def test_the_paper_s_rule_stops_at_zero_and_ours_does_not() -> None:
    """A score of 2 %: by the Wald rule most runs end after 11 rows with exactly 0."""
    schema = Schema(columns=(column("x", 50), column("sex", 2, protected=True)), favourable=1)

    def predict(rows: Any) -> Any:
        return ((rows[:, 0] == 7) & (rows[:, 1] == 1)).astype(int)

    zero = 0
    for seed in range(60):
        literal = scores(predict, schema, seed, protocol="themis")["causal"].estimate
        zero += literal.value == 0 and literal.n == 11
        ours = scores(predict, schema, seed, max_samples=2000)["causal"].estimate
        assert ours.low <= 0.02 <= ours.high
    assert zero >= 40


def test_hidden_changes_are_in_the_lattice() -> None:
    schema = domain()
    result = themis.run(Evaluator(only_together, schema), ThemisOptions(), np.random.default_rng(7))
    by = {s.columns: s for s in result.lattice}
    assert by[("sex", "race")].minimal == by[("sex", "race")].rows * 4 // 5 // 4
    assert by[("sex",)].minimal == by[("sex",)].changes


def test_given_rows_are_judged_as_they_are() -> None:
    schema = domain()
    data = np.array([[0, 0, 0, 0, 0], [0, 1, 0, 1, 1], [0, 0, 0, 0, 2], [0, 0, 0, 1, 0]], dtype=np.int32)
    found = scores(only_together, schema, data=data)
    assert found["apparent_causal"].estimate.value == 0.5
    assert "apparent_group" not in found  # groups of one and two rows have no share to speak of
    data = np.concatenate([np.tile(data, (30, 1)), [[0, 1, 0, 0, 0]]]).astype(np.int32)
    found = scores(only_together, schema, data=data)
    assert found["apparent_group"].estimate.note.endswith("1 group of fewer than 30 rows is left out")
    assert found["apparent_group"].estimate.value == 1.0
    assert found["apparent_causal"].estimate.n == 121


GIVEN_MODEL = """
import numpy as np
def rich_and_married(rows):
    return np.where((rows[:, 0].astype(float) > 7000) & (rows[:, 1] == "married"), "yes", "no")
def rich_frame(frame):
    return np.where((frame["balance"] > 7000) & (frame["marital"] == "married"), "yes", "no")
rich_frame.frame = True
def rich_slow(rows):
    return rich_and_married(rows)
rich_slow.slow = True
def older(rows):
    return (rows[:, 2].astype(float) > 40.25).astype(int)
"""


@pytest.fixture
def customers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, str, float]]]:
    """4,000 people; a balance over thousands of whole numbers and an age in decimals, so that both are binned."""
    rng = np.random.default_rng(13)
    balance = np.round(rng.exponential(2200, 4000)).astype(int)
    marital = rng.choice(["married", "single", "divorced"], 4000)
    age = np.round(rng.uniform(18, 80, 4000), 2)
    rows = list(zip(balance.tolist(), marital.tolist(), age.tolist(), strict=True))
    lines = ["balance,marital,age,y", *(f"{b},{m},{a},{'yes' if b > 900 else 'no'}" for b, m, a in rows)]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "given_model.py").write_text(GIVEN_MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield rows
    sys.modules.pop("given_model", None)


@pytest.mark.parametrize("function", ["rich_and_married", "rich_frame", "rich_slow"])
def test_given_rows_are_asked_as_they_are(customers: list[tuple[int, str, float]], function: str) -> None:
    """No bin stands in for a balance: the share is that of walking through the rows with every marital status."""
    statuses = ("married", "single", "divorced")
    truth = sum(len({b > 7000 and m == "married" for m in statuses}) > 1 for b, _, _ in customers)
    assert 80 < truth < 400
    plan = TabularPlan(
        data="people.csv", target="y", model=f"python:given_model:{function}", protected=("marital",),
        options={"max_samples": 1000}, delta=0.01,
    )  # fmt: skip
    run = audit_table(plan)
    first = run.result.scores[0]
    assert (first.name, first.population) == ("apparent_causal", "given rows")
    assert (first.estimate.value, first.estimate.n) == (truth / 4000, 4000)
    assert run.record["findings"][0]["verdict"] == "shown"
    assert all(pair.row["balance"] > 7000 for pair in run.result.pairs)
    assert {str(pair.row["balance"]) for pair in run.result.pairs} <= {str(b) for b, _, _ in customers}
    assert run.path is not None
    with (run.path / "pairs.csv").open(encoding="utf-8", newline="") as file:
        found = {(int(row["balance"]), float(row["age"])) for row in csv.DictReader(file)}
    rows = {(b, a) for b, _, a in customers}
    assert found & rows == {(b, a) for b, a in rows if b > 7000}
    notes = run.record["tabular"]["notes"]
    assert any("Given rows in scores were asked with the values that they have" in n for n in notes)
    assert "(one value for each bin of balance and age)" in " ".join(run.to_text(full=True).split())


def test_a_protected_value_is_asked_as_it_is(customers: list[tuple[int, str, float]]) -> None:
    """A row keeps its own age beside the ages that stand for the other bins, in the label and in its group."""
    table = read_table("people.csv")
    schema = infer(table, "y", ["age"])
    schema, given = schema.with_rows(table)
    asked: list[Any] = []

    def older(rows: Any) -> Any:
        asked.append(np.array(rows[:, [0, 2]], dtype=float))
        return (rows[:, 2].astype(float) > 40.25).astype(int)

    labels = Evaluator(older, schema).grid(given)
    own = schema.binned(given)[:, schema.names.index("age")]
    ages = np.array([age for _, _, age in customers])
    assert labels[np.arange(4000), own].tolist() == (ages > 40.25).astype(int).tolist()
    everything = np.concatenate(asked)
    assert set(everything[:, 0].tolist()) == {float(b) for b, _, _ in customers}
    assert set(everything[:, 1].tolist()) == {*ages.tolist(), *map(float, schema.columns[2].values)}


def test_rules_see_given_values(customers: list[tuple[int, str, float]]) -> None:
    table = read_table("people.csv")
    schema = replace(infer(table, "y", ["marital"]), constraints=("balance > 7000 implies marital == married",))
    schema, given = schema.with_rows(table)
    possible = Evaluator(lambda rows: np.zeros(len(rows), int), schema).possible(given)
    rich = np.array([b > 7000 for b, _, _ in customers])
    assert possible.sum(axis=1).tolist() == np.where(rich, 1, 3).tolist()
