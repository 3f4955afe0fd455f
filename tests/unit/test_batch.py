"""Batches against a server on the loopback that has files and batches, and can die or refuse at any point."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from batch_server import Provider, answered, refused

from auditor.core.errors import AuthFailed, BadRequest, CallTimeout, ContentFiltered, RateLimited
from auditor.core.plan import Plan
from auditor.core.protocols import Reply
from auditor.core.types import Request, Response
from auditor.models.batch import Batched, request_id
from auditor.models.client import Client, RetryPolicy
from auditor.models.limits import Budget, Price, lookup
from auditor.models.openai import OpenAIChat
from auditor.run.dryrun import Ahead
from auditor.run.preparation import prepare
from tests.asking import ask, chat


@pytest.fixture
def provider() -> Any:
    with Provider() as one:
        yield one


class Naps:
    """A sleep that takes no time."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        await asyncio.sleep(0)


def requests(texts: Sequence[str], replicates: int = 1) -> list[Request]:
    return [chat(t, form="f", variant=t, replicate=k) for t in texts for k in range(replicates)]


def make(provider: Provider, folder: Path, naps: Naps | None = None, **given: Any) -> Batched:
    chat = OpenAIChat("served", base_url=provider.url, max_tokens=5, **given)
    return Batched(chat, journal=folder / "batches.jsonl", sleep=naps or Naps())


def through(model: Batched, texts: str, budget: Budget, **given: Any) -> tuple[Client, list[Response]]:
    """The client around a model after it asked."""

    async def go() -> tuple[Client, list[Response]]:
        client = Client(model, cache=None, budget=budget, **given)
        try:
            return client, await client.ask(requests(texts))
        finally:
            await client.aclose()

    return asyncio.run(go())


def test_one_batch_answers_all_in_order(provider: Provider, tmp_path: Path) -> None:
    provider.polls, naps = 6, Naps()
    replies = ask(make(provider, tmp_path, naps), *requests("abc", replicates=2))
    assert [r.text for r in replies] == ["a!", "a!", "b!", "b!", "c!", "c!"]
    assert replies[0].usage.tokens_in == 10
    assert replies[0].model_reported == "served-2"
    (batch,) = provider.batches.values()
    rows = [json.loads(line) for line in provider.files[batch["input_file_id"]].splitlines()]
    messages = [{"role": "user", "content": "a"}]
    assert rows[0]["body"] == {"model": "served", "messages": messages, "temperature": 0.0, "max_tokens": 5}
    assert [row["custom_id"] for row in rows] == [request_id(r) for r in requests("abc", 2)]
    assert all(len(row["custom_id"]) <= 64 for row in rows)
    assert naps.taken == pytest.approx([5.0, 7.5, 11.25, 16.875, 25.3125])


def test_what_failed_in_a_batch_is_asked_in_the_next_one(provider: Provider, tmp_path: Path) -> None:
    wrong = {"a": refused(500), "b": refused(429), "c": {"response": None, "error": {"code": "batch_expired"}}}
    provider.outcome = lambda text, n: wrong[text] if n == 1 and text in wrong else answered(f"{text}!")
    journaled: list[Response] = []
    model = make(provider, tmp_path, price=Price(input_usd=1.0, output_usd=2.0))
    retry = RetryPolicy(base_s=0, ceiling_s=model.patience_s)
    client, responses = through(model, "abcd", Budget(max_cost=1.0), retry=retry, on_response=journaled.append)
    assert [r.output for r in responses] == ["a!", "b!", "c!", "d!"]
    assert provider.asked == {"a": 2, "b": 2, "c": 2, "d": 1}
    assert (len(provider.batches), len(journaled)) == (2, 4)
    spent = client.budget.spent  # half the price, and what failed calls may have cost
    assert spent.usd - spent.reserved_usd == pytest.approx(4 * (10 * 0.5 + 2 * 1.0) / 1e6)


def test_errors_of_single_requests_are_told_apart_and_a_refused_batch_says_why(
    provider: Provider, tmp_path: Path
) -> None:
    filtered = refused(400)
    filtered["response"]["body"] = {"error": {"code": "content_filter", "message": "kept back"}}
    said = {"a": refused(400), "b": refused(401), "c": None, "d": refused(429), "f": filtered}
    provider.outcome = lambda text, _n: said.get(text, answered("x"))
    kinds = [type(r) for r in ask(make(provider, tmp_path), *requests("abcdef"))]
    assert kinds == [BadRequest, AuthFailed, CallTimeout, RateLimited, Reply, ContentFiltered]
    for texts, code, kind in (("gh", "token_limit_exceeded", RateLimited), ("ij", "invalid_json_line", BadRequest)):
        provider.status, provider.errors = "failed", [{"code": code, "message": "the reason"}]
        for reply in ask(make(provider, tmp_path), *requests(texts)):
            assert isinstance(reply, kind)
            assert "the reason" in str(reply)


def test_a_dry_run_of_batches_costs_half_and_repeats_no_first_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    plan = Plan(models=("openai:gpt-4o-mini",), limit=6, attributes=("gender",), full_plan=True)
    plain, batch, own = (
        next(iter(Ahead(prepare(plan.but(**options))).expected().models.values()))
        for options in ({}, {"batch": True}, {"batch": True, "price": (1.0, 2.0)})
    )
    assert plain.calls_canary > 0 == batch.calls_canary
    assert batch.calls == plain.calls
    listed = lookup("gpt-4o-mini", "api.openai.com")
    assert listed is not None
    spent = batch.tokens_in * listed.input_usd + batch.tokens_out * listed.output_usd
    assert batch.cost_usd == pytest.approx(spent / 2e6)
    assert own.cost_usd == pytest.approx((own.tokens_in + 2 * own.tokens_out) / 1e6)


def test_a_parameter_that_the_batch_refuses_is_changed_in_the_next_one(provider: Provider, tmp_path: Path) -> None:
    told = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    unsupported = {"response": {"status_code": 400, "body": {"error": {"message": told}}}, "error": None}
    provider.outcome = lambda text, n: unsupported if n == 1 else answered(f"{text}!")
    model = make(provider, tmp_path)
    _, responses = through(model, "abc", Budget(), retry=RetryPolicy(ceiling_s=1e6), sleep=Naps())
    assert [r.output for r in responses] == ["a!", "b!", "c!"]
    assert model.changed == {"max_tokens": "sent as max_completion_tokens"}
    first, second = (
        [json.loads(line)["body"] for line in provider.files[b["input_file_id"]].splitlines()]
        for b in provider.batches.values()
    )
    assert all("max_tokens" in body for body in first)
    assert all(body["max_completion_tokens"] == 5 and "max_tokens" not in body for body in second)
