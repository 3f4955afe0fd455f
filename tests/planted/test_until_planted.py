"""``--until-decided`` on simulated answers to real cases: how often looking early errs, and what it saves."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from auditor.config import Plan
from auditor.measure.claims import Claim
from auditor.pipeline.observed import Observed
from auditor.pipeline.parts import Parts, prepare
from auditor.pipeline.rounds import FEW, source
from auditor.pipeline.run import run_sync
from auditor.pipeline.until import Until
from auditor.types import Answer, Case, Variant

RUNS = 200
ERRORS = 17  # 5 % of 200 and 2.3 standard errors: 8.5 %
MARGIN = 0.4  # of a standard normal at 0: a shift of the margin by x changes x · 0.4 of the labels


class Ended(NamedTuple):
    """How one simulated run ended."""

    claim: Claim
    calls: int
    looks: int


@cache
def planned(delta: float | None = None) -> tuple[Parts, tuple[tuple[Case, tuple[Variant, ...]], ...]]:
    """Cases about women and men, made once, with the variants that are valid."""
    plan = Plan.from_dict(
        {"attributes": ("gender",), "groups": ("gender:female/male",), "until_decided": True, "delta": delta}
    )
    parts = prepare(plan, models=[])
    found: list[tuple[Case, tuple[Variant, ...]]] = []

    async def make() -> None:
        rounds = source(parts)
        while True:
            cases, checks = await rounds.next(Random(7))
            if not cases:
                return
            found.extend((c, tuple(v for v in c.variants if checks[v.id].status != "invalid")) for c in cases)

    run_sync(make)
    return parts, tuple(found)


def side(case: Case, variant: Variant) -> float:
    """½ for a version about women, −½ for one about men."""
    moved = [d for d in variant.directions if d[1] != d[2]]
    first = [d for v in case.variants for d in v.directions if d[1] != d[2]]
    group = moved[0][2] if moved else first[0][1] if first else ""
    return {"female": 0.5, "male": -0.5}.get(group, 0.0)


def run(
    number: int,
    *,
    effect: float,
    word: float = 0.0,
    noise: float = 0.05,
    scores: bool = False,
    delta: float | None = None,
) -> Ended:
    """Ask a simulated model about the cases in random order until `Until` says that it is enough."""
    parts, cases = planned(delta)
    draws = np.random.default_rng([number, 15])
    ordered = Random(number).sample(cases, len(cases))
    words: dict[str, float] = {}
    tally = SimpleNamespace(seen=[], cost_usd=0.0, control={"bare": [True]}, model=SimpleNamespace(name="m"))
    loop: Any = SimpleNamespace(
        parts=SimpleNamespace(
            seeds=len(cases), suite=SimpleNamespace(), texts=(), task=parts.task, dictionaries=parts.dictionaries
        ),
        plan=parts.plan, counts=Counter(), tallies=[tally], observed=Observed(parts.task), status_reason="",
        stopped_by="",
    )  # fmt: skip
    until = loop.until = Until(loop)
    for start in range(0, len(cases), FEW):
        loop.observed.forget()
        for case, variants in ordered[start : start + FEW]:
            base = draws.normal()
            answers: dict[str, list[Answer]] = {}
            for v in (case.original, *variants):
                margin = base + effect / MARGIN * side(case, v) + noise * draws.normal()
                for e in v.edits:
                    for text, sign in ((e.target, 1.0), (e.source, -1.0)):
                        margin += sign * words.setdefault(text.lower(), word * draws.normal())
                p = float(1 / (1 + np.exp(-margin)))
                label = "positive" if margin > 0 else "negative"
                answers[v.id] = [Answer(status="ok", value=label, scores={"positive": p} if scores else None)]
            loop.observed.take(case, answers, model="m", format="bare")
            tally.seen += answers
            loop.counts.update(cases=1, taken=1)
        until.look()
        if until.done:
            break
    (claim,) = [c for c in until.claims() if c.family == "net"]
    return Ended(claim, len(tally.seen), len(until.record()))


@pytest.mark.slow
@pytest.mark.parametrize("scores", [False, True], ids=["labels", "log odds"])
def test_no_effect_is_shown_at_any_look_in_at_most_17_of_200_runs(scores: bool) -> None:
    ended = [run(n, effect=0.0, scores=scores) for n in range(RUNS)]
    assert sum(e.claim.verdict in ("shown", "shown_for_words") for e in ended) <= ERRORS
    assert sum(e.looks == 5 for e in ended) >= RUNS - ERRORS  # the others looked as often as they could


@pytest.mark.slow
def test_words_that_differ_by_chance_are_no_effect_of_the_group_at_any_look() -> None:
    ended = [run(n, effect=0.0, word=0.1, scores=True) for n in range(RUNS)]
    assert sum(e.claim.verdict == "shown" for e in ended) <= ERRORS


@pytest.mark.slow
def test_an_effect_of_5_points_takes_a_part_of_the_calls() -> None:
    whole = sum(1 + len(variants) for _, variants in planned()[1])
    ended = [run(n, effect=0.05, scores=True) for n in range(60)]
    assert all(e.claim.verdict in ("shown", "shown_for_words") for e in ended)
    assert np.mean([e.calls for e in ended]) < 0.5 * whole


@pytest.mark.slow
def test_a_difference_of_delta_is_bounded_at_any_look_in_at_most_17_of_200_runs() -> None:
    ended = [run(n, effect=0.05, delta=0.05) for n in range(RUNS)]
    assert sum(e.claim.verdict == "bounded" for e in ended) <= ERRORS
