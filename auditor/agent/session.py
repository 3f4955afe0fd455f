"""One session: a folder with child runs, one budget over all of them, and the operations that a planner has.

A planner proposes; this module runs each proposal within what is left of the budget, and records it with its reason
and figures in ``steps.jsonl``, which is chained like the journals of a run. A session that was cut off is gone on with
by the same operations: runs that came to their end are read, not asked again.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from auditor import run as pipeline
from auditor.agent import figures as measured
from auditor.agent import session_folder, texts
from auditor.agent.session_folder import PLANNER_BOOK, SESSION, STEPS, TEXTS, UNFINISHED, Changed, Step
from auditor.agent.settings import Settings
from auditor.agent.values import Entry, Left, Refused, Request, Spent, Texts, plain
from auditor.core.errors import RunFolderError, UserError
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Observer
from auditor.core.shown import plural, verb
from auditor.core.types import SourceText, digest
from auditor.store.disk import hold, new_folder, write_json, write_texts
from auditor.store.folder import RUN, RunFolder
from auditor.store.journal import Journal

if TYPE_CHECKING:
    from auditor.run.preparation import Parts
    from auditor.run.result import Result

LEAST_CALLS = 20  # fewer cannot hold an original, its variants and their placebos on a handful of texts
MAX_RUNS = 8
OVERLAP = 0.05
GONE = "the client went away"
INTERRUPTED = "Interrupted."  # what a run record says that Ctrl-C ended
OF_TEXTS = ("columns", "limit")  # the session reads them, once


class Sized(NamedTuple):
    """What a run would ask, counted before asking."""

    texts: int
    cases: int
    valid: int
    calls: int
    cost_usd: float | None


class Session:
    """Reads the texts, makes the folder and writes ``session.json``; goes on with the session in ``path``."""

    def __init__(
        self,
        settings: Settings,
        *,
        observe: Observer,
        path: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings, self.observe, self.lock = settings, observe, RLock()
        self.task, self.record = settings.task, settings.record
        self.runs: list[Entry] = []
        self.finished: str | None = None
        self._generated: set[str] = set()
        source, seeds = texts.read(settings, self.task)
        record, self.pool = self.record, texts.Pool.of(seeds, self.record.seed)
        sha256 = digest([s.text for s in self.pool.seeds])
        record.texts = Texts(source=source, n=len(self.pool.seeds), sha256=sha256)
        start = session_folder.start(plain(record))
        self._before = None if path is None else session_folder.unchanged(path, record)
        self._known = [] if path is None else session_folder.steps(path)  # taken again, not written twice
        self.path = path or new_folder(settings.out, f"agent-{datetime.now(UTC):%Y%m%d-%H%M%S}-{start[:6]}")
        self._lock = hold(self.path / ".lock", f"the session {self.path}")
        self._steps = Journal(self.path / STEPS, start)
        record.id, record.resumed = self.path.name, self._before.resumed + 1 if self._before else 0
        self._budgets(clock)
        if settings.seeds is not None:
            write_texts(self.path / TEXTS, settings.seeds)
        self.write()

    def _budgets(self, clock: Callable[[], float]) -> None:
        """One budget for all runs and one for the planner, each kept in the folder before anything is used."""
        from auditor.models.budget import BOOK, Budget

        most, common = self.record.limits, self.settings.options.common
        earlier = 0.0
        if self._before is not None:  # what was noted, and what a run still wrote after that
            noted = (self.path / SESSION).stat().st_mtime
            last = max((f.stat().st_mtime for f in self.path.glob("runs/*/*.jsonl")), default=noted)
            earlier = self._before.spent.seconds + max(0.0, last - noted)
        self._began, self._clock = clock() - earlier, clock
        self.budget = Budget(
            max_calls=most.max_calls,
            max_cost=most.max_cost,
            max_seconds=None if most.max_seconds is None else max(0.0, most.max_seconds - earlier),
            **dict(zip(("price_in", "price_out"), common.get("price", ()), strict=False)),
            clock=clock,
        )
        self.budget.start()
        self.budget.keep(self.path / BOOK)
        self.planner = Budget(max_calls=most.planner_max_calls)
        self.planner.keep(self.path / PLANNER_BOOK)

    # -- the record -----------------------------------------------------------------------------------

    def write(self) -> None:
        """Write the record of the session as it stands."""
        record, (calls, usd, _) = self.record, self.budget.spent
        # While a session comes back to where it was, the runs that it has not reached again still stand.
        record.runs = self.runs + (self._before.runs[len(self.runs) :] if self._before else [])
        record.questions = measured.questions(record.done, self.declared())
        record.texts_left = self.pool.left
        record.spent = Spent(
            calls=calls,
            cost_usd=usd,
            seconds=round(self._clock() - self._began, 3),
            planner_calls=self.planner.spent.calls,
        )
        write_json(self.path / SESSION, msgspec.to_builtins(record))

    def declared(self) -> list[tuple[str, ...]]:
        """The attribute sets that the goal asks about: the one of all its attributes, and each smaller one."""
        names, most = self.record.goal.attributes or (), self.record.goal.order
        return [s for k in range(1, most + 1) for s in combinations(names, k)]

    def step(self, kind: str, reason: str, **figures: Any) -> None:
        """Record one step, on disk before anything follows from it. ``reason`` is this program's own wording.

        Where a session goes on, a step that stands there is passed over; rules take the same steps again, and `Changed`
        is raised where another one stands there.
        """
        made: Step = json.loads(msgspec.json.encode({"kind": kind, "reason": reason, **figures}))
        strict = self.record.planner == "rules"
        known = next((s for s in self._known if strict or _name(s) == _name(made)), None)
        if strict and known is not None and known != made:
            raise Changed(
                f"{self.path / STEPS}: the session did {_name(known)!r} here, and with the texts, model and version of "
                f"now it would do {_name(made)!r}, or the same with other figures. It cannot be gone on with; start "
                "a new one (answers that are cached are not asked again)."
            )
        if known is None:
            self._steps.append(made)
        else:
            self._known.remove(known)

    def end(self, status: str, reason: str) -> None:
        """Close the record; the first call counts. A session that was cut off gets no last step: it may go on."""
        if self.record.status != "running":
            return
        if status not in ("failed", *UNFINISHED):
            self.step("end", reason, status=status)
        self.record.status, self.record.status_reason = status, reason
        try:
            self.write()
        finally:  # also where the folder was deleted
            for part in (self._steps, self.budget, self.planner):
                part.close()
            self._lock.release()

    def leave(self) -> None:
        """Ask nothing more, from another thread: whoever plans went away. What is in flight is still taken."""
        self.finished = self.finished or GONE
        self.budget.stop(GONE)

    def forget(self) -> None:
        """Remove the folder of a session that began here and was answered nothing: there is nothing to read."""
        if self._before is None and not any(p.stat().st_size for p in self.path.glob("runs/*/responses.jsonl")):
            shutil.rmtree(self.path, ignore_errors=True)

    # -- the budget -----------------------------------------------------------------------------------

    def left(self) -> Left:
        """What is left of each limit."""
        most, used, seconds = self.record.limits, self.budget.spent, self.budget.remaining_s()
        return Left(
            calls=None if most.max_calls is None else max(0, most.max_calls - used.calls),
            cost_usd=None if most.max_cost is None else round(max(0.0, most.max_cost - used.usd), 9),
            seconds=None if seconds is None else max(0.0, seconds),
        )

    def broke(self) -> str:
        """Which limit leaves no room for another run; empty where there is room."""
        left, most = self.left(), self.record.limits
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
            try:
                self.run(old.request, old.reason)
            except UserError:
                if not old.notes:
                    raise
        self._known.clear()

    # -- the operations -------------------------------------------------------------------------------

    def adapters(self) -> list[Model] | None:
        """The models as objects, made anew for each run; None where all are specs."""
        from auditor import models

        if self.settings.options.models is not None:
            return None
        return [
            models.make(m, task=self.task) if isinstance(m, str) else m if isinstance(m, Model) else models.wrap(m)
            for m in self.settings.models
        ]

    def plan(self, request: Request, *, data: Path | None = None, limits: bool = False) -> Plan:
        """The plan of ``request`` on the texts in ``data``, with everything that the user fixed."""
        options, record, generated = self.settings.options, self.record, request.grammar
        left, common, chosen = self.left() if limits else Left(), options.common, request.as_dict()
        return Plan.model_validate(
            {
                **{k: v for k, v in common.items() if k not in OF_TEXTS},
                **{k: v for k, v in chosen.items() if k not in ("purpose", "texts")},
                "task": options.task or record.goal.task,
                "models": record.models,
                "data": None if generated or data is None else str(data),
                "columns": {"source": "source"} if (common.get("columns") or {}).get("source") else {},
                "suite_options": ("generation=rand",) if generated else (),
                "limit": request.texts if generated else None,
                # Another grammar run draws other sentences; a text keeps its variants whatever its number.
                "seed": record.seed + (len(self.runs) if generated else 0),
                "max_calls": left.calls,
                "max_cost": left.cost_usd,
                "max_seconds": left.seconds,
                "out": str(self.path / "runs"),
            }
        )

    def scan(self, request: Request) -> dict[str, bool]:
        """The texts that ``request`` can change; true for those that name what it asks (`auditor.agent.texts.scan`)."""
        return texts.scan(self.plan(request), self.pool)

    def dry_run(self, request: Request) -> Sized:
        """Calls and cost of ``request`` on the texts it would take, without taking them or asking anything."""
        chosen = self._chosen(request, take=False)
        parts = pipeline.prepare(self.plan(request), models=self.adapters(), seeds=None if request.grammar else chosen)

        async def close() -> None:
            for model in parts.models:
                await model.aclose()

        try:
            values = pipeline.estimate(parts)
        finally:
            pipeline.run_sync(close)
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
        if not self.pool.left:
            raise Refused("no-fresh-texts", "every text was asked; a fresh run needs others")
        return self.pool.fresh(request.texts, take=take)

    def run(self, request: Request, reason: str, **figures: Any) -> Entry:
        """Record the plan, run it within the budget, record what it measured.

        Raises `Refused` where the budget or the texts leave no room and nothing was asked, `UserError` where the run
        could not be done; the step says so.
        """
        with self.lock:
            old = self.old
            if not old and (spare := self.broke()):
                raise Refused("budget", f"no further run: {spare}")
            number = len(self.runs) + 1
            chosen = self._chosen(request, take=True)
            data = self.path / f"texts-{number:02d}.jsonl"
            if not (request.grammar or (old and data.is_file())):
                write_texts(data, chosen)
            plan = self.plan(request, data=data, limits=True)
            fresh = request.purpose == "fresh"
            entry = Entry(
                name=f"R{number}",
                purpose=request.purpose,
                counts_as_fresh=fresh,
                level=measured.level(sum(r.counts_as_fresh for r in self.runs) + 1) if fresh else None,
                request=request,
                reason=reason,
                texts=len(chosen) or request.texts,
            )
            if old:
                entry.folder, entry.calls, entry.cost_usd, entry.priced = (
                    old.folder,
                    old.calls,
                    old.cost_usd,
                    old.priced,
                )
            about = {"request": request, "level": entry.level, "texts_sha256": digest([s.text for s in chosen])}
            self.step("plan", reason, run=entry.name, **about, figures=figures)
            self.runs.append(entry)
            self.write()
            try:
                result = self._result(entry, plan, old)
            except Changed:
                raise
            except UserError as error:
                self.step("failed", "the run could not be done", run=entry.name, error=type(error).__name__)
                entry.counts_as_fresh = False
                entry.notes.append(str(error))
                raise
            finally:
                self.write()
            self._read(entry, result)
            return entry

    def _result(self, entry: Entry, plan: Plan, old: Entry | None) -> Result:
        """The result of a run: read, finished, or made."""
        from auditor.models.budget import BOOK, Book
        from auditor.run import result as results

        if old is not None and old.notes and old.figures is None:
            raise UserError(old.notes[-1])
        if not entry.folder:
            parts = self._parts(plan)
            with _counted(entry, parts):
                return results.in_folder(parts, observe=self.observe, begun=lambda path: self._begun(entry, path))
        path = self.path / entry.folder
        try:
            if (path / RUN).is_file() and (done := results.load(path)).run.status_reason != INTERRUPTED:
                entry.calls, entry.cost_usd, _ = Book.read(path / BOOK)
                return done
            with RunFolder.open(path, write=True) as folder:
                parts = self._parts(Plan.from_dict(folder.plan["plan"]))
                with _counted(entry, parts):
                    return pipeline.run_sync(lambda: results.go_on(folder, parts, self.observe))
        except RunFolderError as error:
            raise Changed(str(error)) from None

    def _parts(self, plan: Plan) -> Parts:
        parts = pipeline.prepare(plan, models=self.adapters())
        parts.budget = self.budget.part()
        return parts

    def _begun(self, entry: Entry, path: Path) -> None:
        entry.folder = f"runs/{path.name}"
        self.write()

    def _read(self, entry: Entry, result: Result) -> None:
        entry.figures = measured.figures(result.run)
        if entry.request.grammar:
            self._overlap(entry, {str(case.original.input) for case, _ in result.evidence.cases()})
        if not entry.figures.complete:
            why = result.run.status_reason
            entry.notes.append(f"the run is partial, and what it shows rests on the texts it reached: {why}")
        used = {"calls": entry.calls, "cost_usd": entry.cost_usd}
        self.step("read", "what the run measured", run=entry.name, **used, figures=measured.public(entry.figures))
        self.write()

    def _overlap(self, entry: Entry, made: set[str]) -> None:
        """Sentences of a grammar may be drawn twice; a run that repeats many is not fresh."""
        again = len(made & self._generated)
        self._generated |= made
        if again and entry.counts_as_fresh:
            entry.notes.append(f"{again} of {len(made)} generated texts were asked before")
            entry.counts_as_fresh = again <= OVERLAP * len(made)

    def find(self, name: str) -> Entry:
        """The entry of a run of this session, such as ``R2``."""
        known = {entry.name: entry for entry in self.runs if entry.figures}
        if name not in known:
            listed = ", ".join(known) or "none yet"
            raise Refused("unknown-run", f"there is no such run in this session; runs: {listed}")
        return known[name]


def _name(step: Step) -> str:
    return f"{step['kind']} {step.get('run') or ''}".strip()


@contextmanager
def _counted(entry: Entry, parts: Parts) -> Iterator[None]:
    """Write down what a run used, however it ends, and whether the price of its models is known."""
    try:
        yield
    finally:
        entry.calls, entry.cost_usd, _ = parts.budget.spent
        costly = [m for m in parts.models if m.costs == "tokens"]
        known = all(map(parts.budget.priced, costly))
        entry.priced = "free" if not costly else "known" if known else "unknown"
