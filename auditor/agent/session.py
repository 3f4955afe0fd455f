"""One session: a folder with child runs, one budget over all, and each proposal of a planner with its reason."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from random import Random
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from auditor import models, tasks
from auditor.agent import figures as measured
from auditor.agent.values import Entry, Fixed, Left, Options, Record, Refused, Request, Settings, Spent, Texts, plain
from auditor.core.errors import ConfigError, DataFileError, RunFolderError, UserError
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Observer
from auditor.core.record import read as read_record
from auditor.core.shown import plural, verb
from auditor.core.types import SourceText, digest
from auditor.models.limits import BOOK, Budget, spent_in
from auditor.run.audit import run_sync
from auditor.run.preparation import Parts, prepare
from auditor.store.folder import RUN, RunFolder
from auditor.store.integrity import Problem, require_intact, verify, verify_folder
from auditor.store.journal import Journal, genesis, hold, new_folder, read_json, read_texts, write_json, write_texts
from auditor.store.journal import read as journal

if TYPE_CHECKING:
    from auditor.run.audit import Result

SESSION, STEPS, TEXTS = "session.json", "steps.jsonl", "texts.jsonl"
UNFINISHED = ("running", "interrupted")
LEAST_CALLS = 20  # fewer cannot hold an original, its variants and their placebos on a handful of texts
MAX_RUNS = 8
GONE = "the client went away"
INTERRUPTED = "Interrupted."  # what a run record says that Ctrl-C ended
OF_TEXTS = ("columns", "limit")  # the session reads them, once
Step = dict[str, Any]  # kind, reason, and figures by name
ROUND = 64


class Changed(RunFolderError):
    """A run of the session is not as it was; the session is left as it is."""


# -- the folder ----------------------------------------------------------------------------------------


def read(path: Path) -> Record:
    """Return the session in a folder, with the figures of its runs; raise `RunFolderError` without one."""
    file = path / SESSION
    if not file.is_file():
        raise RunFolderError(f"{path} holds no session of the agent: there is no {SESSION} in it")
    values = read_json(file, versioned=True)
    for run in values.get("runs", ()):
        run.pop("figures", None)  # sessions of 0.2 repeat them
        if run.get("purpose") == "search":  # exploratory as a pilot is
            run["purpose"] = run["request"]["purpose"] = "pilot"
    values.pop("questions", None)
    try:
        record = msgspec.convert(values, Record)
    except msgspec.ValidationError as error:
        raise RunFolderError(f"{file} cannot be read: {error}. Was it changed by hand?") from None
    for entry in record.runs:
        if entry.folder and (path / entry.folder / RUN).is_file():
            entry.figures = measured.figures(read_record(RunFolder.open(path / entry.folder).record()))
    record.questions = measured.questions(record.done, declared(record))
    return record


def declared(record: Record) -> list[tuple[str, ...]]:
    """Return the attribute sets that the goal asks about: the one of all its attributes, and each smaller one."""
    names, most = record.goal.attributes or (), record.goal.order
    return [s for k in range(1, most + 1) for s in combinations(names, k)]


def steps(path: Path) -> list[Step]:
    """Return the steps on disk; a torn last one is left out."""
    return list(journal(path / STEPS))


def unfinished(path: Path) -> tuple[Record, Options]:
    """Return the record of a session that can go on, and its options; `ConfigError` where it has ended."""
    record = read(path)
    if record.status not in UNFINISHED:
        raise ConfigError(
            f"The session in {path} came to its end ({record.status}: {record.status_reason}). "
            f"Read it with: audit report {path}"
        )
    if record.options is None:
        raise RunFolderError(f"{path} was begun by another version, so it cannot be resumed. Start a new session.")
    return record, record.options


def verified(path: Path) -> tuple[int, list[Problem]]:
    """Return how many runs a session has, and every problem of its steps and its runs."""
    runs = [plan.parent for plan in sorted(path.glob("runs/*/plan.json"))]
    read(path)
    problems = verify(path / STEPS, _start(read_json(path / SESSION)))
    return len(runs), problems + [problem for run in runs for problem in verify_folder(run)]


def _start(record: dict[str, Any]) -> str:
    """Return the beginning of the chain of steps: the digest of what was fixed, without paths and times."""
    return genesis(STEPS, digest({name: record[name] for name in Fixed.__struct_fields__}))


def _unchanged(path: Path, fixed: Record) -> Record:
    """Return the record as it was left; `RunFolderError` where what was fixed, a step or a run changed."""
    record = read(path)
    for name in Fixed.__struct_fields__:
        if getattr(record, name) != getattr(fixed, name):
            what = "words for people, or the task," if name == "goal" else name
            raise RunFolderError(
                f"The {what} changed since the session in {path} began, so it cannot be resumed. Put the old "
                "files back, or start a new session: answers that are cached are not asked again."
            )
    problems = [p for p in verify(path / STEPS, _start(plain(fixed))) if p.kind != "torn"]
    if problems:
        raise RunFolderError(f"{path} is not as it was written: {problems[0]}.")
    for plan in sorted(path.glob("runs/*/plan.json")):
        require_intact(plan.parent)
    return record


# -- the session ---------------------------------------------------------------------------------------


class Sized(NamedTuple):
    """What a run would ask, counted before asking."""

    texts: int
    cases: int
    valid: int
    calls: int
    cost_usd: float | None


class Session:
    """Reads the texts, makes the folder and writes ``session.json``; goes on with the session in ``path``."""

    def __init__(self, settings: Settings, *, observe: Observer, path: Path | None = None) -> None:
        self.settings, self.observe, self.lock = settings, observe, RLock()
        self.task, self.record = settings.task, settings.record
        self.runs: list[Entry] = []
        self.finished: str | None = None
        source, seeds = _texts(settings, self.task)
        record, self.pool = self.record, Pool(seeds, self.record.seed)
        record.texts = Texts(source=source, n=len(self.pool.seeds), sha256=digest([s.text for s in self.pool.seeds]))
        start = _start(plain(record))
        self._before = None if path is None else _unchanged(path, record)
        self._known = [] if path is None else steps(path)  # taken again, not written twice
        self.path = path or new_folder(settings.out, f"agent-{datetime.now(UTC):%Y%m%d-%H%M%S}-{start[:6]}")
        self._lock = hold(self.path / ".lock", f"the session {self.path}")
        self._steps = Journal(self.path / STEPS, start)
        record.id, record.resumed = self.path.name, self._before.resumed + 1 if self._before else 0
        self._budgets()
        if settings.seeds is not None:
            write_texts(self.path / TEXTS, settings.seeds)
        self.write()

    def _budgets(self) -> None:
        """Make one budget for all runs, kept in the folder before anything is used."""
        most, common = self.record.limits, self.settings.options.common
        earlier = 0.0
        if self._before is not None:  # what was noted, and what a run still wrote after that
            noted = (self.path / SESSION).stat().st_mtime
            last = max((f.stat().st_mtime for f in self.path.glob("runs/*/*.jsonl")), default=noted)
            earlier = self._before.spent.seconds + max(0.0, last - noted)
        self._began = time.monotonic() - earlier
        self.budget = Budget(
            max_calls=most.max_calls,
            max_cost=most.max_cost,
            max_seconds=None if most.max_seconds is None else max(0.0, most.max_seconds - earlier),
            **dict(zip(("price_in", "price_out"), common.get("price", ()), strict=False)),
        )
        self.budget.start()
        self.budget.keep(self.path / BOOK)

    # -- the record -----------------------------------------------------------------------------------

    def write(self) -> None:
        """Write the record of the session, without what its runs hold."""
        record, (calls, usd, _) = self.record, self.budget.spent
        # While a session comes back to where it was, the runs that it has not reached again stay.
        record.runs = self.runs + (self._before.runs[len(self.runs) :] if self._before else [])
        record.questions = measured.questions(record.done, declared(record))
        record.texts_left = self.pool.left
        record.spent = Spent(calls=calls, cost_usd=usd, seconds=round(time.monotonic() - self._began, 3))
        values = msgspec.to_builtins(record)
        del values["questions"]
        for run in values["runs"]:
            del run["figures"]
        write_json(self.path / SESSION, values)

    def step(self, kind: str, reason: str, **figures: Any) -> None:
        """Record one step on disk before anything follows from it; a resumed session skips those it has."""
        made: Step = json.loads(msgspec.json.encode({"kind": kind, "reason": reason, **figures}))
        if made in self._known:
            self._known.remove(made)
        else:
            self._steps.append(made)

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
            self._steps.close()
            self.budget.close()
            self._lock.release()

    def leave(self) -> None:
        """Ask nothing more, from another thread: the planner went away. Calls in flight are still awaited."""
        self.finished = self.finished or GONE
        self.budget.stop(GONE)

    def forget(self) -> None:
        """Remove the folder of a session that began here and was answered nothing."""
        if self._before is None and not any(p.stat().st_size for p in self.path.glob("runs/*/responses.jsonl")):
            shutil.rmtree(self.path, ignore_errors=True)

    # -- the budget -----------------------------------------------------------------------------------

    def left(self) -> Left:
        """Return what is left of each limit."""
        most, used, seconds = self.record.limits, self.budget.spent, self.budget.remaining_s()
        return Left(
            calls=None if most.max_calls is None else max(0, most.max_calls - used.calls),
            cost_usd=None if most.max_cost is None else round(max(0.0, most.max_cost - used.usd), 9),
            seconds=None if seconds is None else max(0.0, seconds),
        )

    def broke(self) -> str:
        """Return which limit leaves no room for another run; empty where there is room."""
        left, most = self.left(), self.record.limits
        if left.calls is not None and left.calls < LEAST_CALLS:
            return f"{plural(left.calls, 'call')} {verb(left.calls, 'is', 'are')} left of {most.max_calls}"
        if left.cost_usd is not None and left.cost_usd <= 0 and most.max_cost:
            return f"nothing is left of {most.max_cost:g} USD"
        if len(self.runs) >= MAX_RUNS:
            return f"{MAX_RUNS} runs were made, the most that a session makes"
        if left.seconds is not None and left.seconds <= 0:
            return f"the {most.max_seconds:g} seconds are over"
        return ""

    # -- the operations -------------------------------------------------------------------------------

    def come_back(self) -> None:
        """Read the runs that were made, and finish one that was cut off."""
        for old in self._before.runs if self._before else ():
            data = self._data(len(self.runs) + 1)
            self._make(old, [] if old.request.grammar else read_texts(data))

    def adapters(self) -> list[Model] | None:
        """Return the models as objects, made anew for each run; None where all are specs."""
        if self.settings.options.models is not None:
            return None
        chosen = self.settings.models
        return [models.make(m, task=self.task) if isinstance(m, str) else models.wrap(m) for m in chosen]

    def plan(self, request: Request, *, data: Path | None = None, limits: bool = False) -> Plan:
        """Return the plan of ``request`` on the texts in ``data``, with everything that the user fixed."""
        options, record = self.settings.options, self.record
        left, common = self.left() if limits else Left(), options.common
        # Another grammar run draws other sentences; a text keeps its variants whatever its number.
        of_suite: dict[str, object] = {"seed": record.seed}
        if request.grammar:
            drawn = {
                "suite_options": ("generation=rand",),
                "limit": request.texts,
                "seed": record.seed + len(self.runs),
            }
            of_suite, data = drawn, None
        chosen = {k: v for k, v in plain(request).items() if k not in ("purpose", "texts") and v != []}
        return Plan.model_validate(
            {
                **{k: v for k, v in common.items() if k not in OF_TEXTS},
                **chosen,
                "task": options.task or record.goal.task,
                "models": record.models,
                "data": None if data is None else str(data),
                "columns": {"source": "source"} if (common.get("columns") or {}).get("source") else {},
                **of_suite,
                "max_calls": left.calls,
                "max_cost": left.cost_usd,
                "max_seconds": left.seconds,
                "full_plan": True,  # the session has limits of its own
                "out": str(self.path / "runs"),
            }
        )

    def dry_run(self, request: Request) -> Sized:
        """Count calls and cost of ``request`` on the texts it would take, without taking them or asking anything."""
        from auditor.run.dryrun import Ahead

        chosen = self._chosen(request)
        parts = prepare(self.plan(request), models=self.adapters(), seeds=chosen or None)

        async def close() -> None:
            for model in parts.models:
                await model.aclose()

        try:
            values = Ahead(parts).expected()
        finally:
            run_sync(close)
        rows = list(values.models.values())
        costs = [r.cost_usd for r in rows if r.cost_usd is not None]
        return Sized(
            texts=len(chosen),
            cases=values.cases,
            valid=values.valid,
            calls=sum(r.calls + r.calls_canary for r in rows),
            cost_usd=round(sum(costs), 6) if len(costs) == len(rows) else None,
        )

    def _chosen(self, request: Request) -> list[SourceText]:
        if request.grammar:
            return []
        if not self.pool.left:
            raise Refused("no-fresh-texts", "every text was asked; a fresh run needs others")
        return self.pool.fresh(request.texts)

    def _data(self, run: int) -> Path:
        return self.path / f"texts-{run:02d}.jsonl"

    def run(self, request: Request, reason: str, **figures: Any) -> Entry:
        """Record the plan, run it within the budget, record what it measured; `Refused` without room."""
        with self.lock:
            if spare := self.broke():
                raise Refused("budget", f"no further run: {spare}")
            number, chosen, fresh = len(self.runs) + 1, self._chosen(request), request.purpose == "fresh"
            if chosen:
                write_texts(self._data(number), chosen)
            entry = Entry(
                name=f"R{number}",
                purpose=request.purpose,
                counts_as_fresh=fresh,
                level=measured.level(sum(r.counts_as_fresh for r in self.runs) + 1) if fresh else None,
                request=request,
                reason=reason,
                texts=len(chosen) or request.texts,
            )
            about = {"request": request, "level": entry.level, "texts_sha256": digest([s.text for s in chosen])}
            self.step("plan", reason, run=entry.name, **about, figures=figures)
            return self._make(entry, chosen)

    def _make(self, entry: Entry, chosen: list[SourceText]) -> Entry:
        """Make, finish or read a run whose plan is a step already."""
        self.pool.take(chosen)
        self.runs.append(entry)
        if entry.notes and entry.figures is None:  # it could not be done
            return entry
        self.write()
        try:
            result = self._result(entry)
        except Changed:
            raise
        except UserError as error:
            self.step("failed", "the run could not be done", run=entry.name, error=type(error).__name__)
            entry.counts_as_fresh = False
            entry.notes.append(str(error))
            raise
        finally:
            self.write()
        entry.figures = measured.figures(result.run)
        if not entry.figures.complete and not entry.notes:
            why = result.run.status_reason
            entry.notes.append(f"the run is partial, and what it shows rests on the texts it reached: {why}")
        self.step("read", "what the run measured", run=entry.name, calls=entry.calls, cost_usd=entry.cost_usd)
        self.write()
        return entry

    def _result(self, entry: Entry) -> Result:
        """Return the result of a run: read, finished, or made."""
        from auditor.run import audit

        if not entry.folder:
            parts = self._parts(self.plan(entry.request, data=self._data(len(self.runs)), limits=True))
            with _counted(entry, parts):

                def begun(path: Path) -> None:
                    entry.folder = f"runs/{path.name}"
                    self.write()

                return audit.in_folder(parts, observe=self.observe, begun=begun)
        path = self.path / entry.folder
        try:
            if (path / RUN).is_file() and (done := audit.load(path)).run.status_reason != INTERRUPTED:
                entry.calls, entry.cost_usd, _ = spent_in(path / BOOK)
                return done
            with RunFolder.open(path, write=True) as folder:
                parts = self._parts(Plan.from_dict(folder.plan["plan"]))
                with _counted(entry, parts):
                    return audit.go_on(folder, parts, self.observe)
        except RunFolderError as error:
            raise Changed(str(error)) from None

    def _parts(self, plan: Plan) -> Parts:
        parts = prepare(plan, models=self.adapters())
        parts.budget = self.budget.part()
        return parts

    def find(self, name: str) -> Entry:
        """Return the entry of a run of this session, such as ``R2``."""
        known = {entry.name: entry for entry in self.runs if entry.figures}
        if name not in known:
            listed = ", ".join(known) or "none yet"
            raise Refused("unknown-run", f"there is no such run in this session; runs: {listed}")
        return known[name]


@contextmanager
def _counted(entry: Entry, parts: Parts) -> Iterator[None]:
    """Keep what a run used, however it ends, and whether the price of its models is known."""
    try:
        yield
    finally:
        entry.calls, entry.cost_usd, _ = parts.budget.spent
        costly = [m for m in parts.models if m.costs == "tokens"]
        known = all(map(parts.budget.priced, costly))
        entry.priced = "free" if not costly else "known" if known else "unknown"


# -- the texts: which name the people in question, and which no run has asked yet -----------------------------


class Pool:
    """Texts in an order that depends on their wording and the session's seed alone; equal texts count once."""

    def __init__(self, seeds: Iterable[SourceText], seed: int) -> None:
        first: dict[str, SourceText] = {}
        for one in seeds:
            first.setdefault(one.text, one)
        self.seeds = sorted(first.values(), key=lambda s: digest([seed, s.text]))
        self._used: set[str] = set()

    @property
    def left(self) -> int:
        """Return how many texts no run has asked."""
        return sum(s.text not in self._used for s in self.seeds)

    def fresh(self, n: int) -> list[SourceText]:
        """Return the next ``n`` texts that no run has asked."""
        return [s for s in self.seeds if s.text not in self._used][:n]

    def take(self, chosen: Iterable[SourceText]) -> None:
        """Count texts as asked from now on."""
        self._used |= {s.text for s in chosen}

    def keep(self, usable: Collection[str]) -> None:
        """Drop texts that cannot be changed."""
        self.seeds = [s for s in self.seeds if s.text in usable]


def scan(plan: Plan, pool: Pool) -> dict[str, bool]:
    """Return the texts of ``pool`` that ``plan`` can change; true for those that name all its attributes."""
    parts = prepare(plan.but(data=None), seeds=tuple(pool.seeds), need_models=False)
    wanted, rng = min(len(plan.attributes) if plan.attributes else 2, plan.order), Random(plan.seed)
    usable: dict[str, bool] = {}
    while cases := parts.suite.ask(ROUND, rng):
        for case in cases:
            if orders := [v.order for v in case.variants if v.order]:
                text = str(case.original.input)
                usable[text] = usable.get(text, False) or max(orders) >= wanted
    return usable


def _texts(settings: Settings, task: Any) -> tuple[str, Sequence[SourceText]]:
    """Return where the texts of a session come from, and the texts."""
    if settings.seeds is not None:
        return "texts given by the caller", settings.seeds
    options = settings.options
    source = options.data or task.seeds_path
    if source is None:
        return "none: cases come from a grammar", ()
    try:
        file = tasks.read_seeds(source, columns=options.common.get("columns") or {}, limit=options.common.get("limit"))
    except DataFileError as error:
        if "--column text=" not in str(error):
            raise
        raise DataFileError(
            f"{error} The agent works on texts; a table of people is audited with: audit tabular --data {source} "
            "--target COLUMN --protected COLUMN --model SPEC"
        ) from None
    return ("texts given by the user" if options.data else "embedded texts of the task"), tuple(file.seeds)
