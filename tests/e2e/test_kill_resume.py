"""``kill -9`` in the middle of an audit over HTTP, then ``audit resume``: nothing answered is asked again."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

LIMIT = "66"  # one round and a little more


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


nursery_ = _load("nursery")
Nursery, Server, IN_FLIGHT = nursery_.Nursery, nursery_.Server, nursery_.IN_FLIGHT
figures, killed_then_resumed = nursery_.figures, nursery_.killed_then_resumed
kill_after, journaled = nursery_.kill_after, nursery_.journaled


def arguments(server: Server, folder: Path) -> list[str]:
    args = ["run", "--task", "sentiment", "--limit", LIMIT, "--attributes", "age,gender", "--per-seed", "2"]
    args += ["--model", "openai:served-model", "--base-url", server.url, "--replicates", "2", "--no-cache"]
    return [*args, "--yes", "--concurrency", str(IN_FLIGHT), "--out", str(folder)]


@pytest.fixture(scope="module")
def server() -> Any:
    with Server() as one:
        thread = threading.Thread(target=one.serve_forever, daemon=True)
        thread.start()
        yield one
        one.shutdown()


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(nursery: Nursery, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The figures of a run that nobody cut off, and how many questions it asked."""
    folder = tmp_path_factory.mktemp("whole")
    server.asked.clear()
    nursery.call(*arguments(server, folder))
    return figures(folder), sum(server.asked.values())


# Shares of all calls: before the first answer, in each round, behind the last (statistics), and twice in one run.
@pytest.mark.parametrize(
    "shares", [(0.0,), (0.07,), (0.23,), (0.41, 0.2), (0.58,), (0.76, 0.0), (0.93,), (1.0,)], ids=str
)
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
    kill_after(nursery, server, tmp_path, 12, "resume", str(run))
    assert nursery.wait(nursery.start("resume", str(run))) == 3
    assert nursery.wait(nursery.start("resume", str(run))) == 3
    asked = sum(server.asked.values())
    lost = asked - sum(journaled(run / "responses.jsonl").values())
    assert 50 - 2 * IN_FLIGHT <= asked <= 50
    assert lost <= 2 * IN_FLIGHT
    assert json.loads((run / "spent.json").read_text())["calls"] == 50


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
