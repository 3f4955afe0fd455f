"""Cases made by processes of this machine or actors of a Ray cluster; chunks of seeds come back in their order."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from auditor.core.errors import ConfigError, MissingDependency, PluginError
from auditor.core.plan import Plan, of_package
from auditor.core.types import Case, Check, SourceText
from auditor.run.preparation import Parts
from auditor.run.rounds import Round, Source, gated
from auditor.run.stages import stages
from auditor.store.disk import CASE, case_line
from auditor.store.journal import decoded

CHUNK = 128  # seeds that a worker gets at once
AHEAD = 3  # chunks in flight for each worker
# What a worker made of one chunk of seeds: cases with their checks, as in ``cases.jsonl``, and what its suite skipped
# and passed over.
Made = tuple[Sequence[bytes], Mapping[str, int], Mapping[str, int]]


class Feed(Iterator[SourceText]):
    """Texts for a suite, which may be filled again after they have run dry."""

    def __init__(self) -> None:
        self.waiting: deque[SourceText] = deque()

    def __next__(self) -> SourceText:
        if not self.waiting:
            raise StopIteration
        return self.waiting.popleft()


class Worker:
    """The stages before the model, for chunks of seeds; built once in each worker process."""

    def __init__(self, plan: Mapping[str, object]) -> None:
        from auditor import tasks
        from auditor.text.parse import without_torch

        self._plan = Plan.from_dict(plan)
        if not of_package(self._plan.gate):  # the process is this worker's
            without_torch()
        self._feed = Feed()
        self._stages = stages(self._plan, tasks.of_plan(self._plan), self._feed, {})
        self._rng = Random(self._plan.seed)

    def make(self, seeds: Sequence[SourceText]) -> Made:
        """Cases of ``seeds`` with placebos and checks."""
        suite, gate, _, placebos, _ = self._stages
        skipped, passed_over = Counter(suite.skipped), Counter(suite.passed_over)
        self._feed.waiting.extend(seeds)
        asked: list[Case] = []  # a text may make more than one
        while more := suite.ask(len(seeds), self._rng):
            asked += more
        cases, checks = gated(self._plan, asked, gate, placebos, suite)
        lines = [case_line(case, checks) for case in cases]
        return lines, suite.skipped - skipped, suite.passed_over - passed_over


_HERE: list[Worker] = []  # that of this process


def _make_here(seeds: Sequence[SourceText]) -> Made:
    return _HERE[0].make(seeds)


class Spread(Source):
    """Cases made by workers, chunk by chunk, in the order of the seeds."""

    def __init__(
        self,
        parts: Parts,
        submit: Callable[[Sequence[SourceText]], Awaitable[Made]],
        *,
        workers: int,
        close: Callable[[], None],
    ) -> None:
        super().__init__(parts)
        self._submit, self._close = submit, close
        self._ahead = AHEAD * workers
        self._chunks = iter(range(0, len(parts.texts), CHUNK))
        self._flying: deque[Awaitable[Made]] = deque()
        self._ready: deque[bytes] = deque()

    async def next(self, rng: Random) -> Round:
        """A round's cases, from as many chunks as it takes; ``rng`` is not used."""
        size = self.size()
        while len(self._ready) < size:
            self._fill()
            if not self._flying:
                break
            made, skipped, passed_over = await self._flying.popleft()
            self._ready.extend(made)
            self._parts.suite.skipped.update(skipped)
            self._parts.suite.passed_over.update(passed_over)
        cases: list[Case] = []
        checks: dict[str, Check] = {}
        lines: dict[str, bytes] = {}
        for _ in range(min(size, len(self._ready))):
            line = self._ready.popleft()
            stored = decoded(line, CASE)
            cases.append(stored.case())
            checks.update(stored.checks())
            lines[stored.id] = line
        self.lines = lines
        return cases, checks

    def _fill(self) -> None:
        while len(self._flying) < self._ahead:
            start = next(self._chunks, None)
            if start is None:
                return
            seeds = self._parts.texts[start : start + CHUNK]
            self._flying.append(asyncio.ensure_future(self._submit(seeds)))

    def close(self) -> None:
        """Drop what is under way and let go of the workers."""
        for future in self._flying:
            if isinstance(future, asyncio.Future):
                future.cancel()
        self._flying.clear()
        self._close()


def _begin(plan: Mapping[str, object]) -> None:
    """Build the worker of this process, which ends when the one that started it has ended, however it did."""
    import multiprocessing
    import threading
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    _HERE.append(Worker(plan))


def processes(parts: Parts, jobs: int) -> Spread:
    """Cases made by ``jobs`` processes of this machine."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, spawn, initializer=_begin, initargs=(parts.plan.as_dict(),))

    async def submit(seeds: Sequence[SourceText]) -> Made:
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, _make_here, seeds)
        except BrokenProcessPool:
            raise PluginError(
                "a worker process ended before it was done. It lacked memory, or the script that started the run lacks "
                '`if __name__ == "__main__":`, which processes need. Run with jobs=1 (--jobs 1)'
            ) from None

    return Spread(parts, submit, workers=jobs, close=lambda: pool.shutdown(wait=False, cancel_futures=True))


def actors(parts: Parts, jobs: int) -> Spread:
    """Cases made by ``jobs`` actors of a Ray cluster; one that was not there is started, and ends with the run."""
    try:
        import ray
    except ImportError as error:
        raise MissingDependency("--jobs ray", "ray", extra="ray") from error
    started = not ray.is_initialized()
    if started:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        address = _standing()
        local = {"num_cpus": jobs, "include_dashboard": False} if address is None else {}
        ray.init(address=address or "local", **local, **options)
    if (there := ray.cluster_resources().get("CPU", 0)) < jobs:
        raise ConfigError(f"--jobs ray:{jobs}: the Ray cluster has {there:g} CPUs. Give at most as many.")
    workers = [ray.remote(num_cpus=1)(Worker).remote(parts.plan.as_dict()) for _ in range(jobs)]
    turn = itertools.cycle(workers)

    async def submit(seeds: Sequence[SourceText]) -> Made:
        made: Made = await asyncio.wrap_future(next(turn).make.remote(list(seeds)).future())
        return made

    def close() -> None:
        for worker in workers:
            ray.kill(worker)
        if started:
            ray.shutdown()

    return Spread(parts, submit, workers=jobs, close=close)


def _standing() -> str | None:
    """Return the address of a running cluster; Ray's ``auto`` would also join that of another run."""
    if address := os.environ.get("RAY_ADDRESS"):
        return address
    kept = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"  # noqa: S108 - Ray's place
    return "auto" if kept.exists() else None
