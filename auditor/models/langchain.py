"""``langchain:PROVIDER:NAME``, and any LangChain chat model or `Runnable` given from Python.

LangChain's own retries and caches are taken out: the client retries, caches and counts. A `Runnable` that begins with a
prompt template of one variable gets the bare text (style "text"); every other one gets the rendered messages.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal

from auditor.core import talk
from auditor.core.errors import (
    AuthFailed,
    BadResponse,
    CallError,
    CallTimeout,
    ConfigError,
    ContentFiltered,
    MissingDependency,
)
from auditor.core.protocols import Model, Reply, bare_text
from auditor.core.shown import keep_secret, scrub
from auditor.core.types import Request, Usage, digest
from auditor.models import transport
from auditor.models.adapter import token_limits, usage
from auditor.models.limits import lookup
from auditor.models.openai import revealed, unsupported

_TIMES: ContextVar[Counter[str]] = ContextVar("calls of each tool in this conversation")
# How providers say that they kept an answer back (OpenAI; Gemini; Bedrock), and that it ended at the limit on tokens.
FILTERED = {"content_filter", "safety", "prohibited_content", "blocklist", "recitation", "spii"}
FILTERED |= {"guardrail_intervened", "content_filtered"}
CUT = {"length", "max_tokens", "model_context_window_exceeded"}
# One run may hold several models: --base-url, which is another's, must not draw a provider's key to it.
WITH_ADDRESS = ("openai", "ollama")
_SECRET = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
# What the classes of the integration packages call the most tokens of an answer; the first that a class knows is used.
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "num_predict")


class LangChain(Model):
    """A LangChain model: ``"PROVIDER:NAME"`` as of `langchain.chat_models.init_chat_model`, or an object.

    ``base_url`` is the server, for the providers openai and ollama. ``task`` gives temperature and most tokens of an
    answer to models made from a spec. ``fingerprint`` names the exact state of an object (model, prompt, parameters);
    one without it is not cached. Raises `MissingDependency` where a package is not installed, and `ConfigError` for a
    malformed spec, an unknown provider, a missing key, or a prompt template with several variables.
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
        name: str | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._limit = token_limits(task, max_tokens)[""]
        self._spec = target if isinstance(target, str) else None
        self._settings: dict[str, Any] = {}
        self._variable: str | None = None
        facts: dict[str, object]
        if self._spec is not None:
            if temperature == "task":
                temperature = getattr(task, "temperature", 0.0)
            self._settings = {
                "base_url": base_url,
                "max_tokens": self._limit,
                "temperature": None if temperature == "server" else temperature,
                "timeout_s": timeout_s,
            }
            self._runnable: Any = build(self._spec, **self._settings)
            provider, _, model = self._spec.partition(":")
            address = (base_url or "") if provider in WITH_ADDRESS else ""
            self.proxy = transport.proxy_of(base_url or "https://")  # the packages of providers read it too
            self.name = name or f"langchain:{target}"
            moved = address or os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL")
            if provider == "openai" and not moved:
                self.price = lookup(model)
            shown = re.sub(r"//[^/@]*@", "//", revealed(address) if address else "").partition("?")[0].rstrip("/")
            facts = {"spec": self._spec, **self._settings, "base_url": shown}
            del facts["timeout_s"]
        else:
            core()
            self._runnable = bare(target)
            self._variable = _variable(self._runnable)
            self.name = name or _label(self._runnable)
            self.cacheable = fingerprint is not None
            facts = {"object": self.name, "declared": fingerprint}
        self.style = "chat" if self._variable is None else "text"
        self.calls_tools = _is_graph(self._runnable) or hasattr(self._runnable, "bind_tools")
        _know_secrets(self._runnable)
        self.fingerprint = "langchain:" + digest({"adapter": "langchain.v3", **facts, "style": self.style}, size=16)

    def max_tokens(self, format: str) -> int:
        """Return the most tokens that an answer may have; an object's own limit where it has one."""
        inner = None if self._spec is not None else next(models(self._runnable), None)
        own = (getattr(inner, name, None) for name in _LIMITS)
        return next((n for n in own if isinstance(n, int) and n > 0), self._limit)

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """One call per request; the client hands over one at a time."""
        return [await self._ask(request) for request in batch]

    async def aclose(self) -> None:
        """Close the connections of a model made from a spec; an object belongs to its maker."""
        if self._spec is not None and self._runnable is not None:
            model, self._runnable = self._runnable, None
            if (client := getattr(model, "http_async_client", None)) is not None:
                await client.aclose()

    async def _ask(self, request: Request) -> Reply | CallError:
        if self._runnable is None:
            assert self._spec is not None
            self._runnable = build(self._spec, **self._settings)
        asked = self._input(request)
        if isinstance(asked, CallError):
            return asked
        tools = [tool.plain() for tool in request.prompt.tools]
        try:
            async with asyncio.timeout(self._timeout_s):
                if _is_graph(self._runnable):
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
            return self._translate(error)

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
        """Return our error for whatever was raised, without keys or the chain of causes."""
        kind, wait = transport.kind_of(error)
        message = transport.brief(scrub(f"{type(error).__name__}: {error}"))
        hint = ". Check the key in the environment, and the model's name" if kind is AuthFailed else ""
        if self._spec is not None and unsupported(getattr(error, "body", None) or str(error), ["temperature"]):
            hint = ". Send none: --server temperature=none"
        return kind(f"{self.name}: {message}{hint}", retry_after_s=wait)


def core() -> Any:
    """Import langchain_core with its messages; raise `MissingDependency` where it is not installed."""
    try:
        import langchain_core.messages
    except ImportError as error:
        raise MissingDependency("A LangChain model (langchain:)", "langchain-core", extra="langchain") from error
    return langchain_core


def stub_tools(task: Any) -> list[Any]:
    """Return the tools of a task for an agent of LangGraph: they give the declared results in turn, and never act."""
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
    """Return whether ``value`` is a LangChain `Runnable`, without importing LangChain."""
    module = sys.modules.get("langchain_core.runnables.base")
    kind = getattr(module, "Runnable", None)
    return kind is not None and isinstance(value, kind)


def read(answer: Any) -> Reply | CallError:
    """Return the reply in the result of a `Runnable`: a message, or a text."""
    if isinstance(answer, str):
        return Reply(str(answer))
    if not (hasattr(answer, "content") and hasattr(answer, "response_metadata")):
        return BadResponse(f"the model returned {type(answer).__name__}; a message or a text is expected")
    facts = answer.response_metadata if isinstance(answer.response_metadata, Mapping) else {}
    text = str(answer.text)
    said = [facts.get(name) for name in ("finish_reason", "stop_reason", "stopReason")]
    ended = str(next(filter(None, said), "")).rpartition(".")[2].lower()
    blocked = facts.get("prompt_feedback")
    if isinstance(blocked, Mapping) and blocked.get("block_reason"):
        return ContentFiltered("the provider's filter refused the prompt (prompt_feedback)")
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
        model_reported=reported if isinstance(reported, str) else None,
        cut_off=ended in CUT,
    )


def _added(messages: Sequence[Any]) -> Reply | CallError:
    """Return what an agent added to a conversation, with the tools that it ran, as one answer."""
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


def build(spec: str, *, base_url: str | None, max_tokens: int, temperature: float | None, timeout_s: float) -> Any:
    """Make the chat model that ``PROVIDER:NAME`` names, without retries and cache of its own."""
    provider, _, name = spec.partition(":")
    if not (provider and name):
        raise ConfigError(
            f"model langchain:{spec}: expected langchain:PROVIDER:NAME, for example "
            "langchain:anthropic:claude-sonnet-4-5 or langchain:ollama:llama3.2"
        )
    provider = provider.replace("-", "_")
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise MissingDependency("A LangChain model (langchain:)", "langchain", extra="langchain") from error
    wanted: dict[str, object] = {
        "temperature": temperature,
        "timeout": timeout_s,
        "base_url": revealed(base_url) if base_url and provider in WITH_ADDRESS else None,
        "max_retries": 0,
    }
    try:
        # Only the class says what it knows, and LangChain names it by making one.
        first = init_chat_model(name, model_provider=provider)
        fields = type(first).model_fields
        known = {*fields, *(field.alias for field in fields.values() if isinstance(field.alias, str))}
        wanted |= dict.fromkeys([name for name in _LIMITS if name in known][:1], max_tokens)
        settings = {name: value for name, value in wanted.items() if value is not None and name in known}
        if "http_async_client" in known:
            # LangChain shares one connection pool between models and event loops; a run has its own.
            inner = getattr(getattr(first, "root_async_client", None), "_client", None)
            settings["http_async_client"] = transport.client(type(inner), timeout=timeout_s)
        return init_chat_model(name, model_provider=provider, cache=False, **settings)
    except ImportError as error:
        # LangChain's message holds the line to run for the provider's own package.
        package = re.search(r"pip install (?:-U )?[`'\"]?([\w.-]+)", str(error))
        missing = package.group(1) if package else f"langchain-{provider.replace('_', '-')}"
        raise MissingDependency(f"langchain:{provider}:", missing) from error
    except Exception as error:  # noqa: BLE001 - each provider's class refuses with errors of its own
        why = " ".join(str(error).split())[:300]
        raise ConfigError(f"langchain:{spec} could not be made: {why} See: audit list models") from None


def bare(target: object) -> Any:
    """Return ``target`` with the retries and caches inside it taken out, as copies; anything else in it as it is."""
    from langchain_core.language_models import BaseLanguageModel
    from langchain_core.runnables import RunnableSequence
    from langchain_core.runnables.base import RunnableBindingBase
    from langchain_core.runnables.retry import RunnableRetry

    if isinstance(target, RunnableRetry):
        return bare(target.bound)
    if isinstance(target, RunnableSequence):
        return RunnableSequence(*(bare(step) for step in target.steps), name=target.name)
    if isinstance(target, RunnableBindingBase):
        return target.model_copy(update={"bound": bare(target.bound)})
    if not isinstance(target, BaseLanguageModel):
        return target
    changed: dict[str, object] = {"cache": False}
    if "max_retries" in type(target).model_fields:
        changed["max_retries"] = 0
    copy = target.model_copy(update=changed)
    for name in ("_client", "_async_client"):
        copy.__dict__.pop(name, None)  # made on first use, from the settings: let it be made again
    sdk: object = getattr(copy, "root_async_client", None)
    if hasattr(sdk, "with_options"):
        copy.root_async_client = sdk.with_options(max_retries=0)
        copy.async_client = copy.root_async_client.chat.completions
    return copy


def models(target: object) -> Iterator[Any]:
    """Yield the language models inside ``target``, in order."""
    from langchain_core.language_models import BaseLanguageModel

    if isinstance(target, BaseLanguageModel):
        yield target
    for step in getattr(target, "steps", ()):
        yield from models(step)
    if (bound := getattr(target, "bound", None)) is not None:
        yield from models(bound)


def _variable(target: object) -> str | None:
    """Return the one variable of the prompt template that ``target`` begins with; None without a template."""
    from langchain_core.prompts import BasePromptTemplate

    first = next(iter(getattr(target, "steps", ())), target)
    if not isinstance(first, BasePromptTemplate):
        return None
    names = list(first.input_variables)
    if len(names) != 1:
        raise ConfigError(
            f"the prompt template of the model has the variables {', '.join(names) or 'none'}; one is needed, for "
            "the text. Fill the others: template.partial(…)"
        )
    return str(names[0])


def _is_graph(target: object) -> bool:
    """Return whether ``target`` is an agent of LangGraph: it runs its own tools and returns all messages."""
    return any(kind.__module__.startswith("langgraph.") for kind in type(target).__mro__)


def _label(target: object) -> str:
    """Return a name for reports: the class, and the model's own name where it says one."""
    inner = next(models(target), None)
    named = (getattr(inner, field, None) for field in ("model_name", "model", "model_id", "deployment_name"))
    name = next((f":{name}" for name in named if isinstance(name, str) and name), "")
    return f"langchain:{type(target if inner is None else inner).__name__}{name}"


def _know_secrets(target: object) -> None:
    """Keep the keys and headers of the models inside ``target`` out of everything that is written."""
    for model in models(target):
        for name in getattr(type(model), "model_fields", {}):
            value = getattr(model, name, None)
            if hasattr(value, "get_secret_value"):
                keep_secret(str(value.get_secret_value()))  # type: ignore[union-attr]
            elif isinstance(value, str) and _SECRET.search(name):
                keep_secret(value)
            elif isinstance(value, Mapping) and "headers" in name:
                for one in value.values():
                    keep_secret(str(one))
