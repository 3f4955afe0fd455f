"""``audit validity``: a sheet for two readers, and what they found."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.cli import common
from auditor.cli.common import find_text_run, invoke
from auditor.cli.options import option

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)


@app.command("sample")
def sample(
    run: common.RunArgument,
    out: Annotated[Path, option("out", help="The sheet (.csv); instructions go beside it as .md.")],
    n: Annotated[int, typer.Option("--n", help="How many valid variants are drawn.")] = 100,
    seed: Annotated[int, option("seed")] = 7,
    discarded: Annotated[
        bool, typer.Option("--discarded", help="Mix in as many variants that the automatic check discarded.")
    ] = False,
) -> int:
    """Draw variants of RUN into a sheet for two readers."""
    from auditor.run import review
    from auditor.store.folder import RunFolder

    with RunFolder.open(find_text_run(run, "validity")) as folder:
        folder.require_texts("reading variants")
        rows = review.sample(folder, out, n=n, seed=seed, discarded=discarded)
    lost = sum(row.discarded for row in rows)
    lines = [f"{out}: {len(rows) - lost} valid" + (f" and {lost} discarded variants" if discarded else " variants")]
    if len(rows) - lost < n:
        lines.append(f"{n} were asked for; the run has no more valid ones.")
    if discarded and lost < len(rows) - lost:
        lines.append("The run has no more discarded ones.")
    lines.append(f"Instructions for the readers: {out.with_suffix('.md')}")
    lines.append(f"Then: audit validity import {common.quoted(run)} {common.quoted(out)}")
    common.say(*lines)
    return 0


@app.command("import")
def take_in(
    run: common.RunArgument,
    sheet: Annotated[Path, typer.Argument(metavar="SHEET", help="The filled sheet.")],
    format: common.Format = "terminal",
) -> int:
    """Read the filled SHEET into RUN: share of wrong variants, agreement of the readers."""
    from auditor.run import review
    from auditor.store.folder import RunFolder

    common.check_format(format)
    with RunFolder.open(find_text_run(run, "validity")) as folder:
        result = review.take_in(folder, sheet)
        path = folder.path
    if format == "json":
        sys.stdout.write(json.dumps(result, indent=2) + "\n")
        return 0
    lines = []
    for name in ("valid", "discarded"):
        if (arm := result[name]) is not None:
            lines += _lines(name, arm)
    lines.append(
        f"Written: {path / review.RESULT}. In the report: audit report {common.quoted(path)} --format terminal,html"
    )
    common.say(*lines)
    return 0


def _lines(name: str, arm: dict[str, Any]) -> list[str]:
    from auditor.core.record import part
    from auditor.core.types import Estimate
    from auditor.report.words import interval, percent

    def share(key: str) -> str:
        if not arm[key]:
            return "no row was decided"
        found = part(arm[key], Estimate)
        return f"{interval(found)} of {found.n}"

    kappa = f"{arm['kappa']:.2f}" if arm["kappa"] is not None else f"undefined ({arm['kappa_reason']})"
    lines = [
        f"{name} variants: {arm['n']} read, {arm['unsure']} unsure for a reader",
        f"  wrong for both readers         {share('wrong_both')}",
        f"  wrong for one or both readers  {share('wrong_any')}",
        f"  wrong for reader 1             {share('wrong_reader_1')}",
        f"  wrong for reader 2             {share('wrong_reader_2')}",
        f"  same value                     {percent(arm['agreement'])} of {arm['n']}",
        f"  Cohen's kappa (three values)   {kappa}",
    ]
    note = (arm["wrong_both"] or {}).get("note")
    return [*lines, f"  The intervals (95 %, exact) take rows as independent; {note}."] if note else lines


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "validity", argv)
