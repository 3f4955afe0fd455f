"""``audit plan freeze``: fix a plan before the run; and running it (``audit run --plan FILE``)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from auditor.cli import frame
from auditor.cli.frame import invoke, takes
from auditor.cli.screen import EXIT_USER, complain, say
from auditor.core.errors import ConfigError
from auditor.core.plan import Plan, resolve
from auditor.core.shown import quoted
from auditor.store.disk import write_bytes
from auditor.tables.tabular_plan import MethodOptions, TabularPlan

Output = Annotated[Path, typer.Option("--output", help="File to write: .toml or .json.")]
By = Annotated[str, typer.Option("--by", help="Who freezes the plan; recorded as given.")]
Reason = Annotated[str, typer.Option("--reason", help="Why these measures, and why this delta.")]


@takes("plan freeze", Plan)
def _freeze(output: Output, by: By = "", reason: Reason = "", config: frame.Config = None, **options: object) -> int:
    """Write the resolved plan with the hashes of everything that shapes it; no model is asked.

    Options are those of audit run. Run it with audit run --plan FILE: what deviates is recorded.
    """
    from auditor import run as pipeline
    from auditor.run import freeze
    from auditor.run.dryrun import planned

    _require_new(output)
    made = planned(resolve(options, config))
    expected = msgspec.to_builtins(made.expected())
    body = freeze.freeze(pipeline.plan_record(made.parts), by=by, reason=reason, expected=expected)
    return _written(output, body, f"audit run --plan {quoted(output)}")


def _require_new(output: Path) -> None:
    """Refuse a file that exists, or a wrong ending, before the work."""
    from auditor.run import freeze

    if output.exists():
        raise ConfigError(f"{output} exists already; a frozen plan is not overwritten. Give another file.")
    freeze.dumps({}, output.suffix)


def _written(output: Path, body: Mapping[str, Any], following: str) -> int:
    """Write a frozen plan, and print its hash, what it expects and what it lacks."""
    from auditor.report import planned
    from auditor.run import freeze

    write_bytes(output, freeze.dumps(body, output.suffix).encode("utf-8"))
    lines = [str(output), f"SHA-256 of the plan: {body['sha256']}", *planned.lines(body.get("expected"))]
    if not body["frozen_by"]:
        lines.append("Nobody is named (--by).")
    if body["plan"].get("delta") is None:
        lines.append("No bound is set (--delta): nothing can be bounded.")
    say(*lines, f"Next: {following}")
    return 0


@takes("plan freeze tabular", TabularPlan, MethodOptions)
def _freeze_rows(
    output: Output, by: By = "", reason: Reason = "", config: frame.Config = None, **options: object
) -> int:
    """Write the resolved plan of a search over rows, with the hashes of everything that shapes it.

    Options are those of audit tabular. The model is opened, and asked nothing. Run it with audit tabular --plan FILE:
    what deviates is recorded.
    """
    from auditor.cli import tabular
    from auditor.run import freeze
    from auditor.tables.tabular_run import outlook

    _require_new(output)
    seen = outlook(tabular.plan_of(options, config))
    body = freeze.freeze(seen.record, by=by, reason=reason, expected=msgspec.to_builtins(seen.expected))
    return _written(output, body, f"audit tabular --plan {quoted(output)}")


def show(plan: Annotated[Path, typer.Argument(metavar="FILE", help="A frozen plan.")]) -> int:
    """Check a frozen plan's hash and print what it fixes."""
    from auditor.report import planned
    from auditor.run import freeze

    frozen = freeze.load(plan)
    named = frozen.frozen_by or "nobody named"
    lines = [f"Frozen {frozen.frozen_at} by {named}; SHA-256 {frozen.sha256}"]
    if frozen.reason:
        lines.append(f"Reasons given: {frozen.reason}")
    for name, value in frozen.settings.items():
        if value not in (None, [], {}, ""):
            lines.append(f"  {name:<20}{_plain(value)}")
    lines += planned.lines(frozen.expected) or ["The plan says nothing about the number of cases."]
    say(*lines)
    return 0


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k} = {_plain(v)}" for k, v in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


USAGE = """\
Usage: audit plan freeze OPTIONS --output FILE           fix a plan for texts before the run
       audit plan freeze tabular OPTIONS --output FILE   the same for rows of a table
       audit plan show FILE                              check its hash, print what it fixes
       audit run --plan FILE                             run exactly it
       audit tabular --plan FILE                         the same for rows of a table
"""
COMMANDS = {"freeze tabular": _freeze_rows, "freeze": _freeze, "show": show}


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    for name, function in COMMANDS.items():
        words = name.split()
        if argv[: len(words)] == words:
            return invoke(function, f"plan {name}", argv[len(words) :])
    if argv[:1] in ([], ["--help"], ["-h"]):
        sys.stdout.write(USAGE)
        return 0
    complain(f"audit plan has no command {argv[0]!r}: freeze or show. See: audit plan --help")
    return EXIT_USER
