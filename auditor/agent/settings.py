"""Settings that a user fixes for a session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from auditor import models, tasks
from auditor._version import __version__
from auditor.agent.goal import Goal
from auditor.agent.goal import read as read_goal
from auditor.agent.values import Limits, Options, Record
from auditor.core import removed
from auditor.core.errors import ConfigError
from auditor.core.plan import Plan
from auditor.core.shown import hidden
from auditor.core.types import SourceText
from auditor.tasks import Task

# What a user may fix for all runs of a session, beside the arguments of `run`.
OWN = frozenset({"models", "task", "data", "out", "max_calls", "max_cost", "max_seconds", "seed"})
COMMON = frozenset(Plan.flags("agent")) - OWN


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the user fixed: the record as it begins, ``models`` as specs or objects, ``seeds`` that are in no file."""

    record: Record
    options: Options
    task: Task
    models: tuple[object, ...]
    seeds: tuple[SourceText, ...] | None
    out: Path

    @classmethod
    def of(
        cls,
        goal: str | Goal,
        *,
        model: object = None,
        task: str | None = None,
        data: str | Path | Iterable[str | SourceText] | None = None,
        out: str | Path = "reports",
        planner: str = "rules",
        seed: int = 7,
        **options: Any,
    ) -> Settings:
        """Check the arguments of `auditor.agent.run`; raises `UserError`. A ``goal`` may be read already."""
        limits = {n: options.pop(n) for n in Limits.__struct_fields__ if n in options}
        if unknown := sorted(set(options) - COMMON):
            known = f"run() has no option {unknown[0]!r}; options: {', '.join(sorted(COMMON))}."
            raise ConfigError(removed.instead(unknown[0]) or known)
        # As a plan holds them: what is read from a folder again is then the same, to the last digit.
        plan = Plan.of({**limits, "seed": seed})
        read = goal if isinstance(goal, Goal) else read_goal(goal, task=task)
        task = task or read.task
        loaded = tasks.load(task)
        chosen = models.defaults(loaded) if model is None else model
        adapters = tuple(chosen) if isinstance(chosen, list | tuple) else (chosen,)
        seeds = None
        if data is not None and not isinstance(data, str | Path):
            numbered = enumerate(data, 1)
            seeds = tuple(
                s if isinstance(s, SourceText) else SourceText(id=f"text-{n}", text=str(s)) for n, s in numbered
            )
        common = Plan.of({"task": task, **options})  # a slip in an option is told before anything is written
        specs = tuple(m for m in adapters if isinstance(m, str))
        kept = Options(
            task=task,
            models=specs if len(specs) == len(adapters) else None,
            data=None if data is None or seeds is not None else str(data),
            common={name: getattr(common, name) for name in options},
        )
        reach = {name: hidden(url) for name, url in kept.common.items() if name == "base_url"}
        record = Record(
            goal=replace(read, task=loaded.name),
            models=tuple(m if isinstance(m, str) else models.wrap(m).name for m in adapters),
            planner=planner,
            seed=plan.seed,
            limits=Limits(**{n: getattr(plan, n) for n in Limits.__struct_fields__}),
            options=replace(kept, common=kept.common | reach),
            tool_version=__version__,
        )
        return cls(record=record, options=kept, task=loaded, models=adapters, seeds=seeds, out=Path(out))
