"""A little of the OpenAI protocol on the loopback, that misbehaves on purpose and keeps count.

What happens to a prompt is a function of the server's seed and of the prompt's text: the faults that come before
its answer, and how long the answer takes. Only bursts go by the order of arrival. An answer counts when the whole
of it was written: `Record.answered` is what a client must neither lose nor ask for twice.

As a program (``python fault_server.py --mix all``) it prints its URL and serves until its standard input ends;
``GET /stats`` gives the counts.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import random
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any

import nursery

FAULTS = (
    "429", "429-seconds", "429-date", "429-ms", "429-reset", "500", "503", "reset", "close", "half", "half-chunked",
    "bad-json", "wrong-type", "no-choices", "slow-loris", "late",
)  # fmt: skip
RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # SO_LINGER on, 0 seconds: close() sends RST


@dataclass(frozen=True, kw_only=True)
class Mix:
    """What goes wrong, how often.

    ``share`` of the prompts meet 1 to ``longest`` of ``faults`` before their answer. An answer takes ``quick_s``
    seconds, and ``tail_s`` for ``tail`` of the prompts. Of every ``burst_every`` calls, the first ``burst`` after
    the first round get HTTP 500 whatever they ask.
    """

    faults: tuple[str, ...] = ()
    share: float = 0.0
    longest: int = 3
    quick_s: float = 0.0
    tail: float = 0.0
    tail_s: float = 0.0
    burst: int = 0
    burst_every: int = 0


MIXES: Mapping[str, Mix] = {
    "none": Mix(),
    "latency": Mix(quick_s=0.002, tail=0.05, tail_s=0.15),
    "429": Mix(faults=("429",), share=0.3),
    "429-retry-after": Mix(faults=("429-seconds", "429-date", "429-ms", "429-reset"), share=0.2),
    "500-bursts": Mix(burst=12, burst_every=80),
    "resets": Mix(faults=("reset", "close"), share=0.3),
    "half": Mix(faults=("half", "half-chunked"), share=0.3),
    "bad-json": Mix(faults=("bad-json", "no-choices"), share=0.3),
    "slow-loris": Mix(faults=("slow-loris", "late"), share=0.06, longest=1),
    "wrong-type": Mix(faults=("wrong-type",), share=0.3),
    "all": Mix(faults=FAULTS[:-2], share=0.3, quick_s=0.001, tail=0.02, tail_s=0.05, burst=8, burst_every=200),
    # For tens of thousands of calls: everything but what makes a client wait for its timeout.
    "soak": Mix(faults=FAULTS[:-2], share=0.02, longest=2, burst=8, burst_every=5000),
}


@dataclass(kw_only=True)
class Record:
    """What the server saw. Prompts go by the digest of their messages."""

    calls: int = 0
    attempts: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    planned: dict[str, int] = field(default_factory=dict)  # faults before the answer, of the prompts that meet any
    in_flight: int = 0
    most_in_flight: int = 0

    def plain(self) -> dict[str, Any]:
        """The counts as plain data, without the prompts."""
        return {
            "calls": self.calls, "answered": sum(self.answered.values()), "prompts": len(self.answered),
            "most_answered": max(self.answered.values(), default=0), "faults": dict(sorted(self.faults.items())),
            "most_in_flight": self.most_in_flight,
        }  # fmt: skip


def prompt_key(messages: object) -> str:
    """The digest that `Record` uses of a request's messages."""
    text = json.dumps(messages, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def by_digest(text: str) -> str:
    """An answer to a sentiment prompt that depends on the text alone."""
    return nursery.label("", text)


class FaultServer:
    """The server; ``with FaultServer(mix) as server`` runs it in a thread of its own.

    Parameters
    ----------
    mix : Mix
        What goes wrong.
    seed : int
        Of everything that is drawn.
    reply : callable
        The last message's text to the answer.
    broken : callable
        The last message's text to the fault that it always meets, or "".
    drip_s : float
        How long a slow answer drips before the connection is cut.
    quota : (int, float) or None
        Calls that are let in per window, and its length in seconds. Each answer says how many are left and when the
        window ends; what comes beyond gets HTTP 429.
    lines : sequence of str
        Further headers of each answer, in Latin-1, as they are.
    """

    def __init__(
        self,
        mix: Mix,
        *,
        seed: int = 7,
        reply: Callable[[str], str] = by_digest,
        broken: Callable[[str], str] = lambda _text: "",
        drip_s: float = 20.0,
        quota: tuple[int, float] | None = None,
        lines: Sequence[str] = (),
    ) -> None:
        self.mix, self.seed, self.reply, self.broken, self.drip_s = mix, seed, reply, broken, drip_s
        self.quota, self.lines = quota, lines
        self._used, self._window_ends = 0, 0.0
        self.record = Record()
        self.url = ""
        self._due: dict[str, list[str]] = {}
        self._open: set[asyncio.Task[None]] = set()

    # -- running -----------------------------------------------------------

    def __enter__(self) -> FaultServer:
        up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(up)), daemon=True)
        self._thread.start()
        if not up.wait(30):
            raise RuntimeError("the fault server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(30)

    async def _serve(self, up: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=512)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        up.set()
        await self._end.wait()
        server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await asyncio.sleep(0)

    # -- the protocol ------------------------------------------------------

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
        if head.startswith("GET "):
            return await _send(writer, 200, self.record.plain())
        length = head.lower().partition("\r\ncontent-length:")[2].partition("\r\n")[0]
        body = json.loads(await reader.readexactly(int(length)))
        record = self.record
        record.calls += 1
        record.in_flight += 1
        record.most_in_flight = max(record.most_in_flight, record.in_flight)
        try:
            return await self._reply(writer, body["messages"])
        finally:
            record.in_flight -= 1

    async def _reply(self, writer: asyncio.StreamWriter, messages: list[dict[str, str]]) -> bool:
        key, text, mix = prompt_key(messages), messages[-1]["content"], self.mix
        self.record.attempts[key] += 1
        if fault := self.broken(text):
            return await self._fault(fault, writer, json.dumps(completion(self.reply(text))).encode())
        if mix.burst and self.record.calls > mix.burst_every and self.record.calls % mix.burst_every < mix.burst:
            return await self._fault("500", writer, b"")
        draw = random.Random(f"{self.seed}:{key}")
        slow = draw.random() < mix.tail
        faults: list[str] = []
        if draw.random() < mix.share:
            faults = draw.choices(mix.faults, k=draw.randint(1, mix.longest))
            self.record.planned.setdefault(key, len(faults))
            faults = self._due.setdefault(key, faults)
        headers = self._count()
        if headers is None:
            self.record.faults["429-quota"] += 1
            return await _send(writer, 429, {"error": {"message": "too many"}}, {"Retry-After-Ms": "50"})
        if seconds := mix.tail_s if slow else mix.quick_s:
            await asyncio.sleep(seconds)
        whole = json.dumps(completion(self.reply(text), len(text) // 4)).encode()
        if faults:
            return await self._fault(faults.pop(0), writer, whole)
        writer.write(_head(200, "application/json", [f"Content-Length: {len(whole)}", *headers, *self.lines]))
        writer.write(whole)
        await writer.drain()
        self.record.answered[key] += 1
        return True

    def _count(self) -> list[str] | None:
        """Let a call in, and say what is left; None where nothing is."""
        if self.quota is None:
            return []
        most, window_s = self.quota
        now = self._loop.time()
        if now >= self._window_ends:
            self._used, self._window_ends = 0, now + window_s
        if self._used == most:
            return None
        self._used += 1
        reset = f"{max(1, math.ceil(1000 * (self._window_ends - now)))}ms"
        left = most - self._used
        return [f"X-RateLimit-Remaining-Requests: {left}", f"X-RateLimit-Reset-Requests: {reset}"]

    async def _fault(self, fault: str, writer: asyncio.StreamWriter, whole: bytes) -> bool:
        self.record.faults[fault] += 1
        if fault.startswith("429"):
            asked = {
                "429-seconds": {"Retry-After": "0.02"},
                "429-date": {"Retry-After": formatdate(0, usegmt=True)},
                "429-ms": {"Retry-After-Ms": "15"},
                "429-reset": {"X-RateLimit-Remaining-Requests": "0", "X-RateLimit-Reset-Requests": "20ms"},
            }.get(fault, {})
            return await _send(writer, 429, {"error": {"message": "slow down"}}, asked)
        if fault.isdigit():
            return await _send(writer, int(fault), {"error": {"message": "broken", "code": "x"}})
        if fault == "filter":
            return await _send(writer, 200, completion("", finish_reason="content_filter"))
        if fault == "bad-json":
            return await _send(writer, 200, whole[:-5])
        if fault == "wrong-type":
            return await _send(writer, 200, whole, kind="text/html; charset=utf-8")
        if fault == "no-choices":
            return await _send(writer, 200, {"choices": []})
        if fault == "reset":
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()
        elif fault == "half":
            writer.write(_head(200, "application/json", [f"Content-Length: {len(whole)}"]) + whole[: len(whole) // 2])
            await writer.drain()
        elif fault == "half-chunked":
            part = whole[: len(whole) // 2]
            writer.write(_head(200, "application/json", ["Transfer-Encoding: chunked"]))
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await writer.drain()
        elif fault == "slow-loris":
            writer.write(_head(200, "application/json", [f"Content-Length: {len(whole) + 5000}"]))
            for _ in range(round(self.drip_s / 0.05)):
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
        elif fault == "late":
            await asyncio.sleep(self.drip_s)
        else:
            assert fault == "close", fault
        return False


def completion(text: str, tokens_in: int = 7, finish_reason: str = "stop") -> dict[str, Any]:
    """A chat completion of this server."""
    return nursery.completion("fault-server-1", {"content": text}, tokens_in, 2, finish_reason)


def _head(status: int, content_type: str, more: list[str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {content_type}", *more]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


async def _send(
    writer: asyncio.StreamWriter, status: int, value: object, headers: Mapping[str, str] | None = None,
    kind: str = "application/json",
) -> bool:  # fmt: skip
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    more = [f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    writer.write(_head(status, kind, more) + body)
    await writer.drain()
    return True


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mix", choices=sorted(MIXES), default="all")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.0, help="that an answer takes at least")
    args = parser.parse_args()
    mix = MIXES[args.mix]
    with FaultServer(replace(mix, quick_s=mix.quick_s + args.seconds), seed=args.seed) as server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
