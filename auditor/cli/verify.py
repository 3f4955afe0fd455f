"""``audit verify RUN``: check a run folder's hash chains."""

from __future__ import annotations

import sys

import typer

from auditor.cli import common
from auditor.cli.common import find_run, invoke

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def verify(run: common.RunArgument) -> int:
    """Check that no line of RUN's journals was changed, removed or moved. Exit 1 where one was."""
    from auditor.store.verify import verify_folder

    path = find_run(run)
    problems = verify_folder(path)
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    if not problems:
        sys.stdout.write(
            f"{path}: every line of plan, cases, prompts, responses and verdicts is as it was written.\n"
        )
    return 1 if problems else 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "verify", argv)
