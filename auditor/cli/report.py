"""``audit report RUN``: render again, without calling the model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
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

    path = find_run(run)
    names = split(format) or ()
    files = [name for name in names if name != "terminal"]
    if out is not None and (len(files) != 1 or len(names) != 1):
        raise ConfigError("--out takes one file format: --format html --out report.html")
    make = _renderers(path)
    if "terminal" in names:
        sys.stdout.write(make("terminal")[0] + "\n")
    for name in files:
        text, suffix = make(name)
        if out == "-":
            sys.stdout.write(text)
            continue
        target = Path(out) if out else path / f"report{suffix}"
        target.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{target}\n")
    return 0


def _renderers(path: Path) -> Callable[[str], tuple[str, str]]:
    """What renders a format of the run in ``path``: (text, file ending)."""
    from auditor.registry import RENDERERS
    from auditor.result import load
    from auditor.store.folder import RunFolder

    width = None if sys.stdout.isatty() else 100
    record = RunFolder.open(path).record()
    if record.get("spec", {}).get("kind") == "tabular":
        from auditor.render import tabular

        def of_rows(name: str) -> tuple[str, str]:
            if name == "terminal":
                return tabular.text(record, width=width), ".txt"
            if name == "html":
                return tabular.html(record), ".html"
            renderer = RENDERERS.create(name)
            return renderer.render(record, None), renderer.suffix

        return of_rows
    result = load(path)

    def of_texts(name: str) -> tuple[str, str]:
        if name == "terminal":
            return result.to_text(width=width, encoding=sys.stdout.encoding), ".txt"
        renderer = RENDERERS.create(name)
        return renderer.render(result.record, result.evidence), renderer.suffix

    return of_texts


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "report", argv)
