"""The limiter in virtual time: servers that are slow, small, refuse or close."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from auditor.core.errors import CallError, RateLimited
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request, Response
from auditor.models.client import Client
from auditor.models.limits import Budget, Limiter
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

    per_s, share, closed, latency_s = 1e9, 0.0, (0.0, 0.0), 0.05

    def __init__(self, loop: Jumping, **given: Any) -> None:
        vars(self).update(given)
        self.loop, self.rng = loop, Random(1)
        self.calls = self.refused = 0
        self.left, self.at = self.per_s, 0.0

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        self.calls += 1
        now = self.loop.time()
        fits = not self.closed[0] <= now < self.closed[1] and self.rng.random() >= self.share
        self.left, self.at = min(self.per_s, self.left + (now - self.at) * self.per_s), now
        fits = fits and self.left >= 1
        self.left -= fits
        await asyncio.sleep(self.latency_s * (0.5 + self.rng.random()))
        self.refused += not fits
        return [Reply("yes") if fits else RateLimited("slow down")]


def through(n: int, **given: Any) -> tuple[Server, int, float]:
    """The server after ``n`` questions, how many were lost, and the seconds that it took."""
    loop = Jumping()

    async def go() -> tuple[Server, list[Response]]:
        server = Server(loop, **given)
        client = Client(server, cache=None, budget=Budget(clock=loop.time), concurrency=16, clock=loop.time)
        return server, await client.ask([bare(str(i)) for i in range(n)])

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        server, responses = runner.run(go())
        return server, sum(r.output is None for r in responses), loop.now


@pytest.mark.parametrize(
    ("per_s", "latency_s", "n", "most"), [(15.0, 0.05, 900, 0.1), (15.0, 0.5, 900, 0.1), (5.0, 0.05, 400, 0.15)]
)
def test_a_limit_on_calls_a_second_is_met(per_s: float, latency_s: float, n: int, most: float) -> None:
    server, lost, seconds = through(n, per_s=per_s, latency_s=latency_s)
    assert lost == 0
    assert server.refused <= most * server.calls
    assert seconds < 1.2 * n / per_s


@pytest.mark.parametrize(("share", "latency_s"), [(0.1, 0.05), (0.3, 0.5)])
def test_random_refusals_do_not_halve_the_pace(share: float, latency_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, seconds = through(1500, share=share, latency_s=latency_s)
    monkeypatch.setattr(Limiter, "refused", lambda self, **_: None)
    _, _, at_full_speed = through(1500, share=share, latency_s=latency_s)
    assert seconds < 1.5 * at_full_speed


def test_the_pace_ends_with_the_limit() -> None:
    _, lost, seconds = through(3000, per_s=400.0, closed=(1.0, 6.0))
    assert lost < 60
    assert seconds < 100


def test_headers_say_how_many_calls_are_left_and_when_there_are_more() -> None:
    limiter = Limiter(8, clock=lambda: 0.0)
    limiter.headers({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "1m2.5s"})
    assert (limiter.wait_s(), limiter.room) == (0.0, 1)
    limiter.headers({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m2.5s"})
    assert limiter.wait_s() == 62.5


@pytest.mark.parametrize(("shared", "sizes"), [(False, [4, 16, 64]), (True, [4, 8, 8])])
def test_calls_in_flight_quadruple_where_more_took_no_longer(shared: bool, sizes: list[int]) -> None:
    now, seen = 0.0, []
    limiter = Limiter(64, clock=lambda: now)
    for _ in sizes:
        many, begun = limiter.room, now
        limiter.sent(many)
        now += many if shared else 1.0  # a server that shares its work takes as much longer
        for _ in range(many):
            limiter.answered(sent_at=begun)
        seen.append(limiter.room)
    assert seen == sizes
