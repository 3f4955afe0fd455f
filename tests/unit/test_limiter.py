"""The limiter in virtual time: servers that are slow, small, refuse or close."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.core.errors import CallError, CallTimeout, RateLimited
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request, Response
from auditor.models.budget import Budget
from auditor.models.client import Client
from auditor.models.limiter import FLOOR, Limiter
from tests.asking import bare


class Jumping(asyncio.SelectorEventLoop):
    """A loop whose time jumps to the next timer, so that minutes pass at once."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0]._when)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


class Server(Model):
    """Lets ``per_s`` calls a second through, refuses a share at random, or is closed for a while; counts what it does."""

    costs = "nothing"
    name = fingerprint = "server"

    def __init__(
        self,
        loop: Jumping,
        *,
        per_s: float | None = None,
        share: float = 0.0,
        closed: tuple[float, float] = (0.0, 0.0),
        latency_s: float = 0.05,
        seed: int = 1,
    ) -> None:
        self.loop, self.rng = loop, Random(seed)
        self.calls = self.refused = self.timed_out = self.in_flight = 0
        self.per_s, self.share, self.closed, self.latency_s = per_s, share, closed, latency_s
        self.left, self.at = per_s or 0.0, 0.0

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        self.calls += 1
        self.in_flight += 1
        try:
            async with asyncio.timeout(60.0):
                fits = await self.work()
        except TimeoutError:
            self.timed_out += 1
            return [CallTimeout("no whole answer within 60 s")]
        finally:
            self.in_flight -= 1
        self.refused += not fits
        return [Reply("yes") if fits else RateLimited("slow down")]

    async def work(self) -> bool:
        now = self.loop.time()
        fits = not self.closed[0] <= now < self.closed[1] and self.rng.random() >= self.share
        if self.per_s is not None:
            self.left, self.at = min(self.per_s, self.left + (now - self.at) * self.per_s), now
            fits = fits and self.left >= 1
            self.left -= fits
        await asyncio.sleep(self.latency_s * (0.5 + self.rng.random()))
        return fits


class Shared(Server):
    """One machine: a call takes 20 seconds alone, and n times as long with n calls in flight."""

    async def work(self) -> bool:
        left = 20.0
        while left > 0:
            await asyncio.sleep(0.5)
            left -= 0.5 / self.in_flight
        return True


def through(n: int, kind: type[Server] = Server, **given: Any) -> tuple[Server, int, float]:
    """The server after ``n`` questions, how many were lost, and the seconds that it took."""
    loop = Jumping()

    async def go() -> tuple[Server, list[Response]]:
        server = kind(loop, **given)
        client = Client(server, cache=None, budget=Budget(clock=loop.time), concurrency=16, clock=loop.time)
        return server, await client.ask([bare(str(i)) for i in range(n)])

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        server, responses = runner.run(go())
        return server, sum(r.output is None for r in responses), loop.now


@pytest.mark.parametrize(
    ("per_s", "latency_s", "n", "most"), [(15.0, 0.05, 900, 0.1), (15.0, 0.5, 900, 0.1), (5.0, 0.05, 400, 0.15)]
)
def test_a_limit_on_calls_a_second_is_met_with_few_refusals_and_no_loss(
    per_s: float, latency_s: float, n: int, most: float
) -> None:
    server, lost, seconds = through(n, per_s=per_s, latency_s=latency_s)
    assert lost == 0
    assert server.refused <= most * server.calls
    assert seconds < 1.2 * n / per_s


def test_a_slow_server_answers_everything_in_the_end() -> None:
    server, lost, _ = through(48, Shared)
    assert lost == 0
    assert server.timed_out <= 6


@pytest.mark.parametrize(("share", "latency_s"), [(0.1, 0.05), (0.3, 0.5)])
def test_refusals_at_random_do_not_slow_a_run_down_by_half(
    share: float, latency_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, seconds = through(1500, share=share, latency_s=latency_s)
    monkeypatch.setattr(Limiter, "refused", lambda self, **_: None)
    _, _, at_full_speed = through(1500, share=share, latency_s=latency_s)
    assert seconds < 1.5 * at_full_speed


def test_the_pace_ends_with_the_limit() -> None:
    _, lost, seconds = through(3000, per_s=400.0, closed=(1.0, 6.0))
    assert lost < 60
    assert seconds < 100


@given(st.lists(st.integers(0, 3), max_size=200))
def test_the_limiter_stays_in_its_range(history: list[int]) -> None:
    now = 0.0
    limiter = Limiter(9, clock=lambda: now)
    events: list[Callable[[float], None]] = [
        lambda at: limiter.answered(sent_at=at),
        lambda at: limiter.refused(sent_at=at),
        lambda at: limiter.refused(sent_at=at, timed=False),
        lambda at: limiter.timed_out(sent_at=at),
    ]
    for what in history:
        now += 1.0
        limiter.sent()
        events[what](now - 0.5)
        assert FLOOR <= limiter.size <= 9
        assert 1 <= limiter.room <= 9


def test_headers_say_how_many_calls_are_left_and_when_there_are_more() -> None:
    limiter = Limiter(8, clock=lambda: 0.0)
    limiter.headers({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "1m2.5s"})
    assert (limiter.wait_s(), limiter.room) == (0.0, 1)
    limiter.headers({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m2.5s"})
    assert limiter.wait_s() == 62.5
