"""``audit compare``, ``watch`` and ``groups``: two runs, a series of them, or the groups of one, side by side."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.cli import frame
from auditor.cli.frame import option, takes
from auditor.cli.run_folders import find_intact, find_text_run
from auditor.cli.screen import Draw, print_as, put, say
from auditor.core.errors import ConfigError, UserError
from auditor.core.plan import Plan, resolve
from auditor.core.record import read
from auditor.core.shown import plural
from auditor.core.types import names
from auditor.report.words import group as named
from auditor.report.words import visible
from auditor.store.folder import RunFolder

WORSE, CHANGED = ("worse", "new", "never"), ("changed", "never")  # what --fail-on takes
APART = (
    "{} holds tables of recorded outcomes (impact), the other run a test of a model (treatment): they measure "
    "different things, and no figure of one can be laid beside one of the other."
)
UNLIKE = (
    "{} is a search over rows of a table, {} an audit of texts: they asked different questions, and no figure of one "
    "can be laid beside one of the other. Compare two runs of one kind."
)


def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="The run before: a folder, its name, or latest.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="The run after.")],
    format: frame.PageFormat = "terminal",
    out: Annotated[Path | None, option("out", help="Write it here instead of printing it.")] = None,
    full: frame.Full = False,
    fail_on: Annotated[
        str | None, option("fail_on", help="Exit 1 on: worse, new (or both, comma-separated); never.")
    ] = None,
) -> int:
    """Compare two runs: plans first, then rates (better, worse) and findings (new, gone)."""
    from auditor.contrib.ll144 import other_tables as of_outcomes
    from auditor.measure import comparison as of_texts
    from auditor.report import side_by_side
    from auditor.run import observed, outcome_folder
    from auditor.tables import tabular_compare as of_rows

    words = names(fail_on or ())
    for word in words:
        if word not in WORSE:
            raise ConfigError(f"--fail-on of compare takes {', '.join(WORSE)}; got {word!r}.")
    paths = [find_intact(run, outcomes=True) for run in (before, after)]
    folders = [RunFolder.open(path) for path in paths]
    if _both(paths, [outcome_folder.is_outcomes(folder.record()) for folder in folders], APART):
        if set(words) - {"never"}:
            raise ConfigError("--fail-on worse, new: tables of recorded outcomes hold no findings.")
        tables = of_outcomes.compare(*(read(folder.record()) for folder in folders))
        put(dataclasses.asdict(tables), format, side_by_side.tables(tables), out, full=full)
        return 0
    if _both(paths, [folder.plan.get("kind") == "tabular" for folder in folders], UNLIKE):
        compared = of_rows.compare(*map(of_rows.read, paths))
        document = side_by_side.runs(compared)
    else:
        sides = [observed.side(path) for path in paths]
        compared = of_texts.compare(*sides)
        document = side_by_side.runs(compared, [side.record for side in sides])
    put(dataclasses.asdict(compared), format, document, out, full=full)
    return int(any(r.change in words for r in compared.rates) or any(f.fate in words for f in compared.findings))


def _both(paths: Sequence[Path], are: Sequence[bool], why: str) -> bool:
    """Whether both runs are of one kind; where only one is, they cannot be compared."""
    if any(are) and not all(are):
        raise ConfigError(why.format(paths[are.index(True)], paths[are.index(False)]))
    return all(are)


def watch(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder of the runs (--out of audit run --plan F).")
    ],
    format: frame.PageFormat = "terminal",
    out: Annotated[Path | None, option("out", help="Write it here instead of printing it.")] = None,
    fail_on: Annotated[str | None, option("fail_on", help="Exit 1 on: changed (at the last run); never.")] = None,
) -> int:
    """Follow the runs in DIR that have one plan: figures by date, and changes found at any number of looks."""
    from auditor.report import studies
    from auditor.run.watch import watch as follow

    if fail_on is not None and fail_on not in CHANGED:
        raise ConfigError(f"--fail-on of watch takes {', '.join(CHANGED)}; got {fail_on!r}.")
    series = follow(folder)
    put(series.as_record(), format, studies.watched(series), out)
    if fail_on is None:
        return 0
    holds = fail_on == "changed" and series.changed
    sys.stdout.flush()
    say(f"--fail-on: {fail_on}: {'holds' if holds else 'does not hold'}", to=sys.stderr)
    return int(holds)


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
    format: frame.Format = "terminal",
    yes: frame.Yes = False,
    **options: object,
) -> int:
    """Compare the mean scores of the groups in the sentences of RUN, or of a run that is made for it.

    Without RUN, --model is asked 150 distinct sentences with each of the 43 occupations of the fill-mask grammar.
    """
    from auditor.run.observed import group_report

    own = {"task": task, "limit": cases} | options
    path = _ask(model, attribute, own, yes=yes) if run is None else find_text_run(_only(run, own), "groups")
    with RunFolder.open(path) as folder:
        tables = group_report(folder, attribute=attribute, labels=None if label is None else [label], model=model)
    lines = chain.from_iterable((*_lines(one), "") for one in tables)
    return print_as(format, tables, chain(lines, [] if run is not None else [f"The run: {path}"]), ordered=False)


def _only(run: Path, own: Mapping[str, object]) -> Path:
    flags = ["--cases" if n == "limit" else Plan.flag(n) for n, value in own.items() if value is not None]
    if flags:
        raise ConfigError(f"{', '.join(flags)}: for a run that is made here; {run} is one already.")
    return run


def _ask(model: str | None, attribute: str, own: Mapping[str, object], *, yes: bool) -> Path:
    """Make the run: every sentence with a term of every group."""
    from auditor.cli.run import agreed
    from auditor.measure.group_scores import DEFAULT_CASES
    from auditor.run.result import audit_plan

    if model is None:
        raise ConfigError(
            "Give a run (audit groups RUN), or a model to ask: audit groups --model hf:ID, or any other spec "
            "whose answers carry scores."
        )
    fixed = {"suite": "grammar", "generation": "rand", "per_seed": 0, "order": 1, "attributes": (attribute,)}
    values = {**own, **fixed, "models": (model,), "task": own["task"] or "fill-mask"}
    plan = resolve(values | {"limit": own["limit"] or DEFAULT_CASES}, None)
    agreed(plan, yes=yes)
    result = audit_plan(plan, observe=Draw())
    if result.path is None:
        raise UserError("The run left no folder, so nothing can be compared.")
    return Path(result.path)


def _lines(one: Any) -> list[str]:
    """The table of one label."""
    lines = [f"{visible(one.score)}: {plural(len(one.groups), 'group')}"]
    lines.append(f"  {'group':<34}{'n':>6}{'mean':>9}{'shrunken':>10}{'index':>8}{'q':>10}")
    for g in sorted(one.groups, key=lambda g: (-g.mean, g.name)):
        index = "–" if g.index is None else f"{g.index:+.1f}"
        q = "–" if g.q is None else f"{g.q:.2g}"
        mark = "▲" if g.stands_out else " "
        lines.append(
            f"{mark} {visible(named(g.name))[:33]:<34}{g.n:>6}{g.mean:>9.4f}{g.shrunken:>10.4f}{index:>8}{q:>10}"
        )
    if one.violating is None:
        lines.append(f"  Index {one.reason}.")
    else:
        share = f"{one.violating} of {plural(len(one.groups), 'group')} ({one.violating / len(one.groups):.1%})"
        lines.append(f"  {share} have an index beyond ±2, the published mark.")
    out = plural(one.standing_out, "group")
    lines.append(f"  ▲ {out} with q of 0.05 or less against the median group ({one.method['test']}).")
    return lines
