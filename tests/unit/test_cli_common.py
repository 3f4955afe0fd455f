"""Progress lines, exit codes, and one clear paragraph for every mistake."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path

import pytest

from auditor import audit
from auditor.cli import run_folders, screen
from auditor.cli.main import COMMANDS, command, main, overview, run
from auditor.core.errors import PluginError, UnknownPlugin
from auditor.core.types import Progress


def test_every_command_is_in_the_overview_and_loads() -> None:
    for name, (_, text) in COMMANDS.items():
        assert f"  {name:<12}{text}" in overview(whole=True)
        assert callable(command(name))
    assert len(COMMANDS) <= 18
    assert sum(f"  {name:<12}" in overview() for name in COMMANDS) == 8
    assert "more: audit help" in overview()


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["help"], ["--version"]])
def test_help_and_version_exit_0(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 0
    assert "audit" in capsys.readouterr().out


def test_alone_it_runs_what_the_settings_say_or_tells_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run([]) == 2
    told = capsys.readouterr()
    assert not told.out
    assert "audit.toml" in told.err
    assert "Run: audit --task sentiment" in told.err
    Path("audit.toml").write_text('task = "sentiment"\nmodel = "vader"\nlimit = 3\nout = "mine"\n')
    assert run([]) == 0
    assert capsys.readouterr().out.startswith("sentiment · ")
    assert list(Path("mine").iterdir())


@pytest.mark.parametrize("model", ["openai:x --base-url http://127.0.0.1:9/v1", "'exec:python program.py'"])
def test_without_a_terminal_no_money_is_spent_without_consent_or_limit(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    Path("program.py").write_text("raise SystemExit('it was started')\n")
    assert run(["--task", "sentiment", "--limit", "3", *shlex.split(f"--model {model}")]) == 2
    told = capsys.readouterr()
    assert "may cost money" in told.err
    assert "--yes" in told.err
    assert "--max-calls" in told.err
    assert not told.out
    assert not Path("reports").exists()
    for words in (["agent", "Do film reviews treat older women differently?"],):
        assert run([*words, *shlex.split(f"--model {model}")]) == 2
        assert "may cost money" in capsys.readouterr().err
        assert not Path("reports").exists()


def test_what_is_not_known_to_be_local_may_cost() -> None:
    from auditor.models import may_cost
    from auditor.models.catalogue import KINDS

    local = {k.spec.partition(":")[0] for k in KINDS if not may_cost(k.spec)}
    assert local == {"reviews", "vader", "textblob", "rules", "hf", "smollm2", "sklearn", "python", "recorded"}
    assert all(may_cost(spec) for spec in ("langchain:ollama:m", "http:f.yaml", "exec:./ask"))
    with pytest.raises(UnknownPlugin):
        may_cost("a-plugin:x")


@pytest.mark.parametrize(("limited", "yes"), [(True, False), (False, True)])
def test_a_limit_or_yes_is_consent(limited: bool, yes: bool) -> None:
    def never() -> str:
        raise AssertionError("nothing is asked")

    run_folders.agree(["openai:x"], limited=limited, yes=yes, check=never, show=never)
    run_folders.agree(["vader", None], limited=False, yes=False, check=never, show=never)
    with pytest.raises(UnknownPlugin, match="Did you mean openai"):
        run_folders.agree(["opnai:x"], limited=False, yes=False, check=never, show=never)


def test_a_plan_that_can_decide_nothing_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["--task", "sentiment", "--model", "vader", "--limit", "10", "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "This plan can decide nothing from labels" in told
    assert "Assumed: half of the answers are favourable" in told


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    told = capsys.readouterr().out
    assert "Usage" in told
    assert "\\b" not in told


@pytest.mark.parametrize("command", ["tasks", "grammars", "dictionaries", "cache", "models", "plugins"])
def test_a_command_of_several_words_lists_by_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", command]) == 0
    told = capsys.readouterr()
    assert told.out
    assert told.err == ""


def test_an_unknown_command_offers_a_near_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reprot"]) == 2
    assert "report" in capsys.readouterr().err


def test_a_line_of_progress_tells_what_matters() -> None:
    event = Progress(phase="ask", model="m", done=50, planned=200, cached=10, failed=2, cost_usd=0.25)
    line = screen.describe(event, 10.0)
    for part in ("ask m", "50/200", "10 cached", "2 failed", "$0.2500", "30 s left"):
        assert part in line


def test_without_a_terminal_progress_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    draw = screen.Draw(every_s=0.0)
    for done in range(3):
        draw(Progress(phase="ask", model="m", done=done + 1, planned=3))
    err = capsys.readouterr().err
    assert "\r" not in err
    assert err.endswith("ask m · 3/3\n")


def test_another_run_of_a_session_begins_anew(capsys: pytest.CaptureFixture[str]) -> None:
    draw = screen.Draw(every_s=0.0)
    for done in (40, 2, 4):
        draw(Progress(phase="ask", model="m", done=done, planned=50))
    assert "-" not in capsys.readouterr().err


def test_interrupted_exits_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import auditor.cli.frame as frame

    def stop(target: object, name: str, argv: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(frame, "invoke", stop)
    assert run(["list", "tasks"]) == 130
    assert capsys.readouterr().err == "audit: Interrupted.\n"


@pytest.mark.parametrize(
    ("argv", "place"),
    [
        (["tabular", "--task", "lending", "--model", "vader"], "auditor.tables.tabular_run.audit_table"),
        (["run", "--task", "sentiment"], "auditor.run.result.in_folder"),
    ],
)
def test_interrupted_before_anything_was_written_offers_no_command(
    argv: list[str], place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, stop)
    assert run(argv) == 130
    assert capsys.readouterr().err == "audit: Interrupted.\n"


def test_a_full_disk_is_one_paragraph(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import errno

    import auditor.cli.frame as frame

    def full(target: object, name: str, argv: list[str]) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "reports/x")

    monkeypatch.setattr(frame, "invoke", full)
    assert run(["list", "tasks"]) == 2
    err = capsys.readouterr().err
    assert "No space left" in err
    assert "reports/x" in err


@pytest.mark.parametrize("argv", [["show", "hidden"], ["list", "tasks", "format"], ["list", "grammars", "format"]])
def test_a_terminal_that_lacks_a_sign_gets_a_stand_in(argv: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="ascii"))
    with pytest.raises(SystemExit) as ended:
        main(argv)
    sys.stdout.flush()
    assert ended.value.code == 0
    assert b"\\u20" in printed.getvalue()


def test_a_report_printed_as_a_file_is_utf_8_on_every_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = audit("sentiment", model="vader", data=["My mother is a doctor."], order=1, out="runs")
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="ascii"))
    assert run(["report", str(result.path), "--format", "html", "--out", "-"]) == 0
    sys.stdout.flush()
    assert not printed.getvalue().isascii()
    assert printed.getvalue().decode("utf-8").rstrip().endswith("</html>")


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["run", "--limit", "x"], "as an integer. See: audit run --help"),
        (["run", "--limmit", "3"], "Did you mean --limit? See: audit run --help"),
    ],
)
def test_a_usage_error_is_a_sentence_of_its_own(argv: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_finding_a_run_by_name_or_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from auditor.core.errors import RunFolderError

    (tmp_path / "reports" / "r1").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert run_folders.find_run(Path("r1")) == Path("reports/r1")
    with pytest.raises(RunFolderError, match="no such run folder"):
        run_folders.find_run(Path("r2"))


def test_a_command_to_run_is_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    from auditor.cli.screen import complain

    line = 'pip install "llm-bias-auditor[datasets]" --and-something-long'
    complain("A long explanation of what is missing. " * 4, f"Run: {line}")
    assert f"Run: {line}" in capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    "error", [ValueError("odd\nvalue"), MemoryError(), RecursionError("deep"), PluginError("acme: broke")]
)
def test_a_crash_exits_70_with_one_line_and_the_place_of_its_traceback(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(target: object, name: str, argv: list[str]) -> int:
        raise error

    monkeypatch.setattr("auditor.cli.frame.invoke", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run(["list", "tasks"]) == 70
    (kept,) = tmp_path.glob("audit-traceback-*.txt")
    assert "in broken" in kept.read_text()
    told = " ".join(capsys.readouterr().err.split())
    assert told.endswith(str(kept))
    assert "Traceback (most recent" not in told


def test_run_records_that_were_changed_by_hand_do_not_read_as_findings(tmp_path: Path) -> None:
    audit("sentiment", model="vader", data=["My aunt sang."], out=tmp_path)
    (folder,) = tmp_path.glob("2*")
    for text in ("{}", "[" * 100_000, '{"format_version": 1, "findings": 7}', "\0"):
        (folder / "run.json").write_text(text)
        assert run(["report", str(folder)]) in (2, 70)
