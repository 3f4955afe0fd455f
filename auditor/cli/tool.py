"""``audit list models``, ``plugins``, ``cache`` and ``doctor``: what the tool has; whether a model can be audited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from auditor.cli import frame
from auditor.cli.frame import option, takes
from auditor.cli.screen import fitted, print_as, say
from auditor.core import protocols
from auditor.core.errors import PluginError
from auditor.core.plan import Plan
from auditor.core.shown import plural
from auditor.report.words import visible

if TYPE_CHECKING:
    from auditor.run.doctor import Examined

MARKS = {"ok": "ok", "note": "note", "failed": "FAILED", "skipped": "-"}


def models() -> int:
    """List the kinds of models, what each needs, and what of that is installed or set."""
    from auditor.models.catalogue import kinds

    for row in kinds():
        state = "installed" if row.installed else f"needs {', '.join(row.missing)}"
        say(f"{row.spec:<26}{state}", f"    {row.what}")
        if row.install:
            say(f"    Run: {row.install}")
        if row.environment:
            say("    environment: " + _set(row.environment))
        for name, needs in row.providers.items():
            here = "installed" if needs.installed else f"Run: {needs.install}"
            key = f"; {_set(needs.environment)}" if needs.environment else ""
            say(f"    {name:<14}{here}{key}")
        say(f"    e.g. {row.example}", "")
    say("Try one in a handful of calls: audit doctor --model SPEC")
    return 0


def _set(environment: dict[str, bool]) -> str:
    return ", ".join(f"{name} {'set' if there else 'not set'}" for name, there in environment.items())


def plugins() -> int:
    """List plugins of every kind; those of other packages are imported to see whether they load."""
    from auditor.tasks.kinds import KINDS

    for kind in (*protocols.KINDS, KINDS):
        say(f"{kind.kind}s")
        for name in kind.names():
            origin = kind.origin(name)
            say(f"  {name:<22}{origin:<28}{kind.where(name)}".rstrip())
            if origin != "built in":
                try:
                    kind.load(name)
                except PluginError as error:
                    say(f"      {error}")
        say("")
    say("A suite of another package is chosen by its name: audit --suite NAME. A package offers plugins as entry")
    say("points. PACKAGE:NAME chooses a plug-in whose name another one has.")
    return 0


@takes("doctor", Plan)
@option("models", "model", multiple=False, required=True, help="Model spec (audit list models lists the kinds).")
@option("task", default="sentiment", help="Task whose prompts are asked (default: sentiment).")
@frame.printed
def doctor(*, model: str, task: str, format: str, **options: object) -> int:
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


@frame.switch("--clear", help="Delete every cached answer; run folders keep theirs.")
def cache(*, clear: bool) -> int:
    """Say where the response cache is and how much it holds."""
    from auditor.models.reply_cache import Cache

    if clear:
        Cache().clear()
        say("The response cache is empty.")
        return 0
    stats = Cache().stats()
    say(stats.path, f"{plural(stats.entries, 'answer')}, {plural(stats.size_bytes, 'byte')}")
    return 0
