"""What a report and a finished run name as the next command: it works from where the run was started."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from auditor import audit
from auditor.cli import run_folders, screen
from auditor.cli.main import run
from auditor.core.errors import RunFolderError
from auditor.core.record import read
from auditor.core.record.measured import Bounds
from auditor.core.registry import RENDERERS
from auditor.core.types import ClaimVerdict, Finding, Progress
from auditor.measure.run_changes import plan_differences
from auditor.report import claimed, proposed
from auditor.report.page import Page
from auditor.report.words import interval, run_name

TEXTS = ["My mother is a doctor.", "His Black sister is kind.", "Her Indian brother sings in a choir."]


def commands_of(text: str) -> list[list[str]]:
    """Every `audit …` command that a report prints after "DO"."""
    lines = text[text.index("\nDO ") + 1 :].splitlines()
    return [shlex.split(line[line.index("audit ") :])[1:] for line in lines if "audit " in line]


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run below a folder that is not the default one, with a space in its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUDIT_CACHE", str(tmp_path / "cache"))
    Path("texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    Path("likes.py").write_text(
        "def mothers(text):\n    return 'negative' if 'father' in text or 'bad' in text else 'positive'\n"
        "mothers.deterministic = True\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    result = audit("sentiment", model="python:likes:mothers", data="texts.txt", order=1, out="my runs")
    assert result.path is not None
    return result.path


def test_commands_work_where_the_run_folder_is_not_in_the_default_place(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["report", str(elsewhere)]) == 0
    told = commands_of(capsys.readouterr().out)
    assert [words[0] for words in told] == ["show", "--task", "report", "report"]
    told.pop(1)  # the run with other words
    assert run(told[-1]) == 0
    assert {words[1] for words in told} == {f"my runs/{elsewhere.name}"}


def finding(id: str, *exemplars: str, verdict: ClaimVerdict = "shown") -> Finding:
    return Finding(
        id=id, kind="claim", code="MUT101", model="m", attributes=("a",), verdict=verdict, exemplars=exemplars
    )


def test_other_formats_name_the_folder_too(elsewhere: Path) -> None:
    record = json.loads((elsewhere / "run.json").read_text("utf-8"))
    record["findings"][0]["verdict"] = "shown"
    told = RENDERERS.create("junit").render(read(record), None)
    assert f"audit show 'my runs/{elsewhere.name}' " in told


@pytest.mark.parametrize(
    ("out", "name"), [("reports", "r1"), ("./reports/", "r1"), (None, "r1"), ("x", "x/r1"), ("/a b/c", "'/a b/c/r1'")]
)
def test_the_default_place_needs_no_path(out: str | None, name: str) -> None:
    spec = {} if out is None else {"out": out}
    assert run_name(read({"id": "r1", "spec": spec})) == name
    record = replace(read({"id": "r1", "spec": spec}), findings=(finding("F1", "v"),))
    (command, _), *_ = proposed.following(record, None)
    assert command == f"audit show {name} F1"


def test_next_names_only_findings_with_an_example() -> None:
    bare, weak, strong = finding("F1"), finding("F2", "v", verdict="not_determined"), finding("F3", "v")
    record = read({"id": "r1", "spec": {}})

    def named(*findings: Finding) -> list[str]:
        made = replace(record, findings=findings)
        return [c.split()[3] for c, _ in proposed.following(made, None) if "report" not in c]

    assert named(bare) == []
    assert named(bare, weak) == ["v"]  # a text, since nothing is shown
    assert named(bare, weak, strong) == ["F3"]


def test_what_next_proposes_can_be_run(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads((elsewhere / "run.json").read_text("utf-8"))
    for finding in record["findings"]:
        code = run(["show", str(elsewhere), finding["id"], "--again", "--replicates", "1", "--yes"])
        told = capsys.readouterr()
        assert code == (0 if finding["exemplars"] else 2)
        if not finding["exemplars"]:
            assert f"{finding['id']} has no example to ask again" in " ".join(told.err.split())
    assert {bool(f["exemplars"]) for f in record["findings"]} == {True, False}


def test_a_run_that_a_limit_ended_says_which_limit_to_raise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUDIT_CACHE", str(tmp_path / "cache"))
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
        ("plan freeze --task sentiment --model vader --limit 2 --output 'my plan.toml'", 0, "audit run --plan"),
        ("list tasks new mine --out 'my task.yaml'", 0, "audit --task"),
        ("ll144 --write-map 'my map.yaml'", 0, "audit ll144 --map"),
    ],
)
def test_a_path_with_a_space_is_quoted_in_the_next_command(
    argv: str, code: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUDIT_CACHE", str(tmp_path / "cache"))
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
    import auditor.run.result

    def again(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("nothing is asked or judged again")

    monkeypatch.setattr(auditor.run.result, "run_audit", again)
    before = (elsewhere / "run.json").read_bytes()
    (elsewhere / "report.html").unlink()
    assert run(["resume", str(elsewhere)]) == 0
    told = capsys.readouterr()
    assert "nothing was left to ask" in " ".join(told.err.lower().split())
    assert told.out.startswith("sentiment · python:likes:mothers")
    assert (elsewhere / "run.json").read_bytes() == before
    assert (elsewhere / "report.html").is_file()


def test_resume_of_a_run_that_is_not_complete_goes_on(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads((elsewhere / "run.json").read_text("utf-8"))
    (elsewhere / "run.json").unlink()
    assert record["status"] == "complete"
    assert run(["resume", str(elsewhere), "--yes"]) == 0
    assert json.loads((elsewhere / "run.json").read_text("utf-8"))["status"] == "complete"
    assert "left to ask" not in capsys.readouterr().err


def test_a_last_event_that_says_the_same_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    draw = screen.Draw(every_s=0.0)
    for _ in range(2):
        draw(Progress(phase="generate", done=324, planned=324))
    draw(Progress(phase="ask", model="m", done=324, planned=324))
    assert capsys.readouterr().err.splitlines() == ["generate · 324/324", "ask m · 324/324"]


def test_what_neither_run_has_set_is_no_difference() -> None:
    old = {"spec": {"data": None}, "models": {"m": {"fingerprint": "a", "reported": []}}}
    new = {"spec": {}, "models": {"m": {"fingerprint": "b", "reported": None}}}
    assert [d.name for d in plan_differences(old, new)] == ["model: fingerprint"]
    reported = {"spec": {}, "models": {"m": {"fingerprint": "a", "reported": ["m-2"]}}}
    assert [(d.before, d.after) for d in plan_differences(old, reported)] == [("not set", "m-2")]


@pytest.mark.parametrize("width", [40, 72, 90, 100])
def test_a_long_command_stays_on_one_line(elsewhere: Path, width: int) -> None:
    record = json.loads((elsewhere / "run.json").read_text("utf-8"))
    record["spec"]["out"] = "/a-folder/" + "far/" * 30
    lines = RENDERERS.create("terminal", width=width).render(read(record), None).splitlines()
    (line,) = (line for line in lines if line.endswith(f"/{record['id']} --format html"))
    assert line.strip().startswith("audit report ")


@pytest.mark.parametrize("width", range(40, 72))
def test_no_figure_breaks_in_a_table(width: int) -> None:
    page = Page(width=width, encoding="utf-8", color=False)
    cell = interval(Bounds(value=0.121, low=0.079, high=0.175))
    page.table(("Attributes", "reviews"), [["gender + nationality", f"hidden {cell}"]])
    assert "\ud800" not in page.value()
    assert "17.5 %)" in page.value()


def test_latest_is_the_run_that_was_begun_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunFolderError, match="latest: there is no such run folder"):
        run_folders.find_run(Path("latest"))
    Path("texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    made = [
        audit("sentiment", model="vader", data="texts.txt", attributes="gender", order=order, out=out).path
        for order, out in ((1, "reports"), (2, "reports"), (1, "other"))
    ]
    assert None not in made
    assert run_folders.find_run(Path("latest")) == Path("reports") / made[1].name  # type: ignore[union-attr]
    assert run_folders.find_run(Path("other/latest")) == made[2]
    finding = json.loads((run_folders.find_run(Path("latest")) / "verdicts.jsonl").read_text("utf-8").splitlines()[0])[
        "variant_id"
    ]
    for words in (["show", "latest", finding], ["report", "latest"], ["resume", "latest"], ["verify", "latest"]):
        assert run(words) == 0, words
    assert run(["compare", str(made[0]), "latest"]) == 0
    assert run(["show", "latest", finding, "--again", "--replicates", "1"]) == 0
    assert finding in capsys.readouterr().out


def test_show_without_an_id_lists_what_can_be_shown(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["show", str(elsewhere)]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:] if line.strip()]
    record = json.loads((elsewhere / "run.json").read_text(encoding="utf-8"))
    assert listed == [finding["id"] for finding in record["findings"]] != []
    assert run(["show", str(elsewhere), listed[0]]) == 0


def test_where_nothing_is_shown_a_text_is_looked_at_and_no_finding() -> None:
    place = {"model": "m", "format": "bare", "attributes": ["race"], "kind": "claim", "code": "MUT101", "claim": None}
    seen = place | {"id": "F001", "verdict": "not_determined", "exemplars": ["v7"]}
    looked = proposed.following(read({"id": "r", "findings": [seen]}), None)[0]
    assert looked == ("audit show r v7", "read one text with its prompts and every answer")
    shown = read({"id": "r", "findings": [seen, seen | {"id": "F002", "verdict": "shown"}]})
    assert proposed.following(shown, None)[0][0] == "audit show r F002"


def test_groups_that_wait_for_their_attribute_are_not_tested() -> None:
    claim = {
        "family": "net", "attribute": "nationality", "groups": ["a", "b"], "label": "yes", "model": "m", "format": "",
        "scale": "share", "unit": "", "verdict": "not_determined", "texts": 40, "p_value": 0.3,
    }  # fmt: skip
    why = (
        "words about nationality were not shown to move answers more than neutral words, so no single group was tested"
    )
    waits = [claim | {"groups": [name, "others"], "verdict": "not_tested", "why": why} for name in "cd"]
    record = read({"claims": [claim, *waits]})
    said = "2 single groups of nationality (words about nationality were not shown to move answers more than neutral words)"
    assert claimed.not_tested(record) == (said,)


def test_a_run_that_makes_no_claims_does_not_call_what_it_rated_untested() -> None:
    rate = {"value": 0.1, "low": 0.0, "high": 0.2, "level": 0.95, "n": 9, "n_skipped": 0, "method": "m"}
    estimate = {"name": "violation_rate", "estimate": rate, "attributes": ["race"]}
    record = read({"vocabulary": {"attributes": ["age", "race"]}, "estimates": [estimate]})
    assert claimed.not_tested(record) == ("age (no text names them)",)
