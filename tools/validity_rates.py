"""Share of variants that the dependency invariant keeps, by order, attribute set and direction.

    python tools/validity_rates.py ../shared/data/movie_reviews/imdb_sample.csv --limit 200
    python tools/validity_rates.py FILE --attributes gender,age --per-seed 8 --json rates.json

Reads a CSV with a column ``text``; asks no model.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from auditor.core.plan import Plan
from auditor.core.types import SourceText
from auditor.perturb import dictionaries
from auditor.perturb.dependency import DependencyInvariant
from auditor.perturb.mutation import MutationSuite
from auditor.text.parse import Parser

DEFAULTS = {name: info.default for name, info in Plan.settings().items()}  # of a run


def texts(path: Path, limit: int | None) -> list[SourceText]:
    """The first ``limit`` texts of a CSV file."""
    with path.open(newline="", encoding="utf-8") as handle:
        rows = csv.DictReader(handle)
        return [SourceText(id=str(i), text=row["text"]) for i, row in zip(range(limit or 10**9), rows, strict=False)]


def count(args: argparse.Namespace) -> tuple[dict[str, dict[str, tuple[int, int]]], dict[str, int]]:
    """Valid and all variants, by order, attribute set, direction and target word; choices not offered, by reason."""
    parser = Parser(args.parser)
    names = args.attributes.split(",") if args.attributes else None
    suite = MutationSuite(
        seeds=texts(args.file, args.limit),
        dictionaries=[dictionaries.load(name) for name in dictionaries.builtin()],
        attributes=names,
        order=args.order,
        per_seed=args.per_seed,
        parser=parser,
        seed=args.seed,
    )
    gate = DependencyInvariant(parser=parser)
    kinds = ("order", "attributes", "direction", "words", "reason")
    valid: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    total: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    while cases := suite.ask(32, Random(0)):
        for case, checks in zip(cases, gate.check_many(cases), strict=True):
            for variant, check in zip(case.variants, checks, strict=True):
                cells = [("order", str(variant.order)), ("attributes", " + ".join(variant.attributes))]
                if variant.order == 1:
                    cells += [("direction", f"{a}: {s} -> {t}") for a, s, t in variant.directions]
                    cells += [
                        ("words", f"{e.source.lower()} -> {e.target.lower()}")
                        for e in variant.edits
                        if e.kind != "agreement"
                    ]
                    if check.status == "invalid":
                        cells.append(("reason", check.reason.partition(": ")[2].partition(" at ")[0]))
                for kind, key in cells:
                    total[kind][key] += 1
                    valid[kind][key] += check.status == "valid"
    rates = {kind: {key: (valid[kind][key], n) for key, n in total[kind].most_common()} for kind in kinds}
    return rates, dict(suite.passed_over)


def table(title: str, cells: dict[str, tuple[int, int]], top: int) -> list[str]:
    """Lines of one table, the largest cells first."""
    rows = list(cells.items())[:top]
    return ["", title, *(f"  {k:<52}{v:>6} of {n:>6}  {v / n:6.1%}" for k, (v, n) in rows)]


def options() -> argparse.ArgumentParser:
    """The options, with the defaults of a run."""
    parse = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parse.add_argument("file", type=Path)
    parse.add_argument("--limit", type=int)
    parse.add_argument("--order", type=int, default=DEFAULTS["order"])
    parse.add_argument(
        "--per-seed", type=lambda text: None if text == "all" else int(text), default=DEFAULTS["per_seed"]
    )
    parse.add_argument("--seed", type=int, default=7)
    parse.add_argument("--attributes")
    parse.add_argument("--parser", default="embedded")
    parse.add_argument("--top", type=int, default=25)
    parse.add_argument("--json", type=Path)
    return parse


def main() -> None:
    """Print the rates; ``--json`` keeps them all."""
    args = options().parse_args()
    start = time.perf_counter()
    rates, passed = count(args)
    lines = [f"{args.file.name}, {args.per_seed or 'all'} choices per seed and attribute set"]
    for title in ("order", "attributes", "direction", "words"):
        lines += table(title, rates[title], args.top)
    lines += ["", "reasons", *(f"  {k:<52}{n:>6}" for k, (_, n) in list(rates["reason"].items())[: args.top])]
    lines += ["", "not offered", *(f"  {k:<52}{n:>6}" for k, n in sorted(passed.items()))]
    lines.append(f"\n{time.perf_counter() - start:.1f} s")
    print("\n".join(lines))
    if args.json:
        kept: dict[str, Any] = {"file": args.file.name, "rates": rates, "not_offered": passed}
        args.json.write_text(json.dumps(kept, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
