"""LangChain models: specs, objects, errors, retries, identity; a scripted model and a loopback server."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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
    ParameterChanged,
    RateLimited,
    ServerFault,
)
from auditor.core.protocols import Model, Reply
from auditor.core.types import Message, Prompt, Request, Usage
from auditor.models import langchain_objects as parts
from auditor.models.langchain import LangChain, is_langchain, read
from auditor.models.transport import kind_of

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


def chat(text: str = "hello") -> Request:
    told = (
        Message(role="system", content="be brief"),
        Message(role="user", content="one"),
        Message(role="assistant", content="two"),
        Message(role="user", content=text),
    )
    return Request(prompt=Prompt(format="label", messages=told), replicate=0, variant_id="v")


def bare(text: str = "hello") -> Request:
    return Request(prompt=Prompt(format="bare", text=text), replicate=0, variant_id="v")


def ask(model: Any, *requests: Request) -> list[Any]:
    async def go() -> list[Any]:
        try:
            return list(await model.generate(list(requests)))
        finally:
            await model.aclose()

    return asyncio.run(go())


# -- objects --------------------------------------------------------------------------------------------


def test_a_chat_model_gets_the_messages() -> None:
    scripted = Scripted(seen=[])
    model = models.wrap(scripted)
    assert isinstance(model, LangChain)
    assert (model.name, model.style, model.deterministic, model.cacheable) == (
        "langchain:Scripted",
        "chat",
        False,
        False,
    )
    assert ask(model, chat()) == [Reply("positive")]
    (messages,) = model._runnable.seen
    assert [type(m) for m in messages] == [SystemMessage, HumanMessage, AIMessage, HumanMessage]
    assert [m.content for m in messages] == ["be brief", "one", "two", "hello"]


def test_a_runnable_with_its_own_prompt_gets_the_bare_text() -> None:
    prompt = ChatPromptTemplate.from_messages([("system", "Judge."), ("human", "Film: {text}")])
    model = models.wrap(prompt | Scripted(script={"Film: {x} fine": "negative"}) | StrOutputParser(), name="mine")
    assert (model.name, model.style) == ("mine", "text")
    replies = ask(model, bare("{x} fine"), chat())
    assert replies[0] == Reply("negative")
    assert type(replies[1]) is BadRequest


def test_a_prompt_with_several_variables_is_refused() -> None:
    with pytest.raises(ConfigError, match="a, b; one is needed"):
        models.wrap(ChatPromptTemplate.from_template("{a} {b}") | Scripted())
    filled = ChatPromptTemplate.from_template("{a} {b}").partial(b="x") | Scripted()
    assert models.wrap(filled).style == "text"


def test_a_function_as_a_runnable() -> None:
    model = models.wrap(RunnableLambda(lambda messages: messages[-1].content.upper()))
    assert ask(model, chat("abc")) == [Reply("ABC")]
    (error,) = ask(models.wrap(RunnableLambda(lambda messages: {"a": 1})), chat())
    assert type(error) is BadResponse


def test_retries_and_caches_inside_are_taken_out() -> None:
    from langchain_core.caches import InMemoryCache

    mine = Scripted(script={"hello": ValueError("no")}, seen=[], cache=InMemoryCache())
    calls = mine.seen
    for wrapped in (mine, mine.with_retry(stop_after_attempt=4), mine.bind(stop=["x"]) | StrOutputParser()):
        calls.clear()
        adapter = models.wrap(wrapped)
        (error,) = ask(adapter, chat())
        assert isinstance(error, CallError)
        assert len(calls) == 1
        (inner,) = parts.models(adapter._runnable)  # type: ignore[attr-defined]
        assert (inner.cache, inner.max_retries) == (False, 0)
    assert mine.max_retries == 5  # the caller's own object is left as it was
    assert mine.cache is not None
    calls.clear()
    ask(models.wrap(mine), chat("again"), chat("again"))
    assert len(calls) == 2


def test_whole_facts_of_an_answer() -> None:
    message = AIMessage(
        content=[{"type": "text", "text": "posi"}, {"type": "text", "text": "tive"}],
        usage_metadata={"input_tokens": 7, "output_tokens": 2, "total_tokens": 9},
        response_metadata={"model_name": "m-1", "finish_reason": "stop", "token_usage": {"cost": 0.25}},
    )
    assert ask(models.wrap(Scripted(script={"hello": message})), chat()) == [
        Reply("positive", usage=Usage(tokens_in=7, tokens_out=2), cost_usd=0.25, model_reported="m-1")
    ]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (AIMessage(content="", response_metadata={"finish_reason": "content_filter"}), ContentFiltered),
        (AIMessage(content="x", response_metadata={"finish_reason": "FinishReason.SAFETY"}), ContentFiltered),
        (AIMessage(content="", response_metadata={"stop_reason": "refusal"}), ContentFiltered),
        (AIMessage(content="", additional_kwargs={"refusal": "I cannot."}), "I cannot."),
        (AIMessage(content=""), ""),
        (AIMessage(content="x", response_metadata={"token_usage": {"cost": float("nan")}}), "x"),
        (["x"], BadResponse),
        (None, BadResponse),
    ],
)
def test_refusals_and_what_is_no_answer(message: Any, expected: Any) -> None:
    reply = read(message)
    if isinstance(expected, str):
        assert isinstance(reply, Reply)
        assert (reply.text, reply.cost_usd) == (expected, None)
    else:
        assert type(reply) is expected


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
        (named("ModelNotFoundError"), AuthFailed, None),
        (named("ModelInvalidRequestError"), BadRequest, None),
        (named("ModelInvalidRequestError", code="content_filter"), ContentFiltered, None),
        (named("ContextOverflowError"), BadRequest, None),
        (named("ModelRateLimitError", response=response(429, retry_after="2")), RateLimited, 2.0),
        (named("ModelRateLimitError", code="insufficient_quota"), AuthFailed, None),
        (named("ModelTimeoutError"), CallTimeout, None),
        (named("ModelConnectionError"), ServerFault, None),
        (named("ModelAPIError", status_code=403), AuthFailed, None),
        (named("RateLimitError"), RateLimited, None),
        (named("Strange", status_code=429, response=response(429, Retry_After="4")), RateLimited, 4.0),
        (named("Strange", response=response(401)), AuthFailed, None),
        (named("Strange", response=response(422)), BadRequest, None),
        (named("Strange", http_status=502), ServerFault, None),
        (named("Strange"), ServerFault, None),
        (named("Child", base=TimeoutError), CallTimeout, None),
        (NotImplementedError(), BadRequest, None),
        (json.JSONDecodeError("x", "y", 0), BadResponse, None),
    ],
)
def test_each_error_becomes_ours(error: Exception, kind: type[CallError], wait: float | None) -> None:
    assert kind_of(error) == (kind, wait)
    (ours,) = ask(models.wrap(Scripted(script={"hello": error})), chat())
    assert type(ours) is kind
    assert ours.retry_after_s == wait
    assert SECRET not in str(ours) + repr(ours)
    assert ours.__cause__ is None


def test_the_errors_of_langchain_are_all_mapped() -> None:
    import langchain_core.exceptions as theirs

    from auditor.models.transport import ERRORS, ROOTS

    kinds = [
        name
        for name, kind in vars(theirs).items()
        if isinstance(kind, type) and issubclass(kind, Exception) and name.startswith(("Model", "Context"))
    ]
    assert len(kinds) >= 8
    assert [name for name in kinds if name not in ROOTS | ERRORS and name != "ModelError"] == []


def test_a_model_that_never_answers() -> None:
    async def wait(_: Any) -> str:
        await asyncio.sleep(60)
        return "late"

    (error,) = ask(models.wrap(RunnableLambda(lambda x: x, afunc=wait), timeout_s=0.05), chat())
    assert type(error) is CallTimeout


# -- identity -------------------------------------------------------------------------------------------


def test_identity_is_of_settings_and_not_of_the_object() -> None:
    base = models.wrap(Scripted(api_key="")).fingerprint
    assert base == models.wrap(Scripted(api_key="", max_retries=1)).fingerprint
    prompt = ChatPromptTemplate.from_template("Film: {text}")
    other = ChatPromptTemplate.from_template("Movie: {text}")
    found = {
        base,
        models.wrap(Scripted(temperature=0.5)).fingerprint,
        models.wrap(Scripted(script={"a": "b"})).fingerprint,
        models.wrap(Scripted().bind(stop=["x"])).fingerprint,
        models.wrap(prompt | Scripted()).fingerprint,
        models.wrap(other | Scripted()).fingerprint,
        models.wrap(Scripted(), fingerprint="weights-2").fingerprint,
    }
    assert len(found) == 7
    assert models.wrap(Scripted(), fingerprint="weights-2").cacheable


def test_what_is_langchain_and_what_is_an_adapter() -> None:
    assert is_langchain(Scripted())
    assert is_langchain(RunnableLambda(str))
    assert not is_langchain(str)
    assert not isinstance(Scripted(), Model)  # although it has a method generate
    assert isinstance(models.wrap(Scripted()), Model)


def test_a_whole_audit_of_an_object() -> None:
    from auditor import audit

    def judge(messages: list[BaseMessage]) -> str:
        return "negative" if "she " in str(messages[-1].content) else "positive"

    result = audit("sentiment", model=models.wrap(RunnableLambda(judge), name="planted"), limit=12, replicates=1)
    assert result.complete
    assert result.record["spec"]["models"] == ["planted"]
    assert any(v.outcome == "violation" for v in result.verdicts)


# -- specs, against a loopback server -------------------------------------------------------------------


class Server:
    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.unknown: set[str] = set()  # parameters that are refused
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.seen.append((self.path, body))
                text = body["messages"][-1]["content"]
                status = int(text) if text.isdigit() else 200
                choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}
                out = {
                    "id": "x",
                    "object": "chat.completion",
                    "created": 1,
                    "model": "served",
                    "choices": [choice],
                    "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
                }
                if unknown := outer.unknown & body.keys():
                    status, name = 400, min(unknown)
                    out = {"error": {"message": f"Unsupported parameter: '{name}' is not supported here."}}
                elif status != 200:
                    out = {"error": {"message": f"no: {self.headers.get('authorization')}"}}
                raw = json.dumps(out).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("retry-after", "3")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


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
        replies = ask(model, chat(), chat("429"), chat("500"), chat("401"), chat("404"))
        assert replies[0] == Reply("yes", usage=Usage(tokens_in=5, tokens_out=1), model_reported="served")
        assert [type(r) for r in replies[1:]] == [RateLimited, ServerFault, AuthFailed, AuthFailed]
        assert [r.retry_after_s for r in replies[1:]] == [3.0, 3.0, None, None]
        assert SECRET not in " ".join(map(str, replies))
    assert len(server.seen) == 10  # each asked once: no retries inside
    path, body = server.seen[0]
    assert (path, body["model"], body["temperature"]) == ("/v1/chat/completions", "m:1", 0.5)
    assert body["max_completion_tokens"] == 9
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize(
    "unknown", [{"temperature"}, {"max_completion_tokens"}, {"temperature", "max_completion_tokens"}]
)
def test_a_setting_that_a_server_does_not_know_is_changed_once(server: Server, unknown: set[str]) -> None:
    pytest.importorskip("langchain_openai")
    server.unknown = unknown
    model = models.make("langchain:openai:m", base_url=server.url, max_tokens=9)

    async def go() -> list[Any]:
        try:
            refused = [(await model.generate([chat()]))[0] for _ in unknown]
            return [*refused, *[(await model.generate([chat()]))[0] for _ in range(2)]]
        finally:
            await model.aclose()

    *refused, one, other = asyncio.run(go())
    assert [type(r) for r in refused] == [ParameterChanged] * len(unknown)
    assert one.text == other.text == "yes"
    _, body = server.seen[-1]
    assert body.get("temperature") == (None if "temperature" in unknown else 0.0)
    limit = "max_tokens" if "max_completion_tokens" in unknown else "max_completion_tokens"
    assert body[limit] == 9
    assert set(model.changed) == unknown
    assert ask(model, chat())[0].text == "yes"  # in the next event loop


def test_a_setting_of_the_user_is_never_left_out(server: Server) -> None:
    pytest.importorskip("langchain_openai")
    server.unknown = {"temperature"}
    model = models.make("langchain:openai:m", base_url=server.url, temperature=0.7)
    (reply,) = ask(model, chat())
    assert type(reply) is BadRequest
    assert not model.changed


def test_an_object_of_langchain_openai(server: Server) -> None:
    openai = pytest.importorskip("langchain_openai")
    mine = openai.ChatOpenAI(model="m", base_url=server.url, max_retries=6, api_key=SECRET)
    model = models.wrap(mine)
    assert model.name == "langchain:ChatOpenAI:m"
    assert model.cacheable
    assert [type(r) for r in ask(model, chat("500"), chat("429"))] == [ServerFault, RateLimited]
    assert len(server.seen) == 2
    assert mine.max_retries == 6
    again = openai.ChatOpenAI(model="m", base_url=server.url, api_key="sk-another-key-00")
    assert models.wrap(again).fingerprint == model.fingerprint
    prompt = ChatPromptTemplate.from_template("Film: {text}")
    assert models.wrap(prompt | mine | StrOutputParser()).cacheable
    assert not models.wrap(prompt | mine | RunnableLambda(lambda message: message.content)).cacheable


def test_identity_of_specs(server: Server) -> None:
    pytest.importorskip("langchain_openai")
    base = models.make("langchain:openai:m", base_url=server.url)
    assert base.fingerprint == models.make("langchain:openai:m", base_url=server.url + "/").fingerprint
    others = {
        models.make("langchain:openai:n", base_url=server.url).fingerprint,
        models.make("langchain:openai:m", base_url=server.url, temperature=1.0).fingerprint,
        models.make("langchain:openai:m", base_url=server.url, max_tokens=3).fingerprint,
        models.make("langchain:openai:m").fingerprint,
    }
    assert len(others | {base.fingerprint}) == 5


def test_list_prices_hold_only_at_the_provider(server: Server) -> None:
    pytest.importorskip("langchain_openai")
    assert models.make("langchain:openai:gpt-4o-mini").price is not None  # type: ignore[attr-defined]
    moved = models.make("langchain:openai:gpt-4o-mini", base_url=server.url)
    assert moved.price is None  # type: ignore[attr-defined]


def test_specs_that_cannot_be_made(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="incomplete"):
        models.make("langchain:")
    with pytest.raises(ConfigError, match="langchain:PROVIDER:NAME"):
        models.make("langchain:openai")
    with pytest.raises(ConfigError, match="could not be made"):
        models.make("langchain:nobody:m")
    monkeypatch.setitem(sys.modules, "langchain_anthropic", None)
    with pytest.raises(MissingDependency, match="Run: pip install langchain-anthropic"):
        models.make("langchain:anthropic:m")
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(MissingDependency, match=r"Run: pip install .*\[langchain\]"):
        models.make("langchain:openai:m")


def test_a_missing_key_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_openai")
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match=r"could not be made.*OPENAI_API_KEY"):
        models.make("langchain:openai:m")


@pytest.mark.parametrize(
    ("provider", "address"), [("openai", "http://h/v1"), ("ollama", "http://h/v1"), ("anthropic", None)]
)
def test_the_server_of_one_model_is_not_that_of_another(provider: str, address: str | None) -> None:
    spec = parts.Spec.read(f"{provider}:m", base_url="http://h/v1/", max_tokens=1, temperature=None, timeout_s=1.0)
    assert spec.base_url == address
