"""Checked mutants per second: HInter's literal loop against the dependency invariant of this project.

Both get the same texts, word pairs, splitter and parser, and must reach the same verdicts. Mutants are made as in
Algorithm 1 (one pair of each of two attributes, whole words, the second after the first) outside the clock.

Usage::

    python benchmarks/validity.py [--texts 10] [--race african arab] [--against changed literal]
    python benchmarks/validity.py --million [--scale 0.1]

``literal`` parses every sentence of both texts of a pair until one fails (Algorithm 3 as printed);
``changed`` is the same loop, spared the sentences that are equal, and the stricter thing to be compared with: it is
the one that makes about 3.4 parses for a mutant, as the issue's 5,394 for 1,559. Both let spaCy parse sentence by
sentence. ``ours`` starts with an empty memory. Seconds are CPU time.
Loading the parser is left out.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import resource
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import literal_hinter as literal
from common import SHARED, Row, shared

from auditor.core.types import Case, SourceText, Variant
from auditor.perturb import dictionaries
from auditor.perturb.gate.constructs import Constructs
from auditor.perturb.gate.dependency import DependencyInvariant
from auditor.perturb.mutation import MutationSuite
from auditor.text.parse import Parse, Parser, plain_sentence
from auditor.text.split import sentences

RACES = ("african", "american", "arab", "asian")
Pairs = list[tuple[str, str]]


class Unremembered:
    """Parses every time it is asked, as the literal loop does; counts."""

    def __init__(self) -> None:
        self.parser = Parser(max_sentences=0)
        self.parses = 0

    def __call__(self, sentence: str) -> Parse:
        """Parse ``sentence`` anew."""
        self.parses += 1
        return self.parser.parse([sentence])[0]


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
            return [archive.read(n).decode("utf-8", "replace").lower() for n in names[:limit]]
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
    check = DependencyInvariant(parser=parser)
    check.check_many([warm_up(100)])
    parsed = parser.parsed
    verdicts = []
    start, wall = time.process_time(), time.perf_counter()
    for first in range(0, len(cases), batch):
        for checks in check.check_many(cases[first : first + batch]):
            verdicts += [found.status == "valid" for found in checks]
    found = figures(len(verdicts), time.process_time() - start, parser.parsed - parsed)
    found["wall_s"] = round(time.perf_counter() - wall, 2)
    return verdicts, found


def warm_up(size: int) -> Case:
    """Make a case that has the parser loaded."""
    variants = tuple(Variant(id=f"w.v{i}", input=f"A boy came {i} times.") for i in range(size))
    return Case(id="w", suite="benchmark", original=Variant(id="w.o", input="A man came."), variants=variants)


def resident_kib(pid: int) -> int:
    """Resident memory of one process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


PEOPLE = ("man", "woman", "boy", "girl", "guy", "lady", "husband", "wife", "father", "mother", "brother", "sister")
NATIONS = ("British", "German", "Nigerian", "Mexican", "Chinese", "Indian", "French", "Polish", "American")
DEEDS = (
    "met the manager at the bank", "asked for a loan", "waited for the bus", "bought a house in the city",
    "played the lead in a film", "wrote a long letter", "worked in a small shop", "taught at the school",
)  # fmt: skip
ENDS = ("It rained all day.", "Nobody knew why.", "The story was in the paper.", "The answer came on Monday.")


def short_seeds(count: int, rng: Random, distinct: int = 1000) -> Iterator[SourceText]:
    """Yield texts of three to five sentences and at most 60 words; ``distinct`` texts by turns."""
    texts = []
    for _ in range(distinct):
        lines = [
            f"The {rng.choice(NATIONS)} {rng.choice(PEOPLE)} {rng.choice(DEEDS)}."
            if rng.random() < 0.6
            else f"A {rng.choice(PEOPLE)} {rng.choice(DEEDS)}, and the {rng.choice(PEOPLE)} saw it."
            for _ in range(rng.choice([2, 2, 3, 4]))
        ]
        texts.append(" ".join([*lines, rng.choice(ENDS)]))
    for number in range(count):
        yield SourceText(id=str(number), text=texts[number % distinct])


def million(scale: float = 0.05, gate: type[Constructs | DependencyInvariant] = Constructs) -> dict[str, Any]:
    """Generate and check ``scale`` million variants by ``gate``, one batch of cases in memory at a time.

    Returns
    -------
    dict
        Variants, CPU seconds, seconds by the clock, and resident memory after a tenth of the variants and at the end.
    """
    wanted = int(1_000_000 * scale)
    check = gate(parser=Parser())
    suite = MutationSuite(
        seeds=short_seeds(wanted, Random(11)),
        dictionaries=[dictionaries.load("gender"), dictionaries.load("nationality")],
        parser=check.parser,
        per_seed=8,
    )
    check.check_many([warm_up(100)])
    done = valid = early = 0
    start, wall = time.process_time(), time.perf_counter()
    while done < wanted and (cases := suite.ask(128, Random(0))):
        for checks in check.check_many(cases):
            done += len(checks)
            valid += sum(one.status == "valid" for one in checks)
        if not early and done >= wanted / 10:
            early = resident_kib(os.getpid())
    spent = time.process_time() - start
    late = resident_kib(os.getpid())
    result = figures(done, spent, check.parser.parsed) | {
        "valid": valid,
        "wall_s": round(time.perf_counter() - wall, 1),
        "resident_at_a_tenth_mib": early // 1024,
        "resident_at_the_end_mib": late // 1024,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    return result


def figures(mutants: int, seconds: float, parses: int) -> dict[str, Any]:
    """Put the figures of one arm together."""
    return {
        "mutants": mutants,
        "seconds": round(seconds, 2),
        "mutants_per_s": round(mutants / max(seconds, 1e-9), 1),
        "parses": parses,
    }


def load_cases(data: Path, pairs: Path, texts: int, races: list[str]) -> list[Case]:
    """Make the mutants of the first ``texts`` texts."""
    first = read_pairs(pairs / "gender" / "female_male.csv")
    second = [p for race in races for p in read_pairs(pairs / "race" / f"european_{race}.csv")]
    return make_cases(read_texts(data, texts), first, second)


def measure() -> list[Row]:
    """300 reviews: one file of race pairs on both sides, four files on ours; and a short `million`."""
    data, pairs = shared("movie_reviews/movie_reviews.zip"), shared("hinter_pairs")
    one, four = (load_cases(data, pairs, 300, races) for races in (["african"], list(RACES)))
    expected, changed = run_literal(one, changed_only=True)
    part = one[:: max(1, len(one) // 6)]
    printed_verdicts, printed = run_literal(part, changed_only=False)
    arms: dict[str, tuple[list[bool], dict[str, Any]]] = {
        "1 race file": run_ours(one, 64),
        "4 race files": run_ours(four, 64),
    }
    if arms["1 race file"][0] != expected or run_ours(part, 64)[0] != printed_verdicts:
        raise SystemExit("verdicts differ from the literal loop")
    rows = []
    for name, (_, found) in arms.items():
        note = (
            f"parses {found['parses']:,} for {found['mutants']:,} mutants; the literal loop on changed sentences, "
            f"1 race file: {changed['parses']:,} for {changed['mutants']:,}"
        )
        rate = found["mutants_per_s"]
        beside = changed["mutants_per_s"]
        rows.append(
            Row(f"checked mutants, {name}", rate, "/s", 1, "literal, changed sentences", beside, rate / beside, note)
        )
    rate, beside = arms["1 race file"][1]["mutants_per_s"], printed["mutants_per_s"]
    note = f"target >= 20; a sixth of the reviews; parses {printed['parses']:,} for {printed['mutants']:,} mutants"
    rows.append(
        Row("checked mutants, 1 race file", rate, "/s", 1, "Algorithm 3 as printed", beside, rate / beside, note)
    )
    for gate in (Constructs, DependencyInvariant):
        short = million(0.05, gate)
        note = (
            f"{short['mutants']:,} variants; resident {short['resident_at_a_tenth_mib']} MiB after a tenth, "
            f"{short['resident_at_the_end_mib']} MiB at the end"
        )
        name = f"variants of short texts generated and checked, {gate.name}"
        rows.append(Row(name, short["mutants_per_s"], "/s", 1, note=note))
    return rows


def main() -> None:
    """Run the arms and print their figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--texts", type=int, default=10, help="reviews to mutate")
    parser.add_argument("--data", type=Path, default=SHARED / "movie_reviews" / "movie_reviews.zip")
    parser.add_argument("--pairs", type=Path, default=SHARED / "hinter_pairs")
    parser.add_argument("--race", nargs="+", default=list(RACES), help="targets of the european_*.csv files")
    parser.add_argument("--batch", type=int, default=64, help="cases checked together")
    parser.add_argument("--million", action="store_true", help="generate and check many variants of short texts")
    parser.add_argument("--scale", type=float, default=0.05, help="million variants")
    parser.add_argument("--against", nargs="*", choices=("changed", "literal"), default=["changed", "literal"])
    args = parser.parse_args()
    if args.million:
        for gate in (Constructs, DependencyInvariant):
            print(json.dumps({"gate": gate.name} | million(args.scale, gate), indent=2))
        return
    if not args.data.exists() or not args.pairs.exists():
        raise SystemExit(f"{args.data} or {args.pairs} is not here: nothing to measure")
    cases = load_cases(args.data, args.pairs, args.texts, args.race)
    if not cases:
        raise SystemExit("no text holds a source word of both attributes; raise --texts")
    verdicts, ours = run_ours(cases, args.batch)
    report: dict[str, Any] = {"cases": len(cases), "valid": sum(verdicts), "ours": ours}
    for arm in args.against:
        expected, report[arm] = run_literal(cases, changed_only=arm == "changed")
        if expected != verdicts:
            sys.exit(f"verdicts differ from the {arm} loop")
        report[f"ratio to {arm}"] = round(ours["mutants_per_s"] / report[arm]["mutants_per_s"], 1)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
