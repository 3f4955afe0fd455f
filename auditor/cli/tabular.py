"""``audit tabular``: Themis, Aequitas and SG on a model of table rows."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.cli import common
from auditor.cli.common import Draw, invoke, split

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
resume_app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
schema_app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(
    epilog="`audit tabular schema DATA` writes a schema to edit; `audit tabular resume RUN` goes on with a run "
    "of --task or an http: model."
)
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
    method: Annotated[str, typer.Option("--method", help="themis, aequitas or sg.")] = "themis",
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
        str, typer.Option("--distance", help="exact, or absolute for models that return scores.")
    ] = "exact",
    distance_threshold: Annotated[
        float, typer.Option("--distance-threshold", help="Outputs differ if their distance is above it.")
    ] = 0.0,
    delta: common.Delta = None,
    seed: common.SeedOption = None,
    max_evaluations: Annotated[
        int | None, typer.Option("--max-evaluations", help="Rows passed to the model at most.")
    ] = None,
    max_calls: common.MaxCalls = None,
    max_cost: common.MaxCost = None,
    max_seconds: common.MaxSeconds = None,
    price_in: common.PriceIn = None,
    price_out: common.PriceOut = None,
    base_url: common.BaseUrl = None,
    concurrency: common.Concurrency = None,
    prompt_format: Annotated[
        str | None, typer.Option("--prompt-format", help="With --task: one of its prompt formats.")
    ] = None,
    replicates: Annotated[
        int,
        typer.Option("--replicates", help="With --task: times each row is asked; the majority is its label."),
    ] = 1,
    slices: Annotated[
        int, typer.Option("--slices", help="Subgroups with the highest rates that are shown; 0: none.")
    ] = 10,
    no_cache: common.NoCache = False,
    trust_pickle: Annotated[
        bool,
        typer.Option("--trust-pickle", help="Open .joblib and .pickle models; opening one runs its code."),
    ] = False,
    out: common.Out = None,
    format: common.Format = "terminal",
) -> int:
    """Search for rows whose label changes when only protected columns change."""
    from auditor.errors import ConfigError
    from auditor.tabular import TabularPlan, audit_table

    common.check_format(format)
    if model is None or (data is None and task is None and schema is None):
        raise ConfigError(
            "audit tabular needs --data FILE and --model SPEC, e.g. "
            "audit tabular --data german.csv --target credit --protected sex --model sklearn:model.skops, or "
            "audit tabular --task lending --model openai:NAME --method aequitas --max-calls 2000"
        )
    limits = {"--max-calls": max_calls, "--max-cost": max_cost}
    served = task is not None or model.startswith("http:")
    if not served and (given := [name for name, value in limits.items() if value is not None]):
        raise ConfigError(
            f"{given[0]} goes with --task or http: models; other models are limited with --max-evaluations"
        )
    if task is None and prompt_format is not None:
        raise ConfigError("--prompt-format goes with --task: there is no prompt without one")
    named = {
        "mode": mode,
        "protocol": protocol,
        "confidence": confidence,
        "epsilon": epsilon,
        "theta": theta,
        "max_samples": max_samples,
        "measure": measure,
        "columns": split(columns),
        "seed_source": seed_source,
    }
    options: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    method_: Any = method
    run = audit_table(
        TabularPlan(
            data=data or "",
            model=model,
            task=task,
            target=target,
            schema=schema,
            protected=split(protected) or (),
            method=method_,
            options=options | read_settings(set_ or ()),
            profile=profile,
            favourable=favourable,
            distance=distance,
            distance_threshold=distance_threshold,
            delta=delta,
            seed=7 if seed is None else seed,
            max_evaluations=max_evaluations,
            max_seconds=max_seconds,
            trust_pickle=trust_pickle,
            retrain=retrain,
            max_calls=max_calls,
            max_cost=max_cost,
            price_in=price_in,
            price_out=price_out,
            concurrency=16 if concurrency is None else concurrency,
            cache=not no_cache,
            base_url=base_url,
            prompt_format=prompt_format,
            replicates=replicates,
            slices=slices,
            out=out or "reports",
        ),
        observe=Draw(),
    )
    return _finish(run, format)


def _finish(run: Any, format: str) -> int:
    """Print a run and return its exit code."""
    from auditor.cli.main import EXIT_INCOMPLETE, complain

    if format == "json":
        sys.stdout.write(json.dumps(run.record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        sys.stdout.write(run.to_text(width=None if sys.stdout.isatty() else 100))
    sys.stdout.flush()
    if run.path is not None:
        print(f"Report: {run.path / 'report.html'}", file=sys.stderr)
    if not run.complete:
        spec = run.record["spec"]
        further, reason = "", run.record["status_reason"].rstrip(".")
        if run.path is not None and (spec["task"] is not None or spec["model"].startswith("http:")):
            further = f" Go on with: audit tabular resume {run.path} --max-calls N (or another limit)"
        complain(f"The search is incomplete: {reason}.{further}")
        return EXIT_INCOMPLETE
    return 0


def read_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` options; values are read as YAML scalars or lists.

    Examples
    --------
    >>> read_settings(["global-n=500", "walk=drift"])
    {'global_n': 500, 'walk': 'drift'}
    """
    import yaml

    from auditor.errors import ConfigError

    result: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set expects NAME=VALUE; got {pair!r}")
        try:
            result[name.strip().replace("-", "_")] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ConfigError(f"--set {pair!r}: the value cannot be read") from error
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
    from auditor.tabular import infer_schema

    text = infer_schema(data, target, split(protected) or ())
    if out is None:
        sys.stdout.write(text)
    else:
        out.write_text(text, encoding="utf-8")
        print(f"Wrote {out}", file=sys.stderr)
    return 0


@resume_app.command()
def resume(
    run: common.RunArgument,
    format: common.Format = "terminal",
    max_calls: common.MaxCalls = None,
    max_cost: common.MaxCost = None,
    max_seconds: common.MaxSeconds = None,
) -> int:
    """Finish RUN, a run with --task or an http: model. New limits may be given; they are for the whole run."""
    from auditor.tabular import resume_table

    common.check_format(format)
    limits = {"max_calls": max_calls, "max_cost": max_cost, "max_seconds": max_seconds}
    return _finish(resume_table(common.find_run(run), observe=Draw(), limits=limits), format)


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    if argv[:1] == ["resume"]:
        return invoke(resume_app, "tabular resume", argv[1:])
    if argv[:1] == ["schema"]:
        return invoke(schema_app, "tabular schema", argv[1:])
    return invoke(app, "tabular", argv)
