"""What tests of several folders use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest
from nursery import Server

from auditor.core.errors import CallError
from auditor.models.client import RetryPolicy

for name in ("COLUMNS", "LINES"):  # workers of pytest-xdist set them, and a test alone does not
    os.environ.pop(name, None)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that failed are asked again as ever, without the wait before."""
    delay = RetryPolicy.delay

    def none(self: RetryPolicy, attempt: int, error: CallError, waited_s: float, rng: Random) -> float | None:
        return None if delay(self, attempt, error, waited_s, rng) is None else 0.0

    monkeypatch.setattr(RetryPolicy, "delay", none)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with a cache of its own, a key and no server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUDIT_CACHE", str(tmp_path / "cache.sqlite"))
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 12)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return tmp_path


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start a server that answers by a function of model and text; all of them end with the test."""
    with ExitStack() as running:
        yield lambda *reply, **options: running.enter_context(Server(*reply, **{"delay_s": 0.0} | options))
