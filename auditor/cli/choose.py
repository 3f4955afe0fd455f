"""``audit choose``: which of several candidates, who differ in nothing but who they are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import common, pages
from auditor.cli.common import invoke
from auditor.cli.options import takes
from auditor.cli.progress import Draw
from auditor.cli.spending import agree
from auditor.core.counting import plural
from auditor.core.options import MOST_TIMES
from auditor.core.plan import Plan, resolve

if TYPE_CHECKING:
    from auditor.run.choose import Compared

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@takes("choose", Plan)
def choose(
    candidates: Annotated[
        int, typer.Option("--candidates", help="2: which of two, in both orders (default); 3 to 10: rank them.")
    ] = 2,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats",
            min=1,
            max=MOST_TIMES,
            help="Times each order of a pair is asked; or rankings of a text (at least as many as places).",
        ),
    ] = 1,
    format: pages.Format = "terminal",
    config: common.Config = None,
    yes: common.Yes = False,
    **options: object,
) -> int:
    """Show candidates who differ in nothing but who they are side by side, and measure who is chosen."""
    from auditor.run import choose as asking
    from auditor.run.panels import task_of

    format = pages.checked(format)
    plan = resolve(options, config)
    agree(
        plan.models,
        limited=plan.limited,
        yes=yes,
        check=lambda: task_of(plan.task, candidates),
        show=lambda: "Two calls for each pair of versions, or one for each ranking; set a limit to be sure.",
    )
    return finish(plan.task, asking.compare(plan, candidates, repeats, Draw()), format)


def finish(task: str, done: Compared, format: str) -> int:
    """Print what a run of panels came to, and write its page."""
    from auditor.report import html, panels

    document = panels.build(
        f"{task}: {'which of two' if done.kind == 'choice' else 'rankings'}",
        done.kind,
        " ".join((f"{plural(done.texts, 'text')}.", *(_said(done, name) for name in done.seen))),
        done.claims,
        {m: {g: s.ranks[g] / n for g, n in s.of.items()} for m, s in done.seen.items()},
        done.impact,
    )
    values: dict[str, object] = {
        "path": str(done.path),
        "kind": done.kind,
        "complete": done.complete,
        "texts": done.texts,
        "claims": [claim.as_record() for claim in done.claims],
        "seen": {model: one.as_record() for model, one in done.seen.items()},
        "position": {model: done.position(model) for model in done.seen},
        "impact": {
            model: {row.count.category: None if row.ratio is None else float(row.ratio) for row in table.rows}
            for model, table in done.impact.items()
        },
    }
    (done.path / "report.html").write_text(html.write(document), encoding="utf-8")
    pages.put(values, format, document)
    common.say(f"Report: {Path(done.path) / 'report.html'}", to=sys.stderr)
    if not done.complete:
        common.say(f"Incomplete: {done.reason}. Go on with: audit resume {common.quoted(done.path)}", to=sys.stderr)
    return 0 if done.complete else 3


def _said(done: Compared, model: str) -> str:
    from auditor.run.panels import TIE

    seen = done.seen[model]
    lost = seen.answers.total() - seen.answers["ok"]
    position = done.position(model)
    told = [f"{model}: {seen.answers.total():,} answers, {lost:,} of them refused or not readable"]
    if position is not None:
        told.append(f"the first place is taken {100 * position:+.0f} points more often than the last".replace("-", "−"))
    if done.kind == "choice":
        told.append(f"{seen.chosen[TIE]:,} ties")
    return "; ".join(told) + "."


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "choose", argv)
