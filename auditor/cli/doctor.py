"""``audit doctor --model SPEC``: whether a model can be audited, in a handful of calls."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import common
from auditor.cli.common import invoke
from auditor.cli.options import option, takes
from auditor.core.plan import Plan

if TYPE_CHECKING:
    from auditor.run.doctor import Examined

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)
MARKS = {"ok": "ok", "note": "note", "failed": "FAILED", "skipped": "-"}


@app.command()
@takes("doctor", Plan)
def doctor(
    model: Annotated[str, option("models", help="Model spec (audit models lists the kinds).")],
    task: Annotated[str, option("task", help="Task whose prompts are asked (default: sentiment).")] = "sentiment",
    format: common.Format = "terminal",
    **options: object,
) -> int:
    """Check key, server, model, answers, repeats, log-probabilities, speed and price, in at most 8 calls (and repeats).

    Exit codes: 0 it can be audited; 2 it could not be asked; 3 some calls failed or no answer could be read.
    """
    from auditor.run import doctor as logic

    common.check_format(format)
    plan = Plan.of(options)
    found = logic.examine(
        model,
        task=task,
        base_url=plan.base_url,
        price_in=plan.price_in,
        price_out=plan.price_out,
        server=plan.server(model),
    )
    common.print_as(format, found, _lines)
    return found.exit_code


def _lines(found: Examined) -> list[str]:
    from auditor.report.words import encodable, plural, visible

    encoding = sys.stdout.encoding or "utf-8"
    repeated = f", {found.repeated} of them repeated" if found.repeated else ""
    lines = [f"{visible(found.model)} on the task {found.task}: {plural(found.calls, 'call')}{repeated}", ""]
    for check in found.checks:
        text = visible(check.text, newlines=False)
        lines.append(f"{MARKS[check.status]:<8}{check.name:<18}{text}")
        if check.next:
            lines.append(f"{'':<26}{visible(check.next, newlines=False)}")
    return [encodable(line, encoding) for line in [*lines, "", found.summary]]


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "doctor", argv)
