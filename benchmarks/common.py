"""What the benchmarks share."""

from __future__ import annotations

import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


class Absent(Exception):
    """Data that a benchmark needs are not here."""


def shared(path: str) -> Path:
    """Return a file or folder of the shared data; raise `Absent` where it is not there."""
    if not (SHARED / path).exists():
        raise Absent(f"../shared/data/{path} is absent")
    return SHARED / path


@dataclass(frozen=True)
class Row:
    """One figure: the median of ``runs``, and what was measured beside it in the same run."""

    name: str
    value: float
    unit: str
    runs: int = 1
    baseline_name: str = ""
    baseline: float | None = None
    ratio: float | None = None
    note: str = ""


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Median wall time of ``work`` in seconds, after one warm-up."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def process_cpu(command: Sequence[str], runs: int = 5) -> float:
    """Median CPU time (user and system) of a whole process in seconds, after one warm-up."""
    times = []
    for run in range(runs + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if run:
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(times)
