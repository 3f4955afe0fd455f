"""Calls per discriminatory row where a model is slow and only 500 calls may be made, for every method.

Usage::

    python benchmarks/tabular_slow.py [--cells census/sex …] [--models LR …] [--calls 500] [--seeds 5] [--served]

A call is one row that the model is asked about. Each method gets the same number of calls on the same model:

- ``themis``: uniform rows, every combination of protected values; ``given rows``: the same on the training rows.
- ``aequitas``: with 100 global and 50 local trials, without a separate share estimate.
- ``sg``: with paths from the rows that were asked anyway.
- ``literal aequitas``: the printed fully-directed search; ``literal sg`` needs 5,000 calls for its first path, so it
  is not run: with 500 calls it has judged seed rows only, which is the line ``given rows``.

Figures are sums over seeds: all calls divided by all distinct discriminatory cases. ``--served`` puts a planted rule
behind a server on the loopback interface and asks it through ``http:`` with ``--max-calls``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from common import Row
from tabular_aequitas import SLOW_TRIALS, literal
from tabular_subjects import Subject, subject

from auditor.tables.aequitas import run as aequitas
from auditor.tables.coded import case_keys, uniform
from auditor.tables.evaluate import Evaluator, Limit
from auditor.tables.method_options import AequitasOptions, OptionSet, SgOptions
from auditor.tables.sg import run as sg

CALLS = 500
CELLS = ("census/sex", "census/race", "credit/sex", "credit/age")
KINDS = ("LR", "DT", "MLP")
Outcome = tuple[int, int]  # calls, distinct discriminatory cases


def judged(what: Subject, calls: int, rows: Any) -> Outcome:
    """Cases judged one after another, with every combination."""
    evaluator = Evaluator(what.model.predict, what.schema, cache=True)
    first = np.sort(np.unique(case_keys(what.schema, rows), return_index=True)[1])
    rows = rows[first][: calls // len(what.schema.combos)]
    return calls, int(evaluator.judge(rows).discriminatory.sum())


def searched(method: Callable[..., Any], what: Subject, calls: int, seed: int, settings: OptionSet) -> Outcome:
    """A search that stops at the limit."""
    evaluator = Evaluator(what.model.predict, what.schema, cache=True, budget=Limit(evaluations=calls))
    result = method(evaluator, settings, np.random.default_rng(seed), what.train)
    return calls, int(result.counts["discriminatory"])


def methods(what: Subject, calls: int, seed: int, seconds: float) -> dict[str, Outcome]:
    """Calls and finds of every method with one seed."""
    rng = np.random.default_rng(seed)
    walk: dict[str, Any] = {"trials": 0, **SLOW_TRIALS}
    printed = literal(what, seed, seconds, mode="fully", max_calls=calls, **SLOW_TRIALS)
    return {
        "literal aequitas": (printed.calls, len(printed.found)),
        "themis": judged(what, calls, uniform(what.schema, calls, rng)),
        "given rows": judged(what, calls, rng.permutation(what.train)),
        "aequitas": searched(aequitas, what, calls, seed, AequitasOptions.of(walk)),
        "sg": searched(sg, what, calls, seed, SgOptions(limit=calls)),
    }  # fmt: skip


def cell(what: Subject, calls: int, seeds: int, seconds: float) -> list[Row]:
    """One row per method, beside the literal Aequitas."""
    totals: dict[str, list[int]] = {}
    for seed in range(seeds):
        for name, (asked, found) in methods(what, calls, seed, seconds).items():
            total = totals.setdefault(name, [0, 0])
            total[0], total[1] = total[0] + asked, total[1] + found
    asked, found = totals.pop("literal aequitas")
    theirs = asked / max(1, found)
    note = "" if found else "literal found nothing: its figure is a lower bound"
    return [
        Row(
            f"calls per find, {calls} calls, {what.name}, {name}", a / max(1, f), "calls", seeds,
            "literal fully", theirs, a / max(1, f) / theirs, note if f else f"found nothing; {note}",
        )
        for name, (a, f) in totals.items()
    ]  # fmt: skip


class _Planted(BaseHTTPRequestHandler):
    """Approves by income; one sex needs more."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["row"]
        limit = 60 if row["sex"] else 52
        data = json.dumps({"decision": "approve" if row["income"] - row["debt"] >= limit else "deny"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


SERVED_SCHEMA = """
columns:
  income: {kind: integer, low: 0, high: 99}
  debt: {kind: integer, low: 0, high: 19}
  years: {kind: integer, low: 0, high: 39}
  district: {kind: category, values: [north, south, east, west]}
  sex: {kind: integer, low: 0, high: 1, protected: true}
"""


def served(calls: int = CALLS) -> Row:
    """The same limit through ``http:`` to a server with a planted rule: calls as the client counts them."""
    from auditor.tables import TabularPlan, audit_table

    server = ThreadingHTTPServer(("127.0.0.1", 0), _Planted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            (folder / "schema.yaml").write_text(SERVED_SCHEMA, encoding="utf-8")
            spec = f'format: 1\nurl: http://127.0.0.1:{server.server_address[1]}/\nrequest: {{row: "{{{{row}}}}"}}\nanswer: decision\n'
            (folder / "model.yaml").write_text(spec, encoding="utf-8")
            run = audit_table(
                TabularPlan(
                    data="", schema=str(folder / "schema.yaml"), model=f"http:{folder / 'model.yaml'}",
                    method="sg", max_calls=calls, cache=False, out="",
                )
            )  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
    found, asked = run.result.counts["discriminatory"], run.record["counts"]["calls"]
    return Row(
        f"calls per find, {calls} calls, http: planted", asked / max(1, found), "calls", 1, note=f"{found} found"
    )


def measure(
    cells: Sequence[str] = CELLS,
    kinds: Sequence[str] = KINDS,
    calls: int = CALLS,
    seeds: int = 5,
    seconds: float = 60.0,
) -> list[Row]:
    """All rows."""
    rows = []
    for name in cells:
        for kind in kinds:
            data, protected = name.split("/")
            for row in cell(subject(data, protected, kind), calls, seeds, seconds):
                print(
                    f"{row.name:<70} {row.value:>8.3g} literal {row.baseline:.3g} ratio {row.ratio:.3f} {row.note}",
                    flush=True,
                )
                rows.append(row)
    return rows


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=list(CELLS))
    parser.add_argument("--models", nargs="+", default=list(KINDS))
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--served", action="store_true", help="the planted server only")
    args = parser.parse_args()
    if args.served:
        print(served(args.calls))
    else:
        measure(args.cells, args.models, args.calls, args.seeds)


if __name__ == "__main__":
    main()
