"""``audit tasks``: list the tasks, start one of your own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from auditor.cli import common
from auditor.cli.common import invoke
from auditor.cli.options import option
from auditor.core.counting import plural

if TYPE_CHECKING:
    from auditor.tasks.task import Task

SHOWN = 8  # labels of a task, in the list of tasks

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)


class _Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A task as it is listed."""

    name: str
    kind: str
    labels: tuple[str, ...]
    scale: tuple[float, float] | None
    unit: str
    formats: tuple[str, ...]
    embedded_texts: int


@app.command("list")
def list_tasks(format: common.Format = "terminal") -> int:
    """List the tasks that come with the tool."""
    from auditor import tasks

    common.check_format(format)
    return common.print_as(format, [_row(tasks.load(name)) for name in tasks.available()], _lines)


def _row(task: Task) -> _Listed:
    return _Listed(
        name=task.name,
        kind=task.kind.name,
        labels=tuple(task.labels),
        scale=task.scale,
        unit=task.unit,
        formats=tuple(task.formats),
        embedded_texts=len(task.seeds()) if task.seeds_path is not None else 0,
    )


def _lines(rows: Sequence[_Listed]) -> list[str]:
    lines = [
        f"{row.name:<14}{row.kind:<16}{_answers(row)}; formats: {', '.join(row.formats)}; "
        f"{plural(row.embedded_texts, 'embedded text')}"
        for row in rows
    ]
    return [*lines, "Your own: audit tasks new NAME, edit the file, then audit --task FILE --data TEXTS"]


def _answers(row: _Listed) -> str:
    """What a task is answered with, in a few words."""
    from auditor.report.words import figure

    if row.scale is not None:
        low, high = map(figure, row.scale)
        return f"a number from {low} to {high}" + (f" {row.unit}" if row.unit else "")
    if not row.labels:
        return "free text"
    more = len(row.labels) - SHOWN
    return f"labels: {', '.join(row.labels[:SHOWN])}" + (f", … and {more} more" if more > 0 else "")


@app.command("format")
def describe() -> int:
    """Describe task files field by field."""
    from auditor.core import data

    sys.stdout.write(data.path("prompts", "README.md").read_text(encoding="utf-8"))
    return 0


@app.command("new")
def new(
    name: Annotated[str, typer.Argument(help="Name of the task.")],
    kind: Annotated[
        str,
        typer.Option(
            "--kind", help="classification, decision, multilabel, score, generation, coreference or fill-mask."
        ),
    ] = "classification",
    out: Annotated[Path | None, option("out", help="File to write (default: NAME.yaml).")] = None,
) -> int:
    """Write a commented task file to start from."""
    from auditor import tasks
    from auditor.core.errors import ConfigError
    from auditor.tasks import kinds

    path = out or Path(f"{name}.yaml")
    if path.exists():
        raise ConfigError(f"{path} exists already; give another file with --out.")
    path.write_text(tasks.template(name, kind), encoding="utf-8")
    # Some have no data sets of texts; a grammar of the shipped task of the kind fits.
    source = f"--suite grammar --grammar {kind}" if kinds.of(kind).sketch.grammar else "--data TEXTS"
    following = f"audit --task {common.quoted(path)} {source} --model SPEC --dry-run"
    common.say(path, f"Next: edit it, then {following}")
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code; without a word after it, ``list``."""
    return invoke(app, "tasks", argv or ["list"])
