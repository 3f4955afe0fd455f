"""How many calls may be in flight: additive increase, multiplicative decrease."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType

from auditor.errors import ConfigError

MAX_CLOSED_S = 120.0  # a reset further away is a daily limit: let the 429 that follows end the run
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


def duration_s(text: str) -> float | None:
    """Seconds of a duration as servers write it (``6m0s``, ``12ms``, ``20``); None for anything else.

    Examples
    --------
    >>> [duration_s(t) for t in ("6m0s", "120ms", "20", "soon", "")]
    [360.0, 0.12, 20.0, None, None]
    """
    text = text.strip().lower()
    if not text or _PART.sub("", text):
        return None
    return sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(text))


class Limiter:
    """A semaphore whose size follows the server.

    It starts at ``concurrency`` and never leaves [1, ``concurrency``]. A rate-limit answer halves it, once
    for all calls that were under way together; as many successes in a row as the current size add one
    (the scheme of TCP congestion avoidance; Chiu and Jain, 1989, show that it converges).

    Parameters
    ----------
    concurrency : int
        The ceiling, at least 1.
    clock : callable
        Seconds, monotonic.

    Examples
    --------
    >>> limiter = Limiter(8)
    >>> limiter.slow_down(sent_at=0.0)
    >>> limiter.size
    4
    """

    def __init__(self, concurrency: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        if concurrency < 1:
            raise ConfigError(f"--concurrency is {concurrency}; it must be 1 or more")
        self.concurrency = concurrency
        self.size = concurrency
        self.in_flight = 0
        self._clock = clock
        self._successes = 0
        self._slowed_at = float("-inf")
        self._closed_until = float("-inf")
        self._queue: deque[asyncio.Future[None]] = deque()

    def wait_s(self) -> float:
        """Seconds until calls may be sent again, as the server asked; 0 if now."""
        return max(0.0, self._closed_until - self._clock())

    def close_for(self, seconds: float) -> None:
        """Send nothing for ``seconds``."""
        self._closed_until = max(self._closed_until, self._clock() + seconds)

    def slow_down(self, *, sent_at: float) -> None:
        """A call sent at ``sent_at`` was rate limited."""
        self._successes = 0
        if sent_at < self._slowed_at:
            return  # it was under way when the size was halved, and says nothing about the new size
        self._slowed_at = self._clock()
        self.size = max(1, self.size // 2)

    def speed_up(self) -> None:
        """A call was answered."""
        self._successes += 1
        if self._successes >= self.size:
            self._successes = 0
            self.size = min(self.concurrency, self.size + 1)
            self._wake()

    def headers(self, told: Mapping[str, str]) -> None:
        """Take note of the rate-limit headers of an answer: with no request left, wait for the reset.

        Parameters
        ----------
        told : mapping
            Names in lower case, as OpenAI-compatible servers send them: ``x-ratelimit-remaining-requests``,
            ``x-ratelimit-reset-requests`` and the same for tokens. What cannot be read is passed over.

        Examples
        --------
        >>> limiter = Limiter(8, clock=lambda: 0.0)
        >>> limiter.headers({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m2.5s"})
        >>> limiter.wait_s()
        62.5
        """
        for what in ("requests", "tokens"):
            left = told.get(f"x-ratelimit-remaining-{what}", "")
            seconds = duration_s(told.get(f"x-ratelimit-reset-{what}", ""))
            if left.isdigit() and int(left) == 0 and seconds:
                self.close_for(min(seconds, MAX_CLOSED_S))

    async def __aenter__(self) -> None:
        while self.in_flight >= self.size:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                # The turn may have been given in the same moment; hand it on.
                self._wake()
                raise
        self.in_flight += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        free = self.size - self.in_flight
        while free > 0 and self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
