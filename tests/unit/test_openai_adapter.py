"""The OpenAI adapter: options, errors, bodies, secrets, against a server on the loopback."""

from __future__ import annotations

import json
import logging
import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor.models as models
from auditor import tasks
from auditor.core.errors import ConfigError, ParameterChanged, RateLimited, UserError
from auditor.core.protocols import Reply
from auditor.core.types import Request
from auditor.models.adapter import read_tokens, scores, shares
from auditor.models.openai import OpenAIChat, read_completion, unsupported
from auditor.models.transport import wait_s
from auditor.tasks import kinds
from tests.asking import ask, chat
from tests.json_server import JsonServer

openai = pytest.importorskip("openai")
KEY = "sk-proj-0123456789abcdefSECRET"
URL = "http://127.0.0.1:9/v1"
HELLO = chat("hello")
AZURE = "https://mine.openai.azure.com"
NO_URLS = ("localhost:8000/v1", "ftp://host/v1", "http://", "http://[::1", "/v1", "http://h:x/")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    azure = ("ENDPOINT", "API_KEY", "AD_TOKEN", "API_VERSION")
    for name in ("OPENAI_BASE_URL", "OPENAI_API_VERSION", *(f"AZURE_OPENAI_{one}" for one in azure)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return monkeypatch


class Loopback(JsonServer):
    """Answers with ``answer``, or with the status and the body that it makes of what was sent."""

    def __init__(self, answer: Any, status: int = 200) -> None:
        def reply(sent: Any) -> tuple[int, dict[str, str], Any]:
            code, body = answer(sent) if callable(answer) else (status, answer)
            return code, {"retry-after": "7"}, body

        super().__init__(reply)

    def ask(self, model: OpenAIChat, *asked: Request) -> list[Any]:
        try:
            return ask(model, *asked)
        finally:
            self.close()


TIRED = "the model is tired"


@pytest.mark.parametrize(
    ("status", "body", "kind", "told"),
    [
        (400, {"error": {"message": TIRED}}, "bad-request", TIRED), (400, {"error": TIRED}, "bad-request", TIRED),
        (400, {"detail": TIRED}, "bad-request", TIRED), (400, {"detail": [{"msg": TIRED}]}, "bad-request", TIRED),
        (400, b"the model\nis tired", "bad-request", TIRED), (401, {"message": TIRED}, "auth-failed", TIRED),
        (400, b"<html><title>nginx</title></html>", "bad-request", "an HTML page"),
        (400, {"error": None, "detail": []}, "bad-request", "HTTP 400"),
        (404, {"error": {"message": TIRED, "code": "model_not_found"}}, "auth-failed", TIRED),
        (408, {}, "timeout", ""), (422, {}, "bad-request", ""), (429, {}, "rate-limited", ""),
        (429, {"error": {"code": "insufficient_quota"}}, "auth-failed", ""), (503, {}, "server-fault", ""),
    ],
)  # fmt: skip
def test_statuses_and_what_servers_say_reach_the_user(status: int, body: Any, kind: str, told: str) -> None:
    server = Loopback(body, status)
    (error,) = server.ask(OpenAIChat("m", base_url=server.url), HELLO)
    assert error.code == kind
    assert told in str(error)
    assert f"{server.url.removeprefix('http://')}: HTTP {status}" in str(error)
    assert "title" not in str(error)
    assert (error.retry_after_s == 7.0) is (kind in ("rate-limited", "server-fault"))


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("0", 0.0), (" 1.5 ", 1.5), ("soon", None), ("-5", None), ("nan", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("Wed, 99 Oct 2015 07:28:00 GMT", None),
    ],
)  # fmt: skip
def test_retry_after(told: str, seconds: float | None) -> None:
    assert wait_s(RateLimited, {"retry-after": told}) == seconds
    assert wait_s(RateLimited, {"retry-after-ms": "250", "retry-after": told}) == 0.25
    assert wait_s(RateLimited, {}) is None


YES = json.dumps({"model": "tiny-1", "choices": [{"message": {"content": "yes"}}]}).encode()


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"<html>busy</html>", YES[:40], b'{"choices": []}', b'{"choices": null}', b'{"choices": ["yes"]}',
        b'{"choices": [{}]}', b'{"choices": [{"message": {"content": [{"type": "image_url", "image_url": {}}]}}]}',
        b'{"error": {"message": "overloaded"}}', b"[]", b"\xff\xfe\x00", b"[" * 200_000,
    ],
)  # fmt: skip
def test_what_is_no_answer(raw: bytes) -> None:
    for body, content_type in ((raw, "application/json"), (YES, "text/html; charset=utf-8")):
        assert read_completion(body, content_type).code == "bad-response"


FIELDS = st.sampled_from(["choices", "message", "content", "refusal", "usage", "error", "model"])


@settings(max_examples=60)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
        max_leaves=12,
    )
)
def test_any_json_is_read_without_a_crash(value: Any) -> None:
    reply = read_completion(json.dumps(value).encode(), "application/json")
    assert isinstance(reply, Reply) or reply.code in ("bad-response", "content-filtered")


def task_of(**formats: int) -> Any:
    kind = kinds.of("generation")
    return SimpleNamespace(kind=kind, labels=(), formats=formats, max_tokens=lambda f: formats[f], temperature=0.5)


def test_identity_covers_server_name_and_parameters() -> None:
    def made(name: str = "m", **options: Any) -> str:
        return OpenAIChat(name, **({"base_url": URL} | options)).fingerprint

    assert made() == made(base_url=URL + "/") == made(api_key="another")
    others = (
        {"name": "n"}, {"base_url": "http://127.0.0.1:10/v1"}, {"base_url": "http://127.0.0.1:9/v2"},
        {"temperature": 1.0}, {"max_tokens": 9}, {"extra_body": {"seed": 1}}, {"task": task_of(label=9)},
    )  # fmt: skip
    assert len({made(), *(made(**one) for one in others)}) == 8


def test_the_task_bounds_the_answer_of_each_format() -> None:
    adapter = OpenAIChat("m", base_url=URL, task=task_of(label=4, json=32))
    assert [adapter.max_tokens(f) for f in ("label", "json", "other")] == [4, 32, 32]
    assert OpenAIChat("m", base_url=URL).max_tokens("label") == 256
    assert OpenAIChat("m", base_url=URL, max_tokens=3, task=task_of(label=4)).max_tokens("label") == 3
    assert OpenAIChat("o3", max_tokens=300).max_tokens("f") == 300


@pytest.mark.parametrize("name", ["gpt-5-mini", "gpt-5.4", "o3", "gpt-5-chat-latest", "gpt-4o"])
def test_models_that_think_get_other_parameters_at_the_provider(name: str) -> None:
    thinks = name in ("gpt-5-mini", "gpt-5.4", "o3")
    at_provider, elsewhere = (OpenAIChat(name, base_url=url).body(HELLO) for url in (None, URL))
    assert ("temperature" not in at_provider) is thinks
    assert (at_provider.get("max_completion_tokens", 0) > 1000) is thinks
    assert (elsewhere["temperature"], elsewhere["max_tokens"]) == (0.0, 256)


def test_a_key_is_needed_only_at_the_provider(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigError, match="export OPENAI_API_KEY"):
        OpenAIChat("gpt-4o")
    OpenAIChat("m", base_url=URL)
    for key in ("sk-ö", "sk-a\nb", "sk-\x00"):
        with pytest.raises(ConfigError, match="no HTTP header can carry") as caught:
            OpenAIChat("m", base_url=URL, api_key=key)
        assert key not in str(caught.value)


def test_keys_are_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    adapter = OpenAIChat("m", base_url="http://someone:hunter2@127.0.0.1:9/v1?token=hunter3", timeout_s=5)
    (error,) = ask(adapter, HELLO)
    assert error.code == "server-fault"
    assert "--base-url" in str(error)
    shown = [repr(adapter), adapter.name, adapter.fingerprint, adapter.server, str(error), repr(error)]
    shown += [r.getMessage() for r in caplog.records if r.name.startswith(("auditor", "openai"))]
    assert not [secret for secret in (KEY, "hunter2", "hunter3") if secret in " ".join(shown)]
    assert KEY not in caplog.text


def test_options_of_the_request(tmp_path: Any, environment: pytest.MonkeyPatch) -> None:
    file = tmp_path / "extra.json"
    file.write_text('{"top_p": 0.9, "chat_template_kwargs": {"enable_thinking": false}}')
    environment.setenv("GATEWAY_KEY", "secret-of-the-gateway")
    server = Loopback(json.loads(YES))
    given: dict[str, Any] = {"base_url": server.url, "headers": ["X-Api-Key=GATEWAY_KEY"]}
    made = OpenAIChat("m", temperature="server", reasoning_effort="low", extra_body=str(file), **given)
    assert server.ask(made, HELLO)[0].text == "yes"
    _, _, headers, body = server.seen[0]
    assert headers["x-api-key"] == "secret-of-the-gateway"
    assert "temperature" not in body
    assert (body["reasoning_effort"], body["top_p"]) == ("low", 0.9)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    before = OpenAIChat("m", **given).fingerprint
    environment.setenv("GATEWAY_KEY", "another-secret")
    assert before == OpenAIChat("m", **given).fingerprint
    assert before != OpenAIChat("m", base_url=server.url).fingerprint


@pytest.mark.parametrize(
    ("spec", "options", "told"),
    [
        *(("openai:m", {"headers": [header]}, "NAME=VARIABLE") for header in ("X-Api-Key", "X Api=KEY")),
        ("openai:m", {"headers": ["X-Api-Key=NOT_SET_ANYWHERE"]}, "export NOT_SET_ANYWHERE"),
        ("openai:m", {"extra_body": "/nowhere/extra.json"}, "cannot be read"),
        ("openai:m", {"extra_body": __file__}, "not JSON"),
        *(("openai:m", {"base_url": url}, "base-url") for url in NO_URLS),
        *((spec, {}, "incomplete") for spec in ("openai", "openai:", "python:", "exec", "recorded:")),
        ("vader:large", {}, "takes nothing"), ("sklearn:m.skops", {}, "models of tables"),
        ("vader", {"colour": "red"}, "no option"), ("opnai:gpt-4o", {}, "Did you mean openai"),
    ],
)  # fmt: skip
def test_specs_and_options_that_do_not_fit(spec: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        models.make(spec, **options)


def test_azure_needs_a_version_and_its_key(environment: pytest.MonkeyPatch) -> None:
    environment.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigError, match="Run: export OPENAI_API_VERSION="):
        OpenAIChat("m", base_url=AZURE)
    environment.setenv("OPENAI_API_VERSION", "2024-10-21")
    with pytest.raises(ConfigError, match="Run: export AZURE_OPENAI_API_KEY="):
        OpenAIChat("m", base_url=AZURE)
    environment.setenv("AZURE_OPENAI_API_KEY", "azure-key-0123")
    model = OpenAIChat("gpt-4o-mini", base_url=AZURE)
    assert model.price is None
    environment.setenv("OPENAI_API_VERSION", "2025-01-01")
    assert model.fingerprint != OpenAIChat("gpt-4o-mini", base_url=AZURE).fingerprint


def test_azure_with_a_token_of_entra_id(environment: pytest.MonkeyPatch) -> None:
    server = Loopback(json.loads(YES))
    environment.setenv("AZURE_OPENAI_ENDPOINT", server.url)
    environment.setenv("AZURE_OPENAI_AD_TOKEN", "token-0123")
    environment.setenv("OPENAI_API_VERSION", "2024-10-21")
    environment.delenv("OPENAI_API_KEY")
    assert server.ask(OpenAIChat("mine"), HELLO)[0].text == "yes"
    assert server.seen[0][2]["authorization"] == "Bearer token-0123"
    assert "api-key" not in server.seen[0][2]
    # The plain protocol of Azure takes it as a bearer token too; a key goes before it, and so does one that is given.
    assert OpenAIChat("m", base_url=f"{AZURE}/openai/v1")._key == "token-0123"
    assert OpenAIChat("m", base_url=AZURE, api_key="given-0123")._key == "given-0123"
    environment.setenv("OPENAI_API_KEY", "for-openai-itself")
    assert OpenAIChat("m", base_url=AZURE)._key == "token-0123"
    assert OpenAIChat("m", base_url="https://api.openai.com/v1")._key == "for-openai-itself"
    environment.setenv("AZURE_OPENAI_API_KEY", "azure-key-0123")
    assert OpenAIChat("m", base_url=AZURE)._key == "azure-key-0123"


def tokens(*given: tuple[str, dict[str, float]]) -> dict[str, Any]:
    """A choice whose tokens have these alternatives (probabilities)."""
    content: list[dict[str, Any]] = []
    for text, others in given:
        top = [{"token": token, "logprob": math.log(p)} for token, p in others.items()]
        content.append({"token": text, "logprob": math.log(others.get(text, 1.0)), "top_logprobs": top})
    return {"message": {"content": "".join(text for text, _ in given)}, "logprobs": {"content": content}}


SURE = {"positive": 0.75, "negative": 0.25}


@pytest.mark.parametrize(
    ("choice", "positive"),
    [
        (tokens((" Pos", {" Pos": 0.6, "neg": 0.1, "pos": 0.1, "The": 0.2}), ("itive", {})), 0.875),
        (tokens(('{"', {}), ("label", {}), ('": "', {}), ("negative", SURE), ('"}', {})), 0.75),
        (tokens(("Not negative at first.\nAnswer: ", {}), ("positive", {"positive": 0.9, "negative": 0.1})), 0.9),
        (tokens(("positive", {"positive": 0.9, "The": 0.1})), None),  # a label that is not among the alternatives
        (tokens(("positive", {"positive": 0.2, "negative": 0.1, "The": 0.7})), None),  # decided elsewhere
        (tokens(("maybe", {"maybe": 1.0})), None),
        (tokens(("xpositive", {"xpositive": 1.0})), None),  # not where a label begins
        *(
            ({"message": {"content": "positive"}, "logprobs": none}, None)
            for none in (None, {"content": [{"token": 5}]})
        ),
    ],
)
def test_scores_at_the_first_token_of_the_label(choice: dict[str, Any], positive: float | None) -> None:
    found = scores(SENTIMENT, read_tokens(json.dumps({"choices": [choice]}).encode()))
    assert found == (positive and pytest.approx({"positive": positive, "negative": 1 - positive}))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.text(max_size=4), st.floats(-30, 0)), max_size=8),
    st.lists(st.text(min_size=1, max_size=4), min_size=2, max_size=4, unique=True),
)
def test_shares_are_shares(alternatives: list[tuple[str, float]], labels: list[str]) -> None:
    found = shares(labels, alternatives)
    if found is not None:
        assert list(found) == labels
        assert sum(found.values()) == pytest.approx(1.0)
        assert all(0 < share <= 1 for share in found.values())


SENTIMENT = tasks.load("sentiment")
FILM = Request(prompt=SENTIMENT.render("A fine film."), replicate=0, variant_id="v")


@pytest.mark.parametrize(("asks", "sent"), [(False, None), (None, 20)])
def test_log_probabilities_are_asked_where_there_are_labels(asks: bool | None, sent: int | None) -> None:
    server = Loopback({"choices": [tokens(("positive", SURE))]})
    model: Any = models.make("openai:m", base_url=server.url, task=SENTIMENT, logprobs=asks)
    assert server.ask(model, FILM)[0].scores == (sent and pytest.approx(SURE))
    assert server.seen[0][3].get("top_logprobs") == sent
    assert "logprobs" not in OpenAIChat("m", base_url=URL, task=tasks.load("advice")).body(FILM)  # no labels


@pytest.mark.parametrize(("most", "sent"), [(5, [20, 5]), (0, [20, 5, None])])
def test_servers_that_give_fewer_log_probabilities_or_none(most: int, sent: list[int | None]) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if (body.get("top_logprobs") or 0) > most:
            return 400, {"error": {"message": "top_logprobs: the value is out of range"}}
        return 200, {"choices": [tokens(("positive", SURE))]}

    server, strict = Loopback(answer), Loopback(answer)
    model = OpenAIChat("m", base_url=server.url, task=SENTIMENT)
    *changed, last = server.ask(model, *[FILM] * len(sent))
    assert [body.get("top_logprobs") for *_, body in server.seen] == sent
    assert {type(reply) for reply in changed} == {ParameterChanged}
    assert last.text == "positive"
    assert ("logprobs" in model.changed) == (most == 0)
    own = OpenAIChat("m", base_url=strict.url, task=SENTIMENT, logprobs=True)
    assert [reply.code for reply in strict.ask(own, FILM, FILM)] == ["bad-request", "bad-request"]
    assert own.changed == {}  # what the user asks for stays


@pytest.mark.parametrize(
    ("told", "names"),
    [
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", {"max_tokens"}),
        ("Unsupported value: 'temperature' does not support 0 with this model.", {"temperature"}),
        ([{"type": "extra_forbidden", "loc": ["body", "max_tokens"], "msg": "Extra inputs are …"}], {"max_tokens"}),
        ("UnsupportedParamsError: no support: ['temperature', 'max_tokens']", {"temperature", "max_tokens"}),
        ("max_tokens is too large: 99999. This model supports at most 4096 completion tokens.", set()),
        ("max_completion_tokens_x is unknown", set()),
        ("", set()),
    ],
)
def test_unsupported_parameters_are_told_from_wrong_values(told: Any, names: set[str]) -> None:
    assert unsupported({"message": told}, ["temperature", "max_tokens"]) == names


def test_what_the_user_asked_for_is_never_left_out() -> None:
    def changed(adapter: OpenAIChat, name: str) -> bool:
        return adapter.changed_by({"message": f"Unsupported parameter: '{name}'"}, adapter.body(HELLO))

    adapter = OpenAIChat("m", base_url=URL, temperature=0.7, max_tokens=300)
    assert (changed(adapter, "temperature"), changed(adapter, "max_tokens")) == (False, True)
    body = adapter.body(HELLO)
    assert (body["temperature"], body["max_completion_tokens"]) == (0.7, 300)
    assert not changed(OpenAIChat("m", base_url=URL, extra_body={"top_k": 4}), "top_k")
