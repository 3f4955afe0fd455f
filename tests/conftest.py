"""What tests of several folders use."""

from __future__ import annotations

from random import Random

import pytest

from auditor.core.errors import CallError
from auditor.models.attempts import RetryPolicy


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that failed are asked again as ever, without the wait before."""
    delay = RetryPolicy.delay

    def none(self: RetryPolicy, attempt: int, error: CallError, waited_s: float, rng: Random) -> float | None:
        return None if delay(self, attempt, error, waited_s, rng) is None else 0.0

    monkeypatch.setattr(RetryPolicy, "delay", none)
