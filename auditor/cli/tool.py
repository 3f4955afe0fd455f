"""``audit list`` and ``doctor``: what the tool knows, has and keeps; whether a model can be audited."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

from auditor.cli import frame
from auditor.cli.frame import Words, option, takes
from auditor.cli.screen import fitted, print_as, say
from auditor.core import registry
from auditor.core.errors import PluginError, UnknownPlugin
from auditor.core.plan import Plan
from auditor.core.shown import plural
from auditor.report.words import visible

if TYPE_CHECKING:
    from auditor.models.catalogue import Listed
    from auditor.run.doctor import Examined

MARKS = {"ok": "ok", "note": "note", "failed": "FAILED", "skipped": "-"}


def models(format: frame.Format = "terminal") -> int:
    """List the kinds of models, what each needs, and what of that is installed or set."""
    from auditor.models.catalogue import kinds

    rows = kinds()
    return print_as(format, rows, _models(rows))


def _models(rows: Iterable[Listed]) -> Iterator[str]:
    for row in rows:
        state = "installed" if row.installed else f"needs {', '.join(row.missing)}"
        yield from (f"{row.spec:<26}{state}", f"    {row.what}")
        if row.install:
            yield f"    Run: {row.install}"
        if row.environment:
            yield "    environment: " + _set(row.environment)
        for name, needs in row.providers.items():
            here = "installed" if needs.installed else f"Run: {needs.install}"
            key = f"; {_set(needs.environment)}" if needs.environment else ""
            yield f"    {name:<14}{here}{key}"
        yield from (f"    e.g. {row.example}", "")
    yield "Try one in a handful of calls: audit doctor --model SPEC"


def _set(environment: dict[str, bool]) -> str:
    return ", ".join(f"{name} {'set' if there else 'not set'}" for name, there in environment.items())


def plugins(format: frame.Format = "terminal") -> int:
    """List plugins of every kind: those built in and those of installed packages."""
    rows = listed()
    return print_as(format, rows, _plugins(rows))


def listed() -> list[dict[str, str]]:
    """One row for each plugin; those of other packages are imported to see whether they load."""
    from auditor.tasks.kinds import KINDS

    rows = []
    for kind in (*registry.KINDS, KINDS):
        for name in kind.names():
            problem, origin = "", kind.origin(name)
            if origin != "built in":
                try:
                    kind.load(name)
                except PluginError as error:
                    problem = str(error)
            rows.append(
                {"kind": kind.kind, "name": name, "from": origin, "where": kind.where(name), "problem": problem}
            )
    return rows


def _plugins(rows: list[dict[str, str]]) -> Iterator[str]:
    for kind in dict.fromkeys(row["kind"] for row in rows):
        yield f"{kind}s"
        for row in rows:
            if row["kind"] == kind:
                yield f"  {row['name']:<22}{row['from']:<28}{row['where']}".rstrip()
                yield from [f"      {row['problem']}"] if row["problem"] else []
        yield ""
    yield "A suite of another package is chosen by its name: audit --suite NAME. A package offers plugins as entry"
    yield "points. PACKAGE:NAME chooses a plug-in whose name another one has."


@takes("doctor", Plan)
def doctor(
    model: Annotated[str, option("models", help="Model spec (audit list models lists the kinds).")],
    task: Annotated[str, option("task", help="Task whose prompts are asked (default: sentiment).")] = "sentiment",
    format: frame.Format = "terminal",
    **options: object,
) -> int:
    """Check key, server, answers, positive control, repeats, log-probabilities, speed and price, in at most 10 calls.

    Exit codes: 0 it can be audited; 2 it could not be asked; 3 calls failed, answers could not be read, or the positive
    control was not seen.
    """
    from auditor import tasks
    from auditor.run import doctor as logic

    plan = Plan.of(options).but(task=task)
    prices = {name: plan.limits[name] for name in ("price_in", "price_out")}
    examined = logic.examine(
        model, task=tasks.of_plan(plan), base_url=plan.base_url, **prices, server=plan.settings_for(model)
    )
    return print_as(format, examined, _examined(examined), code=examined.exit_code)


def _examined(examined: Examined) -> Iterator[str]:
    repeated = f", {examined.repeated} of them repeated" if examined.repeated else ""
    yield f"{visible(examined.model)} on the task {examined.task}: {plural(examined.calls, 'call')}{repeated}"
    yield ""
    for check in examined.checks:
        text = fitted(f"{MARKS[check.status]:<8}{check.name:<18}{visible(check.text, newlines=False)}", " " * 26)
        yield from text.split("\n")
        if check.next:
            yield f"{'':<26}{visible(check.next, newlines=False)}"
    yield from ("", examined.summary)


def show() -> int:
    """Say where the response cache is and how much it holds."""
    from auditor.models.reply_cache import Cache

    stats = Cache().stats()
    say(stats.path, f"{plural(stats.entries, 'answer')}, {plural(stats.size_bytes, 'byte')}")
    return 0


def clear() -> int:
    """Delete every cached answer; run folders keep theirs."""
    from auditor.models.reply_cache import Cache

    Cache().clear()
    say("The response cache is empty.")
    return 0


CACHE = Words({"show": show, "clear": clear}, "show")
USAGE = """\
Usage: audit list models                        kinds of models, and what each needs
       audit list tasks                         tasks; new NAME writes a file to start from, format describes it
       audit list dictionaries [ATTRIBUTE]      attributes, groups, words; show, check FILE, format
       audit list grammars                      grammars; sample, check, format
       audit list plugins                       plug-ins of every kind, and where they come from
       audit list cache                         the response cache; clear
"""
LISTS = {
    "models": "tool:models",
    "tasks": "material:TASKS",
    "dictionaries": "material:DICTIONARY",
    "grammars": "grammar:GRAMMAR",
    "plugins": "tool:plugins",
    "cache": "tool:CACHE",
}


def command(argv: list[str]) -> int:
    """Run ``audit list KIND …`` and return its exit code."""
    if argv[:1] in ([], ["--help"], ["-h"]):
        sys.stdout.write(USAGE)
        return 0
    if argv[0] not in LISTS:
        raise UnknownPlugin("list", argv[0], LISTS, "See: audit list --help")
    module, _, name = LISTS[argv[0]].partition(":")
    target = getattr(importlib.import_module(f"auditor.cli.{module}"), name)
    return frame.invoke(target, f"list {argv[0]}", argv[1:])
