"""``audit import FILE…``: answers that somebody recorded, as a run; and published benchmarks, recorded or asked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from auditor.cli import frame
from auditor.cli.frame import Draw, file, flag, option, say, screen
from auditor.cli.run_folders import agree, find_text_run, finish
from auditor.core.errors import ConfigError
from auditor.core.plan import Plan
from auditor.core.shown import plural
from auditor.tables.tabular_plan import TabularPlan

if TYPE_CHECKING:
    from auditor.contrib.benchmarks.benchmarked import Benchmarked
    from auditor.contrib.benchmarks.items import Item
    from auditor.core.plan import Plan


@frame.argument(
    "files",
    "FILES…",
    "CSV, JSON lines, JSON, Parquet, zip, gzip, logs of inspect_ai, or folders; one row is one answer.",
    nargs=-1,
    required=True,
)
@file("--map", help="File that says what each column is (import.toml). Default: inferred.")
@file("--write-map", help="Write the inferred mapping to this file, and stop.")
@flag("--rows", default="", help="JSON path of the rows in a JSON file, e.g. $.runs[*] (default: inferred).")
@flag("--answer", help="The column of answers (default: inferred).")
@file("--join", help="A table of the requests, to join with the answers.")
@flag("--on", default="custom_id", help="The column that both tables have.")
@flag("--kind", help="Kind of the answers: label, labels, number, words or text (default: inferred).")
@option("labels", help='Labels of the answers, e.g. "yes,no" (default: inferred).')
@option("favourable", plan=TabularPlan, multiple=True, help="A favourable label; may be repeated.")
@option("reference", multiple=True, help="ATTRIBUTE:GROUP that all others are compared with.")
@option("delta")
@file(
    "--generated",
    help="The run of audit generate whose prompts FILE answers; lines of JSON: prompt_sha256 or variant_id, replicate, "
    "output or error.",
)
@flag("--name", "task", help="Name of the run.")
@flag(
    "--benchmark",
    help="FILES are those of bbq, crows-pairs, stereoset or winobias with recorded answers "
    "(--answer names their field). To ask a model: audit --task bbq --data FILE --model SPEC.",
)
@frame.out(default=Path("reports"))
@frame.printed
@frame.full
@frame.fail_on
def import_(
    *,
    files: Sequence[Path],
    map: Path | None,
    write_map: Path | None,
    rows: str,
    answer: str | None,
    join: Path | None,
    on: str,
    kind: str | None,
    labels: str | None,
    favourable: Sequence[str],
    reference: Sequence[str],
    delta: float | None,
    generated: Path | None,
    task: str | None,
    benchmark: str | None,
    out: Path,
    format: str,
    full: bool,
    fail_on: str | None,
) -> int:
    """Make a run of recorded answers: claims, reports, comparison, without asking anything."""
    from auditor.contrib.imports import answer_files, import_run, inference, mapping
    from auditor.run.audit import load, score

    of_plan = Plan.of({name: value for name, value in (("labels", labels), ("delta", delta)) if value is not None})
    if benchmark is not None:
        return recorded(benchmark, files, answer, delta=of_plan.delta, out=out, format=format)
    if generated is not None:
        others = (map, write_map, rows, answer, join, kind, labels, favourable, reference, delta, task)
        if len(files) != 1 or any(others):
            raise ConfigError("--generated takes one FILE, and the plan of RUN sets all else; leave other options out.")
        judged = score(find_text_run(generated, "import --generated"), files[0], observe=Draw())
        return finish(judged, format=format, fail_on=fail_on, full=full)
    settings: dict[str, object] = {name: getattr(of_plan, name) for name in of_plan.model_fields_set}
    settings |= {} if kind is None else {"kind": mapping.kind_of(kind)}
    settings |= {} if task is None else {"task": task}
    pairs = [text.partition(":") for text in reference]
    if wrong := [a for a, colon, group in pairs if not colon or not group]:
        raise ConfigError(f"--reference takes ATTRIBUTE:GROUP, such as gender:male; got {wrong[0]!r}")
    references = {a: group for a, _, group in pairs}
    table = answer_files.read(files, rows)
    if join is not None:
        table = answer_files.joined(table, answer_files.read([join]), on)
    beside = files[0].with_suffix(mapping.BESIDE)
    map = map or (beside if beside.is_file() else None)
    try:
        if map is None:
            roles = inference.infer(table, answer, settings)
        else:
            roles = mapping.load(map).model_copy(update=settings)
            roles = roles if answer is None else inference.about(table, roles, answer, settings)
        roles = roles.model_copy(update={"references": {**roles.references, **references}})
        roles = inference.with_favourable(table, roles, tuple(favourable))
    except inference.Undecided as error:
        if write_map is not None:
            write_map.write_text(error.proposal, encoding="utf-8")
        click.echo("Best guess (import.toml):\n" + error.proposal, err=True)
        raise
    if write_map is not None:
        write_map.write_text(mapping.dump(roles), encoding="utf-8")
        click.echo(f"{write_map} written. Correct it, then: audit import {files[0]} --map {write_map}")
        return 0
    if map is None:
        click.echo("Read as (import.toml in the run folder):\n" + mapping.dump(roles), err=True)
    result = load(import_run.write(table, roles, out, references))
    for row in result.run.told_apart:
        click.echo(row.said, err=format == "json")
    for line in result.record["import"]["limits"]:
        click.echo(f"audit: {line}", err=True)
    return finish(result, format=format, fail_on=fail_on, full=full)


# -- published benchmarks -------------------------------------------------------------------------------------


def recorded(
    benchmark: str, files: Sequence[Path], answer: str | None, *, delta: float | None, out: Path, format: str
) -> int:
    """Compute the scores of recorded answers (``audit import --benchmark NAME FILE…``)."""
    from auditor.contrib.benchmarks import benchmarked, items

    read, sources = items.read(benchmark, files, answer)
    if all(item.chosen is None for item in read):
        raise ConfigError(
            f"no recorded answer was found in {', '.join(map(str, files))}: name their field with --answer, "
            f"or ask a model: audit --task {benchmark} --data {files[0]} --model SPEC"
        )
    made = benchmarked.compute(benchmark, read, sources, answer or "recorded answers", recorded=True, delta=delta)
    return _show(made, read, out, format)


def ask(plan: Plan, format: str, *, dry_run: bool, yes: bool) -> int:
    """Ask the models of ``plan`` about the benchmark that its task names (``audit --task NAME --data FILE``)."""
    from auditor.contrib.benchmarks import asking, benchmarked, items
    from auditor.models.limits import Budget

    if plan.data is None:
        raise ConfigError(f"--task {plan.task} takes the published file: --data FILE (nothing of it is shipped)")
    if not plan.models:
        raise ConfigError(f"--task {plan.task} needs a model to ask: --model SPEC")
    read, sources = items.read(plan.task, [Path(plan.data)])
    models = asking.models_of(plan, read)
    drawn = asking.sample(read, plan, models)
    size = f"{plural(len(drawn), 'question')} of {len(read):,}, one call for each and each model."
    if len(drawn) < len(read) and plan.limit is None:
        size += " --full-plan asks all."
    if dry_run:
        say(f"{size} Nothing was asked.")
        return 0
    agree(plan.models, limited=plan.limited, yes=yes, show=lambda: size)
    budget = Budget(**plan.limits)
    codes = []
    for spec, model in zip(plan.models, models, strict=True):
        answered, counts, reason = asking.ask(drawn, model, plan, budget)
        made = benchmarked.compute(
            plan.task, answered, sources, spec, recorded=False, answers=counts, reason=reason, delta=plan.delta
        )
        codes.append(_show(made, answered, Path(plan.out), format))
    return max(codes)


def _show(made: Benchmarked, items: Sequence[Item], out: Path, format: str) -> int:
    from auditor.contrib.benchmarks import benchmarked
    from auditor.report import terminal
    from auditor.report.terminal import Page

    text = made.to_json() if format == "json" else terminal.write(Page(**screen()), made.document(), full=True)
    sys.stdout.write(text)
    say(f"Report: {benchmarked.write(made, items, out) / benchmarked.PAGE}", to=sys.stderr)
    return 3 if made.reason else 0  # incomplete
