"""Run the benchmarks that are named, or all; write a Markdown table to ``benchmarks/results/``.

A benchmark is a module of this folder with ``measure(quick) -> Iterable[Row]``. Baselines are measured in the same run
and quoted as ratios: absolute figures depend on the machine.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from common import Absent

MODULES = ("startup", "client", "hinter", "tabular", "real")
PACKAGES = ("llm-bias-auditor", "numpy", "scipy", "spacy", "openai", "click")
RESULTS = Path(__file__).resolve().parent / "results"


def machine() -> dict[str, object]:
    """Return where and with what the figures were measured."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=list(MODULES), help=", ".join(MODULES))
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    args = parser.parse_args()
    where = machine() | {"sizes": "quick" if args.quick else "full"}
    lines = [
        f"# Benchmarks, {where['time']}",
        "",
        f"{where['cpu']}, {where['cores']} cores, {where['system']}, Python {where['python']}. Sizes: {where['sizes']}.",
        "",
        "| figure | value | unit | baseline | ratio | note |",
        "|---|--:|---|--:|--:|---|",
    ]
    print(*lines, sep="\n", flush=True)
    for name in args.modules:
        try:
            for row in importlib.import_module(name).measure(args.quick):
                lines.append(row.line())
                print(lines[-1], flush=True)
        except Absent as reason:
            print(f"{name}: skipped, {reason}", file=sys.stderr, flush=True)
    RESULTS.mkdir(exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    (RESULTS / f"{stamp}.md").write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
