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
from typing import TYPE_CHECKING, Any

from auditor.agent.goal import Goal, parse
from auditor.agent.ledger import SESSION, STEPS, Changed
from auditor.agent.session import Session
from auditor.agent.setup import planner_of, settings_of
from auditor.core.counting import plural
from auditor.core.errors import ConfigError, RunFolderError, UserError
from auditor.core.protocols import Observer
from auditor.core.types import Progress, Seed

if TYPE_CHECKING:
    from auditor.report.document import Document

__all__ = ["AgentResult", "Goal", "load", "outline", "parse", "resume", "run"]


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
        """The `auditor.run.result.Result` of each run that has one."""
        from auditor.run.result import load as load_run

        return [load_run(self.path / r["folder"]) for r in self.record["runs"] if r["figures"]]

    def to_json(self) -> str:
        """Session and steps as one JSON text."""
        whole = self.record | {"steps": [dict(s) for s in self.steps]}
        return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)

    def document(self) -> Document:
        """The report as typed parts, for a writer of any format."""
        from auditor.agent import report

        return report.build(self.record, self.steps)

    def to_text(self, *, width: int = 100, encoding: str = "utf-8", color: bool = False) -> str:
        """The report for a terminal."""
        from auditor.report.page import Page
        from auditor.report.terminal import write

        return write(Page(width=width, encoding=encoding, color=color), self.document())

    def to_markdown(self) -> str:
        """The report as Markdown."""
        from auditor.report.markdown import write

        return write(self.document())

    def to_html(self) -> str:
        """The self-contained HTML report."""
        from auditor.report.html import write

        return write(self.document())

    def __repr__(self) -> str:
        return f"<AgentResult {self.record['id']}: {self.record['status']}, {plural(len(self.record['runs']), 'run')}>"


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
    from auditor.agent import comeback

    settings = settings_of(
        goal, model, task, data, out, planner, max_calls, max_cost, max_seconds, planner_max_calls,
        planner_max_cost, seed, common,
    )  # fmt: skip
    propose = planner_of(planner, planner_base_url, settings)
    session = Session(settings, observe=observe)
    comeback.keep(session.path, settings, task=task, base_url=planner_base_url)
    return _conclude(session, propose)


def resume(
    path: str | Path, *, model: Any = None, planner: Any = None, observe: Observer = _silent
) -> AgentResult:
    """Go on with a session that was cut off.

    Runs that came to their end are read, a run that was cut off is finished (what was answered is not asked again), and
    what was used counts against the limits. A planner by rules then ends with the report that the session would have
    had; a language model is told what was measured so far.

    Parameters
    ----------
    path : str or Path
        The session's folder. Relative paths and commands among the options mean what they meant when it began, so go
        on in the folder where it was started.
    model, planner
        Needed only where they were handed in as objects.
    observe : callable
        Gets progress events.

    Raises
    ------
    ConfigError
        The session came to its end, or an object is needed.
    RunFolderError
        It is no session, something in it was changed, another process writes it, or texts, task, model or version are
        not those of before.
    """
    from auditor.agent import comeback
    from auditor.store.files import read_texts

    path = Path(path)
    kept = comeback.options(path)
    given = {name: kept[name] for name in ("goal", "task", "data", "seed", "common", *comeback.LIMITS)}
    if kept["texts"]:
        given["data"] = read_texts(path / kept["texts"])
    for name, value, stored in (
        ("model", model, kept["models"]),
        ("planner", planner, kept["planner"] if kept["planner_spec"] else None),
    ):
        if value is None and stored is None:
            raise ConfigError(
                f"The {name} of this session was handed in as an object: resume(path, {name}=…)."
            )
        given[name] = stored if value is None else value
    settings = settings_of(out=path.parent, **given)
    propose = planner_of(given["planner"], kept["planner_base_url"], settings)
    session = Session(settings, observe=observe, path=path)
    return _conclude(session, propose)


def _conclude(session: Session, propose: Callable[[Session], str]) -> AgentResult:
    """Let the planner work, close the record, write the report."""
    try:
        session.step(
            "goal",
            "what the goal was read as",
            goal=session.settings.goal.as_dict() | {"task": session.task.name},
        )
        why = propose(session)
        session.end(*_outcome(session, why))
    except Changed as error:
        session.end("interrupted", str(error))
        raise
    except UserError as error:
        session.end("failed", str(error))
        session.forget()
        raise
    except BaseException:
        session.end("interrupted", "the session was cut off")
        raise
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
        settings = settings_of(goal, out=folder, planner="rules", common=options, **given)
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
    from auditor.agent import reading

    done = [r for r in session.runs if r["figures"]]
    if not done:
        return "partial", f"no run was made: {why}"
    partial = [r["name"] for r in done if not r["figures"]["complete"]]
    if partial:
        return "partial", f"{why}; partial: {', '.join(partial)}"
    if all(reading.unread(r["figures"]) for r in done):
        return "partial", why
    if not any(r["counts_as_fresh"] for r in done):
        return "partial", f"{why}; no fresh run tested what the goal names"
    return "complete", why


def _steps(path: Path) -> Iterable[dict[str, Any]]:
    from auditor.store.journal import read

    return read(path / STEPS)
