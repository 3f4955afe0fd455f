"""``audit plan freeze``: fix a plan before the run; and running it (``audit run --plan FILE``)."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.cli import common
from auditor.cli.common import Draw, finish, invoke, numbers, split

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
show_app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

Output = Annotated[Path, typer.Option("--output", help="File to write: .toml or .json.")]
By = Annotated[str, typer.Option("--by", help="Who freezes the plan; recorded as given.")]
Reason = Annotated[str, typer.Option("--reason", help="Why these measures, and why this delta.")]
NOT_PLAN = frozenset({"format", "fail_on", "dry_run", "yes", "out", "no_cache", "concurrency", "plan"})


def flags_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ``audit run`` as fields of `auditor.config.Plan`; what was not given is None or empty."""
    from auditor.config import FIELDS

    flags = {name: value for name, value in values.items() if name in FIELDS}
    flags |= {
        "models": tuple(values.get("model") or ()),
        "dictionaries": tuple(values.get("dictionary") or ()),
        "attributes": split(values.get("attributes")),
        "formats": split(values.get("formats")),
        "epsilon": numbers(values.get("epsilon"), "--epsilon"),
        "cache": False if values.get("no_cache") else None,
    }
    # A switch that was not given is False, and must not turn off what a plan turns on.
    return {name: None if value is False and name != "cache" else value for name, value in flags.items()}


def _freeze(**values: Any) -> int:
    """Write the resolved plan with the hashes of everything that shapes it; no model is asked.

    Options are those of audit run. Run it with audit run --plan FILE: what deviates is recorded.
    """
    from auditor import freeze, pipeline
    from auditor.config import resolve
    from auditor.errors import ConfigError
    from auditor.store.files import write_bytes

    output: Path = values["output"]
    if output.exists():
        raise ConfigError(f"{output} exists already; a frozen plan is not overwritten. Give another file.")
    freeze.dumps({}, output.suffix)  # a wrong ending, before the work
    parts = pipeline.prepare(resolve(flags_of(values), values.get("config")))
    body = freeze.freeze(pipeline.plan_record(parts), by=values["by"], reason=values["reason"])
    write_bytes(output, freeze.dumps(body, output.suffix).encode("utf-8"))
    sys.stdout.write(f"{output}\nSHA-256 of the plan: {body['sha256']}\n")
    hints = [] if values["by"] else ["Nobody is named (--by)."]
    hints += (
        []
        if body["plan"].get("delta") is not None
        else ["No bound is set (--delta): nothing can be bounded."]
    )
    sys.stdout.write("".join(f"{hint}\n" for hint in hints) + f"Next: audit run --plan {output}\n")
    return 0


def _signature() -> inspect.Signature:
    """The options of ``audit run`` that belong to a plan, and those of freezing."""
    from auditor.cli.run import run

    taken = [p for n, p in inspect.signature(run, eval_str=True).parameters.items() if n not in NOT_PLAN]
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [
        inspect.Parameter("output", keyword, annotation=Output),
        inspect.Parameter("by", keyword, default="", annotation=By),
        inspect.Parameter("reason", keyword, default="", annotation=Reason),
    ]
    return inspect.Signature([*(p.replace(kind=keyword) for p in taken), *own], return_annotation=int)


def _command() -> typer.Typer:
    signature = _signature()
    _freeze.__signature__ = signature  # type: ignore[attr-defined]
    _freeze.__annotations__ = {n: p.annotation for n, p in signature.parameters.items()} | {"return": int}
    if not app.registered_commands:
        app.command("freeze")(_freeze)
    return app


def run_frozen(
    path: Path, flags: Mapping[str, Any], *, format: str = "terminal", fail_on: str | None = None
) -> int:
    """Run a frozen plan and return the exit code.

    Parameters
    ----------
    path : Path
        The frozen plan.
    flags : mapping
        Further flags as fields of `Plan`; one that changes the plan is recorded as a deviation.
    format : str
        ``terminal`` or ``json``.
    fail_on : str or None
        As ``--fail-on``.
    """
    from auditor import freeze, pipeline, result
    from auditor.store.folder import RunFolder

    common.check_format(format)
    frozen = freeze.load(path)
    plan = freeze.with_flags(frozen, flags)

    async def go() -> result.Result:
        parts = pipeline.prepare(plan)
        stored = pipeline.plan_record(parts)
        about = freeze.reference(frozen, stored)
        for row in about["deviations"]:
            print(f"deviation from the frozen plan: {row['what']}", file=sys.stderr)
        with RunFolder.create(pipeline.root_folder(plan), stored | {"frozen": about}) as folder:
            await pipeline.run_audit(parts, folder, observe=Draw())
            return result.settle(folder)

    done: result.Result = pipeline.run_sync(go)
    return finish(done, format=format, fail_on=fail_on or plan.fail_on)


@show_app.command()
def show(plan: Annotated[Path, typer.Argument(metavar="FILE", help="A frozen plan.")]) -> int:
    """Check a frozen plan's hash and print what it fixes."""
    from auditor import freeze

    found = freeze.load(plan)
    named = found.frozen_by or "nobody named"
    sys.stdout.write(f"Frozen {found.frozen_at} by {named}; SHA-256 {found.sha256}\n")
    for name, value in found.plan.as_dict().items():
        if value not in (None, [], ""):
            sys.stdout.write(
                f"  {name:<16}{', '.join(map(str, value)) if isinstance(value, list) else value}\n"
            )
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    if argv[:1] == ["freeze"]:
        return invoke(_command(), "plan freeze", argv[1:])
    if argv[:1] == ["show"]:
        return invoke(show_app, "plan show", argv[1:])
    from auditor.cli.main import EXIT_USER, complain

    if argv[:1] in ([], ["--help"], ["-h"]):
        sys.stdout.write(
            "Usage: audit plan freeze PLAN-OPTIONS --output FILE   fix a plan before the run\n"
            "       audit plan show FILE                           check its hash, print what it fixes\n"
            "       audit run --plan FILE                          run exactly it\n"
        )
        return 0
    complain(f"audit plan has no command {argv[0]!r}: freeze or show. See: audit plan --help")
    return EXIT_USER
