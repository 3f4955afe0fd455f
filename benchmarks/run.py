"""Run every benchmark and write one JSON and one Markdown table to ``benchmarks/results/``.

A benchmark is a module of this folder with ``measure() -> list[Row]``. Comparisons are made in one run, side by
side, and quoted as ratios: absolute figures depend on the machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from common import Absent  # noqa: E402 - of this folder

MODULES = (
    "startup",
    "audit",
    "tabular_themis",
    "tabular_aequitas",
    "tabular_sg",
    "validity",
    "client",
    "faults",
    "tabular_slow",
    "page",
    "impact",
    "million",
    "langfair",
)
# What --quick measures: seconds to a few minutes each; the others as they are when they are named.
QUICK: dict[str, dict[str, object]] = {
    "startup": {},
    "audit": {},
    "tabular_themis": {},
    "tabular_aequitas": {"models": ("LR",), "seeds": 1, "seconds": 2.0},
    "tabular_sg": {"limit": 60},
    "client": {"calls": 256, "runs": 1},
    "faults": {"scale": 0.02},
    "tabular_slow": {"kinds": ("LR",), "calls": 200, "seeds": 1, "seconds": 10.0},
    "page": {},
    "impact": {"tables": 5},
    "million": {"scale": 0.005, "beside": 0.002},
}
PACKAGES = ("llm-bias-auditor", "numpy", "scipy", "spacy", "openai", "typer")


def machine() -> dict[str, object]:
    """Where and with what the figures were measured."""
    import os

    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def main() -> None:
    """Run the benchmarks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=list(MODULES), help=", ".join(MODULES))
    parser.add_argument(
        "--quick", action="store_true", help=f"smaller sizes, and of all benchmarks only {', '.join(QUICK)}"
    )
    args = parser.parse_args()
    rows = []
    for name in QUICK if args.quick and args.modules == list(MODULES) else args.modules:
        began = time.monotonic()
        print(f"{name} …", file=sys.stderr, flush=True)
        sizes = QUICK.get(name, {}) if args.quick else {}
        try:
            rows += [asdict(row) for row in importlib.import_module(name).measure(**sizes)]
        except Absent as reason:
            print(f"{name}: skipped, {reason}", file=sys.stderr, flush=True)
            continue
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    where = machine() | {"sizes": "quick" if args.quick else "full"}
    out = HERE / "results"
    out.mkdir(exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    (out / f"{stamp}.json").write_text(json.dumps({"machine": where, "rows": rows}, indent=2) + "\n")
    text = table(where, rows)
    (out / f"{stamp}.md").write_text(text)
    print(text)


def table(where: dict[str, object], rows: list[dict[str, object]]) -> str:
    """The figures as Markdown."""
    lines = [
        f"# Benchmarks, {where['time']}",
        "",
        f"{where['cpu']}, {where['cores']} cores, {where['system']}, Python {where['python']}. Medians. Sizes: {where['sizes']}.",
        "",
        "| what | value | unit | runs | beside it | ratio | note |",
        "|---|--:|---|--:|---|--:|---|",
    ]
    for row in rows:
        beside = "" if row["baseline"] is None else f"{row['baseline_name']}: {row['baseline']:,.4g}"
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        lines.append(
            f"| {row['name']} | {row['value']:,.4g} | {row['unit']} | {row['runs']} | {beside} | {ratio} | {row['note']} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
