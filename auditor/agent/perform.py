"""One run of a session: from its plan to its result, also where an earlier try was cut off.

What is used of the budget is counted as it is used, so that a run that fails is paid for too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.agent.records import Used
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Observer

if TYPE_CHECKING:
    from auditor.run.build import Parts
    from auditor.run.result import Result

DIGITS = 9
INTERRUPTED = "Interrupted."  # what a run record says that Ctrl-C ended


def take(used: Used, parts: Parts) -> None:
    """What the budget of ``parts`` counted so far, and whether the price of its models is known."""
    used.calls, used.cost_usd = parts.budget.calls, round(parts.budget.spent_usd, DIGITS)
    costly = [m for m in parts.models if m.costs == "tokens"]
    known = all(parts.budget.price_of(m) is not None for m in costly)
    used.priced = "free" if not costly else "known" if known else "unknown"


def execute(
    plan: Plan, models: Sequence[Model] | None, *, observe: Observer, begun: Callable[[Path], None], used: Used
) -> Result:
    """Run ``plan``; ``begun`` gets the run folder before anything is asked."""
    from auditor import run
    from auditor.run.result import in_folder

    parts = run.prepare(plan, models=models)
    parts.budget.start()
    try:
        return in_folder(parts, observe=observe, begun=begun)
    finally:
        take(used, parts)


def go_on(
    path: Path, models: Sequence[Model] | None, *, observe: Observer, seconds: float | None, used: Used
) -> Result:
    """Finish the run in ``path``; what was answered counts and is not asked again.

    Parameters
    ----------
    path : Path
        A run folder. Where its run came to an end, its result is handed out as it stands.
    models : sequence of Model or None
        Adapters; None takes those that its plan names.
    observe : callable
        Gets progress events.
    seconds : float or None
        The time that is left to the session.
    used : Used
        Gets what all tries together used.

    Raises
    ------
    RunFolderError
        Texts, task, dictionaries, parser or model are not those of the plan.
    """
    from auditor import run
    from auditor.models.budget import BOOK, Book
    from auditor.run import result as of_run
    from auditor.store.folder import RUN, RunFolder

    if (path / RUN).is_file():
        done = of_run.load(path)
        if done.record["status_reason"] != INTERRUPTED:
            calls, usd = Book.read(path / BOOK) or (0, 0.0)
            used.calls, used.cost_usd = used.calls + calls, round(used.cost_usd + usd, DIGITS)
            return done

    async def go() -> Result:
        with RunFolder.open(path, write=True) as folder:
            plan = Plan.from_dict(folder.plan["plan"]).but(max_seconds=seconds)
            parts = run.prepare(plan, models=models)
            parts.budget.start()
            try:
                return await of_run.go_on(folder, parts, observe)
            finally:
                take(used, parts)

    result: Result = run.run_sync(go)
    return result
