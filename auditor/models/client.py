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
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from random import Random

from auditor.core import secrets
from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    BudgetExceeded,
    CallError,
    CallTimeout,
    ContentFiltered,
    PluginError,
    RateLimited,
    ServerFault,
)
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request, Response, Usage
from auditor.models.attempts import BUDGET, Counts, First, Key, Known, RetryPolicy, answer, clean, failure
from auditor.models.attempts import definitive as definitive
from auditor.models.budget import Budget, most_tokens
from auditor.models.limiter import Limiter
from auditor.models.reply_cache import Cache
from auditor.models.reply_cache import key as cache_key
from auditor.models.transport import TooLong

CHUNK = 256
UNREACHABLE_AFTER = 3  # failed attempts at one request, or time-outs in turn, where nothing was ever answered
_NOT_BILLED = (AuthFailed, BadRequest, RateLimited)


class _Round:
    """One pass over the requests of one `Client.ask`: who waits for which key."""

    def __init__(self, requests: Sequence[Request], results: list[Response | None]) -> None:
        self.requests = requests
        self.results = results
        self.buffer: deque[Request] = deque()  # to be asked
        self.places: dict[Key, list[int]] = {}
        self.waiting: list[tuple[int, asyncio.Future[Response | None]]] = []

    def deliver(self, index: int, response: Response) -> None:
        request = self.requests[index]
        if response.variant_id != request.variant_id or response.format != request.prompt.format:
            response = replace(response, variant_id=request.variant_id, format=request.prompt.format)
        self.results[index] = response


class Client:
    """Asks one model; see the module's docstring for the layers.

    Every answer, also one from the cache, goes to ``on_response`` once, and is on disk when that returns. So do
    failures that are about a request (refused, or all attempts failed). What is only about the run is never reported
    there: a limit that was reached, a wrong key, a server that never answered. Those set ``stopped``; requests that
    were not asked then come back with its code as their ``error``.

    ``answered`` is what the journal of this run has, only `definitive` responses; with ``remember`` those of this
    process are kept in memory too. ``keep`` says of an answer's text and format whether it could be read: others are
    not cached, and with ``give_up`` the client stops where most of the first are such. ``budget`` is shared by all
    clients of a run.
    """

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
        secrets.look()
        self.model, self.budget, self.retry = model, budget, retry or RetryPolicy()
        self.counts, self.first = Counts(), First()
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
        self._give_up_early = give_up and not model.recorded
        self._memory: dict[Key, Response] = {}
        self._in_flight: dict[Key, asyncio.Future[Response | None]] = {}
        self._batch = max(1, model.max_batch)
        self._fruitless = 0  # requests in a row that ended without an answer
        self._patience = max(64, 2 * self._limiter.concurrency)

    async def ask(self, requests: Sequence[Request]) -> list[Response]:
        """The responses to ``requests``, in their order.

        Equal (prompt, replicate) pairs are asked once, also across concurrent calls of `ask`; each
        response carries the variant id and format of its own request. Raises `PluginError` where the adapter broke
        its contract; other errors of adapter and ``on_response`` pass through.
        """
        results: list[Response | None] = [None] * len(requests)
        todo: Sequence[int] = range(len(requests))
        while todo := await self._pass(_Round(requests, results), todo):
            pass
        assert all(r is not None for r in results)
        return [r for r in results if r is not None]

    async def aclose(self) -> None:
        """Commit the cache (it stays open: others may share it) and release the adapter."""
        self._flush()
        await self.model.aclose()

    def _name(self, prompt_sha256: str, replicate: int) -> str:
        """The key of an answer in the cache."""
        return cache_key(self.model.fingerprint, prompt_sha256, replicate)

    def _flush(self) -> None:
        if self._cache is not None:
            self._cache.flush()

    def stop(self, reason: BudgetExceeded | CallError) -> None:
        """Make no further call; the first ``reason`` says why. What was asked already is still taken."""
        if self.stopped is None:
            self.stopped = reason
            self._halt.set()

    # -- who asks what --------------------------------------------------------

    async def _pass(self, round_: _Round, todo: Sequence[int]) -> list[int]:
        """One pass; returns the requests whose answer another `ask` promised and then did not get."""
        try:
            for start in range(0, len(todo), CHUNK):
                self._sort(round_, todo[start : start + CHUNK])
                await asyncio.sleep(0)
            await self._employ(round_)
        finally:
            for key in round_.places:
                self._in_flight.pop(key).set_result(None)
            self._flush()
        left: list[int] = []
        for index, promise in round_.waiting:
            response = await asyncio.shield(promise)  # its owner is not cancelled with us
            if response is None:
                left.append(index)
            else:
                round_.deliver(index, response)
        return left

    async def _employ(self, round_: _Round) -> None:
        """Let workers ask until nothing is left that is ours to ask."""
        most = min(self._limiter.concurrency, math.ceil(len(round_.buffer) / self._batch))
        workers = [asyncio.create_task(self._work(round_)) for _ in range(most)]
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

    async def _work(self, round_: _Round) -> None:
        while round_.buffer:
            batch = [round_.buffer.popleft() for _ in range(min(self._batch, len(round_.buffer)))]
            await self._answer(round_, batch)
            await asyncio.sleep(0)  # local models never suspend; let others and Ctrl-C have a turn

    def _sort(self, round_: _Round, indices: Iterable[int]) -> None:
        """Sort requests: known, promised by another `ask`, cached, or to be asked."""
        fresh: list[Request] = []
        for index in indices:
            request = round_.requests[index]
            key = (request.prompt.sha256, request.replicate)
            if key in round_.places:
                round_.places[key].append(index)
            elif (known := self._memory.get(key)) is not None:
                round_.deliver(index, known)
            elif (known := self._answered.get(key)) is not None:
                self.counts.replayed += 1
                if self._remember:
                    self._memory[key] = known
                round_.deliver(index, known)
            elif key in self._in_flight:
                round_.waiting.append((index, self._in_flight[key]))
            else:
                round_.places[key] = [index]
                self._in_flight[key] = asyncio.get_running_loop().create_future()
                fresh.append(request)
        names = [self._name(r.prompt.sha256, r.replicate) for r in fresh] if self._cache else [""] * len(fresh)
        hits = self._cache.get_many(names) if self._cache else {}
        for request, name in zip(fresh, names, strict=True):
            reply = hits.get(name)
            if reply is not None and self._keep(reply.text, request.prompt.format):
                self.counts.cached += 1
                self._finish(round_, answer(self.model.name, request, reply, cached=True, cost_usd=0.0))
            else:
                round_.buffer.append(request)

    # -- outcomes -------------------------------------------------------------

    def _take(self, round_: _Round, request: Request, reply: Reply, cost: float | None, latency_s: float) -> None:
        """Keep, journal and hand out an answer."""
        self._fruitless = 0
        readable = self._keep(reply.text, request.prompt.format)
        if readable and self._cache is not None:
            self._cache.put(self._name(request.prompt.sha256, request.replicate), clean(reply))
        self._finish(round_, answer(self.model.name, request, reply, cost_usd=cost, latency_s=latency_s))
        self._look_at_first(readable)

    def _look_at_first(self, readable: bool) -> None:
        """Stop where most of the first answers are lost."""
        if self._give_up_early:
            self.first.add(readable)
        if self.first.hopeless:
            self.stop(self.first.unreadable(f"answers of {self.model.name}"))

    def _fail(self, round_: _Round, request: Request, error: CallError) -> None:
        """The request has no answer; say so in the journal."""
        self.counts.failed += 1
        # Refused requests may share one over-long seed, so they only count while nothing was answered.
        if error.transient or (isinstance(error, BadRequest) and not self.counts.answered):
            self._fruitless += 1
            if self._fruitless >= self._patience:
                self.stop(error)
        self._finish(round_, failure(self.model.name, request, error.code, str(error)))
        if isinstance(error, ContentFiltered):
            self._look_at_first(readable=False)

    def _give_up(self, round_: _Round, request: Request) -> None:
        """The run stopped before this request was answered: not journaled, asked again on resume."""
        assert self.stopped is not None
        code = self.stopped.code if isinstance(self.stopped, CallError) else BUDGET
        self._hand_out(round_, failure(self.model.name, request, code, str(self.stopped)))

    def _finish(self, round_: _Round, response: Response) -> None:
        if self._on_response is not None:
            self._on_response(response)
        if self._remember:
            self._memory[response.prompt_sha256, response.replicate] = response
        self._hand_out(round_, response)

    def _hand_out(self, round_: _Round, response: Response) -> None:
        key = (response.prompt_sha256, response.replicate)
        for index in round_.places.pop(key):
            round_.deliver(index, response)
        self._in_flight.pop(key).set_result(response)

    # -- attempts ------------------------------------------------------------------

    async def _answer(self, round_: _Round, batch: list[Request]) -> None:
        """Ask until each request of ``batch`` has its response."""
        attempt, waited = 0, 0.0
        while batch:
            attempt += 1
            failed = await self._attempt(round_, batch, attempt)
            batch, longest = [], 0.0
            for request, error in failed:
                wait = self.retry.delay(attempt, error, waited, self._rng)
                if wait is None:
                    self._fail(round_, request, error)
                    continue
                batch.append(request)
                longest = max(longest, wait)
                if isinstance(error, RateLimited) and error.retry_after_s is not None:
                    self._limiter.close_for(wait)
            if batch:
                self.counts.retries += len(batch)
                waited += longest
                await self._pause(longest)

    async def _attempt(self, round_: _Round, batch: list[Request], attempt: int) -> list[tuple[Request, CallError]]:
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
                round_.buffer.extendleft(reversed(batch[granted:] if granted else ()))
                if not granted:
                    for request in batch:
                        self._give_up(round_, request)
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
                self._take(round_, request, outcome, self._pay(request, outcome, bound), latency)
                continue
            self.budget.settle(bound, 0.0 if isinstance(outcome, _NOT_BILLED) else None)
            if isinstance(outcome, RateLimited):
                self._limiter.refused(sent_at=sent_at, timed=outcome.retry_after_s is not None)
            elif isinstance(outcome, CallTimeout):
                self._limiter.timed_out(sent_at=sent_at)
            self._judge(outcome, attempt, sent_at)
            if self.stopped is not None and (outcome.transient or type(outcome) is type(self.stopped)):
                self._give_up(round_, request)
            elif outcome.transient:
                again.append((request, outcome))
            else:
                self._fail(round_, request, outcome)
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
        if reply.usage is not None:
            self.counts.tokens_in += reply.usage.tokens_in
            self.counts.tokens_out += reply.usage.tokens_out
            if cost is None and self._price is not None:
                cost = self._price.usd(reply.usage)
        self.budget.settle(bound, cost)
        self.counts.answered += 1
        self._reached = True
        return cost
