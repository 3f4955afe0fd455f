"""The audit against a server that misbehaves: nothing answered is lost or asked twice, and nothing hangs."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import fault_server
import nursery
import pytest
from fault_server import MIXES, FaultServer
from fault_server import prompt_key as key_of

import auditor.models as models
from auditor.core.errors import AuthFailed, BadRequest, BadResponse, BudgetExceeded, ServerFault
from auditor.core.types import Request, Response
from auditor.models.client import Client, RetryPolicy
from auditor.models.limits import Budget
from auditor.models.reply_cache import Cache
from tests.asking import chat

pytestmark = pytest.mark.e2e

WATCHDOG_S = 120
CALL_S = 10.0  # more than a busy machine needs
ATTEMPTS = 6
QUICK = RetryPolicy(attempts=ATTEMPTS, base_s=0.02, cap_s=0.1)


def requests(n: int, replicates: int = 1) -> list[Request]:
    return [chat(f"text {i}", form="f", variant=f"v{i}", replicate=k) for i in range(n) for k in range(replicates)]


def ask(
    server: Any, asked: list[Request], *, concurrency: int = 16, timeout_s: float = CALL_S, **given: Any
) -> tuple[Client, list[Response]]:
    async def go() -> tuple[Client, list[Response]]:
        model = models.make("openai:fake", base_url=server.url, timeout_s=timeout_s)
        settings: dict[str, Any] = {"cache": None, "budget": Budget(), "retry": QUICK}
        client = Client(model, concurrency=concurrency, **(settings | given))
        try:
            async with asyncio.timeout(WATCHDOG_S):
                return client, await client.ask(asked)
        finally:
            await client.aclose()

    return asyncio.run(go())


def check(server: Any, asked: list[Request], responses: list[Response], journal: list[Response]) -> None:
    """Check outputs, their order, the journal, and that the server met each prompt as often as its faults ask for."""
    assert [(r.variant_id, r.replicate) for r in responses] == [(r.variant_id, r.replicate) for r in asked]
    for response, request in zip(responses, asked, strict=True):
        assert response.output in (None, fault_server.by_digest(request.prompt.messages[0].content))
    assert len(journal) == len({(r.prompt_sha256, r.replicate) for r in journal}) == len(asked)
    assert sorted(map(outcome, journal)) == sorted(map(outcome, responses))
    for key, faults in server.record.planned.items():
        assert server.record.attempts[key] >= faults


def outcome(response: Response) -> tuple[str, int, str]:
    return response.prompt_sha256, response.replicate, response.output or ""


@pytest.mark.parametrize("mix", [name for name in MIXES if name not in ("soak", "slow-loris")])
def test_under_every_mix_what_the_server_answered_is_what_the_journal_has(mix: str, tmp_path: Path) -> None:
    journal: list[Response] = []
    with FaultServer(MIXES[mix]) as server, closing(Cache(tmp_path / "cache.sqlite")) as cache:
        asked = requests(150, replicates=2)
        client, responses = ask(server, asked, on_response=journal.append, cache=cache)
        record = server.record
        check(server, asked, responses, journal)
        texts = [f"text {r.variant_id[1:]}" for r in journal if r.output]
        answered = Counter(key_of([{"role": "user", "content": text}]) for text in texts)
        assert answered == record.answered  # neither lost nor asked again after a whole answer
        assert client.counts.calls == record.calls
        if mix in ("none", "latency"):
            assert record.calls == len(asked)
        else:
            assert sum(record.faults.values()) >= 5
            assert record.calls == sum(record.faults.values()) + sum(record.answered.values())
        # Six attempts outlast three faults; only a burst can take them all.
        failed = [r for r in responses if r.output is None]
        assert not failed or (mix in ("500-bursts", "all") and len(failed) < 10)
        assert client.stopped is None
        calls = record.calls
        kept = [r for r, response in zip(asked, responses, strict=True) if response.output]
        _, again = ask(server, kept, cache=cache)
        # The cache has each answer.
        assert [(r.output, r.cached) for r in again] == [(r.output, True) for r in responses if r.output]
        assert record.calls == calls


@pytest.mark.slow
def test_answers_that_drip_or_come_too_late_are_asked_for_again() -> None:
    """A busy machine may cut off whole answers too, so calls are not counted one by one."""
    journal: list[Response] = []
    with FaultServer(MIXES["slow-loris"]) as server:
        asked = requests(60)
        _, responses = ask(server, asked, on_response=journal.append, timeout_s=2.0)
        check(server, asked, responses, journal)
        assert all(r.output for r in responses)
        assert sum(server.record.faults.values()) >= 2
        assert server.record.answered.keys() == server.record.attempts.keys()


def test_a_server_that_answers_only_too_many_requests_is_asked_one_at_a_time_and_then_given_up() -> None:
    with FaultServer(MIXES["none"], broken=lambda text: "429") as server:
        client, responses = ask(server, requests(40), concurrency=8)
        assert {r.error for r in responses} == {"rate-limited"}
        assert server.record.calls == ATTEMPTS * 40
        assert client._limiter.size == 1


def test_a_stated_quota_is_met_without_a_refusal() -> None:
    mix = fault_server.Mix(quick_s=0.005, tail=0.2, tail_s=0.03)
    with FaultServer(mix, quota=(40, 0.6)) as server:
        asked = requests(150)
        _, responses = ask(server, asked, concurrency=16)
        assert all(r.output for r in responses)
        assert server.record.calls == len(asked)
        assert not server.record.faults
        assert server.record.most_in_flight > 2


@pytest.mark.parametrize(
    "lines",
    [
        ["X-RateLimit-Remaining-Requests: \xb2", "X-RateLimit-Reset-Requests: 1s"],
        ["X-RateLimit-Remaining-Requests: 0", "X-RateLimit-Reset-Requests: soon"],
        ["X-RateLimit-Remaining-Requests: -1", "X-RateLimit-Reset-Requests: 30s"],
        ["X-RateLimit-Remaining-Tokens: 0x0", "X-RateLimit-Reset-Tokens: " + "9" * 400 + "s"],
        ["X-RateLimit-Remaining-Requests:", "X-RateLimit-Reset-Requests:", "Retry-After: never"],
    ],
)
def test_headers_that_make_no_sense_do_no_harm(lines: list[str]) -> None:
    with FaultServer(MIXES["none"], lines=lines) as server:
        client, responses = ask(server, requests(40), concurrency=8)
        assert all(r.output for r in responses)
        assert server.record.calls == 40
        assert client._limiter.wait_s() == 0.0


# -- what asking again does not mend, and limits -------------------------------


def test_a_whole_answer_says_who_gave_it_and_what_it_used() -> None:
    with FaultServer(MIXES["none"]) as server:
        _, (response,) = ask(server, requests(1))
    assert (response.output, response.model) == (fault_server.by_digest("text 0"), "openai:fake")
    assert response.model_reported == "fault-server-1"
    assert (response.usage.tokens_in, response.usage.tokens_out) == (len("text 0") // 4, 2)
    assert response.latency_s > 0


@pytest.mark.parametrize(
    ("fault", "error", "times"),
    [
        ("400", "bad-request", 1), ("filter", "content-filtered", 1), ("500", "server-fault", ATTEMPTS),
        ("half", "server-fault", ATTEMPTS), ("wrong-type", "bad-response", ATTEMPTS),
    ],
)  # fmt: skip
def test_one_question_that_always_fails_is_given_up_and_the_others_go_on(fault: str, error: str, times: int) -> None:
    with FaultServer(MIXES["none"], broken=lambda text: fault * (text == "text 1")) as server:
        client, responses = ask(server, requests(3), concurrency=1)
    assert [r.error for r in responses] == [None, error, None]
    assert server.record.calls == 2 + times
    assert client.stopped is None


@pytest.mark.parametrize(
    ("fault", "kind", "told", "most"),
    [
        ("401", AuthFailed, "OPENAI_API_KEY", 4),
        ("404", AuthFailed, "model name 'fake'", 4),
        ("nobody", ServerFault, "Is the server running?", 3 * 4),
        ("wrong-type", BadResponse, "", 3 * 4),
        ("400", BadRequest, "", 100),
    ],
)
def test_a_server_that_refuses_everything_stops_the_run(fault: str, kind: type, told: str, most: int) -> None:
    with FaultServer(MIXES["none"], broken=lambda text: fault) as server:
        if fault == "nobody":
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                server.url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        client, _ = ask(server, requests(100), concurrency=4)
    assert isinstance(client.stopped, kind)
    assert told in str(client.stopped)
    assert client.counts.calls <= most


def test_limits_on_calls_and_cost_hold_over_http() -> None:
    with FaultServer(MIXES["none"]) as server:
        client, responses = ask(server, requests(30), budget=Budget(max_calls=10))
        assert server.record.calls == 10 == sum(r.output is not None for r in responses)
        assert isinstance(client.stopped, BudgetExceeded)
    budget = Budget(max_cost=0.0015, price_in=1.0, price_out=2.0)
    with FaultServer(MIXES["none"]) as server:
        _, responses = ask(server, requests(400), budget=budget)
    n = sum(r.output is not None for r in responses)
    assert 100 <= n == server.record.calls < 400
    assert 0 < budget.spent_usd <= 0.0015


def test_the_wire_is_filled_to_the_limit() -> None:
    with FaultServer(fault_server.Mix(quick_s=0.25)) as server:
        ask(server, requests(200), concurrency=32)
        assert server.record.most_in_flight == 32


# -- the whole audit ---------------------------------------------------------


def run_cli(server: Any, folder: Path, *more: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    plan = "--task sentiment --model openai:fake --limit 12 --attributes gender --per-seed 2 --replicates 2 --no-cache"
    args = [*plan.split(), "--yes", "--base-url", server.url, "--out", str(folder), *more]
    environment = os.environ | {"OPENAI_API_KEY": "x", "AUDIT_CACHE": str(folder / "cache.sqlite")}
    done = nursery.audit(*args, cwd=folder, environment=environment, timeout_s=WATCHDOG_S)
    (run,) = folder.glob("2*")
    return done, run


def journal_of(run: Path) -> tuple[Counter[str], Counter[str]]:
    """Answers by prompt as the server names it, and failures by code."""
    prompts = {row["prompt_sha256"]: row for row in rows_of(run / "prompts.jsonl") if "prompt_sha256" in row}
    rows = rows_of(run / "responses.jsonl")
    assert len({(row["prompt_sha256"], row["replicate"]) for row in rows}) == len(rows)
    good = [row for row in rows if row.get("output") is not None]
    failed = Counter(row["error"] for row in rows if row.get("output") is None)
    return Counter(key_of(prompts[row["prompt_sha256"]]["messages"]) for row in good), failed


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_whole_audit_under_all_faults_at_once(tmp_path: Path) -> None:
    with FaultServer(MIXES["all"]) as server:
        done, run = run_cli(server, tmp_path)
        answered, failed = journal_of(run)
        assert answered == server.record.answered
        assert sum(server.record.faults.values()) > 20
    # Five attempts in a row may all meet a fault: then the run says that a question has no answer.
    assert failed.total() < 3
    assert done.returncode == (3 if failed else 0), done.stderr[-2000:]
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert record["status"] == ("partial" if failed else "complete")


def test_failures_are_told_by_group_and_by_the_exit_code(tmp_path: Path) -> None:
    """Texts with "she" never get an answer: the report must say so, and not take silence for sameness."""
    with FaultServer(MIXES["none"], broken=lambda text: "500" * (" she " in text.lower())) as server:
        done, run = run_cli(server, tmp_path, "--full-plan")
        answered, failed = journal_of(run)
        assert answered == server.record.answered
        assert set(failed) == {"server-fault"}
        # Five attempts, times the replicates of a confirmation.
        assert max(server.record.attempts.values()) <= 5 * 5
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    by_group = {row["group"]: row for row in record["controls"]["answers_by_group"]}
    assert by_group["female"]["failed"] > 0
    assert by_group.get("male", {"failed": 0})["failed"] < by_group["female"]["failed"]
    # Every seventh question has no answer: the run counts as incomplete, and says so.
    assert done.returncode == 3, done.stderr[-2000:]
    assert "got no answer" in record["status_reason"]


# -- soak --------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("SOAK"), reason="takes half an hour; make soak runs it")
def test_a_hundred_thousand_calls_in_flat_memory() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    import client

    seen = client.flat(100_000)
    assert seen.answered == seen.journaled == 100_000 - seen.failed
    assert seen.most_answered == 1
    assert seen.failed < 100
    assert seen.grown_mib < 32
