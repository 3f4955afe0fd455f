"""Conversations on top of a `Client`: turns are said one after the other, calls of tools get their declared results.

Every question within a conversation goes through the client, with its cache, budget, limits and retries. What a run
journals is the conversation: one answer, whose output holds all of its messages.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace
from typing import Any

from auditor.core import talk
from auditor.core.errors import BudgetExceeded, CallError, ContentFiltered
from auditor.core.protocols import Model
from auditor.core.talk import Call, Message, Said, Tool
from auditor.core.types import Prompt, Request, Response, Usage
from auditor.models.client import Client, Key, Queue, failure
from auditor.models.limits import Budget
from auditor.models.reply_cache import Cache

NO_TOOL = "error: there is no tool of this name"
NO_JSON = "error: the arguments are no JSON object"
LAYERS = ("concurrency", "retry", "clock", "sleep")  # of the client that asks the single questions


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


class Talks(Client):
    """Plays conversations with one model; each question within one goes through a client of its own.

    Conversations that begin alike share their beginning: equal questions are asked once.
    """

    what = "conversations with"

    def __init__(self, model: Model, *, cache: Cache | None, budget: Budget, **options: Any) -> None:
        super().__init__(model, cache=None, budget=budget, **options)
        self._fresh: dict[Key, Response] = {}  # answers and failures of single questions that were not taken yet
        layers = {name: value for name, value in options.items() if name in LAYERS}
        self._single = Client(
            model,
            cache=cache,
            budget=budget,
            on_response=self._note,
            keep=lambda text, format: bool(text.strip()),
            **layers,
        )
        self.counts = self._single.counts

    def stop(self, reason: BudgetExceeded | CallError) -> None:
        """Make no further call."""
        super().stop(reason)
        self._single.stop(reason)

    async def _answer(self, queue: Queue, batch: list[Request]) -> None:
        """Play some conversations together, a question of each at a time."""
        plays = [_Play(request) for request in batch]
        while plays:
            questions = [play.question() for play in plays]
            going = [(p, q) for p, q in zip(plays, questions, strict=True) if q is not None]
            for play in (p for p, q in zip(plays, questions, strict=True) if q is None):
                self._over(play.response())
            plays = []
            responses = await self._single.ask([q for _, q in going])
            if self._single.stopped is not None:
                self.stop(self._single.stopped)
            for (play, _), response in zip(going, responses, strict=True):
                new = self._fresh.pop((response.prompt_sha256, response.replicate), None)
                if new is not None and not new.cached:
                    play.new.append(new)
                if response.error is None:
                    play.hear(response)
                    plays.append(play)
                elif new is None and self.stopped is not None:  # about the run: asked again when it is resumed
                    self._hand_out(failure(self.model.name, play.request, response.error, response.detail))
                else:
                    self._over(play.response(response))

    def _note(self, response: Response) -> None:
        self._fresh[response.prompt_sha256, response.replicate] = response

    def _over(self, response: Response) -> None:
        self._finish(response)
        if response.output is None:
            if response.error == ContentFiltered.code:
                self._look_at_first(False)
        elif not response.cached:
            self._look_at_first(self._keep(response.output, response.format))
