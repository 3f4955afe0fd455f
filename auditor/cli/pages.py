"""Pages that a command prints, in one of several formats, or writes to a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import common

if TYPE_CHECKING:
    from auditor.report.document import Document

FORMATS = ("terminal", "json", "markdown", "html")
Format = Annotated[str, typer.Option("--format", help="terminal, json, markdown (md) or html.")]


def checked(format: str) -> str:
    """The name of a format; ``md`` is markdown.

    Raises
    ------
    ConfigError
        There is none of this name.
    """
    from auditor.core.errors import ConfigError

    format = {"md": "markdown"}.get(format, format)
    if format not in FORMATS:
        raise ConfigError(f"--format must be one of {', '.join(FORMATS)}; got {format!r}.")
    return format


def put(
    values: Mapping[str, object], format: str, document: Document, out: Path | None = None, *, full: bool = True
) -> None:
    """Print ``document``, or ``values`` as JSON; with ``out`` write it there, in full."""
    from auditor.report import html, markdown, terminal
    from auditor.report.json import JsonReport
    from auditor.report.page import Page

    if format == "json":
        text = JsonReport().render(dict(values))
    elif format == "terminal":
        text = terminal.write(Page(**common.screen()), document, full=full or out is not None)
    else:
        text = (html if format == "html" else markdown).write(document)
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        common.say(out)
