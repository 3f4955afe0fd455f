"""SG on planted trees whose branches are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor.tables.evaluate import Evaluator
from auditor.tables.row_schema import Schema, uniform
from auditor.tables.sg import Search, run
from auditor.tables.tabular_plan import SgOptions
from tests.asking import column

pytest.importorskip("lime")
DEPTH, CODES = 6, 10
STAIRS = (column(f"c{j}", CODES, ordered=True) for j in range(DEPTH))
SCHEMA = Schema(columns=(*STAIRS, column("group", 2, protected=True)))
LIMIT = 400
OPTIONS = SgOptions(limit=LIMIT, samples=1000)


def depth(rows: NDArray[Any]) -> NDArray[np.int64]:
    """How many decisions of a staircase a row passes: column j must be above 7 to reach decision j + 1."""
    return np.cumprod(rows[:, :DEPTH] > 7, axis=1).sum(axis=1).astype(np.int64)


def staircase(rows: NDArray[Any]) -> NDArray[np.int64]:
    """The label is the branch; behind the last decision it depends on the group (0.2^6 = 0.0064 % of cases)."""
    reached = depth(rows)
    return np.where(reached == DEPTH, DEPTH + rows[:, DEPTH].astype(np.int64), reached)


def test_sg_reaches_branches_that_uniform_sampling_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auditor.tables.sg.RANK_GLOBAL", 20.0)
    monkeypatch.setattr("auditor.tables.sg.THRESHOLD", 0.0)
    one = Search(Evaluator(staircase, SCHEMA), OPTIONS, None, np.random.default_rng(1))
    one.go()
    plain = uniform(SCHEMA, LIMIT, np.random.default_rng(1))
    assert depth(plain).max() < DEPTH - 1
    assert set(range(DEPTH + 1)) == set(depth(np.array(one.cases)).tolist())
    assert sum(one.hits) > 0


def test_finds_are_those_behind_the_last_decision() -> None:
    rows = uniform(SCHEMA, 300, np.random.default_rng(0))
    rows[0, :DEPTH] = 9
    result = run(Evaluator(staircase, SCHEMA), OPTIONS, np.random.default_rng(1), rows)
    assert result.finds is not None
    assert len(result.finds) >= 2  # of 64 in 10^6 cases
    assert (depth(result.finds) == DEPTH).all()


def test_a_model_that_ignores_the_group_yields_nothing() -> None:
    result = run(Evaluator(depth, SCHEMA), SgOptions(limit=200, samples=300), np.random.default_rng(1))
    assert result.counts["generated"] == 200
    assert result.counts["discriminatory"] == 0
