"""One run of a session: from its plan to its result, also where an earlier try was cut off.

What is used of the budget is counted as it is used, so that a run that fails is paid for too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.core.errors import RunFolderError
from auditor.core.plan import Plan
from auditor.core.protocols import Observer

DIGITS = 9
INTERRUPTED = "Interrupted."  # what a run record says that Ctrl-C ended


@dataclass(kw_only=True)
class Used:
    """Calls and US dollars of one run; ``priced`` is "free", "known" or "unknown"."""

    calls: int = 0
    usd: float = 0.0
    priced: str = "free"

    def take(self, parts: Any) -> None:
        """What the budget of ``parts`` counted so far."""
        self.calls, self.usd = parts.budget.calls, round(parts.budget.spent_usd, DIGITS)
        self.price(parts)

    def price(self, parts: Any) -> None:
        """Whether the models cost money, and whether it is known how much."""
        costly = [m for m in parts.models if m.costs == "tokens"]
        known = all(parts.budget.price_of(m) is not None for m in costly)
        self.priced = "free" if not costly else "known" if known else "unknown"

    def again(self, old: Mapping[str, Any]) -> None:
        """What the entry of an earlier process says."""
        self.calls, self.usd, self.priced = old["calls"], old["cost_usd"], old["priced"]


def execute(
    plan: Plan, models: Sequence[Any] | None, *, observe: Observer, begun: Callable[[Path], None], used: Used
) -> Any:
    """Run ``plan`` and return its `Result`; ``begun`` gets the run folder before anything is asked."""
    from auditor import run as pipeline
    from auditor.run.result import settle
    from auditor.store.folder import RunFolder

    parts = pipeline.prepare(plan, models=models)

    async def go() -> Any:
        with RunFolder.create(pipeline.root_folder(plan), pipeline.plan_record(parts)) as folder:
            begun(folder.path)
            await pipeline.run_audit(parts, folder, observe=observe)
            return settle(folder)

    parts.budget.start()
    try:
        return pipeline.run_sync(go)
    finally:
        used.take(parts)


def go_on(
    path: Path, models: Sequence[Any] | None, *, observe: Observer, seconds: float | None, used: Used
) -> Any:
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
    from auditor import run as pipeline
    from auditor.models.budget import BOOK, Book
    from auditor.models.client import definitive
    from auditor.run.result import load, settle
    from auditor.store.folder import RUN, RunFolder
    from auditor.store.redact import readable

    if (path / RUN).is_file():
        done = load(path)
        if done.record["status_reason"] != INTERRUPTED:
            calls, usd = Book.read(path / BOOK) or (0, 0.0)
            used.calls, used.usd = used.calls + calls, round(used.usd + usd, DIGITS)
            return done

    async def go() -> Any:
        with RunFolder.open(path, write=True) as folder:
            plan = Plan.from_dict(folder.plan["plan"]).but(max_seconds=seconds)
            parts = pipeline.prepare(plan, models=models)
            pipeline.require_same_inputs(folder.plan, pipeline.plan_record(parts))
            for response in folder.recall(lambda r: definitive(r) and readable(r)):
                if not response.cached:
                    parts.budget.charge(calls=1, usd=response.cost_usd or 0.0)
            parts.budget.start()
            answered: Any = {model.name: folder.answers(model.name) for model in parts.models}
            try:
                await pipeline.run_audit(parts, folder, observe=observe, answered=answered)
            finally:
                used.take(parts)
            return settle(folder)

    return pipeline.run_sync(go)


def recorded(path: Path) -> Any:
    """The result of a run that came to its end.

    Raises
    ------
    RunFolderError
        There is none.
    """
    from auditor.run.result import load
    from auditor.store.folder import RUN

    if not (path / RUN).is_file():
        raise RunFolderError(
            f"{path} holds no {RUN}, and the session says that the run was read. Was it removed?"
        )
    return load(path)
