"""The agent: from a goal to runs, readings and a report with the reasons for each step.

Examples
--------
>>> from auditor.agent import parse
>>> parse("Do loan decisions change with religion?").attributes
('religion',)
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from auditor.agent import figures
from auditor.agent import session as sessions
from auditor.agent.goal import Goal, parse
from auditor.agent.goal import read as read_goal
from auditor.agent.rules import Rules
from auditor.agent.session import TEXTS, Changed, Session
from auditor.agent.values import Record, Settings, plain
from auditor.core.errors import ConfigError, UserError
from auditor.core.protocols import Observer
from auditor.core.shown import plural
from auditor.run.state import silent
from auditor.store.journal import read_texts

if TYPE_CHECKING:
    from auditor.report.document import Document

__all__ = ["AgentResult", "Goal", "load", "outline", "parse", "read_goal", "resume", "run", "serve"]


class AgentResult:
    """A finished (or cut-off) session: the record of ``session.json`` and the steps of the folder ``path``."""

    def __init__(self, session: Record, path: Path) -> None:
        self.session, self.path = session, path
        self.steps = tuple(sessions.steps(path))

    @property
    def record(self) -> dict[str, Any]:
        """Return the session as plain data, with the figures of its runs."""
        return plain(self.session)

    @property
    def complete(self) -> bool:
        """Return whether the session came to its own end, every run whole, and a fresh run tested the goal."""
        return self.session.status == "complete"

    @property
    def questions(self) -> list[dict[str, Any]]:
        """Return one entry per model and attribute set, with the verdict of the session."""
        return list(self.record["questions"])

    @property
    def runs(self) -> list[Any]:
        """Return the `auditor.run.audit.Result` of each run that has one."""
        from auditor.run.audit import load as load_run

        return [load_run(self.path / str(entry.folder)) for entry in self.session.done]

    def to_json(self) -> str:
        """Return session and steps as one JSON text."""
        whole = self.record | {"steps": self.steps}
        return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)

    def document(self) -> Document:
        """Return the report as typed parts, for a writer of any format."""
        from auditor.agent import session_report

        return session_report.build(self.session, self.steps)

    def to_text(self, *, width: int = 100, encoding: str = "utf-8", color: bool = False, full: bool = False) -> str:
        """Return the report for a terminal: one screen, with ``full`` all of it."""
        from auditor.report.terminal import Page, write

        return write(Page(width=width, encoding=encoding, color=color), self.document(), full=full)

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        from auditor.report.markdown import write

        return write(self.document())

    def to_html(self) -> str:
        """Return the self-contained HTML report."""
        from auditor.report.html import write

        return write(self.document())

    def __repr__(self) -> str:
        return f"<AgentResult {self.session.id}: {self.session.status}, {plural(len(self.session.runs), 'run')}>"


def load(path: str | Path) -> AgentResult:
    """Return the session in a folder; one that was cut off has the status ``interrupted``.

    Raises
    ------
    RunFolderError
        It is no session's folder, or of a newer format.
    """
    record = sessions.read(Path(path))
    if record.status == "running":
        record.status, record.status_reason = "interrupted", "the session was cut off, or is still running"
    return AgentResult(record, Path(path))


def run(goal: str, *, observe: Observer = silent, **options: Any) -> AgentResult:
    """Plan audits for a goal, run them, look closer where it pays, and write the report.

    Parameters
    ----------
    goal : str
        A question in English, such as "Does our résumé screener treat older women differently?", or a YAML file.
    observe : callable
        Gets progress events.
    **options
        ``model``, ``data``, ``task``: as in `auditor.audit`; a planner cannot change them, and without them the goal
        and its task say so. ``out``: the session's folder is made in here. ``seed``: of the order of the texts and
        of all runs. Limits over all runs together: ``max_calls``, ``max_cost`` (US dollars), ``max_seconds``. Fields
        of `Plan` that hold for every run: ``base_url``, ``delta``, ``price``, ``limit``, ….

    Raises
    ------
    UserError
        The goal cannot be read, or nothing could be asked.
    """
    return _conclude(Settings.of(goal, **options), lambda session: Rules(session).go(), observe)


def serve(goal: str, *, observe: Observer = silent, **options: Any) -> AgentResult:
    """Let the client of a Model Context Protocol server on stdin and stdout plan; ``options`` are those of `run`.

    Raises
    ------
    MissingDependency
        The extra ``mcp`` is not installed.
    UserError
        The goal cannot be read.
    """
    from auditor.agent import tools

    return _conclude(Settings.of(goal, planner=tools.PLANNER, **options), tools.serve, observe)


def resume(path: str | Path, *, model: object = None, observe: Observer = silent) -> AgentResult:
    """Resume a session that was cut off, in the folder where it was started.

    A run that was cut off is finished, nothing that was answered is asked again, and what was used counts against the
    limits. Then the rules plan on. ``model`` is needed only where it was handed in as an object.

    Raises
    ------
    ConfigError
        The session has ended, a client planned it, or it needs a Python object.
    RunFolderError
        It is no session, was changed, another process writes it, or texts, task, model or version are others.
    """
    path = Path(path)
    record, options = sessions.unfinished(path)
    models = list(options.models) if options.models is not None and model is None else model
    if models is None:
        raise ConfigError("The model of this session was handed in as an object: resume(path, model=…).")
    if record.planner != "rules":
        raise ConfigError(f"The session in {path} was planned by {record.planner}. Read it with: audit report {path}")
    settings = Settings.of(
        record.goal,
        model=models,
        task=options.task,
        data=read_texts(path / TEXTS) if (path / TEXTS).is_file() else options.data,
        out=path.parent,
        seed=record.seed,
        **msgspec.structs.asdict(record.limits),
        **options.common,
    )
    return _conclude(settings, lambda session: Rules(session).go(), observe, path)


def _conclude(
    settings: Settings, propose: Callable[[Session], str], observe: Observer, path: Path | None = None
) -> AgentResult:
    """Let the planner work, close the record, write the report."""
    session = Session(settings, observe=observe, path=path)
    try:
        session.step("goal", "what the goal was read as", goal=session.record.goal)
        session.come_back()
        session.end(*_outcome(session, propose(session)))
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
    result = AgentResult(session.record, session.path)
    for name, made in (("agent.md", result.to_markdown()), ("agent.html", result.to_html())):
        (session.path / name).write_text(made, encoding="utf-8")
    return result


def _outcome(session: Session, why: str) -> tuple[str, str]:
    done = session.record.done
    if not done:
        return "partial", f"no run was made: {why}"
    if partial := [r.name for r in done if r.figures and not r.figures.complete]:
        return "partial", f"{why}; partial: {', '.join(partial)}"
    if all(figures.unread(r.figures) for r in done):
        return "partial", why
    if not any(r.counts_as_fresh for r in done):
        return "partial", f"{why}; no fresh run tested what the goal names"
    return "complete", why


def outline(goal: str, **options: Any) -> AgentResult:
    """Return the session that `run` would begin: goal, texts, and the size of its pilot; nothing is asked or kept.

    Takes the arguments of `run`.
    """
    kept = {n: v for n, v in options.items() if n not in ("observe", "out")}
    with tempfile.TemporaryDirectory() as out:
        session = Session(Settings.of(goal, out=out, **kept), observe=silent)
        Rules(session).first()
        session.end("outline", "nothing was asked")
        return AgentResult(session.record, session.path)
