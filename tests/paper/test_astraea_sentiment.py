"""ASTRAEA, Table 5 (RQ5): PROB finds more distinct violations for each case than RAND.

The paper's sentiment rows have PROB/RAND from 1.6 to 2.8. docs/decisions/0031-astraea.md holds ten-seed figures.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from statistics import mean

import pytest

from auditor.core.types import Verdict
from auditor.perturb import grammar
from auditor.perturb.grammar.cases import GrammarSuite

pytestmark = [pytest.mark.slow, pytest.mark.paper]
CASES, SEEDS = 1_000, (1, 2, 3)
VIEWS = ("gendered-occupation", "names-by-gender", "names-by-race", "direct-gender")


def vader() -> Callable[[str], str]:
    from auditor.models.sentiment import Vader

    model = Vader()
    return lambda text: model.answer(text).text


def reviews() -> Callable[[str], str]:
    from auditor.models.sentiment import Reviews

    model = Reviews()
    return lambda text: model.answer(text).text


def rates(one: grammar.Grammar, label: Callable[[str], str], seed: int) -> tuple[float, float]:
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


@pytest.mark.parametrize("subject", [vader, reviews])
@pytest.mark.parametrize("view", VIEWS)
def test_prob_finds_more_than_rand(subject: Callable[[], Callable[[str], str]], view: str) -> None:
    label = subject()
    one = grammar.load(f"sentiment:{view}")
    found = [rates(one, label, seed) for seed in SEEDS]
    rand, prob = mean(r for r, _ in found), mean(p for _, p in found)
    print(f"{subject.__name__:8} {view:20} RAND {rand:.4f}  PROB {prob:.4f}")  # noqa: T201
    if rand >= 0.01:
        assert prob >= 1.5 * rand
    else:
        assert prob >= rand
