"""Audits that run at once on one cache give the same figures, and a later one asks nothing again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from nursery import IN_FLIGHT, Nursery, Server, figures

pytestmark = pytest.mark.e2e


@pytest.fixture
def server() -> Any:
    with Server() as one:
        yield one


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


def test_audits_at_once_share_a_cache_without_harm(
    nursery: Nursery, server: Server, alone: Any, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in "abc"]
    audits = [nursery.start(*arguments(server, folder)) for folder in folders[:2]]
    assert [nursery.wait(pid) for pid in audits] == [0, 0], nursery.said.read_text()[-2000:]
    # Each of them asks a prompt at most as often as one alone.
    assert not alone - server.asked
    assert not server.asked - alone - alone
    server.asked.clear()
    nursery.call(*arguments(server, folders[2]))
    assert not server.asked
    assert same(folders[0]) == same(folders[1]) == same(folders[2])
    for folder in folders:
        nursery.call("verify", *map(str, folder.glob("2*")))
