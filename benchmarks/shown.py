"""What claims must show, row by row: power, nulls, bounds, early stopping, coverage, intersections.

One command for the whole table, with targets beside what came out; `power.py`, `until.py` and the planted
interactions of ``tests/planted`` measure its parts. Each row is written to ``shown.json`` and ``shown.md`` when it is
done; rows that are there are not measured again, unless ``--only`` names them.

    python benchmarks/shown.py [--runs 200] [--only TEXT] [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "planted"))

import power
import test_interactions_planted as planted
import until

from auditor.measure.intervals import clopper_pearson

MOST = 0.085  # upper 95 % limit of what may be 5 %
MORE = 5  # times as many runs, where twice as many leave it open


@dataclasses.dataclass(frozen=True)
class Row:
    """One line: what is planted, what must come out, what did, and where that was measured."""

    name: str
    target: str
    measured: str
    met: bool
    runs: int
    commit: str = ""


def rows(runs: int) -> Iterator[tuple[str, Callable[[], Row]]]:
    """The lines of the table and how to measure them, in the order in which they matter."""
    order = {"power": 0, "null": 1, "bounded": 2}
    settings = sorted(power.settings(), key=lambda s: order[s.kind])
    for setting in settings:
        if setting.attributes:
            yield f"{setting.kind}: {setting.name} ({setting.task})", partial(_claims, setting, runs)
    for one in until.settings():
        yield f"until: {one.name} ({one.task}, {_answers(one)})", partial(_until, one, runs)
    for name, effects in power.covered().items():
        for scale in ("share", "log_odds"):
            yield f"coverage: {name}, {scale}", partial(_coverage, name, effects, scale, 2 * runs)  # type: ignore[arg-type]
    for name, model in (("temperature-like answers", planted.temperature), ("no interaction", planted.margins)):
        yield f"intersections: {name}", partial(_without, model, runs)
    for share in (0.1, 0.2, 0.4):
        yield f"intersections: planted in {share:.0%} of texts", partial(_planted, share, runs)
    for setting in settings:
        if not setting.attributes:  # takes a hundred times as long
            yield (f"{setting.kind}: {setting.name} ({setting.task})", partial(_claims, setting, max(1, runs // 4)))


def _claims(setting: power.Setting, runs: int) -> Row:
    if setting.kind == "power":
        found = power.measure_setting(setting, runs)
        met = found.shown >= (setting.must or 0) * runs
        return Row("", f"shown in {setting.must:.0%}", power.limits(found.shown, runs), met, runs)

    def errors(start: int, many: int) -> dict[str, int]:
        found = power.measure_setting(setting, many, start)
        if setting.kind == "bounded":
            return {"bounded": found.bounded}
        out = {"net": found.shown, "refusal": found.refusals, "instability": found.instability}
        if setting.effects.neutral != 1.0 or setting.effects.per_source:
            del out["instability"]  # edits for groups turn more answers than placebo edits: that is true
        return out

    return _few(errors, runs, "bounded" if setting.kind == "bounded" else "shown")


def _few(errors: Callable[[int, int], dict[str, int]], runs: int, verdict: str) -> Row:
    """Twice as many ``runs``, and more where the limits leave open what the rate is."""
    many, count = 0, dict[str, int]()
    for more in (2 * runs, MORE * runs - 2 * runs):
        count = {name: count.get(name, 0) + n for name, n in errors(many, more).items()}
        many += more
        met = all((clopper_pearson(n, many, 0.95).high or 0.0) <= MOST for n in count.values())
        if met:
            break
    told = ", ".join(f"{family} {power.limits(n, many)}" for family, n in count.items())
    return Row("", f"{verdict} in at most 5 %, upper limit 8.5 %", told, met, many)


def _answers(setting: until.Setting) -> str:
    return "log_odds" if setting.scores else "share"


def _until(setting: until.Setting, runs: int) -> Row:
    if setting.effect and setting.delta is None:
        found = until.measure(setting, runs)
        met = found.shown >= 0.8 * runs and found.calls <= 1300
        told = f"{power.limits(found.shown, runs)}, mean {found.calls:,} calls"
        return Row("", "shown in 80 %, mean of at most 1,300 calls", told, met, runs)
    verdict = "bounded" if setting.delta is not None else "shown"

    def errors(start: int, many: int) -> dict[str, int]:
        return {verdict: getattr(until.measure(setting, many, start), verdict)}

    return _few(errors, runs, verdict)


def _coverage(name: str, effects: power.Effects, scale: power.Scale, runs: int) -> Row:
    found = power.coverage(name, effects, scale, runs)
    told = f"group {power.limits(found.group, runs)}, these words {power.limits(found.words, runs)}"
    return Row("", "at least 93 %", told, min(found.group, found.words) >= 0.93 * runs, runs)


def _without(model: Callable[[int], planted.Answers], runs: int) -> Row:
    shown = sum(f.verdict == "shown" for run in range(runs) for f in planted.listed(model(run)))
    return Row("", "at most 0.05 shown a run", f"{shown / runs:.3f} a run", shown <= 0.05 * runs, runs)


def _planted(share: float, runs: int) -> Row:
    listed = 0.0
    for run in range(runs):
        answers, chosen = planted.planted(run, share)
        listed += len(planted.cases(planted.listed(answers)) & chosen) / len(chosen)
    return Row("", "at least 0.9 of them listed", f"{listed / runs:.2f} of them", listed >= 0.9 * runs, runs)


def table(found: list[Row]) -> str:
    """All lines as Markdown."""
    lines = ["| planted | must | measured, % (95 % limits) | runs | met | commit |", "|---|---|---|--:|---|---|"]
    for r in found:
        lines.append(
            f"| {r.name} | {r.target} | {r.measured} | {r.runs:,} | {'yes' if r.met else '**no**'} | {r.commit} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="", help="lines whose name holds this, measured again")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results")
    args = parser.parse_args()
    args.out.mkdir(exist_ok=True)
    kept = args.out / "shown.json"
    done = {r["name"]: Row(**r) for r in json.loads(kept.read_text())} if kept.exists() else {}
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    todo = list(rows(args.runs))
    for name, measure in todo:
        if args.only not in name or (not args.only and name in done):
            continue
        done[name] = dataclasses.replace(measure(), name=name, commit=commit)
        print(table([done[name]]).splitlines()[-1], flush=True)
        found = [done[name] for name, _ in todo if name in done]
        kept.write_text(json.dumps([dataclasses.asdict(r) for r in found], indent=1) + "\n")
        (args.out / "shown.md").write_text(table(found))


if __name__ == "__main__":
    main()
