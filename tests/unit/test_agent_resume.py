"""Sessions that were cut off and are gone on with: the same report, nothing asked twice, limits that hold."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor import agent
from auditor.cli.main import run as cli
from auditor.core.errors import ConfigError, RunFolderError
from auditor.core.types import digest
from auditor.store.integrity import verify
from auditor.store.journal import genesis, read
from tests.asking import GOAL, films

FIXED = ("goal", "models", "planner", "seed", "limits", "texts")
SLOW = """
    import os, pathlib, time
    def classify(text):
        with open("asked.txt", "a") as file:
            file.write(text + "\\n")
        if hold := os.environ.get("HOLD"):
            if len(pathlib.Path("asked.txt").read_text().splitlines()) >= int(hold):
                if os.environ.get("STOP"):
                    raise KeyboardInterrupt
                time.sleep(600)
        return "negative" if "woman" in text.split() or "lady" in text.split() else "positive"
"""
CODE = "import sys; from auditor.cli.main import run; sys.exit(run(sys.argv[1:]))"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts and a model; the process stands in it."""
    (tmp_path / "slow_model.py").write_text(textwrap.dedent(SLOW), encoding="utf-8")
    rows = (json.dumps({"id": s.id, "text": s.text}) + "\n" for s in films(32))
    (tmp_path / "texts.jsonl").write_text("".join(rows), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def command(out: str) -> list[str]:
    return ["agent", GOAL, "--model", "python:slow_model:classify", "--data", "texts.jsonl", "--no-cache", "--out", out]  # fmt: skip


def answers(folder: Path) -> int:
    return sum(p.read_bytes().count(b"\n") for p in folder.glob("runs/*/responses.jsonl"))


def questions(place: Path) -> int:
    file = place / "asked.txt"
    return len(file.read_text(encoding="utf-8").splitlines()) if file.is_file() else 0


def killed(place: Path, argv: list[str], when: Callable[[], bool], **environment: str) -> Path:
    """Run a command on the one session there in a process of its own, and kill it."""
    path = os.pathsep.join([str(place), *sys.path])
    child = subprocess.Popen(
        [sys.executable, "-c", CODE, *argv], env={**os.environ, "PYTHONPATH": path, **environment}, cwd=place,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until = time.monotonic() + 120
        while not when():
            assert child.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    (folder,) = (place / "cut").glob("agent-*")
    assert agent.load(folder).record["status"] == "interrupted"
    return folder


def plain(folder: Path, *, calls: bool = True) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """Record, steps and report without times, run folders' names, the session's own and, if asked, counts of calls."""

    def bare(text: str) -> str:
        if not calls:
            text = re.sub(r'("calls": |calls of the model \| )\d+|\d+(?= calls \()', r"\1", text)
            text = text.replace('"calls": ,', '"calls": 0,')
        text = re.sub(r"runs/\d{8}-\d{6}-\w+(-\d+)?", "runs/RUN", text.replace(folder.name, "SESSION"))
        return re.sub(r"\| seconds \| [^|]*\|", "| seconds |", text)

    record = json.loads(bare((folder / "session.json").read_text(encoding="utf-8")))
    del record["spent"]["seconds"], record["resumed"]
    steps = [json.loads(bare(json.dumps(step))) for step in read(folder / "steps.jsonl")]
    return record, steps, bare((folder / "agent.md").read_text(encoding="utf-8"))


def test_killed_twice_and_gone_on_with_gives_the_report_of_a_whole_session(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli(command("whole")) == 0
    (whole,) = (place / "whole").glob("agent-*")
    total = answers(whole)
    (place / "asked.txt").unlink()
    folder = killed(place, command("cut"), lambda: questions(place) >= 40, HOLD="40")
    kept = (folder / "steps.jsonl").read_bytes()
    held = total - 12  # in the fresh run
    ready = folder / "texts-02.jsonl"
    resume = ["resume", str(folder), "--yes"]
    killed(place, resume, lambda: ready.is_file() and questions(place) >= held, HOLD=str(held))
    capsys.readouterr()
    assert cli(["resume", str(folder)]) == 2  # a program that the folder names
    assert "--model python:slow_model:classify" in capsys.readouterr().err
    assert cli(["resume", str(folder), "--yes"]) == 0
    assert "A difference was shown" in capsys.readouterr().out
    assert plain(folder, calls=False) == plain(whole, calls=False)
    assert (folder / "steps.jsonl").read_bytes().startswith(kept)
    record = agent.load(folder).record
    assert record["resumed"] == 2
    assert verify(folder / "steps.jsonl", genesis("steps.jsonl", digest({k: record[k] for k in FIXED}))) == []
    assert answers(folder) == total, "no answer on disk was asked for again"
    assert total <= questions(place) <= total + 2 * 16, "only what was in flight when it was killed is asked again"


def stopped(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session that Ctrl-C ended in its first run."""
    with monkeypatch.context() as patch:
        patch.setenv("HOLD", "40")
        patch.setenv("STOP", "yes")
        with pytest.raises(KeyboardInterrupt):
            agent.run(GOAL, model="python:slow_model:classify", data="texts.jsonl", out="cut", cache=False)
    (folder,) = (place / "cut").glob("agent-*")
    return folder


@pytest.mark.parametrize("where", ["responses.jsonl", "steps.jsonl"])
def test_a_session_in_which_something_was_changed_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    folder = stopped(place, monkeypatch)
    path = next(folder.rglob(where))
    path.write_text(path.read_text(encoding="utf-8").replace("e", "a", 1), encoding="utf-8")
    before, asked = (folder / "session.json").read_bytes(), questions(place)
    with pytest.raises(RunFolderError, match="is not as it was written"):
        agent.resume(folder)
    assert cli(["resume", str(folder), "--yes"]) == 2
    assert "is not as it was written" in " ".join(capsys.readouterr().err.split())
    assert ((folder / "session.json").read_bytes(), questions(place)) == (before, asked)


def test_other_texts_and_limits_are_refused_and_leave_it_as_it_is(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stopped(place, monkeypatch)
    before = (folder / "session.json").read_bytes()
    assert cli(["resume", str(folder), "--yes", "--max-calls", "3"]) == 2
    assert "leave out --max-calls" in " ".join(capsys.readouterr().err.split())
    (place / "texts.jsonl").write_text('{"text": "A man slept."}\n', encoding="utf-8")
    with pytest.raises(RunFolderError, match="The texts changed"):
        agent.resume(folder)
    assert (folder / "session.json").read_bytes() == before


def test_ctrl_c_leaves_a_session_that_can_go_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def model(text: str) -> str:
        nonlocal calls
        calls += 1
        if calls == 70:
            raise KeyboardInterrupt
        return "negative" if "woman" in text.split() else "positive"

    with pytest.raises(KeyboardInterrupt):
        agent.run(GOAL, model=model, data=films(40), out=place / "out", cache=False)
    (folder,) = (place / "out").iterdir()
    left = agent.load(folder)
    assert left.record["status"] == "interrupted"
    assert left.steps[-1]["kind"] != "end"
    with pytest.raises(ConfigError, match="handed in as an object"):
        agent.resume(folder)
    result = agent.resume(folder, model=model)
    assert result.complete
    assert [r["purpose"] for r in result.record["runs"]][:2] == ["pilot", "fresh"]


def test_a_session_that_ended_is_verified_with_its_runs_and_reported_as_a_run_is(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = agent.run(GOAL, model="python:slow_model:classify", data="texts.jsonl", out="whole", cache=False)
    with pytest.raises(ConfigError, match="came to its end"):
        agent.resume(whole.path)
    with pytest.raises(RunFolderError, match="holds no session"):
        agent.resume(whole.path.parent)
    assert cli(["verify", str(whole.path)]) == 0
    assert "its steps, and its 2 runs" in " ".join(capsys.readouterr().out.split())
    for path in (whole.path / "steps.jsonl", whole.path / str(whole.session.runs[0].folder) / "responses.jsonl"):
        kept = path.read_bytes()
        path.write_bytes(kept.replace(b"e", b"a", 1))
        assert cli(["verify", str(whole.path)]) == 1
        assert path.name in capsys.readouterr().out
        path.write_bytes(kept)
    assert cli(["verify", str(whole.path), "--head", "0" * 64]) == 2
    out = place / "told.json"
    assert cli(["report", str(whole.path), "--format", "json", "--out", str(out)]) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["id"] == whole.path.name
    capsys.readouterr()
    assert cli(["report", str(whole.path), "--format", "terminal,html,markdown"]) == 0
    assert GOAL in capsys.readouterr().out
    assert (whole.path / "agent.md").read_text(encoding="utf-8") == whole.to_markdown()
    assert cli(["report", str(whole.path), "--format", "junit"]) == 2
    assert cli(["report", str(whole.path), "--fail-on", "shown"]) == 2
    assert "is about one run" in " ".join(capsys.readouterr().err.split())
