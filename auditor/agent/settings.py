"""What the user fixed for a session, and the refusal of a proposal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec.structs import replace

from auditor._version import __version__
from auditor.agent.goal import parse
from auditor.agent.values import Limits, Options, Record
from auditor.core.errors import ConfigError
from auditor.core.options import Count, Group, Option, PlanModel
from auditor.core.plan import Plan
from auditor.core.protocols import Model
from auditor.core.secrets import hidden
from auditor.core.types import SourceText

if TYPE_CHECKING:
    from auditor.tasks import Task

AGENT = frozenset({"agent"})
# What a user may fix for all runs of a session, beside the arguments of `run`.
OWN = frozenset({"models", "task", "data", "out", "max_calls", "max_cost", "max_seconds", "seed"})
COMMON = frozenset(Plan.flags("agent")) - OWN


class PlannerOptions(PlanModel):
    """Who plans, and the limit of a language model that does."""

    # fmt: off
    planner: Annotated[str, Option("--planner", Group.ASKED, AGENT,
        "rules (default), openai:NAME or langchain:PROVIDER:NAME.")] = "rules"
    planner_base_url: Annotated[str | None, Option("--planner-base-url", Group.ASKED, AGENT,
        "Address of the planner's server.")] = None
    planner_max_calls: Annotated[Count, Option("--planner-max-calls", Group.LIMITS, AGENT,
        "Calls of a planner that is a language model.")] = 40
    # fmt: on


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
        goal: str,
        *,
        model: object = None,
        task: str | None = None,
        data: str | Path | Iterable[str | SourceText] | None = None,
        out: str | Path = "reports",
        planner: object = "rules",
        planner_base_url: str | None = None,
        seed: int = 7,
        **options: Any,
    ) -> Settings:
        """What the arguments of `auditor.agent.run` fix, checked; raises `UserError`."""
        from auditor import models, tasks

        limits = {n: options.pop(n) for n in Limits.__struct_fields__ if n in options}
        if unknown := sorted(set(options) - COMMON):
            raise ConfigError(f"run() has no option {unknown[0]!r}; options: {', '.join(sorted(COMMON))}.")
        # As plans hold them: what is read from a folder again is then the same, to the last digit.
        own = PlannerOptions.model_validate({n: limits.pop(n) for n in PlannerOptions.settings() if n in limits})
        plan = Plan.of({**limits, "seed": seed})
        fixed = {n: getattr(own if n in PlannerOptions.settings() else plan, n) for n in Limits.__struct_fields__}
        read = parse(goal, task=task)
        loaded = tasks.load(read.task)
        chosen = models.defaults(loaded) if model is None else model
        adapters = tuple(chosen) if isinstance(chosen, list | tuple) else (chosen,)
        seeds = None
        if data is not None and not isinstance(data, str | Path):
            numbered = enumerate(data, 1)
            seeds = tuple(
                s if isinstance(s, SourceText) else SourceText(id=f"text-{n}", text=str(s)) for n, s in numbered
            )
        common = Plan.of({"task": read.task, **options})  # a slip in an option is told before anything is written
        specs = tuple(m for m in adapters if isinstance(m, str))
        kept = Options(
            task=task,
            models=specs if len(specs) == len(adapters) else None,
            data=None if data is None or seeds is not None else str(data),
            planner=planner if isinstance(planner, str) else None,
            planner_base_url=planner_base_url,
            common={name: getattr(common, name) for name in options},
        )
        reach = {name: hidden(url) for name, url in kept.common.items() if name == "base_url"}
        record = Record(
            goal=replace(read, task=loaded.name),
            models=tuple(
                m if isinstance(m, str) else m.name if isinstance(m, Model) else models.wrap(m).name for m in adapters
            ),
            planner=planner if isinstance(planner, str) else type(planner).__name__,
            seed=plan.seed,
            limits=Limits(**fixed),
            options=replace(kept, common=kept.common | reach, planner_base_url=hidden(planner_base_url)),
            tool_version=__version__,
        )
        return cls(record=record, options=kept, task=loaded, models=adapters, seeds=seeds, out=Path(out))
