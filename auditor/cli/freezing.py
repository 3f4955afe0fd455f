"""``audit plan``: fix a plan before the run (``audit run --plan FILE``), and show a frozen one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from auditor.cli import frame
from auditor.cli.frame import F, must_be_new, say, takes
from auditor.core.errors import ConfigError
from auditor.core.plan import Plan, resolve
from auditor.core.shown import quoted
from auditor.store.journal import write_bytes
from auditor.tables.tabular_plan import MethodOptions, TabularPlan


def _ours(function: F) -> F:
    for one in (
        frame.config,
        frame.flag("--reason", default="", help="Reason for these measures and this delta."),
        frame.flag("--by", default="", help="Name of the person who freezes the plan; recorded as given."),
        frame.file("--output", required=True, help="File to write: .json."),
    ):
        one(function)
    return function


@takes("plan freeze", Plan)
@_ours
def freeze(*, output: Path, by: str, reason: str, config: Path | None, **options: object) -> int:
    """Write the resolved plan with the hashes of everything that shapes it; no model is asked.

    Options are those of audit run. Run it with audit run --plan FILE: what deviates is recorded.
    """
    from auditor.run.audit import plan_record
    from auditor.run.dryrun import planned

    _require_new(output)
    made = planned(resolve(options, config))
    return _written(output, plan_record(made.parts), made.expected(), by, reason, f"audit run --plan {quoted(output)}")


@takes("plan freeze tabular", TabularPlan, MethodOptions)
@_ours
def freeze_rows(*, output: Path, by: str, reason: str, config: Path | None, **options: object) -> int:
    """Write the resolved plan of a search over rows, with the hashes of everything that shapes it.

    Options are those of audit tabular. The model is opened, and asked nothing. Run it with audit tabular --plan FILE:
    what deviates is recorded.
    """
    from auditor.cli import tabular
    from auditor.tables.tabular_run import outlook

    _require_new(output)
    record, expected = outlook(tabular.plan_of(options, config))
    return _written(output, record, expected, by, reason, f"audit tabular --plan {quoted(output)}")


def _require_new(output: Path) -> None:
    """Refuse a file that exists, or a wrong ending, before the work."""
    must_be_new(output, "exists already; a frozen plan is not overwritten. Give another file.")
    if output.suffix != ".json":
        raise ConfigError(f"--output must end in .json: frozen plans are written as JSON. Got {output}.")


def _written(output: Path, record: Mapping[str, Any], expected: object, by: str, reason: str, following: str) -> int:
    """Write a frozen plan, and print its hash, what it expects and what it lacks."""
    from auditor.report import run_checks
    from auditor.run import freeze

    body = freeze.freeze(record, by=by, reason=reason, expected=msgspec.to_builtins(expected))
    write_bytes(output, freeze.dumps(body).encode("utf-8"))
    lines = [str(output), f"SHA-256 of the plan: {body['sha256']}", *run_checks.expectations(body.get("expected"))]
    if not by:
        lines.append("Nobody is named (--by).")
    if body["plan"].get("delta") is None:
        lines.append("No bound is set (--delta): nothing can be bounded.")
    say(*lines, f"Next: {following}")
    return 0


@frame.argument("plan", "FILE", "A frozen plan.")
def show(*, plan: Path) -> int:
    """Check a frozen plan's hash and print what it fixes."""
    from auditor.report import run_checks
    from auditor.run import freeze

    frozen = freeze.load(plan)
    named = frozen.frozen_by or "nobody named"
    lines = [f"Frozen {frozen.frozen_at} by {named}; SHA-256 {frozen.sha256}"]
    if frozen.reason:
        lines.append(f"Reasons given: {frozen.reason}")
    for name, value in frozen.settings.items():
        if value not in (None, [], {}, ""):
            lines.append(f"  {name:<20}{_plain(value)}")
    lines += run_checks.expectations(frozen.expected) or ["The plan says nothing about the number of cases."]
    say(*lines)
    return 0


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k} = {_plain(v)}" for k, v in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
