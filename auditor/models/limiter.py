"""How many calls may be in flight: additive increase, multiplicative decrease, and what the server says is left."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import TracebackType

from auditor.core.errors import ConfigError
from auditor.models.pace import Pace

MAX_CLOSED_S = 120.0  # a reset further away is a daily limit: let the 429 that follows end the run
UNTOLD_S = 1.0  # how long a statement about what is left holds, where the server does not say
_COUNT = re.compile(r"[0-9]{1,12}")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)?")
_ENTRY: ContextVar[int] = ContextVar("entry", default=0)  # the number of the call that this task is in
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

    It starts at ``concurrency`` and never leaves [1, ``concurrency``]. A rate-limit answer that names a time, or comes
    before anything was answered, halves it, once for all calls that were under way together; as many successes in a row
    as the current size add one (the scheme of TCP congestion avoidance; Chiu and Jain, 1989, show that it converges).
    Refusals that name no time set a pace instead (`auditor.models.pace`).

    Where the server says how much is left (`headers`), no more calls are in flight than that: if each of them still
    has to be let in, there is room for it. So a limit that is this client's alone is met without a refusal.

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
        self._left, self._left_until = concurrency, float("-inf")
        self._entries = 0  # calls that were let through
        self._told_at = 0  # how many had been when the server said what is left
        self._tokens_per_call = 0.0
        self._any = False  # anything was answered
        self.pace = Pace(concurrency, clock=clock)

    @property
    def room(self) -> int:
        """How many calls may be in flight now."""
        told = self._left if self._clock() < self._left_until else self.size
        return max(1, min(self.size, told))

    def wait_s(self) -> float:
        """Seconds until calls may be sent again, as the server asked or the pace has it; 0 if now."""
        return max(0.0, self._closed_until - self._clock(), self.pace.wait_s())

    def close_for(self, seconds: float) -> None:
        """Send nothing for ``seconds``."""
        self._closed_until = max(self._closed_until, self._clock() + seconds)

    def slow_down(self, *, sent_at: float, told: bool = True) -> None:
        """A call sent at ``sent_at`` was rate limited; ``told``: the server said for how long."""
        if self._any and not told:
            self.pace.refused(sent_at=sent_at)
            return
        self._successes = 0
        if sent_at < self._slowed_at:
            return  # it was under way when the size was halved, and says nothing about the new size
        self._slowed_at = self._clock()
        self.size = max(1, self.size // 2)

    def speed_up(self, *, sent_at: float | None = None, tokens: int = 0) -> None:
        """A call sent at ``sent_at`` was answered, for so many tokens in and out."""
        self._any = True
        if sent_at is not None:
            self.pace.answered(sent_at=sent_at)
        if tokens:
            last = self._tokens_per_call or tokens
            self._tokens_per_call = last + 0.1 * (tokens - last)
        self._successes += 1
        if self._successes >= self.size:
            self._successes = 0
            self.size = min(self.concurrency, self.size + 1)
            self._wake()

    def headers(self, told: Mapping[str, str]) -> None:
        """Take note of the rate-limit headers of an answer: with none left, wait for the reset; with few, ask few.

        Parameters
        ----------
        told : mapping
            Names in lower case, as OpenAI-compatible servers send them: ``x-ratelimit-remaining-requests``,
            ``x-ratelimit-reset-requests`` and the same for tokens. What cannot be read is passed over.

        Examples
        --------
        >>> limiter = Limiter(8, clock=lambda: 0.0)
        >>> limiter.headers({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1m2.5s"})
        >>> limiter.wait_s(), limiter.room
        (0.0, 3)
        >>> limiter.headers({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m2.5s"})
        >>> limiter.wait_s()
        62.5
        """
        for what, per_call in (("requests", 1.0), ("tokens", self._tokens_per_call)):
            stated = told.get(f"x-ratelimit-remaining-{what}", "").strip()
            if not _COUNT.fullmatch(stated):
                continue
            left = int(stated)
            seconds = duration_s(told.get(f"x-ratelimit-reset-{what}", ""))
            if left == 0 and seconds:
                self.close_for(min(seconds, MAX_CLOSED_S))
            if per_call:
                self._tell(int(left / per_call), UNTOLD_S if seconds is None else min(seconds, MAX_CLOSED_S))

    def _tell(self, left: int, seconds: float) -> None:
        """The server has room for ``left`` further calls, for ``seconds``."""
        now = self._clock()
        # The answer to a call that was under way already may tell of an earlier time, at which more was left.
        later = _ENTRY.get() > self._told_at
        if left <= self._left or later or now >= self._left_until:
            self._left, self._left_until, self._told_at = left, now + seconds, self._entries

    async def __aenter__(self) -> None:
        while self.in_flight >= self.room:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                # The turn may have been given in the same moment; hand it on.
                self._wake()
                raise
        self.in_flight += 1
        self._entries += 1
        _ENTRY.set(self._entries)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        free = self.room - self.in_flight
        while free > 0 and self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
