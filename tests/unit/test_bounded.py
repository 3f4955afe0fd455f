"""Servers that send too much, or send us elsewhere: no prompt leaves for another host, and memory has an end."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import httpx
import pytest

from auditor.core.errors import AuthFailed, BadResponse, CallError
from auditor.core.protocols import Reply
from auditor.core.types import Message, Prompt, Request
from auditor.models import transport as bounded
from auditor.models.openai import OpenAIChat

REPLY = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}]}


class _Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mode: ClassVar[str] = ""
    elsewhere: ClassVar[str] = ""
    got: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append(f"{self.headers['Host']}{self.path}")
        if self.mode in ("away", "within", "round") and "moved" not in self.path:
            target = {"away": f"{self.elsewhere}/moved", "within": "/moved", "round": self.path}[self.mode]
            self.send_response(307)
            self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.mode == "endless":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.close_connection = True
            try:
                while True:
                    self.wfile.write(b" " * 65536)
            except OSError:
                return
        body = json.dumps(REPLY).encode()
        if self.mode == "bomb":
            body = gzip.compress(b" " * (4 * bounded.LARGEST) + body)
        elif self.mode == "packed":
            body = gzip.compress(body)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        if self.mode in ("bomb", "packed"):
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _Server) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    _Server.got.clear()
    yield servers[0].server_port, servers[1].server_port
    for server in servers:
        server.shutdown()
        server.server_close()


def ask(port: int) -> Reply | CallError:
    async def go() -> Reply | CallError:
        model = OpenAIChat("m", base_url=f"http://127.0.0.1:{port}/v1", api_key="k")
        try:
            prompt = Prompt(format="plain", messages=(Message(role="user", content="A secret question."),))
            return (await model.generate([Request(prompt=prompt, replicate=0, variant_id="v")]))[0]
        finally:
            await model.aclose()

    return asyncio.run(go())


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("", Reply), ("packed", Reply), ("within", Reply), ("away", AuthFailed), ("round", AuthFailed),
        ("endless", BadResponse), ("bomb", BadResponse),
    ],
)  # fmt: skip
def test_a_hostile_server(
    mode: str, kind: type[object], ports: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Server, "mode", mode)
    monkeypatch.setattr(_Server, "elsewhere", f"http://127.0.0.1:{ports[1]}")
    found = ask(ports[0])
    assert isinstance(found, kind), found
    assert not [place for place in _Server.got if str(ports[1]) in place]
    if mode == "away":
        assert "nothing was sent there" in str(found)
    if mode == "round":
        assert len(_Server.got) == bounded.REDIRECTS + 1


def test_headers_that_are_no_ascii_lose_no_answer() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        headers = [(b"X-Left", b"\xb2"), (b"Content-Type", b"application/json"), (b"Content-Length", b"2")]
        return httpx.Response(200, headers=headers, content=b"{}", request=request)

    async def go() -> httpx.Response:
        async with bounded.client(transport=httpx.MockTransport(answer)) as client:
            return await client.get("http://127.0.0.1/")  # type: ignore[no-any-return]

    got = asyncio.run(go())
    assert (got.json(), got.headers["x-left"]) == ({}, "\xb2")
