"""``audit agent``: from a goal in plain words to runs and a report with the reasons."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.cli import common, consent
from auditor.cli.common import Draw, invoke
from auditor.cli.server_options import with_server_options
from auditor.cli.spending import agree
from auditor.core.errors import ConfigError
from auditor.core.shown import inline

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@with_server_options
def agent(
    goal: Annotated[
        str, typer.Argument(metavar="GOAL", help="A question; with --read or --resume, a session's folder.")
    ],
    model: common.Models = None,
    base_url: common.BaseUrl = None,
    task: common.Task = None,
    data: common.Data = None,
    text_column: common.TextColumn = None,
    label_column: common.LabelColumn = None,
    id_column: common.IdColumn = None,
    limit: common.Limit = None,
    delta: common.Delta = None,
    planner: Annotated[
        str, typer.Option("--planner", help="rules (default), openai:NAME or langchain:PROVIDER:NAME.")
    ] = "rules",
    planner_base_url: Annotated[
        str | None, typer.Option("--planner-base-url", help="Address of the planner's server.")
    ] = None,
    planner_max_calls: Annotated[
        int, typer.Option("--planner-max-calls", help="Calls of a planner that is a language model.")
    ] = 40,
    planner_max_cost: Annotated[
        float | None, typer.Option("--planner-max-cost", help="USD for the planner, beside --max-cost.")
    ] = None,
    seed: common.SeedOption = None,
    max_calls: common.MaxCalls = None,
    max_cost: common.MaxCost = None,
    max_seconds: common.MaxSeconds = None,
    price_in: common.PriceIn = None,
    price_out: common.PriceOut = None,
    concurrency: common.Concurrency = None,
    parser: common.ParserName = None,
    no_cache: common.NoCache = False,
    out: common.Out = None,
    format: common.Format = "terminal",
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say how the goal is read and what would be asked; call nothing."),
    ] = False,
    read: Annotated[
        bool, typer.Option("--read", help="Show the session in the folder GOAL; ask nothing.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the session in the folder GOAL, which was cut off.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending money.")] = False,
    **server: Any,
) -> int:
    """Plan audits for a goal, run them within one budget, look closer where it pays, report each reason."""
    from auditor import agent as agents

    common.check_format(format)
    if read or resume:
        given = {
            "--model": model, "--task": task, "--data": data, "--max-calls": max_calls,
            "--max-cost": max_cost, "--max-seconds": max_seconds, "--limit": limit, "--out": out, "--seed": seed,
            "--base-url": base_url,
            "--planner-base-url": planner_base_url, "--delta": delta, "--concurrency": concurrency, "--parser": parser,
        }  # fmt: skip
        if extra := [name for name, value in given.items() if value is not None and value != []]:
            raise ConfigError(
                f"{'--read' if read else '--resume'} takes everything from the session in the folder; leave out "
                f"{', '.join(extra)}."
            )
    if read:
        return _show(agents.load(Path(goal)), format)
    if resume:
        from auditor.agent import comeback

        kept = comeback.options(Path(goal))
        again = f"agent {common.quoted(goal)} --resume"
        servers = [(kept.get("common") or {}).get("base_url"), kept.get("planner_base_url")]
        consent.Named.of(kept.get("models") or (), servers).consent(
            Path(goal), again=again, yes=yes, given=None
        )
        return _show(agents.resume(Path(goal), observe=Draw()), format)
    shared: dict[str, Any] = {
        "base_url": base_url,
        "text_column": text_column,
        "label_column": label_column,
        "id_column": id_column,
        "limit": limit,
        "delta": delta,
        "price_in": price_in,
        "price_out": price_out,
        "concurrency": concurrency,
        "parser": parser,
        "cache": False if no_cache else None,
        **server,
    }
    options: dict[str, Any] = {k: v for k, v in shared.items() if v is not None} | {
        "model": list(model) if model else None,
        "task": task,
        "data": data,
        "max_calls": max_calls,
        "max_cost": max_cost,
        "max_seconds": max_seconds,
        "seed": 7 if seed is None else seed,
    }
    if dry_run:
        sys.stdout.write(_outline(agents.outline(goal, **options), format) + "\n")
        return 0
    agree(
        model or (),
        limited=max_calls is not None or max_cost is not None,
        yes=yes,
        check=lambda: agents.parse(goal, task=task),
        show=lambda: _outline(agents.outline(goal, **options), "terminal"),
    )
    result = agents.run(
        goal,
        out=out or "reports",
        planner=planner,
        planner_base_url=planner_base_url,
        planner_max_calls=planner_max_calls,
        planner_max_cost=planner_max_cost,
        observe=Draw(),
        **options,
    )
    return _show(result, format)


def _show(result: Any, format: str) -> int:
    from auditor.cli.main import EXIT_INCOMPLETE, complain

    if format == "json":
        sys.stdout.write(result.to_json() + "\n")
    else:
        sys.stdout.write(result.to_text(**common.screen()))
    sys.stdout.flush()
    if (result.path / "agent.html").is_file():
        common.say(f"Report: {result.path / 'agent.html'}", to=sys.stderr)
    if not result.complete:
        complain(f"The session is incomplete: {result.record['status_reason']}.")
        return EXIT_INCOMPLETE
    return 0


def _outline(values: dict[str, Any], format: str) -> str:
    if format == "json":
        import json

        return json.dumps(values, indent=2, sort_keys=True)
    from auditor.report import words

    goal, pilot = values["goal"], values["pilot"]
    sized, request = pilot["estimate"], pilot["request"]
    cost = "unknown" if sized["cost_usd"] is None else f"{sized['cost_usd']:.2f} USD"
    names = "those that the texts name" if goal["attributes"] is None else words.listing(goal["attributes"])
    groups = ", ".join(f"{a}: {words.group(g)}" for a, found in goal["groups"].items() for g in found)
    limits = ", ".join(
        f"{k.replace('_', ' ')} {words.figure(v)}" for k, v in values["limits"].items() if v is not None
    )
    lines = [
        f"Goal        {goal['text']}",
        f"Read as     {'; '.join(goal['read']) or 'given by options'}",
        f"Task        {goal['task']}",
        f"Attributes  {names}, up to {goal['order']} together",
        *([f"Groups      {groups}, to them or from them"] if groups else []),
        *([f"Filled in   {'; '.join(goal['assumed'])}"] if goal["assumed"] else []),
        f"Texts       {values['texts']['n']:,} distinct, {values['texts']['usable']:,} of them can be changed",
        f"Limits      {limits or 'none'}",
        f"Pilot       {request['texts']} texts, suite {request['suite']}"
        f"{', words inserted' if request['insertions'] else ''}: {sized['calls']:,} calls, cost {cost}",
        *(f"Then        {line}" for line in values["then"]),
        "",
        "Nothing was asked.",
    ]
    return words.encodable("\n".join(map(inline, lines)), sys.stdout.encoding or "utf-8")


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "agent", argv)
