"""The OpenAI adapter and the client against a server on this machine that misbehaves on purpose."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import auditor.models as models
from auditor.core.errors import AuthFailed, BudgetExceeded, ServerFault
from auditor.core.types import Message, Prompt, Request, Response
from auditor.models.attempts import RetryPolicy
from auditor.models.budget import Budget
from auditor.models.client import Client, definitive
from auditor.models.reply_cache import Cache

pytestmark = pytest.mark.e2e
WATCHDOG_S = 60
QUICK = RetryPolicy(attempts=6, base_s=0.01, cap_s=0.05)

FAULTS = (
    "429-bare",
    "429-seconds",
    "429-date",
    "429-ms",
    "500",
    "503",
    "reset",
    "close",
    "half",
    "bad-json",
    "html",
    "empty-choices",
    "slow-loris",
    "late",
)


class FakeServer:
    """A little of the OpenAI protocol. ``plan`` maps a prompt to the faults that come before its answer."""

    def __init__(self, plan: dict[str, list[str]] | None = None, *, key: str | None = None) -> None:
        self.plan = plan or {}
        self.key = key
        self.attempts: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.in_flight = self.most_in_flight = 0
        self.latency_s = 0.0
        self.drips = 0
        self.url = ""

    async def __aenter__(self) -> FakeServer:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        self._open: set[asyncio.Task[None]] = set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await asyncio.sleep(0)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:] if line)
        }
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._reply(writer, head, headers, body)
        finally:
            self.in_flight -= 1

    async def _reply(
        self, writer: asyncio.StreamWriter, head: str, headers: dict[str, str], body: dict[str, Any]
    ) -> bool:
        assert head.startswith("POST /v1/chat/completions ")
        self.bodies.append(body)
        text = body["messages"][-1]["content"]
        self.attempts[text] += 1
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            wrong = headers["authorization"].removeprefix("Bearer ")
            return await _send(writer, 401, {"error": {"message": f"Incorrect API key provided: {wrong}"}})
        faults = self.plan.get(text)
        if faults:
            return await self._fault(faults.pop(0), text, writer)
        self.answered[text] += 1
        return await _send(writer, 200, _completion(f"{text}!"))

    async def _fault(self, fault: str, text: str, writer: asyncio.StreamWriter) -> bool:
        whole = json.dumps(_completion(f"{text}!")).encode()
        if fault.startswith("429"):
            from email.utils import formatdate

            asked = {
                "429-seconds": {"Retry-After": "0.02"},
                "429-date": {"Retry-After": formatdate(0, usegmt=True)},
                "429-ms": {"Retry-After-Ms": "15"},
            }.get(fault, {})
            return await _send(writer, 429, {"error": {"message": "slow down"}}, asked)
        if fault in ("500", "503", "404", "400"):
            return await _send(writer, int(fault), {"error": {"message": "broken", "code": "x"}})
        if fault == "filter":
            return await _send(writer, 200, _completion("", finish_reason="content_filter"))
        if fault == "reset":
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            writer.transport.abort()
        elif fault == "half":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
            writer.write(f"Content-Length: {len(whole)}\r\n\r\n".encode() + whole[: len(whole) // 2])
            await writer.drain()
        elif fault == "bad-json":
            return await _send_raw(writer, whole[:-5], "application/json")
        elif fault == "html":
            return await _send_raw(writer, b"<html>Welcome to the proxy</html>", "text/html")
        elif fault == "empty-choices":
            return await _send(writer, 200, {"choices": []})
        elif fault == "slow-loris":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n")
            for _ in range(400):
                self.drips += 1
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
        elif fault == "late":
            await asyncio.sleep(20)
        else:
            assert fault == "close", fault
        return False


def _completion(text: str, finish_reason: str = "stop") -> dict[str, Any]:
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "fake-2",
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
    }


async def _send(
    writer: asyncio.StreamWriter, status: int, value: object, headers: dict[str, str] | None = None
) -> bool:
    return await _send_raw(writer, json.dumps(value).encode(), "application/json", status, headers)


async def _send_raw(
    writer: asyncio.StreamWriter,
    body: bytes,
    content_type: str,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> bool:
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    await writer.drain()
    return True


def requests(texts: Sequence[str]) -> list[Request]:
    return [
        Request(prompt=Prompt(format="f", messages=(Message(role="user", content=t),)), replicate=0, variant_id=f"v{i}")
        for i, t in enumerate(texts)
    ]


def with_server(server: FakeServer, work: Callable[[FakeServer], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        async with asyncio.timeout(WATCHDOG_S), server:
            return await work(server)

    return asyncio.run(go())


async def audit(
    server: FakeServer, texts: Sequence[str], *, options: dict[str, Any] | None = None, **given: Any
) -> tuple[Client, list[Response]]:
    model = models.make("openai:fake", base_url=server.url, **({"timeout_s": 0.5} | (options or {})))
    settings: dict[str, Any] = {"cache": None, "budget": Budget(), "concurrency": 8, "retry": QUICK}
    client = Client(model, **(settings | given))
    try:
        return client, await client.ask(requests(texts))
    finally:
        await client.aclose()


def test_a_whole_answer_over_http() -> None:
    server = FakeServer(key="right")
    _client, (response,) = with_server(server, lambda s: audit(s, ["hi"], options={"api_key": "right"}))
    assert response.output == "hi!"
    assert response.model == "openai:fake"
    assert response.model_reported == "fake-2"
    assert response.usage is not None
    assert (response.usage.tokens_in, response.usage.tokens_out) == (7, 2)
    assert response.latency_s > 0
    assert server.bodies == [
        {"model": "fake", "messages": [{"role": "user", "content": "hi"}], "temperature": 0.0, "max_tokens": 256}
    ]


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone(fault: str) -> None:
    server = FakeServer({"a": [fault]})
    client, responses = with_server(server, lambda s: audit(s, ["a", "b"]))
    assert [r.output for r in responses] == ["a!", "b!"]
    assert server.attempts == {"a": 2, "b": 1}
    assert client.stopped is None
    assert server.drips < 100  # of 400: a body that drips does not keep a call open


def test_a_mix_of_faults_loses_nothing_and_asks_nothing_twice(tmp_path: Path) -> None:
    rng = random.Random(7)
    quick = [f for f in FAULTS if f not in ("slow-loris", "late")]
    texts = [f"text {i}" for i in range(300)]
    plan = {t: rng.choices(quick, k=rng.randrange(1, 5)) for t in texts if rng.random() < 0.4}
    plan["text 5"], plan["text 50"] = ["slow-loris"], ["late"]
    planned = {t: len(f) for t, f in plan.items()}
    server, journal = FakeServer(plan), []
    with Cache(tmp_path / "c.sqlite") as cache:
        client, responses = with_server(
            server, lambda s: audit(s, texts + texts[:50], cache=cache, on_response=journal.append, concurrency=16)
        )
        assert cache.stats().entries == 300
    assert [r.output for r in responses] == [f"{t}!" for t in texts + texts[:50]]
    assert set(server.answered.values()) == {1}
    assert {t: n - 1 for t, n in server.attempts.items() if n > 1} == planned
    assert len(journal) == 300
    assert client.counts.calls == sum(server.attempts.values())


def test_attempts_are_bounded_over_http() -> None:
    server = FakeServer({"a": ["500"] * 99, "b": ["half"] * 99, "c": ["html"] * 99})
    _, responses = with_server(server, lambda s: audit(s, ["first", "a", "b", "c", "d"], concurrency=1))
    assert [r.error for r in responses] == [None, "server-fault", "server-fault", "bad-response", None]
    assert server.attempts["a"] == server.attempts["b"] == server.attempts["c"] == 6


def test_permanent_errors_are_asked_once() -> None:
    server = FakeServer({"a": ["400"] * 9, "b": ["filter"] * 9})
    _, responses = with_server(server, lambda s: audit(s, ["a", "b", "c"]))
    assert [r.error for r in responses] == ["bad-request", "content-filtered", None]
    assert server.attempts == {"a": 1, "b": 1, "c": 1}


def test_a_wrong_key_stops_without_retries_and_is_not_shown() -> None:
    server = FakeServer(key="right")
    client, responses = with_server(
        server, lambda s: audit(s, [str(i) for i in range(100)], options={"api_key": "sk-wrong-key"}, concurrency=4)
    )
    assert isinstance(client.stopped, AuthFailed)
    assert sum(server.attempts.values()) <= 4
    assert "OPENAI_API_KEY" in str(client.stopped)
    assert "sk-wrong-key" not in str(client.stopped) + "".join(r.detail for r in responses)


def test_an_unknown_model_stops_the_run() -> None:
    texts = [str(i) for i in range(100)]
    server = FakeServer({t: ["404"] for t in texts})
    client, _ = with_server(server, lambda s: audit(s, texts, concurrency=4))
    assert isinstance(client.stopped, AuthFailed)
    assert "model name 'fake'" in str(client.stopped)
    assert sum(server.attempts.values()) <= 4


def test_no_server_at_all() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"

    async def go() -> Client:
        server = FakeServer()
        server.url = url
        async with asyncio.timeout(WATCHDOG_S):
            client, _ = await audit(server, [str(i) for i in range(100)])
        return client

    client = asyncio.run(go())
    assert isinstance(client.stopped, ServerFault)
    assert client.counts.answered == 0
    assert client.counts.calls <= 3 * 8
    assert "Is the server running?" in str(client.stopped)


def test_calls_are_limited_over_http() -> None:
    server = FakeServer({"3": ["500", "500"]})
    client, responses = with_server(
        server, lambda s: audit(s, [str(i) for i in range(30)], budget=Budget(max_calls=10))
    )
    assert sum(server.attempts.values()) == 10
    assert isinstance(client.stopped, BudgetExceeded)
    assert sum(r.output is not None for r in responses) == sum(server.answered.values())


def test_cost_is_limited_over_http() -> None:
    budget = Budget(max_cost=0.001, price_in=1.0, price_out=2.0)
    server = FakeServer()
    _client, responses = with_server(
        server,
        lambda s: audit(s, [str(i) for i in range(400)], budget=budget, options={"max_tokens": 2, "timeout_s": 30}),
    )
    n = sum(r.output is not None for r in responses)
    assert n == sum(server.attempts.values())
    assert budget.spent_usd == pytest.approx(n * 11e-6)
    assert 80 <= n <= 90  # 90 would be the exact limit


def test_interrupted_anywhere_the_rest_is_asked_once() -> None:
    texts = [f"t{i}" for i in range(60)]
    for interrupted_after in (1, 17, 43):
        server, disk = FakeServer({"t9": ["500"], "t30": ["reset"]}), []

        def journal(response: Response, disk: list[Response] = disk, last: int = interrupted_after) -> None:
            disk.append(response)
            if len(disk) == last:
                raise OSError("the disk is full")

        async def both(
            s: FakeServer, disk: list[Response] = disk, journal: Callable[[Response], None] = journal
        ) -> list[Response]:
            with pytest.raises(OSError, match="full"):
                await audit(s, texts, on_response=journal)
            answered = {(r.prompt_sha256, r.replicate): r for r in disk if definitive(r)}
            for r in disk:
                s.attempts[(r.output or "")[:-1]] = 0
            _, responses = await audit(s, texts, answered=answered)
            assert all(not s.attempts[(r.output or "")[:-1]] for r in disk)
            return responses

        responses = with_server(server, both)
        assert [r.output for r in responses] == [f"{t}!" for t in texts]


def test_the_wire_is_filled_to_the_limit() -> None:
    server = FakeServer()
    server.latency_s = 0.05
    with_server(server, lambda s: audit(s, [str(i) for i in range(200)], concurrency=32, options={"timeout_s": 10}))
    assert server.most_in_flight == 32
