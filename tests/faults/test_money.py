"""Servers that are slow, break off or do not say what they used: what is printed is what is spent, nothing is lost."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import fault_server
import pytest
from commands import Capture, only, tells
from fault_server import MIXES, FaultServer, Mix, by_digest, completion, prompt_key

import auditor

pytestmark = pytest.mark.e2e
PRICED = ["--price", "1000,2000"]  # so that every amount shows
ALONE_S, TIMEOUT_S = 0.2, 0.6


@pytest.fixture(autouse=True)
def wide(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is broken."""
    monkeypatch.setenv("COLUMNS", "200")


class Server(FaultServer):
    """Answers after what a test says."""

    def __init__(self, mix: Mix = MIXES["none"], *, tokens: Any = 7, text: str = "") -> None:
        super().__init__(mix, reply=lambda asked: text or by_digest(asked))
        self.tokens = tokens

    async def work(self) -> None:
        """Take the time that an answer takes."""

    async def _reply(self, writer: asyncio.StreamWriter, messages: list[dict[str, str]]) -> bool:
        if self.mix.faults:
            return await super()._reply(writer, messages)
        await self.work()
        whole = completion(self.reply(messages[-1]["content"]))
        whole |= {"usage": self.tokens and {"prompt_tokens": self.tokens, "completion_tokens": 2}}
        self.record.answered[prompt_key(messages)] += 1
        return await fault_server._send(writer, 200, whole)


class Shared(Server):
    """One machine: each call takes 0.2 s of its work, and all calls in flight share it."""

    async def work(self) -> None:
        left, before = ALONE_S, self._loop.time()
        while left > 0:
            await asyncio.sleep(0.005)
            now = self._loop.time()
            left -= (now - before) / self.record.in_flight
            before = now


class Slots(Server):
    """Eight calls at a time, each of which takes 0.2 to 0.5 s; the others wait."""

    async def work(self) -> None:
        self.slots = getattr(self, "slots", None) or asyncio.Semaphore(8)
        self.random = getattr(self, "random", None) or Random(1)
        async with self.slots:
            await asyncio.sleep(self.random.uniform(0.2, 0.5))


def read(pattern: str) -> dict[str, Any]:
    """The one file that fits."""
    return dict(json.loads(only(pattern).read_text(encoding="utf-8")))


# -- slow and small servers -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("server", "texts"), [(Shared, 6), (Slots, 20)])
def test_a_slow_server_answers_everything_in_the_end(server: type[Server], texts: int) -> None:
    with server() as slow:
        result = auditor.audit(
            "sentiment", model="openai:slow", base_url=slow.url, server={"timeout": TIMEOUT_S}, limit=texts,
            attributes=["gender"], per_seed=1, cache=False, out="reports",
        )  # fmt: skip
    counts = result.record["counts"]
    assert result.record["status"] == "complete", result.record["status_reason"]
    assert counts["asked"] >= 40
    assert counts["failed"] == 0
    assert slow.record.calls <= 1.5 * counts["asked"]


# -- one ledger -----------------------------------------------------------------------------------------

TASK = ["--task", "sentiment", "--limit", "8", "--attributes", "gender", "--per-seed", "1", "--replicates", "1"]
ROWS = ["--task", "lending", "--method", "themis", "--max-calls", "60"]
COMMANDS = {"run": TASK, "tabular": ROWS}
SERVERS: dict[str, dict[str, Any]] = {
    "wrong-type": {"mix": MIXES["wrong-type"]},
    "no usage": {"tokens": None},
    "usage that cannot be": {"tokens": 10**30},
    "usage": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", SERVERS)
def test_what_is_printed_is_what_is_spent(command: str, kind: str, capsys: Capture, at_once: None) -> None:
    with Server(**SERVERS[kind], text="approve" if command == "tabular" else "") as server:
        argv = [command, *COMMANDS[command], "--model", "openai:m", "--base-url", server.url, "--no-cache", *PRICED]
        told = tells(capsys, [*argv, "--yes"], code=3 if command == "tabular" else 0)
    counts, book, calls = read("reports/2*/run.json")["counts"], read("reports/2*/spent.json"), server.record.calls
    assert counts["calls"] == book["calls"] == calls
    assert f"{calls} calls" in told
    assert counts["cost_usd"] == book["spent_usd"] > 0
    assert counts["reserved_usd"] == book["reserved_usd"]
    assert book["held_usd"] == 0
    answers = sum(server.record.answered.values())
    if kind == "wrong-type":
        assert calls > answers
        assert 0 < book["reserved_usd"] < book["spent_usd"]
    elif kind == "usage":
        assert book["reserved_usd"] == 0
        assert book["spent_usd"] == pytest.approx(answers * (7 * 1000 + 2 * 2000) / 1e6)
    else:
        assert book["reserved_usd"] == book["spent_usd"]
    if command == "run":
        page = only("reports/2*/report.html").read_text()
        assert (" reserved)" in told) == (kind != "usage"), told
        assert ("reserved: the highest possible cost of calls" in page) == (kind != "usage")


@pytest.mark.slow
def test_each_changed_prompt_has_its_share_of_what_is_spent(capsys: Capture) -> None:
    with Server(tokens=None) as server:
        asked = ["--model", "openai:m", "--base-url", server.url, "--no-cache", *PRICED, "--yes"]
        tells(capsys, ["run", *TASK, *asked])
        before = server.record.calls
        tells(capsys, f"mitigate latest --with ignore,redact --base-url {server.url} --yes")
    book, trial = read("reports/*-mitigated-*/spent.json"), read("reports/*-mitigated-*/mitigation.json")
    assert book["calls"] == server.record.calls - before == sum(one["calls"] for one in trial["spent"])
    assert book["spent_usd"] == pytest.approx(sum(one["cost_usd"] for one in trial["spent"]))
    for one in trial["spent"]:
        assert one["reserved_usd"] == one["cost_usd"] > 0
        counts = read(f"reports/*-mitigated-*/{one['run']}/run.json")["counts"]
        assert (counts["calls"], counts["cost_usd"]) == (one["calls"], one["cost_usd"])


# -- answers without an end -----------------------------------------------------------------------------


class Endless(Server):
    """Answers some calls; the answers to the others have no end."""

    def __init__(self, whole: int) -> None:
        super().__init__()
        self.whole, self.bytes = whole, 0

    async def _reply(self, writer: asyncio.StreamWriter, messages: list[dict[str, str]]) -> bool:
        if sum(self.record.answered.values()) < self.whole:
            return await super()._reply(writer, messages)
        self.record.faults["endless"] += 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            writer.write(b" " * 65536)
            self.bytes += 65536
            await writer.drain()


@pytest.mark.slow
@pytest.mark.parametrize(("whole", "expected", "most"), [(0, 2, 2), (20, 3, 18)])
def test_an_answer_without_an_end_is_cut_and_asked_once(whole: int, expected: int, most: int, capsys: Capture) -> None:
    with Endless(whole) as server:
        argv = ["run", *TASK, "--model", "openai:m", "--base-url", server.url, "--no-cache", "--max-calls", "300"]
        tells(capsys, argv, "longer than", code=expected)
    assert server.record.faults["endless"] <= most
    assert max(server.record.attempts.values(), default=1) == 1
    assert server.bytes <= most * 24 * 1024 * 1024  # 16 MiB are read; sockets hold some more


# -- names of models ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-4o", "openai:gpt-4o"),
        ("o3-mini", "openai:o3-mini"),
        ("claude-sonnet-4-5", "langchain:anthropic:claude-sonnet-4-5"),
        ("anthropic:claude-sonnet-4-5", "langchain:anthropic:claude-sonnet-4-5"),
    ],
)
def test_a_name_without_its_kind_is_told_which_is_meant(name: str, meant: str, capsys: Capture) -> None:
    tells(capsys, f"run --task sentiment --model {name}", f"Did you mean {meant}?", code=2)
    tells(capsys, f"doctor --model {name}", f"Did you mean {meant}?", code=2)


# -- measurements ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_benchmarks_without_the_data_that_they_need_are_skipped_with_a_reason(place: Path) -> None:
    shutil.copytree(Path(__file__).parents[2] / "benchmarks", place / "clone" / "benchmarks")
    command = [sys.executable, "clone/benchmarks/run.py", "tabular", "hinter"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("tabular", "hinter"):
        assert f"{name}: skipped, ../shared/data/" in done.stderr
    assert list(place.glob("clone/benchmarks/results/*.md"))
