"""One run from its plan to its record; what a run that is gone on with must have in common with its plan."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, TypeVar

from auditor.core.errors import BudgetExceeded, ConfigError, RunFolderError, UserError
from auditor.core.protocols import Model, Observer
from auditor.core.shown import plural
from auditor.core.types import Progress
from auditor.models.budget import BOOK
from auditor.run.again import confirm
from auditor.run.freeze import plain
from auditor.run.loop import Loop
from auditor.run.preparation import Parts, tell_proxies
from auditor.run.state import Answered, silent
from auditor.store.folder import RunFolder

R = TypeVar("R")


async def run_audit(
    parts: Parts, folder: RunFolder, *, observe: Observer = silent, answered: Answered | None = None
) -> None:
    """Run an audit to its record."""
    tell_proxies([*parts.models, parts.judge], observe)
    if parts.plan.batch:
        parts = in_batches(parts, folder)
    if not folder.temporary:
        parts.budget.keep(folder.path / BOOK)
    try:
        await to_record(Loop(parts, folder, observe=observe, answered=answered))
    finally:
        parts.budget.close()


def recalled(folder: RunFolder, parts: Parts) -> Answered:
    """What the models of ``parts`` answered in an earlier try of the run; it counts for the limits."""
    from auditor.models.client import definitive
    from auditor.store.redact import readable

    for response in folder.recall(lambda r: definitive(r) and readable(r)):
        if not response.cached:
            parts.budget.charge(calls=1, usd=response.cost_usd or 0.0)
    answered: Any = {model.name: folder.answers(model.name) for model in parts.models}
    return answered  # type: ignore[no-any-return]


async def to_record(loop: Loop, *, alone: bool = True) -> None:
    """Run ``loop`` to its record and write that; one of several (``alone`` off) confirms nothing."""
    from auditor.run.run_record import build

    started, clock = datetime.now(UTC), time.monotonic()
    confirmed: dict[tuple[str, str, str], dict[str, object]] = {}

    def write() -> None:
        record = build(loop, confirmed, started=started, seconds=time.monotonic() - clock)
        loop.folder.write_verdicts(loop.observed.verdicts(t.model.name for t in loop.tallies))
        loop.folder.write_run(record)

    try:
        await loop.run()
        if alone and any(tally.hidden and not tally.model.deterministic for tally in loop.tallies):
            confirmed = await confirm(loop)
    except asyncio.CancelledError:
        loop.status_reason = "Interrupted."
        write()
        raise
    finally:
        for model in (*loop.parts.models, *filter(None, [loop.parts.judge])):
            await model.aclose()
    if not alone:
        write()
        return
    _refuse_if_nothing_was_answered(loop)
    loop.observe(Progress(phase="report", done=0, planned=1))
    write()
    loop.observe(Progress(phase="report", done=1, planned=1))


def in_batches(parts: Parts, folder: RunFolder) -> Parts:
    """``parts`` with its models behind the Batch API; what was submitted is written down in the run folder."""
    from auditor.models.batch import Batched
    from auditor.models.openai import OpenAIChat

    if folder.temporary:
        raise ConfigError("--batch needs a run folder, since a batch outlives the process: give out=FOLDER.")
    models: list[Model] = []
    for number, model in enumerate(parts.models, start=1):
        if not isinstance(model, OpenAIChat):
            raise ConfigError(f"--batch: {model.name} has no Batch API; only openai: models have.")
        journal = folder.path / f"batches-{number}.jsonl"
        models.append(Batched(model, journal=journal, left_s=parts.budget.remaining_s))
    return dataclasses.replace(parts, models=models)


def _refuse_if_nothing_was_answered(loop: Loop) -> None:
    if not loop.counts["cases"] and not loop.status_reason:
        names = ", ".join(loop.plan.attributes or ()) or "an attribute of the dictionaries"
        names = f"two of these together: {names}" if loop.plan.suite == "joint-first" else names
        spoken = loop.parts.facts.get("seeds", {}).get("languages", {})
        others = sum(spoken.values()) - spoken.get("en", 0)
        language = (
            f"{others} of them {'does' if others == 1 else 'do'} not look like English, and words are changed in "
            "English alone. Use a task with a subject, such as hiring:de, or your own pairs. "
            if others
            else ""
        )
        whose = loop.parts.task.subject
        apart = (
            f"Only what they say about {whose} would be changed; --who all changes what they say about anybody. "
            if whose and not loop.plan.who
            else ""
        )
        raise UserError(
            f"None of the {plural(loop.parts.seeds or 0, 'text')} names people by {names}, so there is "
            "nothing to change. "
            f"{apart}{language}Give texts about people (--data), other attributes (--attributes) or your own terms "
            "(--dictionary)."
        )
    for tally in loop.tallies:
        stopped = tally.client.stopped
        if stopped is None or isinstance(stopped, BudgetExceeded):
            continue
        if len(tally.seen) == tally.counts["failed"]:
            raise UserError(f"{tally.model.name} answered nothing: {loop.why(stopped)}")


def run_sync(make: Callable[[], Coroutine[Any, Any, R]]) -> R:
    """Run a coroutine to its end, also from inside a running event loop."""
    return outside_loop(lambda: asyncio.run(make()))


def outside_loop(work: Callable[[], R]) -> R:
    """Return what ``work`` gives, from a thread of its own where an event loop is running (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()


def plan_record(parts: Parts) -> dict[str, object]:
    """What ``plan.json`` holds: the plan, the resolved models, and hashes of everything that shapes the cases."""
    return {
        "plan": parts.plan.as_dict() | {"models": [m.name for m in parts.models]},
        "fingerprints": {m.name: m.fingerprint for m in parts.models}
        | ({} if parts.judge is None else {f"{parts.judge.name} as judge": parts.judge.fingerprint}),
        "inputs": parts.facts | {"suite": parts.suite.describe()},
    }


def require_same_inputs(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to resume when texts, task, dictionaries, parser or model are no longer what the plan says."""
    for part in ("task_sha256", "seeds", "parser", "suite"):
        old, new = (plain(v["inputs"].get(part)) for v in (before, now))
        if old != new:
            raise RunFolderError(
                f"The {part.removesuffix('_sha256')} changed since this run began, so its answers would be "
                "judged against other questions. Start a new run, or put the old files back."
            )
    require_same_models(before["fingerprints"], now["fingerprints"])


def require_same_models(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to resume where fingerprints of models are not those of the plan, or the plan has none."""
    for name in {**before, **now}:
        if before.get(name) is None:
            raise RunFolderError(f"The plan of this run names no fingerprint of the model {name}. Start a new run.")
        if before[name] != now.get(name):
            raise RunFolderError(f"The model {name} or its parameters changed since this run began. Start a new run.")
