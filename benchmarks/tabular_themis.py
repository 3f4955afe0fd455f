"""Themis: ours against the paper's algorithm one row at a time, and against the bare ``predict``.

Three questions, in one run, side by side:

- Throughput: rows a second through causal and group scoring, and through ``predict`` alone on equal rows.
- Memory: the peak of the process after 10^7 rows against that after 10^6.
- Tests needed by the discrimination search with and without pruning (theta 0.75, 99 %, epsilon 0.05), the
  conditions of the paper's Figure 3; its average factor for causal scores is 148 (geometric mean 26.4).

Usage::

    python benchmarks/tabular_themis.py
"""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np
from common import Row
from tabular_subjects import available, subject

from auditor.tables import method_options, themis
from auditor.tables.coded import uniform
from auditor.tables.evaluate import Evaluator
from auditor.tables.row_schema import Schema
from auditor.tables.themis_search import search

CASES = {"LR": 500_000, "DT": 500_000, "MLP": 100_000, "RF": 15_000, "SVM": 2_000}
SEARCHED = ("age", "marital", "race", "sex", "relationship")
RUNS = 3


class Literal:
    """Algorithm 2 as printed: one row at a time, cached, stopped by the Wald margin."""

    def __init__(self, predict: Any, schema: Schema, seed: int) -> None:
        self.predict, self.schema = predict, schema
        self.rng = np.random.default_rng(seed)
        self.cache: dict[tuple[int, ...], int] = {}

    def run(self, row: tuple[int, ...]) -> int:
        """The output for one row, from the cache if it was asked before."""
        if row not in self.cache:
            codes = np.array([row], dtype=np.int32)
            self.cache[row] = int(self.predict(self.schema.decode(codes))[0])
        return self.cache[row]

    def causal(self, columns: list[int], samples: int) -> float:
        """The score after exactly ``samples`` rows, so that time per row can be compared."""
        count = 0
        combos = self.schema.combos_of(columns)
        for _ in range(samples):
            row = [int(self.rng.integers(c)) for c in self.schema.cards]
            first = self.run(tuple(row))
            for combo in combos.tolist():
                other = list(row)
                for j, value in zip(columns, combo, strict=True):
                    other[j] = value
                if other != row and self.run(tuple(other)) != first:
                    count += 1
                    break
        return count / samples


def throughput(kind: str) -> list[Row]:
    """Rows a second: ours, the bare predict, the literal algorithm; medians of alternating runs."""
    one = subject("census", "sex", kind)
    cases = CASES[kind]
    rows = one.schema.decode(uniform(one.schema, 2 * cases, np.random.default_rng(1)))
    method_options.LEAST, options = cases, method_options.ThemisOptions(max_samples=cases)
    ours, bare = [], []
    for run in range(RUNS + 1):
        start = time.process_time()
        result = themis.run(Evaluator(one.model.predict, one.schema), options, np.random.default_rng(run))
        middle = time.process_time()
        for at in range(0, len(rows), 65536):
            one.model.predict(rows[at : at + 65536])
        end = time.process_time()
        if run:
            ours.append(result.counts["evaluations"] / (middle - start))
            bare.append(len(rows) / (end - middle))
    literal = Literal(one.model.predict, one.schema, 1)
    samples = 20 if kind in ("RF", "SVM") else 300
    start = time.process_time()
    literal.causal(one.schema.protected_index.tolist(), samples)
    slow = len(literal.cache) / (time.process_time() - start)
    value, reference = float(np.median(ours)), float(np.median(bare))
    return [
        Row(
            name=f"themis rows/s, census/sex {kind}",
            value=value,
            unit="rows/s (CPU)",
            runs=RUNS,
            baseline_name="bare predict, equal rows",
            baseline=reference,
            ratio=value / reference,
        ),
        Row(
            name=f"themis rows/s, census/sex {kind}",
            value=value,
            unit="rows/s (CPU)",
            runs=RUNS,
            baseline_name="Algorithm 2 as printed",
            baseline=slow,
            ratio=value / slow,
        ),
    ]


def memory() -> Row:
    """Peak memory after 10^7 rows against the peak after 10^6, in one process."""
    one = subject("census", "sex", "LR")
    peaks = []
    for cases in (500_000, 5_000_000):
        method_options.LEAST, options = cases, method_options.ThemisOptions(max_samples=cases)
        evaluator = Evaluator(one.model.predict, one.schema)
        themis.run(evaluator, options, np.random.default_rng(7))
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return Row(
        name="themis peak memory, 10^7 rows",
        value=peaks[1],
        unit="MiB",
        baseline_name="10^6 rows",
        baseline=peaks[0],
        ratio=peaks[1] / peaks[0],
    )


def tests_needed(kind: str) -> Row:
    """Rows asked by the search of all minimal sets, with and without pruning."""
    one = subject("census", "sex", kind)
    asked: dict[bool, int] = {}
    sets: dict[bool, set[tuple[str, ...]]] = {}
    for prune in (True, False):
        evaluator = Evaluator(one.model.predict, one.schema.protecting(SEARCHED))
        settings = method_options.ThemisOptions(theta=0.75)
        result = search(evaluator, settings, np.random.default_rng(7), prune=prune)
        asked[prune] = evaluator.evaluations
        sets[prune] = {s.columns for s in result.minimal_sets}
    return Row(
        name=f"themis search, census {kind}, {len(SEARCHED)} columns, theta 0.75",
        value=asked[True],
        unit="tests",
        baseline_name="without pruning",
        baseline=asked[False],
        ratio=asked[False] / asked[True],
        note="equal sets" if sets[True] == sets[False] else f"sets differ: {sets}",
    )


def measure() -> list[Row]:
    """All figures; empty where the data are not here."""
    if not available():
        return []
    rows = [row for kind in CASES for row in throughput(kind)]
    return [*rows, memory(), *(tests_needed(kind) for kind in ("LR", "DT", "MLP"))]


if __name__ == "__main__":
    for row in measure():
        print(row)
