"""The one way to ask a model: every adapter is wrapped in the same layers.

A request passes, in this order, what the run's journal already answers, the cache, calls that are under
way, and then, attempt by attempt, limiter, budget and adapter (`auditor.models.attempts`).
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from auditor.core import secrets
from auditor.core.errors import BadRequest, CallError, ContentFiltered
from auditor.core.protocols import Model, Reply
from auditor.core.shown import plural
from auditor.core.types import Request, Response
from auditor.models.attempts import BUDGET, Attempts, First, Key, Known, answer, clean, failure
from auditor.models.attempts import definitive as definitive
from auditor.models.reply_cache import Cache, Shelf

CHUNK = 256
POLL_S = (0.05, 0.5)  # between two looks for what another process asks for: the first, and the longest
NOTICE_S = 10.0  # that another process is waited for is said
LONGEST_WAIT_S = 600.0  # without any answer of another process; it may hang, so its prompts are asked here


class _Round:
    """One pass over the requests of one `Client.ask`: who waits for which key."""

    def __init__(self, requests: Sequence[Request], results: list[Response | None], todo: Iterable[int]) -> None:
        self.requests = requests
        self.results = results
        self.todo: Iterator[int] = iter(todo)
        self.buffer: deque[Request] = deque()
        self.places: dict[Key, list[int]] = {}
        self.waiting: list[tuple[int, asyncio.Future[Response | None]]] = []
        self.elsewhere: set[Key] = set()  # of places: what another process is asking for

    def request(self, key: Key) -> Request:
        return self.requests[self.places[key][0]]

    def deliver(self, index: int, response: Response) -> None:
        request = self.requests[index]
        if response.variant_id != request.variant_id or response.format != request.prompt.format:
            response = replace(response, variant_id=request.variant_id, format=request.prompt.format)
        self.results[index] = response


class Client(Attempts[_Round]):
    """Asks one model; see the module's docstring for the layers.

    Every answer, also one from the cache, goes to ``on_response`` once, before `ask` returns it. So do
    failures that are about a request (refused, or all attempts failed). What is only about the run is
    never reported there: a limit that was reached, a wrong key, a server that never answered. Those set
    ``stopped``; requests that were not asked then come back with its code as their ``error``.

    Parameters
    ----------
    cache : Cache or None
        None, or a model that is not ``cacheable``: nothing is looked up or kept.
    concurrency : int
        Batches in flight at most.
    answered : Known, optional
        What the journal of this run has; only `definitive` ones.
    on_response : callable or None
        Must have the response on disk when it returns; what it raises ends `ask`.
    remember : bool
        Keep this run's responses, so that a later `ask` repeats no call. False saves memory where
        ``answered`` is a live view of the journal.
    keep : callable or None
        Says of the text of an answer, and the format that was asked in, whether the cache may hold it; None: of every
        one. One that nobody could read is asked for again.
    give_up : bool
        Stop where ``keep`` says of most of the first answers that nobody can read them.
    **limits
        ``budget``, shared by all clients of a run, ``retry``, and ``clock`` and ``sleep`` for tests.

    Attributes
    ----------
    first : First
        What became of the first answers.
    """

    def __init__(
        self,
        model: Model,
        *,
        cache: Cache | None,
        concurrency: int = 8,
        answered: Known | None = None,
        on_response: Callable[[Response], None] | None = None,
        remember: bool = True,
        keep: Callable[[str, str], bool] | None = None,
        give_up: bool = False,
        **limits: Any,
    ) -> None:
        super().__init__(model, concurrency=concurrency, **limits)
        secrets.look()
        self.first = First()
        self._shelf = Shelf(cache if model.cacheable else None, model.fingerprint)
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
        response carries the variant id and format of its own request.

        Raises
        ------
        PluginError
            The adapter broke its contract. Other errors of adapter and ``on_response`` pass through.
        """
        results: list[Response | None] = [None] * len(requests)
        todo: Iterable[int] = range(len(requests))
        while todo := await self._pass(_Round(requests, results, todo)):
            pass
        assert all(r is not None for r in results)
        return [r for r in results if r is not None]

    def keep(self, responses: Iterable[Response], *, cached: bool) -> None:
        """Have the cache hold these answers, or forget them: what single ones are worth may show later."""
        by_key = {(r.prompt_sha256, r.replicate): r for r in responses}
        if not cached:
            self._shelf.forget(by_key)
            return
        for key, r in by_key.items():
            reply = Reply(r.output or "", r.scores, r.usage, model_reported=r.model_reported, cut_off=r.cut_off)
            self._shelf.put(key, reply)

    async def aclose(self) -> None:
        """Commit the cache (it stays open: others may share it) and release the adapter."""
        self._shelf.flush()
        await self.model.aclose()

    # -- who asks what --------------------------------------------------------

    async def _pass(self, round_: _Round) -> list[int]:
        """One pass; returns the requests whose answer another `ask` promised and then did not get."""
        try:
            await self._employ(round_)
            while round_.elsewhere:
                await self._watch(round_)
                await self._employ(round_)
        finally:
            self._shelf.release(round_.places)
            for key in round_.places:
                self._in_flight.pop(key).set_result(None)
            self._shelf.flush()
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
        most = math.ceil(len(round_.requests) / self._batch)
        workers = [asyncio.create_task(self._work(round_)) for _ in range(min(self._limiter.concurrency, most))]
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

    async def _watch(self, round_: _Round) -> None:
        """Wait for answers that another process asks for, or until it let go of some that are then asked here."""
        assert self._shelf.cache is not None
        began, nap, said = self._clock(), POLL_S[0], False
        while round_.elsewhere and not round_.buffer:
            self._shelf.flush()  # the other one may wait for ours
            await self._pause(nap)
            before = len(round_.elsewhere)
            self._sort(round_, list(round_.elsewhere))
            waited = self._clock() - began
            if len(round_.elsewhere) < before:
                began, nap = self._clock(), POLL_S[0]
            elif self.stopped is not None or waited >= LONGEST_WAIT_S:
                round_.buffer.extend(map(round_.request, round_.elsewhere))
                round_.elsewhere = set()
            elif waited >= NOTICE_S and not said:
                self._shelf.cache.say(f"waiting for {plural(before, 'answer')} that another audit asks for")
                said = True
            nap = min(2 * nap, POLL_S[1])

    async def _work(self, round_: _Round) -> None:
        while True:
            while len(round_.buffer) < self._batch and self._refill(round_):
                await asyncio.sleep(0)
            batch = [round_.buffer.popleft() for _ in range(min(self._batch, len(round_.buffer)))]
            if not batch:
                return
            await self._answer(round_, batch)
            await asyncio.sleep(0)  # local models never suspend; let others and Ctrl-C have a turn

    def _refill(self, round_: _Round) -> bool:
        """Sort the next requests: known, promised by another `ask`, cached, or to be asked."""
        indices = list(islice(round_.todo, CHUNK))
        fresh: list[Key] = []
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
                fresh.append(key)
        self._sort(round_, fresh)
        return bool(indices)

    def _sort(self, round_: _Round, keys: Sequence[Key]) -> None:
        """Finish what is cached, note what another process asks for, and queue the rest."""
        hits = self._look_up(round_, keys)
        rest = {key for key in keys if key not in hits}
        ours = self._shelf.claim(rest)
        again = self._look_up(round_, ours)  # answered and let go of since
        self._shelf.release(again)
        hits |= again
        round_.elsewhere -= set(keys)
        round_.elsewhere |= {key for key in rest - ours if not self.model.left_before(round_.request(key))}
        for key in keys:
            if key in hits:
                self.counts.cached += 1
                request = round_.request(key)
                self._finish(round_, answer(self.model.name, request, hits[key], cached=True, cost_usd=0.0))
            elif key not in round_.elsewhere:
                round_.buffer.append(round_.request(key))

    def _look_up(self, round_: _Round, keys: Iterable[Key]) -> dict[Key, Reply]:
        hits = self._shelf.get(keys)
        return {key: reply for key, reply in hits.items() if self._keep(reply.text, round_.request(key).prompt.format)}

    # -- outcomes -------------------------------------------------------------

    def _take(self, round_: _Round, request: Request, reply: Reply, cost: float | None, latency_s: float) -> None:
        """Keep, journal and hand out an answer."""
        self._fruitless = 0
        readable = self._keep(reply.text, request.prompt.format)
        if readable:
            self._shelf.put((request.prompt.sha256, request.replicate), clean(reply), soon=True)
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
        if error.transient or (error.code == BadRequest.code and not self.counts.answered):
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
        self._shelf.release((key,))
        self._in_flight.pop(key).set_result(response)
