"""How quickly the command answers, and how long a first audit takes: whole processes."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from common import Row

AUDIT = str(Path(sys.executable).parent / "audit")


def spent(command: Sequence[str], runs: int, env: Mapping[str, str] | None = None) -> tuple[float, float]:
    """Return the median CPU time and wall time of a process in seconds."""
    found = []
    for _ in range(runs):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
        found.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall))
    cpu, walls = zip(*found, strict=True)
    return statistics.median(cpu), statistics.median(walls)


def measure(quick: bool = False) -> Iterator[Row]:
    """Return CPU time of help and import; wall time and peak memory of ``audit --task sentiment``."""
    runs = 3 if quick else 6
    bare, _ = spent([sys.executable, "-c", "pass"], runs)
    for name, command in {
        "audit --help": [AUDIT, "--help"],
        "audit run --help": [AUDIT, "run", "--help"],
        "import auditor": [sys.executable, "-c", "import auditor"],
    }.items():
        note = "target ≤ 0.3" if name == "audit --help" else ""
        yield Row(name, spent(command, runs)[0], "s CPU", "python -c pass", bare, note)
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"AUDIT_CACHE": os.path.join(folder, "cache.sqlite")}
        _, wall = spent([AUDIT, "--task", "sentiment", "--out", folder], 1 if quick else 3, env)
    yield Row("audit --task sentiment", wall, "s", note="two embedded models; target ≤ 60")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    yield Row("audit --task sentiment, peak memory", peak, "MiB")
