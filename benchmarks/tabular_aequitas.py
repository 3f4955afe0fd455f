"""Aequitas: our search beside the printed algorithms and the released script, in one run on the same models.

Usage::

    python benchmarks/tabular_aequitas.py [--full] [--models LR DT] [--cells census/sex credit/age] [--seconds 6]
    python benchmarks/tabular_aequitas.py --only released --cells census/sex --models LR DT --seeds 10 --seconds 60

For each data set, protected column and model:

- ``share``: distinct discriminatory cases in per cent of distinct cases generated, ours and literal (fully directed),
  with the same numbers of trials (500 global, 200 local; means over seeds). The literal run is cut off after
  ``--seconds``; what it found until then counts.
- ``share, released, TRIALS``: the same beside what the authors' released script does, with 500
  and 200 trials and, with ``--full``, with the script's own 2,000 and 1,000. The note has the released script's lowest and
  highest run, and its mean where the inverted sign of its learning signal is put right.
- ``found per second``: distinct discriminatory cases per second of wall time at 200,000 generated
  (with as many global trials as that takes), beside the literal search.

Calls per find of a slow model are in `tabular_slow`.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from common import Row
from literal_aequitas import Outcome, aequitas, released
from tabular_subjects import MODELS, Subject, subject

from auditor.tables.aequitas import run
from auditor.tables.evaluate import Evaluator, Limit
from auditor.tables.finds import TabularResult
from auditor.tables.method_options import AequitasOptions

CELLS = ("census/sex", "census/race", "credit/sex", "credit/age")
QUICK_CELLS = ("census/sex", "credit/age")
TRIALS = {"global_n": 500, "local_n": 200}
RELEASED_TRIALS = {"global_n": 2000, "local_n": 1000}  # what the released script is set to
ROWS = ("share", "released", "speed")
SLOW_TRIALS = {"global_n": 100, "local_n": 50}
LARGE = 200_000
LARGE_SLOW = 30_000  # forests and support vector machines


def literal(what: Subject, seed: int, seconds: float, search: Any = aequitas, **options: Any) -> Outcome:
    """The printed algorithms, or the released script (``search``), with one ``predict`` call a row."""
    low = np.array([c.low for c in what.schema.columns], dtype=np.float64)

    def predict_one(row: Sequence[int]) -> float:
        return float(what.model.predict((np.array(row) + low)[None])[0])

    cards, protected = what.schema.cards.tolist(), what.schema.protected_index.tolist()
    return search(predict_one, cards, protected, rng=random.Random(seed), max_seconds=seconds, **options)


def ours(what: Subject, seed: int, limit: Limit | None = None, **options: Any) -> TabularResult:
    """One run without the separate share estimate."""
    evaluator = Evaluator(what.model.predict, what.schema, budget=limit)
    return run(evaluator, AequitasOptions.of({"trials": 0, **options}), np.random.default_rng(seed))


def percent(result: TabularResult) -> float:
    """Distinct discriminatory cases in per cent of distinct cases generated."""
    return 100 * result.counts["discriminatory"] / max(1, result.counts["generated"])


def share_rows(what: Subject, seeds: int, seconds: float) -> tuple[list[Row], Outcome]:
    """Share beside the literal algorithm; also its first run."""
    outcomes = [literal(what, seed, seconds, mode="fully", **TRIALS) for seed in range(seeds)]
    mine = statistics.fmean(percent(ours(what, seed, **TRIALS)) for seed in range(seeds))
    theirs = 100 * statistics.fmean(o.share for o in outcomes)
    cut = sum(o.stopped for o in outcomes)
    row = Row(
        f"share, fully, {what.name}", mine, "%", seeds, "literal", theirs,
        mine / theirs if theirs else None, f"{cut} of {seeds} literal runs cut off" if cut else "",
    )  # fmt: skip
    return [row], outcomes[0]


def released_row(what: Subject, seeds: int, seconds: float, trials: dict[str, int]) -> Row:
    """Share of fully directed search beside the released script with as many trials."""
    mine = statistics.fmean(percent(ours(what, s, **trials)) for s in range(seeds))
    runs = {
        signal: [literal(what, s, seconds, released, signal=signal, **trials) for s in range(seeds)]
        for signal in ("released", "paper")
    }
    shares = {signal: [100 * o.share for o in outcomes] for signal, outcomes in runs.items()}
    theirs = statistics.fmean(shares["released"])
    cut = sum(o.stopped for outcomes in runs.values() for o in outcomes)
    return Row(
        f"share, released, {trials['global_n']:,} and {trials['local_n']:,}, {what.name}", mine, "%", seeds,
        "released", theirs, mine / theirs if theirs else None,
        f"released {min(shares['released']):.0f} to {max(shares['released']):.0f} %; "
        f"sign put right {statistics.fmean(shares['paper']):.0f} %"
        + (f"; {cut} of {2 * seeds} runs cut off" if cut else ""),
    )  # fmt: skip


def speed_row(what: Subject, baseline: Outcome) -> Row:
    """Distinct finds per second at many generated cases."""
    slow = what.name.rsplit(" ", 1)[1] in ("RF", "SVM")
    generated = LARGE_SLOW if slow else LARGE
    theirs = len(baseline.found) / max(baseline.seconds, 1e-9)
    began = time.perf_counter()
    options = {"generated": generated, "global_n": generated // 2, "local_n": 10**6}
    result = ours(what, 0, Limit(seconds=40), **options)
    mine = result.counts["discriminatory"] / (time.perf_counter() - began)
    return Row(
        f"found per second, fully, {what.name}", mine, "1/s", 1, "literal fully", theirs,
        mine / theirs if theirs else None, f"{result.counts['discriminatory']:,} of {result.counts['generated']:,}",
    )  # fmt: skip


def cell_rows(what: Subject, seeds: int, seconds: float, only: Collection[str], *, own_trials: bool) -> Iterator[Row]:
    """The rows of one cell."""
    baseline = None
    if "share" in only:
        shares, baseline = share_rows(what, seeds, seconds)
        yield from shares
    if "released" in only:
        for trials in (TRIALS, RELEASED_TRIALS) if own_trials else (TRIALS,):
            yield released_row(what, seeds, seconds, trials)
    if "speed" in only:
        yield speed_row(what, baseline or literal(what, 0, seconds, mode="fully", **TRIALS))


def measure(
    cells: Sequence[str] = QUICK_CELLS,
    models: Sequence[str] = ("LR", "DT", "MLP"),
    seeds: int = 3,
    seconds: float = 4.0,
    only: Collection[str] = ROWS,
    *,
    own_trials: bool = False,
) -> list[Row]:
    """All rows."""
    rows: list[Row] = []
    for cell in cells:
        data, protected = cell.split("/")
        for kind in models:
            what = subject(data, protected, kind)
            for row in cell_rows(what, seeds, seconds, only, own_trials=own_trials):
                beside = "-" if row.baseline is None else f"{row.baseline:.4g}"
                ratio = "-" if row.ratio is None else f"{row.ratio:.3g}"
                print(
                    f"{row.name:<55} {row.value:>10.4g} {row.unit:<5} {row.baseline_name} {beside} ratio {ratio} {row.note}",
                    file=sys.stderr, flush=True,
                )  # fmt: skip
                rows.append(row)
    return rows


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all cells and models (about half an hour)")
    parser.add_argument("--models", nargs="+", choices=MODELS)
    parser.add_argument("--cells", nargs="+", choices=CELLS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="limit of one literal or released run")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=ROWS)
    args = parser.parse_args()
    cells = args.cells or (CELLS if args.full else QUICK_CELLS)
    models = args.models or (MODELS if args.full else ("LR", "DT", "MLP"))
    measure(cells, models, args.seeds, args.seconds, args.only, own_trials=args.full)


if __name__ == "__main__":
    main()
