"""Keys and passwords reach no file, message or cache, also where a server echoes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, Patch

from auditor.cli.main import run
from auditor.core import secrets
from auditor.core.errors import BadRequest, ConfigError
from auditor.models.openai_protocol import revealed
from auditor.store.disk import write_json
from tests.json_server import JsonServer

KEY, PASSWORD, QUERY = "sk-live-0123456789", "pa55-of-the-url", "k3y-of-the-query"


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    before = dict(secrets._known)
    yield
    secrets._known.clear()
    secrets._known.update(before)


def test_addresses_are_written_without_what_is_secret_in_them() -> None:
    assert secrets.hidden(f"https://me:{PASSWORD}@h:1/v1?api-version=2&sig={QUERY}") == (
        "https://[key]@h:1/v1?api-version=2&sig=[key]"
    )
    assert secrets.hidden("http://127.0.0.1:8000/v1") == "http://127.0.0.1:8000/v1"
    assert secrets.hidden(None) is None


def test_every_form_of_a_key_goes(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setenv("SOME_API_KEY", 'qu"ote<&>-0123')
    monkeypatch.setenv("SOME_TOKEN_FILE", "/run/secrets/token")
    secrets.look()
    for form in ('qu"ote<&>-0123', 'qu\\"ote<&>-0123', "qu%22ote%3C%26%3E-0123", "qu&quot;ote&lt;&amp;&gt;-0123"):
        assert secrets.scrub(f"a {form} b") == "a [key] b"
    assert secrets.scrub("/run/secrets/token") == "/run/secrets/token"
    write_json(tmp_path / "x.json", {"a": 'qu"ote<&>-0123'})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": "[key]"}
    assert "qu" not in str(BadRequest('no access with qu"ote<&>-0123'))
    assert "pw" not in str(ConfigError("cannot reach http://u:pw@host/"))
    secrets.know("short")
    assert secrets.scrub("a short answer") == "a short answer"


def test_an_address_is_completed_from_the_environment(monkeypatch: Patch) -> None:
    whole = f"http://me:{PASSWORD}@127.0.0.1:9/v1"
    told = secrets.hidden(whole + "/")
    assert told is not None
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="written down nowhere"):
        revealed(told)
    monkeypatch.setenv("OPENAI_BASE_URL", whole)
    assert revealed(told) == whole


@pytest.fixture
def echo() -> Iterator[JsonServer]:
    """A server that repeats what it was sent, in answers and in every fifth time in an error."""

    def reply(body: Any) -> tuple[int, dict[str, str], Any]:
        _, path, headers, _ = server.seen[-1]
        text = f"positive? You sent {path} {headers['authorization']} {KEY} {PASSWORD}"
        if len(server.seen) % 5 == 0:
            return 400, {}, {"error": {"message": text}}
        message = {"role": "assistant", "content": text}
        return 200, {}, {"model": f"m-{KEY}", "choices": [{"message": message, "finish_reason": "stop"}]}

    server = JsonServer(reply)
    yield server
    server.close()


@pytest.mark.e2e
@pytest.mark.parametrize("with_key", [True, False])
def test_a_server_that_echoes_them(
    with_key: bool, echo: JsonServer, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUDIT_CACHE", str(tmp_path / "cache.sqlite"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    info = "" if with_key else f"me:{PASSWORD}@"
    url = f"http://{info}{echo.url.removeprefix('http://')}/v1?api_key={QUERY}"
    run(["run", "--task", "sentiment", "--limit", "3", "--model", "openai:m", "--base-url", url, "--max-calls", "20"])
    told = capsys.readouterr()
    assert echo.seen
    assert all(path.endswith(f"/chat/completions?api_key={QUERY}") for _, path, *_ in echo.seen)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"plan.json", "run.json", "report.html", "responses.jsonl", "cache.sqlite"} <= {f.name for f in files}
    everything = b"".join(path.read_bytes() for path in files) + told.out.encode() + told.err.encode()
    assert b"You sent" in everything
    for secret in (KEY, QUERY) if with_key else (KEY, PASSWORD, QUERY):
        assert secret.encode() not in everything, secret


def test_a_traceback_that_is_kept_holds_none(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    import tempfile

    from auditor.cli import main

    def fails(argv: list[str]) -> int:
        raise RuntimeError(f"could not send {KEY}")

    secrets.know(KEY)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(main, "command", lambda argv: (fails, argv))
    assert run(["list", "tasks"]) == 70
    [kept] = tmp_path.glob("audit-traceback-*")
    told = capsys.readouterr().err + kept.read_text(encoding="utf-8")
    assert told.count("could not send [key]") == 2
    assert KEY not in told
