"""Batches against a server on the loopback that has files and batches, and can die or refuse at any point."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from batch_server import Provider, answered, refused

from auditor.core.errors import AuthFailed, BadRequest, BudgetExceeded, CallTimeout, ContentFiltered, RateLimited
from auditor.core.plan import Plan
from auditor.core.protocols import Reply
from auditor.core.types import Request, Response
from auditor.models.attempts import RetryPolicy
from auditor.models.batch import Batched, request_id
from auditor.models.budget import Budget, Price, lookup
from auditor.models.client import Client
from auditor.models.openai import OpenAIChat
from auditor.run.dryrun import estimate
from auditor.run.preparation import prepare
from tests.asking import ask, chat


@pytest.fixture
def provider() -> Any:
    with Provider() as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.shutdown()


class Naps:
    """A sleep that takes no time; it can end the process's life at the n-th nap."""

    def __init__(self, die_at: int | None = None) -> None:
        self.taken: list[float] = []
        self.die_at = die_at

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        if len(self.taken) == self.die_at:
            raise Killed
        await asyncio.sleep(0)


class Killed(BaseException):
    """What a test takes for ``kill -9``."""


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
    provider.polls = 6
    naps = Naps()
    replies = ask(make(provider, tmp_path, naps), *requests(["a", "b", "c"], replicates=2))
    assert [r.text for r in replies] == ["a!", "a!", "b!", "b!", "c!", "c!"]
    assert replies[0].usage.tokens_in == 10
    assert replies[0].model_reported == "served-2"
    (batch,) = provider.batches.values()
    rows = [json.loads(line) for line in provider.files[batch["input_file_id"]].splitlines()]
    assert rows[0]["body"] == {
        "model": "served",
        "messages": [{"role": "user", "content": "a"}],
        "temperature": 0.0,
        "max_tokens": 5,
    }
    assert [row["custom_id"] for row in rows] == [request_id(r) for r in requests(["a", "b", "c"], 2)]
    assert all(len(row["custom_id"]) <= 64 for row in rows)
    assert naps.taken == pytest.approx([5.0, 7.5, 11.25, 16.875, 25.3125])


@pytest.mark.parametrize("die_at", [1, 3])
def test_a_killed_run_polls_the_same_batch(provider: Provider, tmp_path: Path, die_at: int) -> None:
    provider.polls = 5
    asked = requests(["a", "b"])
    with pytest.raises(Killed):
        ask(make(provider, tmp_path, Naps(die_at)), *asked)
    replies = ask(make(provider, tmp_path), *requests(["b", "new", "a"]))
    assert [r.text for r in replies] == ["b!", "new!", "a!"]
    assert provider.asked == {"a": 1, "b": 1, "new": 1}  # the new one in a batch of its own
    assert len(provider.batches) == 2


def test_a_run_that_died_before_it_noted_the_id_finds_its_batch_by_the_mark(provider: Provider, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        ask(make(provider, tmp_path, Naps(1)), *requests(["a", "b"]))
    journal = tmp_path / "batches.jsonl"
    first, _second = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first + b'{"mark": "torn')
    replies = ask(make(provider, tmp_path), *requests(["a", "b"]))
    assert [r.text for r in replies] == ["a!", "b!"]
    assert len(provider.batches) == 1
    assert all(json.loads(line) for line in journal.read_text().splitlines())


def test_a_run_that_died_before_it_submitted_submits_what_is_still_asked(provider: Provider, tmp_path: Path) -> None:
    provider.trouble = [500]  # the listing fails, and so does the attempt
    (failed, _) = ask(make(provider, tmp_path), *requests(["a", "b"]))
    assert failed.transient
    (reply,) = ask(make(provider, tmp_path), *requests(["b"]))
    assert reply.text == "b!"
    assert provider.asked == {"b": 1}


def test_what_failed_in_a_batch_is_asked_in_the_next_one(provider: Provider, tmp_path: Path) -> None:
    wrong = {"a": refused(500), "b": refused(429), "c": {"response": None, "error": {"code": "batch_expired"}}}
    provider.outcome = lambda text, n: wrong[text] if n == 1 and text in wrong else answered(f"{text}!")
    journaled: list[Response] = []
    model = make(provider, tmp_path, price=Price(input_usd=1.0, output_usd=2.0))

    retry = RetryPolicy(base_s=0, ceiling_s=model.patience_s)
    client, responses = through(model, "abcd", Budget(max_cost=1.0), retry=retry, on_response=journaled.append)
    assert [r.output for r in responses] == ["a!", "b!", "c!", "d!"]
    assert provider.asked == {"a": 2, "b": 2, "c": 2, "d": 1}
    assert len(provider.batches) == 2
    assert len(journaled) == 4
    spent = client.budget.spent  # half the price, and what failed calls may have cost
    assert spent.usd - spent.reserved_usd == pytest.approx(4 * (10 * 0.5 + 2 * 1.0) / 1e6)


def test_the_end_of_the_time_leaves_a_batch_to_a_later_run(provider: Provider, tmp_path: Path) -> None:
    provider.polls = 1000
    now = 0.0
    naps: list[float] = []

    async def nap(seconds: float) -> None:
        nonlocal now
        naps.append(seconds)
        now += seconds

    journaled: list[Response] = []

    def go(seconds: float) -> tuple[Client, list[Response]]:
        nonlocal now
        now = 0.0
        budget = Budget(max_seconds=seconds, clock=lambda: now)
        chat = OpenAIChat("served", base_url=provider.url, max_tokens=5)
        model = Batched(chat, journal=tmp_path / "batches.jsonl", left_s=budget.remaining_s, sleep=nap)

        return through(model, "ab", budget, on_response=journaled.append, retry=RetryPolicy(base_s=0))

    client, responses = go(20)
    assert naps == pytest.approx([5.0, 7.5, 7.5])  # the last one up to the end of the time
    assert [r.error for r in responses] == ["budget", "budget"]
    assert isinstance(client.stopped, BudgetExceeded)
    assert "20 seconds (--max-seconds)" in str(client.stopped)
    assert client.model.under_way == ("batch_0",)  # type: ignore[attr-defined]
    assert client.counts.retries == 0
    assert not journaled
    assert provider.looks["batch_0"] == 4  # once more at the very end
    provider.polls = 6
    client, responses = go(20)
    assert [r.output for r in responses] == ["a!", "b!"]
    assert client.model.under_way == ()  # type: ignore[attr-defined]
    assert provider.asked == {"a": 1, "b": 1}
    assert len(provider.batches) == 1


def test_errors_of_single_requests_are_told_apart(provider: Provider, tmp_path: Path) -> None:
    filtered = refused(400)
    filtered["response"]["body"] = {"error": {"code": "content_filter", "message": "kept back"}}
    said = {"a": refused(400), "b": refused(401), "c": None, "d": refused(429), "f": filtered}
    provider.outcome = lambda text, _n: said.get(text, answered("x"))
    kinds = [type(r) for r in ask(make(provider, tmp_path), *requests(["a", "b", "c", "d", "e", "f"]))]
    assert kinds == [BadRequest, AuthFailed, CallTimeout, RateLimited, Reply, ContentFiltered]


@pytest.mark.parametrize(("code", "kind"), [("token_limit_exceeded", RateLimited), ("invalid_json_line", BadRequest)])
def test_a_refused_batch_says_why(provider: Provider, tmp_path: Path, code: str, kind: type) -> None:
    provider.status = "failed"
    provider.errors = [{"code": code, "message": "the reason"}]
    for reply in ask(make(provider, tmp_path), *requests(["a", "b"])):
        assert isinstance(reply, kind)
        assert "the reason" in str(reply)


def test_a_dry_run_of_batches_costs_half_and_repeats_no_first_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    plan = Plan(models=("openai:gpt-4o-mini",), limit=6, attributes=("gender",), full_plan=True)
    (plain,) = estimate(prepare(plan)).models.values()
    (batch,) = estimate(prepare(plan.but(batch=True))).models.values()
    assert plain.calls_canary > 0 == batch.calls_canary
    assert batch.calls == plain.calls
    listed = lookup("gpt-4o-mini", "api.openai.com")
    assert listed is not None
    spent = batch.tokens_in * listed.input_usd + batch.tokens_out * listed.output_usd
    assert batch.cost_usd == pytest.approx(spent / 2e6)
    given = plan.but(batch=True, price=(1.0, 2.0))
    (own,) = estimate(prepare(given)).models.values()
    assert own.cost_usd == pytest.approx((own.tokens_in + 2 * own.tokens_out) / 1e6)


def test_a_parameter_that_the_batch_refuses_is_changed_in_the_next_one(provider: Provider, tmp_path: Path) -> None:
    def outcome(text: str, n: int) -> dict[str, Any]:
        if n == 1:
            told = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
            return {"response": {"status_code": 400, "body": {"error": {"message": told}}}, "error": None}
        return answered(f"{text}!")

    provider.outcome = outcome
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
