"""``audit watch DIR``: a series of runs of one plan, and whether the model changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from auditor.cli import common, pages
from auditor.cli.common import invoke
from auditor.cli.options import option

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
FAIL_ON = ("changed", "never")


@app.command()
def watch(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of the runs (--out of audit run --plan F).")
    ],
    format: pages.Format = "terminal",
    out: Annotated[Path | None, option("out", help="Write it here instead of printing it.")] = None,
    fail_on: Annotated[str | None, option("fail_on", help="Exit 1 on: changed (at the last run); never.")] = None,
) -> int:
    """Follow the runs in DIR that have one plan: figures by date, and changes found at any number of looks."""
    from auditor.core.errors import ConfigError
    from auditor.report import watched
    from auditor.run.watch import watch as follow

    format = pages.checked(format)
    if fail_on is not None and fail_on not in FAIL_ON:
        raise ConfigError(f"--fail-on of watch takes {', '.join(FAIL_ON)}; got {fail_on!r}.")
    found = follow(folder)
    pages.put(found.as_record(), format, watched.build(found), out)
    if fail_on is None:
        return 0
    holds = fail_on == "changed" and found.changed
    sys.stdout.flush()
    common.say(f"--fail-on: {fail_on}: {'holds' if holds else 'does not hold'}", to=sys.stderr)
    return int(holds)


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "watch", argv)
