"""``audit compare A B``: what two runs found differently."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from auditor.cli.common import find_run, invoke, split

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
FORMATS = ("terminal", "json", "markdown")
FAIL_ON = ("worse", "new", "never")


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="The run before: a folder, or its name.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="The run after.")],
    format: Annotated[str, typer.Option("--format", help="terminal, json or markdown (md).")] = "terminal",
    fail_on: Annotated[
        str | None, typer.Option("--fail-on", help="Exit 1 on: worse, new (or both, comma-separated); never.")
    ] = None,
) -> int:
    """Compare two runs: plans first, then rates (better, worse) and findings (new, gone)."""
    import dataclasses

    from auditor import compare as comparing
    from auditor.errors import ConfigError
    from auditor.render import two_runs as shown
    from auditor.render.json import JsonReport

    format = {"md": "markdown"}.get(format, format)
    if format not in FORMATS:
        raise ConfigError(f"--format must be one of {', '.join(FORMATS)}; got {format!r}.")
    words = split(fail_on) or ()
    for word in words:
        if word not in FAIL_ON:
            raise ConfigError(f"--fail-on of compare takes {', '.join(FAIL_ON)}; got {word!r}.")
    found = comparing.compare(comparing.read(find_run(before)), comparing.read(find_run(after)))
    plain = dataclasses.asdict(found)
    if format == "json":
        sys.stdout.write(JsonReport().render(plain))
    elif format == "markdown":
        sys.stdout.write(shown.markdown(plain))
    else:
        width = None if sys.stdout.isatty() else 100
        sys.stdout.write(shown.text(plain, width=width, encoding=sys.stdout.encoding or "utf-8"))
    bad = [r for r in found.rates if r.change in words] + [f for f in found.findings if f.fate in words]
    return 1 if bad else 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "compare", argv)
