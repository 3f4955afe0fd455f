"""``audit groups`` and ``audit augment``: what the answers of a run say of groups, and teach."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.cli import frame
from auditor.cli.common import find_intact, find_text_run, print_as
from auditor.cli.frame import option, takes
from auditor.cli.screen import Draw, say
from auditor.core.errors import ConfigError, UserError
from auditor.core.plan import Plan, resolve
from auditor.core.shown import plural
from auditor.report.words import group as named
from auditor.report.words import visible as clean
from auditor.store.folder import RunFolder


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
    from auditor.measure.outliers import DEFAULT_CASES
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


def augment(
    run: frame.RunArgument,
    out: Annotated[Path, option("out", help="Where the rows go: .jsonl, or .csv.")],
    top: Annotated[
        int | None,
        typer.Option("--top", help="Only cases with one of the N words with the highest rates (published: 5, 10)."),
    ] = None,
    share: Annotated[
        float | None, typer.Option("--share", help="Rows in percent of the training data (published: 0.25 to 10).")
    ] = None,
    train_rows: Annotated[
        int | None, typer.Option("--train-rows", help="Rows of the training data; with --share.")
    ] = None,
    model: Annotated[str | None, option("models", help="Whose violations (default: the first of the run).")] = None,
    seed: Annotated[int, option("seed")] = 7,
) -> int:
    """Write texts whose answer changed in RUN, with the label that both sides should get."""
    from auditor.run.augment import augment as collect
    from auditor.run.augment import write, write_rows
    from auditor.tables.retraining import augment_rows, described

    path = find_intact(run)
    if RunFolder.open(path).plan.get("kind") == "tabular":
        table = augment_rows(path, share=share, train_rows=train_rows, seed=seed)
        write_rows(table.columns, table.rows, out)
        say(*described(table, out))
        return 0
    path = find_text_run(run, "augment")
    with RunFolder.open(path) as folder:
        folder.require_texts("writing training texts")
        texts = collect(folder, top=top, share=share, train_rows=train_rows, model=model, seed=seed)
    write(texts.rows, out)
    lines = [f"{out}: {len(texts.rows)} of {plural(texts.available, 'text')} from the violations of {texts.model}"]
    if texts.tokens:
        lines.append(f"words: {', '.join(map(clean, texts.tokens))}")
    if texts.wanted is not None and texts.wanted > texts.available:
        lines.append(f"{texts.wanted} were asked for; a longer run (--limit) finds more violations to draw from.")
    by_model = sum(row.label_source == "model" for row in texts.rows)
    if by_model:
        lines.append(
            f"{by_model} labels are the model's own answers to the originals: look through them before training."
        )
    lines += [f"left out, {why}: {n}" for why, n in texts.dropped.items()]
    say(*lines)
    return 0
