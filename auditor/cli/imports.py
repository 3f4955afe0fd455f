"""``audit import FILE…``: answers that somebody recorded, as a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import common
from auditor.cli.common import finish, invoke
from auditor.cli.options import option
from auditor.core.plan import Plan
from auditor.tables.plan import TabularPlan

if TYPE_CHECKING:
    from auditor.contrib.imports.mapping import Roles
    from auditor.contrib.imports.tables import Table

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(name="import")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="CSV, JSON lines, JSON, Parquet, zip, gzip, logs of inspect_ai, or folders; one row is one answer."
        ),
    ],
    map: Annotated[
        Path | None, typer.Option("--map", help="What each column says (import.toml); inferred where none is given.")
    ] = None,
    write_map: Annotated[
        Path | None, typer.Option("--write-map", help="Write what was inferred to this file, and stop.")
    ] = None,
    rows: Annotated[
        str, typer.Option("--rows", help="JSON path of the rows in a JSON file, e.g. $.runs[*] (default: found).")
    ] = "",
    answer: Annotated[
        list[str] | None,
        typer.Option("--answer", help="The column of answers; several give a run each. May be repeated."),
    ] = None,
    join: Annotated[Path | None, typer.Option("--join", help="A table of what was asked, beside the answers.")] = None,
    on: Annotated[str, typer.Option("--on", help="The column that both tables have.")] = "custom_id",
    favourable: Annotated[
        list[str] | None, option("favourable", plan=TabularPlan, help="A label that is good to get; may be repeated.")
    ] = None,
    reference: Annotated[
        list[str] | None, option("reference", help="ATTRIBUTE:GROUP that all others are compared with.")
    ] = None,
    delta: Annotated[float | None, option("delta")] = None,
    task: Annotated[str | None, typer.Option("--name", help="What the run is called.")] = None,
    out: Annotated[Path, option("out")] = Path("reports"),
    format: common.Format = "terminal",
    full: common.Full = False,
    fail_on: common.FailOn = None,
) -> int:
    """Make a run of recorded answers: claims, reports, comparison, without asking anything."""
    from auditor.contrib.imports import inference, mapping, tables
    from auditor.core.errors import ConfigError

    common.check_format(format)
    table = tables.read(files, rows)
    if join is not None:
        table = tables.joined(table, tables.read([join]), on)
    beside = files[0].with_suffix(mapping.BESIDE)
    map = map or (beside if beside.is_file() else None)
    roles = mapping.load(map) if map is not None else inference.infer(table, next(iter(answer or ()), None))
    given: dict[str, object] = {}
    if favourable:
        given["favourable"] = tuple(favourable)
    if delta is not None:
        given["delta"] = Plan(delta=delta).delta
    if task is not None:
        given["task"] = task
    if reference:
        pairs = [text.partition(":") for text in reference]
        if wrong := [a for a, colon, group in pairs if not colon or not group]:
            raise ConfigError(f"--reference takes ATTRIBUTE:GROUP, such as gender:male; got {wrong[0]!r}")
        given["references"] = dict(roles.references) | {a: group for a, _, group in pairs}
    roles = roles.model_copy(update=given)
    if write_map is not None:
        write_map.write_text(mapping.dump(roles), encoding="utf-8")
        typer.echo(f"{write_map} written. Correct it, then: audit import {files[0]} --map {write_map}")
        return 0
    codes = [_write(table, one, out, format, full, fail_on, told=map is None) for one in _each(table, roles, answer)]
    return max(codes)


def _each(table: Table, roles: Roles, answers: list[str] | None) -> Iterator[Roles]:
    """Roles for each column of answers that was named, or those that there are."""
    from auditor.contrib.imports import inference

    for name in answers or ():
        yield inference.about(table, roles, name)
    if not answers:
        yield roles


def _write(table: Table, roles: Roles, out: Path, format: str, full: bool, fail_on: str | None, *, told: bool) -> int:
    from auditor.contrib.imports import mapping, record
    from auditor.run.result import load

    if told:
        typer.echo("Read as (import.toml in the run folder):\n" + mapping.dump(roles), err=True)
    result = load(record.write(table, roles, out))
    for row in result.record.get("told_apart", ()):
        typer.echo(row["said"], err=format == "json")
    for line in result.record["import"]["limits"]:
        typer.echo(f"audit: {line}", err=True)
    return finish(result, format=format, fail_on=fail_on, full=full)


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "import", argv)
