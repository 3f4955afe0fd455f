"""Conversations on top of a `Client`: turns are said one after the other, calls of tools get their declared results.

Every question within a conversation goes through the client, with its cache, budget, limits and retries. What a run
journals is the conversation: one answer, whose output holds all of its messages.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from auditor.core import talk
from auditor.core.errors import BudgetExceeded, CallError, ContentFiltered
from auditor.core.protocols import Model
from auditor.core.talk import Call, Message, Said, Tool
from auditor.core.types import Prompt, Request, Response, Usage
from auditor.models.attempts import First, Key, Known, failure
from auditor.models.client import Client

NO_TOOL = "error: there is no tool of this name"
NO_JSON = "error: the arguments are no JSON object"


class _Play:
    """One conversation: what was said, what is still to be said, and what it cost."""

    def __init__(self, request: Request) -> None:
        prompt = request.prompt
        assert prompt.messages is not None
        assert prompt.talk is not None
        self.request, self.rules = request, prompt.talk
        self.tools = {tool.name: tool for tool in prompt.tools}
        self.left = deque(prompt.messages)
        self.said: list[Message] = []
        self.times: Counter[str] = Counter()  # calls of each tool
        self.asked = 0  # questions within this turn
        self.due = False
        self.latency_s = 0.0
        self.new: list[Response] = []  # answers that this conversation was the first to get
        self.last: Response | None = None

    def question(self) -> Request | None:
        """Return the next question to the model; None at the end."""
        while not self.due and self.left:
            self.said.append(self.left.popleft())
            scripted = bool(self.left) and self.left[0].role == "assistant"
            self.due, self.asked = self.said[-1].role == "user" and not scripted, 0
        if not self.due:
            return None
        self.asked += 1
        prompt = Prompt(format=self.request.prompt.format, messages=tuple(self.said), tools=self.request.prompt.tools)
        return replace(self.request, prompt=prompt)

    def hear(self, response: Response) -> None:
        """Take an answer: results for calls of tools, the end, or the next turn."""
        self.last = response
        self.latency_s += response.latency_s
        heard = talk.heard(response.output or "", len(self.said))
        self.said += heard
        done = {m.answers for m in heard if isinstance(m, Said)}
        open_calls = [c for c in talk.calls_of(heard) if c.id not in done]
        self.said += [Said(role="tool", content=self._result(c), answers=c.id) for c in open_calls]
        self.due = bool(open_calls) and self.asked < self.rules.steps
        if any(self.rules.over(m) for m in heard if m.role == "assistant"):
            self.due = False
            self.left.clear()

    def _result(self, call: Call) -> str:
        tool: Tool | None = self.tools.get(call.name)
        if tool is None:
            return NO_TOOL
        if call.values() is None:
            return NO_JSON
        self.times[call.name] += 1
        return tool.results[min(self.times[call.name], len(tool.results)) - 1]

    def response(self, failed: Response | None = None) -> Response:
        """Return the conversation as one answer, or why there is none, with tokens and money of its questions."""
        request, usages = self.request, [r.usage for r in self.new if r.usage is not None]
        costs = [r.cost_usd for r in self.new if r.cost_usd is not None]
        usage = Usage(tokens_in=sum(u.tokens_in for u in usages), tokens_out=sum(u.tokens_out for u in usages))
        end = failed or self.last
        assert end is not None
        return replace(
            end,
            variant_id=request.variant_id,
            prompt_sha256=request.prompt.sha256,
            output=None if failed else talk.whole(self.said),
            scores=None,
            cached=not failed and not self.new,
            latency_s=self.latency_s,
            usage=usage if usages else None,
            cost_usd=sum(costs) if costs else (0.0 if not self.new else None),
        )


class Talks:
    """Plays conversations with one model; has the interface of a `Client`, and takes the same parameters.

    Conversations that begin alike share their beginning: equal questions are asked once.
    """

    def __init__(
        self,
        model: Model,
        *,
        answered: Known | None = None,
        on_response: Callable[[Response], None] | None = None,
        remember: bool = True,
        concurrency: int = 8,
        keep: Callable[[str, str], bool] | None = None,
        give_up: bool = False,
        **layers: Any,
    ) -> None:
        self._client = Client(
            model,
            concurrency=concurrency,
            on_response=self._note,
            keep=lambda text, format: bool(text.strip()),
            **layers,
        )
        self.model, self.budget, self.counts = model, self._client.budget, self._client.counts
        self.stop, self.aclose = self._client.stop, self._client.aclose
        self.first = First()
        self._readable, self._give_up_early = keep, give_up and not model.recorded
        self._answered: Known = answered if answered is not None else {}
        self._on_response, self._remember = on_response, remember
        self._memory: dict[Key, Response] = {}
        self._fresh: dict[Key, Response] = {}  # answers and failures of single questions that nobody took yet
        self._at_once, self._together = min(concurrency, model.at_once or concurrency), model.max_batch

    @property
    def stopped(self) -> BudgetExceeded | CallError | None:
        """Return why no further call is made."""
        return self._client.stopped

    async def ask(self, requests: Sequence[Request]) -> list[Response]:
        """Return one conversation for each request, in their order; equal ones are held once."""
        responses: dict[Key, Response] = {}
        todo: dict[Key, Request] = {}
        for request in requests:
            key = (request.prompt.sha256, request.replicate)
            known = self._memory.get(key) or self._answered.get(key)
            if known is not None:
                self.counts.replayed += key not in responses
                responses[key] = known
            else:
                todo.setdefault(key, request)
        # Those that were begun are ended first, so that a run that is cut off has whole ones in its journal.
        waiting = deque(todo.values())

        async def work() -> None:
            while waiting:
                some = [waiting.popleft() for _ in range(min(self._together, len(waiting)))]
                for response in await self._play([_Play(request) for request in some]):
                    responses[response.prompt_sha256, response.replicate] = response

        workers = [asyncio.create_task(work()) for _ in range(min(self._at_once, len(waiting)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return [
            replace(responses[r.prompt.sha256, r.replicate], variant_id=r.variant_id, format=r.prompt.format)
            for r in requests
        ]

    async def _play(self, plays: list[_Play]) -> list[Response]:
        """Play some conversations together, a question of each at a time."""
        over: list[Response] = []
        while plays:
            questions = [play.question() for play in plays]
            going = [(p, q) for p, q in zip(plays, questions, strict=True) if q is not None]
            over += [self._finish(p, p.response()) for p, q in zip(plays, questions, strict=True) if q is None]
            plays = []
            for (play, _), response in zip(going, await self._client.ask([q for _, q in going]), strict=True):
                new = self._fresh.pop((response.prompt_sha256, response.replicate), None)
                if new is not None and not new.cached:
                    play.new.append(new)
                if response.error is None:
                    play.hear(response)
                    plays.append(play)
                elif new is None and self.stopped is not None:  # about the run: asked again when it is resumed
                    over.append(failure(self.model.name, play.request, response.error, response.detail))
                else:
                    over.append(self._finish(play, play.response(response)))
        return over

    def _note(self, response: Response) -> None:
        self._fresh[response.prompt_sha256, response.replicate] = response

    def _finish(self, play: _Play, response: Response) -> Response:
        if self._on_response is not None:
            self._on_response(response)
        if self._readable is not None and response.output is not None:
            readable = self._readable(response.output, response.format)
            if self._give_up_early and not response.cached:
                self.first.add(readable)
        elif self._give_up_early and response.error == ContentFiltered.code:
            self.first.add(False)
        if self.first.hopeless:
            self.stop(self.first.unreadable(f"conversations with {self.model.name}"))
        if self._remember:
            self._memory[response.prompt_sha256, response.replicate] = response
        return response
