"""``audit report RUN``: render again, without calling the model."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from auditor.cli import common
from auditor.cli.common import find_run, invoke, split

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def report(
    run: common.RunArgument,
    format: Annotated[
        str, typer.Option("--format", help="Comma-separated: terminal (printed), html, json (files in RUN).")
    ] = "terminal",
    out: Annotated[
        str | None, typer.Option("--out", help="Write the one file format here instead; - prints it.")
    ] = None,
) -> int:
    """Render RUN's report again from its record; the model is not called."""
    from auditor.errors import ConfigError
    from auditor.registry import RENDERERS
    from auditor.result import load

    result = load(find_run(run))
    names = split(format) or ()
    files = [name for name in names if name != "terminal"]
    if out is not None and (len(files) != 1 or len(names) != 1):
        raise ConfigError("--out takes one file format: --format html --out report.html")
    if "terminal" in names:
        sys.stdout.write(
            result.to_text(width=None if sys.stdout.isatty() else 100, encoding=sys.stdout.encoding) + "\n"
        )
    for name in files:
        renderer = RENDERERS.create(name)
        text = renderer.render(result.record, result.evidence)
        if out == "-":
            sys.stdout.write(text)
            continue
        assert result.path is not None
        from pathlib import Path

        target = Path(out) if out else result.path / f"report{renderer.suffix}"
        target.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{target}\n")
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "report", argv)
