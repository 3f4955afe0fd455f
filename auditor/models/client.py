"""The one way to ask a model: every adapter is wrapped in the same layers.

A request passes, in this order, what the run's journal already answers, the cache, calls that are under
way, and then, attempt by attempt, limiter, budget and adapter. The limiter comes before the budget, so that limits are
checked when a call is sent and not when it queues.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar, Protocol

from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    BudgetExceeded,
    CallError,
    CallTimeout,
    ContentFiltered,
    PluginError,
    PromptTooLong,
    RateLimited,
    ServerFault,
    Unreadable,
)
from auditor.core.protocols import Model, Reply
from auditor.core.shown import keep_secrets_of_environment, scrub_text
from auditor.core.types import Answer, Request, Response, Usage
from auditor.models.limits import Budget, Limiter, most_tokens
from auditor.models.reply_cache import Cache
from auditor.models.reply_cache import key as cache_key
from auditor.models.transport import TooLong

CHUNK = 256
FIRST, HOPELESS = 26, 20  # answers of a model that are looked at, and how many may be refused or unreadable of them
UNREACHABLE_AFTER = 3  # failed attempts at one request, or time-outs in turn, where nothing was ever answered
_NOT_BILLED = (AuthFailed, BadRequest, RateLimited)
BUDGET = "budget"  # Response.error of requests that a limit kept from being asked
DEFINITIVE = frozenset({ContentFiltered.code, BadRequest.code, PromptTooLong.code})
Key = tuple[str, int]  # (prompt sha256, replicate)
Promise = asyncio.Future[Response | None]
Queue = deque[Request]


def _key(request: Request) -> Key:
    return request.prompt.sha256, request.replicate


class Client:
    """Asks one model; see the module's docstring for the layers.

    Every answer, also from the cache, goes to ``on_response`` once; so do failures that are about a request. A limit, a
    wrong key, or a server that never answered set ``stopped`` instead, and requests that were not asked have its code.

    ``answered`` holds the `definitive` responses of the run's journal; with ``remember`` those of this process are kept
    in memory too. ``keep`` says of a text and a format whether it can be read: others are not cached, and with
    ``give_up`` the client stops where most of the first are such. All clients of a run share ``budget``.
    """

    what: ClassVar[str] = "answers of"

    def __init__(
        self,
        model: Model,
        *,
        cache: Cache | None,
        budget: Budget,
        concurrency: int = 8,
        retry: RetryPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        answered: Known | None = None,
        on_response: Callable[[Response], None] | None = None,
        remember: bool = True,
        keep: Callable[[str, str], bool] | None = None,
        give_up: bool = False,
    ) -> None:
        budget.require_price(model)
        keep_secrets_of_environment()
        self.model, self.budget, self.retry = model, budget, retry or RetryPolicy()
        self.counts = Counts()
        self.stopped: BudgetExceeded | CallError | None = None
        self._limiter = Limiter(min(concurrency, model.at_once or concurrency), clock=clock)
        model.on_headers = self._limiter.headers
        self._price = budget.price_of(model)
        self._clock, self._sleep = clock, sleep
        self._rng = Random(self.retry.seed)
        self._halt = asyncio.Event()
        self._reached = False  # the server has shown that it is there
        self._too_long = 0  # answers that were cut
        self._time_outs, self._timed_out_at = 0, float("-inf")  # one after the other; the last of them
        self._cache = cache if model.cacheable else None
        self._answered: Known = answered if answered is not None else {}
        self._on_response = on_response
        self._remember = remember
        self._keep = keep or (lambda text, format: True)
        self._to_look_at = FIRST if give_up and not model.recorded else 0
        self._lost = 0  # first answers that could not be read, or were refusals
        self.unreadable: tuple[int, int] | None = None  # these, and how many were looked at, where it stopped for that
        self._memory: dict[Key, Response] = {}
        self._in_flight: dict[Key, Promise] = {}
        self._batch = max(1, model.max_batch)
        self._fruitless = 0  # requests in a row that ended without an answer
        self._patience = max(64, 2 * self._limiter.concurrency)

    async def ask(self, requests: Sequence[Request]) -> list[Response]:
        """Return the responses to ``requests``, in their order.

        Equal (prompt, replicate) pairs are asked once, also across concurrent calls of `ask`. Raises `PluginError`
        where the adapter broke its contract; other errors of adapter and ``on_response`` pass through.
        """
        responses: dict[Key, Response] = {}
        while left := [r for r in requests if _key(r) not in responses]:
            responses |= await self._pass(left)
        return [replace(responses[_key(r)], variant_id=r.variant_id, format=r.prompt.format) for r in requests]

    async def aclose(self) -> None:
        """Release the adapter; the cache stays open: others may share it."""
        await self.model.aclose()

    def stop(self, reason: BudgetExceeded | CallError) -> None:
        """Make no further call; the first ``reason`` says why. What was asked already is still taken."""
        if self.stopped is None:
            self.stopped = reason
            self._halt.set()

    # -- who asks what --------------------------------------------------------

    async def _pass(self, requests: Sequence[Request]) -> dict[Key, Response]:
        """Ask once; an answer that another `ask` promised and then did not get is left out."""
        known: dict[Key, Response] = {}
        promised: dict[Key, Promise] = {}
        mine: set[Key] = set()
        queue: Queue = deque()  # to be asked
        try:
            for start in range(0, len(requests), CHUNK):
                fresh = [r for r in requests[start : start + CHUNK] if self._is_new(r, known, promised)]
                mine |= {_key(request) for request in fresh}
                queue += self._not_cached(fresh)
                await asyncio.sleep(0)
            await self._employ(queue)
        finally:
            for key in mine & self._in_flight.keys():
                self._in_flight.pop(key).set_result(None)
        for key, promise in promised.items():
            response = await asyncio.shield(promise)  # its owner is not cancelled with us
            if response is not None:
                known[key] = response
        return known

    def _is_new(self, request: Request, known: dict[Key, Response], promised: dict[Key, Promise]) -> bool:
        """Return whether no call and no journal has the answer to ``request``, and promise it then."""
        key = _key(request)
        if key in known or key in promised:
            return False
        response = self._memory.get(key)
        if response is None and (response := self._answered.get(key)) is not None:
            self.counts.replayed += 1
        if response is not None:
            known[key] = response
            return False
        new = key not in self._in_flight
        if new:
            self._in_flight[key] = asyncio.get_running_loop().create_future()
        promised[key] = self._in_flight[key]
        return new

    def _not_cached(self, requests: Sequence[Request]) -> list[Request]:
        """Answer from the cache; return the requests that it cannot answer."""
        if self._cache is None:
            return list(requests)
        names = [cache_key(self.model.fingerprint, *_key(request)) for request in requests]
        hits = self._cache.get_many(names)
        left: list[Request] = []
        for request, name in zip(requests, names, strict=True):
            reply = hits.get(name)
            if reply is not None and self._keep(reply.text, request.prompt.format):
                self.counts.cached += 1
                self._finish(answer(self.model.name, request, reply, cached=True, cost_usd=0.0))
            else:
                left.append(request)
        return left

    async def _employ(self, queue: Queue) -> None:
        """Let workers ask until the queue is empty."""
        most = min(self._limiter.concurrency, math.ceil(len(queue) / self._batch))
        workers = [asyncio.create_task(self._work(queue)) for _ in range(most)]
        try:
            if workers:
                await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            for worker in workers:
                worker.cancel()
            ends = await asyncio.gather(*workers, return_exceptions=True)
        # The workers that were cancelled only followed the one that failed.
        failures = [end for end in ends if isinstance(end, BaseException)]
        for end in sorted(failures, key=lambda f: isinstance(f, asyncio.CancelledError)):
            raise end

    async def _work(self, queue: Queue) -> None:
        while queue:
            await self._answer(queue, [queue.popleft() for _ in range(min(self._batch, len(queue)))])
            await asyncio.sleep(0)  # local models never suspend; let others and Ctrl-C have a turn

    # -- outcomes -------------------------------------------------------------

    def _take(self, request: Request, reply: Reply, cost: float | None, latency_s: float) -> None:
        """Keep, journal and hand out an answer."""
        self._fruitless = 0
        readable = self._keep(reply.text, request.prompt.format)
        if readable and self._cache is not None:
            self._cache.put(cache_key(self.model.fingerprint, *_key(request)), clean(reply))
        self._finish(answer(self.model.name, request, reply, cost_usd=cost, latency_s=latency_s))
        self._look_at_first(readable)

    def _look_at_first(self, readable: bool) -> None:
        """Stop where most of the first answers are lost."""
        if self._to_look_at and self._lost < HOPELESS:
            self._to_look_at -= 1
            self._lost += not readable
            if self._lost == HOPELESS:
                lost, first = self._lost, FIRST - self._to_look_at
                self.unreadable = lost, first
                self.stop(Unreadable(f"{lost} of the first {first} {self.what} {self.model.name} could not be read"))

    def _fail(self, request: Request, error: CallError) -> None:
        """Journal that the request has no answer."""
        self.counts.failed += 1
        # Refused requests may share one over-long seed, so they only count while nothing was answered.
        if error.transient or (isinstance(error, BadRequest) and not self.counts.answered):
            self._fruitless += 1
            if self._fruitless >= self._patience:
                self.stop(error)
        self._finish(failure(self.model.name, request, error.code, str(error)))
        if isinstance(error, ContentFiltered):
            self._look_at_first(readable=False)

    def _give_up(self, request: Request) -> None:
        """Hand out that the run stopped before: not journaled, asked again on resume."""
        assert self.stopped is not None
        code = self.stopped.code if isinstance(self.stopped, CallError) else BUDGET
        self._hand_out(failure(self.model.name, request, code, str(self.stopped)))

    def _finish(self, response: Response) -> None:
        if self._on_response is not None:
            self._on_response(response)
        if self._remember:
            self._memory[response.prompt_sha256, response.replicate] = response
        self._hand_out(response)

    def _hand_out(self, response: Response) -> None:
        self._in_flight.pop((response.prompt_sha256, response.replicate)).set_result(response)

    # -- attempts ------------------------------------------------------------------

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
                    self._fail(request, error)
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
                queue.extendleft(reversed(batch[granted:] if granted else ()))
                if not granted:
                    for request in batch:
                        self._give_up(request)
                    return []
                batch, bounds = batch[:granted], bounds[:granted]
                sent_at = self._clock()
                self._limiter.sent(len(batch))
                outcomes = await self._generate(batch, bounds)
                latency = (self._clock() - sent_at) / len(batch)
                break
        again: list[tuple[Request, CallError]] = []
        for request, bound, outcome in zip(batch, bounds, outcomes, strict=True):
            if isinstance(outcome, Reply):
                tokens = 0 if outcome.usage is None else outcome.usage.tokens_in + outcome.usage.tokens_out
                self._limiter.answered(sent_at=sent_at, tokens=tokens)
                self._take(request, outcome, self._pay(request, outcome, bound), latency)
                continue
            self.budget.settle(bound, 0.0 if isinstance(outcome, _NOT_BILLED) else None)
            if isinstance(outcome, RateLimited):
                self._limiter.refused(sent_at=sent_at, timed=outcome.retry_after_s is not None)
            elif isinstance(outcome, CallTimeout):
                self._limiter.timed_out(sent_at=sent_at)
            self._judge(outcome, attempt, sent_at)
            if self.stopped is not None and (outcome.transient or type(outcome) is type(self.stopped)):
                self._give_up(request)
            elif outcome.transient:
                again.append((request, outcome))
            else:
                self._fail(request, outcome)
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
        return self._price.usd(Usage(tokens_in=most_tokens(request.prompt), tokens_out=written))

    def _pay(self, request: Request, reply: Reply, bound: float) -> float | None:
        cost = reply.cost_usd
        if cost is None and reply.usage is not None and self._price is not None:
            cost = self._price.usd(reply.usage)
        self.budget.settle(bound, cost)
        self.counts.answered += 1
        self._reached = True
        return cost


# -- responses, and when a failed call is tried again -----------------------------------------------------------------


class Known(Protocol):
    """Answers by (prompt sha256, replicate), such as a mapping of them."""

    def get(self, key: Key, /) -> Response | None:
        """Return the answer to a question, if there is one."""
        ...


def definitive(response: Response) -> bool:
    """Return whether asking again is a waste: an answer, or a refusal that is about this prompt."""
    return response.output is not None or response.error in DEFINITIVE


@dataclass(slots=True)
class Counts:
    """What a client did in this process; one answer may serve many requests."""

    calls: int = 0  # attempts that reached the adapter
    answered: int = 0  # by the adapter
    cached: int = 0
    replayed: int = 0  # from the journal
    failed: int = 0
    retries: int = 0


def clean(reply: Reply) -> Reply:
    """Return ``reply`` without known secrets: a server may echo the key that it was sent."""
    text, scores, reported = reply.text, reply.scores, reply.model_reported
    return reply._replace(
        text=scrub_text(text),
        scores=None if scores is None else {scrub_text(label): score for label, score in scores.items()},
        model_reported=None if reported is None else scrub_text(reported),
    )


def unanswered(error: str) -> Answer:
    """Return the answer for a response without an output: filtered, or failed."""
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
    """Return the response to a request that was answered."""
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
    """Return the response to a request that has no answer."""
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

    The wait after attempt *a* is uniform in [0, min(``cap_s``, ``base_s`` · 2^(a−1))]. A time that the server names
    (``Retry-After``) is kept in full, plus jitter of at most ``base_s``.
    """

    attempts: int = 5  # in all
    base_s: float = 0.5
    cap_s: float = 60.0
    ceiling_s: float = 300.0  # all waits between the attempts at one request, together
    seed: int = 7  # of the jitter

    def delay(self, attempt: int, error: CallError, waited_s: float, rng: Random) -> float | None:
        """Return the seconds to wait after ``attempt`` (from 1) ended in ``error``; None means give up."""
        if not error.transient or attempt >= self.attempts:
            return None
        if error.retry_after_s is not None:
            wait = error.retry_after_s + rng.uniform(0.0, self.base_s)
        else:
            wait = rng.uniform(0.0, min(self.cap_s, self.base_s * 2.0 ** (attempt - 1)))
        return wait if waited_s + wait <= self.ceiling_s else None
