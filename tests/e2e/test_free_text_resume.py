"""Audits of amounts and texts, with a judge, killed at any moment and resumed: nothing is asked twice."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from nursery import IN_FLIGHT, Nursery, Server, figures, killed_then_resumed

pytestmark = pytest.mark.e2e


TEXTS = [f"He works as a {role} at the mill and likes it." for role in ("clerk", "baker", "nurse", "guard", "vet")]
WORDS = ["calm", "kind", "exact", "quick", "warm", "plain", "steady", "careful"]


def reply(model: str, text: str) -> str:
    """Letters and salaries of the text alone; the judge goes for the longer text."""
    number = hashlib.sha256(text.encode()).digest()
    if model == "judge":
        first, _, second = text.partition("Text 1:")[2].partition("Text 2:")
        long = len(first.strip()) - len(second.partition("</texts>")[0].strip())
        return "equal" if not long else "first" if long > 0 else "second"
    if "dollars" in text:
        return f"${60_000 + 500 * (number[0] % 20):,}"
    return "I recommend this person, who is " + " and ".join(WORDS[n % 8] for n in number[: 2 + number[4] % 4]) + "."


@pytest.fixture(scope="module")
def server() -> Any:
    with Server(reply) as one:
        yield one


def arguments(server: Server, folder: Path, task: str, *more: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    args = ["run", "--task", task, "--data", str(folder / "texts.txt"), "--attributes", "gender", "--no-cache"]
    args += [
        "--full-plan", "--model", "openai:writer", "--base-url", server.url,
        *shlex.split("--replicates 2 --per-seed 2 --yes"),
    ]  # fmt: skip
    if task == "letter":
        args += ["--judge", "openai:judge"]
    return [*args, "--concurrency", str(IN_FLIGHT), "--out", str(folder), *more]


@pytest.fixture(scope="module")
def whole(nursery: Nursery, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The figures of runs that nobody cut off, and how many questions they asked."""
    told = {}
    for task in ("letter", "salary"):
        folder = tmp_path_factory.mktemp(task)
        server.asked.clear()
        nursery.call(*arguments(server, folder, task))
        told[task] = figures(folder), sum(server.asked.values())
    return told


def judged(server: Server) -> int:
    return sum(n for name, n in server.asked.items() if name.startswith("judge"))


@pytest.mark.parametrize(
    ("task", "shares"), [("letter", (0.1,)), ("letter", (0.6, 0.1)), ("letter", (0.95,)), ("salary", (0.5,))]
)
def test_killed_then_resumed_gives_the_same_figures(
    nursery: Nursery, server: Server, whole: Any, tmp_path: Path, task: str, shares: tuple[float, ...]
) -> None:
    expected, total = whole[task]
    moments = [int(share * total) for share in shares]
    argv = arguments(server, tmp_path, task)
    assert killed_then_resumed(nursery, server, tmp_path, moments, argv) == expected
    if task == "letter":
        told = expected["generation_pairs"]["judge"]
        assert told["pairs"]["preferred"] > 0
        assert 24 < told["asked"] <= judged(server) <= told["asked"] + IN_FLIGHT * len(moments)
        assert expected["counts"]["asked"] == total


@pytest.mark.parametrize("stopped", ["judge", "control"])
def test_the_judge_counts_against_the_limit_and_a_resumed_run_goes_on(
    nursery: Nursery, server: Server, whole: Any, tmp_path: Path, stopped: str
) -> None:
    """The texts of the control are asked last, those of the judge before."""
    expected, total = whole["letter"]
    limit = total - 9 if stopped == "control" else total - 38
    server.asked.clear()
    assert nursery.wait(nursery.start(*arguments(server, tmp_path, "letter", "--max-calls", str(limit)))) == 3
    assert sum(server.asked.values()) == limit
    (run,) = tmp_path.glob("2*")
    record = json.loads((run / "run.json").read_text())
    assert ("The judge openai:judge was stopped" in record["status_reason"]) == (stopped == "judge")
    assert f"the limit of {limit} calls" in record["status_reason"]
    assert record["counts"]["calls"] == limit
    assert record["counts"]["failed"] == 0
    told = record["generation_pairs"]["judge"]
    assert (told["pairs"]["pairs"] < expected["generation_pairs"]["judge"]["pairs"]["pairs"]) == (stopped == "judge")
    assert told["pairs"]["unreadable"] == 0
    nursery.call("resume", str(run), "--yes", "--max-calls", str(total))
    assert sum(server.asked.values()) == total
    assert figures(tmp_path) == expected
