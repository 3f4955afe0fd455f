"""The client under load: calls per second against the ideal, and against the bare openai SDK, in one run.

Everybody asks the same loopback server, which answers after a fixed time and runs in a process of its own. The bare
SDK is ``AsyncOpenAI`` behind a semaphore of the same width, which neither keeps, counts nor retries anything.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from common import Row

from auditor.core.protocols import Model, Reply
from auditor.core.types import Message, Prompt, Request
from auditor.models.budget import Budget
from auditor.models.client import Client
from auditor.models.openai import OpenAIChat

WIDTH = 64
MODEL = "fake"
BODY = (
    b'{"id":"c","object":"chat.completion","created":1,"model":"fake","choices":[{"index":0,"finish_reason":"stop",'
    b'"message":{"role":"assistant","content":"positive"}}],"usage":{"prompt_tokens":60,"completion_tokens":1,'
    b'"total_tokens":61}}'
)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


class Spent(NamedTuple):
    """What a number of calls took."""

    calls_per_s: float
    cpu_ms_per_call: float


class Sleeper(Model):
    """A model in this process that answers after a fixed time."""

    costs = "nothing"
    name = fingerprint = MODEL
    style, deterministic, cacheable, max_batch = "chat", False, False, 1

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s

    async def generate(self, batch: Sequence[Request]) -> list[Reply]:
        """Sleep, then answer."""
        await asyncio.sleep(self.latency_s)
        return [Reply("positive") for _ in batch]

    async def aclose(self) -> None:
        """Nothing to close."""


async def serve(latency_s: float) -> None:
    """Answer every request on a free port, whose number is printed, until standard input ends."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
                await reader.readexactly(size)
                await asyncio.sleep(latency_s)
                writer.write(HEAD % len(BODY) + BODY)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


@contextmanager
def server(latency_s: float) -> Iterator[str]:
    """Run `serve` in a process; gives its URL."""
    command = [sys.executable, __file__, "--serve", str(latency_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.terminate()


def requests(count: int) -> list[Request]:
    """Distinct prompts of the length of a short review."""
    text = "The plot drags, but the two leads are a joy to watch, and the last half hour is worth the wait. "
    return [
        Request(
            prompt=Prompt(
                format="instruction",
                messages=(
                    Message(role="system", content="Answer with one word."),
                    Message(role="user", content=f"{number}: {text * 3}"),
                ),
            ),
            replicate=0,
            variant_id=f"v{number}",
        )
        for number in range(count)
    ]


def timed(work: Callable[[], Awaitable[object]], count: int) -> Spent:
    """Run ``work``, which makes ``count`` calls, once."""

    async def run() -> Spent:
        cpu, wall = time.process_time(), time.perf_counter()
        await work()
        return Spent(count / (time.perf_counter() - wall), (time.process_time() - cpu) * 1000 / count)

    return asyncio.run(run())


def ours(model: Callable[[], object], count: int) -> Spent:
    """Our client, with neither cache nor journal."""
    asked = requests(count)

    async def work() -> None:
        client = Client(model(), cache=None, budget=Budget(), concurrency=WIDTH)  # type: ignore[arg-type]
        found = await client.ask(asked)
        assert all(one.output == "positive" for one in found), client.stopped
        await client.aclose()

    return timed(work, count)


def bare(url: str, count: int) -> Spent:
    """The SDK alone."""
    from openai import AsyncOpenAI

    asked = requests(count)

    async def work() -> None:
        width = asyncio.Semaphore(WIDTH)
        async with AsyncOpenAI(base_url=url, api_key="no-key", max_retries=0, timeout=60) as client:

            async def one(request: Request) -> None:
                messages = [{"role": m.role, "content": m.content} for m in request.prompt.messages or ()]
                async with width:
                    found = await client.chat.completions.create(
                        model=MODEL, messages=messages, temperature=0.0, max_tokens=256
                    )
                assert found.choices[0].message.content == "positive"

            await asyncio.gather(*map(one, asked))

    return timed(work, count)


def compare(latency_s: float, count: int, runs: int) -> tuple[list[Spent], list[Spent]]:
    """Ours and the SDK by turns, after one warm-up each."""
    with server(latency_s) as url:
        pairs = [(ours(lambda: OpenAIChat(MODEL, base_url=url), count), bare(url, count)) for _ in range(runs + 1)][1:]
    return [one for one, _ in pairs], [other for _, other in pairs]


def measure(calls: int = 640, runs: int = 3) -> list[Row]:
    """250 ms against the ideal, 50 ms against the SDK, and CPU time for each call."""
    ideal = WIDTH / 0.25
    inside = statistics.median(ours(lambda: Sleeper(0.25), calls).calls_per_s for _ in range(runs))
    mine, theirs = compare(0.25, calls, 1)
    slow = mine[0].calls_per_s
    rows = [
        Row("calls, 64 in flight, 250 ms, no network", inside, "/s", runs, "ideal", ideal, inside / ideal, "target >= 0.90"),
        Row(
            "calls, 64 in flight, 250 ms, loopback server", slow, "/s", 1, "ideal", ideal, slow / ideal,
            f"the bare SDK: {theirs[0].calls_per_s:.0f}/s",
        ),
    ]  # fmt: skip
    mine, theirs = compare(0.05, calls, runs)
    pairs = list(zip(mine, theirs, strict=True))
    ratio = statistics.median(a.calls_per_s / b.calls_per_s for a, b in pairs)
    extra = statistics.median(a.cpu_ms_per_call - b.cpu_ms_per_call for a, b in pairs)
    rows += [
        Row(
            "calls, 64 in flight, 50 ms, loopback server",
            statistics.median(one.calls_per_s for one in mine),
            "/s",
            runs,
            "bare openai SDK",
            statistics.median(one.calls_per_s for one in theirs),
            ratio,
            "target >= 0.90",
        ),
        Row(
            "CPU time of a call beyond the SDK's own",
            extra,
            "ms",
            runs,
            "a call of the bare SDK",
            statistics.median(one.cpu_ms_per_call for one in theirs),
            None,
            "target <= 1",
        ),
    ]
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(serve(float(sys.argv[2])))
    else:
        for row in measure():
            print(row)
