"""``audit explain [CODE]``: what a code in a report means, in plain words."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from auditor.cli.common import invoke

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
Code = Annotated[
    str | None, typer.Argument(metavar="[CODE]", help="A code or word of a report; none lists all of them.")
]


@app.command()
def explain(code: Code = None) -> int:
    """Explain a code of a report: of a finding, verdict, estimate, failed call, discarded variant."""
    from auditor.core import explain as pages

    sys.stdout.write(pages.overview() if code is None else pages.explain(code))
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "explain", argv)
