"""``audit models``: every kind of model spec, what it needs, and whether that is here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from auditor.cli import common
from auditor.cli.common import invoke

if TYPE_CHECKING:
    from auditor.models.catalogue import Listed

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def models(format: common.Format = "terminal") -> int:
    """List the kinds of models, what each needs, and what of that is installed or set."""
    from auditor.models.catalogue import kinds

    common.check_format(format)
    return common.print_as(format, kinds(), _lines)


def _lines(rows: Sequence[Listed]) -> list[str]:
    lines: list[str] = []
    for row in rows:
        lines += [*_kind(row), ""]
    return [*lines, "Try one in a handful of calls: audit doctor --model SPEC"]


def _kind(row: Listed) -> list[str]:
    state = "installed" if row.installed else f"needs {', '.join(row.missing)}"
    lines = [f"{row.spec:<26}{state}", f"    {row.what}"]
    if row.install:
        lines.append(f"    Run: {row.install}")
    if row.environment:
        lines.append("    environment: " + _told(row.environment))
    for name, needs in row.providers.items():
        here = "installed" if needs.installed else f"Run: {needs.install}"
        key = f"; {_told(needs.environment)}" if needs.environment else ""
        lines.append(f"    {name:<14}{here}{key}")
    lines.append(f"    e.g. {row.example}")
    return lines


def _told(environment: dict[str, bool]) -> str:
    return ", ".join(f"{name} {'set' if there else 'not set'}" for name, there in environment.items())


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "models", argv)
