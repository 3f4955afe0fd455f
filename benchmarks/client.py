"""The client under load: throughput and CPU time next to the bare openai SDK; memory and lost answers under faults.

All ask the fault server of the tests in a process of its own. The bare SDK is ``AsyncOpenAI`` behind a semaphore of the
same width, which neither keeps, counts nor retries anything.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from common import Row

from auditor.core.types import Message, Prompt, Request, Response
from auditor.models.client import Client, RetryPolicy
from auditor.models.limits import Budget
from auditor.models.openai import OpenAIChat

SERVER = Path(__file__).resolve().parents[1] / "tests" / "e2e" / "fault_server.py"
WIDTH = 64
ROUND = 1000  # requests per `Client.ask`, as a round of an audit has
RETRY = RetryPolicy(attempts=6, base_s=0.02, cap_s=0.2)


@contextmanager
def serving(mix: str, seconds: float = 0.0) -> Iterator[str]:
    """Yield the URL of a fault server that answers after ``seconds``."""
    command = [sys.executable, str(SERVER), "--mix", mix, "--seconds", str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def requests(start: int, count: int) -> list[Request]:
    """Return distinct prompts of the length of a short review."""
    text = "The plot drags, but the two leads are a joy to watch, and the last half hour is worth the wait. "
    return [
        Request(
            prompt=Prompt(format="plain", messages=(Message(role="user", content=f"{number}: {text * 3}"),)),
            replicate=0,
            variant_id=f"v{number}",
        )
        for number in range(start, start + count)
    ]


def client(url: str, **options: object) -> Client:
    """Return a client without cache, so that it asks everything."""
    model = OpenAIChat("fake", base_url=url, timeout_s=30)
    return Client(model, cache=None, budget=Budget(), concurrency=WIDTH, **options)  # type: ignore[arg-type]


async def ours(url: str, count: int) -> None:
    """Ask with our client."""
    asking = client(url)
    found = await asking.ask(requests(0, count))
    assert all(one.output for one in found), asking.stopped
    await asking.aclose()


async def bare(url: str, count: int) -> None:
    """Ask with the SDK alone."""
    from openai import AsyncOpenAI

    width = asyncio.Semaphore(WIDTH)
    async with AsyncOpenAI(base_url=url, api_key="no-key", max_retries=0, timeout=60) as sdk:

        async def one(request: Request) -> None:
            messages = [{"role": m.role, "content": m.content} for m in request.prompt.messages or ()]
            async with width:
                found = await sdk.chat.completions.create(
                    model="fake", messages=messages, temperature=0.0, max_tokens=256
                )
            assert found.choices[0].message.content

        await asyncio.gather(*map(one, requests(0, count)))


class Spent(NamedTuple):
    """Throughput, and processor time of this process for one call."""

    calls_per_s: float
    cpu_ms: float


def timed(work: Coroutine[object, object, None], count: int) -> Spent:
    """Run ``work``, which makes ``count`` calls."""
    cpu, wall = time.process_time(), time.perf_counter()
    asyncio.run(work)
    return Spent(count / (time.perf_counter() - wall), 1000 * (time.process_time() - cpu) / count)


def compare(latency_s: float, count: int, runs: int) -> Iterator[Row]:
    """Ask with ours and with the SDK by turns, after one warm-up each."""
    with serving("none", latency_s) as url:
        pairs = [(timed(ours(url, count), count), timed(bare(url, count), count)) for _ in range(runs + 1)][1:]
    mine, theirs = (Spent(*map(statistics.median, zip(*side, strict=True))) for side in zip(*pairs, strict=True))
    name, note = f"client, 64 in flight, {1000 * latency_s:.0f} ms", f"{runs} runs; ideal {WIDTH / latency_s:.0f}/s"
    yield Row(f"{name}: calls", mine.calls_per_s, "/s", "bare SDK", theirs.calls_per_s, f"{note}; target ≥ 0.90")
    extra = statistics.median(a.cpu_ms - b.cpu_ms for a, b in pairs)
    yield Row(f"{name}: CPU time of a call", mine.cpu_ms, "ms", "bare SDK", theirs.cpu_ms, f"{extra:.2f} ms more; ≤ 1")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Calls and answers as the server counted them, answers and failures as the client did, memory in MiB."""

    calls: int
    answered: int
    most_answered: int
    journaled: int
    failed: int
    early_mib: float
    late_mib: float

    @property
    def grown_mib(self) -> float:
        """Memory at the end less memory after the first tenth."""
        return self.late_mib - self.early_mib


def resident_mib() -> float:
    """Return the resident memory of this process."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def flat(calls: int, mix: str = "soak") -> Seen:
    """Ask ``calls`` prompts through faults; nothing is written, so that only the client's memory is seen."""
    journaled = failed = 0

    def note(response: Response) -> None:
        nonlocal journaled, failed
        journaled, failed = journaled + (response.output is not None), failed + (response.output is None)

    async def go(url: str) -> tuple[float, float]:
        asking, early = client(url, retry=RETRY, on_response=note, remember=False), 0.0
        for start in range(0, calls, ROUND):
            await asking.ask(requests(start, min(ROUND, calls - start)))
            if not early and start >= calls // 10:
                early = resident_mib()
        late = resident_mib()
        await asking.aclose()
        return early, late

    with serving(mix) as url:
        early, late = asyncio.run(go(url))
        with urllib.request.urlopen(url.removesuffix("/v1") + "/stats", timeout=30) as answer:
            stats = json.load(answer)
    counts = {name: stats[name] for name in ("calls", "answered", "most_answered")}
    return Seen(**counts, journaled=journaled, failed=failed, early_mib=early, late_mib=late)


def measure(quick: bool = False) -> Iterator[Row]:
    """Return throughput and CPU time against the SDK; memory and lost answers of 100,000 calls through faults."""
    for latency_s in (0.05, 0.25):
        yield from compare(latency_s, 640 if quick else 2_000, 1 if quick else 3)
    prompts = 2000 if quick else 100_000
    seen = flat(prompts)
    note = f"{prompts:,} prompts, {seen.calls:,} calls, {seen.failed} failed; {seen.late_mib:.0f} MiB at the end"
    yield Row("client, faults: memory grown after a tenth of the calls", seen.grown_mib, "MiB", note=note)
    lost = seen.answered - seen.journaled + max(0, seen.most_answered - 1)
    yield Row("client, faults: answers lost, or paid twice", lost, "answers")
