"""The command in this process: what it prints and how it ends."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from auditor.cli.main import run

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
ROOT = Path(__file__).parents[2]
AXE = Path(os.environ.get("AXE") or ROOT / ".venv/node/node_modules/axe-core/axe.min.js")


def said(capsys: Capture, *argv: object) -> tuple[int, str]:
    """Exit code of a command (a line, or its words), and what it prints, as one line."""
    code, out, err = both(capsys, *argv)
    return code, " ".join((out + err).split())


def tells(capsys: Capture, argv: str | list[Any], *parts: str, code: int = 0) -> str:
    """What a command prints, as one line; it must end with ``code`` and say all of ``parts``."""
    ended, text = said(capsys, *([argv] if isinstance(argv, str) else argv))
    assert ended == code, text
    missing = [part for part in parts if part not in text]
    assert missing == [], text
    return text


def only(pattern: str) -> Path:
    """The one file or folder below the working folder that fits."""
    (path,) = Path().glob(pattern)
    return path


def both(capsys: Capture, *argv: object) -> tuple[int, str, str]:
    """Exit code of a command (a line, or its words), and what it prints on each stream."""
    capsys.readouterr()
    code = run(shlex.split(str(argv[0])) if len(argv) == 1 else list(map(str, argv)))
    return code, *capsys.readouterr()


def proposed(screen: str) -> list[list[str]]:
    """Every command that a report names after "DO", in words."""
    lines = screen[screen.index("\nDO ") :].splitlines()
    return [shlex.split(line[line.index("audit ") :])[1:] for line in lines if "audit " in line]


def keys(*names: str) -> None:
    """Pairs of keys to sign with: NAME.pem and NAME.pub in the folder where the test stands."""
    pytest.importorskip("cryptography", reason="the extra sign is not installed")
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ed25519

    for name in names:
        key = ed25519.Ed25519PrivateKey.generate()
        private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
        Path(f"{name}.pem").write_bytes(private)
        public = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        Path(f"{name}.pub").write_bytes(public)
