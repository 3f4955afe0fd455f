"""``audit agent`` and ``audit mcp``: from a goal in plain words to runs and a report with the reasons."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.agent.settings import PlannerOptions
from auditor.cli import frame, run_folders
from auditor.cli.frame import takes
from auditor.cli.run_folders import agree
from auditor.cli.screen import EXIT_INCOMPLETE, Draw, complain, say, screen
from auditor.core.errors import ConfigError
from auditor.core.plan import Plan
from auditor.core.shown import inline, plural, quoted


@takes("agent", Plan, PlannerOptions)
def agent(
    goal: Annotated[
        str, typer.Argument(metavar="GOAL", help="A question; with --read or --resume, a session's folder.")
    ],
    format: frame.Format = "terminal",
    full: frame.Full = False,
    dry_run: frame.DryRun = False,
    read: Annotated[bool, typer.Option("--read", help="Show the session in the folder GOAL; ask nothing.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the session in the folder GOAL, which was cut off.")
    ] = False,
    yes: frame.Yes = False,
    **options: object,
) -> int:
    """Plan audits for a goal, run them within one budget, look closer where it pays, report each reason."""
    from auditor import agent as agents

    if (read or resume) and options:
        flags = {name: PlannerOptions.flag(name) for name in PlannerOptions.settings()}
        left = ", ".join(flags.get(name) or Plan.flag(name) for name in options)
        raise ConfigError(
            f"{'--read' if read else '--resume'} takes everything from the session in the folder; leave out {left}."
        )
    if read:
        return _show(agents.load(Path(goal)), format, full)
    if resume:
        from auditor.agent.session import unfinished

        kept, stored = unfinished(Path(goal))
        again = f"agent {quoted(goal)} --resume"
        limits = {name: getattr(kept.limits, name) for name in ("max_calls", "max_cost")}
        plan = Plan.of({**stored.common, **limits, "models": stored.models or ()})
        named = run_folders.Named.of(plan.as_dict(), servers=[stored.planner_base_url])
        named.consent(Path(goal), again=again, yes=yes, named=None)
        return _show(agents.resume(Path(goal), observe=Draw()), format, full)
    planned: dict[str, Any] = {n: v for n, v in options.items() if n in PlannerOptions.settings()}
    options = {n: v for n, v in options.items() if n not in planned}
    request = _request(options)
    if dry_run:
        sys.stdout.write(_outline(agents.outline(goal, **request), format) + "\n")
        return 0
    chosen = Plan.of(options)
    agree(
        chosen.models,
        limited=chosen.limited,
        yes=yes,
        check=lambda: agents.parse(goal, task=request.get("task")),
        show=lambda: _outline(agents.outline(goal, **request), "terminal"),
    )
    return _show(agents.run(goal, observe=Draw(), **planned, **request), format, full)


def _request(options: Mapping[str, object]) -> dict[str, Any]:
    """Options as keywords of the agent."""
    return {"model" if n == "models" else n: v for n, v in options.items()}


def _show(result: Any, format: str, full: bool) -> int:
    if format == "json":
        sys.stdout.write(result.to_json() + "\n")
    else:
        sys.stdout.write(result.to_text(**screen(), full=full))
    sys.stdout.flush()
    if (result.path / "agent.html").is_file():
        say(f"Report: {result.path / 'agent.html'}", to=sys.stderr)
    if not result.complete:
        complain(f"The session is incomplete: {result.session.status_reason}.")
        return EXIT_INCOMPLETE
    return 0


def _outline(values: dict[str, Any], format: str) -> str:
    if format == "json":
        return json.dumps(values, indent=2, sort_keys=True)
    from auditor.report import words

    goal, pilot = values["goal"], values["pilot"]
    sized, request = pilot["estimate"], pilot["request"]
    cost = "unknown" if sized["cost_usd"] is None else f"{sized['cost_usd']:.2f} USD"
    names = "those that the texts name" if goal["attributes"] is None else words.listing(goal["attributes"])
    groups = ", ".join(f"{a}: {words.group(g)}" for a, groups in goal["groups"].items() for g in groups)
    limits = ", ".join(f"{k.replace('_', ' ')} {words.figure(v)}" for k, v in values["limits"].items() if v is not None)
    lines = [
        f"Goal        {goal['text']}",
        f"Read as     {'; '.join(goal['read']) or 'given by options'}",
        f"Task        {goal['task']}",
        f"Attributes  {names}, up to {goal['order']} together",
        *([f"Groups      {groups}, to them or from them"] if groups else []),
        *([f"Filled in   {'; '.join(goal['assumed'])}"] if goal["assumed"] else []),
        f"Texts       {values['texts']['n']:,} distinct, {values['texts']['usable']:,} of them can be changed",
        f"Limits      {limits or 'none'}",
        f"Pilot       {plural(request['texts'], 'text')}, suite {request['suite']}: "
        f"{sized['calls']:,} calls, cost {cost}",
        *(f"Then        {line}" for line in values["then"]),
        "",
        "Nothing was asked.",
    ]
    return words.encodable("\n".join(map(inline, lines)), sys.stdout.encoding or "utf-8")


@takes("agent", Plan)
def mcp(
    goal: Annotated[str, typer.Argument(metavar="GOAL", help="What the audits are about, in plain words.")],
    yes: frame.Yes = False,
    **options: object,
) -> int:
    """Serve estimate, run, findings, show and report to a client; all runs share one budget, and each step is kept."""
    from auditor import agent as agents

    request = _request(options)
    chosen = Plan.of(options)
    # The client cannot be asked: without a limit, a model that may cost money is refused.
    agree(
        chosen.models,
        limited=chosen.limited,
        yes=yes,
        check=lambda: agents.parse(goal, task=request.get("task")),
        show=lambda: "",
    )
    result = agents.serve(goal, observe=Draw(), **request)
    return 0 if result.complete else 3
