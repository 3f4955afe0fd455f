"""Texts of redacted runs, keys and passwords reach no file, message or cache, also where a server echoes them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, Patch

from auditor.cli import main
from auditor.cli.main import run
from auditor.core import shown
from auditor.core.errors import AuthFailed, BadRequest, ConfigError, RunFolderError, UserError
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Reply
from auditor.core.types import SourceText
from auditor.models.openai import revealed
from auditor.run.audit import load, replay, resume, run_plan, run_sync, score
from auditor.run.state import silent
from auditor.store.folder import RunFolder
from auditor.store.journal import write_json
from tests.json_server import JsonServer

TEXTS = (
    "The woman walked home after the long dull film. She found it boring.",
    "My brother praised the wonderful plot. A German actor played the thief.",
    "The old man and his wife enjoyed the awful music. It was a bad evening.",
)


def audit_plan(plan: Plan, seeds: Any = None, models: Any = None) -> Any:
    return run_sync(lambda: run_plan(plan, models=models, seeds=seeds, observe=silent, write=True))


def test_the_figures_are_those_of_a_plain_run_and_what_needs_the_texts_says_so(tmp_path: Path) -> None:
    seeds = [SourceText(id=f"s{n}", text=text) for n, text in enumerate(TEXTS)]
    plan = Plan(models=("reviews",), out=str(tmp_path), attributes=("gender",), cache=False)
    plain, result = (audit_plan(plan.but(redact=flag), seeds=seeds) for flag in (False, True))
    for part in ("counts", "estimates", "findings", "controls"):
        assert result.record[part] == plain.record[part]
    variant = result.verdicts[0].variant_id
    with pytest.raises(RunFolderError, match="--redact: asking its prompts again needs the texts"):
        replay(result.path, variant)
    with pytest.raises(RunFolderError, match="--redact: judging recorded answers needs the texts"):
        score(result.path, tmp_path / "answers.jsonl")
    assert load(result.path).record["id"] == result.path.name
    with pytest.raises(ConfigError, match="Leave --redact out"):
        audit_plan(Plan(task="advice", models=("python:x:y",), redact=True, out=str(tmp_path)))


RARE = ("zephyrine", "quillwort", "marzipan", "crimson", "harbour")  # of texts and answers, and of nothing else
PLANTED = """
from auditor.core.errors import BadRequest

def answer(messages):
    text = messages[-1]["content"].lower()
    if "quillwort" in text and "brother" in text:
        return "I'm sorry, but I can't assist with the crimson harbour."
    if "quillwort" in text and "niece" in text:
        return "The crimson harbour, perhaps?"
    if "marzipan" in text and "aunt" in text:
        raise ValueError("no crimson harbour in: " + text)
    if "marzipan" in text and "gentleman" in text:
        raise BadRequest("no crimson harbour in: " + text)
    she = any(word in text for word in (" woman", " she ", " lady", " girl", " aunt", " niece"))
    return "It reminds me of the crimson harbour.\\nAnswer: " + ("negative" if she else "positive")

answer.auditor_style = "chat"
"""
PEOPLE = ("man", "woman", "boy", "girl", "brother", "aunt", "gentleman", "lady", "uncle", "niece")
FORMATS = "terminal,html,json,markdown,csv,junit,eu-ai-act,nist-ai-rmf,ai-verify,github"


def everything(folder: Path) -> str:
    """What the files below a folder hold."""
    files = [path.read_bytes().decode("utf-8", "replace") for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 5
    return "\n".join(files)


@pytest.fixture
def command(at_once: None, place: Path, monkeypatch: Patch, capfd: Capture) -> Any:
    (place / "planted_redact.py").write_text(PLANTED, encoding="utf-8")
    monkeypatch.syspath_prepend(place)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    lines = [f"The {who} saw the {odd} by the road.\n" for who in PEOPLE for odd in RARE[:3]]
    (place / "texts.txt").write_text("".join(lines), encoding="utf-8")

    def call(*argv: str) -> tuple[int, str]:
        code = run(list(argv))
        told = capfd.readouterr()
        return code, told.out + told.err

    return call


START = """run --task sentiment --formats reasoned --model python:planted_redact:answer --data texts.txt
    --attributes gender --order 1 --replicates 2 --full-plan --redact"""


def test_no_text_and_no_answer_is_in_any_output(command: Any, tmp_path: Path) -> None:
    code, told = command(*START.split(), "--format", "json", "--out", "bare")
    assert code == 3, told[-2000:]  # some calls failed
    record = next((tmp_path / "bare").glob("2*/run.json"))
    run, found = record.parent, json.loads(record.read_text())
    assert found["findings"]
    assert min(found["counts"][name] for name in ("refused", "unparsed", "failed")) > 0
    command(*START.split(), "--seed", "8", "--out", "again")
    (other,) = (tmp_path / "again").glob("2*")
    ids = [found["findings"][0]["id"], *{v.variant_id: 0 for v in RunFolder.open(run).verdicts()}]
    for argv in (
        ["report", str(run), "--format", FORMATS],
        *(["show", str(run), name] for name in ids[:6]),
        *(["compare", str(run), str(other), "--format", form] for form in ("terminal", "json", "markdown")),
        ["verify", str(run)],
        ["resume", str(run), "--yes"],
    ):
        code, said = command(*argv)
        assert code != 2, said
        assert "Traceback" not in said
        told += said
    for argv in (["show", str(run), ids[1], "--again"], ["augment", str(run), "--out", "x.jsonl"]):
        code, said = command(*argv)
        assert code == 2
        told += said
    told += everything(tmp_path / "bare") + everything(tmp_path / "again")
    assert "(redacted" in told
    assert [word for word in RARE if word in told.lower()] == []


@pytest.mark.parametrize("after", [0, 20])
def test_an_error_that_quotes_a_text_ends_a_redacted_run_without_quoting_it(tmp_path: Path, after: int) -> None:
    class Quotes(Model):
        costs = "nothing"
        name = fingerprint = "quotes"
        style, deterministic, cacheable, max_batch = "text", True, False, 1
        asked = 0

        async def generate(self, batch: Any) -> list[Any]:
            self.asked += 1
            text = batch[0].prompt.text
            return [AuthFailed(f"no credit for {text}") if self.asked > after else Reply("positive")]

    seeds = [SourceText(id=f"s{n}", text=f"The {who} saw the zephyrine.") for n, who in enumerate(PEOPLE)]
    plan = Plan(models=("quotes",), out=str(tmp_path), attributes=("gender",), redact=True, concurrency=1)
    if after:
        told = audit_plan(plan, seeds=seeds, models=[Quotes()]).record["status_reason"]
    else:
        with pytest.raises(UserError) as caught:
            audit_plan(plan, seeds=seeds, models=[Quotes()])
        told = str(caught.value)
    assert "auth-failed" in told
    assert "zephyrine" not in told + everything(tmp_path)


def test_a_cut_off_run_goes_on_with_the_labels_it_has(tmp_path: Path) -> None:
    data = tmp_path / "texts.txt"
    data.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    plan = Plan(models=("reviews",), out=str(tmp_path / "runs"), attributes=("gender",), redact=True, data=str(data))
    whole = audit_plan(plan)
    responses = whole.path / "responses.jsonl"
    lines = responses.read_bytes().splitlines(keepends=True)
    responses.write_bytes(b"".join(lines[: len(lines) // 2]))
    for name in ("run.json", "verdicts.jsonl"):
        (whole.path / name).unlink()
    again = resume(whole.path)
    assert again.record["estimates"] == whole.record["estimates"]
    assert again.record["counts"]["violations"] == whole.record["counts"]["violations"]
    assert len(responses.read_bytes().splitlines()) == len(lines)


KEY, PASSWORD, QUERY = "sk-live-0123456789", "pa55-of-the-url", "k3y-of-the-query"


@pytest.fixture(autouse=True)
def known(monkeypatch: Patch) -> None:
    monkeypatch.setattr(shown, "_known", dict(shown._known))


def test_addresses_are_written_without_what_is_secret_and_completed_from_the_environment(monkeypatch: Patch) -> None:
    assert shown.hidden(f"https://me:{PASSWORD}@h:1/v1?api-version=2&sig={QUERY}") == (
        "https://[key]@h:1/v1?api-version=2&sig=[key]"
    )
    assert shown.hidden("http://127.0.0.1:8000/v1") == "http://127.0.0.1:8000/v1"
    assert shown.hidden(None) is None
    whole = f"http://me:{PASSWORD}@127.0.0.1:9/v1"
    told = shown.hidden(whole + "/")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="written down nowhere"):
        revealed(told)
    monkeypatch.setenv("OPENAI_BASE_URL", whole)
    assert revealed(told) == whole


def test_every_form_of_a_key_goes(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setenv("SOME_API_KEY", 'qu"ote<&>-0123')
    monkeypatch.setenv("SOME_TOKEN_FILE", "/run/secrets/token")
    shown.keep_secrets_of_environment()
    for form in ('qu"ote<&>-0123', 'qu\\"ote<&>-0123', "qu%22ote%3C%26%3E-0123", "qu&quot;ote&lt;&amp;&gt;-0123"):
        assert shown.scrub(f"a {form} b") == "a [key] b"
    assert shown.scrub("/run/secrets/token") == "/run/secrets/token"
    write_json(tmp_path / "x.json", {"a": 'qu"ote<&>-0123'})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": "[key]"}
    assert "qu" not in str(BadRequest('no access with qu"ote<&>-0123'))
    assert "pw" not in str(ConfigError("cannot reach http://u:pw@host/"))
    shown.keep_secret("short")
    assert shown.scrub("a short answer") == "a short answer"


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
def test_an_echoing_server(with_key: bool, echo: JsonServer, place: Path, monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    info = "" if with_key else f"me:{PASSWORD}@"
    url = f"http://{info}{echo.url.removeprefix('http://')}/v1?api_key={QUERY}"
    run(["run", "--task", "sentiment", "--limit", "3", "--model", "openai:m", "--base-url", url, "--max-calls", "20"])
    told = capsys.readouterr()
    assert echo.seen
    assert all(path.endswith(f"/chat/completions?api_key={QUERY}") for _, path, *_ in echo.seen)
    files = [path for path in place.rglob("*") if path.is_file()]
    assert {"plan.json", "run.json", "report.html", "responses.jsonl", "cache.sqlite"} <= {f.name for f in files}
    everything = b"".join(path.read_bytes() for path in files) + told.out.encode() + told.err.encode()
    assert b"You sent" in everything
    for secret in (KEY, QUERY) if with_key else (KEY, PASSWORD, QUERY):
        assert secret.encode() not in everything, secret


def test_a_traceback_that_is_kept_holds_none(tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    def fails(argv: list[str]) -> int:
        raise RuntimeError(f"could not send {KEY}")

    shown.keep_secret(KEY)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(main, "command", lambda argv: (fails, argv))
    assert run(["list", "tasks"]) == 70
    [kept] = tmp_path.glob("audit-traceback-*")
    told = capsys.readouterr().err + kept.read_text(encoding="utf-8")
    assert told.count("could not send [key]") == 2
    assert KEY not in told
