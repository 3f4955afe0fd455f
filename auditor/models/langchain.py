"""``langchain:PROVIDER:NAME``, and any LangChain chat model or `Runnable` given from Python.

LangChain's own retries and caches are taken out, so that every call is counted and none is answered from a
store this tool does not know: the client around each adapter retries and caches. A `Runnable` is otherwise called
as it is. One that begins with a prompt template of one variable brings its own prompt: it gets the bare text
(style "text"); every other one gets the rendered messages (style "chat").
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal

from auditor.core import secrets, talk
from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    CallError,
    CallTimeout,
    ContentFiltered,
    MissingDependency,
    ParameterChanged,
)
from auditor.core.protocols import Model, Reply, bare_text
from auditor.core.types import Request, Usage, digest
from auditor.models import langchain_objects as objects
from auditor.models.adapter import token_limits, usage
from auditor.models.budget import Price, lookup
from auditor.models.transport import brief, kind_of, proxy_of

_TIMES: ContextVar[Counter[str]] = ContextVar("calls of each tool in this conversation")
FILTERED = frozenset({"content_filter", "safety", "prohibited_content", "blocklist", "guardrail_intervened"})


class LangChain(Model):
    """A LangChain model.

    Parameters
    ----------
    target : str or Runnable
        ``"PROVIDER:NAME"`` as of `langchain.chat_models.init_chat_model`, or the object itself.
    base_url : str or None
        The server, for the providers openai and ollama; the packages of others read their own variables.
    task : Task or None
        Gives the temperature and the most tokens that an answer needs, for models made from a spec. An object
        keeps its own settings.
    max_tokens, temperature, timeout_s, price
        As of `auditor.models.openai.OpenAIChat`.
    fingerprint : str or None
        For objects: names their exact state (model, prompt, parameters). An object without one is cached only
        where LangChain can serialize all of it.
    style : {"text", "chat"} or None
        Overrides what the module says.

    Raises
    ------
    MissingDependency
        LangChain, or the provider's package, is not installed.
    ConfigError
        The spec is malformed, the provider unknown, a key missing, or the prompt template has several variables.
    """

    def __init__(
        self,
        target: str | object,
        *,
        base_url: str | None = None,
        task: object = None,
        max_tokens: int | None = None,
        temperature: float | Literal["task", "server"] = "task",
        timeout_s: float = 60.0,
        price: Price | None = None,
        name: str | None = None,
        fingerprint: str | None = None,
        style: Literal["text", "chat"] | None = None,
    ) -> None:
        self.price = price
        self._timeout_s = timeout_s
        self._limit = token_limits(task, max_tokens)[""]
        self._spec: objects.Spec | None = None
        self._own_temperature = temperature != "task"
        self.changed: dict[str, str] = {}
        self._former: list[Any] = []
        self._variable: str | None = None
        if isinstance(target, str):
            if temperature == "task":
                temperature = getattr(task, "temperature", 0.0)
            self._spec = objects.Spec.read(
                target,
                base_url=base_url,
                max_tokens=self._limit,
                temperature=None if temperature == "server" else temperature,
                timeout_s=timeout_s,
            )
            self._runnable: Any = objects.build(self._spec)
            self.proxy = proxy_of(base_url or "https://")  # the packages of providers read it too
            self.name = name or f"langchain:{target}"
            self.cacheable = True
            if price is None and self._spec.at_provider("openai"):
                self.price = lookup(self._spec.name)
        else:
            core()
            self._runnable = objects.bare(target)
            self._variable = objects.variable(self._runnable)
            self.name = name or objects.label(self._runnable)
            self.cacheable = fingerprint is not None or objects.is_whole(objects.serialized(self._runnable))
        self.style: Literal["text", "chat"] = style or ("chat" if self._variable is None else "text")
        self.calls_tools = objects.is_graph(self._runnable) or hasattr(self._runnable, "bind_tools")
        objects.know_secrets(self._runnable)
        facts = {
            "adapter": "langchain.v2",
            "spec": None if self._spec is None else self._spec.facts(),
            "model": fingerprint or objects.serialized(self._runnable),
            "style": self.style,
        }
        self.fingerprint = "langchain:" + digest(facts, size=16)

    def __repr__(self) -> str:
        return f"LangChain({self.name!r})"

    def max_tokens(self, format: str) -> int:
        """Return the most tokens that an answer may have; an object's own limit where it has one."""
        own = None if self._spec is not None else objects.own_limit(self._runnable)
        return self._limit if own is None else own

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """One call per request; the client hands over one at a time."""
        return [await self._ask(request) for request in batch]

    async def aclose(self) -> None:
        """Close the connections of a model made from a spec; an object belongs to its maker."""
        if self._spec is not None and self._runnable is not None:
            models, self._runnable, self._former = [*self._former, self._runnable], None, []
            for model in models:
                await objects.close(model)

    async def _ask(self, request: Request) -> Reply | CallError:
        if self._runnable is None:
            assert self._spec is not None
            self._runnable = objects.build(self._spec)
        asked = self._input(request)
        if isinstance(asked, CallError):
            return asked
        tools, spec = [tool.plain() for tool in request.prompt.tools], self._spec
        try:
            async with asyncio.timeout(self._timeout_s):
                if objects.is_graph(self._runnable):
                    _TIMES.set(Counter(call.name for call in talk.calls_of(request.prompt.messages or ())))
                    state = await self._runnable.ainvoke({"messages": asked})
                    return _added(state["messages"][len(asked) :])
                asked_of = self._runnable.bind_tools(tools) if tools else self._runnable
                return read(await asked_of.ainvoke(asked))
        except TimeoutError:
            return CallTimeout(f"{self.name}: no whole answer within {self._timeout_s:g} s")
        except CallError as error:
            return error
        except Exception as error:  # noqa: BLE001 - whatever foreign code raises
            failed = self._translate(error)
            if isinstance(failed, BadRequest) and spec is not None and self._changed_by(error, spec):
                return ParameterChanged(str(failed))
            return failed

    def _changed_by(self, error: Exception, sent: objects.Spec) -> bool:
        """Whether a setting that the server does not know is sent otherwise from now on."""
        if sent is not self._spec:
            return True  # changed while this call was under way
        refused = sent.refused(getattr(error, "body", None) or str(error), self._own_temperature)
        if refused:
            self._spec = sent.without(refused)
            self.changed |= refused
            self._former.append(self._runnable)  # calls that are under way still need it
            self._runnable = objects.build(self._spec)
        return bool(refused)

    def _input(self, request: Request) -> Any:
        prompt = request.prompt
        if self.style == "text":
            text = bare_text(prompt)
            return text if self._variable is None or isinstance(text, CallError) else {self._variable: text}
        messages = core().messages
        if prompt.messages is None:
            return [messages.HumanMessage(content=prompt.text or "")]
        return list(messages.utils.convert_to_messages([m.plain() for m in prompt.messages]))

    def _translate(self, error: Exception) -> CallError:
        """Our error for whatever was raised, without keys or the chain of causes."""
        kind, wait = kind_of(error)
        message = brief(secrets.scrub(f"{type(error).__name__}: {error}"))
        hint = ". Check the key in the environment, and the model's name" if kind is AuthFailed else ""
        return kind(f"{self.name}: {message}{hint}", retry_after_s=wait)


def core() -> Any:
    """The package langchain_core, with its messages.

    Raises
    ------
    MissingDependency
        It is not installed.
    """
    import importlib

    try:
        importlib.import_module("langchain_core.messages")
    except ImportError as error:
        raise MissingDependency("A LangChain model (langchain:)", "langchain-core", extra="langchain") from error
    return sys.modules["langchain_core"]


def stub_tools(task: Any) -> list[Any]:
    """The tools of a task for an agent of LangGraph: they answer what the task file declares, and never act.

    Within an audit the results come one after the other, as often as a tool was called in the conversation; elsewhere
    the first one does.
    """
    from langchain_core.tools import StructuredTool

    def stub(name: str, results: Sequence[str]) -> Any:
        def answer(**_: object) -> str:
            times = _TIMES.get(Counter())
            times[name] += 1
            return results[min(times[name], len(results)) - 1]

        return answer

    return [
        StructuredTool.from_function(
            func=stub(tool.name, tool.results),
            name=tool.name,
            description=tool.description or tool.name,
            args_schema=dict(tool.parameters),
        )
        for tool in task.tools
    ]


def is_langchain(value: object) -> bool:
    """Whether ``value`` is a LangChain `Runnable`; imports nothing that its maker has not imported."""
    module = sys.modules.get("langchain_core.runnables.base")
    kind = getattr(module, "Runnable", None)
    return kind is not None and isinstance(value, kind)


def read(answer: Any) -> Reply | CallError:
    """The reply in what a `Runnable` returned: a message, or a text.

    Examples
    --------
    >>> read("positive").text
    'positive'
    """
    if isinstance(answer, str):
        return Reply(str(answer))
    if not (hasattr(answer, "content") and hasattr(answer, "response_metadata")):
        return BadResponse(f"the model returned {type(answer).__name__}; a message or a text is expected")
    facts = answer.response_metadata if isinstance(answer.response_metadata, Mapping) else {}
    text = str(getattr(answer, "text", "") or "")
    if callable(getattr(answer, "text", None)) and not isinstance(answer.text, str):
        text = str(answer.text())
    ended = str(facts.get("finish_reason") or facts.get("stop_reason") or "").rpartition(".")[2].lower()
    if ended in FILTERED:
        return ContentFiltered(f"the provider's filter cut the answer (finish reason {ended})")
    extra = getattr(answer, "additional_kwargs", None) or {}
    if calls := getattr(answer, "tool_calls", None):
        text = str(talk.written({"content": text, "tool_calls": calls}))
    if not text and isinstance(extra.get("refusal"), str):
        text = extra["refusal"]
    if not text and ended == "refusal":
        return ContentFiltered("the provider refused to answer (stop reason refusal)")
    reported, counts = facts.get("model_name") or facts.get("model"), getattr(answer, "usage_metadata", None)
    return Reply(
        text,
        usage=usage(counts.get("input_tokens"), counts.get("output_tokens")) if isinstance(counts, Mapping) else None,
        cost_usd=_cost(facts),
        model_reported=reported if isinstance(reported, str) else None,
    )


def _added(messages: Sequence[Any]) -> Reply | CallError:
    """What an agent added to a conversation, with the tools that it ran, as one answer."""
    roles = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
    added, usages = [], []
    for message in messages:
        reply = read(message)
        if isinstance(reply, CallError):
            return reply
        usages += [reply.usage] if reply.usage is not None else []
        calls = {"tool_calls": calls} if (calls := getattr(message, "tool_calls", None)) else {}
        role, answers = roles.get(message.type, "assistant"), getattr(message, "tool_call_id", None)
        added.append({"role": role, "content": message.content, "tool_call_id": answers} | calls)
    total = Usage(tokens_in=sum(u.tokens_in for u in usages), tokens_out=sum(u.tokens_out for u in usages))
    return Reply(talk.written(added) or "", usage=total if usages else None)


MOST_USD = 1e4  # for one call that are believed


def _cost(facts: Mapping[str, object]) -> float | None:
    """US dollars, where the server says what the call cost (some gateways do)."""
    for place in (facts.get("token_usage"), facts.get("usage"), facts):
        cost = place.get("cost") if isinstance(place, Mapping) else None
        if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= MOST_USD:
            return float(cost)
    return None
