"""``kill -9`` at random moments of runs with ``--jobs``, in batches, of the agent and over rows; then they are gone on with.

The figures are those of a run that nobody cut off, what was answered and is on disk is not asked again, and the chains hold.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from nursery import IN_FLIGHT, Nursery, Server, finished, kill_after, label, sentiment

from auditor.agent import load
from auditor.store.journal import read
from tests.asking import GOAL, films, json_lines

pytestmark = pytest.mark.e2e


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
    return sentiment(server, folder, "--jobs", "2", "--no-cache")


def tabular(server: Server, folder: Path) -> list[str]:
    plan = "tabular --task lending --method aequitas --set generated=60 --max-calls 2000"
    return [*plan.split(), *asking(server, folder)]


def asking(server: Server, folder: Path) -> list[str]:
    model = ["--model", "openai:served-model", "--base-url", server.url]
    return [*model, "--no-cache", "--yes", "--concurrency", str(IN_FLIGHT), "--out", str(folder)]


def agent(server: Server, folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    data = json_lines(folder / "texts.jsonl", [{"id": one.id, "text": one.text} for one in films(40)])
    return ["agent", GOAL, "--data", str(data), *asking(server, folder)]


def plain(folder: Path) -> Any:
    """Record, steps and report of a session without times, names and counts of calls, which a kill adds to."""

    def bare(text: str) -> Any:
        text = re.sub(r'("calls": |calls of the model \| )\d+|\d+(?= calls[ ,])', r"\1", text).replace('"calls": ,', "")
        text = text.replace(folder.name, "SESSION").replace(str(folder.parent), "OUT")
        text = re.sub(r"runs/\d{8}-\d{6}-\w+(-\d+)?", "runs/RUN", text)
        return re.sub(r"\| seconds \| [^|]*\|", "| seconds |", text)

    record = json.loads(bare((folder / "session.json").read_text(encoding="utf-8")))
    del record["spent"]["seconds"], record["resumed"]
    steps = [json.loads(bare(json.dumps(step))) for step in read(folder / "steps.jsonl")]
    return record, steps, bare((folder / "agent.md").read_text(encoding="utf-8"))


def figures(folder: Path) -> Any:
    """What must be alike, however often a run was killed."""
    for path in folder.glob("agent-*/session.json"):
        session = load(path.parent).record
        assert session["status"] == "complete", session["status_reason"]
        return plain(path.parent)
    record = finished(folder)
    paid = ("calls", "reserved_usd", "asked", "cached", "tokens_in", "tokens_out", "cost_usd", "seconds")
    counts = {name: n for name, n in record["counts"].items() if name not in paid}
    kept = ("estimates", "findings", "diagnoses", "claims")
    return counts, {key: record[key] for key in kept if key in record}, record.get("tabular", {}).get("pairs")


def journaled(folder: Path) -> int:
    lines = [p.read_bytes().splitlines(keepends=True) for p in folder.rglob("responses.jsonl")]
    return sum(line.endswith(b"\n") for some in lines for line in some)


KINDS: dict[str, tuple[Callable[[Any, Path], list[str]], str]] = {  # how it starts; the first file of its folder
    "jobs": (jobs, "2*/plan.json"),
    "tabular": (tabular, "2*/plan.json"),
    "agent": (agent, "agent-*/session.json"),
}


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


def gone_on_with(nursery: Nursery, server: Server, whole: Any, folder: Path, kind: str, moments: list[int]) -> int:
    """The kills that hit."""
    start, begun = KINDS[kind]
    expected, total = whole(kind)
    server.asked.clear()
    argv, hits = start(server, folder), 0
    for moment in moments:
        alive = kill_after(nursery, server, folder, moment, *argv, begun=begun, wait_s=600)
        hits += alive
        (first,) = folder.glob(begun)
        argv = ["resume", str(first.parent), "--yes"]
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
    assert gone_on_with(nursery, server, whole, tmp_path, kind, moments) == len(shares)


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("SOAK"), reason="takes ten minutes; make soak runs it")
@pytest.mark.parametrize(("kind", "kills"), [("jobs", 12), ("tabular", 12), ("agent", 13)])
def test_kills_at_random(nursery: Nursery, server: Server, whole: Any, tmp_path: Path, kind: str, kills: int) -> None:
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
        hits += gone_on_with(nursery, server, whole, folder, kind, moments)
