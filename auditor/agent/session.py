"""One session: its folder, its budget over all runs, and the operations that a planner has.

A planner proposes; this module writes the plan to disk, runs it within what is left of the budget, and records
each step with its reason and figures in ``steps.jsonl`` (hash-chained like the journals of a run).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any

from auditor._version import __version__
from auditor.agent import judge, pool, reading
from auditor.agent.request import Request
from auditor.agent.settings import Refused, Settings, Spent
from auditor.config import Plan
from auditor.errors import UserError
from auditor.protocols import Observer
from auditor.types import FORMAT_VERSION, Seed, digest

SESSION, STEPS = "session.json", "steps.jsonl"
LEAST_CALLS = 20  # fewer cannot hold an original, its variants and their placebos on a handful of texts
MAX_RUNS = 8
OVERLAP = 0.05


class Session:
    """See the module's docstring. `open` reads the texts, makes the folder and writes ``session.json``."""

    def __init__(self, settings: Settings, *, observe: Observer) -> None:
        from auditor import tasks
        from auditor.store.journal import Journal, genesis

        self.settings, self.observe = settings, observe
        self.spent = Spent()
        self.runs: list[dict[str, Any]] = []
        self.results: list[Any] = []
        self.finished: str | None = None
        self.lock = RLock()
        self._status, self._reason = "running", ""
        self._began = settings.clock()
        self._generated: set[str] = set()
        self.task = tasks.load(settings.goal.task)
        self.source, texts = self._texts()
        self.pool = pool.Pool.of(texts, settings.seed)
        self._given = len(self.pool.seeds)
        self.path = self._folder()
        self._write()
        self._steps = Journal(self.path / STEPS, genesis(STEPS, digest(self._fixed())))

    # -- the texts ------------------------------------------------------------------------------------

    def _texts(self) -> tuple[str, Sequence[Seed]]:
        from auditor import tasks

        s = self.settings
        if s.seeds is not None:
            return "texts given by the caller", s.seeds
        source = s.data or self.task.seeds_path
        if source is None:
            return "none: cases come from a grammar", ()
        columns = {k: s.common[k] for k in ("text_column", "label_column", "limit") if k in s.common}
        file = tasks.read_seeds(
            source,
            text_column=columns.get("text_column") or "text",
            label_column=columns.get("label_column"),
            limit=columns.get("limit"),
        )
        return ("texts given by the user" if s.data else "embedded texts of the task"), tuple(file.seeds)

    def _folder(self) -> Path:
        from auditor.store.journal import write_error

        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        name = f"agent-{stamp}-{digest(self._fixed())[:6]}"
        try:
            for n in range(1, 1000):
                path = self.settings.out / (name if n == 1 else f"{name}-{n}")
                try:
                    path.mkdir(parents=True)
                except FileExistsError:
                    continue
                return path
        except OSError as error:
            raise write_error(self.settings.out, error) from error
        raise UserError(f"cannot make a folder for the session under {self.settings.out}")

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
            "texts": {"source": self.source, "n": self._given},
        }

    def _write(self) -> None:
        from auditor.store.files import write_json

        write_json(self.path / SESSION, self.record())

    def record(self) -> dict[str, Any]:
        """``session.json``: what was fixed, what was run, what was used, and what the runs show."""
        declared = self.declared()
        return {
            "format_version": FORMAT_VERSION,
            "tool_version": __version__,
            "kind": "agent-session",
            "id": self.path.name,
            "status": self._status,
            "status_reason": self._reason,
            **self._fixed(),
            "texts_left": self.pool.left,
            "runs": self.runs,
            "questions": judge.questions([r for r in self.runs if r["figures"]], declared),
            "spent": {
                "calls": self.spent.calls,
                "cost_usd": round(self.spent.usd, 9),
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
        self._steps.append({"kind": kind, "reason": reason, **figures})

    def end(self, status: str, reason: str) -> None:
        """Close the record; the first call counts."""
        if self._status != "running":
            return
        self._status, self._reason = status, reason
        if status != "failed":
            self.step("end", reason, status=status)
        self._steps.sync()
        self._steps.close()
        self._write()

    # -- the budget -----------------------------------------------------------------------------------

    def left(self) -> dict[str, Any]:
        """What is left of each limit; None where there is none."""
        s = self.settings
        return {
            "calls": None if s.max_calls is None else max(0, s.max_calls - self.spent.calls),
            "cost_usd": None if s.max_cost is None else round(max(0.0, s.max_cost - self.spent.usd), 9),
            "seconds": None if s.max_seconds is None else max(0.0, s.max_seconds - (s.clock() - self._began)),
        }

    def broke(self) -> str:
        """Which limit leaves no room for another run; empty where there is room."""
        left = self.left()
        if left["calls"] is not None and left["calls"] < LEAST_CALLS:
            return f"{left['calls']} calls are left of {self.settings.max_calls}"
        if left["cost_usd"] is not None and left["cost_usd"] <= 0 and self.settings.max_cost:
            return f"nothing is left of {self.settings.max_cost:g} USD"
        if left["seconds"] is not None and left["seconds"] <= 0:
            return f"the {self.settings.max_seconds:g} seconds are over"
        if len(self.runs) >= MAX_RUNS:
            return f"{MAX_RUNS} runs were made, the most that a session makes"
        return ""

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
            if models.is_adapter(m)
            else models.wrap(m)
            for m in given
        ]

    def plan(self, request: Request, *, data: Path | None, limits: bool = True) -> Plan:
        """The plan of ``request``, with everything that the user fixed."""
        left = self.left() if limits else {"calls": None, "cost_usd": None, "seconds": None}
        grammar = request.suite == "grammar"
        common = {
            k: v for k, v in self.settings.common.items() if k not in ("text_column", "label_column", "limit")
        }
        return Plan(
            **{
                **common,
                "task": self.settings.goal.task,
                "models": self.settings.names,
                "data": None if grammar or data is None else str(data),
                "attributes": request.attributes,
                "order": request.order,
                "suite": request.suite,
                "generation": "rand" if grammar else "prob",
                "limit": request.texts if grammar else None,
                "per_seed": request.per_seed,
                "replicates": request.replicates,
                "insertions": request.insertions,
                "strategy": request.strategy,
                "scope": request.scope,
                # Another grammar run draws other sentences; a text keeps its variants whatever its number.
                "seed": self.settings.seed + (len(self.runs) if grammar else 0),
                "max_calls": left["calls"],
                "max_cost": left["cost_usd"],
                "max_seconds": left["seconds"],
                "out": str(self.path / "runs"),
            }
        )

    def scan(self, request: Request, *, keep: bool = False) -> pool.Scan:
        """What ``request`` would make of the texts; ``keep`` drops those it cannot change."""
        found, usable = pool.scan(self.plan(request, data=None, limits=False), self.pool)
        if keep:
            self.pool.keep(usable)
        return found

    def dry_run(self, request: Request) -> dict[str, Any]:
        """Calls and cost of ``request`` on the texts it would take, without taking them or asking anything."""
        from auditor import pipeline

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
        with self.lock:
            spare = self.broke()
            if spare:
                raise Refused("budget", f"no further run: {spare}")
            number = len(self.runs) + 1
            chosen = self._chosen(request, take=True)
            data = None if request.suite == "grammar" else self.path / f"texts-{number:02d}.jsonl"
            if data is not None:
                pool.write(data, chosen)
            plan = self.plan(request, data=data)
            entry = self._declare(number, request, plan, chosen, reason, figures)
            return self._execute(entry, plan)

    def _declare(
        self,
        number: int,
        request: Request,
        plan: Plan,
        chosen: Sequence[Seed],
        reason: str,
        figures: Mapping[str, Any],
    ) -> dict[str, Any]:
        from auditor.store.files import write_json

        fresh = request.purpose == "fresh"
        number_fresh = sum(r["counts_as_fresh"] for r in self.runs) + 1
        entry: dict[str, Any] = {
            "name": f"R{number}",
            "purpose": request.purpose,
            "counts_as_fresh": fresh,
            "level": judge.level(number_fresh) if fresh else None,
            "request": request.as_dict(),
            "reason": reason,
            "folder": None,
            "texts": len(chosen) or request.texts,
            "calls": 0,
            "cost_usd": 0.0,
            "figures": None,
            "notes": [],
        }
        write_json(
            self.path / f"plan-{number:02d}.json",
            {
                "format_version": FORMAT_VERSION,
                "run": entry["name"],
                "request": request.as_dict(),
                "reason": reason,
                "figures": dict(figures),
                "level": entry["level"],
                "texts_sha256": digest([s.text for s in chosen]),
                "plan": plan.as_dict(),
            },
        )
        self.step(
            "plan",
            reason,
            run=entry["name"],
            request=request.as_dict(),
            level=entry["level"],
            texts_sha256=digest([s.text for s in chosen]),
            figures=dict(figures),
        )
        self.runs.append(entry)
        self._write()
        return entry

    def _execute(self, entry: dict[str, Any], plan: Plan) -> dict[str, Any]:
        from auditor import pipeline
        from auditor.result import settle
        from auditor.store.folder import RunFolder

        parts: Any = None

        async def go() -> Any:
            with RunFolder.create(pipeline.root_folder(plan), pipeline.plan_record(parts)) as folder:
                entry["folder"] = f"runs/{folder.path.name}"
                self._write()
                await pipeline.run_audit(parts, folder, observe=self.observe)
                return settle(folder)

        try:
            parts = pipeline.prepare(plan, models=self.adapters())
            parts.budget.start()
            result = pipeline.run_sync(go)
        except UserError as error:
            self.step("failed", "the run could not be done", run=entry["name"], error=type(error).__name__)
            entry["counts_as_fresh"] = False
            entry["notes"].append(str(error))
            raise
        finally:
            if parts is not None:
                entry["calls"], entry["cost_usd"] = parts.budget.calls, round(parts.budget.spent_usd, 9)
                self.spent.calls += parts.budget.calls
                self.spent.usd += parts.budget.spent_usd
            self._write()
        self.results.append(result)
        self._read(entry, result)
        return entry

    def _read(self, entry: dict[str, Any], result: Any) -> None:
        entry["figures"] = reading.figures(result.record)
        if entry["request"]["suite"] == "grammar":
            self._overlap(entry, result)
        if not entry["figures"]["complete"] and entry["counts_as_fresh"]:
            entry["notes"].append("the run is partial: what it shows rests on the texts it reached")
        self.step(
            "read",
            "what the run measured",
            run=entry["name"],
            calls=entry["calls"],
            cost_usd=entry["cost_usd"],
            figures=entry["figures"],
        )
        self._write()

    def _overlap(self, entry: dict[str, Any], result: Any) -> None:
        """Sentences of a grammar may be drawn twice; a run that repeats many is not fresh."""
        from auditor.store.folder import RunFolder

        texts = {str(case.original.input) for case, _ in RunFolder.open(result.path).cases()}
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
    from auditor import pipeline

    async def go() -> None:
        for model in models:
            await model.aclose()

    pipeline.run_sync(go)
