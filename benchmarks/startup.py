"""How quickly the command answers: CPU time of whole processes."""

from __future__ import annotations

import sys
from pathlib import Path

from common import Row, process_cpu

AUDIT = Path(sys.executable).parent / "audit"


def measure() -> list[Row]:
    """CPU time of ``audit --help``, ``audit run --help`` and ``import auditor``."""
    bare = process_cpu([sys.executable, "-c", "pass"])
    return [
        Row(
            "audit --help",
            process_cpu([str(AUDIT), "--help"]),
            "s CPU",
            5,
            "python -c pass",
            bare,
            None,
            "target ≤ 0.3",
        ),
        Row("audit run --help", process_cpu([str(AUDIT), "run", "--help"]), "s CPU", 5, "python -c pass", bare),
        Row(
            "import auditor", process_cpu([sys.executable, "-c", "import auditor"]), "s CPU", 5, "python -c pass", bare
        ),
    ]
