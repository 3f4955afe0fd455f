"""``audit dictionary``: list and check dictionaries."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from auditor.cli import common
from auditor.cli.common import invoke

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True
)


@app.command("list")
def list_dictionaries(format: common.Format = "terminal") -> int:
    """List the attributes, groups and numbers of terms that come with the tool."""
    from auditor import dictionaries

    common.check_format(format)
    rows: list[dict[str, Any]] = []
    for name in dictionaries.builtin():
        one = dictionaries.load(name)
        rows.append({"attribute": one.attribute, "groups": sorted(one.groups), "terms": len(one.terms)})
    if format == "json":
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        for row in rows:
            sys.stdout.write(
                f"{row['attribute']:<14}{row['terms']:>5} terms, {len(row['groups'])} groups: {', '.join(row['groups'])}\n"
            )
    return 0


@app.command("check")
def check(
    files: Annotated[
        list[str] | None, typer.Argument(help="[ATTRIBUTE=]FILE…; none checks those that come with the tool.")
    ] = None,
) -> int:
    """Check dictionaries: overlaps between attributes, missing slots, everyday words. Exit 1 where something is found."""
    from auditor import dictionaries

    chosen = (
        dictionaries.load_options(tuple(files))
        if files
        else [dictionaries.load(n) for n in dictionaries.builtin()]
    )
    problems = dictionaries.check(chosen)
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    if not problems:
        terms = sum(len(d.terms) for d in chosen)
        sys.stdout.write(f"{len(chosen)} dictionaries, {terms} terms: nothing found.\n")
    return 1 if problems else 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "dictionary", argv)
