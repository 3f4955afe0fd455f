"""``audit agent`` and ``audit mcp``: from a goal in plain words to runs and a report with the reasons."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.cli import frame
from auditor.cli.frame import EXIT_INCOMPLETE, Draw, complain, say, screen, takes
from auditor.cli.run_folders import Consent, agree
from auditor.core.errors import ConfigError
from auditor.core.plan import Plan
from auditor.core.shown import plural


@takes("agent", Plan)
@frame.argument("goal", "GOAL", "A question in plain words, or a goal file (.yaml).", type=str)
@frame.printed
@frame.full
@frame.dry_run
@frame.yes
def agent(*, goal: str, format: str, full: bool, dry_run: bool, yes: bool, **options: object) -> int:
    """Plan audits for a goal, run them within one budget, look closer where it pays, report each reason."""
    from auditor import agent as agents

    request = _request(options)
    if dry_run:
        ahead = agents.outline(goal, **request)
        sys.stdout.write((ahead.to_json() if format == "json" else ahead.to_text(**screen(), full=True)) + "\n")
        return 0
    chosen = Plan.of(options)
    agents.read_goal(goal, task=request.get("task"))  # a slip is told before the question
    agree(
        chosen.models,
        limited=chosen.limited,
        yes=yes,
        show=lambda: agents.outline(goal, **request).to_text(**screen(), full=True),
    )
    return _show(agents.run(goal, observe=Draw(), **request), format, full)


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


def resume_session(path: Path, limits: Mapping[str, object], consent: Consent, format: str, *, full: bool) -> int:
    """Go on with the session in ``path``, within the limits that it has."""
    from auditor import agent as agents
    from auditor.agent.session import unfinished

    kept, stored = unfinished(path)
    if limits:
        flags = ", ".join(map(Plan.flag, limits))
        raise ConfigError(f"The settings and limits of a session are fixed when it begins; leave out {flags}.")
    own = {name: getattr(kept.limits, name) for name in ("max_calls", "max_cost")}
    consent(Plan.of({**stored.common, **own, "models": stored.models or ()}).as_dict())
    return _show(agents.resume(path, observe=Draw()), format, full)


def report_session(path: Path, names: Sequence[str], out: str | None, *, full: bool) -> int:
    """Render the session in ``path`` again, also one that was cut off."""
    from auditor import agent as agents

    result = agents.load(path)
    made = {
        "html": (result.to_html, ".html"),
        "markdown": (result.to_markdown, ".md"),
        "json": (result.to_json, ".json"),
    }
    if other := [name for name in names if name not in made and name != "terminal"]:
        raise ConfigError(
            f"--format {other[0]} is made of one run. A session has terminal, {', '.join(made)}; its runs are in "
            f"{path / 'runs'}."
        )
    for name in names:
        if name == "terminal":
            sys.stdout.write(result.to_text(**screen(), full=full))
            continue
        render, suffix = made[name]
        if out == "-":
            sys.stdout.write(render() + "\n")
            continue
        target = Path(out) if out else path / f"agent{suffix}"
        target.write_text(render(), encoding="utf-8")
        say(target)
    return 0


def verify_session(path: Path) -> int:
    """Check the steps of the session in ``path`` and all its runs."""
    from auditor.agent.session import verified

    runs, problems = verified(path)
    say(*problems)
    if not problems:
        of = f"its steps, and its {plural(runs, 'run')}"
        say(f"{path}: nothing that was checked was changed: {of}.", "audit verify RUN lists the checks of each run.")
    return 1 if problems else 0


@takes("agent", Plan)
@frame.argument("goal", "GOAL", "The goal of the audits in plain words, or a goal file (.yaml).", type=str)
@frame.yes
def mcp(*, goal: str, yes: bool, **options: object) -> int:
    """Serve estimate, run, findings, show and report to a client; all runs share one budget, and each step is kept."""
    from auditor import agent as agents

    request = _request(options)
    chosen = Plan.of(options)
    agents.read_goal(goal, task=request.get("task"))
    # The client cannot be asked: without a limit, a model that may cost money is refused.
    agree(chosen.models, limited=chosen.limited, yes=yes, show=lambda: "")
    result = agents.serve(goal, observe=Draw(), **request)
    return 0 if result.complete else 3
