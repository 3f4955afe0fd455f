"""What the SG paper reports, at small budgets, on the coded data it used (its Tables 3, 7, 8 and 11)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tabular as bench

pytestmark = [
    pytest.mark.paper,
    pytest.mark.slow,
    pytest.mark.skipif(not bench.available(), reason="needs ../shared/data (coded Adult and German)"),
]
pytest.importorskip("lime")
pytest.importorskip("z3")


def search(limit: int, **options: Any) -> tuple[int, dict[str, Any]]:
    what = bench.subject("census/sex", "LR")
    result = bench.sg_search(what, what.train, limit, 0, **options).result()
    return result.counts["discriminatory"], result.details


def test_at_least_what_the_literal_algorithm_finds() -> None:
    theirs = bench.sg_literal(bench.subject("census/sex", "LR"), 60, 0)
    assert sum(theirs.generated.values()) == 60
    assert search(60)[0] >= sum(theirs.found.values())


def test_more_finds_and_more_faults_than_the_literal_algorithm_where_many_cases_discriminate() -> None:
    """German credit, age, decision tree: the literal algorithm finds 451 to 757 of 1,000 behind 7 to 10 sets of leaves."""
    what = bench.subject("credit/age", "DT")
    schema = what.schema
    for seed in (0, 1):
        result = bench.sg_search(what, what.train, 1000, seed).result()
        rows = result.finds
        every = np.repeat(rows, len(schema.combos), axis=0)
        every[:, schema.protected_index] = np.tile(schema.combos, (len(rows), 1))
        leaves = what.model.apply(schema.decode(every)).reshape(len(rows), -1)
        assert result.counts["discriminatory"] == len(rows) > 700
        assert len(np.unique(leaves, axis=0)) > 10


def test_given_rows_uncover_more_than_random_ones() -> None:
    """Table 8, census, sex: 20 of 500 against 5 of 500."""
    what = bench.subject("census/sex", "LR")
    given, drawn = (
        bench.sg_search(what, rows, 500, 0, phases=()).result().counts["discriminatory"] for rows in (what.train, None)
    )
    assert given > drawn
    assert 10 <= given <= 40


def test_local_search_contributes_most_and_global_search_is_not_reached() -> None:
    """Table 3, census, sex: no global inputs; Table 11: fewer finds without local search."""
    found, details = search(150, protocol="sg", samples=2000)
    assert details["phases"]["global"]["generated"] == 0
    assert details["phases"]["local"]["generated"] > details["phases"]["seed"]["generated"]
    without, _ = search(150, protocol="sg", samples=2000, phases=("global",))
    assert found > without


def test_a_fault_is_a_set_of_leaves_with_labels() -> None:
    what = bench.subject("census/sex", "LR")
    codes = what.train
    tree = bench.Surrogate.of(codes[:2000], (codes[:2000, 0] > 3).astype(np.int64), np.random.default_rng(0))
    cases = codes[[0, 1, 2]].copy()
    cases[:, 0] = 1, 2, 6
    assert tree.fidelity > 0.99
    assert (tree.paths(cases), tree.paths(cases[2:]), tree.paths(cases[:0])) == (2, 1, 0)
    assert bench.fault_count(tree, what.schema, cases, np.array([[0, 1]] * 3)) == 2
    assert bench.fault_count(tree, what.schema, cases, np.array([[0, 1], [1, 0], [0, 1]])) == 3


def test_more_paths_than_random_inputs_take() -> None:
    """Table 7, limit 1,000: 2.66 times as many on average."""
    assert bench.coverage(bench.subject("census/sex", "LR"), 1000).ratio >= 2
