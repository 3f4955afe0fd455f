"""One session: its budget over all runs, and the operations that a planner has.

A planner proposes; this module writes the plan to disk, runs it within what is left of the budget, and records
each step with its reason and figures in ``steps.jsonl`` (hash-chained like the journals of a run). A session that was
cut off is gone on with by the same operations: runs that came to their end are read, not asked again.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

from auditor._version import __version__
from auditor.agent import ends, judge, perform, plans, pool, reading
from auditor.agent.ledger import SESSION, STEPS, UNFINISHED, Changed, Ledger, new_folder
from auditor.agent.request import Request
from auditor.agent.settings import Refused, Settings, Spent
from auditor.core.counting import plural, verb
from auditor.core.errors import RunFolderError, UserError
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Observer
from auditor.core.types import FORMAT_VERSION, Seed, digest

__all__ = ["LEAST_CALLS", "SESSION", "STEPS", "Session"]

LEAST_CALLS = 20  # fewer cannot hold an original, its variants and their placebos on a handful of texts
MAX_RUNS = 8
OVERLAP = 0.05
LABELS = 12  # of the task, that the record names


class Session:
    """See the module's docstring. Reads the texts, makes the folder and writes ``session.json``.

    Parameters
    ----------
    settings : Settings
        What the user fixed.
    observe : callable
        Gets progress events.
    path : Path or None
        The folder of a session to go on with; None makes a new one.
    """

    def __init__(self, settings: Settings, *, observe: Observer, path: Path | None = None) -> None:
        from auditor import tasks

        self.settings, self.observe = settings, observe
        self.spent = Spent()
        self.runs: list[dict[str, Any]] = []
        self.finished: str | None = None
        self.lock = RLock()
        self._status, self._reason = "running", ""
        self._generated: set[str] = set()
        self._before: dict[str, Any] = {}
        self.task = tasks.load(settings.goal.task)
        self.source, texts = pool.given(settings, self.task)
        self.pool = pool.Pool.of(texts, settings.seed)
        self._given = len(self.pool.seeds)
        self._scans: dict[Request, tuple[pool.Scan, set[str]]] = {}  # every text is parsed for one
        self._sha256 = digest([s.text for s in self.pool.seeds])
        steps: Sequence[Mapping[str, Any]] = ()
        if path is not None:
            steps = self._return(path)
        self.path = path or new_folder(settings.out, self._fixed())
        self._ledger = Ledger(
            self.path, self._fixed(), known=steps, strict=settings.planner == "rules" or not steps
        )
        self._began = settings.clock()
        self._took: float | None = None
        self.write()

    def _return(self, path: Path) -> Sequence[Mapping[str, Any]]:
        """Read what stands in the folder of a session that was cut off."""
        from auditor.agent import comeback

        self._before = comeback.before(path, self._fixed())
        comeback.require_intact(path, self._fixed())
        self.spent.seconds = comeback.seconds(path, self._before)
        self.spent.planner_calls = self._before["spent"]["planner_calls"]
        self.spent.planner_usd = self._before["spent"]["planner_cost_usd"]
        return comeback.steps(path)

    # -- the record -----------------------------------------------------------------------------------

    def _fixed(self) -> dict[str, Any]:
        """What the user fixed, without paths and times: equal sessions have equal steps."""
        s = self.settings
        return {
            "goal": s.goal.as_dict() | {"task": self.task.name},
            "models": list(s.names),
            "planner": s.planner,
            "seed": s.seed,
            "limits": {
                "max_calls": s.max_calls,
                "max_cost": s.max_cost,
                "max_seconds": s.max_seconds,
                "planner_max_calls": s.planner_max_calls,
                "planner_max_cost": s.planner_max_cost,
            },
            "texts": {"source": self.source, "n": self._given, "sha256": self._sha256},
        }

    def write(self) -> None:
        """Write the record of the session as it stands."""
        self._ledger.write(self.record())

    def record(self) -> dict[str, Any]:
        """``session.json``: what was fixed, what was run, what was used, and what the runs show."""
        declared = self.declared()
        # While a session comes back to where it was, the runs that it has not reached again still stand.
        runs = self.runs + self._before.get("runs", [])[len(self.runs) :]
        return {
            "format_version": FORMAT_VERSION,
            "tool_version": __version__,
            "kind": "agent-session",
            "id": self.path.name,
            "status": self._status,
            "status_reason": self._reason,
            **self._fixed(),
            "resumed": self._before.get("resumed", 0) + bool(self._before),
            "labels": list(self.task.labels)[:LABELS],
            "texts_left": self.pool.left,
            "runs": runs,
            "questions": judge.questions([r for r in runs if r["figures"]], declared),
            "spent": {
                "calls": self.spent.calls,
                "cost_usd": round(self.spent.usd, 9),
                "seconds": round(self.seconds(), 3),
                "planner_calls": self.spent.planner_calls,
                "planner_cost_usd": round(self.spent.planner_usd, 9),
            },
        }

    def declared(self) -> list[tuple[str, ...]]:
        """The attribute sets that the goal asks about: the one of all its attributes, and each smaller one."""
        from itertools import combinations

        names = self.settings.goal.attributes or ()
        most = self.settings.goal.order
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

    def forget(self) -> None:
        """Remove the folder of a session that began here and was answered nothing: there is nothing to read."""
        if self._before or any(p.stat().st_size for p in self.path.glob("runs/*/responses.jsonl")):
            return
        shutil.rmtree(self.path, ignore_errors=True)

    # -- the budget -----------------------------------------------------------------------------------

    def seconds(self) -> float:
        """Seconds that the session took so far, those before it was cut off among them."""
        if self._took is None:
            return self.spent.seconds + self.settings.clock() - self._began
        return self._took

    def left(self) -> dict[str, Any]:
        """What is left of each limit; None where there is none."""
        s = self.settings
        return {
            "calls": None if s.max_calls is None else max(0, s.max_calls - self.spent.calls),
            "cost_usd": None if s.max_cost is None else round(max(0.0, s.max_cost - self.spent.usd), 9),
            "seconds": None if s.max_seconds is None else max(0.0, s.max_seconds - self.seconds()),
        }

    def broke(self) -> str:
        """Which limit leaves no room for another run; empty where there is room."""
        left = self.left()
        if left["calls"] is not None and left["calls"] < LEAST_CALLS:
            return (
                f"{plural(left['calls'], 'call')} {verb(left['calls'], 'is', 'are')} left of "
                f"{self.settings.max_calls}"
            )
        if left["cost_usd"] is not None and left["cost_usd"] <= 0 and self.settings.max_cost:
            return f"nothing is left of {self.settings.max_cost:g} USD"
        if len(self.runs) >= MAX_RUNS:
            return f"{MAX_RUNS} runs were made, the most that a session makes"
        # A run that was begun is finished first: it says itself how far its time reached.
        if left["seconds"] is not None and left["seconds"] <= 0 and self.old is None:
            return f"the {self.settings.max_seconds:g} seconds are over"
        return ""

    @property
    def old(self) -> dict[str, Any] | None:
        """The entry of the next run, where it was begun before the session was cut off."""
        runs: list[dict[str, Any]] = self._before.get("runs", [])
        return runs[len(self.runs)] if len(self.runs) < len(runs) else None

    def come_back(self) -> None:
        """Read the runs that were made, finish one that was cut off; for planners that do not repeat steps."""
        from auditor.agent import comeback

        while (old := self.old) is not None:
            request, reason, figures = comeback.proposal(self.path, old)
            try:
                self.run(request, reason, **figures)
            except UserError:
                if not old["notes"]:
                    raise
        self._ledger.forget()

    # -- the operations -------------------------------------------------------------------------------

    def adapters(self) -> list[Any] | None:
        """The models as objects, made anew for each run; None where all are specs."""
        from auditor import models

        given = self.settings.models
        if all(isinstance(m, str) for m in given):
            return None
        return [
            models.make(m, task=self.task)
            if isinstance(m, str)
            else m
            if isinstance(m, Model)
            else models.wrap(m)
            for m in given
        ]

    def plan(self, request: Request, *, data: Path | None, limits: bool = True) -> Plan:
        """The plan of ``request``, with everything that the user fixed."""
        left = self.left() if limits else plans.NO_LIMITS
        return plans.build(
            self.settings, request, left=left, out=self.path / "runs", data=data, runs=len(self.runs)
        )

    def scan(self, request: Request, *, keep: bool = False) -> pool.Scan:
        """What ``request`` would make of the texts; ``keep`` drops those it cannot change."""
        if request not in self._scans:
            self._scans[request] = pool.scan(self.plan(request, data=None, limits=False), self.pool)
        found, usable = self._scans[request]
        if keep:
            self.pool.keep(usable)
            self._scans.clear()
        return found

    def dry_run(self, request: Request) -> dict[str, Any]:
        """Calls and cost of ``request`` on the texts it would take, without taking them or asking anything."""
        from auditor import run as pipeline

        chosen = self._chosen(request, take=False)
        seeds = None if request.suite == "grammar" else chosen
        parts = pipeline.prepare(
            self.plan(request, data=None, limits=False), models=self.adapters(), seeds=seeds
        )
        try:
            values = pipeline.estimate(parts)
        finally:
            _close(parts.models)
        rows = list(values["models"].values())
        costs = [r["cost_usd"] for r in rows]
        return {
            "texts": len(chosen),
            "cases": values["cases"],
            "valid": values["valid"],
            "calls": sum(r["calls"] + r["calls_canary"] for r in rows),
            "cost_usd": None if None in costs else round(sum(costs), 6),
        }

    def _chosen(self, request: Request, *, take: bool) -> list[Seed]:
        if request.suite == "grammar":
            return []
        if request.purpose == "search":
            chosen = self.pool.seen(request.texts)
            if not chosen:
                raise Refused("no-texts-asked", "a search goes through texts that were asked; none was yet")
            return chosen
        if not self.pool.left:
            raise Refused("no-fresh-texts", "every text was asked; a fresh run needs others")
        if take:
            return self.pool.fresh(request.texts)
        return list(self.pool.seeds[self.pool.used : self.pool.used + request.texts])

    def run(self, request: Request, reason: str, **figures: Any) -> dict[str, Any]:
        """Write the plan, run it within the budget, record what it measured.

        Raises
        ------
        Refused
            The budget or the texts leave no room; nothing was asked.
        UserError
            The run could not be done; the step says so.
        """
        from auditor.store.files import write_texts

        with self.lock:
            old = self.old
            spare = "" if old else self.broke()
            if spare:
                raise Refused("budget", f"no further run: {spare}")
            number = len(self.runs) + 1
            chosen = self._chosen(request, take=True)
            data = None if request.suite == "grammar" else self.path / f"texts-{number:02d}.jsonl"
            if data is not None and not (old and data.is_file()):
                write_texts(data, chosen)
            plan = self.plan(request, data=data)
            entry = plans.entry(request, reason, runs=self.runs, texts=len(chosen) or request.texts)
            file = self.path / f"plan-{number:02d}.json"
            if not (old and file.is_file()):
                plans.write(file, entry, plan, chosen, figures)
            self.step(
                "plan",
                reason,
                run=entry["name"],
                request=request.as_dict(),
                level=entry["level"],
                texts_sha256=digest([s.text for s in chosen]),
                figures=dict(figures),
            )
            entry["folder"] = old["folder"] if old else None
            self.runs.append(entry)
            self.write()
            return self._execute(entry, plan, old)

    def _execute(self, entry: dict[str, Any], plan: Plan, old: Mapping[str, Any] | None) -> dict[str, Any]:
        used = perform.Used()

        def begun(path: Path) -> None:
            entry["folder"] = f"runs/{path.name}"
            self.write()

        try:
            result = self._result(entry, plan, old, begun, used)
        except Changed:
            raise
        except UserError as error:
            self.step("failed", "the run could not be done", run=entry["name"], error=type(error).__name__)
            entry["counts_as_fresh"] = False
            entry["notes"].append(str(error))
            raise
        finally:
            entry["calls"], entry["cost_usd"], entry["priced"] = used.calls, used.usd, used.priced
            self.spent.calls += used.calls
            self.spent.usd = round(self.spent.usd + used.usd, perform.DIGITS)
            self.write()
        self._read(entry, result)
        return entry

    def _result(
        self, entry: dict[str, Any], plan: Plan, old: Mapping[str, Any] | None, begun: Any, used: perform.Used
    ) -> Any:
        """The result of a run: read, finished, or made."""
        if old is None or not (old["folder"] or old["notes"]):
            return perform.execute(plan, self.adapters(), observe=self.observe, begun=begun, used=used)
        if old["notes"] and not old["figures"]:
            used.again(old)
            raise UserError(old["notes"][-1])
        path = self.path / old["folder"]
        try:
            if old["figures"]:
                used.again(old)
                return perform.recorded(path)
            seconds = self.left()["seconds"]
            return perform.go_on(path, self.adapters(), observe=self.observe, seconds=seconds, used=used)
        except RunFolderError as error:
            raise Changed(str(error)) from None

    def _read(self, entry: dict[str, Any], result: Any) -> None:
        entry["figures"] = reading.figures(result.record)
        entry["ends"] = ends.read(result, self.settings.goal, self.task)
        claims = [f for f in result.record["findings"] if f["kind"] == "claim"]
        entry["reasons"] = {f["id"]: list(f["notes"]) for f in claims}
        entry["said"] = {f["id"]: f["text"] for f in claims}
        if entry["request"]["suite"] == "grammar":
            self._overlap(entry, result)
        if not entry["figures"]["complete"]:
            entry["notes"].append(
                f"the run is partial, and what it shows rests on the texts it reached: {result.record['status_reason']}"
            )
        self.step(
            "read",
            "what the run measured",
            run=entry["name"],
            calls=entry["calls"],
            cost_usd=entry["cost_usd"],
            figures=entry["figures"],
        )
        self.write()

    def _overlap(self, entry: dict[str, Any], result: Any) -> None:
        """Sentences of a grammar may be drawn twice; a run that repeats many is not fresh."""
        texts = ends.originals(result.path)
        again = len(texts & self._generated)
        self._generated |= texts
        if again and entry["counts_as_fresh"]:
            entry["notes"].append(f"{again} of {len(texts)} generated texts were asked before")
            if again > OVERLAP * len(texts):
                entry["counts_as_fresh"] = False

    def find(self, name: str) -> dict[str, Any]:
        """The entry of a run of this session, such as ``R2``."""
        for entry in self.runs:
            if entry["name"] == name and entry["figures"]:
                return entry
        known = ", ".join(r["name"] for r in self.runs if r["figures"]) or "none yet"
        raise Refused("unknown-run", f"there is no such run in this session; runs: {known}")


def _close(models: Sequence[Any]) -> None:
    from auditor import run as pipeline

    async def go() -> None:
        for model in models:
            await model.aclose()

    pipeline.run_sync(go)
