"""Sessions that were cut off: what is refused, and what goes on; killed ones are in tests/e2e/test_kill_kinds.py."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from auditor import agent
from auditor.cli.main import run as cli
from auditor.core.errors import ConfigError, RunFolderError
from tests.asking import GOAL, films

SLOW = """
    import os, pathlib
    def classify(text):
        with open("asked.txt", "a") as file:
            file.write(text + "\\n")
        if os.environ.get("STOP") and len(pathlib.Path("asked.txt").read_text().splitlines()) >= 40:
            raise KeyboardInterrupt
        return "negative" if "woman" in text.split() or "lady" in text.split() else "positive"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with texts and a model; the process stands in it."""
    (tmp_path / "slow_model.py").write_text(textwrap.dedent(SLOW), encoding="utf-8")
    rows = (json.dumps({"id": s.id, "text": s.text}) + "\n" for s in films(32))
    (tmp_path / "texts.jsonl").write_text("".join(rows), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def questions(place: Path) -> int:
    file = place / "asked.txt"
    return len(file.read_text(encoding="utf-8").splitlines()) if file.is_file() else 0


def stopped(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session that Ctrl-C ended in its first run."""
    with monkeypatch.context() as patch:
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
    assert cli(["resume", str(folder)]) == 2  # a program that the folder names
    assert "--model python:slow_model:classify" in capsys.readouterr().err
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
