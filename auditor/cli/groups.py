"""``audit groups [RUN]``: mean scores by group, and which groups stand out."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.cli import common
from auditor.cli.common import find_text_run, invoke
from auditor.cli.options import option, takes
from auditor.cli.progress import Draw
from auditor.core.plan import Plan, resolve

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@takes("groups", Plan)
def groups(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="A run folder, or its name under reports/; without it, one is made."),
    ] = None,
    attribute: Annotated[str, typer.Option("--attribute", help="Whose groups are compared.")] = "occupation",
    label: Annotated[
        str | None, typer.Option("--label", help="The label whose score is compared (default: each).")
    ] = None,
    model: Annotated[
        str | None, option("models", help="Whose answers (default: the first of the run); without RUN, whom to ask.")
    ] = None,
    task: Annotated[str | None, option("task", help="Without RUN: the task that is asked (default fill-mask).")] = None,
    cases: Annotated[
        int | None,
        typer.Option(
            "--cases", min=2, help="Without RUN: distinct sentences for each group (default 150, as published)."
        ),
    ] = None,
    format: common.Format = "terminal",
    yes: common.Yes = False,
    **options: object,
) -> int:
    """Compare the mean scores of the groups in the sentences of RUN, or of a run that is made for it.

    Without RUN, --model is asked 150 distinct sentences with each of the 43 occupations of the fill-mask grammar.
    """
    from auditor.run.groups import group_report
    from auditor.store.folder import RunFolder

    common.check_format(format)
    own = {"task": task, "limit": cases} | options
    path = _ask(model, attribute, own, yes=yes) if run is None else find_text_run(_only(run, own), "groups")
    with RunFolder.open(path) as folder:
        found = group_report(folder, attribute=attribute, labels=None if label is None else [label], model=model)
    if format == "json":
        sys.stdout.write(json.dumps([asdict(f) for f in found], indent=2) + "\n")
        return 0
    for one in found:
        common.say(*_lines(one), "")
    if run is None:
        common.say(f"The run: {path}")
    return 0


def _only(run: Path, own: Mapping[str, object]) -> Path:
    from auditor.core.errors import ConfigError

    given = ["--cases" if n == "limit" else Plan.flag(n) for n, value in own.items() if value is not None]
    if given:
        raise ConfigError(f"{', '.join(given)}: for a run that is made here; {run} is one already.")
    return run


def _ask(model: str | None, attribute: str, own: Mapping[str, object], *, yes: bool) -> Path:
    """Make the run: every sentence with a term of every group."""
    from auditor.cli.run import consent
    from auditor.core.errors import ConfigError, UserError
    from auditor.measure.fairness import DEFAULT_CASES
    from auditor.run.result import audit_plan

    if model is None:
        raise ConfigError(
            "Give a run (audit groups RUN), or a model to ask: audit groups --model hf:ID, or any other spec "
            "whose answers carry scores."
        )
    fixed = {"suite": "grammar", "generation": "rand", "per_seed": 0, "order": 1, "attributes": (attribute,)}
    values = {**own, **fixed, "models": (model,), "task": own["task"] or "fill-mask"}
    plan = resolve(values | {"limit": own["limit"] or DEFAULT_CASES}, None)
    consent(plan, yes=yes)
    result = audit_plan(plan, observe=Draw())
    if result.path is None:
        raise UserError("The run left no folder, so nothing can be compared.")
    return Path(result.path)


def _lines(one: Any) -> list[str]:
    """The table of one label."""
    from auditor.report.words import group as named
    from auditor.report.words import plural
    from auditor.report.words import visible as clean

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
        share = f"{one.violating} of {plural(len(one.groups), 'group')} ({one.violating / len(one.groups):.1%})"
        lines.append(f"  {share} have an index beyond ±2, the published mark.")
    out = plural(one.standing_out, "group")
    lines.append(f"  ▲ {out} with q of 0.05 or less against the median group ({one.method['test']}).")
    return lines


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "groups", argv)
