"""``audit mcp``: the operations of an agent for a client of the Model Context Protocol, over stdin and stdout."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from auditor.cli import common
from auditor.cli.common import invoke
from auditor.cli.options import takes
from auditor.cli.progress import Draw
from auditor.cli.spending import agree
from auditor.core.plan import Plan

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@takes("agent", Plan)
def mcp(
    goal: Annotated[str, typer.Argument(metavar="GOAL", help="What the audits are about, in plain words.")],
    yes: common.Yes = False,
    **options: object,
) -> int:
    """Serve estimate, run, findings, show and report to a client; all runs share one budget, and each step is kept."""
    from auditor import agent as agents

    given: dict[str, Any] = {"model" if n == "models" else n: v for n, v in options.items()}
    chosen = Plan.of(options)
    # The client cannot be asked: without a limit, a model that may cost money is refused.
    agree(
        chosen.models,
        limited=chosen.limited,
        yes=yes,
        check=lambda: agents.parse(goal, task=given.get("task")),
        show=lambda: "",
    )
    result = agents.serve(goal, observe=Draw(), **given)
    return 0 if result.complete else 3


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "mcp", argv)
