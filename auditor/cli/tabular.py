"""``audit tabular``: Themis, Aequitas and SG on a model of table rows."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.cli import common, consent
from auditor.cli.common import Draw, invoke
from auditor.cli.options import option
from auditor.cli.spending import agree
from auditor.core.shown import inline
from auditor.core.types import names

if TYPE_CHECKING:
    from auditor.tables import TabularPlan

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
resume_app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
schema_app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
def tabular(
    data: Annotated[
        str | None,
        typer.Option("--data", help="Rows: a .csv or .csv.gz file with a header. Not needed with --task."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option("--task", help="A language model decides: lending, income, or a task file with labels."),
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="The column that holds the label.")] = None,
    schema: Annotated[
        str | None,
        typer.Option("--schema", help="Schema file (audit tabular schema DATA). Default: inferred."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="sklearn:FILE, python:MODULE:FUNCTION (array to array), exec:COMMAND, http:FILE.yaml (a "
            "server); with --task any model of text, e.g. openai:NAME.",
        ),
    ] = None,
    protected: Annotated[
        str | None,
        typer.Option("--protected", help="Columns that are changed, comma-separated, e.g. sex,race."),
    ] = None,
    method: Annotated[str | None, typer.Option("--method", help="themis (default), aequitas or sg.")] = None,
    mode: Annotated[
        str | None,
        typer.Option("--mode", help="themis: score, search. aequitas: random, semi, fully, population."),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            help="default; themis: the paper's own stopping rule; sg: the paper's own order and neighbourhood.",
        ),
    ] = None,
    seed_source: Annotated[
        str | None, typer.Option("--seed-source", help="sg: clusters (of --data, default), data, or random.")
    ] = None,
    retrain: Annotated[
        bool,
        typer.Option(
            "--retrain", help="aequitas on sklearn: models: fit again with portions of the finds and compare."
        ),
    ] = False,
    confidence: Annotated[
        float | None, typer.Option("--confidence", help="themis: level (default 0.99).")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", help="themis: half-width at which sampling stops (default 0.05)."),
    ] = None,
    theta: Annotated[
        float | None, typer.Option("--theta", help="themis search: threshold (default 0.75).")
    ] = None,
    max_samples: Annotated[
        int | None,
        typer.Option("--max-samples", help="themis: rows drawn at most per score (default 10,000)."),
    ] = None,
    measure: Annotated[str | None, typer.Option("--measure", help="themis search: causal or group.")] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", help="themis search: columns whose subsets are searched.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="themis: distribution of rows (.yaml), or rows (.csv).")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=VALUE: any further option of the method.")
    ] = None,
    favourable: Annotated[
        str | None, typer.Option("--favourable", help="The label that is good for the person concerned.")
    ] = None,
    distance: Annotated[
        str | None,
        typer.Option(
            "--distance",
            help="exact (default), absolute for models that return scores, or FILE.yaml: distances between labels.",
        ),
    ] = None,
    distance_threshold: Annotated[
        float | None,
        typer.Option(
            "--distance-threshold", help="Outputs differ if their distance is above it (default 0)."
        ),
    ] = None,
    distance_scale: Annotated[
        float | None,
        typer.Option(
            "--distance-scale", help="absolute: the difference of two scores whose distance is 1 (default 1)."
        ),
    ] = None,
    delta: Annotated[float | None, option("delta")] = None,
    seed: Annotated[int | None, option("seed")] = None,
    max_evaluations: Annotated[
        int | None, typer.Option("--max-evaluations", help="Rows passed to the model at most.")
    ] = None,
    max_calls: Annotated[int | None, option("max_calls")] = None,
    max_cost: Annotated[float | None, option("max_cost")] = None,
    max_seconds: Annotated[float | None, option("max_seconds")] = None,
    price_in: Annotated[float | None, option("price_in")] = None,
    price_out: Annotated[float | None, option("price_out")] = None,
    base_url: Annotated[str | None, option("base_url")] = None,
    concurrency: Annotated[int | None, option("concurrency")] = None,
    prompt_format: Annotated[
        str | None, typer.Option("--prompt-format", help="With --task: one of its prompt formats.")
    ] = None,
    replicates: Annotated[
        int | None,
        typer.Option(
            "--replicates",
            help="With --task: times each row is asked; the majority is its label (default 1).",
        ),
    ] = None,
    slices: Annotated[
        int | None,
        typer.Option(
            "--slices", help="Subgroups with the highest rates that are shown (default 10); 0: none."
        ),
    ] = None,
    no_cache: Annotated[bool | None, option("cache")] = None,
    trust_pickle: Annotated[
        bool,
        typer.Option("--trust-pickle", help="Open .joblib and .pickle models; opening one runs its code."),
    ] = False,
    out: Annotated[str | None, option("out")] = None,
    format: common.Format = "terminal",
    fail_on: common.FailOn = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", help="Run a frozen plan (audit plan freeze tabular); flags given beside deviate."
        ),
    ] = None,
    dry_run: common.DryRun = False,
    yes: common.Yes = False,
) -> int:
    r"""Search for rows whose label changes when only protected columns change.

    \b
    Two more commands (each has --help):
      audit tabular schema DATA   write a schema to edit
      audit tabular resume RUN    go on with a run of --task or an http: model
    """
    values = dict(locals())
    from auditor.tables import audit_table, frozen

    common.check_format(format)
    common.with_waivers({})  # a slip in the file is told before anything is asked
    found = None if plan is None else frozen.load(plan)
    chosen = plan_of(values) if found is None else frozen.with_flags(found, flags_of(values))
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
        check=lambda: None,
        show=lambda: _outlook(chosen, "terminal"),
        limits=" or ".join(f"--{name.replace('_', '-')} N" for name in limits),
    )
    return _finish(audit_table(chosen, observe=Draw(), frozen=found), format, fail_on)


OWN = (
    "mode",
    "protocol",
    "confidence",
    "epsilon",
    "theta",
    "max_samples",
    "measure",
    "columns",
    "seed_source",
)


def flags_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ``audit tabular`` as fields of its plan; what was not given is None or empty."""
    import dataclasses

    from auditor.tables import TabularPlan

    named: dict[str, Any] = {name: values.get(name) for name in OWN}
    named["columns"] = names(values["columns"]) if values.get("columns") else None
    given = {name: value for name, value in named.items() if value is not None}
    further = {k: v for k, v in read_settings(values.get("set_") or ()).items() if v is not None}
    fields = {field.name for field in dataclasses.fields(TabularPlan)}
    flags = {name: value for name, value in values.items() if name in fields}
    return flags | {
        "protected": names(values.get("protected") or ()),
        "options": given | further,
        "cache": False if values.get("no_cache") else None,
        # A switch that was not given is False, and must not turn off what a plan turns on.
        "retrain": values.get("retrain") or None,
        "trust_pickle": values.get("trust_pickle") or None,
    }


def plan_of(values: Mapping[str, Any]) -> TabularPlan:
    """The plan that the options of ``audit tabular`` make.

    Raises
    ------
    ConfigError
        No data or no model is given.
    """
    from auditor.core.errors import ConfigError
    from auditor.tables import TabularPlan

    flags = {name: value for name, value in flags_of(values).items() if value is not None}
    if "model" not in flags or not {"data", "task", "schema"} & set(flags):
        raise ConfigError(
            "audit tabular needs --data FILE and --model SPEC, e.g. "
            "audit tabular --data german.csv --target credit --protected sex --model sklearn:model.skops, or "
            "audit tabular --task lending --model openai:NAME --method aequitas --max-calls 2000"
        )
    return TabularPlan(**{"data": "", **flags})


def _check_flags(plan: TabularPlan) -> None:
    """Refuse flags that do not go with each other."""
    from auditor.core.errors import ConfigError

    limits = {"--max-calls": plan.max_calls, "--max-cost": plan.max_cost}
    if not plan.served and (given := [name for name, value in limits.items() if value is not None]):
        raise ConfigError(
            f"{given[0]} goes with --task or http: models; other models are limited with --max-evaluations"
        )
    if plan.task is None and plan.prompt_format is not None:
        raise ConfigError("--prompt-format goes with --task: there is no prompt without one")


def _outlook(plan: TabularPlan, format: str) -> str:
    """What a plan will ask and can show, without asking."""
    from auditor.report import planned, words
    from auditor.tables.frozen import outlook

    found = outlook(plan)
    if format == "json":
        return json.dumps(found.expected, indent=2, sort_keys=True) + "\n"
    lines = [*planned.lines(found.expected), "Nothing was asked.", ""]
    return words.encodable("\n".join(map(inline, lines)), sys.stdout.encoding)


def _check_rule(fail_on: str | None, method: str) -> None:
    """Refuse, before anything is asked, a rule about rates that a method does not measure."""
    from auditor.core import rules
    from auditor.core.errors import ConfigError

    measured = {"aequitas": ("share",), "sg": ()}.get(method)
    if fail_on is None or measured is None:
        return
    for rate in rules.rates(rules.parse(fail_on)):
        if rate.score not in measured:
            told = "; share(…) is the share over uniform draws of its own" if measured else ""
            raise ConfigError(
                f"--fail-on: {rate.text} does not go with --method {method}: its cases are searched for, which says "
                f"nothing about how often labels change{told}. Use shown or violations > N, or measure the rate with "
                "--method themis"
            )


def _finish(run: Any, format: str, fail_on: str | None) -> int:
    """Print a run and return its exit code."""
    from auditor.cli.main import complain

    record = common.with_waivers(run.record)
    if format == "json":
        sys.stdout.write(json.dumps(record, indent=1, allow_nan=False) + "\n")
    else:
        run.record.update(record)
        sys.stdout.write(run.to_text(**common.screen()))
    sys.stdout.flush()
    if run.path is not None:
        common.say_where(run.path)
    if not run.complete:
        spec = run.record["spec"]
        further, reason = "", run.record["status_reason"].rstrip(".")
        if run.path is not None and (spec["task"] is not None or spec["model"].startswith("http:")):
            named = consent.Named.of([spec["model"]], [spec["base_url"]]).options()
            further = f"Go on with: audit tabular resume {common.quoted(run.path)}{named} --max-calls N"
            further += " (or another limit)"
        complain(f"The search is incomplete: {reason}.", further)
    return common.judge(record, fail_on, partial=not run.complete)


def read_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` options; values are read as YAML scalars or lists.

    Examples
    --------
    >>> read_settings(["global-n=500", "walk=drift"])
    {'global_n': 500, 'walk': 'drift'}
    """
    from auditor.core import yamlfile
    from auditor.core.errors import ConfigError

    result: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set expects NAME=VALUE; got {pair!r}")
        result[name.strip().replace("-", "_")] = yamlfile.load(f"--set {pair}", value)
    return result


@schema_app.command()
def schema(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A .csv or .csv.gz file with a header.")],
    target: Annotated[
        str | None, typer.Option("--target", help="The column that holds the label (default: the last).")
    ] = None,
    protected: Annotated[
        str | None, typer.Option("--protected", help="Columns to protect, comma-separated.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File to write (default: stdout).")] = None,
) -> int:
    """Write the schema of a table as YAML, to be edited."""
    from auditor.tables import infer_schema

    text = infer_schema(data, target, names(protected or ()))
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        common.say(f"Wrote {out}", to=sys.stderr)
    return 0


@resume_app.command()
def resume(
    run: common.RunArgument,
    format: common.Format = "terminal",
    max_calls: Annotated[int | None, option("max_calls")] = None,
    max_cost: Annotated[float | None, option("max_cost")] = None,
    max_seconds: Annotated[float | None, option("max_seconds")] = None,
    fail_on: common.FailOn = None,
    model: consent.Models = None,
    base_url: consent.Address = None,
    yes: consent.Yes = False,
) -> int:
    """Finish RUN, a run with --task or an http: model. New limits may be given; they are for the whole run."""
    from auditor.store.folder import RunFolder
    from auditor.tables import resume_table

    common.check_format(format)
    limits = {"max_calls": max_calls, "max_cost": max_cost, "max_seconds": max_seconds}
    path = common.find_intact(run)
    plan, again = RunFolder.open(path).plan, f"tabular resume {common.quoted(path)}"
    named = consent.Named.of([plan.get("model")], [plan.get("base_url")])
    named.consent(path, again=again, yes=yes, given=model or (), base_url=base_url)
    return _finish(resume_table(path, observe=Draw(), limits=limits), format, fail_on)


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    if argv[:1] == ["resume"]:
        return invoke(resume_app, "tabular resume", argv[1:])
    if argv[:1] == ["schema"]:
        return invoke(schema_app, "tabular schema", argv[1:])
    return invoke(app, "tabular", argv)
