"""Attempt by attempt: limiter, budget, adapter, and when to ask again.

The limiter comes before the budget so that the limits are checked at the moment a call is sent and not when it queues.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Generic, Protocol, TypeVar

from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    BudgetExceeded,
    CallError,
    CallTimeout,
    PluginError,
    RateLimited,
    ServerFault,
)
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request, Usage
from auditor.models.budget import Budget, TokenCounter
from auditor.models.limiter import Limiter
from auditor.models.outcome import Counts, RetryPolicy

UNREACHABLE_AFTER = 3  # failed attempts at one request, where nothing was ever answered
_NOT_BILLED = (AuthFailed, BadRequest, RateLimited)


class Waiting(Protocol):
    """Who waits for answers; ``buffer`` holds what is still to be asked."""

    buffer: deque[Request]


Queue = TypeVar("Queue", bound=Waiting)


class Attempts(ABC, Generic[Queue]):
    """Sends requests until each has an outcome, and stops where a limit or the server says so.

    Attributes
    ----------
    stopped : BudgetExceeded or CallError or None
        Why no further call is made.
    counts : Counts
        Totals so far.
    """

    def __init__(
        self,
        model: Model,
        *,
        budget: Budget,
        concurrency: int = 8,
        retry: RetryPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        budget.require_price(model)
        self.model, self.budget, self.retry = model, budget, retry or RetryPolicy()
        self.counts, self.tokens = Counts(), TokenCounter()
        self.stopped: BudgetExceeded | CallError | None = None
        concurrency = min(concurrency, model.at_once or concurrency)
        self._limiter = Limiter(concurrency, clock=clock)
        model.on_headers = self._limiter.headers
        self._price = budget.price_of(model)
        self._clock, self._sleep = clock, sleep
        self._rng = Random(self.retry.seed)
        self._halt = asyncio.Event()
        self._reached = False  # the server has shown that it is there

    @abstractmethod
    def _take(self, queue: Queue, request: Request, reply: Reply, cost: float | None, latency_s: float) -> None:
        """An answer arrived and is paid for; ``cost`` in US dollars, where it is known."""

    @abstractmethod
    def _fail(self, queue: Queue, request: Request, error: CallError) -> None:
        """The request has no answer."""

    @abstractmethod
    def _give_up(self, queue: Queue, request: Request) -> None:
        """The run stopped before this request was answered."""

    def stop(self, reason: BudgetExceeded | CallError) -> None:
        """Make no further call; the first ``reason`` says why. What was asked already is still taken."""
        if self.stopped is None:
            self.stopped = reason
            self._halt.set()

    async def _answer(self, queue: Queue, batch: list[Request]) -> None:
        """Ask until each request of ``batch`` has its response."""
        began = self._clock()
        attempt = 0
        while batch:
            attempt += 1
            failed = await self._attempt(queue, batch, attempt)
            batch, longest = [], 0.0
            for request, error in failed:
                wait = self.retry.delay(attempt, error, self._clock() - began, self._rng)
                if wait is None:
                    self._fail(queue, request, error)
                    continue
                batch.append(request)
                longest = max(longest, wait)
                if isinstance(error, RateLimited) and error.retry_after_s is not None:
                    self._limiter.close_for(wait)
            if batch:
                self.counts.retries += len(batch)
                await self._pause(longest)

    async def _attempt(self, queue: Queue, batch: list[Request], attempt: int) -> list[tuple[Request, CallError]]:
        """Send ``batch`` once; returns what failed and may be tried again."""
        while True:
            while self.stopped is None and (wait := self._limiter.wait_s()) > 0:
                await self._pause(wait)
            async with self._limiter:
                if self.stopped is None and self._limiter.wait_s() > 0:
                    continue  # the server closed while this call was in the queue
                bounds = [self._bound(request) for request in batch]
                granted = await self._reserve(batch, bounds)
                # The rest goes back to the queue; it meets the limit there, or fits once calls are settled.
                queue.buffer.extendleft(reversed(batch[granted:] if granted else ()))
                if not granted:
                    for request in batch:
                        self._give_up(queue, request)
                    return []
                batch, bounds = batch[:granted], bounds[:granted]
                sent_at = self._clock()
                self._limiter.pace.sent(len(batch))
                outcomes = await self._generate(batch, bounds)
                latency = (self._clock() - sent_at) / len(batch)
                break
        again: list[tuple[Request, CallError]] = []
        for request, bound, outcome in zip(batch, bounds, outcomes, strict=True):
            if isinstance(outcome, Reply):
                tokens = 0 if outcome.usage is None else outcome.usage.tokens_in + outcome.usage.tokens_out
                self._limiter.speed_up(sent_at=sent_at, tokens=tokens)
                self._take(queue, request, outcome, self._pay(request, outcome, bound), latency)
                continue
            self.budget.settle(bound, 0.0 if isinstance(outcome, _NOT_BILLED) else bound)
            if isinstance(outcome, RateLimited):
                self._limiter.slow_down(sent_at=sent_at, timed=outcome.retry_after_s is not None)
            self._judge(outcome, attempt)
            if self.stopped is not None and (outcome.transient or type(outcome) is type(self.stopped)):
                self._give_up(queue, request)
            elif outcome.transient:
                again.append((request, outcome))
            else:
                self._fail(queue, request, outcome)
        return again

    async def _reserve(self, batch: list[Request], bounds: list[float]) -> int:
        if self.stopped is None:
            try:
                return await self.budget.reserve(bounds, left_before=list(map(self.model.left_before, batch)))
            except BudgetExceeded as error:
                self.stop(error)
        return 0

    async def _generate(self, batch: list[Request], bounds: list[float]) -> Sequence[Reply | CallError]:
        self.counts.calls += len(batch)
        outcomes: Sequence[Reply | CallError] | None = None
        try:
            outcomes = await self.model.generate(batch)
        except CallError as error:
            outcomes = [error] * len(batch)
        finally:
            if outcomes is None or len(outcomes) != len(batch):
                for bound in bounds:
                    self.budget.settle(bound, bound)
        if len(outcomes) != len(batch):
            raise PluginError(f"model {self.model.name}: {len(outcomes)} replies to {len(batch)} requests")
        return outcomes

    def _judge(self, error: CallError, attempt: int) -> None:
        """Stop the run where ``error`` is about the server and not about the request."""
        left = self.budget.remaining_s()
        if isinstance(error, AuthFailed):
            self.stop(error)
        elif error.transient and left is not None and left <= 0:
            self.stop(self.budget.out_of_time())  # it is not asked again, so nothing is said of the server
        elif isinstance(error, ServerFault | CallTimeout | BadResponse):
            unreachable = not self._reached and attempt >= min(UNREACHABLE_AFTER, self.retry.attempts)
            if unreachable or not error.transient:  # a server that is gone for good
                self.stop(error)
            return
        elif isinstance(error, RateLimited) and (error.retry_after_s or 0.0) > self.retry.ceiling_s:
            self.stop(error)
        self._reached = True

    async def _pause(self, seconds: float) -> None:
        """Sleep, but no longer than the run goes on."""
        left = self.budget.remaining_s()
        if left is not None and seconds >= left:
            self.stop(self.budget.out_of_time())
        if self.stopped is not None:
            return
        nap = asyncio.ensure_future(self._sleep(seconds))
        halt = asyncio.ensure_future(self._halt.wait())
        try:
            await asyncio.wait({nap, halt}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            nap.cancel()
            halt.cancel()

    def _bound(self, request: Request) -> float:
        if self._price is None:
            return 0.0
        written = self.model.max_tokens(request.prompt.format)
        return self._price.usd(Usage(tokens_in=self.tokens.bound(request.prompt), tokens_out=written))

    def _pay(self, request: Request, reply: Reply, bound: float) -> float | None:
        cost = reply.cost_usd
        if reply.usage is not None:
            self.tokens.observe(request.prompt, reply.usage)
            self.counts.tokens_in += reply.usage.tokens_in
            self.counts.tokens_out += reply.usage.tokens_out
            if cost is None and self._price is not None:
                cost = self._price.usd(reply.usage)
        self.budget.settle(bound, bound if cost is None else cost)
        self.counts.cost_usd += bound if cost is None else cost
        self.counts.answered += 1
        self._reached = True
        return cost
