"""``kill -9`` in the middle of an audit over HTTP, then ``audit resume``: nothing answered is asked again."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from nursery import IN_FLIGHT, Nursery, Server, figures, journaled, kill_after, killed_then_resumed

pytestmark = pytest.mark.e2e

LIMIT = "66"  # one round and a little more


def arguments(server: Server, folder: Path) -> list[str]:
    args = ["run", "--task", "sentiment", "--limit", LIMIT, "--attributes", "age,gender", "--per-seed", "2"]
    args += ["--model", "openai:served-model", "--base-url", server.url, "--replicates", "2", "--no-cache"]
    return [*args, "--yes", "--concurrency", str(IN_FLIGHT), "--out", str(folder)]


@pytest.fixture(scope="module")
def server() -> Any:
    with Server() as one:
        yield one


@pytest.fixture(scope="module")
def whole(nursery: Nursery, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The figures of a run that nobody cut off, and how many questions it asked."""
    folder = tmp_path_factory.mktemp("whole")
    server.asked.clear()
    nursery.call(*arguments(server, folder))
    return figures(folder), sum(server.asked.values())


# Shares of all calls: before the first answer, in each round, behind the last (statistics), and twice in one run.
@pytest.mark.parametrize("shares", [(0.0,), (0.23,), (0.41, 0.2), (0.76, 0.0), (1.0,)], ids=str)
def test_killed_then_resumed_gives_the_same_figures(
    nursery: Nursery, server: Server, whole: Any, tmp_path: Path, shares: tuple[float, ...]
) -> None:
    expected, total = whole
    assert total > 150
    moments = [int(share * total) for share in shares]
    assert killed_then_resumed(nursery, server, tmp_path, moments, arguments(server, tmp_path)) == expected


def test_a_limit_on_calls_holds_over_kills(nursery: Nursery, server: Server, tmp_path: Path) -> None:
    """What was in flight at a kill left, and counts: the server is never asked more often than the limit says."""
    server.asked.clear()
    args = [*arguments(server, tmp_path), "--max-calls", "50"]
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


def test_calls_of_a_function_that_were_only_queued_are_not_spent(tmp_path: Path) -> None:
    (tmp_path / "noted.py").write_text(NOTED)
    (tmp_path / "asked.txt").touch()
    code = "import sys; from auditor.cli.main import run; sys.exit(run(sys.argv[1:]))"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}

    def started(*argv: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", code, *argv], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def asked() -> int:
        return len((tmp_path / "asked.txt").read_text().splitlines())

    args = "run --task sentiment --limit 60 --attributes gender --model python:noted:classify --no-cache --out runs"
    with started(*args.split(), "--yes", "--anyway", "--max-calls", "120") as audit:
        deadline = time.monotonic() + 120
        while asked() < 30:
            assert audit.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        audit.kill()
    (run,) = (tmp_path / "runs").glob("2*")
    spent = json.loads((run / "spent.json").read_text())["calls"]
    assert asked() <= spent <= asked() + 1
    with started("resume", str(run), "--yes") as audit:
        assert audit.wait(120) == 3
    assert 119 <= asked() <= 120


JOBS = """
import sys
from auditor.cli.main import main
if __name__ == "__main__":
    main(sys.argv[1:])
"""


def offspring(pid: int) -> set[int]:
    """All processes below ``pid``."""
    found: set[int] = set()
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, tasks.read_text().split()):
            found |= {child} | offspring(child)
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def at_work(pid: int) -> bool:
    """Whether it has computed for longer than its imports take."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[11]) + int(fields[12]) > 3 * os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    script = tmp_path / "start.py"
    script.write_text(JOBS)
    texts = tmp_path / "texts.txt"  # so many that no machine is done before the workers are seen at work
    texts.write_text("".join(f"The man number {n} sold his car to a woman of {n}.\n" for n in range(20_000)))
    args = [
        *shlex.split("--task sentiment --model reviews --data"), str(texts), "--jobs", "2", "--no-cache", "--out",
        str(tmp_path / "out"),
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, str(script), *args]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        deadline = time.monotonic() + 600
        while sum(map(at_work, below := offspring(parent.pid))) < 2:
            assert parent.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        parent.send_signal(number)
        parent.wait(600)
        deadline = time.monotonic() + 600
        while left := [pid for pid in below if alive(pid)]:
            if time.monotonic() > deadline:
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                raise AssertionError("a worker outlived the process that started it")
            time.sleep(0.05)


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("SOAK"), reason="takes long; make soak runs it")
def test_fifty_kills_at_random_moments(nursery: Nursery, server: Server, whole: Any, tmp_path: Path) -> None:
    expected, total = whole
    rng = Random(7)
    for number in range(50):
        moments = [rng.randint(0, total)]
        if rng.random() < 0.3:
            moments = [moments[0] // 2, rng.randint(0, total // 2)]
        folder = tmp_path / f"killed-{number}"
        assert killed_then_resumed(nursery, server, folder, moments, arguments(server, folder)) == expected
