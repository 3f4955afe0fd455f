"""Checked mutants per second: HInter's literal loop against the dependency invariant of this project.

Both get the same texts, word pairs, splitter and parser, and must reach the same verdicts. Mutants are made
as in Algorithm 1 (one pair of each of two attributes, whole words, the second after the first) outside the
clock.

Usage::

    python benchmarks/validity.py [--texts 10] [--race african arab] [--against changed literal]

``literal`` parses every sentence of both texts of a pair until one fails (Algorithm 3 as printed);
``changed`` is the same loop, spared the sentences that are equal; ``ours`` starts with an empty memory.
Seconds are CPU time of this process; loading the parser is left out.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from auditor.text.parse import Parse, Parser, plain_sentence
from auditor.text.split import sentences
from auditor.types import Case, Variant
from auditor.validity import literal
from auditor.validity.dependency import DependencyInvariant

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
RACES = ("african", "american", "arab", "asian")
Pairs = list[tuple[str, str]]


class Unremembered:
    """Parses every time it is asked, as the literal loop does; counts."""

    def __init__(self) -> None:
        self.parser = Parser(max_sentences=1)
        self.parses = 0

    def __call__(self, sentence: str) -> Parse:
        """Parse ``sentence`` anew."""
        self.parser.forget()
        self.parses += 1
        return self.parser.parse_one(sentence)


def read_pairs(path: Path) -> Pairs:
    """Read the ``source;target`` lines of one file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    cells = [line.split(";") for line in lines if line.count(";") == 1]
    return [(a.strip().lower(), b.strip().lower()) for a, b in cells if a.strip() and b.strip()]


def read_texts(path: Path, limit: int) -> list[str]:
    """Read the first ``limit`` texts, lower-cased as in the released code: a CSV, or a zip of text files."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = sorted(n for n in archive.namelist() if n.endswith(".txt") and "README" not in n)
            step = max(1, len(names) // limit)  # spread over both polarities
            return [archive.read(n).decode("utf-8", "replace").lower() for n in names[::step][:limit]]
    with path.open(encoding="utf-8", newline="") as file:
        return [row["text"].lower() for row in csv.DictReader(file)][:limit]


def mutants(text: str, first: Pairs, second: Pairs) -> Iterator[str]:
    """Make the joint mutants of ``text`` (Algorithm 1, lines 9-17)."""
    here = set(re.findall(r"\w+", text))
    present = [pair for pair in second if set(re.findall(r"\w+", pair[0])) <= here]
    for source, target in first:
        if source not in here or not present:
            continue
        once = re.sub(rf"\b{re.escape(source)}\b", target.replace("\\", ""), text)
        for other, replacement in present:
            joint = re.sub(rf"\b{re.escape(other)}\b", replacement.replace("\\", ""), once)
            if joint != once and once != text:
                yield joint


def make_cases(texts: list[str], first: Pairs, second: Pairs) -> list[Case]:
    """Make one case per text that has mutants."""
    cases = []
    for number, text in enumerate(texts):
        found = list(mutants(text, first, second))
        if found:
            variants = tuple(Variant(id=f"{number}.v{i}", input=m) for i, m in enumerate(found))
            original = Variant(id=f"{number}.o", input=text)
            cases.append(Case(id=str(number), suite="benchmark", original=original, variants=variants))
    return cases


def split(text: str) -> list[str]:
    """Split as Algorithm 3 does."""
    return [plain_sentence(text[a:b]) for a, b in sentences(text)]


def check_changed_only(original: str, mutant: str, parse: Callable[[str], Parse]) -> bool:
    """Algorithm 3 on the sentences that differ."""
    before, after = split(original), split(mutant)
    if len(before) != len(after):
        return False
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    kept = [iter([a for a, _ in changed]), iter([b for _, b in changed])]
    return literal.inv_check(original, mutant, lambda t: list(kept[t is mutant]), parse)


def run_literal(cases: list[Case], *, changed_only: bool) -> tuple[list[bool], dict[str, Any]]:
    """Run the published loop."""
    parse = Unremembered()
    parse("Warm up.")
    parse.parses = 0
    verdicts = []
    start = time.process_time()
    for case in cases:
        original = str(case.original.input)
        for variant in case.variants:
            mutant = str(variant.input)
            if changed_only:
                verdicts.append(check_changed_only(original, mutant, parse))
            else:
                verdicts.append(literal.inv_check(original, mutant, split, parse))
    return verdicts, figures(len(verdicts), time.process_time() - start, parse.parses)


def run_ours(cases: list[Case], batch: int) -> tuple[list[bool], dict[str, Any]]:
    """Run the invariant as the pipeline does: ``batch`` cases at a time."""
    parser = Parser()
    parser.parse_one("Warm up.")
    tagged, parsed = parser.tagged, parser.parsed
    check = DependencyInvariant(parser=parser)
    verdicts = []
    start = time.process_time()
    for first in range(0, len(cases), batch):
        for checks in check.check_many(cases[first : first + batch]):
            verdicts += [found.status == "valid" for found in checks]
    found = figures(len(verdicts), time.process_time() - start, parser.parsed - parsed)
    return verdicts, found | {"tagged": parser.tagged - tagged, "compared": check.compared}


def figures(mutants: int, seconds: float, parses: int) -> dict[str, Any]:
    """Put the figures of one arm together."""
    return {
        "mutants": mutants,
        "seconds": round(seconds, 2),
        "mutants_per_s": round(mutants / max(seconds, 1e-9), 1),
        "parses": parses,
    }


def main() -> None:
    """Run the arms and print their figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--texts", type=int, default=10, help="reviews to mutate")
    parser.add_argument("--data", type=Path, default=SHARED / "movie_reviews" / "imdb_sample.csv")
    parser.add_argument("--pairs", type=Path, default=SHARED / "hinter_pairs")
    parser.add_argument("--race", nargs="+", default=list(RACES), help="targets of the european_*.csv files")
    parser.add_argument("--batch", type=int, default=64, help="cases checked together")
    parser.add_argument(
        "--against", nargs="*", choices=("changed", "literal"), default=["changed", "literal"]
    )
    args = parser.parse_args()
    if not args.data.exists() or not args.pairs.exists():
        raise SystemExit(f"{args.data} or {args.pairs} is not here: nothing to measure")
    texts = read_texts(args.data, args.texts)
    first = read_pairs(args.pairs / "gender" / "female_male.csv")
    second = [p for race in args.race for p in read_pairs(args.pairs / "race" / f"european_{race}.csv")]
    cases = make_cases(texts, first, second)
    if not cases:
        raise SystemExit("no text holds a source word of both attributes; raise --texts")
    verdicts, ours = run_ours(cases, args.batch)
    report: dict[str, Any] = {"texts": len(texts), "valid": sum(verdicts), "ours": ours}
    for arm in args.against:
        expected, report[arm] = run_literal(cases, changed_only=arm == "changed")
        if expected != verdicts:
            sys.exit(f"verdicts differ from the {arm} loop")
        report[f"ratio to {arm}"] = round(ours["mutants_per_s"] / report[arm]["mutants_per_s"], 1)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
