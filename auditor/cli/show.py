"""``audit show RUN [ID]``: one finding, variant or case, its prompts and answers."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer

from auditor.cli import common
from auditor.cli.common import find_intact, invoke

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
Id = Annotated[str, typer.Argument(metavar="ID", help="A finding (F001), a variant or a case of RUN.")]
AnyId = Annotated[
    str | None, typer.Argument(metavar="ID", help="A finding (F001), a variant or a case; without: a list of findings.")
]


@app.command()
def show(run: common.RunArgument, id: AnyId = None, waivers: common.WaiversFile = None) -> int:
    """Show one finding, variant or case of RUN: its prompts, answers and edits, and what a judge said of them."""
    from auditor.core.record import read
    from auditor.report.finding import list_findings, render_finding
    from auditor.run.opinions import opinion
    from auditor.run.result import load
    from auditor.store.folder import RunFolder

    path = find_intact(run)
    record = common.with_waivers(RunFolder.open(path).record(), waivers)
    if id is None:
        sys.stdout.write(list_findings(read(record), **common.screen()))
        return 0
    if read(record).spec.kind == "tabular":
        from auditor.report.tabular import finding_text

        sys.stdout.write(finding_text(read(record), id, **common.screen()))
        return 0
    result = load(path)
    result.record.update(common.with_waivers(result.record, waivers))
    judged = partial(opinion, result.record, result.evidence)
    sys.stdout.write(render_finding(read(result.record), result.evidence, id, judged=judged, **common.screen()))
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "show", argv)
