"""A hosted model gets a small plan, unless more is asked for; what is counted beforehand is what is asked."""

from __future__ import annotations

from typing import Any

import pytest

from auditor import audit
from auditor.core.plan import HOSTED_REPEAT, Plan, resolve
from auditor.core.types import SourceText
from auditor.run.dryrun import estimate
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
        ({"per_seed": 8, "repeat": 0}, (1, 8, None)),
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
    full = resolve(HOSTED | {"order": 2, "per_seed": 8, "repeat": 0})
    assert Plan.from_dict(full.as_dict()) == full
    small = resolve(HOSTED)
    assert Plan.from_dict(small.as_dict()) == small


def test_what_is_left_out_is_said_with_the_way_to_ask_for_it() -> None:
    told = resolve(HOSTED).left_out()
    assert told is not None
    for option in ("--order 2", "--per-seed 8", "--repeat 0"):
        assert option in told
        more = {"--order 2": {"order": 2}, "--per-seed 8": {"per_seed": 8}, "--repeat 0": {"repeat": 0}}[option]
        assert option not in (resolve(HOSTED | more).left_out() or "")
    assert resolve({"models": ("reviews",)}).left_out() is None


def test_only_some_texts_tell_the_noise_and_a_dry_run_counts_the_same() -> None:
    texts = [f"She said that film number {n} was kind." for n in range(20)]
    plan = Plan(task="sentiment", attributes=("gender",), order=1, per_seed=2, repeat=5, models=("planted",))
    model = Planted(base="constant", wobble=0.1)
    result = audit(
        "sentiment", model=model, data=texts, attributes=("gender",), order=1, per_seed=2, repeat=5, cache=False
    )
    noise = result.record["controls"]["noise_floor"]["planted"]
    assert (noise["n"], noise["n_skipped"]) == (5, 15)
    seeds = [SourceText(id=f"s{n}", text=text) for n, text in enumerate(texts)]
    (told,) = estimate(prepare(plan, models=[model], seeds=seeds)).models.values()
    assert told.calls + told.calls_canary == result.record["counts"]["calls"]
    assert told.calls < 2 * told.prompts < 3 * told.prompts
