"""How many calls may be in flight, and how many a second: what answers, time-outs, refusals and headers say."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import ContextVar

from auditor.core.errors import ConfigError

MAX_CLOSED_S = 120.0  # a reset further away is a daily limit: let the 429 that follows end the run
UNTOLD_S = 1.0  # how long a statement about what is left holds, where the server does not say
_COUNT = re.compile(r"[0-9]{1,12}")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)?")
_ENTRY: ContextVar[int] = ContextVar("entry", default=0)  # the number of the call that this task is in
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}

START = 2  # calls in flight at first
HOLDS, BRIEF_S = 3.0, 0.05  # a latency holds up to so many times the lowest, and up to so many seconds more
SLOWER = 1.02
ROOM = 0.7  # of the time-out: the most that a mean latency may take after the next step

GROUP = 16  # calls after which a pace is judged …
GROUP_S = 2.0  # … or seconds, with at least FEW calls and no refusal
FEW = 4
CROWD = 8  # refusals after which it is judged at once, where three in four are refused
MOSTLY = 0.6  # share of refusals from which on a slower group says nothing about chance: it was far too fast
STRAY = 0.05  # share of refusals that is let be
BELOW = 0.9  # of what was accepted: the next pace
STEEPEST = 8.0  # the most that one group may lower the pace
MORE_THAN_CHANCE = 0.3  # by how much the share of refusals must exceed one that slowing down did not change
FLOOR = 1 / 40  # of one call at a time


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
    """A semaphore whose size follows the server, between 1 and ``concurrency``.

    It starts at 2. As many answers as its size, sent since it last changed, let it grow: to twice the size until the
    first trouble, by one afterwards. It grows only while their mean latency holds, and leaves room below the time-out
    that was seen. A time-out halves it, and so does a refusal that names a time or comes before the first answer; calls
    that were under way together halve it once. Refusals that name no time set a pace instead (`Pace`).

    Where the server says how much is left (`headers`), no more calls are in flight than that: if each of them still
    has to be let in, there is room for it. So a limit that is this client's alone is met without a refusal.

    Examples
    --------
    >>> limiter = Limiter(8)
    >>> limiter.slow_down(sent_at=0.0)
    >>> limiter.size
    1
    """

    def __init__(self, concurrency: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        if concurrency < 1:
            raise ConfigError(f"--concurrency is {concurrency}; it must be 1 or more")
        self.concurrency = concurrency
        self.size = min(START, concurrency)
        self.in_flight = 0
        self._clock = clock
        self._slowed_at = self._changed_at = float("-inf")
        self._group, self._group_s = 0, 0.0  # answers to calls sent since the size changed, and their seconds
        self._best_s = float("inf")  # the lowest mean latency of a group
        self._timeout_s = float("inf")  # after how many seconds a call was given up
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
        left = self._left if self._clock() < self._left_until else self.size
        return max(1, min(self.size, left))

    def wait_s(self) -> float:
        """Seconds until calls may be sent again, as the server asked or the pace has it; 0 if now."""
        return max(0.0, self._closed_until - self._clock(), self.pace.wait_s())

    def close_for(self, seconds: float) -> None:
        """Send nothing for ``seconds``."""
        self._closed_until = max(self._closed_until, self._clock() + seconds)

    def slow_down(self, *, sent_at: float, timed: bool = True) -> None:
        """A call sent at ``sent_at`` was rate limited; ``timed``: the server said for how long."""
        if self._any and not timed:
            self.pace.refused(sent_at=sent_at)
        else:
            self._halve(sent_at)

    def timed_out(self, *, sent_at: float) -> None:
        """A call sent at ``sent_at`` got no whole answer in time."""
        if (seconds := self._clock() - sent_at) > self._best_s or not self._any:
            self._timeout_s = seconds
        self._halve(sent_at)

    def _halve(self, sent_at: float) -> None:
        if sent_at < self._slowed_at:
            return  # it was under way when the size was halved, and says nothing about the new size
        self._slowed_at = self._clock()
        self._resize(self.size // 2)

    def speed_up(self, *, sent_at: float, tokens: int = 0) -> None:
        """A call sent at ``sent_at`` was answered, for so many tokens in and out."""
        self._any = True
        self.pace.answered(sent_at=sent_at)
        if tokens:
            last = self._tokens_per_call or tokens
            self._tokens_per_call = last + 0.1 * (tokens - last)
        if sent_at < self._changed_at or self.size == self.concurrency:
            return
        self._group += 1
        self._group_s += self._clock() - sent_at
        if self._group >= self.size:
            self._grow(self._group_s / self._group)

    def _grow(self, mean_s: float) -> None:
        """Grow, where the mean latency of a group holds and would with more calls that share the server's work."""
        self._best_s = min(self._best_s, mean_s)
        more = 2 * self.size if self._slowed_at == float("-inf") else self.size + 1
        holds = mean_s <= HOLDS * self._best_s + BRIEF_S and mean_s * more <= ROOM * self._timeout_s * self.size
        if not holds:
            self._best_s *= SLOWER  # the server may be slower for good
        self._resize(more if holds else self.size)

    def _resize(self, size: int) -> None:
        self.size = max(1, min(self.concurrency, size))
        self._changed_at, self._group, self._group_s = self._clock(), 0, 0.0
        self._wake()

    def headers(self, values: Mapping[str, str]) -> None:
        """Take note of the rate-limit headers of an answer: with none left, wait for the reset; with few, ask few.

        Names in lower case, as OpenAI-compatible servers send them: ``x-ratelimit-remaining-requests``,
        ``x-ratelimit-reset-requests`` and the same for tokens. What cannot be read is passed over.

        Examples
        --------
        >>> limiter = Limiter(8, clock=lambda: 0.0)
        >>> limiter.headers({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "1m2.5s"})
        >>> limiter.wait_s(), limiter.room
        (0.0, 2)
        >>> limiter.headers({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m2.5s"})
        >>> limiter.wait_s()
        62.5
        """
        for what, per_call in (("requests", 1.0), ("tokens", self._tokens_per_call)):
            stated = values.get(f"x-ratelimit-remaining-{what}", "").strip()
            if not _COUNT.fullmatch(stated):
                continue
            left = int(stated)
            seconds = duration_s(values.get(f"x-ratelimit-reset-{what}", ""))
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

    async def __aexit__(self, *_: object) -> None:
        self.in_flight -= 1
        self._wake()

    def _wake(self) -> None:
        free = self.room - self.in_flight
        while free > 0 and self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


class Pace:
    """Calls a second, or no pace: learnt from refusals, where a server does not say when to come back.

    Calls are looked at in groups of those that were sent at one pace. A server with a limit on calls a second accepts
    as many of them as before when fewer are sent, so the pace becomes what it accepted; one that refuses at random
    accepts the same share of fewer calls, and slowing down would only lose time. Two slower groups in a row that were
    refused no less tell the second from the first; the pace then ends, and begins again only where clearly more is
    refused.

    Parameters
    ----------
    most : int
        Calls in flight at most: a pace above what these can reach holds nothing up, and ends.
    """

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_s: float | None = None  # the pace
        self._most, self._clock = most, clock
        self._next_at = float("-inf")
        self._latency_s: float | None = None  # of answers; None until the first
        self._capacity: float | None = None  # calls a second that were accepted when others were refused
        self._clean = 0  # groups in a row without refusals
        self._before: float | None = None  # share that was refused when it was last lowered
        self._in_vain = 0  # lowered, and refused no less
        self._chance = 0.0  # share that is refused at any pace
        self._begin()

    def _begin(self) -> None:
        self._since = self._clock()
        self._sent = self._answered = self._refused = 0
        self._last_sent = self._since

    def wait_s(self) -> float:
        """Seconds until the next call may be sent; 0 if now."""
        return 0.0 if self.per_s is None else max(0.0, self._next_at - self._clock())

    def sent(self, calls: int = 1) -> None:
        """So many calls are sent now."""
        now = self._clock()
        if not self._sent:
            self._since = now
        self._sent += calls
        self._last_sent = now
        if self.per_s is not None:
            self._next_at = max(self._next_at, now) + calls / self.per_s

    def answered(self, *, sent_at: float) -> None:
        """A call sent at ``sent_at`` was answered."""
        latency = max(self._clock() - sent_at, 1e-6)
        self._latency_s = latency if self._latency_s is None else self._latency_s + 0.1 * (latency - self._latency_s)
        if sent_at >= self._since:
            self._answered += 1
            self._judge()

    def refused(self, *, sent_at: float) -> None:
        """A call sent at ``sent_at`` was refused, and no time was named. Before the first answer this says nothing."""
        if self._latency_s is not None and sent_at >= self._since:
            self._refused += 1
            self._judge()

    def _judge(self) -> None:
        done = self._answered + self._refused
        crowd = self._refused >= CROWD and 4 * self._refused >= 3 * done and not self._chance
        late = not self._refused and done >= FEW and self._clock() - self._since >= GROUP_S
        if not (done >= GROUP or crowd or late):
            return
        share = self._refused / done
        seconds = max(self._last_sent - self._since, 1e-3)
        sent_per_s = self._sent / seconds if self.per_s is None else min(self.per_s, self._sent / seconds)
        if share <= max(STRAY, self._chance and self._chance + MORE_THAN_CHANCE):
            self._go_on(share)
        else:
            self._lower(share, sent_per_s)
        self._begin()

    def _go_on(self, share: float) -> None:
        """Hardly anything was refused: a little faster, and ever more so the longer it goes well."""
        if not self._chance:
            self._before, self._in_vain = None, 0
        elif share < self._chance / 4:
            self._chance = 0.0
        if self.per_s is None or self._latency_s is None:
            return
        self._clean += 1
        if self._capacity is None or self.per_s < 0.7 * self._capacity:
            self.per_s *= 2.0
        else:
            self.per_s *= 1.0 + min(0.5, 0.02 * 1.5 ** (self._clean - 1))
        if self.per_s * self._latency_s > 2.0 * self._most:
            self.per_s, self._capacity = None, None

    def _lower(self, share: float, sent_per_s: float) -> None:
        """Much was refused: fewer, unless fewer were refused as much before."""
        assert self._latency_s is not None
        before, self._before = self._before, share
        self._in_vain = self._in_vain + 1 if before is not None and before / 2 <= share < MOSTLY else 0
        if self._in_vain == 2:
            self._chance, self._capacity, self._before, self._in_vain = share, None, None, 0
            self.per_s = None
            return
        self._clean = 0
        accepted = sent_per_s * (1.0 - share)
        self._capacity = accepted if accepted and not self._chance else None
        self.per_s = max(FLOOR / self._latency_s, BELOW * accepted, sent_per_s / STEEPEST)
        self._next_at = self._clock() + 1.0 / self.per_s
