"""Batches against a server on the loopback that has files and batches, and can die or refuse at any point."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import AuthFailed, BadRequest, CallTimeout, DataFileError, RateLimited
from auditor.models.batch import Batched, request_id
from auditor.models.budget import Budget
from auditor.models.client import Client
from auditor.models.openai import OpenAIChat
from auditor.models.prices import Price
from auditor.models.retry import RetryPolicy
from auditor.protocols import Reply
from auditor.types import Message, Prompt, Request, Response


class Provider(ThreadingHTTPServer):
    """Files and batches; a batch is done after ``polls`` looks at it."""

    daemon_threads = True

    def __init__(self, polls: int = 2) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.polls = polls
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.asked: Counter[str] = Counter()
        self.looks: Counter[str] = Counter()
        self.outcome: Callable[[str, int], dict[str, Any] | None] = lambda text, _n: answered(f"{text}!")
        self.status = "completed"
        self.trouble: list[int] = []  # HTTP statuses of the next calls
        self.errors: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def finish(self, batch: dict[str, Any]) -> None:
        good, bad = [], []
        for line in self.files[batch["input_file_id"]].splitlines():
            row = json.loads(line)
            assert row["method"] == "POST"
            assert row["url"] == batch["endpoint"] == "/v1/chat/completions"
            text = row["body"]["messages"][-1]["content"]
            self.asked[text] += 1
            out = self.outcome(text, self.asked[text])
            if out is not None:
                (good if out.get("error") is None else bad).append({"custom_id": row["custom_id"], **out})
        for name, rows in (("output_file_id", good), ("error_file_id", bad)):
            if rows:
                batch[name] = f"{batch['id']}-{name}"
                rows.reverse()  # the order of a batch's output is not that of its input
                self.files[batch[name]] = b"".join(json.dumps(r).encode() + b"\n" for r in rows)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.failed():
            return
        if self.path == "/v1/files":
            # multipart/form-data: the part whose content type is not text is the file
            part = re.search(rb'filename="[^"]+"\r\n(?:[^\r\n]+\r\n)*\r\n(.*?)\r\n--', body, re.S)
            assert part is not None
            name = f"file-{len(self.server.files)}"
            self.server.files[name] = part.group(1)
            self.say(
                {
                    "id": name,
                    "object": "file",
                    "bytes": 1,
                    "created_at": 1,
                    "filename": "x",
                    "purpose": "batch",
                }
            )
            return
        assert self.path == "/v1/batches"
        given = json.loads(body)
        batch = {
            "id": f"batch_{len(self.server.batches)}",
            "object": "batch",
            "created_at": 1,
            "status": "validating",
        }
        self.server.batches[batch["id"]] = batch | given
        self.say(self.server.batches[batch["id"]])

    def do_GET(self) -> None:
        if self.failed():
            return
        path = self.path.partition("?")[0]
        if path == "/v1/batches":
            rows = list(self.server.batches.values())[::-1]
            self.say({"object": "list", "data": rows, "has_more": False})
        elif path.startswith("/v1/batches/"):
            batch = self.server.batches[path.rpartition("/")[2]]
            self.server.looks[batch["id"]] += 1
            if self.server.looks[batch["id"]] == self.server.polls:
                batch["status"] = self.server.status
                if self.server.errors:
                    batch["errors"] = {"object": "list", "data": self.server.errors}
                self.server.finish(batch)
            self.say(batch)
        else:
            data = self.server.files[path.split("/")[3]]
            self.send(200, data, "application/octet-stream")

    def failed(self) -> bool:
        if not self.server.trouble:
            return False
        self.send(self.server.trouble.pop(0), b'{"error": {"message": "broken"}}', "application/json")
        return True

    def say(self, value: object) -> None:
        self.send(200, json.dumps(value).encode(), "application/json")

    def send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def answered(text: str) -> dict[str, Any]:
    body = {
        "model": "served-2",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }
    return {"response": {"status_code": 200, "body": body}, "error": None}


def refused(status: int) -> dict[str, Any]:
    return {"response": {"status_code": status, "body": {"error": {"message": "no"}}}, "error": None}


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
    return [
        Request(
            prompt=Prompt(format="f", messages=(Message(role="user", content=t),)), replicate=k, variant_id=t
        )
        for t in texts
        for k in range(replicates)
    ]


def make(provider: Provider, folder: Path, naps: Naps | None = None, **given: Any) -> Batched:
    chat = OpenAIChat("served", base_url=provider.url, max_tokens=5, **given)
    return Batched(chat, journal=folder / "batches.jsonl", sleep=naps or Naps())


def ask(model: Batched, asked: list[Request]) -> list[Any]:
    async def go() -> list[Any]:
        try:
            return list(await model.generate(asked))
        finally:
            await model.aclose()

    return asyncio.run(go())


def test_one_batch_answers_all_in_order(provider: Provider, tmp_path: Path) -> None:
    provider.polls = 6
    naps = Naps()
    replies = ask(make(provider, tmp_path, naps), requests(["a", "b", "c"], replicates=2))
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
        ask(make(provider, tmp_path, Naps(die_at)), asked)
    replies = ask(make(provider, tmp_path), requests(["b", "new", "a"]))
    assert [r.text for r in replies] == ["b!", "new!", "a!"]
    assert provider.asked == {"a": 1, "b": 1, "new": 1}  # the new one in a batch of its own
    assert len(provider.batches) == 2


def test_a_run_that_died_before_it_noted_the_id_finds_its_batch_by_the_mark(
    provider: Provider, tmp_path: Path
) -> None:
    with pytest.raises(Killed):
        ask(make(provider, tmp_path, Naps(1)), requests(["a", "b"]))
    journal = tmp_path / "batches.jsonl"
    first, _second = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first + b'{"mark": "torn')
    replies = ask(make(provider, tmp_path), requests(["a", "b"]))
    assert [r.text for r in replies] == ["a!", "b!"]
    assert len(provider.batches) == 1
    assert all(json.loads(line) for line in journal.read_text().splitlines())


def test_a_run_that_died_before_it_submitted_submits_what_is_still_asked(
    provider: Provider, tmp_path: Path
) -> None:
    provider.trouble = [500]  # the listing fails, and so does the attempt
    (failed, _) = ask(make(provider, tmp_path), requests(["a", "b"]))
    assert failed.transient
    (reply,) = ask(make(provider, tmp_path), requests(["b"]))
    assert reply.text == "b!"
    assert provider.asked == {"b": 1}


def test_what_failed_in_a_batch_is_asked_in_the_next_one(provider: Provider, tmp_path: Path) -> None:
    wrong = {
        "a": refused(500),
        "b": refused(429),
        "c": {"response": None, "error": {"code": "batch_expired"}},
    }
    provider.outcome = lambda text, n: wrong[text] if n == 1 and text in wrong else answered(f"{text}!")
    journaled: list[Response] = []
    model = make(provider, tmp_path, price=Price(input_usd=1.0, output_usd=2.0))

    async def go() -> tuple[Client, list[Response]]:
        client = Client(
            model,
            cache=None,
            budget=Budget(max_cost=1.0),
            concurrency=4,
            retry=RetryPolicy(base_s=0, ceiling_s=model.patience_s),
            on_response=journaled.append,
        )
        try:
            return client, await client.ask(requests(["a", "b", "c", "d"]))
        finally:
            await client.aclose()

    client, responses = asyncio.run(go())
    assert [r.output for r in responses] == ["a!", "b!", "c!", "d!"]
    assert provider.asked == {"a": 2, "b": 2, "c": 2, "d": 1}
    assert len(provider.batches) == 2
    assert len(journaled) == 4
    assert client.counts.cost_usd == pytest.approx(4 * (10 * 0.5 + 2 * 1.0) / 1e6)  # half the price


def test_errors_of_single_requests_are_told_apart(provider: Provider, tmp_path: Path) -> None:
    said = {"a": refused(400), "b": refused(401), "c": None, "d": refused(429)}
    provider.outcome = lambda text, _n: said.get(text, answered("x"))
    kinds = [type(r) for r in ask(make(provider, tmp_path), requests(["a", "b", "c", "d", "e"]))]
    assert kinds == [BadRequest, AuthFailed, CallTimeout, RateLimited, Reply]


def test_an_expired_batch_gives_what_it_has(provider: Provider, tmp_path: Path) -> None:
    provider.status = "expired"
    provider.outcome = lambda text, n: answered(text) if text == "a" or n > 1 else None
    model = make(provider, tmp_path)
    done, late = ask(model, requests(["a", "b"]))
    assert done.text == "a"
    assert isinstance(late, CallTimeout)
    assert "expired" in str(late)
    (again,) = ask(model, requests(["b"]))
    assert again.text == "b"
    assert provider.asked == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("code", "kind"), [("token_limit_exceeded", RateLimited), ("invalid_json_line", BadRequest)]
)
def test_a_refused_batch_says_why(provider: Provider, tmp_path: Path, code: str, kind: type) -> None:
    provider.status = "failed"
    provider.errors = [{"code": code, "message": "the reason"}]
    for reply in ask(make(provider, tmp_path), requests(["a", "b"])):
        assert isinstance(reply, kind)
        assert "the reason" in str(reply)


def test_polls_outlast_faults_and_give_up_on_a_wrong_key(provider: Provider, tmp_path: Path) -> None:
    provider.polls = 3
    with pytest.raises(Killed):
        ask(make(provider, tmp_path, Naps(1)), requests(["a"]))
    provider.trouble = [500, 503, 429]
    (reply,) = ask(make(provider, tmp_path), requests(["a"]))
    assert reply.text == "a!"
    provider.trouble = [401]
    (reply,) = ask(make(provider, tmp_path), requests(["b"]))
    assert isinstance(reply, AuthFailed)


def test_a_large_round_becomes_several_batches(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("auditor.models.batch.MOST_REQUESTS", 3)
    texts = [f"t{i}" for i in range(8)]
    replies = ask(make(provider, tmp_path), requests(texts))
    assert [r.text for r in replies] == [f"{t}!" for t in texts]
    assert len(provider.batches) == 3
    assert set(provider.asked.values()) == {1}


def test_a_journal_of_another_model_is_not_used_and_a_foreign_file_is_refused(
    provider: Provider, tmp_path: Path
) -> None:
    ask(make(provider, tmp_path), requests(["a"]))
    (reply,) = ask(make(provider, tmp_path, seed=3), requests(["a"]))  # another seed: other answers
    assert reply.text == "a!"
    assert provider.asked == {"a": 2}
    (tmp_path / "batches.jsonl").write_text('{"nothing": 1}\n')
    with pytest.raises(DataFileError, match="line 1"):
        make(provider, tmp_path)
