"""``audit cache``: show or clear the response cache."""

from __future__ import annotations

import sys

import typer

from auditor.cli import common
from auditor.cli.common import invoke
from auditor.core.counting import plural

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)


@app.command("show")
def show() -> int:
    """Say where the response cache is and how much it holds."""
    from auditor.models.cache import Cache

    stats = Cache().stats()
    common.say(stats.path, f"{plural(stats.entries, 'answer')}, {plural(stats.size_bytes, 'byte')}")
    return 0


@app.command("clear")
def clear() -> int:
    """Delete every cached answer; run folders keep theirs."""
    from auditor.models.cache import Cache

    Cache().clear()
    sys.stdout.write("The response cache is empty.\n")
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code; without a word after it, ``show``."""
    return invoke(app, "cache", argv or ["show"])
