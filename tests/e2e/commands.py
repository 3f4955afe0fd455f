"""The command in this process: what it prints and how it ends."""

from __future__ import annotations

import shlex

import pytest

from auditor.cli.main import run

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def said(capsys: Capture, *argv: object) -> tuple[int, str]:
    """Exit code of a command (a line, or its words), and what it prints, as one line."""
    words = shlex.split(str(argv[0])) if len(argv) == 1 else list(map(str, argv))
    capsys.readouterr()
    code = run(words)
    captured = capsys.readouterr()
    return code, " ".join((captured.out + captured.err).split())
