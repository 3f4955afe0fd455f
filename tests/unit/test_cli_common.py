"""Progress lines, exit codes, and one clear paragraph for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.cli import common
from auditor.cli.main import COMMANDS, overview, run
from auditor.types import Progress


def test_every_command_is_in_the_overview_and_loads() -> None:
    import importlib

    for name, (module, text) in COMMANDS.items():
        assert f"  {name:<12}{text}" in overview()
        assert callable(importlib.import_module(module).command)


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"], ["--version"]])
def test_help_and_version_exit_0(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 0
    assert "audit" in capsys.readouterr().out


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert "Usage" in capsys.readouterr().out


def test_an_unknown_command_offers_a_near_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reprot"]) == 2
    assert "report" in capsys.readouterr().err


def test_a_line_of_progress_tells_what_matters() -> None:
    event = Progress(phase="ask", model="m", done=50, planned=200, cached=10, failed=2, cost_usd=0.25)
    line = common.describe(event, 10.0)
    for part in ("ask m", "50/200", "10 cached", "2 failed", "$0.2500", "30 s left"):
        assert part in line


def test_without_a_terminal_progress_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    draw = common.Draw(every_s=0.0)
    for done in range(3):
        draw(Progress(phase="ask", model="m", done=done + 1, planned=3))
    err = capsys.readouterr().err
    assert "\r" not in err
    assert err.endswith("ask m · 3/3\n")


def test_interrupted_exits_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import auditor.cli.tasks as tasks

    def stop(argv: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "command", stop)
    assert run(["tasks", "list"]) == 130
    assert "resume" in capsys.readouterr().err


def test_a_full_disk_is_one_paragraph(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import errno

    import auditor.cli.tasks as tasks

    def full(argv: list[str]) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "reports/x")

    monkeypatch.setattr(tasks, "command", full)
    assert run(["tasks", "list"]) == 2
    err = capsys.readouterr().err
    assert "No space left" in err
    assert "reports/x" in err


def test_finding_a_run_by_name_or_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from auditor.errors import RunFolderError

    (tmp_path / "reports" / "r1").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert common.find_run(Path("r1")) == Path("reports/r1")
    with pytest.raises(RunFolderError, match="no such run folder"):
        common.find_run(Path("r2"))


def test_a_command_to_run_is_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    from auditor.cli.main import complain

    line = 'pip install "llm-bias-auditor[datasets]" --and-something-long'
    complain(f"{'A long explanation of what is missing. ' * 4}Run: {line}")
    assert f"Run: {line}" in capsys.readouterr().err.splitlines()
