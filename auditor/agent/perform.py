"""One run of a session: from a proposal to its plan and its result, also where an earlier try was cut off.

What is used of the budget is counted as it is used, so that a run that fails is paid for too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.agent import run_figures
from auditor.agent.session_settings import Settings
from auditor.agent.values import Entry, Left, Request, Used
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Observer

if TYPE_CHECKING:
    from auditor.models.budget import Budget
    from auditor.run.preparation import Parts
    from auditor.run.result import Result

OF_TEXTS = (  # a run reads texts that the session wrote
    "text_column", "label_column", "id_column", "source_column", "limit",
)  # fmt: skip


def plan_of(settings: Settings, request: Request, *, left: Left, out: Path, data: Path | None, runs: int) -> Plan:
    """The plan of ``request``, after ``runs`` others, within what is left; ``data`` are its texts."""
    chosen = {k: v for k, v in request.as_dict().items() if k not in ("purpose", "texts")}
    return Plan.model_validate(
        {
            **{k: v for k, v in settings.common.items() if k not in OF_TEXTS},
            **chosen,
            "attributes": request.attributes,
            "groups": request.groups,
            "task": settings.goal.task,
            "models": settings.names,
            "data": None if request.grammar or data is None else str(data),
            "source_column": settings.common.get("source_column") and "source",
            "generation": "rand" if request.grammar else "prob",
            "limit": request.texts if request.grammar else None,
            # Another grammar run draws other sentences; a text keeps its variants whatever its number.
            "seed": settings.seed + (runs if request.grammar else 0),
            "max_calls": left.calls,
            "max_cost": left.cost_usd,
            "max_seconds": left.seconds,
            "out": str(out),
        }
    )


def entry_of(request: Request, reason: str, *, runs: Sequence[Entry], texts: int) -> Entry:
    """What the record says of a run that is planned: the ``len(runs) + 1``-th."""
    fresh = request.purpose == "fresh"
    return Entry(
        name=f"R{len(runs) + 1}",
        purpose=request.purpose,
        counts_as_fresh=fresh,
        level=run_figures.level(sum(r.counts_as_fresh for r in runs) + 1) if fresh else None,
        request=request,
        reason=reason,
        texts=texts,
    )


DIGITS = 9
INTERRUPTED = "Interrupted."  # what a run record says that Ctrl-C ended


def take(used: Used, parts: Parts) -> None:
    """What the budget of ``parts`` counted so far, and whether the price of its models is known."""
    used.calls, used.cost_usd, _ = parts.budget.spent
    costly = [m for m in parts.models if m.costs == "tokens"]
    known = all(map(parts.budget.priced, costly))
    used.priced = "free" if not costly else "known" if known else "unknown"


def execute(
    plan: Plan, models: Sequence[Model] | None, *, observe: Observer, begun: Callable[[Path, Budget], None], used: Used
) -> Result:
    """Run ``plan``; ``begun`` gets the run folder and the budget before anything is asked."""
    from auditor import run
    from auditor.run.result import in_folder

    parts = run.prepare(plan, models=models)
    parts.budget.start()
    try:
        return in_folder(parts, observe=observe, begun=lambda path: begun(path, parts.budget))
    finally:
        take(used, parts)


def go_on(
    path: Path, models: Sequence[Model] | None, *, observe: Observer, seconds: float | None, used: Used
) -> Result:
    """Finish the run in ``path`` within ``seconds``; what was answered counts and is not asked again.

    Where the run came to an end, its result is handed out as it stands. ``used`` gets what all tries together used.
    Raises `RunFolderError` where texts, task, dictionaries, parser or model are not those of the plan.
    """
    from auditor import run
    from auditor.models.budget import BOOK, Book
    from auditor.run import result as of_run
    from auditor.store.folder import RUN, RunFolder

    if (path / RUN).is_file():
        done = of_run.load(path)
        if done.record["status_reason"] != INTERRUPTED:
            calls, usd, _ = Book.read(path / BOOK)
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
