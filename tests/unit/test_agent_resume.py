"""Sessions that were cut off: what is refused, and what goes on; killed ones are in tests/e2e/test_kill_kinds.py."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from commands import Capture, said

from auditor import agent
from auditor.core.errors import ConfigError, RunFolderError
from tests.asking import GOAL, films, json_lines

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
    json_lines(tmp_path / "texts.jsonl", ({"id": s.id, "text": s.text} for s in films(32)))
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


def test_a_session_in_which_something_was_changed_and_other_settings_are_refused_and_leave_it_as_it_is(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    folder = stopped(place, monkeypatch)
    before, asked = (folder / "session.json").read_bytes(), questions(place)
    code, told = said(capsys, f"resume {folder}")
    assert (code, "--model python:slow_model:classify" in told) == (2, True)  # a program that the folder names
    code, told = said(capsys, f"resume {folder} --yes --max-calls 3")
    assert (code, "leave out --max-calls" in told) == (2, True)
    for name in ("responses.jsonl", "steps.jsonl"):
        path = next(folder.rglob(name))
        kept = path.read_bytes()
        path.write_bytes(kept.replace(b"e", b"a", 1))
        code, told = said(capsys, f"resume {folder} --yes")
        assert (code, "is not as it was written" in told) == (2, True)
        path.write_bytes(kept)
    (place / "texts.jsonl").write_text('{"text": "A man slept."}\n', encoding="utf-8")
    with pytest.raises(RunFolderError, match="The texts changed"):
        agent.resume(folder)
    assert ((folder / "session.json").read_bytes(), questions(place)) == (before, asked)


def test_ctrl_c_leaves_a_session_that_can_go_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def model(text: str) -> str:
        calls.append(text)
        if len(calls) == 70:
            raise KeyboardInterrupt
        return "negative" if "woman" in text.split() else "positive"

    with pytest.raises(KeyboardInterrupt):
        agent.run(GOAL, model=model, data=films(40), out=place / "out", cache=False)
    (folder,) = (place / "out").iterdir()
    left = agent.load(folder)
    assert (left.record["status"], left.steps[-1]["kind"] == "end") == ("interrupted", False)
    with pytest.raises(ConfigError, match="handed in as an object"):
        agent.resume(folder)
    result = agent.resume(folder, model=model)
    assert result.complete
    assert [r["purpose"] for r in result.record["runs"]][:2] == ["pilot", "fresh"]


def test_a_session_that_ended_is_verified_with_its_runs_and_reported_as_a_run_is(place: Path, capsys: Capture) -> None:
    whole = agent.run(GOAL, model="python:slow_model:classify", data="texts.jsonl", out="whole", cache=False)
    with pytest.raises(ConfigError, match="came to its end"):
        agent.resume(whole.path)
    with pytest.raises(RunFolderError, match="holds no session"):
        agent.resume(whole.path.parent)
    code, told = said(capsys, f"verify {whole.path}")
    assert (code, "its steps, and its 2 runs" in told) == (0, True)
    for path in (whole.path / "steps.jsonl", whole.path / str(whole.session.runs[0].folder) / "responses.jsonl"):
        kept = path.read_bytes()
        path.write_bytes(kept.replace(b"e", b"a", 1))
        code, told = said(capsys, f"verify {whole.path}")
        assert (code, path.name in told) == (1, True)
        path.write_bytes(kept)
    assert said(capsys, f"verify {whole.path} --head {'0' * 64}")[0] == 2
    report = f"report {whole.path}"
    assert json.loads(said(capsys, f"{report} --format json --out -")[1])["id"] == whole.path.name
    assert GOAL in said(capsys, f"{report} --format terminal,html,markdown")[1]
    assert (whole.path / "agent.md").read_text(encoding="utf-8") == whole.to_markdown()
    assert said(capsys, f"{report} --format junit")[0] == 2
    code, told = said(capsys, f"{report} --fail-on shown")
    assert (code, "is about one run" in told) == (2, True)
