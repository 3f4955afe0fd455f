"""Progress lines, exit codes, and one clear paragraph for every mistake."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from commands import Capture, Patch, both, said

from auditor import audit
from auditor.cli.main import COMMANDS, command, main, overview, run
from auditor.core.errors import PluginError


def test_every_command_is_in_the_overview_and_loads() -> None:
    for name, (_, text) in COMMANDS.items():
        assert f"  {name:<12}{text}" in overview(whole=True)
        assert callable(command([name, "--help"])[0])
    assert sum(f"  {name:<12}" in overview() for name in COMMANDS) == 8
    assert "more: audit help" in overview()


def test_alone_it_runs_what_the_settings_say_or_tells_what_is_missing(place: Path, capsys: Capture) -> None:
    code, out, err = both(capsys, "")
    assert (code, out) == (2, "")
    assert "audit.toml" in err
    assert "Run: audit --task sentiment" in err
    Path("audit.toml").write_text('task = "sentiment"\nmodel = "vader"\nlimit = 3\nout = "mine"\n')
    assert run([]) == 0
    assert capsys.readouterr().out.startswith("sentiment · ")
    assert list(Path("mine").iterdir())


@pytest.mark.parametrize("model", ["openai:x --base-url http://127.0.0.1:9/v1", "'exec:python program.py'"])
def test_without_a_terminal_no_money_is_spent_without_consent_or_limit(
    model: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    Path("program.py").write_text("raise SystemExit('it was started')\n")
    for words in ("--task sentiment --limit 3", "agent 'Do film reviews treat older women differently?'"):
        code, out, err = both(capsys, f"{words} --model {model}")
        assert (code, out) == (2, "")
        assert all(told in err for told in ("may cost money", "--yes", "--max-calls"))
        assert not Path("reports").exists()


def test_help_and_version_exit_0(capsys: Capture) -> None:
    for line in (*(f"{name} --help" for name in sorted(COMMANDS)), "-h", "help", "--version"):
        code, told = said(capsys, line)
        assert code == 0, line
        assert "sage" in told or "audit" in told
        assert "\\b" not in told


def test_a_command_of_several_words_lists_by_itself(capsys: Capture) -> None:
    for name in ("tasks", "grammars", "dictionaries", "dictionaries check", "cache", "models", "plugins"):
        code, out, err = both(capsys, f"list {name}")
        assert (code, bool(out), err) == (0, True, ""), name


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (KeyboardInterrupt(), 130, "audit: Interrupted.\n"),
        (OSError(28, "No space left on device", "reports/x"), 2, "audit: No space left on device: reports/x.\n"),
    ],
)
def test_what_ends_a_command_is_one_line(
    error: BaseException, code: int, told: str, monkeypatch: Patch, capsys: Capture
) -> None:
    def ended(*_: object) -> int:
        raise error

    monkeypatch.setattr("auditor.cli.frame.invoke", ended)
    assert run(["list", "tasks"]) == code
    assert capsys.readouterr().err == told


def printed(argv: list[str], monkeypatch: Patch) -> bytes:
    """What a command that ends well prints on a terminal of ASCII alone."""
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    with pytest.raises(SystemExit) as ended:
        main(argv)
    sys.stdout.flush()
    assert ended.value.code == 0
    return out.getvalue()


@pytest.mark.parametrize("argv", [["show", "hidden"], ["list", "tasks", "format"], ["list", "grammars", "format"]])
def test_a_terminal_that_lacks_a_sign_gets_a_stand_in(argv: list[str], monkeypatch: Patch) -> None:
    assert b"\\u20" in printed(argv, monkeypatch)


def test_a_report_printed_as_a_file_is_utf_8_on_every_terminal(place: Path, monkeypatch: Patch) -> None:
    result = audit("sentiment", model="vader", data=["My mother is a doctor."], order=1, out="runs")
    page = printed(["report", str(result.path), "--format", "html", "--out", "-"], monkeypatch)
    assert (page.isascii(), page.decode("utf-8").rstrip().endswith("</html>")) == (False, True)


@pytest.mark.parametrize(
    "error", [ValueError("odd\nvalue"), MemoryError(), RecursionError("deep"), PluginError("acme: broke")]
)
def test_a_crash_exits_70_with_one_line_and_the_place_of_its_traceback(
    error: Exception, monkeypatch: Patch, capsys: Capture, tmp_path: Path
) -> None:
    def broken(*_: object) -> int:
        raise error

    monkeypatch.setattr("auditor.cli.frame.invoke", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run(["list", "tasks"]) == 70
    (kept,) = tmp_path.glob("audit-traceback-*.txt")
    assert "in broken" in kept.read_text()
    told = " ".join(capsys.readouterr().err.split())
    assert told.endswith(str(kept))
    assert "Traceback (most recent" not in told
