"""The OpenAI adapter: options, errors, bodies, secrets; no network."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor.models as models
from auditor import tasks
from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    CallError,
    CallTimeout,
    ConfigError,
    ContentFiltered,
    ParameterChanged,
    RateLimited,
    ServerFault,
    UnknownPlugin,
)
from auditor.core.protocols import Reply
from auditor.core.types import Message, Prompt, Request
from auditor.models.openai import OpenAIChat
from auditor.models.openai_protocol import read_completion
from auditor.models.transport import ERRORS, ROOTS, retry_after
from auditor.tasks import kinds
from tests.json_server import JsonServer

KEY = "sk-proj-0123456789abcdefSECRET"
URL = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return


def sdk_error(name: str, *, status: int = 400, headers: dict[str, str] | None = None, **body: Any) -> Any:
    """An instance of the SDK's exception ``name``, as the SDK itself would build it."""
    import openai

    client = openai.OpenAI(api_key="k", base_url=URL)
    kind = getattr(openai, name)
    request: Any = SimpleNamespace(url=URL, headers={"authorization": f"Bearer {KEY}"})
    response: Any = SimpleNamespace(request=request, status_code=status, headers=headers or {}, text="")
    values = {
        "message": f"said by the server to {KEY}",
        "response": response,
        "request": request,
        "body": body or {"message": f"said by the server to {KEY}"},
        "completion": SimpleNamespace(usage=None),
        "unsent_messages": [],
    }
    client.close()
    try:
        wanted = inspect.signature(kind).parameters
    except ValueError:  # a bare subclass of a built-in exception
        return kind("plain")
    named = {n: values[n] for n in wanted if n in values}
    return kind(**named) if named or not wanted else kind("plain")


def public_exceptions() -> list[str]:
    import openai

    return sorted(
        name
        for name in openai.__all__
        if isinstance(getattr(openai, name), type) and issubclass(getattr(openai, name), Exception)
    )


def request(text: str = "hello") -> Request:
    prompt = Prompt(format="f", messages=(Message(role="user", content=text),))
    return Request(prompt=prompt, replicate=0, variant_id="v")


# -- errors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", public_exceptions())
def test_each_exception_becomes_ours_without_the_key(name: str) -> None:
    adapter = OpenAIChat("m", base_url=URL)
    error = adapter._translate(sdk_error(name, status=418))
    assert type(error) is (ROOTS | ERRORS)[name]
    assert KEY not in str(error) + repr(error)
    assert error.__cause__ is None


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (400, None, BadRequest),
        (401, None, AuthFailed),
        (404, "model_not_found", AuthFailed),
        (408, None, CallTimeout),
        (422, None, BadRequest),
        (429, None, RateLimited),
        (429, "insufficient_quota", AuthFailed),
        (503, None, ServerFault),
    ],
)
def test_by_status_as_the_sdk_chooses_its_classes(status: int, code: str | None, expected: type[CallError]) -> None:
    import openai

    client = openai.OpenAI(api_key="k", base_url=URL)
    body = {"message": "why", "code": code}
    response: Any = SimpleNamespace(
        request=None, status_code=status, headers={"retry-after": "7"}, is_closed=True, text=json.dumps(body)
    )
    error = client._make_status_error("why", body=body, response=response)
    client.close()
    ours = OpenAIChat("m", base_url=URL)._translate(error)
    assert type(ours) is expected
    assert f"HTTP {status}" in str(ours)
    assert "127.0.0.1:9/v1" in str(ours)
    assert (ours.retry_after_s == 7.0) is (expected in (RateLimited, ServerFault))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"error": {"message": "the model is tired"}}', "the model is tired"),
        ('{"error": "the model is tired"}', "the model is tired"),
        ('{"message": "the model is tired"}', "the model is tired"),
        ('{"detail": "the model is tired"}', "the model is tired"),
        ('{"detail": [{"loc": ["body"], "msg": "the model is tired"}]}', "the model is tired"),
        ("the model\nis tired", "the model is tired"),
        ("<html><title>nginx</title></html>", "an HTML page"),
        ("", "HTTP 400"),
        ('{"error": null, "detail": []}', "HTTP 400"),
    ],
)
def test_what_servers_say_reaches_the_user(text: str, told: str) -> None:
    import openai

    client = openai.OpenAI(api_key="k", base_url=URL)
    response: Any = SimpleNamespace(
        request=None, status_code=400, headers={}, text=text, is_closed=True, is_stream_consumed=True
    )
    error = client._make_status_error_from_response(response)
    client.close()
    said = str(OpenAIChat("m", base_url=URL)._translate(error))
    assert told in said
    assert "title" not in said


# -- Retry-After ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


# -- bodies ---------------------------------------------------------------------------------------------


def body(**choice: Any) -> bytes:
    return json.dumps(
        {"model": "tiny-1", "choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    ).encode()


@pytest.mark.parametrize(
    ("raw", "content_type"),
    [
        (b"", "application/json"),
        (b"<html>busy</html>", "text/html"),
        (body(message={"content": "yes"}), "text/html; charset=utf-8"),
        (b"<html>busy</html>", "application/json"),
        (body(message={"content": "yes"})[:40], "application/json"),
        (b'{"choices": []}', "application/json"),
        (b'{"choices": null}', "application/json"),
        (b'{"choices": ["yes"]}', "application/json"),
        (b'{"choices": [{}]}', "application/json"),
        (b'{"choices": [{"message": {"content": [{"type": "image_url", "image_url": {}}]}}]}', "application/json"),
        (b'{"error": {"message": "overloaded"}}', "application/json"),
        (b"[]", "application/json"),
        (b"\xff\xfe\x00", "application/json"),
        (b"[" * 200_000, "application/json"),
    ],
)
def test_what_is_no_answer(raw: bytes, content_type: str) -> None:
    assert type(read_completion(raw, content_type)) is BadResponse


@settings(max_examples=60)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["choices", "message", "content", "refusal", "usage", "error", "model"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_without_a_crash(value: Any) -> None:
    reply = read_completion(json.dumps(value).encode(), "application/json")
    assert isinstance(reply, Reply | BadResponse | ContentFiltered)


# -- options, price, identity ---------------------------------------------------------------------------


def test_identity_covers_server_name_and_parameters() -> None:
    base = OpenAIChat("m", base_url=URL).fingerprint
    assert base == OpenAIChat("m", base_url=URL + "/").fingerprint
    assert base == OpenAIChat("m", base_url=URL, api_key="another").fingerprint
    others = {
        OpenAIChat("n", base_url=URL).fingerprint,
        OpenAIChat("m", base_url="http://127.0.0.1:10/v1").fingerprint,
        OpenAIChat("m", base_url="http://127.0.0.1:9/v2").fingerprint,
        OpenAIChat("m", base_url=URL, temperature=1.0).fingerprint,
        OpenAIChat("m", base_url=URL, max_tokens=9).fingerprint,
        OpenAIChat("m", base_url=URL, extra_body={"seed": 1}).fingerprint,
        OpenAIChat("m", base_url=URL, task=task_of(label=9)).fingerprint,
    }
    assert len(others | {base}) == 8


def task_of(**formats: int) -> Any:
    return SimpleNamespace(
        kind=kinds.of("generation"), labels=(), formats=formats, max_tokens=lambda form: formats[form], temperature=0.5
    )


def test_the_task_bounds_the_answer_of_each_format() -> None:
    adapter = OpenAIChat("m", base_url=URL, task=task_of(label=4, json=32))
    assert [adapter.max_tokens(f) for f in ("label", "json", "other")] == [4, 32, 32]
    assert OpenAIChat("m", base_url=URL).max_tokens("label") == 256
    assert OpenAIChat("m", base_url=URL, max_tokens=3, task=task_of(label=4)).max_tokens("label") == 3


@pytest.mark.parametrize(
    ("name", "thinks"),
    [("gpt-5-mini", True), ("gpt-5.4", True), ("o3", True), ("gpt-5-chat-latest", False), ("gpt-4o", False)],
)
def test_models_that_think_get_other_parameters_at_the_provider(name: str, thinks: bool) -> None:
    at_provider = OpenAIChat(name)
    assert ("temperature" not in at_provider._params) is thinks
    assert (at_provider._limit_name == "max_completion_tokens") is thinks
    assert (at_provider.max_tokens("any") > 1000) is thinks
    elsewhere = OpenAIChat(name, base_url=URL)
    assert (elsewhere._limit_name, elsewhere._params) == ("max_tokens", {"temperature": 0.0})


def test_a_key_is_needed_only_at_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigError, match="export OPENAI_API_KEY"):
        OpenAIChat("gpt-4o")
    OpenAIChat("m", base_url=URL)


@pytest.mark.parametrize("key", ["sk-ö", "sk-a\nb", "sk-\x00"])
def test_a_key_that_no_header_can_carry(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIChat("m", base_url=URL, api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://host/v1", "http://", "http://[::1", "/v1", "http://h:x/"])
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(ConfigError, match="base-url"):
        OpenAIChat("m", base_url=url)


# -- secrets --------------------------------------------------------------------------------------------


def test_keys_are_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    adapter = OpenAIChat("m", base_url="http://someone:hunter2@127.0.0.1:9/v1?token=hunter3", timeout_s=5)

    async def go() -> CallError:
        (reply,) = await adapter.generate([request()])
        await adapter.aclose()
        assert isinstance(reply, CallError)
        return reply

    error = asyncio.run(go())
    assert type(error) is ServerFault
    assert "--base-url" in str(error)
    shown = " ".join([repr(adapter), adapter.name, adapter.fingerprint, adapter.server, str(error), repr(error)])
    ours = " ".join(r.getMessage() for r in caplog.records if r.name.startswith(("auditor", "openai")))
    for secret in (KEY, "hunter2", "hunter3"):
        assert secret not in shown
        assert secret not in ours
    assert KEY not in caplog.text


# -- make -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["openai", "openai:", "python:", "exec", "recorded:"])
def test_incomplete_specs(spec: str) -> None:
    with pytest.raises(ConfigError, match="incomplete"):
        models.make(spec)


@pytest.mark.parametrize(
    ("spec", "told"),
    [("vader:large", "takes nothing"), ("sklearn:m.skops", "models of tables"), ("vader", "no option")],
)
def test_specs_that_do_not_fit(spec: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        models.make(spec, **({"colour": "red"} if told == "no option" else {}))


def test_unknown_specs_get_near_misses() -> None:
    with pytest.raises(UnknownPlugin, match="Did you mean openai") as caught:
        models.make("opnai:gpt-4o")
    assert "openai" in caught.value.near
    with pytest.raises(UnknownPlugin, match="Known: "):
        models.make("zzzz")


def test_defaults() -> None:
    task = SimpleNamespace(name="t", labels=("positive", "negative"), kind=kinds.of("classification"))
    assert models.defaults(task) == ["reviews", "vader"]
    with pytest.raises(ConfigError, match="--model"):
        models.defaults(SimpleNamespace(name="hiring", labels=("hire", "reject"), kind=kinds.of("decision")))


# -- Azure ----------------------------------------------------------------------------------------------


AZURE = (
    "AZURE_OPENAI_ENDPOINT",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_AD_TOKEN",
    "OPENAI_API_VERSION",
    "AZURE_OPENAI_API_VERSION",
)


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in AZURE:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_azure_needs_a_version_and_its_key(azure: pytest.MonkeyPatch) -> None:
    endpoint = "https://mine.openai.azure.com"
    azure.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigError, match="Run: export OPENAI_API_VERSION="):
        OpenAIChat("m", base_url=endpoint)
    azure.setenv("OPENAI_API_VERSION", "2024-10-21")
    with pytest.raises(ConfigError, match="Run: export AZURE_OPENAI_API_KEY="):
        OpenAIChat("m", base_url=endpoint)
    azure.setenv("AZURE_OPENAI_API_KEY", "azure-key-0123")
    model = OpenAIChat("gpt-4o-mini", base_url=endpoint)
    assert model.price is None
    azure.setenv("OPENAI_API_VERSION", "2025-01-01")
    assert model.fingerprint != OpenAIChat("gpt-4o-mini", base_url=endpoint).fingerprint


class Loopback(JsonServer):
    """Answers with ``answer``, or with the status and the body that it makes of what was sent."""

    def __init__(self, answer: Any, status: int = 200) -> None:
        def reply(sent: Any) -> tuple[int, dict[str, str], Any]:
            code, body = answer(sent) if callable(answer) else (status, answer)
            return code, {}, body

        super().__init__(reply)

    def ask(self, model: OpenAIChat, *asked: Request) -> Any:
        async def go() -> Any:
            replies = [(await model.generate([one]))[0] for one in asked]
            await model.aclose()
            return replies if len(replies) > 1 else replies[0]

        try:
            return asyncio.run(go())
        finally:
            self.close()


def test_azure_with_a_token_of_entra_id(azure: pytest.MonkeyPatch) -> None:
    server = Loopback({"choices": [{"message": {"content": "yes"}}]})
    azure.setenv("AZURE_OPENAI_ENDPOINT", server.url)
    azure.setenv("AZURE_OPENAI_AD_TOKEN", "token-0123")
    azure.setenv("OPENAI_API_VERSION", "2024-10-21")
    azure.delenv("OPENAI_API_KEY")
    assert server.ask(OpenAIChat("mine"), request()).text == "yes"
    _, _, headers, _ = server.seen[0]
    assert headers["authorization"] == "Bearer token-0123"
    assert "api-key" not in headers
    # The plain protocol of Azure takes it as a bearer token too; a key goes before it, and so does one that is given.
    endpoint = "https://mine.openai.azure.com"
    assert OpenAIChat("m", base_url=f"{endpoint}/openai/v1")._key == "token-0123"
    assert OpenAIChat("m", base_url=endpoint, api_key="given-0123")._key == "given-0123"
    azure.setenv("OPENAI_API_KEY", "for-openai-itself")
    assert OpenAIChat("m", base_url=endpoint)._key == "token-0123"
    assert OpenAIChat("m", base_url="https://api.openai.com/v1")._key == "for-openai-itself"
    azure.setenv("AZURE_OPENAI_API_KEY", "azure-key-0123")
    assert OpenAIChat("m", base_url=endpoint)._key == "azure-key-0123"


# -- log-probabilities ----------------------------------------------------------------------------------


def tokens(*given: tuple[str, dict[str, float]]) -> dict[str, Any]:
    """A choice whose tokens have these alternatives (probabilities)."""
    import math

    content = [
        {
            "token": text,
            "logprob": math.log(others.get(text, 1.0)),
            "top_logprobs": [{"token": t, "logprob": math.log(p)} for t, p in others.items()],
        }
        for text, others in given
    ]
    return {"message": {"content": "".join(t for t, _ in given)}, "logprobs": {"content": content}}


def sentiment() -> Any:
    return tasks.load("sentiment")


def scored(choice: dict[str, Any]) -> Any:
    from auditor.models.logprobs import read_tokens, scores

    return scores(sentiment(), read_tokens(json.dumps({"choices": [choice]}).encode()))


def test_scores_at_the_first_token_of_the_label() -> None:
    first = {" Pos": 0.6, "neg": 0.1, "pos": 0.1, "The": 0.2}
    found = scored(tokens((" Pos", first), ("itive", {})))
    assert found == pytest.approx({"positive": 0.875, "negative": 0.125})
    inside = tokens(
        ('{"', {}), ("label", {}), ('": "', {}), ("negative", {"negative": 0.75, "positive": 0.25}), ('"}', {})
    )
    assert scored(inside) == pytest.approx({"positive": 0.25, "negative": 0.75})
    reasoned = tokens(("Not negative at first.\nAnswer: ", {}), ("positive", {"positive": 0.9, "negative": 0.1}))
    assert scored(reasoned) == pytest.approx({"positive": 0.9, "negative": 0.1})


@pytest.mark.parametrize(
    "choice",
    [
        tokens(("positive", {"positive": 0.9, "The": 0.1})),  # a label that is not among the alternatives
        tokens(("positive", {"positive": 0.2, "negative": 0.1, "The": 0.7})),  # decided elsewhere
        tokens(("maybe", {"maybe": 1.0})),  # no answer
        tokens(("xpositive", {"xpositive": 1.0})),  # not where a label begins
        {"message": {"content": "positive"}, "logprobs": None},
        {"message": {"content": "positive"}, "logprobs": {"content": [{"token": 5}]}},
    ],
)
def test_what_cannot_be_told_is_none(choice: dict[str, Any]) -> None:
    assert scored(choice) is None


@given(
    st.lists(st.tuples(st.text(max_size=4), st.floats(-30, 0)), max_size=8),
    st.lists(st.text(min_size=1, max_size=4), min_size=2, max_size=4, unique=True),
)
@settings(max_examples=100, deadline=None)
def test_shares_are_shares(alternatives: list[tuple[str, float]], labels: list[str]) -> None:
    from auditor.models.logprobs import shares

    found = shares(labels, alternatives)
    if found is not None:
        assert list(found) == labels
        assert sum(found.values()) == pytest.approx(1.0)
        assert all(0 < share <= 1 for share in found.values())


def test_log_probabilities_are_asked_where_there_are_labels() -> None:
    answer = {"choices": [tokens(("positive", {"positive": 0.75, "negative": 0.25}))]}
    prompt = sentiment().render("A fine film.")
    asked = Request(prompt=prompt, replicate=0, variant_id="v")
    plain, server = Loopback(answer), Loopback(answer)
    model = OpenAIChat("m", base_url=plain.url, task=sentiment(), logprobs=False)
    assert plain.ask(model, asked).scores is None
    assert "logprobs" not in plain.seen[0][3]
    asking = models.make("openai:m", base_url=server.url, task=sentiment())
    assert isinstance(asking, OpenAIChat)
    assert server.ask(asking, asked).scores == pytest.approx({"positive": 0.75, "negative": 0.25})
    assert (server.seen[0][3]["logprobs"], server.seen[0][3]["top_logprobs"]) == (True, 20)
    free = OpenAIChat("m", base_url=server.url, task=tasks.load("advice"))
    assert "logprobs" not in free.body(asked)  # no labels


@pytest.mark.parametrize(("most", "sent"), [(5, [20, 5]), (0, [20, 5, None])])
def test_servers_that_give_fewer_log_probabilities_or_none(most: int, sent: list[int | None]) -> None:
    refused = {"error": {"message": "top_logprobs: the value is out of range", "type": "invalid_request_error"}}
    seen: list[int | None] = []

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        seen.append(body.get("top_logprobs"))
        if (body.get("top_logprobs") or 0) > most:
            return 400, refused
        choice = tokens(("positive", {"positive": 0.75, "negative": 0.25}))
        return 200, {"choices": [choice if body.get("logprobs") else {"message": {"content": "positive"}}]}

    server = Loopback(answer)
    model = OpenAIChat("m", base_url=server.url, task=sentiment())
    asked = Request(prompt=sentiment().render("A fine film."), replicate=0, variant_id="v")
    replies = server.ask(model, *[asked] * len(sent))
    assert seen == sent
    assert all(isinstance(reply, ParameterChanged) for reply in replies[:-1])
    assert replies[-1].text == "positive"
    assert ("logprobs" in model.changed) == (most == 0)
    strict = Loopback(answer)
    own = OpenAIChat("m", base_url=strict.url, task=sentiment(), logprobs=True)
    first, second = strict.ask(own, asked, asked)
    assert isinstance(first, BadRequest)
    assert isinstance(second, BadRequest)
    assert own.changed == {}  # what the user asks for stays


# -- servers as they are --------------------------------------------------------------------------------


REFUSALS = [
    ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", {"max_tokens"}),
    ("Unsupported value: 'temperature' does not support 0 with this model.", {"temperature"}),
    (
        [{"type": "extra_forbidden", "loc": ["body", "max_tokens"], "msg": "Extra inputs are not permitted"}],
        {"max_tokens"},
    ),
    (
        "UnsupportedParamsError: m does not support parameters: ['temperature', 'max_tokens']",
        {"temperature", "max_tokens"},
    ),
    ("max_tokens is too large: 99999. This model supports at most 4096 completion tokens.", set()),
    ("max_completion_tokens_x is unknown", set()),
    ("", set()),
]


@pytest.mark.parametrize(("told", "names"), REFUSALS)
def test_unsupported_parameters_are_told_from_wrong_values(told: Any, names: set[str]) -> None:
    from auditor.models.openai_protocol import unsupported

    assert unsupported({"message": told}, ["temperature", "max_tokens"]) == names


class _Refusing:
    """Stands for a server that does not support some parameters; ``body`` is what it was sent."""

    def __init__(self, adapter: OpenAIChat, *names: str) -> None:
        self.adapter, self.names = adapter, names

    def refuses(self) -> bool | None:
        """Whether the next request is refused, and the adapter changed something."""
        body = self.adapter.body(request())
        name = next((n for n in self.names if n in body), None)
        return None if name is None else self.adapter.changed_by({"message": f"Unsupported parameter: '{name}'"}, body)


def test_each_parameter_is_changed_once() -> None:
    adapter = OpenAIChat("m", base_url=URL)
    before = adapter.body(request())
    server = _Refusing(adapter, "max_tokens", "temperature")
    assert [server.refuses() for _ in range(3)] == [True, True, None]
    after = adapter.body(request())
    assert set(after) - set(before) == {"max_completion_tokens"}
    assert set(before) - set(after) == {"max_tokens", "temperature"}
    assert after["max_completion_tokens"] > before["max_tokens"]  # it thinks, and needs room for that
    # Calls that were under way meanwhile were sent in the old form: they are asked again.
    assert adapter.changed_by({"message": "Unsupported parameter: 'max_tokens'"}, before)
    both = _Refusing(OpenAIChat("m", base_url=URL), "max_tokens", "max_completion_tokens")
    assert [both.refuses() for _ in range(2)] == [True, False]


def test_what_the_user_asked_for_is_never_left_out() -> None:
    adapter = OpenAIChat("m", base_url=URL, temperature=0.7, max_tokens=300)
    assert _Refusing(adapter, "temperature").refuses() is False
    assert _Refusing(adapter, "max_tokens").refuses() is True
    body = adapter.body(request())
    assert (body["temperature"], body["max_completion_tokens"]) == (0.7, 300)
    assert OpenAIChat("o3", max_tokens=300).max_tokens("f") == 300
    extra = OpenAIChat("m", base_url=URL, extra_body={"top_k": 4})
    assert _Refusing(extra, "top_k").refuses() is False


def test_options_of_the_request(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "extra.json"
    file.write_text('{"top_p": 0.9, "chat_template_kwargs": {"enable_thinking": false}}')
    monkeypatch.setenv("GATEWAY_KEY", "secret-of-the-gateway")
    plain = OpenAIChat("m", base_url=URL)
    made = OpenAIChat(
        "m",
        base_url=URL,
        temperature="server",
        reasoning_effort="low",
        extra_body=str(file),
        headers=["X-Api-Key=GATEWAY_KEY"],
    )
    body = made.body(request())
    assert "temperature" not in body
    assert (body["reasoning_effort"], body["top_p"]) == ("low", 0.9)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    client = made._connect()
    assert client.default_headers["X-Api-Key"] == "secret-of-the-gateway"
    asyncio.run(made.aclose())
    assert made.fingerprint != plain.fingerprint
    assert "secret-of-the-gateway" not in repr(vars(made)["fingerprint"])
    monkeypatch.setenv("GATEWAY_KEY", "another-secret")
    again = OpenAIChat("m", base_url=URL, headers=["X-Api-Key=GATEWAY_KEY"])
    assert again.fingerprint == OpenAIChat("m", base_url=URL, headers=["X-Api-Key=GATEWAY_KEY"]).fingerprint


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"headers": ["X-Api-Key"]}, "NAME=VARIABLE"),
        ({"headers": ["X Api=KEY"]}, "NAME=VARIABLE"),
        ({"headers": ["X-Api-Key=NOT_SET_ANYWHERE"]}, "export NOT_SET_ANYWHERE"),
        ({"extra_body": "/nowhere/extra.json"}, "cannot be read"),
        ({"extra_body": __file__}, "not JSON"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], told: str) -> None:
    from auditor.core.errors import UserError

    with pytest.raises(UserError, match=told):
        OpenAIChat("m", base_url=URL, **options)
