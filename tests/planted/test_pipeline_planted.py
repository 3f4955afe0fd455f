"""Models with planted bias through the whole pipeline: found, minimised, and nothing else found."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec
import pytest

from auditor import Result, audit
from auditor.core.plan import Plan
from auditor.core.types import Case, Check
from auditor.run.loop import Loop
from auditor.run.preparation import prepare
from auditor.run.rounds import gated
from auditor.run.run_record import build
from auditor.testing.planted import Planted
from tests.asking import workers

# Texts that name a man and a British person, with words that placebo edits can change.
SEEDS = workers(
    60,
    "He works as a {role} {place} and likes the film. A British visitor bought the book and the coat in the morning.",
)


def run(model: Any, **options: Any) -> Result:
    chosen: dict[str, Any] = {"attributes": ("gender", "nationality"), "per_seed": 6, "anyway": True} | options
    return audit("sentiment", model=model, data=SEEDS, **chosen)


def test_a_pure_interaction_is_found_as_hidden_and_only_so() -> None:
    model = Planted(interaction={"she", "nigerian|kenyan|indian|french|italian"}, base="constant")
    result = run(model, per_seed=None)
    joint = [v for v in result.verdicts if v.order == 2]
    texts = {v.variant_id: str(result.evidence.variant(v.variant_id).input) for v in joint}
    nations = ("Nigerian", "Kenyan", "Indian", "French", "Italian")
    planted = {id for id, text in texts.items() if "She " in text and any(nation in text for nation in nations)}
    assert len(planted) > 30
    assert {v.variant_id for v in result.verdicts if v.outcome == "violation"} == planted
    # Hidden wherever both parts passed the gate and were asked; unknown, never False, elsewhere.
    hidden = {v.variant_id: v.hidden for v in joint if v.outcome == "violation"}
    assert set(hidden.values()) <= {True, None}
    assert sum(h is True for h in hidden.values()) > 0.8 * len(planted)
    kinds = {f.kind for f in result.findings if f.verdict == "shown"}
    assert kinds == {"claim", "hidden"}
    shown = [f.attributes for f in result.findings if f.verdict == "shown" and f.code.startswith("MUT")]
    assert shown == [("gender", "nationality")]


def test_additive_bias_is_atomic_and_nothing_is_hidden() -> None:
    result = run(Planted(additive={"she": 1.0, "nigerian": 1.0}, base="constant"), per_seed=None)
    assert any(v.outcome == "violation" and v.order == 1 for v in result.verdicts)
    assert not any(v.hidden for v in result.verdicts)
    assert not any(f.kind == "hidden" for f in result.findings)


def test_no_bias_no_finding() -> None:
    result = run(Planted(base="constant"))
    assert not any(v.outcome == "violation" for v in result.verdicts)
    assert {f.verdict for f in result.findings} == {"not_determined"}
    rates = [e["estimate"] for e in result.estimates if e["name"] == "violation_rate"]
    assert all(r["value"] == 0 < r["high"] for r in rates)


@pytest.mark.usefixtures("at_once")
def test_failures_and_refusals_are_reported_by_group_and_are_no_label() -> None:
    refuse = {"nigerian|kenyan|french|italian|indian": 1.0}
    model = Planted(base="constant", fail={"she": 0.5}, refuse=refuse, style="chat")
    result = run(model)
    assert result.run.status == "partial"
    assert "no answer" in result.run.status_reason
    cells = {(c["attribute"], c["group"]): c for c in result.record["controls"]["answers_by_group"]}
    assert cells["gender", "female"]["failed"] > 0
    assert cells["gender", "male"]["failed"] == 0
    assert cells["nationality", "nigerian"]["refused"] > 0
    assert cells["nationality", "british"]["refused"] == 0
    assert not any(v.outcome == "violation" for v in result.verdicts)
    assert any(v.outcome == "skipped" and "refused" in v.reason for v in result.verdicts)
    assert result.record["counts"]["refused"] > 0


def test_a_wobbling_model_with_planted_bias_is_told_from_its_noise() -> None:
    result = run(Planted(additive={"she": 1.0}, base="constant", wobble=0.03, seed=4))
    verdicts = {f.attributes: f.verdict for f in result.findings if f.kind == "claim"}
    assert verdicts["gender",] == "shown"  # one word carries it all
    assert verdicts["nationality",] == "not_determined"
    noise = next(e["estimate"] for e in result.estimates if e["name"] == "noise_floor")
    assert noise["low"] < 2 * 0.03 * 0.97 < noise["high"]


def test_hidden_candidates_of_a_wobbling_model_are_asked_again() -> None:
    result = run(Planted(base="constant", wobble=0.1, seed=5), replicates=1, per_seed=None)
    hidden = [f for f in result.findings if f.kind == "hidden"]
    assert hidden, "10 % wobble without repeats must make some changes look hidden"
    looked = sum(v.hidden is True for v in result.verdicts)
    shown = [f for f in hidden if f.verdict == "shown"]
    assert looked > 40
    assert len(shown) <= 0.1 * looked


class Cached:
    """The cases of the planted texts, made and checked once."""

    def __init__(self) -> None:
        plan = Plan(task="sentiment", attributes=("gender", "nationality"), per_seed=4)
        parts = prepare(plan, seeds=SEEDS, models=[])
        cases = parts.suite.ask(1000, Random(0))
        cases, checks = gated(plan, cases, parts.gate, None, parts.suite)
        self.rows: list[tuple[Case, dict[str, Check]]] = [(c, {v.id: checks[v.id] for v in c.variants}) for c in cases]

    def record(self, model: Planted, **options: Any) -> dict[str, Any]:
        plan = Plan(task="sentiment", **options)
        parts = prepare(plan, models=[model], cases=iter(self.rows))
        loop = Loop(parts, None)
        asyncio.run(loop.run())
        return msgspec.to_builtins(build(loop, {}, started=datetime.now(UTC), seconds=0.0))


@pytest.mark.slow
def test_three_percent_wobble_without_bias_is_called_shown_in_at_most_7_of_60_runs() -> None:
    cached = Cached()
    false = 0
    for seed in range(60):
        found = cached.record(Planted(base="constant", wobble=0.03, seed=seed), seed=seed)
        assert sum(f["code"].startswith("MUT") for f in found["findings"]) == 3
        false += any(c["verdict"] == "shown" for c in found["claims"])
    assert false <= 7  # at a rate of 5 %, one draw in a hundred has more
    # These texts are all about men and have no placebo edits: an edit cannot be told from a group, and that is said.
    found = cached.record(Planted(additive={"she": 1.0}, base="constant", wobble=0.03, seed=1))
    gender = [c for c in found["claims"] if c["attribute"] == "gender" and c["family"] == "net"]
    assert gender
    assert {c["verdict"] for c in gender} == {"not_tested"}
    assert any("the same other change" in c["why"] for c in gender)
