"""Checked mutants per second: HInter's literal loop against the dependency invariant of this project.

Both get the same reviews, word pairs, splitter and parser, and must reach the same verdicts. Mutants are made as in
Algorithm 1 (one pair of each of two attributes, whole words, the second after the first) outside the clock. The literal
loop parses every sentence of both texts of a pair until one fails (Algorithm 3 as printed). Seconds are CPU time;
loading the parser is left out.
"""

from __future__ import annotations

import re
import time
import zipfile
from collections.abc import Iterator

from common import Row, shared
from literal_hinter import inv_check

from auditor.core.types import Case, Variant
from auditor.perturb.dependency import DependencyInvariant
from auditor.text.parse import Parse, Parser, plain_sentence, sentences

BATCH = 64  # cases checked together
Pairs = list[tuple[str, str]]


def read_pairs(name: str) -> Pairs:
    """Read the ``source;target`` lines of one file."""
    lines = shared(f"hinter_pairs/{name}.csv").read_text(encoding="utf-8").splitlines()
    cells = [line.split(";") for line in lines if line.count(";") == 1]
    return [(a.strip().lower(), b.strip().lower()) for a, b in cells if a.strip() and b.strip()]


def reviews(limit: int) -> list[str]:
    """Read the first ``limit`` reviews, lower-cased as in the released code."""
    with zipfile.ZipFile(shared("movie_reviews/movie_reviews.zip")) as archive:
        names = sorted(n for n in archive.namelist() if n.endswith(".txt") and "README" not in n)
        return [archive.read(n).decode("utf-8", "replace").lower() for n in names[:limit]]


def mutants(text: str, first: Pairs, second: Pairs) -> Iterator[str]:
    """Make the joint mutants of ``text`` (Algorithm 1, lines 9-17)."""
    here = set(re.findall(r"\w+", text))
    present = [pair for pair in second if set(re.findall(r"\w+", pair[0])) <= here]
    for source, target in first:
        if source not in here:
            continue
        once = re.sub(rf"\b{re.escape(source)}\b", target.replace("\\", ""), text)
        for other, replacement in present:
            joint = re.sub(rf"\b{re.escape(other)}\b", replacement.replace("\\", ""), once)
            if joint != once and once != text:
                yield joint


def make_cases(texts: int) -> list[Case]:
    """Make one case for each of the first ``texts`` reviews that has mutants of gender and race."""
    first, second = read_pairs("gender/female_male"), read_pairs("race/european_african")
    cases = []
    for number, text in enumerate(reviews(texts)):
        found = tuple(Variant(id=f"{number}.v{i}", input=m) for i, m in enumerate(mutants(text, first, second)))
        if found:
            original = Variant(id=f"{number}.o", input=text)
            cases.append(Case(id=str(number), suite="benchmark", original=original, variants=found))
    return cases


def split(text: str) -> list[str]:
    """Split as Algorithm 3 does."""
    return [plain_sentence(text[a:b]) for a, b in sentences(text)]


def run_literal(cases: list[Case]) -> tuple[list[bool], float]:
    """Return verdicts and mutants per second of the published loop, which parses a sentence each time."""
    parser = Parser(max_sentences=0)

    def parse(sentence: str) -> Parse:
        return parser.parse([sentence])[0]

    parse("Warm up.")
    start = time.process_time()
    verdicts = [
        inv_check(str(case.original.input), str(v.input), split, parse) for case in cases for v in case.variants
    ]
    return verdicts, len(verdicts) / (time.process_time() - start)


def run_ours(cases: list[Case]) -> tuple[list[bool], float]:
    """Return verdicts and mutants per second of the invariant as a run calls it."""
    check = DependencyInvariant(parser=Parser())
    warm_up = Variant(id="w.v0", input="A boy came.")
    check.check_many(
        [Case(id="w", suite="benchmark", original=Variant(id="w.o", input="A man came."), variants=(warm_up,))]
    )
    verdicts: list[bool] = []
    start = time.process_time()
    for first in range(0, len(cases), BATCH):
        for checks in check.check_many(cases[first : first + BATCH]):
            verdicts += [found.status == "valid" for found in checks]
    return verdicts, len(verdicts) / (time.process_time() - start)


def measure(quick: bool = False) -> Iterator[Row]:
    """Return the rate on 300 reviews, and the literal loop's on a sixth of those that have mutants."""
    cases = make_cases(60 if quick else 300)
    part = cases[:: max(1, len(cases) // 6)]
    expected, printed = run_literal(part)
    if run_ours(part)[0] != expected:
        raise SystemExit("verdicts differ from the literal loop")
    verdicts, rate = run_ours(cases)
    note = f"{len(verdicts):,} mutants, {len(expected):,} of them in the literal loop; target ≥ 20"
    yield Row("hinter: checked mutants", rate, "/s CPU", "Algorithm 3 as printed", printed, note)
