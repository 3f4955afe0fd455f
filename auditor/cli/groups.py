"""``audit groups RUN``: mean scores by group, and which groups stand out."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

from auditor.cli import common
from auditor.cli.common import find_run, invoke

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def groups(
    run: common.RunArgument,
    attribute: Annotated[str, typer.Option("--attribute", help="Whose groups are compared.")] = "occupation",
    label: Annotated[
        str | None, typer.Option("--label", help="The label whose score is compared (default: each).")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Whose answers (default: the first of the run).")
    ] = None,
    format: common.Format = "terminal",
) -> int:
    """Compare the mean scores of the groups that RUN put into its sentences."""
    from auditor.groups import group_report
    from auditor.render.words import group as named
    from auditor.render.words import plural
    from auditor.render.words import visible as clean
    from auditor.store.folder import RunFolder

    common.check_format(format)
    with RunFolder.open(find_run(run)) as folder:
        found = group_report(
            folder, attribute=attribute, labels=None if label is None else [label], model=model
        )
    if format == "json":
        sys.stdout.write(json.dumps([asdict(f) for f in found], indent=2) + "\n")
        return 0
    for one in found:
        lines = [f"{clean(one.score)}: {plural(len(one.groups), 'group')}"]
        lines.append(f"  {'group':<34}{'n':>6}{'mean':>9}{'shrunken':>10}{'index':>8}{'q':>10}")
        for g in sorted(one.groups, key=lambda g: (-g.mean, g.name)):
            index = "–" if g.index is None else f"{g.index:+.1f}"
            q = "–" if g.q is None else f"{g.q:.2g}"
            mark = "▲" if g.stands_out else " "
            lines.append(
                f"{mark} {clean(named(g.name))[:33]:<34}{g.n:>6}{g.mean:>9.4f}{g.shrunken:>10.4f}{index:>8}{q:>10}"
            )
        if one.violating is None:
            lines.append(f"  Index {one.reason}.")
        else:
            share = f"{one.violating} of {len(one.groups)} groups ({one.violating / len(one.groups):.1%})"
            lines.append(f"  {share} have an index beyond ±2, the published mark.")
        out = plural(one.standing_out, "group")
        lines.append(f"  ▲ {out} with q of 0.05 or less against the median group ({one.method['test']}).")
        sys.stdout.write("\n".join(lines) + "\n\n")
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "groups", argv)
