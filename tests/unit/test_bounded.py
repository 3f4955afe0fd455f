"""Servers that send too much, or send us elsewhere: no prompt leaves for another host, and memory has an end."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from auditor.core.errors import AuthFailed, BadResponse
from auditor.core.protocols import Reply
from auditor.models import transport as bounded
from auditor.models.openai import OpenAIChat
from tests.asking import ask, chat
from tests.json_server import JsonServer

REPLY = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}]}
PACKED = {"content-encoding": "gzip"}


@pytest.fixture
def servers() -> Iterator[tuple[JsonServer, JsonServer]]:
    both = JsonServer(), JsonServer()
    yield both
    for one in both:
        one.close()


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("", Reply), ("packed", Reply), ("within", Reply), ("away", AuthFailed), ("round", AuthFailed),
        ("bomb", BadResponse),
    ],
)  # fmt: skip
def test_a_hostile_server(mode: str, kind: type[object], servers: tuple[JsonServer, JsonServer]) -> None:
    server, elsewhere = servers

    def reply(body: Any) -> tuple[int, dict[str, str], Any]:
        path = server.seen[-1][1]
        to = {"away": f"{elsewhere.url}/moved", "within": "/moved", "round": path}.get(mode)
        if to and "moved" not in path:
            return 307, {"location": to}, b""
        data = json.dumps(REPLY).encode()
        if mode in ("packed", "bomb"):
            return 200, PACKED, gzip.compress(b" " * (4 * bounded.LARGEST) * (mode == "bomb") + data)
        return 200, {}, data

    server.reply = reply
    (found,) = ask(OpenAIChat("m", base_url=f"{server.url}/v1", api_key="k"), chat("A secret question."))
    assert isinstance(found, kind), found
    assert not elsewhere.seen
    if mode == "away":
        assert "nothing was sent there" in str(found)
    if mode == "round":
        assert len(server.seen) == bounded.REDIRECTS + 1


def test_headers_that_are_no_ascii_lose_no_answer() -> None:
    headers = [(b"X-Left", b"\xb2"), (b"Content-Type", b"application/json"), (b"Content-Length", b"2")]
    transport = httpx.MockTransport(lambda request: httpx.Response(200, headers=headers, content=b"{}"))

    async def go() -> httpx.Response:
        async with bounded.client(transport=transport) as client:
            return await client.get("http://127.0.0.1/")  # type: ignore[no-any-return]

    got = asyncio.run(go())
    assert (got.json(), got.headers["x-left"]) == ({}, "\xb2")
