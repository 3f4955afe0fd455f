"""``audit show RUN ID``: one finding or variant, its prompts and answers."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from auditor.cli import common
from auditor.cli.common import find_run, invoke

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
Id = Annotated[str, typer.Argument(metavar="ID", help="A finding (F001) or a variant id of RUN.")]


@app.command()
def show(run: common.RunArgument, id: Id) -> int:
    """Show one finding or variant of RUN: its prompts, answers and edits."""
    from auditor.render.terminal import render_finding
    from auditor.result import load

    result = load(find_run(run))
    sys.stdout.write(render_finding(result.record, result.evidence, id))
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "show", argv)
