"""The first audit as a user runs it (after the install): wall time and peak memory of the whole process."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import tempfile
import time

from common import Row
from startup import AUDIT


def measure() -> list[Row]:
    """``audit --task sentiment`` three times."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"AUDIT_CACHE": os.path.join(folder, "cache.sqlite")}
        for _ in range(3):
            start = time.perf_counter()
            subprocess.run(
                [str(AUDIT), "--task", "sentiment", "--out", folder],
                check=True,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return [
        Row("audit --task sentiment (two embedded models)", statistics.median(times), "s", 3, note="target ≤ 60"),
        Row("audit --task sentiment, peak memory", peak, "MiB", 3),
    ]
