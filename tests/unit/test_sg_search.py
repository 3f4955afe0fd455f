"""SG's queue, seeds, neighbourhoods, options and whole runs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.core.errors import ConfigError
from auditor.tables import sg, sg_inputs
from auditor.tables.coded import uniform
from auditor.tables.columns import Column
from auditor.tables.evaluate import Evaluator, Limit
from auditor.tables.finds import TabularResult, answers_of, with_examples
from auditor.tables.method_options import SgOptions
from auditor.tables.row_schema import Schema
from auditor.tables.sg import Search, run
from auditor.tables.sg_inputs import Entry, Frontier

pytest.importorskip("lime")
SCHEMA = Schema(
    columns=(
        Column(name="age", kind="integer", codes=20, ordered=True),
        Column(name="job", kind="category", codes=4, values=("w", "x", "y", "z")),
        Column(name="sex", kind="integer", codes=2, protected=True),
        Column(name="hours", kind="integer", codes=30, ordered=True),
    )
)


def numbers(schema: Schema, rule: Any) -> Any:
    """A model from codes to labels, whatever the raw values are."""

    def predict(rows: NDArray[Any]) -> NDArray[np.int64]:
        frame = {name: rows[:, j] for j, name in enumerate(schema.names)}
        codes = np.stack([c.encode(frame[c.name]) for c in schema.columns], axis=1)
        return np.asarray(rule(codes), dtype=np.int64)

    return predict


def slab(codes: NDArray[np.int32]) -> NDArray[np.bool_]:
    return codes[:, 0] + codes[:, 3] + 3 * codes[:, 2] > 27


def search(rng: int = 1, rule: Any = slab, schema: Schema = SCHEMA, **options: Any) -> TabularResult:
    budget = options.pop("budget", None)
    evaluator = Evaluator(numbers(schema, rule), schema, budget=budget, keep=budget is not None)
    data = options.pop("data", uniform(schema, 300, np.random.default_rng(0)))
    settings = SgOptions.of({"limit": 120, "samples": 400, **options})
    result = run(evaluator, settings, np.random.default_rng(rng), data)
    return with_examples(evaluator, result, answers_of(evaluator, result.finds))


def entry(i: int, **more: Any) -> Entry:
    return Entry(np.array([i], dtype=np.int32), more.pop("phase", "local"), **more)


def drain(frontier: Frontier) -> list[int]:
    return [int(frontier.pop().row[0]) for _ in range(len(frontier))]


def test_higher_priority_first_then_order_of_arrival() -> None:
    frontier = Frontier(np.random.default_rng(0))
    frontier.push_seeds(np.array([[20], [21]], dtype=np.int32), 5.0)
    frontier.push(entry(1), 1.3)
    frontier.push(entry(2, arm=3), 9.2)  # without arms the rank alone decides
    frontier.push(entry(3), 9.8)
    frontier.push(entry(4), 9.8)
    assert drain(frontier) == [3, 4, 2, 20, 21, 1]


def test_the_learned_order_follows_seeds_whose_descendants_succeed() -> None:
    frontier = Frontier(np.random.default_rng(0), 1)
    for i in range(200):
        frontier.push(entry(i, arm=0, origin=i % 2), 9.0)
    taken = [frontier.pop() for _ in range(90)]
    for one in taken:
        frontier.learn(one, one.origin == 1)
    after = [frontier.pop().origin for _ in range(40)]
    assert after.count(1) >= 35  # in turn it would be 20


def test_neighbourhoods_are_distributed_as_limes() -> None:
    from auditor.tables.sg_inputs import Neighbourhood

    rng = np.random.default_rng(0)
    data = uniform(SCHEMA, 500, rng)
    data[:, 1] = np.where(rng.random(500) < 0.7, 0, data[:, 1])
    row = data[3]
    for around in (False, True):
        ours = Neighbourhood(SCHEMA, data, around=around, rng=rng)
        mine = ours.draw(row, 20_000)
        _, theirs = ours.explainer._LimeTabularExplainer__data_inverse(row.astype(float), 20_000)
        theirs = np.clip(np.rint(theirs), 0, SCHEMA.cards - 1)
        assert mine[0].tolist() == row.tolist()
        for j, card in enumerate(SCHEMA.cards.tolist()):
            a = np.bincount(mine[:, j], minlength=card) / len(mine)
            b = np.bincount(theirs[:, j].astype(int), minlength=card) / len(theirs)
            assert np.abs(np.cumsum(a) - np.cumsum(b)).max() < 0.02


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limits": 3}, "no option 'limits'"),
        ({"limit": True}, "limit must be a valid integer"),
        ({"threshold": 1.5}, "no option 'threshold'; options: limit, protocol, samples"),
        ({"seed_share": 0.1}, "was removed in 0.3; use --protocol sg"),
        ({"neighbourhood": "asked"}, "was removed in 0.3; use --protocol sg"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SgOptions.of(options)


def test_defaults_are_the_papers_and_its_protocol_has_its_order() -> None:
    assert SgOptions().samples == 5000
    assert (sg_inputs.CLUSTERS, sg.THRESHOLD) == (4, 0.3)
    assert sg.RANK_LOCAL > sg.RANK_SEED > sg.RANK_GLOBAL
    assert search(protocol="sg", limit=5).options["neighbourhood"] == "marginal"
    assert search(limit=5).options["neighbourhood"] == "around"


def test_finds_are_real_distinct_and_counted_by_phase() -> None:
    result = search()
    found = result.finds
    assert found is not None
    assert result.counts["generated"] == 120
    assert result.counts["discriminatory"] == len(found) > 40
    assert len(np.unique(found[:, [0, 1, 3]], axis=0)) == len(found)
    one, other = found.copy(), found.copy()
    one[:, 2], other[:, 2] = 0, 1
    assert (slab(one) != slab(other)).all()
    phases = result.details["phases"]
    assert sum(p["generated"] for p in phases.values()) == 120
    assert sum(p["discriminatory"] for p in phases.values()) == len(found)
    assert phases["local"]["discriminatory"] > phases["seed"]["discriminatory"]
    assert result.sampling == "directed"
    assert result.scores == ()
    assert result.status == "complete"
    assert result.pairs
    assert result.pairs[0].changed == ("sex",)
    json.dumps(result.to_record(), allow_nan=False)


@pytest.mark.parametrize("protocol", ["default", "sg"])
def test_every_local_input_satisfies_its_toggled_constraint(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:

    asked: list[tuple[Any, Any, Any]] = []
    sticky = sg.PathSolver.sticky

    def spy(self: Any, row: Any, box: Any) -> Any:
        solution = sticky(self, row, box)
        asked.append((row, box, solution))
        return solution

    monkeypatch.setattr(sg.PathSolver, "sticky", spy)
    search(protocol=protocol)
    solved = [(row, box, s) for row, box, s in asked if s is not None]
    assert len(solved) > 50
    for row, box, solution in solved:
        assert (np.array(box.low) <= solution).all()
        assert (solution <= np.array(box.high)).all()
        assert (row != solution).sum() == 1  # sticky: only the toggled column moves
        assert row[2] == solution[2]


def test_a_budget_ends_the_search_with_what_was_found() -> None:
    result = search(budget=Limit(evaluations=150))
    assert result.status == "partial"
    assert "150" in result.status_reason
    assert result.counts["evaluations"] <= 150
    assert result.options["neighbourhood"] == "asked"
    assert result.counts["generated"] == 75
    assert result.counts["discriminatory"] > 0
    assert result.pairs  # from answers that are known
    assert result.lattice[0].changes == 2 * result.counts["discriminatory"]


def test_rules_hold_for_everything_generated() -> None:
    pytest.importorskip("z3")
    schema = Schema(columns=SCHEMA.columns, constraints=("hours <= age",))
    data = uniform(schema, 400, np.random.default_rng(0))
    data = data[schema.on_manifold(data)]
    options = SgOptions.of({"limit": 80, "samples": 300})
    one = Search(Evaluator(numbers(schema, slab), schema), options, data, np.random.default_rng(2))
    one.go()
    assert len(one.cases) == 80
    assert schema.on_manifold(np.array(one.cases)).all()
    assert one.solver.counts["z3"] > 0
    assert sum(one.hits) > 12  # 7 of 80 uniform rows
