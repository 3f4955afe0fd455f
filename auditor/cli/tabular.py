"""``audit tabular``: Themis, Aequitas and SG on a model of table rows."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from auditor.cli import frame, run_folders
from auditor.cli.frame import Draw, fitted, option, say, takes
from auditor.cli.run_folders import agree
from auditor.core.errors import AuditError, ConfigError
from auditor.core.fail_on import parse
from auditor.core.options import FILE, Group, about
from auditor.core.shown import inline
from auditor.core.types import names
from auditor.tables.tabular_plan import MethodOptions, TabularPlan, read_settings


@takes("tabular", TabularPlan, MethodOptions)
@frame.printed
@frame.full
@frame.fail_on
@frame.config
@frame.file(
    "--plan", help="Run a frozen plan (audit plan freeze tabular); other flags count as deviations.", group=Group.ASKED
)
@frame.dry_run
@frame.yes
def tabular(
    *,
    format: str,
    full: bool,
    fail_on: str | None,
    config: Path | None,
    plan: Path | None,
    dry_run: bool,
    yes: bool,
    **options: object,
) -> int:
    """Search for rows whose label changes when only protected columns change."""
    from auditor.core.record import RunRecord
    from auditor.tables.tabular_run import audit_table, load_frozen, with_flags

    run_folders.with_waivers(RunRecord())  # a slip in the file is told before anything is asked
    frozen = None if plan is None else load_frozen(plan)
    chosen = plan_of(options, config) if frozen is None else with_flags(frozen, settings_of(options))
    _check_flags(chosen)
    _check_rule(fail_on, chosen.method)
    if dry_run:
        sys.stdout.write(_outlook(chosen, format))
        return 0
    limits = ("max_calls", "max_cost") if chosen.served else ("max_evaluations",)
    agree(
        [chosen.model],
        limited=any(getattr(chosen, name) is not None for name in limits),
        yes=yes,
        show=lambda: _outlook(chosen, "terminal"),
        limits=" or ".join(f"--{name.replace('_', '-')} N" for name in limits),
    )
    return run_folders.finish(
        audit_table(chosen, observe=Draw(), frozen=frozen), format=format, fail_on=fail_on, full=full
    )


def settings_of(values: Mapping[str, object]) -> dict[str, object]:
    """Options of ``audit tabular`` as fields of its plan."""
    own = MethodOptions.model_validate({n: v for n, v in values.items() if n in MethodOptions.settings()})
    fields = TabularPlan.settings()
    rest = {fields[name].alias or name: value for name, value in values.items() if name in fields}
    return rest | {"options": own.model_dump(exclude_none=True) | read_settings(values.get("options", ()))}


def plan_of(values: Mapping[str, object], config: Path | None = None) -> TabularPlan:
    """Return the plan that the options of ``audit tabular`` make, on the table ``[tabular]`` of ``audit.toml``."""
    file = config or (FILE if FILE.exists() else None)
    typed = {} if file is None else TabularPlan.read_toml(file, MethodOptions)
    flags = TabularPlan.flags() | MethodOptions.flags()
    of_file = [flags[name].flag for name in typed.keys() - values.keys()]
    values = {**typed, **values}
    if "model" not in values or not {"data", "task", "schema_file"} & set(values):
        raise ConfigError(
            "audit tabular needs --data FILE and --model SPEC, e.g. "
            "audit tabular --data german.csv --target credit --protected sex --model sklearn:model.skops, or "
            "audit tabular --task lending --model openai:NAME --method aequitas --max-calls 2000"
        )
    try:
        return TabularPlan.model_validate(settings_of(values))
    except AuditError as error:
        raise about(error, file, of_file) from None


def _check_flags(plan: TabularPlan) -> None:
    """Refuse flags that do not go with each other."""
    limits = {"--max-calls": plan.max_calls, "--max-cost": plan.max_cost}
    if not plan.served and (served := [name for name, value in limits.items() if value is not None]):
        raise ConfigError(
            f"{served[0]} goes with --task or http: models; other models are limited with --max-evaluations"
        )
    if plan.task is None and plan.prompt_format is not None:
        raise ConfigError("--prompt-format goes with --task: there is no prompt without one")


def _outlook(plan: TabularPlan, format: str) -> str:
    """What a plan will ask and can show, without asking."""
    from auditor.report import run_checks, words
    from auditor.tables.tabular_run import outlook

    _, expected = outlook(plan, Draw())
    if format == "json":
        return json.dumps(msgspec.to_builtins(expected), indent=2, sort_keys=True) + "\n"
    lines = [*run_checks.expectations(msgspec.to_builtins(expected)), "Nothing was asked.", ""]
    return words.encodable("\n".join(fitted(inline(line)) for line in lines), sys.stdout.encoding)


def _check_rule(fail_on: str | None, method: str) -> None:
    """Refuse, before anything is asked, a rule about rates that a method does not measure."""
    lacks = {"aequitas": ("net",), "sg": ("net", "excess")}.get(method, ())
    for part in parse(fail_on) if fail_on is not None else ():
        if part.word in lacks:
            raise ConfigError(
                f"--fail-on: {part.text} does not go with --method {method}: its cases are searched for, which says "
                "nothing about how often this happens. Use shown, or measure it with --method themis"
            )


@frame.argument("data", "DATA", "A .csv or .csv.gz file with a header.", type=str)
@option("target", plan=TabularPlan, help="The column that holds the label (default: the last).")
@option("protected", plan=TabularPlan, multiple=False, help="Columns to protect, comma-separated.")
@frame.out(help="File to write (default: stdout).")
def schema(*, data: str, target: str | None, protected: str | None, out: Path | None) -> int:
    """Write the schema of a table as YAML, to be edited."""
    from auditor.tables import infer_schema

    text = infer_schema(data, target, names(protected or ()))
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        say(f"Wrote {out}", to=sys.stderr)
    return 0
