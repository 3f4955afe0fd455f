"""``http:FILE.yaml``: files, placeholders, paths, errors, secrets, against a loopback server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import auditor.models as models
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.protocols import Reply
from auditor.core.types import Request, Usage
from auditor.models.http import HttpTemplate, read
from tests.asking import ask, bare, chat
from tests.json_server import JsonServer

SECRET = "k-0123456789-secret"
CHAT = """\
format: 1
url: {url}/v1/answer
headers:
  Authorization: Bearer ${{SERVICE_KEY}}
  X-Team: audit
request:
  system: "{{{{system}}}}"
  messages: "{{{{messages}}}}"
  note: "asked: {{{{prompt}}}}"
  limit: "{{{{max_tokens}}}}"
  heat: "{{{{temperature}}}}"
answer: choices[0].text
usage: {{tokens_in: usage.in, tokens_out: usage.out}}
model: served.by
error: problem
"""


@pytest.fixture
def server() -> Iterator[JsonServer]:
    running = JsonServer()
    yield running
    running.close()


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_KEY", SECRET)


def write(folder: Path, text: str) -> str:
    path = folder / "service.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def asked(text: str) -> Request:
    return chat(text, ("system", "be brief"), form="label")


def chatting(folder: Path, url: str, more: str = "", **options: Any) -> Any:
    """A chat model behind a server; ``more`` is put behind its file."""
    return models.make("http:" + write(folder, CHAT.format(url=url) + more), **options)


def task() -> Any:
    return SimpleNamespace(formats={"label": 1}, max_tokens=lambda form: 9, temperature=0.5)


HOSTILE = 'end"}], "limit": 9999, "x": "{{system}} ${SERVICE_KEY} \\" \u2028 </s>\n'


@pytest.mark.parametrize("text", ["hello", HOSTILE])
def test_a_whole_answer_to_a_text_that_stays_a_value(server: JsonServer, tmp_path: Path, text: str) -> None:
    server.reply = lambda body: (
        200,
        {"x-ratelimit-remaining-requests": "7"},
        {"choices": [{"text": "positive"}], "usage": {"in": 5, "out": 1}, "served": {"by": "m-1"}},
    )
    model = chatting(tmp_path, server.url, task=task())
    noted: list[Any] = []
    model.on_headers = noted.append
    assert ask(model, asked(text)) == [Reply("positive", usage=Usage(tokens_in=5, tokens_out=1), model_reported="m-1")]
    method, path, headers, body = server.seen[0]
    assert (method, path) == ("POST", "/v1/answer")
    assert (headers["authorization"], headers["content-type"]) == (f"Bearer {SECRET}", "application/json")
    messages = [{"role": "user", "content": text}]
    sent = {"system": "be brief", "messages": messages, "note": f"asked: {text}", "limit": 9, "heat": 0.5}
    assert body == sent
    assert noted == [{"x-ratelimit-remaining-requests": "7"}]
    assert model.max_tokens("label") == 9


def test_the_bare_text_for_a_service_with_its_own_prompt(server: JsonServer, tmp_path: Path) -> None:
    server.reply = lambda body: (200, {}, b'{"sco res": [1, {"positive": 0.75, "negative": 0.25}]}')
    file = write(tmp_path, f'format: 1\nurl: {server.url}\nrequest: {{q: "{{{{input}}}}"}}\nscores: $["sco res"][-1]\n')
    model = HttpTemplate(file)
    assert model.style == "text"
    replies = ask(model, bare("fine film"), asked("hello"))
    assert replies[0] == Reply("positive", scores={"positive": 0.75, "negative": 0.25})
    assert replies[1].code == "bad-request"
    assert server.seen[0][3] == {"q": "fine film"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [(302, "auth-failed"), (400, "bad-request"), (401, "auth-failed"), (429, "rate-limited"), (503, "server-fault")],
)
def test_by_status(server: JsonServer, tmp_path: Path, status: int, kind: str) -> None:
    said = json.dumps({"problem": f"no, {SECRET} is wrong"}).encode()
    server.reply = lambda body: (status, {"retry-after": "3", "location": "http://127.0.0.1:9/"}, said)
    (error,) = ask(chatting(tmp_path, server.url), asked("hello"))
    assert error.code == kind
    assert SECRET not in str(error) + repr(error)
    if status >= 400:
        assert "[key] is wrong" in str(error)
    assert (error.retry_after_s == 3.0) is (kind in ("rate-limited", "server-fault"))
    assert len(server.seen) == 1


def test_what_is_no_answer(server: JsonServer, tmp_path: Path) -> None:
    told = [b"", b"<html>", b"{}", b'{"choices": []}', b'{"choices": [{"text": ["a"]}]}', b"[" * 20000]
    told.append(b'{"choices": [{"text": "a"}], "problem": "busy"}')
    server.reply = lambda _: (200, {}, told[len(server.seen) - 1])
    replies = ask(chatting(tmp_path, server.url), *[asked("hello")] * len(told))
    assert [reply.code for reply in replies] == ["bad-response"] * len(told)


def test_no_server_and_a_slow_one(server: JsonServer, tmp_path: Path) -> None:
    (gone,) = ask(chatting(tmp_path, "http://127.0.0.1:9"), asked("hello"))
    assert gone.code == "server-fault"
    assert "running" in str(gone)
    release = threading.Event()
    server.reply = lambda _: (200, {}, b"{}" if release.wait(10) else b"")
    (slow,) = ask(chatting(tmp_path, server.url, "timeout_s: 0.2\n"), asked("hello"))
    release.set()
    assert slow.code == "timeout"


GOOD = 'format: 1\nurl: http://h/x\nrequest: {q: "{{prompt}}"}\nanswer: a\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD + "anser: b\n", "line 5: field anser: no such field; did you mean answer?"),
        (GOOD + "answer: b\n", "line 5: the field answer is here and in line 4"),
        (GOOD.replace("format: 1", "format: 2"), "line 1: field format: Input should be 1"),
        (GOOD.replace("http://h/x", "ftp://h/x"), "line 2: url must start with http"),
        (GOOD.replace("{{prompt}}", "{{promt}}"), "line 3: unknown placeholder {{promt}}. Did you mean 'prompt'?"),
        (GOOD.replace("{{prompt}}", "hello"), "line 3: request must hold"),
        (GOOD.replace("{{prompt}}", "say {{messages}}"), "line 3: {{messages}} is not a text"),
        (GOOD.replace("{{prompt}}", "{{prompt}} {{input}}"), "line 3: {{input}} is the bare text"),
        (GOOD.replace("answer: a", "answer: a..b"), "line 4: field answer: 'a..b' may be found at many places"),
        (GOOD.replace("answer: a\n", ""), "answer (or scores) is missing"),
        (GOOD.replace("url: http://h/x\n", ""), "field url: this field is missing"),
        (GOOD + "method: DELETE\n", "line 5: field method: Input should be 'POST', 'PUT'"),
        (GOOD + "headers:\n  Authorization: Bearer abc\n", "line 6: a secret does not belong into a file"),
        (GOOD + "headers:\n  'X Y': a\n", "line 6: 'X Y' is not the name of a header"),
        ("- a\n", "a mapping"), ("", "the file is empty. For a chat service it reads"), ("url: [\n", "not valid YAML"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_names_the_line(tmp_path: Path, text: str, told: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(DataFileError) as caught:
        read(file)
    assert told in str(caught.value)
    assert "service.yaml" in str(caught.value)


def test_a_variable_that_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, CHAT.format(url="http://h"))
    monkeypatch.delenv("SERVICE_KEY")
    with pytest.raises(ConfigError, match=r"line 4.*SERVICE_KEY.*Run: export SERVICE_KEY="):
        read(file)
    monkeypatch.setenv("SERVICE_KEY", "a\nb")
    with pytest.raises(DataFileError) as caught:
        read(file)
    assert "a\nb" not in str(caught.value)


def test_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fingerprint(text: str, **options: Any) -> str:
        return HttpTemplate(write(tmp_path, text), **options).fingerprint

    text = CHAT.format(url="http://h")
    base = fingerprint(text)
    assert base == fingerprint(text + "# a comment\n")
    monkeypatch.setenv("SERVICE_KEY", "another key altogether")
    assert base == fingerprint(text)
    changed = (("http://h", "http://g"), ("asked:", "Asked:"), ("[0].text", "[1].text"))
    others = {fingerprint(text.replace(*one)) for one in changed}
    assert len(others | {base, fingerprint(text, task=task())}) == 5


def test_the_environment_is_never_shown(server: JsonServer, tmp_path: Path) -> None:
    server.reply = lambda _: (500, {}, json.dumps({"problem": SECRET * 40}).encode())
    model = HttpTemplate(write(tmp_path, CHAT.format(url=server.url)))
    (error,) = ask(model, asked("hello"))
    told = [repr(model), model.name, model.fingerprint, str(error), repr(model._template)]
    assert not [t for t in told if SECRET in t or SECRET[:12] in t]
    assert SECRET not in json.dumps(model._template.facts())
