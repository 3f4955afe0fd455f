"""From the arguments of a session to its settings and its planner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from auditor.agent.goal import parse
from auditor.agent.session import Session
from auditor.agent.settings import Settings
from auditor.core.errors import ConfigError
from auditor.core.options import LARGEST
from auditor.core.plan import Plan
from auditor.core.protocols import Model
from auditor.core.types import Seed

# What a user may fix for all runs of a session, beside the arguments of `run`.
OWN = frozenset({"models", "task", "data", "out", "max_calls", "max_cost", "max_seconds", "seed"})
COMMON = frozenset(Plan.flags("agent")) - OWN


def settings_of(
    goal: str, model: Any, task: str | None, data: Any, out: Any, planner: Any, max_calls: int | None,
    max_cost: float | None, max_seconds: float | None, planner_max_calls: int, planner_max_cost: float | None,
    seed: int, common: Mapping[str, Any],
) -> Settings:  # fmt: skip
    """What the arguments of `auditor.agent.run` fix, checked.

    Raises
    ------
    UserError
        The goal cannot be read, or an option is out of range.
    """
    from auditor import models, tasks

    unknown = sorted(set(common) - COMMON)
    if unknown:
        raise ConfigError(f"run() has no option {unknown[0]!r}; options: {', '.join(sorted(COMMON))}.")
    limits = {"max_calls": max_calls, "max_cost": max_cost, "max_seconds": max_seconds, "seed": seed}
    for name, value, low in (
        ("planner-max-calls", planner_max_calls, 1), ("planner-max-cost", planner_max_cost, 0),
    ):  # fmt: skip
        if value is not None and not low <= value <= LARGEST:
            raise ConfigError(f"--{name} must be at least {low}, and at most {LARGEST:,}; got {value:g}.")
    Plan.from_dict(limits)
    read = parse(goal, task=task)
    loaded = tasks.load(read.task)
    given: tuple[Any, ...] = (
        tuple(models.defaults(loaded))
        if model is None
        else tuple(model)
        if isinstance(model, list | tuple)
        else (model,)
    )
    names = tuple(
        m if isinstance(m, str) else m.name if isinstance(m, Model) else models.wrap(m).name for m in given
    )
    seeds: tuple[Seed, ...] | None = None
    if data is not None and not isinstance(data, str | Path):
        seeds = tuple(
            s if isinstance(s, Seed) else Seed(id=f"text-{n}", text=str(s)) for n, s in enumerate(data, 1)
        )
    settings = Settings(
        goal=read,
        models=given,
        names=names,
        out=Path(out),
        data=None if data is None or seeds is not None else str(data),
        seeds=seeds,
        max_calls=max_calls,
        max_cost=max_cost,
        max_seconds=max_seconds,
        planner=planner if isinstance(planner, str) else type(planner).__name__,
        planner_spec=isinstance(planner, str),
        planner_max_calls=planner_max_calls,
        planner_max_cost=planner_max_cost,
        seed=seed,
        common=dict(common),
    )
    Plan.from_dict({"task": read.task, **common})  # a slip in an option is told before anything is written
    return settings


def planner_of(planner: Any, base_url: str | None, settings: Settings) -> Callable[[Session], str]:
    """What runs a session to its end and says why it ended."""
    if planner == "rules":
        if base_url is not None:
            raise ConfigError("--planner-base-url belongs to --planner openai:NAME.")
        from auditor.agent.rules import Rules

        return lambda session: Rules(session).go()
    from auditor.agent.chain import Chain

    chain = Chain(planner, base_url=base_url, settings=settings)
    return chain.go
