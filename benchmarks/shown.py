"""What claims must show, row by row: nulls, power, bounds, early stopping, coverage, intersections.

One command for the whole table, with targets beside what came out; `power.py`, `until.py` and the planted
interactions of ``tests/planted`` measure its parts.

    python benchmarks/shown.py [--runs 200] [--only TEXT]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "planted"))

import power
import test_interactions_planted as planted
import until


class Row(NamedTuple):
    """One line: what is planted, what must come out, what did."""

    name: str
    target: str
    measured: str
    met: bool


def rows(runs: int, only: str) -> Iterator[Row]:
    """The lines of the table whose name holds ``only``."""
    for setting in power.settings():
        if only in f"{setting.kind}: {setting.name}":
            yield _claims(setting, runs)
    for setting in until.settings():
        if only in f"until: {setting.name}":
            yield _until(setting, runs)
    for name, effects in power.covered().items():
        for scale in ("share", "log_odds"):
            if only in f"coverage: {name}":
                found = power.coverage(name, effects, scale, runs)  # type: ignore[arg-type]
                told = (
                    f"group {power.limits(found.group, runs)}, these words {power.limits(found.words, runs)}"
                )
                least = 0.93 * runs
                met = min(found.group, found.words) >= least
                yield Row(f"coverage: {name}, {scale}", "at least 93 %", told, met)
    for name, model in (
        ("temperature-like answers", planted.temperature),
        ("no interaction", planted.margins),
    ):
        if only in f"intersections: {name}":
            yield _without(name, model, runs)
    for share in (0.1, 0.2, 0.4):
        if only in f"intersections: planted in {share:.0%}":
            yield _planted(share, max(1, runs // 10))


def _claims(setting: power.Setting, runs: int) -> Row:
    # A run about all attributes takes ten times as long.
    found = power.measure_setting(setting, runs if setting.attributes else max(1, runs // 4))
    name = f"{setting.kind}: {setting.name} ({setting.task}, {found.calls:,} calls)"
    shown, words = found.shown, found.shown_for_words
    if setting.kind == "bounded":
        return Row(
            name,
            "bounded in at most 5 %",
            power.limits(found.bounded, found.runs),
            _few(found.bounded, found.runs),
        )
    if setting.kind == "power":
        reached = shown + (0 if setting.effects.word else words)
        told = f"{power.limits(reached, found.runs)}; for the group {power.limits(shown, found.runs)}"
        return Row(name, f"shown in {setting.must:.0%}", told, reached >= (setting.must or 0) * found.runs)
    errors = {"net": shown + (words if setting.words_too else 0), "refusal": found.refusals}
    errors["instability"] = found.instability
    told = ", ".join(f"{family} {power.limits(count, found.runs)}" for family, count in errors.items())
    return Row(
        name, "shown in at most 5 % of each family", told, all(_few(n, found.runs) for n in errors.values())
    )


def _few(count: int, runs: int) -> bool:
    """No more than chance makes of 5 % in all but 3 of 1,000 settings."""
    from scipy.stats import binom

    return bool(count <= binom.isf(0.003, runs, 0.05))


def _until(setting: until.Setting, runs: int) -> Row:
    found = until.measure(setting, runs)
    name = f"until: {setting.name} ({setting.task}, {found['answers']})"
    told = f"{power.limits(found['shown_or_for_words'], runs)}, mean {found['calls']:,} calls"
    if setting.delta is not None:
        return Row(
            name, "bounded in at most 5 %", power.limits(found["bounded"], runs), _few(found["bounded"], runs)
        )
    if setting.effect:
        met = found["shown_or_for_words"] >= 0.8 * runs and found["calls"] <= 1300
        return Row(name, "shown in 80 %, mean of at most 1,300 calls", told, met)
    errors = found["shown"] if setting.word else found["shown_or_for_words"]
    return Row(name, "shown in at most 5 %", power.limits(errors, runs), _few(errors, runs))


def _without(name: str, model: Callable[[int], planted.Answers], runs: int) -> Row:
    shown = sum(f.verdict == "shown" for run in range(runs) for f in planted.listed(model(run)))
    return Row(
        f"intersections: {name}", "at most 0.05 shown a run", f"{shown / runs:.3f}", shown <= 0.05 * runs
    )


def _planted(share: float, runs: int) -> Row:
    listed = 0.0
    for run in range(runs):
        answers, chosen = planted.planted(run, share)
        listed += len(planted.cases(planted.listed(answers)) & chosen) / len(chosen)
    name = f"intersections: planted in {share:.0%} of texts"
    return Row(name, "at least 0.9 of them listed", f"{listed / runs:.2f}", listed >= 0.9 * runs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="", help="lines whose name holds this")
    args = parser.parse_args()
    print("| planted | must | measured, % (95 % limits) | met |\n|---|---|---|---|", flush=True)
    for row in rows(args.runs, args.only):
        print(
            f"| {row.name} | {row.target} | {row.measured} | {'yes' if row.met else '**no**'} |", flush=True
        )


if __name__ == "__main__":
    main()
