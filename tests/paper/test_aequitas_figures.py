"""Figures of the Aequitas paper (section 5) on coded Adult with sex protected: direction and size, not digits."""

from __future__ import annotations

import statistics
import warnings
from typing import Any

import numpy as np
import pytest
import tabular as bench
from literal_aequitas import released

from auditor.tables.aequitas import run, share_estimate
from auditor.tables.evaluate import Evaluator
from auditor.tables.retraining import blind_vote
from auditor.tables.tabular_plan import AequitasOptions

pytestmark = [
    pytest.mark.paper,
    pytest.mark.slow,
    pytest.mark.skipif(not bench.available(), reason="../shared/data/adult is absent"),
]


def fitted(kind: str) -> bench.Subject:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bench.subject("census/sex", kind)


def shares(what: bench.Subject, **options: Any) -> list[float]:
    result = []
    for seed in range(4):
        evaluator = Evaluator(what.model.predict, what.schema)
        counts = run(
            evaluator, AequitasOptions.of({"trials": 0, "local_n": 200, **options}), np.random.default_rng(seed)
        ).counts
        result.append(counts["discriminatory"] / counts["generated"])
    return result


def test_table_5_share_of_a_decision_tree() -> None:
    """Paper: 0.48 % (0.45 to 0.51) before retraining; a tree fitted elsewhere is near, not equal."""
    what = fitted("DT")
    estimate = share_estimate(Evaluator(what.model.predict, what.schema), np.random.default_rng(1))
    assert estimate.n == 400_000
    assert 0.002 < estimate.low < estimate.high < 0.01
    assert estimate.high - estimate.low < 0.0006


@pytest.mark.parametrize("kind", ["LR", "DT"])
def test_table_3_directed_search_against_uniform_rows(kind: str) -> None:
    """Paper: 9.6 times the share of uniform random rows on average."""
    what = fitted(kind)
    uniform = share_estimate(Evaluator(what.model.predict, what.schema), np.random.default_rng(2))
    ours = statistics.fmean(shares(what))
    printed = statistics.fmean(shares(what, protocol="aequitas"))
    assert ours > 9.6 * uniform.value
    assert ours > printed > uniform.value


@pytest.mark.parametrize("kind", ["LR", "DT"])
def test_a_larger_share_than_the_released_script_with_as_many_trials(kind: str) -> None:
    """Means of ten runs: released 12 % (LR) and 30 % (DT), fully directed here 33 and 41 %."""
    what = fitted(kind)
    runs = [bench.literal(what, seed, 60, released, global_n=500, local_n=200) for seed in range(4)]
    assert not any(run.stopped for run in runs)
    theirs = [run.share for run in runs]
    ours = shares(what, global_n=500)
    assert statistics.fmean(ours) > statistics.fmean(theirs) > 0.05


def test_table_5_retraining_lowers_the_share_of_a_tree() -> None:
    """Paper: −94 % for a decision tree, −43 % on average over six classifiers."""
    schema, codes, labels = bench.table("census")
    schema = schema.protecting(["sex"])
    before = bench.estimator("DT").fit(schema.decode(codes), labels)
    rng = np.random.default_rng(1)
    found = run(Evaluator(before.predict, schema), AequitasOptions(trials=0, generated=12_000), rng).finds
    assert found is not None
    cases = found[rng.permutation(len(found))[: len(codes) // 50]]
    said = np.array(blind_vote(schema, codes[::4], labels[::4], cases, 7)).astype(labels.dtype)
    rows = np.concatenate([codes, schema.crossed(cases, schema.protected_index, schema.combos)])
    after = bench.estimator("DT").fit(schema.decode(rows), np.concatenate([labels, said, said]))
    shares = [
        share_estimate(Evaluator(m.predict, schema), np.random.default_rng(2), trials=50) for m in (before, after)
    ]
    assert shares[1].high < shares[0].low
