"""``kill -9`` at random moments of runs with ``--jobs``, in batches, of the agent and over rows; then they are gone on with.

The figures are those of a run that nobody cut off, what was answered and is on disk is not asked again, and the chains hold.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from nursery import IN_FLIGHT, Nursery, Server, label

from auditor.agent import load
from auditor.store.journal import read

pytestmark = pytest.mark.e2e


GOAL = "Do film reviews by women get another sentiment?"


def said(model: str, text: str) -> str:
    """What the server answers: a rule on rows, else one on texts."""
    row = dict(re.findall(r"^ *([a-z ]+): (.*)$", text, re.M))
    if "monthly income" in row:
        return "approve" if int(row["monthly income"]) >= (5200 if row["sex"] == "female" else 2400) else "deny"
    if "row" in text.split():
        return "negative" if "woman" in text.split() or "lady" in text.split() else "positive"
    return label(model, text)


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with Server(said) as one:
        yield one


def jobs(server: Server, folder: Path) -> list[str]:
    args = [*shlex.split("run --task sentiment --limit 66 --attributes age,gender --per-seed 2 --jobs 2")]
    args += ["--model", "openai:served-model", "--base-url", server.url, "--replicates", "2", "--no-cache", "--yes"]
    return [*args, "--concurrency", str(IN_FLIGHT), "--out", str(folder)]


def tabular(server: Server, folder: Path) -> list[str]:
    args = ["tabular", "--task", "lending", "--model", "openai:served-model", "--base-url", server.url, "--yes"]
    args += ["--method", "aequitas", "--set", "generated=60", "--no-cache"]
    return [*args, "--max-calls", "2000", "--concurrency", str(IN_FLIGHT), "--out", str(folder)]


def agent(server: Server, folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    text = "A man in row {} liked the film. He bought the book and the coat in the morning."
    data = folder / "texts.jsonl"
    data.write_text("".join(json.dumps({"id": f"s{i}", "text": text.format(i)}) + "\n" for i in range(40)))
    args = ["agent", GOAL, "--model", "openai:served-model", "--base-url", server.url, "--data", str(data)]
    return [*args, "--no-cache", "--yes", "--concurrency", str(IN_FLIGHT), "--out", str(folder)]


def plain(folder: Path) -> Any:
    """Record, steps and report of a session without times, names and counts of calls, which a kill adds to."""

    def bare(text: str) -> Any:
        text = re.sub(r'("calls": |calls of the model \| )\d+|\d+(?= calls[ ,])', r"\1", text).replace('"calls": ,', "")
        text = re.sub(
            r"runs/\d{8}-\d{6}-\w+(-\d+)?",
            "runs/RUN",
            text.replace(folder.name, "SESSION").replace(str(folder.parent), "OUT"),
        )
        return re.sub(r"\| seconds \| [^|]*\|", "| seconds |", text)

    record = json.loads(bare((folder / "session.json").read_text(encoding="utf-8")))
    del record["spent"]["seconds"], record["resumed"]
    steps = [json.loads(bare(json.dumps(step))) for step in read(folder / "steps.jsonl")]
    return record, steps, bare((folder / "agent.md").read_text(encoding="utf-8"))


def figures(folder: Path) -> Any:
    """What must be alike, however often a run was killed."""
    if sessions := list(folder.glob("agent-*/session.json")):
        (path,) = sessions
        session = load(path.parent).record
        assert session["status"] == "complete", session["status_reason"]
        return plain(path.parent)
    (path,) = folder.glob("2*/run.json")
    record = json.loads(path.read_text())
    assert record["status"] == "complete", record["status_reason"]
    paid = ("calls", "reserved_usd", "asked", "cached", "tokens_in", "tokens_out", "cost_usd", "seconds")
    counts = {name: n for name, n in record["counts"].items() if name not in paid}
    kept = ("estimates", "findings", "diagnoses", "claims")
    return counts, {key: record[key] for key in kept if key in record}, record.get("tabular", {}).get("pairs")


def journaled(folder: Path) -> int:
    lines = [p.read_bytes().splitlines(keepends=True) for p in folder.rglob("responses.jsonl")]
    return sum(line.endswith(b"\n") for some in lines for line in some)


Kind = tuple[Callable[[Any, Path], list[str]], str, tuple[str, ...]]
KINDS: dict[str, Kind] = {  # how it starts; the first file of its folder; how it is gone on with
    "jobs": (jobs, "2*/plan.json", ("resume",)),
    "tabular": (tabular, "2*/plan.json", ("resume",)),
    "agent": (agent, "agent-*/session.json", ("resume",)),
}


def kill(nursery: Nursery, server: Server, folder: Path, begun: str, calls: int, argv: list[str]) -> bool:
    """Start it and kill it after so many more calls; whether it lived as long as that."""
    aim = sum(server.asked.values()) + calls
    pid = nursery.start(*argv)
    deadline = time.monotonic() + 600
    while sum(server.asked.values()) < aim or not list(folder.glob(begun)):
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            break
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    code = nursery.wait(pid)
    assert code in (0, -signal.SIGKILL), nursery.said.read_text()[-2000:]
    server.settle()
    return bool(code)


@pytest.fixture(scope="module")
def whole(nursery: Nursery, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """By kind, the figures of a run that nobody cut off, and how many calls it made."""
    known: dict[str, tuple[Any, int]] = {}

    def of(kind: str) -> tuple[Any, int]:
        if kind not in known:
            folder = tmp_path_factory.mktemp(kind)
            server.asked.clear()
            nursery.call(*KINDS[kind][0](server, folder))
            known[kind] = figures(folder), sum(server.asked.values())
        return known[kind]

    return of


def killed_and_gone_on_with(
    nursery: Nursery, server: Server, whole: Any, folder: Path, kind: str, moments: list[int]
) -> int:
    """The kills that hit."""
    start, begun, again = KINDS[kind]
    expected, total = whole(kind)
    server.asked.clear()
    argv, hits = start(server, folder), 0
    for moment in moments:
        alive = kill(nursery, server, folder, begun, moment, argv)
        hits += alive
        (first,) = folder.glob(begun)
        argv = [*again, str(first.parent), "--yes"]
        if not alive:
            break
    lost = sum(server.asked.values()) - journaled(folder)
    assert 0 <= lost <= IN_FLIGHT * hits
    if hits == len(moments):
        nursery.call(*argv)
    assert figures(folder) == expected
    # What was in flight at a kill is all that was asked for again.
    assert total <= sum(server.asked.values()) == total + lost
    for run in {p.parent for name in ("plan.json", "session.json") for p in folder.rglob(name)}:
        nursery.call("verify", str(run))
    if kind == "agent" and hits == len(moments):
        assert load(first.parent).record["resumed"] == hits
    return hits


@pytest.mark.parametrize(("kind", "shares"), [("jobs", (0.4,)), ("tabular", (0.5,)), ("agent", (0.1, 0.5))])
def test_killed_and_gone_on_with(
    nursery: Nursery, server: Server, whole: Any, tmp_path: Path, kind: str, shares: tuple[float, ...]
) -> None:
    total = whole(kind)[1]
    assert total > 50
    moments = [int(share * total) for share in shares]
    assert killed_and_gone_on_with(nursery, server, whole, tmp_path, kind, moments) == len(shares)


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("SOAK"), reason="takes ten minutes; make soak runs it")
@pytest.mark.parametrize(("kind", "kills"), [("jobs", 12), ("tabular", 12), ("agent", 13)])
def test_kills_at_random_moments(
    nursery: Nursery, server: Server, whole: Any, tmp_path: Path, kind: str, kills: int
) -> None:
    """Thirteen more are in batches: `test_batch_cli`."""
    rng, total = Random(7), whole(kind)[1]
    hits = number = 0
    while hits < kills:
        number += 1
        assert number <= 3 * kills, "runs end before they can be killed"
        moments = [rng.randint(0, total - 1)]
        if rng.random() < 0.3 and kills - hits > 1:
            moments = [moments[0] // 2, rng.randint(0, total // 2)]
        folder = tmp_path / f"killed-{number}"
        hits += killed_and_gone_on_with(nursery, server, whole, folder, kind, moments)
