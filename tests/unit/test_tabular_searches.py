"""Aequitas and SG: what a search finds, counts and may cost; walks, paths and solutions against literal ones."""

from __future__ import annotations

import itertools
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.tables import aequitas as aequitas_search
from auditor.tables import sg, themis
from auditor.tables.aequitas import run, share_estimate
from auditor.tables.columns import Column
from auditor.tables.evaluate import Evaluator
from auditor.tables.finds import TabularResult, with_examples
from auditor.tables.row_schema import Schema, uniform
from auditor.tables.sg import Neighbourhood
from auditor.tables.sg_paths import Box, PathGrower, PathSolver, Predicate
from auditor.tables.tabular_plan import AequitasOptions, SgOptions, ThemisOptions

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from literal_aequitas import aequitas

SEX = Column(name="sex", kind="integer", codes=2, protected=True)


def column(name: str, codes: int, **more: Any) -> Column:
    return Column(name=name, kind="integer", codes=codes, **({"ordered": True} | more))


def slab(x: Any) -> Any:
    """Women need 6 more of a + b."""
    return (x[:, 1] + x[:, 2] >= 20 + 6 * (x[:, 0] == 0)).astype(int)


SLAB = Schema(columns=(SEX, column("a", 20), column("b", 20), column("c", 3)))


def walked(seed: int = 1, **options: Any) -> Any:
    return run(Evaluator(slab, SLAB), AequitasOptions.of({"trials": 0, **options}), np.random.default_rng(seed))


def test_directed_finds_stay_out_of_the_share() -> None:
    truth = share_estimate(Evaluator(slab, SLAB), np.random.default_rng(0))
    inputs = itertools.product(range(20), range(20))
    assert truth.low == truth.high == truth.value == sum(20 <= a + b < 26 for a, b in inputs) / 400
    result = walked(global_n=400, local_n=100)
    (score,) = result.scores
    assert (score.name, score.estimate.n) == ("discriminatory_share", 400)
    assert score.estimate.low < truth.value < score.estimate.high
    assert result.counts["discriminatory"] / result.counts["generated"] > score.estimate.high
    ended = walked(max_found=1, global_n=2000)  # a sample that ends with a find is no random sample
    assert not ended.scores
    assert ended.notes


def test_literal_and_vectorised_walks_agree_in_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Same trials, as printed: the mean share of finds over 12 runs each differs by chance only."""
    literal, ours = [], []
    monkeypatch.setattr(aequitas_search, "STEP", 0.02)
    options = {"global_n": 40, "local_n": 30}
    for seed in range(12):
        outcome = aequitas(
            lambda row: int(row[1] + row[2] >= 20 + 6 * (row[0] == 0)),
            SLAB.cards.tolist(), [0], delta_v=0.02, delta_pr=0.02, rng=random.Random(seed), **options,
        )  # fmt: skip
        literal.append(outcome.share)
        result = walked(protocol="aequitas", seed=seed, **options)
        ours.append(result.counts["discriminatory"] / result.counts["generated"])
    spread = np.sqrt(np.var(literal, ddof=1) / 12 + np.var(ours, ddof=1) / 12)
    assert abs(np.mean(literal) - np.mean(ours)) < 4 * spread + 0.02
    returning = walked(seed=0, **options)
    assert returning.counts["discriminatory"] / returning.counts["generated"] > np.mean(literal)


@pytest.mark.parametrize(
    ("combos", "trials", "size"), [(2, 400, 1000), (114, 35, 1000), (5_000, 1, 800), (90_000, 1, 100)]
)
def test_the_share_is_estimated_within_what_its_rows_may_cost(combos: int, trials: int, size: int) -> None:
    schema = Schema(columns=(column("p", combos, protected=True), column("x", 10)))
    assert AequitasOptions().estimate(schema, None) == (trials, size)
    assert AequitasOptions(trials=400).estimate(schema, None) == (400, 1000)
    assert AequitasOptions().estimate(schema, 4 * combos)[0] == 0


SG = Schema(
    columns=(
        column("age", 20),
        Column(name="job", kind="category", codes=4, values=("w", "x", "y", "z")),
        SEX,
        column("hours", 30),
    )
)


def older(codes: Any) -> Any:
    return codes[:, 0] + codes[:, 3] + 3 * codes[:, 2] > 27


def decide(rows: Any) -> Any:
    """`older`, whatever the raw values are."""
    codes = [c.encode(rows[:, j]) for j, c in enumerate(SG.columns)]
    return older(np.stack(codes, axis=1)).astype(np.int64)


def searched(**options: Any) -> TabularResult:
    pytest.importorskip("lime")
    most = options.pop("max_evaluations", None)
    evaluator = Evaluator(decide, SG, max_evaluations=most, keep=most is not None)
    chosen = SgOptions.of({"limit": 120, "samples": 400, **options})
    result = sg.run(evaluator, chosen, np.random.default_rng(1), uniform(SG, 300, np.random.default_rng(0)))
    return with_examples(evaluator, result)[0]


def test_neighbourhoods_are_distributed_as_limes() -> None:
    pytest.importorskip("lime")
    rng = np.random.default_rng(0)
    data = uniform(SG, 500, rng)
    data[:, 1] = np.where(rng.random(500) < 0.7, 0, data[:, 1])
    row = data[3]
    for around in (False, True):
        ours: Any = Neighbourhood(SG, data, around=around, rng=rng)
        mine = ours.draw(row, 20_000)
        _, theirs = ours.explainer._LimeTabularExplainer__data_inverse(row.astype(float), 20_000)
        theirs = np.clip(np.rint(theirs), 0, SG.cards - 1)
        assert mine[0].tolist() == row.tolist()
        for j, card in enumerate(SG.cards.tolist()):
            a, b = (np.bincount(x[:, j].astype(int), minlength=card) / len(x) for x in (mine, theirs))
            assert np.abs(np.cumsum(a) - np.cumsum(b)).max() < 0.02


def test_sg_finds_are_real_distinct_and_counted_by_phase_and_a_budget_ends_with_what_was_found() -> None:
    result = searched()
    found = result.finds
    assert result.counts["generated"] == 120
    assert result.counts["discriminatory"] == len(found) > 40
    assert len(np.unique(found[:, [0, 1, 3]], axis=0)) == len(found)
    one, other = found.copy(), found.copy()
    one[:, 2], other[:, 2] = 0, 1
    assert (older(one) != older(other)).all()
    phases: Any = result.details["phases"]
    assert sum(p["generated"] for p in phases.values()) == 120
    assert sum(p["discriminatory"] for p in phases.values()) == len(found)
    assert phases["local"]["discriminatory"] > phases["seed"]["discriminatory"]
    assert (result.sampling, result.scores, result.status) == ("directed", (), "complete")
    assert result.pairs[0].changed == ("sex",)
    assert result.options["neighbourhood"] == "around"
    json.dumps(result.to_record(), allow_nan=False)
    ended = searched(max_evaluations=150)
    assert (ended.status, "150" in ended.status_reason) == ("partial", True)
    assert ended.counts["evaluations"] <= 150
    assert (ended.options["neighbourhood"], ended.counts["generated"]) == ("asked", 75)
    assert ended.pairs  # from answers that are known
    assert ended.lattice[0].changes == 2 * ended.counts["discriminatory"] > 0


def test_rules_hold_for_everything_that_sg_generates() -> None:
    pytest.importorskip("lime")
    pytest.importorskip("z3")
    schema = Schema(columns=SG.columns, constraints=("hours <= age",))
    data = uniform(schema, 400, np.random.default_rng(0))
    options = SgOptions.of({"limit": 80, "samples": 300})
    one = sg.Search(Evaluator(decide, schema), options, data[schema.on_manifold(data)], np.random.default_rng(2))
    one.go()
    assert len(one.cases) == 80
    assert schema.on_manifold(np.array(one.cases)).all()
    assert one.solver.counts["z3"] > 0
    assert sum(one.hits) > 12  # 7 of 80 uniform rows


CARDS = (4, 3, 5)
SOME = st.lists(
    st.integers(0, 2).flatmap(lambda j: st.builds(Predicate, st.just(j), st.booleans(), st.integers(0, CARDS[j] - 2))),
    max_size=6,
)
ROW = st.tuples(*(st.integers(0, c - 1) for c in CARDS)).map(lambda t: np.array(t, dtype=np.int32))


def holds(p: Predicate, codes: Any) -> Any:
    return (codes[:, p.column] <= p.cut) == p.below


everything = np.array(list(itertools.product(*map(range, CARDS))), dtype=np.int32)


def test_the_path_is_that_of_the_whole_tree() -> None:
    tree = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(3)
    cards = (30, 20, 25)
    data = rng.integers(0, cards, (1000, 3)).astype(np.int32)
    labels = np.where(data[:, 0] > 11, (data[:, 1] > 6).astype(int), 2 * (data[:, 2] > 17))
    grower = PathGrower(cards, rng)
    fitted = tree.DecisionTreeClassifier(random_state=0).fit(data, labels).tree_
    for row in data[:40]:
        expected, node = [], 0
        while fitted.children_left[node] != -1:
            j, threshold = int(fitted.feature[node]), float(fitted.threshold[node])
            below = bool(row[j] <= threshold)
            child = (fitted.children_left if below else fitted.children_right)[node]
            share = fitted.n_node_samples[child] / fitted.n_node_samples[node]
            expected.append(Predicate(j, below, int(np.floor(threshold)), float(share)))
            node = child
        assert grower.grow(row, data, labels) == tuple(expected)


@given(SOME, ROW)
@settings(max_examples=25, deadline=None)
def test_tied_columns_get_a_possible_row_that_changes_fewest(path: list[Predicate], row: Any) -> None:
    pytest.importorskip("z3")
    columns = tuple(column(name, card, protected=name == "a") for name, card in zip("abc", CARDS, strict=True))
    schema = Schema(columns=columns, constraints=("b <= c", "a == 3 implies c in [0, 1]"))
    solver, box = PathSolver(schema, np.random.default_rng(0)), Box.of(path, CARDS)
    possible = np.all([np.ones(len(everything), dtype=bool), *(holds(p, everything) for p in path)], axis=0)
    mask = possible & schema.on_manifold(everything)
    sticky = solver.sticky(row, box)
    for solution in (sticky, solver.free(row, box)):
        assert (solution is not None) == mask.any()
        if solution is not None:
            assert schema.on_manifold(solution[None])[0]
            assert all(holds(p, solution[None])[0] for p in path)
    clipped = box.clip(row)
    assert (clipped is not None) == possible.any()
    if clipped is not None:  # without rules it is the nearest row
        assert (clipped != row).sum() == (everything[possible] != row).sum(axis=1).min()
    if sticky is not None and clipped is not None:
        assert (sticky != clipped).sum() == (everything[mask] != clipped).sum(axis=1).min()


def test_an_immutable_column_keeps_its_value_under_rules() -> None:
    pytest.importorskip("z3")
    columns = (column("a", 2, protected=True), column("b", 5, immutable=True), column("c", 5))
    solver = PathSolver(Schema(columns=columns, constraints=("b == c",)), np.random.default_rng(0))
    row = np.array([0, 2, 2], dtype=np.int32)
    beyond, at = (solver.sticky(row, Box.of([Predicate(2, False, cut)], [2, 5, 5])) for cut in (2, 1))
    assert beyond is None
    assert at.tolist() == [0, 2, 2]


def test_an_exact_search_of_sets_asks_about_each_row_once() -> None:
    schema = Schema(columns=(SEX, column("a", 5, protected=True), column("b", 5, protected=True), column("c", 3)))
    evaluator = Evaluator(lambda x: (x[:, 1] + x[:, 2] + 3 * (x[:, 0] == 0) >= 5).astype(int), schema)
    found = themis.search(evaluator, ThemisOptions.of({"theta": 0.9}), np.random.default_rng(1))
    assert found.counts["sets_tested"] == 7
    assert evaluator.evaluations == schema.size == 150
