"""ASTRAEA, Table 5 (RQ5), RQ7 and Table 9: PROB finds more distinct violations for each case than RAND.

Published for sentiment: PROB/RAND 1.6 to 2.8; PROB error rates 0.11 (VADER) and 0.08 (TextBlob); a standard
deviation of the error rate over runs of at most 0.007. Ours differ in level: other sentences, other emotion words, and
person terms of which few stand in either word list. docs/decisions/0031-astraea.md holds ten-seed figures.
"""

from __future__ import annotations

from functools import cache
from random import Random
from statistics import mean, stdev
from typing import Any

import pytest

from auditor.core.types import Verdict
from auditor.perturb import grammar
from auditor.perturb.grammar.cases import GrammarSuite

pytestmark = [pytest.mark.slow, pytest.mark.paper]
CASES = 1_000
SEEDS = {"textblob": 5, "vader": 5, "reviews": 3}
VIEWS = ("gendered-occupation", "names-by-gender", "names-by-race", "direct-gender")


def subject(name: str) -> Any:
    if name == "textblob":
        pytest.importorskip("textblob", reason="the extra textblob is not installed")
    from auditor import models

    answer = models.make(name).answer  # type: ignore[attr-defined]
    return cache(lambda text: answer(text).text)


def rates(one: grammar.Grammar, label: Any, seed: int) -> tuple[float, float]:
    """Violating share of the distinct cases of RAND and of PROB, counted as published."""
    suite = GrammarSuite(grammar=one, cases=CASES, pairs=True, order=1, seed=seed)
    while cases := suite.ask(64, Random(0)):
        suite.tell(
            [
                Verdict(
                    case_id=case.id, variant_id=v.id, order=1, attributes=v.attributes,
                    outcome="pass" if label(str(v.input)) == label(str(case.original.input)) else "violation",
                )
                for case in cases
                for v in case.variants
            ]
        )  # fmt: skip
    found = {sampling: t.violating_cases / t.cases for (_, sampling), t in suite.tallies.items()}
    return found["iid"], found["directed"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", SEEDS)
def test_rand_prob_and_their_spread(name: str, view: str) -> None:
    label, one = subject(name), grammar.load(f"sentiment:{view}")
    found = [rates(one, label, seed) for seed in range(1, SEEDS[name] + 1)]
    rand, prob = [r for r, _ in found], [p for _, p in found]
    print(  # noqa: T201
        f"{name:8} {view:20} RAND {mean(rand):.4f} (SD {stdev(rand):.4f})  PROB {mean(prob):.4f} (SD {stdev(prob):.4f})"
    )
    # 500 RAND cases of a rate r scatter by sqrt(r (1 - r) / 500); more would mean that seeds differ otherwise.
    assert stdev(rand) <= 2 * (max(mean(rand), 0.004) * (1 - mean(rand)) / (CASES / 2)) ** 0.5
    if mean(rand) >= 0.01:
        assert mean(prob) >= 1.5 * mean(rand)
    else:
        assert mean(prob) >= mean(rand)
