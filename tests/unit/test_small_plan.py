"""A hosted model gets a small plan, unless more is asked for; what is counted beforehand is what is asked."""

from __future__ import annotations

import re
from typing import Any

import pytest

from auditor import audit
from auditor.core.plan import HOSTED_REPEAT, Plan, resolve
from auditor.core.types import SourceText
from auditor.run import dryrun
from auditor.run.dryrun import Ahead, estimate
from auditor.run.preparation import prepare
from auditor.testing.planted import Planted

HOSTED = {"models": ("openai:gpt-4o-mini",)}


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def sizes(given: dict[str, Any]) -> tuple[int, int | None, int | None]:
    plan = resolve(given)
    return plan.order, plan.per_seed, plan.repeat


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (1, 2, HOSTED_REPEAT)),
        ({"order": 2}, (2, 2, HOSTED_REPEAT)),
        ({"per_seed": 8}, (1, 8, HOSTED_REPEAT)),
        ({"replicates": 5}, (1, 2, None)),
        ({"base_url": "http://localhost:8000/v1"}, (2, 8, None)),
        ({"base_url": "https://example.org/v1"}, (1, 2, HOSTED_REPEAT)),
        ({"models": ("langchain:ollama:qwen3",)}, (2, 8, None)),
        ({"models": ("reviews", "langchain:anthropic:x")}, (1, 2, HOSTED_REPEAT)),
        ({"models": ("reviews",)}, (2, 8, None)),
        ({"protocol": "hinter"}, (2, None, None)),
        ({"protocol": "hinter", "per_seed": 8}, (2, 8, None)),
        ({"suite": "joint-first"}, (2, 8, None)),
    ],
)
def test_which_plans_are_small(given: dict[str, Any], expected: tuple[int, int | None, int | None]) -> None:
    assert sizes(HOSTED | given) == expected


def test_a_server_of_the_environment_on_this_machine_is_not_hosted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")
    assert sizes(HOSTED) == (2, 8, None)


def test_a_whole_plan_is_read_as_it_was_written() -> None:
    full = resolve(HOSTED | {"order": 2, "per_seed": 8, "replicates": 3})
    assert Plan.from_dict(full.as_dict()) == full
    small = resolve(HOSTED)
    assert Plan.from_dict(small.as_dict()) == small


def test_what_is_left_out_is_said_with_the_way_to_ask_for_it() -> None:
    told = resolve(HOSTED).left_out()
    assert told is not None
    for option in ("--order 2", "--per-seed 8", "--replicates 3"):
        assert option in told
        more = {"--order 2": {"order": 2}, "--per-seed 8": {"per_seed": 8}, "--replicates 3": {"replicates": 3}}[option]
        assert option not in (resolve(HOSTED | more).left_out() or "")
    assert resolve({"models": ("reviews",)}).left_out() is None


def test_only_some_texts_tell_the_noise_and_a_dry_run_counts_the_same() -> None:
    texts = [f"She said that film number {n} was kind." for n in range(40)]
    plan = Plan(task="sentiment", attributes=("gender",), order=1, per_seed=2, models=("openai:planted",))
    model = Planted(base="constant", wobble=0.1, name="openai:planted")
    result = audit("sentiment", model=model, data=texts, attributes=("gender",), order=1, per_seed=2, cache=False)
    noise = result.record["controls"]["noise_floor"]["openai:planted"]
    assert (noise["n"], noise["n_skipped"]) == (HOSTED_REPEAT, 40 - HOSTED_REPEAT)
    seeds = [SourceText(id=f"s{n}", text=text) for n, text in enumerate(texts)]
    (told,) = estimate(prepare(plan, models=[model], seeds=seeds)).models.values()
    assert told.calls + told.calls_canary == result.record["counts"]["calls"]
    assert told.calls < 2 * told.prompts < 3 * told.prompts


def test_what_a_sample_of_the_texts_tells_is_near_what_all_of_them_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    plan = resolve({"task": "hiring", **HOSTED})
    sampled = Ahead(prepare(plan)).narrowed.expected()
    monkeypatch.setattr(dryrun, "MOST", 10**6)
    whole = Ahead(prepare(plan)).narrowed.expected()
    assert 100 < sampled.sampled < 200 < sampled.seeds == whole.seeds
    assert whole.sampled == 0
    for name in ("cases", "variants", "placebos"):
        assert getattr(sampled, name) == pytest.approx(getattr(whole, name), rel=0.1), name
    (near,), (exact,) = (one.models.values() for one in (sampled, whole))
    for name in ("prompts", "calls", "tokens_in", "cost_usd"):
        assert getattr(near, name) == pytest.approx(getattr(exact, name), rel=0.1), name
    gone, all_gone = (re.findall(r"\w+ \(\d+ of \d+\)", one.left_out) for one in (sampled, whole))
    assert [one.split()[0] for one in gone] == [one.split()[0] for one in all_gone] != []
    assert "age (4 of 24)" in gone, "texts that few name are all looked at"


def test_a_limit_of_cost_ends_the_table_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    texts = [SourceText(id=f"s{n}", text=f"She said that film number {n} was kind.") for n in range(20)]
    plan = resolve({**HOSTED, "attributes": ("gender",), "price": (1.0, 1.0), "max_cost": 0.01})
    limited, whole = (estimate(prepare(p, seeds=texts)) for p in (plan, plan.but(max_cost=None)))
    assert (limited.limit, whole.limit) == ("--max-cost", "")
    (row,), (full,) = limited.models.values(), whole.models.values()
    assert row.cost_usd == pytest.approx(0.01, rel=0.01)
    assert limited.calls_whole == full.calls + full.calls_canary
    assert row.calls == pytest.approx(full.calls * 0.01 / (full.cost_usd or 0.0), rel=0.05)
