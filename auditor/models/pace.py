"""How many calls a second: learnt from refusals, where a server refuses and does not say when to come back.

Calls are looked at in groups of those that were sent at one pace. A server with a limit on calls a second accepts as
many of them as before when fewer are sent, so the pace becomes what it accepted; one that refuses at random accepts
the same share of fewer calls, and slowing down would only lose time. Two slower groups in a row that were refused no
less tell the second from the first; the pace then ends, and begins again only where clearly more is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable

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


class Pace:
    """Calls a second, or no pace.

    Parameters
    ----------
    most : int
        Calls in flight at most: a pace above what these can reach holds nothing up, and ends.
    clock : callable
        Seconds, monotonic.

    Attributes
    ----------
    per_s : float or None
        The pace.
    """

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_s: float | None = None
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
