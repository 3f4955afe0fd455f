"""The next command that a report or a finished run names works; the list of models."""

from __future__ import annotations

import json
import shlex
from importlib.util import find_spec as real
from pathlib import Path

import pytest
from commands import proposed

from auditor import audit
from auditor.cli import run_folders
from auditor.cli.main import run
from auditor.core.errors import RunFolderError
from auditor.core.registry import MODELS
from auditor.models import catalogue

TEXTS = ["My mother is a doctor.", "His Black sister is kind.", "Her Indian brother sings in a choir."]


@pytest.fixture
def elsewhere(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run below a folder that is not the default one, with a space in its name."""
    Path("texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    Path("likes.py").write_text(
        "def mothers(text):\n    return 'negative' if 'father' in text or 'bad' in text else 'positive'\n"
        "mothers.deterministic = True\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(place))
    result = audit("sentiment", model="python:likes:mothers", data="texts.txt", order=1, out="my runs")
    assert result.path is not None
    return result.path


def test_what_next_proposes_can_be_run(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", str(elsewhere)]) == 0
    told = proposed(capsys.readouterr().out)
    assert [words[0] for words in told] == ["show", "report", "report"]
    assert {words[1] for words in told} == {f"my runs/{elsewhere.name}"}
    assert run(told[-1]) == 0
    capsys.readouterr()
    record = json.loads((elsewhere / "run.json").read_text("utf-8"))
    for finding in record["findings"]:
        code = run(["show", str(elsewhere), finding["id"], "--again", "--replicates", "1", "--yes"])
        told = capsys.readouterr()
        assert code == (0 if finding["exemplars"] else 2)
        if not finding["exemplars"]:
            assert f"{finding['id']} has no example to ask again" in " ".join(told.err.split())
    assert {bool(f["exemplars"]) for f in record["findings"]} == {True, False}


def test_a_run_that_a_limit_ended_says_which_limit_to_raise(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    argv = ["--task", "sentiment", "--model", "vader", "--data", "texts.txt", "--order", "1"]
    assert run([*argv, "--max-calls", "9"]) == 3
    (folder,) = Path("reports").glob("2*")
    for limit in (18, 36):
        told = capsys.readouterr()
        go_on = f"audit resume reports/{folder.name} --max-calls {limit}"
        assert f"Go on with: {go_on}\n" in told.err
        assert f"audit resume {folder.name} --max-calls {limit}\n" in told.out
        assert run(shlex.split(go_on)[1:]) == 3
    assert run(["resume", str(folder), "--max-calls", "5000"]) == 0
    assert json.loads((folder / "run.json").read_text("utf-8"))["stopped_by"] is None


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        ("run --task sentiment --model vader --data 'my texts.txt' --max-calls 1 --out 'my runs'", 3, "audit resume"),
        ("generate --task sentiment --data 'my texts.txt' --out 'my runs'", 0, "audit import --generated"),
        ("plan freeze --task sentiment --model vader --limit 2 --output 'my plan.json'", 0, "audit run --plan"),
        ("list tasks new mine --out 'my task.yaml'", 0, "audit --task"),
        ("ll144 --write-map 'my map.yaml'", 0, "audit ll144 --map"),
    ],
)
def test_a_path_with_a_space_is_quoted_in_the_next_command(
    argv: str, code: int, told: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    assert run(shlex.split(argv)) == code
    said = capsys.readouterr()
    (line,) = (line for line in (said.err + said.out).splitlines() if f"{told} " in line and ": " in line)
    path = shlex.split(line.partition(f"{told} ")[2])[0]
    assert path.startswith("my ")
    assert Path(path).exists()


def test_resume_of_a_complete_run_says_that_nothing_was_left(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("auditor.run.result.run_audit", None)  # nothing is asked or judged again
    before = (elsewhere / "run.json").read_bytes()
    (elsewhere / "report.html").unlink()
    assert run(["resume", str(elsewhere)]) == 0
    told = capsys.readouterr()
    assert "nothing was left to ask" in " ".join(told.err.lower().split())
    assert told.out.startswith("sentiment · python:likes:mothers")
    assert (elsewhere / "run.json").read_bytes() == before
    assert (elsewhere / "report.html").is_file()


def test_latest_is_the_run_that_was_begun_last(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunFolderError, match="latest: there is no such run folder"):
        run_folders.find_run(Path("latest"))
    Path("texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    made = [
        audit("sentiment", model="vader", data="texts.txt", attributes="gender", order=order, out=out).path
        for order, out in ((1, "reports"), (2, "reports"), (1, "other"))
    ]
    assert None not in made
    assert run_folders.find_run(Path("latest")) == Path("reports") / made[1].name
    assert run_folders.find_run(Path("other/latest")) == made[2]
    finding = json.loads((run_folders.find_run(Path("latest")) / "verdicts.jsonl").read_text("utf-8").splitlines()[0])[
        "variant_id"
    ]
    for words in (["show", "latest", finding], ["report", "latest"], ["resume", "latest"], ["verify", "latest"]):
        assert run(words) == 0, words
    assert run(["compare", str(made[0]), "latest"]) == 0
    assert run(["show", "latest", finding, "--again", "--replicates", "1"]) == 0
    assert finding in capsys.readouterr().out


SECRET = "sk-0123456789-secret"


def test_every_kind_of_spec_is_listed_with_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = {"torch", "langchain", "langchain_ollama", "httpx"}
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None if name in gone else real(name))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "  ")
    assert run(["list", "models"]) == 0
    out = capsys.readouterr().out
    for name in set(MODELS.names()) - {"planted"}:
        assert f"\n{name}" in f"\n{out}"
    assert "needs torch" in out
    assert 'Run: pip install "llm-bias-auditor[local]"' in out
    assert "Run: pip install httpx" in out
    assert "Run: pip install langchain-ollama" in out
    assert "OPENAI_API_KEY set" in out
    assert "ANTHROPIC_API_KEY not set" in out
    assert SECRET not in out
