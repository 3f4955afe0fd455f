from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.errors import ConfigError
from auditor.tables import aequitas_walk
from auditor.tables.aequitas import run, share_estimate
from auditor.tables.aequitas_walk import Probabilities, step
from auditor.tables.coded import case_keys
from auditor.tables.columns import Column
from auditor.tables.evaluate import Evaluator, Limit
from auditor.tables.method_options import AequitasOptions
from auditor.tables.row_schema import Schema

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from literal_aequitas import aequitas

SEX = Column(name="sex", kind="integer", codes=2, protected=True)


def column(name: str, codes: int, **kwargs: object) -> Column:
    return Column(name=name, kind="integer", codes=codes, ordered=True, **kwargs)  # type: ignore[arg-type]


def slab(x: np.ndarray) -> np.ndarray:
    """Women need 6 more of a + b: 6 of every 39 or so sums are discriminatory."""
    return (x[:, 1] + x[:, 2] >= 20 + 6 * (x[:, 0] == 0)).astype(int)


SLAB = Schema(columns=(SEX, column("a", 20), column("b", 20), column("c", 3)))


def search(predict: Any = slab, schema: Schema = SLAB, seed: int = 1, **options: Any) -> Any:
    evaluator = Evaluator(predict, schema, budget=options.pop("budget", None))  # type: ignore[arg-type]
    return run(evaluator, AequitasOptions.of({"trials": 0, **options}), np.random.default_rng(seed))


@pytest.mark.parametrize("protocol", ["default", "aequitas"])
def test_finds_are_distinct_true_and_counted_once(protocol: str) -> None:
    result = search(protocol=protocol, global_n=60, local_n=60, generated=500)
    rows = result.finds
    assert len(rows) == result.counts["discriminatory"] > 60
    assert len(np.unique(case_keys(SLAB, rows))) == len(rows)
    assert Evaluator(slab, SLAB).judge(rows).discriminatory.all()
    assert result.counts["generated"] <= 500
    assert sum(p["discriminatory"] for p in result.details["phases"].values()) == len(rows)
    assert sum(p["generated"] for p in result.details["phases"].values()) == result.counts["generated"]
    assert result.sampling == "directed"
    result.to_record()


def test_directed_finds_stay_out_of_the_rate() -> None:
    truth = share_estimate(Evaluator(slab, SLAB), np.random.default_rng(0))
    assert truth.method == "enumeration"
    assert truth.low == truth.high == truth.value
    inputs = [(a, b) for a in range(20) for b in range(20)]
    assert truth.value == sum(20 <= a + b < 26 for a, b in inputs) / 400
    result = search(global_n=400, local_n=100)
    (score,) = result.scores
    assert score.name == "discriminatory_share"
    assert score.estimate.n == 400
    assert score.estimate.low < truth.value < score.estimate.high
    assert result.counts["discriminatory"] / result.counts["generated"] > score.estimate.high


def test_a_global_phase_that_ends_with_a_find_gives_no_rate() -> None:
    result = search(max_found=1, global_n=2000)
    assert not result.scores
    assert result.notes


def test_a_limit_of_evaluations_is_kept_and_reported() -> None:
    asked = []

    def counted(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        return slab(x)

    result = search(counted, budget=Limit(evaluations=301), generated=10_000)
    assert sum(asked) <= 301
    assert result.counts["evaluations"] <= 301
    assert result.status == "partial"
    assert "limit" in result.status_reason
    assert result.counts["discriminatory"] > 0


def test_impossible_rows_are_not_finds() -> None:
    schema = Schema(
        columns=(SEX, column("husband", 2), column("b", 30)), constraints=("husband == 1 implies sex == 1",)
    )

    def rule(x: np.ndarray) -> np.ndarray:
        return ((x[:, 0] == 1) & (x[:, 1] == 1)).astype(int)  # tells sexes apart among husbands only

    result = search(rule, schema, generated=60)
    assert result.counts["discriminatory"] == 0
    assert result.counts["off_manifold"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "directed"}, "protocol must be"),
        ({"globl_n": 5}, "no option 'globl_n'"),
        ({"ask": "witness"}, "was removed in 0.3; use --method sg"),
        ({"level": 1.0}, "no option 'level'; options: generated, global_n"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        search(**options)


def test_batched_probabilities_equal_the_printed_updates() -> None:
    rng = random.Random(0)
    answers = [(rng.randrange(4), rng.choice([-1, 1]), rng.random() < 0.4) for _ in range(400)]
    column_p, down = [0.25] * 4, [0.5] * 4
    for p, delta, hit in answers:
        down[p] += 0.001 if hit == (delta == -1) else -0.001
        if hit:
            column_p[p] += 0.001
            column_p = [x / sum(column_p) for x in column_p]
    batched = Probabilities(4)
    for start in range(0, 400, 20):
        p, delta, hit = map(np.array, zip(*answers[start : start + 20], strict=True))
        batched.update(p, delta, hit)
    assert np.allclose(batched.down, down)
    assert np.allclose(batched.column, column_p, atol=2e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_moves_stay_in_the_domain_and_move(seed: int, cards: list[int]) -> None:
    rng = np.random.default_rng(seed)
    schema = Schema(columns=(SEX, *(column(f"c{j}", c) for j, c in enumerate(cards))))
    rows = np.stack([rng.integers(0, c, 30) for c in schema.cards], axis=1).astype(np.int32)
    columns = schema.movable_index
    if not len(columns):
        return
    chosen, delta, moved = step(rows, columns, schema.cards, Probabilities(len(columns)), rng)
    assert ((moved >= 0) & (moved < schema.cards)).all()
    assert ((moved != rows).sum(axis=1) == 1).all()
    change = (moved - rows)[np.arange(30), columns[chosen]]
    assert (np.sign(change) == np.sign(delta)).all()


def test_literal_and_vectorised_walks_agree_in_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Same trials, as printed: the mean share of finds over 12 runs each differs by chance only."""
    literal, ours = [], []
    monkeypatch.setattr(aequitas_walk, "STEP", 0.02)
    options = {"global_n": 40, "local_n": 30}
    for seed in range(12):
        outcome = aequitas(
            lambda row: int(row[1] + row[2] >= 20 + 6 * (row[0] == 0)),
            SLAB.cards.tolist(), [0], delta_v=0.02, delta_pr=0.02, rng=random.Random(seed), **options,
        )  # fmt: skip
        literal.append(outcome.share)
        result = search(protocol="aequitas", seed=seed, **options)
        ours.append(result.counts["discriminatory"] / result.counts["generated"])
    spread = np.sqrt(np.var(literal, ddof=1) / 12 + np.var(ours, ddof=1) / 12)
    assert abs(np.mean(literal) - np.mean(ours)) < 4 * spread + 0.02
    returning = search(seed=0, **options)
    assert returning.counts["discriminatory"] / returning.counts["generated"] > np.mean(literal)


@pytest.mark.parametrize(
    ("combos", "trials", "size"), [(2, 400, 1000), (10, 400, 1000), (114, 35, 1000), (5_000, 1, 800), (90_000, 1, 100)]
)
def test_the_share_is_estimated_within_what_its_rows_may_cost(combos: int, trials: int, size: int) -> None:
    columns = (
        Column(name="p", kind="integer", codes=combos, protected=True),
        Column(name="x", kind="integer", codes=10),
    )
    schema = Schema(columns=columns)
    assert AequitasOptions().estimate(schema, None) == (trials, size)
    assert AequitasOptions(trials=400).estimate(schema, None) == (400, 1000)
    assert AequitasOptions().estimate(schema, 4 * combos)[0] == 0
