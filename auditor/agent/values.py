"""Values of a session: what a user fixes, what a planner may ask for, and what ``session.json`` holds.

The model under test, the texts, the bound δ, prices, parser, cache and folders belong to the user: they are no fields
of a `Request`, so no planner can name a path, a ``python:`` function or a command.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from auditor import models, tasks
from auditor._version import __version__
from auditor.agent.goal import Goal
from auditor.agent.goal import read as read_goal
from auditor.core.errors import ConfigError
from auditor.core.options import instead
from auditor.core.plan import Plan
from auditor.core.record.measured import Bounds
from auditor.core.shown import hidden
from auditor.core.types import FORMAT_VERSION, ClaimVerdict, SourceText
from auditor.perturb import dictionaries
from auditor.tasks import Task

Purpose = Literal["pilot", "fresh"]
GROUPS = (
    "ATTRIBUTE:GROUP, such as age:old; only changes to these groups or from them; gender:female/male: between the two. "
    "Empty: all."
)
# What a user may fix for all runs of a session, beside the arguments of `run`.
OWN = frozenset({"models", "task", "data", "out", "max_calls", "max_cost", "max_seconds", "seed"})
COMMON = frozenset(Plan.flags("agent")) - OWN


class Refused(ConfigError):
    """A proposal that cannot be carried out; ``code`` is stable and holds no text from anywhere."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One run that a planner proposes, on texts that no run of the session has asked.

    A pilot looks where to look, and only a fresh run can settle a question. ``texts`` are cases, for a grammar; without
    ``attributes`` those that the texts name are changed.
    """

    purpose: Purpose
    texts: Annotated[int, Meta(ge=1, le=5000)]
    attributes: tuple[str, ...] | None = None
    groups: Annotated[tuple[str, ...], Meta(description=GROUPS)] = ()
    order: Annotated[int, Meta(ge=1, le=4)] = 2
    suite: Literal["mutation", "grammar"] = "mutation"
    per_seed: Annotated[int, Meta(ge=1, le=32)] = 4
    replicates: Annotated[int, Meta(ge=1, le=10)] | None = None

    @property
    def grammar(self) -> bool:
        """Return whether cases come from the grammar of the task."""
        return self.suite == "grammar"

    def checked(self) -> Request:
        """Return the request with its names in order; `Refused` where an attribute or group does not exist."""
        known = dictionaries.builtin()
        wrong = [name for name in self.attributes or () if name not in known]
        for one in self.groups if not wrong else ():
            attribute, _, groups = one.partition(":")
            named = attribute in (known if self.attributes is None else self.attributes)
            if not named or not set(groups.split("/", 1)) <= set(dictionaries.load(attribute).groups):
                wrong.append(one)
        if wrong or self.attributes == () or (self.grammar and self.groups):
            reason = f"unknown: {wrong[0][:40]!r}" if wrong else "give attributes or null; groups belong to mutation"
            raise Refused("not-possible", f"{reason}. See list_attributes.")
        fields = {name: getattr(self, name) for name in Request.__struct_fields__}  # without those of a subclass
        names = None if self.attributes is None else tuple(sorted(set(self.attributes)))
        return Request(**fields | {"attributes": names, "groups": tuple(sorted(set(self.groups)))})


def plain(value: msgspec.Struct) -> dict[str, Any]:
    """Return a record as JSON holds it."""
    return dict(msgspec.json.decode(msgspec.json.encode(value)))


OF_REPORT = ("why", "said")  # fields of `Row` that hold texts


class Row(msgspec.Struct, kw_only=True):
    """Figures of one attribute set in a run."""

    finding: str = ""
    model: str = ""  # M1, M2, … in the order of the plan
    attributes: tuple[str, ...] = ()
    verdict: ClaimVerdict = "not_tested"
    p_adjusted: float | None = None
    rate: Bounds | None = None
    seeds: int = 0
    seeds_changed: int = 0
    placebo: Bounds | None = None
    noise: Bounds | None = None
    deterministic: bool = True
    hidden: int = 0
    why: str = ""  # nothing was shown
    said: tuple[str, ...] = ()  # who got what, in sentences


class Figures(msgspec.Struct, kw_only=True):
    """Counts and rates of a run; ``noise`` is the highest disagreement of a model with itself.

    ``unfit`` says for each model that cannot be judged, where it shows nothing, why.
    """

    complete: bool
    unfit: dict[str, str] = msgspec.field(default_factory=dict)
    counts: dict[str, int]
    noise: float | None = None
    sets: tuple[Row, ...] = ()


class Entry(msgspec.Struct, kw_only=True):
    """One run of a session and what it used; ``level`` is the significance level of a fresh one.

    ``figures`` are read from the run itself; ``session.json`` does not repeat them.
    """

    name: str
    purpose: Purpose
    request: Request
    reason: str
    texts: int
    counts_as_fresh: bool
    level: float | None = None
    folder: str | None = None
    calls: int = 0
    cost_usd: float = 0.0
    priced: Literal["free", "known", "unknown"] = "free"
    notes: list[str] = []
    figures: Figures | None = None


class Question(msgspec.Struct, kw_only=True):
    """The verdict of a session on one attribute set of one model, and the run and figures it comes from."""

    model: str
    attributes: tuple[str, ...]
    declared: bool
    verdict: ClaimVerdict = "not_tested"
    run: str | None = None
    finding: str | None = None
    level: float | None = None
    explored: list[str] = []
    row: Row | None = None


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a session."""

    max_calls: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """The rest of the limits; None where there is none."""

    calls: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Use so far."""

    calls: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0


class Texts(msgspec.Struct, frozen=True, kw_only=True):
    """Where the texts come from, how many differ, and their digest."""

    source: str = ""
    n: int = 0
    sha256: str = ""


class Fixed(msgspec.Struct, kw_only=True):
    """The choices of the user, without paths and times: equal sessions have equal steps."""

    goal: Goal
    models: tuple[str, ...]
    planner: str
    seed: int
    limits: Limits
    texts: Texts = Texts()


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options as they were given, for going on; None where an object was handed in."""

    task: str | None
    models: tuple[str, ...] | None
    data: str | None
    common: dict[str, Any]


class Record(Fixed, kw_only=True):
    """``session.json``: what was fixed, what was run, what was used; ``questions`` are made from the runs."""

    id: str = ""
    status: str = "running"
    status_reason: str = ""
    resumed: int = 0
    texts_left: int = 0
    runs: list[Entry] = []
    questions: list[Question] = []
    spent: Spent = Spent()
    options: Options | None = None  # not in sessions of 0.2
    format_version: int = FORMAT_VERSION
    tool_version: str = ""
    kind: str = "agent-session"

    @property
    def done(self) -> list[Entry]:
        """Return the runs that measured something."""
        return [run for run in self.runs if run.figures]


# -- what a user fixes for a session --------------------------------------------------------------------------


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
            raise ConfigError(instead(unknown[0]) or known)
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
