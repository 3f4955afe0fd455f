"""How help texts are laid out: options under headings, commands of a group with their whole first sentence."""

from __future__ import annotations

import types
from typing import Any

import typer

from auditor.core.options import Group

MANY = 15  # options; a command with more has them under headings


def laid_out(app: typer.Typer) -> Any:
    """The command of ``app``, with its help texts laid out."""
    command: object = typer.main.get_command(app)
    for one in getattr(command, "commands", {}).values():
        if not one.short_help and one.help:
            one.short_help = " ".join(one.help.split("\n\n")[0].split())
        _set(one)
    _set(command)
    return command


def _set(command: Any) -> None:
    if len(command.params) > MANY:
        command.format_options = types.MethodType(_options, command)


def _options(command: Any, context: Any, formatter: Any) -> None:
    """Write the arguments, then the options under the headings that they name."""
    rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{h.value: [] for h in Group}, "Further": []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            argument = parameter.param_type_name == "argument"
            heading = getattr(parameter, "rich_help_panel", None) or "Further"
            rows["Arguments" if argument else heading].append(record)
    for heading, mine in rows.items():
        if mine:
            with formatter.section(heading):
                formatter.write_dl(mine)
