"""What tests of several folders use."""

from __future__ import annotations

import os
from random import Random

import pytest

from auditor.core.errors import CallError
from auditor.models.attempts import RetryPolicy

for name in ("COLUMNS", "LINES"):  # workers of pytest-xdist set them, and a test alone does not
    os.environ.pop(name, None)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that failed are asked again as ever, without the wait before."""
    delay = RetryPolicy.delay

    def none(self: RetryPolicy, attempt: int, error: CallError, waited_s: float, rng: Random) -> float | None:
        return None if delay(self, attempt, error, waited_s, rng) is None else 0.0

    monkeypatch.setattr(RetryPolicy, "delay", none)
