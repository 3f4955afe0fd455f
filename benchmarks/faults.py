"""Many calls through a server that misbehaves: memory that does not grow, and the client's own time per call."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import Row

from auditor.core.types import Message, Prompt, Request, Response
from auditor.models.attempts import RetryPolicy
from auditor.models.budget import Budget
from auditor.models.client import Client
from auditor.models.openai import OpenAIChat

SERVER = Path(__file__).resolve().parents[1] / "tests" / "e2e" / "fault_server.py"
CHUNK = 1000  # requests per `Client.ask`, as a round of an audit has


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What ``flat`` saw; memory in MiB of this process, times in seconds."""

    calls: int
    answered: int
    journaled: int
    failed: int
    most_answered: int
    early_mib: float
    late_mib: float
    wall_s: float
    cpu_s: float

    @property
    def grown_mib(self) -> float:
        """Memory at the end less memory after the first tenth."""
        return self.late_mib - self.early_mib


@contextmanager
def serving(mix: str) -> Iterator[str]:
    """URL of a fault server in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, str(SERVER), "--mix", mix], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def rss_mib() -> float:
    """Resident memory of this process now."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def requests(start: int, n: int) -> list[Request]:
    """``n`` prompts that nobody asked before."""
    return [
        Request(
            prompt=Prompt(format="plain", messages=(Message(role="user", content=f"Review {i}: the film was long."),)),
            replicate=0,
            variant_id=f"v{i}",
        )
        for i in range(start, start + n)
    ]


def flat(calls: int, *, mix: str = "soak", concurrency: int = 64) -> Seen:
    """Ask ``calls`` prompts; the journal goes to nowhere, so that only the client's memory is seen."""
    journaled = failed = 0

    def note(response: Response) -> None:
        nonlocal journaled, failed
        if response.output is None:
            failed += 1
        else:
            journaled += 1

    async def go(url: str) -> tuple[float, float]:
        model = OpenAIChat("fake", base_url=url, timeout_s=30)
        client = Client(
            model,
            cache=None,
            budget=Budget(),
            concurrency=concurrency,
            retry=RetryPolicy(attempts=6, base_s=0.02, cap_s=0.2),
            on_response=note,
            remember=False,
        )
        early = 0.0
        try:
            for start in range(0, calls, CHUNK):
                await client.ask(requests(start, min(CHUNK, calls - start)))
                if not early and start >= calls // 10:
                    early = rss_mib()
            return early, rss_mib()
        finally:
            await client.aclose()

    with serving(mix) as url:
        wall, cpu = time.perf_counter(), time.process_time()
        early, late = asyncio.run(go(url))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        with urllib.request.urlopen(url.removesuffix("/v1") + "/stats", timeout=30) as answer:
            stats = json.load(answer)
    return Seen(
        calls=stats["calls"],
        answered=stats["answered"],
        journaled=journaled,
        failed=failed,
        most_answered=stats["most_answered"],
        early_mib=early,
        late_mib=late,
        wall_s=wall,
        cpu_s=cpu,
    )


def bare(calls: int, *, concurrency: int = 64) -> float:
    """CPU seconds per call of the SDK alone against the same server without faults."""

    async def go(url: str) -> None:
        from openai import AsyncOpenAI

        async with AsyncOpenAI(base_url=url, api_key="no-key", max_retries=0) as client:
            gate = asyncio.Semaphore(concurrency)

            async def one(i: int) -> None:
                async with gate:
                    await client.chat.completions.create(
                        model="fake",
                        messages=[{"role": "user", "content": f"Review {i}: the film was long."}],
                        temperature=0.0,
                        max_tokens=256,
                    )

            for start in range(0, calls, CHUNK):
                await asyncio.gather(*(one(i) for i in range(start, min(start + CHUNK, calls))))

    with serving("none") as url:
        before = time.process_time()
        asyncio.run(go(url))
        return (time.process_time() - before) / calls


def measure(scale: float = 1.0) -> list[Row]:
    """All rows; ``scale`` 1 is 100,000 calls through the faults."""
    calls = max(1000, round(100_000 * scale))
    few = max(500, calls // 10)
    bare(200)  # imports
    alone = bare(few)
    ours = flat(few, mix="none").cpu_s / few
    seen = flat(calls)
    return [
        Row(
            "faults: memory grown between a tenth of the calls and all",
            seen.grown_mib,
            "MiB",
            note=f"{calls:,} prompts, {seen.calls:,} calls, {seen.failed} failed; {seen.late_mib:.0f} MiB at the end",
        ),
        Row(
            "faults: answers that are not in the journal, or were paid twice",
            seen.answered - seen.journaled + max(0, seen.most_answered - 1),
            "answers",
        ),
        Row(
            "client: CPU per call at 64 in flight",
            1e3 * ours,
            "ms",
            baseline_name="the SDK alone",
            baseline=1e3 * alone,
            ratio=ours / alone,
            note=f"overhead {1e3 * (ours - alone):.2f} ms",
        ),
    ]
