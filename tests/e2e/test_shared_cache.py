"""Audits that run at once on one cache ask each prompt once, also where one of them is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from nursery import IN_FLIGHT, Nursery, Server, figures

pytestmark = pytest.mark.e2e


@pytest.fixture
def server() -> Any:
    with Server() as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.shutdown()


@pytest.fixture
def nursery(tmp_path: Path) -> Nursery:
    return Nursery(tmp_path)


def arguments(server: Server, folder: Path) -> list[str]:
    args = ["run", "--task", "sentiment", "--limit", "66", "--attributes", "age,gender", "--per-seed", "2"]
    args += ["--model", "openai:served-model", "--base-url", server.url, "--replicates", "2", "--yes"]
    return [*args, "--concurrency", str(IN_FLIGHT), "--out", str(folder)]


def same(folder: Path) -> dict[str, Any]:
    """The figures, but for who paid for them."""
    seen = figures(folder)
    paid = ("asked", "cached", "tokens_in", "tokens_out", "cost_usd")
    seen["counts"] = {name: n for name, n in seen["counts"].items() if name not in paid}
    return seen


@pytest.fixture
def alone(nursery: Nursery, server: Server, tmp_path: Path) -> Any:
    """What one audit without a cache asks, how often."""
    nursery.call(*arguments(server, tmp_path / "alone"), "--no-cache")
    asked = Counter(server.asked)
    server.asked.clear()
    assert sum(asked.values()) > 200
    return asked


def test_three_audits_at_once_pay_for_each_prompt_once(
    nursery: Nursery, server: Server, alone: Any, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in "abc"]
    audits = [nursery.start(*arguments(server, folder)) for folder in folders]
    assert [nursery.wait(pid) for pid in audits] == [0, 0, 0], nursery.said.read_text()[-2000:]
    assert server.asked == alone
    calls = [figures(folder)["counts"]["asked"] for folder in folders]
    assert sum(calls) == sum(alone.values())
    assert same(folders[0]) == same(folders[1]) == same(folders[2])
    for folder in folders:
        nursery.call("verify", *map(str, folder.glob("2*")))


def test_what_a_killed_audit_was_asking_is_asked_by_another(
    nursery: Nursery, server: Server, alone: Any, tmp_path: Path
) -> None:
    server.delay_s = 0.05
    folders = [tmp_path / name for name in "ab"]
    killed, other = (nursery.start(*arguments(server, folder)) for folder in folders)
    deadline = time.monotonic() + 60
    while sum(server.asked.values()) < 100:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(killed, signal.SIGKILL)
    assert nursery.wait(killed) == -signal.SIGKILL
    assert nursery.wait(other) == 0, nursery.said.read_text()[-2000:]
    (run,) = folders[0].glob("2*")
    nursery.call("resume", str(run), "--yes")
    # What was in flight at the kill, and what was answered and not yet committed, was paid for twice.
    assert set(server.asked) == set(alone)
    assert sum((server.asked - alone).values()) <= 8 * IN_FLIGHT
    assert not alone - server.asked
    assert same(folders[0]) == same(folders[1])
