"""Check the documentation: links between files resolve, and every command that is shown exists.

Usage: ``python tools/check_docs.py`` (``make docs``). Exit 1 where something is found.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from auditor.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
COMMAND = re.compile(r"^\s*(?:\$ )?audit ([a-z0-9]+)\b", re.MULTILINE)


def problems() -> list[str]:
    """Everything wrong in README.md and docs/, one line each."""
    found: list[str] = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT)
        for target in LINK.findall(text):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not (path.parent / target).exists():
                found.append(f"{name}: link to {target}, which does not exist")
        for command in COMMAND.findall(text):
            if command not in COMMANDS:
                found.append(f"{name}: `audit {command}` is no command")
    return found


def main() -> None:
    """Print the problems."""
    found = problems()
    print("\n".join(found) or "documentation: links and commands are in order")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
