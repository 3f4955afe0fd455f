"""The agent: from a goal in plain words to runs, readings and a report with the reasons for each step.

Examples
--------
>>> from auditor.agent import parse
>>> parse("Do loan decisions change with religion?").attributes
('religion',)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from auditor.agent.goal import Goal, parse
from auditor.agent.session import SESSION, STEPS, Session
from auditor.agent.settings import Settings
from auditor.config import Plan
from auditor.errors import ConfigError, RunFolderError, UserError
from auditor.protocols import Observer
from auditor.types import Progress, Seed

__all__ = ["AgentResult", "Goal", "load", "outline", "parse", "run"]

# What a user may fix for all runs of a session, beside the arguments of `run`.
COMMON = frozenset(
    {
        "base_url", "text_column", "label_column", "limit", "delta", "price_in", "price_out", "concurrency", "parser",
        "cache", "formats",
    }
)  # fmt: skip


def _silent(event: Progress) -> None:
    """Observe nothing."""


class AgentResult:
    """A finished (or cut-off) session.

    Parameters
    ----------
    record : dict
        What ``session.json`` holds.
    steps : sequence of mapping
        What ``steps.jsonl`` holds, in order.
    path : Path
        The session's folder.
    """

    def __init__(self, record: dict[str, Any], steps: Sequence[Mapping[str, Any]], path: Path) -> None:
        self.record, self.steps, self.path = record, tuple(steps), path

    @property
    def complete(self) -> bool:
        """Whether the session came to its own end, every run whole, and a fresh run tested the goal."""
        return bool(self.record["status"] == "complete")

    @property
    def questions(self) -> list[dict[str, Any]]:
        """One entry per model and attribute set, with the verdict of the session."""
        return list(self.record["questions"])

    @property
    def runs(self) -> list[Any]:
        """The `auditor.result.Result` of each run that has one."""
        from auditor.result import load as load_run

        return [load_run(self.path / r["folder"]) for r in self.record["runs"] if r["figures"]]

    def to_json(self) -> str:
        """Session and steps as one JSON text."""
        whole = self.record | {"steps": [dict(s) for s in self.steps]}
        return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)

    def to_text(self, *, width: int = 100, encoding: str = "utf-8") -> str:
        """The report for a terminal."""
        from auditor.agent import report

        return report.text(self.record, self.steps, width=width, encoding=encoding)

    def to_markdown(self) -> str:
        """The report as Markdown."""
        from auditor.agent import report

        return report.markdown(self.record, self.steps)

    def to_html(self) -> str:
        """The self-contained HTML report."""
        from auditor.agent import report

        return report.html(self.record, self.steps)

    def __repr__(self) -> str:
        return f"<AgentResult {self.record['id']}: {self.record['status']}, {len(self.record['runs'])} runs>"


def load(path: str | Path) -> AgentResult:
    """The session in a folder, also one that was cut off (its status is ``interrupted`` then).

    Raises
    ------
    RunFolderError
        It is no session's folder, or of a newer format.
    """
    from auditor.store.files import check_format, read_json
    from auditor.store.journal import read

    path = Path(path)
    if not (path / SESSION).is_file():
        raise RunFolderError(f"{path} holds no session of the agent: there is no {SESSION} in it")
    record = read_json(path / SESSION)
    check_format(path / SESSION, record)
    if record["status"] == "running":
        record |= {"status": "interrupted", "status_reason": "the session was cut off, or is still running"}
    return AgentResult(record, list(read(path / STEPS)), path)


def run(
    goal: str,
    *,
    model: Any = None,
    task: str | None = None,
    data: str | Path | Iterable[str | Seed] | None = None,
    out: str | Path = "reports",
    planner: Any = "rules",
    planner_base_url: str | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    max_seconds: float | None = None,
    planner_max_calls: int = 40,
    planner_max_cost: float | None = None,
    seed: int = 7,
    observe: Observer = _silent,
    **common: Any,
) -> AgentResult:
    """Plan audits for a goal, run them, read them, look closer where it pays, write the report.

    Parameters
    ----------
    goal : str
        A question in English, such as "Does our résumé screener treat older women differently?".
    model : str, callable, Model or a sequence of them
        What is tested, as in `auditor.audit`; the planner cannot change it. None takes the embedded models of the task.
    task : str or None
        Task name or file; None reads it from the goal.
    data : str, Path or iterable, optional
        Seed texts; None takes the task's embedded ones.
    out : str or Path
        The session's folder is made in here.
    planner : "rules", "openai:NAME", "langchain:PROVIDER:NAME" or a LangChain chat model
        Who proposes runs. Rules use no language model and are deterministic.
    planner_base_url : str or None
        The planner's server; never that of the model under test.
    max_calls, max_cost, max_seconds
        Limits over all runs together; cost in US dollars.
    planner_max_calls, planner_max_cost
        Limits of a language model that plans, counted apart from those of the runs.
    seed : int
        Of the order of the texts and of all runs.
    observe : callable
        Gets progress events.
    **common
        Fields of `Plan` that hold for every run: ``base_url``, ``delta``, ``price_in``, ``limit``, ….

    Returns
    -------
    AgentResult

    Raises
    ------
    UserError
        The goal cannot be read, or nothing could be asked.
    """
    settings = _settings(
        goal, model, task, data, out, planner, max_calls, max_cost, max_seconds, planner_max_calls,
        planner_max_cost, seed, common,
    )  # fmt: skip
    propose = _planner(planner, planner_base_url, settings)
    session = Session(settings, observe=observe)
    session.step(
        "goal", "what the goal was read as", goal=settings.goal.as_dict() | {"task": session.task.name}
    )
    try:
        why = propose(session)
    except UserError as error:
        session.end("failed", str(error))
        raise
    except BaseException:
        session.end("interrupted", "the session was cut off")
        raise
    session.end(*_outcome(session, why))
    result = AgentResult(session.record(), list(_steps(session.path)), session.path)
    for name, made in (("agent.md", result.to_markdown()), ("agent.html", result.to_html())):
        (session.path / name).write_text(made, encoding="utf-8")
    return result


def outline(goal: str, **options: Any) -> dict[str, Any]:
    """What `run` would begin with: the goal as it was read, the pilot and its calls; nothing is asked or written.

    Takes the arguments of `run`.
    """
    import tempfile

    from auditor.agent.rules import Rules

    options.pop("planner", None)
    options.pop("planner_base_url", None)
    options.pop("observe", None)
    defaults: dict[str, Any] = {"model": None, "task": None, "data": None, "max_calls": None, "max_cost": None,
        "max_seconds": None, "planner_max_calls": 40, "planner_max_cost": None, "seed": 7}  # fmt: skip
    given = {name: options.pop(name, value) for name, value in defaults.items()}
    options.pop("out", None)
    with tempfile.TemporaryDirectory() as folder:
        settings = _settings(goal, out=folder, planner="rules", common=options, **given)
        session = Session(settings, observe=_silent)
        pilot = Rules(session).first()
        sized = session.dry_run(pilot)
        steps = list(_steps(session.path))
        session.end("complete", "outline")
    return {
        "goal": settings.goal.as_dict() | {"task": session.task.name},
        "declared": [list(s) for s in session.declared()],
        "texts": session.record()["texts"] | {"usable": len(session.pool.seeds)},
        "pilot": {"request": pilot.as_dict(), "estimate": sized},
        "steps": [dict(s) for s in steps],
        "limits": session.record()["limits"],
        "then": [
            "fresh: texts that the pilot did not ask test what the goal names, at level 0.025",
            "again: further fresh texts at level 0.0125, then 0.00625, for sets that stay open and changed answers",
            "search: where hidden changes were seen; it settles nothing",
        ],
    }


def _outcome(session: Session, why: str) -> tuple[str, str]:
    done = [r for r in session.runs if r["figures"]]
    if not done:
        return "partial", f"no run was made: {why}"
    partial = [r["name"] for r in done if not r["figures"]["complete"]]
    if partial:
        return "partial", f"{why}; partial: {', '.join(partial)}"
    if not any(r["counts_as_fresh"] for r in done):
        return "partial", f"{why}; no fresh run tested what the goal names"
    return "complete", why


def _steps(path: Path) -> Iterable[dict[str, Any]]:
    from auditor.store.journal import read

    return read(path / STEPS)


def _settings(
    goal: str, model: Any, task: str | None, data: Any, out: Any, planner: Any, max_calls: int | None,
    max_cost: float | None, max_seconds: float | None, planner_max_calls: int, planner_max_cost: float | None,
    seed: int, common: Mapping[str, Any],
) -> Settings:  # fmt: skip
    from auditor import models, tasks

    unknown = sorted(set(common) - COMMON)
    if unknown:
        raise ConfigError(f"run() has no option {unknown[0]!r}; options: {', '.join(sorted(COMMON))}.")
    for name, value, low in (
        ("max-calls", max_calls, 0), ("max-cost", max_cost, 0), ("max-seconds", max_seconds, 0),
        ("planner-max-calls", planner_max_calls, 1), ("planner-max-cost", planner_max_cost, 0),
    ):  # fmt: skip
        if value is not None and not value >= low:
            raise ConfigError(f"--{name} must be at least {low}; got {value!r}.")
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
        m if isinstance(m, str) else m.name if models.is_adapter(m) else models.wrap(m).name for m in given
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
        planner_max_calls=planner_max_calls,
        planner_max_cost=planner_max_cost,
        seed=seed,
        common=dict(common),
    )
    Plan.from_dict({"task": read.task, **common})  # a slip in an option is told before anything is written
    return settings


def _planner(planner: Any, base_url: str | None, settings: Settings) -> Callable[[Session], str]:
    if planner == "rules":
        if base_url is not None:
            raise ConfigError("--planner-base-url belongs to --planner openai:NAME.")
        from auditor.agent.rules import Rules

        return lambda session: Rules(session).go()
    from auditor.agent.chain import Chain

    chain = Chain(planner, base_url=base_url, settings=settings)
    return chain.go
