"""``audit import FILE…``: answers that somebody recorded, as a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auditor.cli import common
from auditor.cli.common import finish, invoke
from auditor.cli.options import option
from auditor.core.plan import Plan
from auditor.tables.plan import TabularPlan

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(name="import")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="CSV, JSON lines, JSON, Parquet, zip, gzip, or folders of them; one row is one answer."
        ),
    ],
    map: Annotated[
        Path | None,
        typer.Option("--map", help="What each column says (import.toml); inferred where none is given."),
    ] = None,
    write_map: Annotated[
        Path | None, typer.Option("--write-map", help="Write what was inferred to this file, and stop.")
    ] = None,
    join: Annotated[
        Path | None, typer.Option("--join", help="A table of what was asked, beside the answers.")
    ] = None,
    on: Annotated[str, typer.Option("--on", help="The column that both tables have.")] = "custom_id",
    favourable: Annotated[
        list[str] | None,
        option("favourable", plan=TabularPlan, help="A label that is good to get; may be repeated."),
    ] = None,
    reference: Annotated[
        list[str] | None,
        option("reference", help="ATTRIBUTE:GROUP that all others are compared with."),
    ] = None,
    delta: Annotated[float | None, option("delta")] = None,
    task: Annotated[str | None, typer.Option("--name", help="What the run is called.")] = None,
    out: Annotated[Path, option("out")] = Path("reports"),
    format: common.Format = "terminal",
    full: common.Full = False,
    fail_on: common.FailOn = None,
) -> int:
    """Make a run of recorded answers: claims, reports, comparison, without asking anything."""
    from auditor.contrib.imports import mapping, record, tables
    from auditor.core.errors import ConfigError
    from auditor.run.result import load

    common.check_format(format)
    table = tables.read(files)
    if join is not None:
        table = tables.joined(table, tables.read([join]), on)
    beside = files[0].with_suffix(mapping.BESIDE)
    map = map or (beside if beside.is_file() else None)
    roles = mapping.load(map) if map is not None else mapping.infer(table)
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
    if map is None:
        typer.echo("Read as (import.toml in the run folder):\n" + mapping.dump(roles), err=True)
    path = record.write(table, roles, out)
    result = load(path)
    for line in result.record["import"]["limits"]:
        typer.echo(f"audit: {line}", err=True)
    return finish(result, format=format, fail_on=fail_on, full=full)


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "import", argv)
