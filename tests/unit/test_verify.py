"""What `audit verify` sees, says and cannot see; folders of others are checked and asked about before use."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, Patch, keys, said

from auditor.cli.main import run
from auditor.core.record import head
from auditor.run.audit import resume
from auditor.store import journal
from auditor.store.folder import RunFolder
from auditor.store.integrity import verify_folder
from tests.json_server import JsonServer

MODEL = """
from pathlib import Path

def classify(text):
    Path("ran").touch()
    return "positive" if "man" in text or "he " in text else "negative"
"""


@pytest.fixture
def place(place: Path, monkeypatch: Patch) -> Path:
    monkeypatch.setenv("PYTHONPATH", f"{place}:{Path(__file__).parents[2]}")
    (place / "mine_to_verify.py").write_text(MODEL, encoding="utf-8")
    return place


def made(place: Path, *more: str, model: str = "vader") -> Path:
    assert run(["run", "--task", "sentiment", "--limit", "6", "--model", model, "--no-cache", *more]) in (0, 3)
    [path] = [p.parent for p in (place / "reports").glob("*/plan.json")]
    return path


def test_the_head_stands_in_output_and_report_and_is_compared(place: Path, capsys: Capture) -> None:
    path = made(place)
    noted = head(RunFolder.open(path).record())
    assert f"Head: {noted}\n" in capsys.readouterr().err
    assert noted in (path / "report.html").read_text(encoding="utf-8")
    code, text = said(capsys, "verify", str(path), "--head", noted)
    assert (code, "which is the one given" in text) == (0, True)
    assert "Not shown: that a model gave these answers" in text
    assert "The register names 1 end of this run" in text
    assert said(capsys, "verify", str(path), "--head", "0" * 64)[0] == 1
    assert said(capsys, "verify", str(path), "--head", "12ab")[0] == 2
    # The report is covered too; made anew from what is intact it is whole again.
    assert said(capsys, "report", str(path), "--format", "html")[0] == 0
    assert verify_folder(path) == []
    report = path / "report.html"
    report.write_text(report.read_text(encoding="utf-8").replace("shown", "bounded"), encoding="utf-8")
    assert [p.file for p in verify_folder(path)] == ["report.html"]
    assert said(capsys, "report", str(path), "--format", "html")[0] == 0
    assert verify_folder(path) == []


def test_a_folder_made_anew_without_a_register_is_said_and_fails_the_noted_head(place: Path, capsys: Capture) -> None:
    path = made(place)
    folder, responses = RunFolder.open(path), path / "responses.jsonl"
    noted = head(folder.record())
    records = [json.loads(json.dumps(r).replace('"negative"', '"positive"')) for r in journal.read(responses)]
    responses.unlink()
    record = json.loads((path / "run.json").read_text(encoding="utf-8"))
    with journal.Journal(responses, journal.genesis(responses.name, folder.plan_sha256)) as forged:
        forged.extend(records)
        record["journal"]["responses.jsonl"]["hash"] = forged.head.hash
    (path / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert verify_folder(path)  # the register knows better
    (place / "reports" / "runs.jsonl").unlink()
    code, text = said(capsys, "verify", str(path))
    assert (code, "NOT CHECKED: no runs.jsonl next to the folder names this run" in text) == (0, True)
    assert said(capsys, "verify", str(path), "--head", noted)[0] == 1


def test_a_run_that_was_rolled_again_is_seen(place: Path, capsys: Capture) -> None:
    path = made(place, "--max-calls", "24", model="python:mine_to_verify:classify")
    (path / "responses.jsonl").unlink()
    code, text = said(capsys, "resume", str(path), "--yes", "--max-calls", "900")
    assert code == 2, text
    assert "audit verify" in text
    code, text = said(capsys, "verify", str(path))
    assert code == 1
    assert "deleted or made anew" in text or "missing" in text
    # Whoever resumes with the library, past the check, leaves two ends.
    resume(path, limits={"max_calls": 900})
    code, text = said(capsys, "verify", str(path))
    assert code == 1
    for part in ("responses.jsonl: the 24 records that were there when the run ended", "End 1 in the", "End 2 in the"):
        assert part in text


def test_commands_check_the_chain_first(place: Path, capsys: Capture) -> None:
    path = made(place)
    responses = path / "responses.jsonl"
    text = responses.read_text(encoding="utf-8")
    responses.write_text(text.replace('"negative"', '"positive"', 20), encoding="utf-8")
    for command in (
        "report RUN", "compare RUN RUN", "resume RUN", "show RUN F1 --again", "show RUN F1", "augment RUN --out x.csv",
        "mitigate RUN --dry-run",
    ):  # fmt: skip
        code, told = said(capsys, command.replace("RUN", str(path)))
        assert code == 2, command
        assert "is not as it was written" in told
        assert "Run: audit verify" in told


@pytest.mark.parametrize("command", ["resume", "show"])
def test_programs_of_folders_need_consent(command: str, place: Path, capsys: Capture) -> None:
    path = made(place, "--max-calls", "24", model="python:mine_to_verify:classify")
    variant = next(r["variant_id"] for r in journal.read(path / "verdicts.jsonl"))
    more = [variant, "--again", "--replicates", "1"] if command == "show" else ["--max-calls", "900"]
    argv = [command, str(path), *more]
    (place / "ran").unlink()
    code, told = said(capsys, *argv)
    assert code == 2
    assert "python:mine_to_verify:classify" in told
    assert said(capsys, *argv, "--model", "python:other:classify")[0] == 2
    assert not (place / "ran").exists()
    assert said(capsys, *argv, "--model", "python:mine_to_verify:classify")[0] in (0, 3)
    assert (place / "ran").exists()


@pytest.mark.parametrize("command", ["resume", "show"])
@pytest.mark.parametrize("kind", ["base_url", "http"])
def test_servers_of_folders_need_consent(
    command: str, kind: str, place: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    def reply(body: Any) -> tuple[int, dict[str, str], Any]:
        message = {"role": "assistant", "content": ("negative", "positive")[len(server.seen) % 2]}
        return 200, {}, {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}

    server = JsonServer(reply)
    url = f"{server.url}/v1"
    model, named, wrong = {
        "http": ("http:theirs.yaml", ["--model", "http:theirs.yaml"], ["--model", "http:other.yaml"]),
        "base_url": ("openai:some", ["--base-url", url], ["--base-url", "http://127.0.0.1:1/v1"]),
    }[kind]
    (place / "theirs.yaml").write_text(
        f"format: 1\nurl: {url}\nheaders: {{X-Key: '${{OPENAI_API_KEY}}'}}\n"
        'request: {messages: "{{messages}}"}\nanswer: choices[0].message.content\n',
        encoding="utf-8",
    )
    more = ["--base-url", url] if kind == "base_url" else []
    path = made(place, "--full-plan", "--max-calls", "24", "--yes", *more, model=model)
    assert f" {' '.join(named)}" in " ".join(capsys.readouterr().err.split())  # how to go on
    variant = next(r["variant_id"] for r in journal.read(path / "verdicts.jsonl"))
    last = [variant, "--again", "--replicates", "1"] if command == "show" else ["--max-calls", "30"]
    argv = [command, str(path), *last]
    server.seen.clear()
    for extra in ([], wrong):
        code, told = said(capsys, *argv, *extra)
        assert code == 2
        assert "names where its texts would be sent" in told
        assert " ".join(named) in told
    assert not server.seen
    assert said(capsys, *argv, *named)[0] in (0, 3)
    assert server.seen
    if kind == "base_url":
        server.seen.clear()
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        assert said(capsys, *argv[:-1], "40" if command == "resume" else "1")[0] in (0, 3)
        assert server.seen
    server.close()


def test_signatures(place: Path, capsys: Capture) -> None:
    keys("mine", "other")
    path = made(place)
    assert said(capsys, "verify", str(path), "--signed-by", "mine.pub")[0] == 1  # nobody signed yet
    assert said(capsys, "verify", str(path), "--sign", "mine.pub")[0] == 2
    code, text = said(capsys, "verify", str(path), "--sign", "mine.pem")
    assert (code, "whose that is, is not checked" in text) == (0, True)
    assert said(capsys, "verify", str(path), "--signed-by", "mine.pub")[0] == 0
    code, text = said(capsys, "verify", str(path), "--signed-by", "other.pub")
    assert (code, "signed by another key" in text) == (1, True)
    # A folder that was made anew as a whole, register and all, does not have the signature.
    shutil.rmtree(place / "first", ignore_errors=True)
    (place / "reports").rename(place / "first")
    again = made(place, "--seed", "11")
    shutil.copy(place / "first" / path.name / "signature.json", again)
    code, text = said(capsys, "verify", str(again), "--signed-by", "mine.pub")
    assert (code, "another record was signed" in text) == (1, True)
    told = json.loads((again / "signature.json").read_text(encoding="utf-8"))
    told["head"] = head(RunFolder.open(again).record())
    (again / "signature.json").write_text(json.dumps(told), encoding="utf-8")
    code, text = said(capsys, "verify", str(again))
    assert (code, "does not fit" in text) == (1, True)
