"""One session: its budget over all runs, and the operations that a planner has.

A planner proposes; this module writes the plan to disk, runs it within what is left of the budget, and records
each step with its reason and figures in ``steps.jsonl`` (hash-chained like the journals of a run). A session that was
cut off is gone on with by the same operations: runs that came to their end are read, not asked again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import msgspec

from auditor._version import __version__
from auditor.agent import perform, pool, run_figures, session_folder
from auditor.agent.session_folder import SESSION, STEPS, UNFINISHED, Changed, Ledger
from auditor.agent.session_settings import Refused, Settings
from auditor.agent.values import Entry, Fixed, Left, Planned, Record, Request, Spent, Texts, Used
from auditor.core.errors import RunFolderError, UserError
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Observer
from auditor.core.shown import plural, verb
from auditor.core.types import SourceText, digest

if TYPE_CHECKING:
    from auditor.models.budget import Budget
    from auditor.run.result import Result

__all__ = ["LEAST_CALLS", "SESSION", "STEPS", "Session"]

LEAST_CALLS = 20  # fewer cannot hold an original, its variants and their placebos on a handful of texts
MAX_RUNS = 8
OVERLAP = 0.05
GONE = "the client went away"
LABELS = 12  # of the task, that the record names


class Sized(msgspec.Struct, kw_only=True):
    """What a run would ask, counted before asking."""

    texts: int
    cases: int
    valid: int
    calls: int
    cost_usd: float | None


class Session:
    """Reads the texts, makes the folder and writes ``session.json``; goes on with the session in ``path``."""

    def __init__(self, settings: Settings, *, observe: Observer, path: Path | None = None) -> None:
        from auditor import tasks

        self.settings, self.observe = settings, observe
        self.spent = Spent()
        self.runs: list[Entry] = []
        self.finished: str | None = None
        self._gone = False
        self._budget: Budget | None = None  # of the last run
        self.lock = RLock()
        self._status, self._reason = "running", ""
        self._generated: set[str] = set()
        self._before: Record | None = None
        self.task = tasks.load(settings.goal.task)
        source, texts = pool.read(settings, self.task)
        self.pool = pool.Pool.of(texts, settings.seed)
        self._scans: dict[Request, tuple[pool.Scan, dict[str, bool]]] = {}  # every text is parsed for one
        self._fixed = Fixed(
            goal=msgspec.structs.replace(settings.goal, task=self.task.name),
            models=settings.names,
            planner=settings.planner,
            seed=settings.seed,
            limits=settings.limits,
            texts=Texts(source=source, n=len(self.pool.seeds), sha256=digest([s.text for s in self.pool.seeds])),
        )
        known: list[session_folder.Step] = []
        if path is not None:
            self._before = before = session_folder.before(path, self._fixed)
            self.spent.seconds = session_folder.seconds(path, before)
            self.spent.planner_calls = before.spent.planner_calls
            self.spent.planner_cost_usd = before.spent.planner_cost_usd
            known = session_folder.steps(path)
        self.path = path or session_folder.new_folder(settings.out, self._fixed)
        strict = settings.planner == "rules" or not known
        self._ledger = Ledger(self.path, self._fixed, known=known, strict=strict)
        self._began = settings.clock()
        self._took: float | None = None
        self.write()

    # -- the record -----------------------------------------------------------------------------------

    def write(self) -> None:
        """Write the record of the session as it stands."""
        session_folder.write(self.path / SESSION, self.record())

    def record(self) -> Record:
        """``session.json``: what was fixed, what was run, what was used, and what the runs show."""
        # While a session comes back to where it was, the runs that it has not reached again still stand.
        runs = self.runs + (self._before.runs[len(self.runs) :] if self._before else [])
        return Record(
            **msgspec.structs.asdict(self._fixed),
            tool_version=__version__,
            id=self.path.name,
            status=self._status,
            status_reason=self._reason,
            resumed=self._before.resumed + 1 if self._before else 0,
            labels=tuple(self.task.labels[:LABELS]),
            texts_left=self.pool.left,
            runs=runs,
            questions=run_figures.questions([r for r in runs if r.figures], self.declared()),
            spent=msgspec.structs.replace(
                self.spent,
                seconds=round(self.seconds(), 3),
                planner_cost_usd=round(self.spent.planner_cost_usd, perform.DIGITS),
            ),
        )

    def declared(self) -> list[tuple[str, ...]]:
        """The attribute sets that the goal asks about: the one of all its attributes, and each smaller one."""
        names, most = self.settings.goal.attributes or (), self.settings.goal.order
        return [s for k in range(1, most + 1) for s in combinations(names, k)]

    def step(self, kind: str, reason: str, **figures: Any) -> None:
        """Record one step, on disk before anything follows from it. ``reason`` is this program's own wording."""
        self._ledger.step({"kind": kind, "reason": reason, **figures})

    def end(self, status: str, reason: str) -> None:
        """Close the record; the first call counts. A session that was cut off gets no last step: it may go on."""
        if self._status != "running":
            return
        self._status, self._reason, self._took = status, reason, self.seconds()
        if status not in ("failed", *UNFINISHED):
            self.step("end", reason, status=status)
        self.write()
        self._ledger.close()

    def leave(self) -> None:
        """Ask nothing more, from another thread: whoever plans went away. What is in flight is still taken."""
        self._gone, self.finished = True, self.finished or GONE
        if self._budget is not None:
            self._budget.stop(GONE)

    def forget(self) -> None:
        """Remove the folder of a session that began here and was answered nothing: there is nothing to read."""
        if self._before or any(p.stat().st_size for p in self.path.glob("runs/*/responses.jsonl")):
            return
        shutil.rmtree(self.path, ignore_errors=True)

    # -- the budget -----------------------------------------------------------------------------------

    def seconds(self) -> float:
        """Seconds that the session took so far, those before it was cut off among them."""
        return self.spent.seconds + self.settings.clock() - self._began if self._took is None else self._took

    def left(self) -> Left:
        """What is left of each limit."""
        most, spent = self.settings.limits, self.spent
        return Left(
            calls=None if most.max_calls is None else max(0, most.max_calls - spent.calls),
            cost_usd=None if most.max_cost is None else round(max(0.0, most.max_cost - spent.cost_usd), 9),
            seconds=None if most.max_seconds is None else max(0.0, most.max_seconds - self.seconds()),
        )

    def broke(self) -> str:
        """Which limit leaves no room for another run; empty where there is room."""
        left, most = self.left(), self.settings.limits
        if left.calls is not None and left.calls < LEAST_CALLS:
            return f"{plural(left.calls, 'call')} {verb(left.calls, 'is', 'are')} left of {most.max_calls}"
        if left.cost_usd is not None and left.cost_usd <= 0 and most.max_cost:
            return f"nothing is left of {most.max_cost:g} USD"
        if len(self.runs) >= MAX_RUNS:
            return f"{MAX_RUNS} runs were made, the most that a session makes"
        # A run that was begun is finished first: it says itself how far its time reached.
        if left.seconds is not None and left.seconds <= 0 and self.old is None:
            return f"the {most.max_seconds:g} seconds are over"
        return ""

    @property
    def old(self) -> Entry | None:
        """The entry of the next run, where it was begun before the session was cut off."""
        return next(iter(self._before.runs[len(self.runs) :]), None) if self._before else None

    def come_back(self) -> None:
        """Read the runs that were made, finish one that was cut off; for planners that do not repeat steps."""
        while (old := self.old) is not None:
            plan = session_folder.planned(self.path, old)
            try:
                self.run(plan.request, plan.reason, **plan.figures)
            except UserError:
                if not old.notes:
                    raise
        self._ledger.forget()

    # -- the operations -------------------------------------------------------------------------------

    def adapters(self) -> list[Model] | None:
        """The models as objects, made anew for each run; None where all are specs."""
        from auditor import models

        if self.settings.specs is not None:
            return None
        return [
            models.make(m, task=self.task) if isinstance(m, str) else m if isinstance(m, Model) else models.wrap(m)
            for m in self.settings.models
        ]

    def plan(self, request: Request, *, data: Path | None, limits: bool = True) -> Plan:
        """The plan of ``request``, with everything that the user fixed."""
        left = self.left() if limits else Left()
        return perform.plan_of(
            self.settings, request, left=left, out=self.path / "runs", data=data, runs=len(self.runs)
        )

    def scan(self, request: Request, *, keep: Callable[[int], int] | None = None) -> pool.Scan:
        """What ``request`` would make of the texts; ``keep`` (texts → of a pilot) drops those it cannot change."""
        if request not in self._scans:
            self._scans[request] = pool.scan(self.plan(request, data=None, limits=False), self.pool)
        scanned, usable = self._scans[request]
        if keep is not None:
            self.pool.keep(usable, pilot=keep)
            self._scans.clear()
        return scanned

    def dry_run(self, request: Request) -> Sized:
        """Calls and cost of ``request`` on the texts it would take, without taking them or asking anything."""
        from auditor import run

        chosen = self._chosen(request, take=False)
        plan = self.plan(request, data=None, limits=False)
        parts = run.prepare(plan, models=self.adapters(), seeds=None if request.grammar else chosen)

        async def close() -> None:
            for model in parts.models:
                await model.aclose()

        try:
            values = run.estimate(parts)
        finally:
            run.run_sync(close)
        rows = list(values.models.values())
        costs = [r.cost_usd for r in rows if r.cost_usd is not None]
        return Sized(
            texts=len(chosen),
            cases=values.cases,
            valid=values.valid,
            calls=sum(r.calls + r.calls_canary for r in rows),
            cost_usd=round(sum(costs), 6) if len(costs) == len(rows) else None,
        )

    def _chosen(self, request: Request, *, take: bool) -> list[SourceText]:
        if request.grammar:
            return []
        if request.purpose == "search":
            if chosen := self.pool.seen(request.texts):
                return chosen
            raise Refused("no-texts-asked", "a search goes through texts that were asked; none was yet")
        if not self.pool.left:
            raise Refused("no-fresh-texts", "every text was asked; a fresh run needs others")
        return self.pool.fresh(request.texts, take=take)

    def run(self, request: Request, reason: str, **figures: Any) -> Entry:
        """Write the plan, run it within the budget, record what it measured.

        Raises `Refused` where the budget or the texts leave no room and nothing was asked, `UserError` where the run
        could not be done; the step says so.
        """
        from auditor.store.disk import write_texts

        with self.lock:
            old = self.old
            if not old and (spare := self.broke()):
                raise Refused("budget", f"no further run: {spare}")
            number = len(self.runs) + 1
            chosen = self._chosen(request, take=True)
            data = None if request.grammar else self.path / f"texts-{number:02d}.jsonl"
            if data is not None and not (old and data.is_file()):
                write_texts(data, chosen)
            plan = self.plan(request, data=data)
            entry = perform.entry_of(request, reason, runs=self.runs, texts=len(chosen) or request.texts)
            file = self.path / f"plan-{number:02d}.json"
            planned = Planned(
                run=entry.name,
                request=request,
                reason=reason,
                figures=figures,
                level=entry.level,
                texts_sha256=digest([s.text for s in chosen]),
                plan=plan.as_dict(),
            )
            if not (old and file.is_file()):
                session_folder.write(file, planned)
            self.step(
                "plan",
                reason,
                run=entry.name,
                request=request,
                level=entry.level,
                texts_sha256=planned.texts_sha256,
                figures=figures,
            )
            entry.folder = old.folder if old else None
            self.runs.append(entry)
            self.write()
            self._execute(entry, plan, old)
            return entry

    def _execute(self, entry: Entry, plan: Plan, old: Entry | None) -> None:
        used = Used()
        try:
            result = self._result(entry, plan, old, used)
        except Changed:
            raise
        except UserError as error:
            self.step("failed", "the run could not be done", run=entry.name, error=type(error).__name__)
            entry.counts_as_fresh = False
            entry.notes.append(str(error))
            raise
        finally:
            entry.calls, entry.cost_usd, entry.priced = used.calls, used.cost_usd, used.priced
            self.spent.calls += used.calls
            self.spent.cost_usd = round(self.spent.cost_usd + used.cost_usd, perform.DIGITS)
            self.write()
        self._read(entry, result)

    def _result(self, entry: Entry, plan: Plan, old: Entry | None, used: Used) -> Result:
        """The result of a run: read, finished, or made."""

        def begun(path: Path, budget: Budget) -> None:
            entry.folder = f"runs/{path.name}"
            self.write()
            self._budget = budget
            if self._gone:
                budget.stop(GONE)

        if old is None or not (old.folder or old.notes):
            return perform.execute(plan, self.adapters(), observe=self.observe, begun=begun, used=used)
        if old.figures or old.notes:
            used.calls, used.cost_usd, used.priced = old.calls, old.cost_usd, old.priced
        if old.figures is None and old.notes:
            raise UserError(old.notes[-1])
        path = self.path / str(old.folder)
        try:
            if old.figures:
                from auditor.run.result import load

                return load(path)
            seconds = self.left().seconds
            return perform.go_on(path, self.adapters(), observe=self.observe, seconds=seconds, used=used)
        except RunFolderError as error:
            raise Changed(str(error)) from None

    def _read(self, entry: Entry, result: Result) -> None:
        entry.figures = run_figures.figures(result.record)
        entry.ends = run_figures.turns_of(result, self.settings.goal, self.task)
        claims = [f for f in result.record["findings"] if f["kind"] == "claim"]
        entry.reasons = {f["id"]: tuple(f["notes"]) for f in claims}
        entry.said = {f["id"]: f["text"] for f in claims}
        if entry.request.grammar and result.path is not None:
            self._overlap(entry, run_figures.originals(result.path))
        if not entry.figures.complete:
            why = result.record["status_reason"]
            entry.notes.append(f"the run is partial, and what it shows rests on the texts it reached: {why}")
        self.step(
            "read",
            "what the run measured",
            run=entry.name,
            calls=entry.calls,
            cost_usd=entry.cost_usd,
            figures=entry.figures,
        )
        self.write()

    def _overlap(self, entry: Entry, texts: set[str]) -> None:
        """Sentences of a grammar may be drawn twice; a run that repeats many is not fresh."""
        again = len(texts & self._generated)
        self._generated |= texts
        if again and entry.counts_as_fresh:
            entry.notes.append(f"{again} of {len(texts)} generated texts were asked before")
            entry.counts_as_fresh = again <= OVERLAP * len(texts)

    def find(self, name: str) -> Entry:
        """The entry of a run of this session, such as ``R2``."""
        for entry in self.runs:
            if entry.name == name and entry.figures:
                return entry
        known = ", ".join(r.name for r in self.runs if r.figures) or "none yet"
        raise Refused("unknown-run", f"there is no such run in this session; runs: {known}")
