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
from auditor.core.errors import ConfigError, MissingDependency
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request, Usage
from auditor.models import langchain
from auditor.models.langchain import LangChain, is_langchain, read
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
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=answer))])


TALK = (("system", "be brief"), ("user", "one"), ("assistant", "two"))


def chats(*texts: str) -> list[Request]:
    return [chat(text, *TALK, form="label") for text in texts]


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
    assert (replies[0], replies[1].code) == (Reply("negative"), "bad-request")
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
        assert ask(adapter, *chats("hello"))[0].code
        assert len(calls) == 1
        (inner,) = langchain.models(adapter._runnable)  # type: ignore[attr-defined]
        assert (inner.cache, inner.max_retries) == (False, 0)
    assert mine.max_retries == 5  # the caller's own object is left as it was
    assert mine.cache is not None
    calls.clear()
    ask(models.wrap(mine), *chats("again", "again"))
    assert len(calls) == 2


def test_what_is_no_answer() -> None:
    assert {read(answer).code for answer in (["x"], None, {"a": 1})} == {"bad-response"}


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
        (named("ModelAuthenticationError"), "auth-failed", None), (named("ModelTimeoutError"), "timeout", None),
        (named("ModelInvalidRequestError"), "bad-request", None), (named("Strange"), "server-fault", None),
        (named("ModelInvalidRequestError", code="content_filter"), "content-filtered", None),
        (named("ContextOverflowError"), "prompt-too-long", None),
        (named("ModelRateLimitError", response=response(429, retry_after="2")), "rate-limited", 2.0),
        (named("ModelRateLimitError", code="insufficient_quota"), "auth-failed", None),
        (named("ModelAPIError", status_code=403), "auth-failed", None),
        (named("Strange", status_code=429, response=response(429, Retry_After="4")), "rate-limited", 4.0),
        (named("Strange", response=response(422)), "bad-request", None),
        (named("Strange", http_status=502), "server-fault", None),
        (named("Child", base=TimeoutError), "timeout", None), (json.JSONDecodeError("x", "y", 0), "bad-response", None),
    ],
)  # fmt: skip
def test_each_error_becomes_ours(error: Exception, kind: str, wait: float | None) -> None:
    (ours,) = ask(models.wrap(Scripted(script={"hello": error})), *chats("hello"))
    assert ours.code == kind
    assert ours.retry_after_s == wait
    assert SECRET not in str(ours) + repr(ours)
    assert ours.__cause__ is None


def test_a_model_that_never_answers() -> None:
    async def wait(_: Any) -> str:
        await asyncio.sleep(60)
        return "late"

    (error,) = ask(models.wrap(RunnableLambda(lambda x: x, afunc=wait), timeout_s=0.05), *chats("hello"))
    assert error.code == "timeout"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[JsonServer]:
    """A server that answers "yes", or with the status that the last message names."""

    def reply(body: Any) -> tuple[int, dict[str, str], Any]:
        text = body["messages"][-1]["content"]
        if text.isdigit():
            told = f"Unsupported value: 'temperature' is not supported: {running.seen[-1][2].get('authorization')}"
            return int(text), {"retry-after": "3"}, {"error": {"message": told}}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}
        counts = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
        made = {"id": "x", "object": "chat.completion", "created": 1, "model": "served"}
        return 200, {}, {**made, "choices": [choice], "usage": counts}

    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    running = JsonServer(reply)
    running.url += "/v1"
    yield running
    running.close()


def test_a_spec_and_an_object_of_langchain_openai(server: JsonServer) -> None:
    openai = pytest.importorskip("langchain_openai")
    task = SimpleNamespace(formats={"label": 1}, max_tokens=lambda form: 9, temperature=0.5)
    model = models.make("langchain:openai:m:1", base_url=server.url, task=task)
    assert (model.name, model.style, model.cacheable) == ("langchain:openai:m:1", "chat", True)
    for _ in range(2):  # a run folder is resumed in another event loop
        replies = ask(model, *chats("hello", "429", "500", "401", "404", "422"))
        assert replies[0] == Reply("yes", usage=Usage(tokens_in=5, tokens_out=1), model_reported="served")
        codes = [reply.code for reply in replies[1:]]
        assert codes == ["rate-limited", "server-fault", "auth-failed", "auth-failed", "bad-request"]
        assert [r.retry_after_s for r in replies[1:]] == [3.0, 3.0, None, None, None]
        assert "--server temperature=none" in str(replies[5])
        assert SECRET not in " ".join(map(str, replies))
    assert len(server.seen) == 12  # each asked once: no retries inside
    _, path, _, body = server.seen[0]
    assert (path, body["model"], body["temperature"]) == ("/v1/chat/completions", "m:1", 0.5)
    assert body["max_completion_tokens"] == 9
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "user"]
    mine = openai.ChatOpenAI(model="m", base_url=server.url, max_retries=6, api_key=SECRET)
    model = models.wrap(mine)
    assert (model.name, model.cacheable) == ("langchain:ChatOpenAI:m", False)
    assert [reply.code for reply in ask(model, *chats("500", "429"))] == ["server-fault", "rate-limited"]
    assert (len(server.seen), mine.max_retries) == (14, 6)


@pytest.mark.parametrize(
    ("spec", "gone", "told"),
    [
        ("langchain:", "", "incomplete"), ("langchain:openai", "", "langchain:PROVIDER:NAME"),
        ("langchain:nobody:m", "", "could not be made"), ("langchain:openai:m", "", r"could not be made.*OPENAI_API_KEY"),
        ("langchain:anthropic:m", "langchain_anthropic", "Run: pip install langchain-anthropic"),
        ("langchain:openai:m", "langchain.chat_models", r"Run: pip install .*\[langchain\]"),
    ],
)  # fmt: skip
def test_specs_that_cannot_be_made(spec: str, gone: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_openai")
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    if gone:
        monkeypatch.setitem(sys.modules, gone, None)
    with pytest.raises(MissingDependency if gone else ConfigError, match=told):
        models.make(spec)


def test_the_server_of_one_model_is_not_that_of_another(server: JsonServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_openai")
    monkeypatch.setattr(langchain, "WITH_ADDRESS", ("ollama",))
    model: Any = models.make("langchain:openai:m", base_url=server.url)
    assert "127.0.0.1" not in str(model._runnable.root_client.base_url)
