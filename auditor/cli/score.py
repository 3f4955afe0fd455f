"""``audit score RUN --responses FILE``: judge recorded answers, from any gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auditor.cli import common
from auditor.cli.common import find_text_run, finish, invoke
from auditor.cli.progress import Draw

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def score(
    run: common.RunArgument,
    responses: Annotated[
        Path, typer.Option("--responses", help="JSON lines: prompt_sha256 or variant_id, replicate, output or error.")
    ],
    format: common.Format = "terminal",
    full: common.Full = False,
    fail_on: common.FailOn = None,
) -> int:
    """Judge recorded answers to the prompts of RUN."""
    from auditor.run.result import score as judge

    common.check_format(format)
    return finish(
        judge(find_text_run(run, "score"), responses, observe=Draw()), format=format, fail_on=fail_on, full=full
    )


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "score", argv)
