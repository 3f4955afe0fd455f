"""LangChain models: specs, objects, errors, retries, identity; a scripted model and a loopback server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import Field

import auditor.models as models
from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    CallError,
    CallTimeout,
    ConfigError,
    ContentFiltered,
    MissingDependency,
    PromptTooLong,
    RateLimited,
    ServerFault,
)
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request, Usage
from auditor.models import langchain
from auditor.models.langchain import LangChain, is_langchain, read
from auditor.models.transport import kind_of
from tests.asking import ask, bare, chat
from tests.json_server import JsonServer

pytest.importorskip("langchain_core")
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda

SECRET = "sk-0123456789-secret"


class Scripted(BaseChatModel):
    """Answers with what its script says for the last message; an exception in it is raised."""

    script: dict[str, Any] = Field(default_factory=dict)
    seen: list[Any] = Field(default_factory=list)
    max_retries: int = 5
    api_key: str = SECRET
    temperature: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.seen.append(messages)
        answer = self.script.get(str(messages[-1].content), "positive")
        if isinstance(answer, BaseException):
            raise answer
        message = answer if isinstance(answer, AIMessage) else AIMessage(content=answer)
        return ChatResult(generations=[ChatGeneration(message=message)])


TALK = (("system", "be brief"), ("user", "one"), ("assistant", "two"))


def chats(*texts: str) -> list[Request]:
    return [chat(text, *TALK, form="label") for text in texts]


# -- objects --------------------------------------------------------------------------------------------


def test_a_chat_model_gets_the_messages_and_only_a_fingerprint_makes_it_one_for_the_cache() -> None:
    model = models.wrap(Scripted(seen=[]))
    assert isinstance(model, LangChain)
    assert (model.name, model.style, model.deterministic) == ("langchain:Scripted", "chat", False)
    assert ask(model, *chats("hello")) == [Reply("positive")]
    (messages,) = model._runnable.seen
    assert [type(m) for m in messages] == [SystemMessage, HumanMessage, AIMessage, HumanMessage]
    assert [m.content for m in messages] == ["be brief", "one", "two", "hello"]
    one, other = (models.wrap(Scripted(), fingerprint=named) for named in ("weights-1", "weights-2"))
    assert [model.cacheable, one.cacheable, other.cacheable] == [False, True, True]
    assert len({model.fingerprint, one.fingerprint, other.fingerprint}) == 3
    assert one.fingerprint == models.wrap(Scripted(temperature=0.5), fingerprint="weights-1").fingerprint
    assert (is_langchain(Scripted()), is_langchain(str)) == (True, False)
    assert not isinstance(Scripted(), Model)  # although it has a method generate


def test_a_runnable_with_its_own_prompt_gets_the_bare_text() -> None:
    prompt = ChatPromptTemplate.from_messages([("system", "Judge."), ("human", "Film: {text}")])
    model = models.wrap(prompt | Scripted(script={"Film: {x} fine": "negative"}) | StrOutputParser(), name="mine")
    assert (model.name, model.style) == ("mine", "text")
    replies = ask(model, bare("{x} fine"), *chats("hello"))
    assert (replies[0], type(replies[1])) == (Reply("negative"), BadRequest)
    with pytest.raises(ConfigError, match="a, b; one is needed"):
        models.wrap(ChatPromptTemplate.from_template("{a} {b}") | Scripted())
    filled = ChatPromptTemplate.from_template("{a} {b}").partial(b="x") | Scripted()
    assert models.wrap(filled).style == "text"


def test_retries_and_caches_inside_are_taken_out() -> None:
    from langchain_core.caches import InMemoryCache

    mine = Scripted(script={"hello": ValueError("no")}, seen=[], cache=InMemoryCache())
    calls = mine.seen
    for wrapped in (mine, mine.with_retry(stop_after_attempt=4), mine.bind(stop=["x"]) | StrOutputParser()):
        calls.clear()
        adapter = models.wrap(wrapped)
        (error,) = ask(adapter, *chats("hello"))
        assert isinstance(error, CallError)
        assert len(calls) == 1
        (inner,) = langchain.models(adapter._runnable)  # type: ignore[attr-defined]
        assert (inner.cache, inner.max_retries) == (False, 0)
    assert mine.max_retries == 5  # the caller's own object is left as it was
    assert mine.cache is not None
    calls.clear()
    ask(models.wrap(mine), *chats("again", "again"))
    assert len(calls) == 2


@pytest.mark.parametrize("answer", [["x"], None, {"a": 1}])
def test_what_is_no_answer(answer: Any) -> None:
    assert type(read(answer)) is BadResponse


# -- errors ---------------------------------------------------------------------------------------------


def named(name: str, base: type[Exception] = Exception, **fields: Any) -> Exception:
    error = type(name, (base,), {})(f"said with {SECRET}")
    for field, value in fields.items():
        setattr(error, field, value)
    return error


def response(status: int, **headers: str) -> Any:
    return SimpleNamespace(status_code=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


@pytest.mark.parametrize(
    ("error", "kind", "wait"),
    [
        (named("ModelAuthenticationError"), AuthFailed, None),
        (named("ModelInvalidRequestError"), BadRequest, None),
        (named("ModelInvalidRequestError", code="content_filter"), ContentFiltered, None),
        (named("ContextOverflowError"), PromptTooLong, None),
        (named("ModelRateLimitError", response=response(429, retry_after="2")), RateLimited, 2.0),
        (named("ModelRateLimitError", code="insufficient_quota"), AuthFailed, None),
        (named("ModelTimeoutError"), CallTimeout, None),
        (named("ModelAPIError", status_code=403), AuthFailed, None),
        (named("Strange", status_code=429, response=response(429, Retry_After="4")), RateLimited, 4.0),
        (named("Strange", response=response(422)), BadRequest, None),
        (named("Strange", http_status=502), ServerFault, None),
        (named("Strange"), ServerFault, None),
        (named("Child", base=TimeoutError), CallTimeout, None),
        (json.JSONDecodeError("x", "y", 0), BadResponse, None),
    ],
)
def test_each_error_becomes_ours(error: Exception, kind: type[CallError], wait: float | None) -> None:
    assert kind_of(error) == (kind, wait)
    (ours,) = ask(models.wrap(Scripted(script={"hello": error})), *chats("hello"))
    assert type(ours) is kind
    assert ours.retry_after_s == wait
    assert SECRET not in str(ours) + repr(ours)
    assert ours.__cause__ is None


def test_a_model_that_never_answers() -> None:
    async def wait(_: Any) -> str:
        await asyncio.sleep(60)
        return "late"

    (error,) = ask(models.wrap(RunnableLambda(lambda x: x, afunc=wait), timeout_s=0.05), *chats("hello"))
    assert type(error) is CallTimeout


# -- specs, against a loopback server -------------------------------------------------------------------


class Server(JsonServer):
    """Answers "yes", or with the status that the last message names."""

    def __init__(self) -> None:
        def reply(body: Any) -> tuple[int, dict[str, str], Any]:
            text = body["messages"][-1]["content"]
            told = {"retry-after": "3"}
            if text == "422":
                return 422, told, {"error": {"message": "Unsupported value: 'temperature' is not supported here."}}
            if text.isdigit():
                return int(text), told, {"error": {"message": f"no: {self.seen[-1][2].get('authorization')}"}}
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}
            counts = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
            made = {"id": "x", "object": "chat.completion", "created": 1, "model": "served"}
            return 200, told, {**made, "choices": [choice], "usage": counts}

        super().__init__(reply)
        self.url += "/v1"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    running = Server()
    yield running
    running.close()


def test_a_spec_through_langchain_openai(server: Server) -> None:
    pytest.importorskip("langchain_openai")
    task = SimpleNamespace(formats={"label": 1}, max_tokens=lambda form: 9, temperature=0.5)
    model = models.make("langchain:openai:m:1", base_url=server.url, task=task)
    assert (model.name, model.style, model.cacheable) == ("langchain:openai:m:1", "chat", True)
    for _ in range(2):  # a run folder is resumed in another event loop
        replies = ask(model, *chats("hello", "429", "500", "401", "404", "422"))
        assert replies[0] == Reply("yes", usage=Usage(tokens_in=5, tokens_out=1), model_reported="served")
        assert [type(r) for r in replies[1:]] == [RateLimited, ServerFault, AuthFailed, AuthFailed, BadRequest]
        assert [r.retry_after_s for r in replies[1:]] == [3.0, 3.0, None, None, None]
        assert "--server temperature=none" in str(replies[5])
        assert SECRET not in " ".join(map(str, replies))
    assert len(server.seen) == 12  # each asked once: no retries inside
    _, path, _, body = server.seen[0]
    assert (path, body["model"], body["temperature"]) == ("/v1/chat/completions", "m:1", 0.5)
    assert body["max_completion_tokens"] == 9
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "user"]


def test_an_object_of_langchain_openai(server: Server) -> None:
    openai = pytest.importorskip("langchain_openai")
    mine = openai.ChatOpenAI(model="m", base_url=server.url, max_retries=6, api_key=SECRET)
    model = models.wrap(mine)
    assert (model.name, model.cacheable) == ("langchain:ChatOpenAI:m", False)
    assert [type(r) for r in ask(model, *chats("500", "429"))] == [ServerFault, RateLimited]
    assert len(server.seen) == 2
    assert mine.max_retries == 6


@pytest.mark.parametrize(
    ("spec", "gone", "error", "told"),
    [
        ("langchain:", "", ConfigError, "incomplete"),
        ("langchain:openai", "", ConfigError, "langchain:PROVIDER:NAME"),
        ("langchain:nobody:m", "", ConfigError, "could not be made"),
        ("langchain:openai:m", "key", ConfigError, r"could not be made.*OPENAI_API_KEY"),
        ("langchain:anthropic:m", "langchain_anthropic", MissingDependency, "Run: pip install langchain-anthropic"),
        ("langchain:openai:m", "langchain.chat_models", MissingDependency, r"Run: pip install .*\[langchain\]"),
    ],
)
def test_specs_that_cannot_be_made(
    spec: str, gone: str, error: type[Exception], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("langchain_openai")
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    if "lang" in gone:
        monkeypatch.setitem(sys.modules, gone, None)
    with pytest.raises(error, match=told):
        models.make(spec)


def test_the_server_of_one_model_is_not_that_of_another(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_openai")
    monkeypatch.setattr(langchain, "WITH_ADDRESS", ("ollama",))
    model: Any = models.make("langchain:openai:m", base_url=server.url)
    assert "127.0.0.1" not in str(model._runnable.root_client.base_url)
