"""``kill -9`` in the middle of an audit over HTTP, then ``audit resume``: nothing answered is asked again, also by others.

Audits of labels, of amounts and of texts with a judge.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from nursery import IN_FLIGHT, Nursery, Server, figures, journaled, kill_after, killed_then_resumed, label, sentiment

pytestmark = pytest.mark.e2e

TEXTS = [f"He works as a {role} at the mill and likes it." for role in ("clerk", "baker", "nurse", "guard", "vet")]
WORDS = ["calm", "kind", "exact", "quick", "warm", "plain", "steady", "careful"]


def reply(model: str, text: str) -> str:
    """Labels, letters and salaries of the text alone; the judge goes for the longer text."""
    if model == "served-model":
        return label(model, text)
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
    if task == "sentiment":
        return sentiment(server, folder, "--no-cache", *more)
    folder.mkdir(exist_ok=True)
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    plan = "--attributes gender --no-cache --full-plan --model openai:writer --replicates 2 --per-seed 2 --yes"
    judge = ["--judge", "openai:judge"] if task == "letter" else []
    args = ["run", "--task", task, "--data", str(folder / "texts.txt"), *plan.split(), *judge, "--base-url", server.url]
    return [*args, "--concurrency", str(IN_FLIGHT), "--out", str(folder), *more]


@pytest.fixture(scope="module")
def whole(nursery: Nursery, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """By task, the figures of a run that nobody cut off, and how often it asked what."""
    told: dict[str, tuple[Any, Counter[str]]] = {}

    def of(task: str) -> tuple[Any, Counter[str]]:
        if task not in told:
            folder = tmp_path_factory.mktemp(task)
            server.asked.clear()
            nursery.call(*arguments(server, folder, task))
            told[task] = figures(folder), Counter(server.asked)
        return told[task]

    return of


def judged(server: Server) -> int:
    return sum(n for name, n in server.asked.items() if name.startswith("judge"))


# Shares of all calls: before the first answer, in each round, behind the last (statistics), and twice in one run.
SHARES = [("sentiment", shares) for shares in ((0.0,), (0.23, 0.3), (0.76, 0.0), (1.0,))]
SHARES += [("letter", (0.1,)), ("letter", (0.6, 0.1)), ("letter", (0.95,)), ("salary", (0.5,))]


@pytest.mark.parametrize(("task", "shares"), SHARES, ids=str)
def test_killed_then_resumed_gives_the_same_figures(
    nursery: Nursery, server: Server, whole: Any, tmp_path: Path, task: str, shares: tuple[float, ...]
) -> None:
    expected, asked = whole(task)
    total = asked.total()
    assert total > 150 or task != "sentiment"
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
    expected, asked = whole("letter")
    total = asked.total()
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


def test_a_limit_on_calls_holds_over_kills(nursery: Nursery, server: Server, tmp_path: Path) -> None:
    """What was in flight at a kill left, and counts: the server is never asked more often than the limit says."""
    server.asked.clear()
    args = arguments(server, tmp_path, "sentiment", "--max-calls", "50")
    kill_after(nursery, server, tmp_path, 12, *args)
    (run,) = tmp_path.glob("2*")
    kill_after(nursery, server, tmp_path, 12, "resume", str(run), "--yes")
    assert nursery.wait(nursery.start("resume", str(run), "--yes")) == 3
    assert nursery.wait(nursery.start("resume", str(run), "--yes")) == 3
    asked = sum(server.asked.values())
    lost = asked - sum(journaled(run / "responses.jsonl").values())
    assert 50 - 2 * IN_FLIGHT <= asked <= 50
    assert lost <= 2 * IN_FLIGHT
    assert json.loads((run / "spent.json").read_text())["calls"] == 50


NOTED = """
import time
def classify(text):
    with open("asked.txt", "a") as file:
        file.write("x\\n")
    time.sleep(0.01)
    return "positive"
"""


def started(folder: Path, *argv: str, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """The command in a process of its own, as a shell starts it."""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [str(Path(sys.executable).with_name("audit")), *argv]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=stdout, stderr=subprocess.DEVNULL)


def test_calls_of_a_function_that_were_only_queued_are_not_spent(tmp_path: Path) -> None:
    (tmp_path / "noted.py").write_text(NOTED)
    (tmp_path / "asked.txt").touch()

    def asked() -> int:
        return len((tmp_path / "asked.txt").read_text().splitlines())

    args = "run --task sentiment --limit 60 --attributes gender --model python:noted:classify --no-cache --out runs"
    with started(tmp_path, *args.split(), "--yes", "--anyway", "--max-calls", "120") as audit:
        deadline = time.monotonic() + 120
        while asked() < 30:
            assert audit.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        audit.kill()
    (run,) = (tmp_path / "runs").glob("2*")
    spent = json.loads((run / "spent.json").read_text())["calls"]
    assert asked() <= spent <= asked() + 1
    with started(tmp_path, "resume", str(run), "--yes") as audit:
        assert audit.wait(120) == 3
    assert 119 <= asked() <= 120


def offspring(pid: int) -> set[int]:
    """All processes below ``pid``."""
    found: set[int] = set()
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, tasks.read_text().split()):
            found |= {child} | offspring(child)
    return found


def stat(pid: int) -> list[str]:
    """What the kernel says of a process behind its name: its state first; of one that is gone, that it is a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["Z", *"0" * 20]


def at_work(pid: int) -> bool:
    """Whether it has computed for longer than its imports take."""
    return sum(map(int, stat(pid)[11:13])) > 3 * os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    texts = tmp_path / "texts.txt"  # so many that no machine is done before the workers are seen at work
    texts.write_text("".join(f"The man number {n} sold his car to a woman of {n}.\n" for n in range(20_000)))
    args = "--task sentiment --model reviews --data texts.txt --jobs 2 --no-cache --out out"
    with started(tmp_path, *args.split(), stdout=subprocess.PIPE) as parent:
        deadline = time.monotonic() + 600
        while sum(map(at_work, below := offspring(parent.pid))) < 2:
            assert parent.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        parent.send_signal(number)
        parent.wait(600)
        deadline = time.monotonic() + 600
        while left := [pid for pid in below if stat(pid)[0] != "Z"]:
            if time.monotonic() > deadline:
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                raise AssertionError("a worker outlived the process that started it")
            time.sleep(0.05)


def test_audits_at_once_share_a_cache_unharmed(nursery: Nursery, server: Server, whole: Any, tmp_path: Path) -> None:
    """They give the same figures, and a later one asks nothing again."""
    _, alone = whole("sentiment")
    assert alone.total() > 200
    server.asked.clear()
    folders = [tmp_path / name for name in "abc"]
    audits = [nursery.start(*sentiment(server, folder)) for folder in folders[:2]]
    assert [nursery.wait(pid) for pid in audits] == [0, 0], nursery.said.read_text()[-2000:]
    # Each of them asks a prompt at most as often as one alone.
    assert not alone - server.asked
    assert not server.asked - alone - alone
    server.asked.clear()
    nursery.call(*sentiment(server, folders[2]))
    assert not server.asked
    seen = [figures(folder) for folder in folders]
    for one in seen:
        for paid in ("asked", "cached", "tokens_in", "tokens_out"):
            del one["counts"][paid]
    assert seen[0] == seen[1] == seen[2]
    for folder in folders:
        nursery.call("verify", *map(str, folder.glob("2*")))


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("SOAK"), reason="takes long; make soak runs it")
def test_fifty_kills_at_random_moments(nursery: Nursery, server: Server, whole: Any, tmp_path: Path) -> None:
    rng, (expected, asked) = Random(7), whole("sentiment")
    total = asked.total()
    for number in range(50):
        moments = [rng.randint(0, total)]
        if rng.random() < 0.3:
            moments = [moments[0] // 2, rng.randint(0, total // 2)]
        folder = tmp_path / f"killed-{number}"
        assert killed_then_resumed(nursery, server, folder, moments, arguments(server, folder, "sentiment")) == expected
