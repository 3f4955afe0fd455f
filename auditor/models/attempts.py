"""Attempt by attempt: limiter, budget, adapter, when to ask again, and what calls come to.

The limiter comes before the budget so that the limits are checked at the moment a call is sent and not when it queues.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    BudgetExceeded,
    CallError,
    CallTimeout,
    ConfigError,
    ContentFiltered,
    PluginError,
    RateLimited,
    ServerFault,
    Unreadable,
)
from auditor.core.protocols import Model, Reply
from auditor.core.secrets import scrub_text
from auditor.core.types import Answer, Request, Response, Usage
from auditor.models.budget import Budget, TokenCounter
from auditor.models.limiter import Limiter
from auditor.models.transport import TooLong

BUDGET = "budget"  # Response.error of requests that a limit kept from being asked
FIRST, HOPELESS = 26, 20  # answers of a model that are looked at, and how many may be lost of them
DEFINITIVE = frozenset({ContentFiltered.code, BadRequest.code})
UNREACHABLE_AFTER = 3  # failed attempts at one request, or time-outs in turn, where nothing was ever answered
_NOT_BILLED = (AuthFailed, BadRequest, RateLimited)
Key = tuple[str, int]  # (prompt sha256, replicate)


class Known(Protocol):
    """Answers by (prompt sha256, replicate), such as a mapping of them."""

    def get(self, key: Key, /) -> Response | None:
        """The answer to a question, if there is one."""
        ...


def definitive(response: Response) -> bool:
    """Whether asking again would be a waste: an answer, or a refusal that is about this prompt.

    A journal hands the client only these as ``answered``; what failed in passing is asked again.
    """
    return response.output is not None or response.error in DEFINITIVE


@dataclass(slots=True)
class Counts:
    """What a client did in this process; what it all cost is in its budget.

    Sum these rather than responses: one answer may serve many requests.
    """

    calls: int = 0  # attempts that reached the adapter
    answered: int = 0  # by the adapter
    cached: int = 0
    replayed: int = 0  # from the journal
    failed: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(kw_only=True, slots=True)
class First:
    """What became of the first answers of a model; where most cannot be read, it is not worth asking further."""

    answers: int = 0
    lost: int = 0  # of these, refused or unreadable

    def add(self, readable: bool) -> None:
        """Take note of one answer, as long as not enough were looked at."""
        if not self.over:
            self.answers += 1
            self.lost += not readable

    @property
    def over(self) -> bool:
        """Whether enough answers were looked at."""
        return self.answers >= FIRST or self.hopeless

    @property
    def hopeless(self) -> bool:
        """Whether most of them could not be read, or were refusals."""
        return self.lost >= HOPELESS

    def unreadable(self, what: str) -> Unreadable:
        """The error for that."""
        return Unreadable(f"{self.lost} of the first {self.answers} {what} could not be read")


def clean(reply: Reply) -> Reply:
    """``reply`` without the secrets that are known: a server may echo the key that it was sent."""
    text, scores, reported = reply.text, reply.scores, reply.model_reported
    return reply._replace(
        text=scrub_text(text),
        scores=None if scores is None else {scrub_text(label): score for label, score in scores.items()},
        model_reported=None if reported is None else scrub_text(reported),
    )


def unanswered(error: str) -> Answer:
    """What a response without an output comes to: kept back by a provider's filter, or a call that failed."""
    return Answer(status="filtered" if error == ContentFiltered.code else "failed", reason=error)


def answer(
    model: str,
    request: Request,
    reply: Reply,
    *,
    cached: bool = False,
    cost_usd: float | None = None,
    latency_s: float = 0.0,
) -> Response:
    """Make the response of a request that was answered."""
    reply = clean(reply)
    return Response(
        output=reply.text,
        scores=reply.scores,
        cached=cached,
        latency_s=latency_s,
        usage=reply.usage,
        cost_usd=cost_usd,
        model_reported=reply.model_reported,
        cut_off=reply.cut_off,
        **_question(model, request),
    )


def failure(model: str, request: Request, code: str, detail: str) -> Response:
    """Make the response of a request that has no answer."""
    return Response(error=code, detail=detail, **_question(model, request))


def _question(model: str, request: Request) -> dict[str, Any]:
    return {
        "variant_id": request.variant_id,
        "prompt_sha256": request.prompt.sha256,
        "format": request.prompt.format,
        "replicate": request.replicate,
        "model": model,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """Bounded retries with exponential backoff and full jitter.

    The wait after attempt *a* is uniform in [0, min(``cap_s``, ``base_s`` · 2^(a−1))]. Where the server
    names a time (``Retry-After``), that time is kept in full, with jitter of at most ``base_s`` on top so
    that workers do not return together.
    """

    attempts: int = 5  # in all
    base_s: float = 0.5
    cap_s: float = 60.0
    ceiling_s: float = 300.0  # all waits between the attempts at one request, together
    seed: int = 7  # of the jitter

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.base_s, self.cap_s, self.ceiling_s) < 0:
            raise ConfigError(f"a retry policy needs 1 attempt or more and no negative times, got {self!r}")

    def delay(self, attempt: int, error: CallError, waited_s: float, rng: Random) -> float | None:
        """Seconds to wait after ``attempt`` (from 1) ended in ``error``; None means give up.

        ``waited_s`` are the seconds that were waited before; ``rng`` is the source of the jitter.

        Examples
        --------
        >>> from auditor.core.errors import BadRequest, RateLimited
        >>> RetryPolicy().delay(1, BadRequest("too long"), 0.0, Random(7)) is None
        True
        >>> RetryPolicy(base_s=0).delay(1, RateLimited(retry_after_s=3.0), 0.0, Random(7))
        3.0
        """
        if not error.transient or attempt >= self.attempts:
            return None
        if error.retry_after_s is not None:
            wait = error.retry_after_s + rng.uniform(0.0, self.base_s)
        else:
            wait = rng.uniform(0.0, min(self.cap_s, self.base_s * 2.0 ** (attempt - 1)))
        return wait if waited_s + wait <= self.ceiling_s else None


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
        self._too_long = 0  # answers that were cut
        self._time_outs, self._timed_out_at = 0, float("-inf")  # one after the other; the last of them

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
        attempt, waited = 0, 0.0
        while batch:
            attempt += 1
            failed = await self._attempt(queue, batch, attempt)
            batch, longest = [], 0.0
            for request, error in failed:
                wait = self.retry.delay(attempt, error, waited, self._rng)
                if wait is None:
                    self._fail(queue, request, error)
                    continue
                batch.append(request)
                longest = max(longest, wait)
                if isinstance(error, RateLimited) and error.retry_after_s is not None:
                    self._limiter.close_for(wait)
            if batch:
                self.counts.retries += len(batch)
                waited += longest
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
            self.budget.settle(bound, 0.0 if isinstance(outcome, _NOT_BILLED) else None)
            if isinstance(outcome, RateLimited):
                self._limiter.slow_down(sent_at=sent_at, timed=outcome.retry_after_s is not None)
            elif isinstance(outcome, CallTimeout):
                self._limiter.timed_out(sent_at=sent_at)
            self._judge(outcome, attempt, sent_at)
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
                    self.budget.settle(bound, None)
        if len(outcomes) != len(batch):
            raise PluginError(f"model {self.model.name}: {len(outcomes)} replies to {len(batch)} requests")
        return outcomes

    def _judge(self, error: CallError, attempt: int, sent_at: float) -> None:
        """Stop the run where ``error`` is about the server and not about the request."""
        left = self.budget.remaining_s()
        if isinstance(error, AuthFailed):
            self.stop(error)
        elif error.transient and left is not None and left <= 0:
            self.stop(self.budget.out_of_time())  # it is not asked again, so nothing is said of the server
        elif isinstance(error, ServerFault | CallTimeout | BadResponse):
            if isinstance(error, CallTimeout) and sent_at >= self._timed_out_at:
                self._time_outs, self._timed_out_at = self._time_outs + 1, self._clock()
            self._too_long += isinstance(error, TooLong)
            enough = min(UNREACHABLE_AFTER, self.retry.attempts)
            unreachable = not self._reached and max(attempt, self._time_outs) >= enough
            spared = isinstance(error, TooLong) and self._reached and self._too_long < UNREACHABLE_AFTER
            if unreachable or not (error.transient or spared):  # a server that is gone for good
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
        self.budget.settle(bound, cost)
        self.counts.answered += 1
        self._reached = True
        return cost
