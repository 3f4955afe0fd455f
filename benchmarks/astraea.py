"""The figures of docs/astraea.md: RAND, PROB, four ways to make cases, spreads.

    python benchmarks/astraea.py phases [SUBJECT…]      Table 5, RQ7
    python benchmarks/astraea.py spread [SUBJECT…]      RQ7 with 3,000 cases a phase
    python benchmarks/astraea.py sources [SUBJECT…]     RQ6 and RQ8

Subjects: vader, textblob, reviews. Counted as published: a case is a pair, the denominator is distinct cases.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from random import Random
from statistics import mean, stdev
from typing import Any

from common import shared

from auditor import models
from auditor.core.types import Case, SourceText, Verdict
from auditor.perturb import dictionaries, grammar
from auditor.perturb.grammar.cases import GrammarSuite
from auditor.perturb.mutation import MutationSuite
from auditor.text.agreement import problems

SUBJECTS = ("vader", "textblob", "reviews")
SEEDS = range(1, 11)
Label = Callable[[str], str]


def subject(name: str) -> Label:
    """The label that an embedded model gives a text, each text asked once."""
    answer = models.make(name).answer  # type: ignore[attr-defined]
    known: dict[str, str] = {}

    def label(text: str) -> str:
        if text not in known:
            known[text] = answer(text).text
        return known[text]

    return label


def verdicts(cases: list[Case], label: Label) -> list[Verdict]:
    """The metamorphic oracle on labels."""
    return [
        Verdict(
            case_id=case.id,
            variant_id=v.id,
            order=1,
            attributes=v.attributes,
            outcome="pass" if label(str(v.input)) == label(str(case.original.input)) else "violation",
        )
        for case in cases
        for v in case.variants
    ]


ARMS: Mapping[str, dict[str, Any]] = {"published": {"power": 1.0}, "squared": {"power": 2.0}}


def phases(one: grammar.Grammar, label: Label, seed: int, arm: str, cases: int) -> tuple[float, float]:
    """Violating shares of the distinct cases of RAND and of the directed phase, ``cases`` each."""
    suite = GrammarSuite(grammar=one, cases=2 * cases, pairs=True, order=1, seed=seed, **ARMS[arm])
    while drawn := suite.ask(64, Random(0)):
        suite.tell(verdicts(list(drawn), label))
    found = {sampling: t.violating_cases / t.cases for (_, sampling), t in suite.tallies.items()}
    return found.get("iid", 0.0), found.get("directed", 0.0)


def told(values: list[float]) -> str:
    """Mean and standard deviation."""
    return f"{mean(values):.4f} ({stdev(values):.4f})"


def table(names: list[str], cases: int, arms: tuple[str, ...], views: tuple[str, ...] | None = None) -> None:
    """One line for each view and subject."""
    views = views or ("", *grammar.load("sentiment").views)
    for name in names:
        label = subject(name)
        for view in views:
            one = grammar.load(f"sentiment:{view}" if view else "sentiment")
            rand = [phases(one, label, seed, "published", cases) for seed in SEEDS]
            line = [f"{name:9}{view or 'all':21}RAND {told([r for r, _ in rand])}"]
            base = mean(r for r, _ in rand)
            if base:
                for arm in arms:
                    directed = (
                        [p for _, p in rand]
                        if arm == "published"
                        else [phases(one, label, seed, arm, cases)[1] for seed in SEEDS]
                    )
                    line.append(f"{arm} {told(directed)} ×{mean(directed) / base:.2f}")
            print("  ".join(line), flush=True)


def rate(cases: list[Case], label: Label) -> float:
    """Share of cases with a changed label."""
    return mean(v.outcome == "violation" for v in verdicts(cases, label))


def drawn(name: str, n: int, seed: int, **options: Any) -> list[Case]:
    """``n`` pairs of RAND."""
    suite = GrammarSuite(grammar=name, cases=n, pairs=True, order=1, seed=seed, generation="rand", **options)
    out: list[Case] = []
    while more := suite.ask(1024, Random(0)):
        out += more
    return out


def directed(n: int, seed: int, label: Label, power: float) -> list[Case]:
    """``n`` pairs of PROB after as many of RAND."""
    suite = GrammarSuite(grammar="sentiment", cases=2 * n, pairs=True, order=1, seed=seed, power=power)
    out: list[Case] = []
    while more := suite.ask(64, Random(0)):
        suite.tell(verdicts(list(more), label))
        out += [c for c in more if c.sampling == "directed"]
    return out


def winogender(n: int, seed: int) -> list[Case]:
    """Up to ``n`` Winogender sentences, each with one mutant by the dictionary of gender."""
    lines = shared("winogender/all_sentences.tsv").read_text(encoding="utf-8").splitlines()[1:]
    texts = sorted({line.split("\t")[1] for line in lines})
    Random(seed).shuffle(texts)
    suite = MutationSuite(
        seeds=[SourceText(id=f"w{i}", text=text) for i, text in enumerate(texts)],
        dictionaries=[dictionaries.load("gender")],
        order=1,
        per_seed=1,
        seed=seed,
    )
    out: list[Case] = []
    while len(out) < n and (more := suite.ask(256, Random(seed))):
        out += [c for c in more if c.variants]
    return [dataclasses.replace(c, variants=c.variants[:1]) for c in out[:n]]


def invalid(cases: list[Case]) -> str:
    """Sentences, originals and counterparts, that break an agreement rule."""
    texts = {str(v.input) for c in cases for v in (c.original, *c.variants)}
    bad = [t for t in sorted(texts) if problems(t)]
    return f"{len(bad)}/{len(texts)}" + (f" {bad[:2]}" if bad else "")


def sources(names: list[str], n: int = 450) -> None:
    """RQ6 and RQ8: the same number of cases from each source, ten seeds."""
    for name in names:
        label = subject(name)
        rows: dict[str, list[list[Case]]] = {
            "RAND": [drawn("sentiment", n, s) for s in SEEDS],
            "PROB published": [directed(n, s, label, 1.0) for s in SEEDS],
            "PROB squared": [directed(n, s, label, 2.0) for s in SEEDS],
            "EEC types": [drawn("sentiment:feelings", n, s) for s in SEEDS],
            "gender by grammar": [drawn("sentiment:direct-gender", n, s) for s in SEEDS],
            "Winogender": [winogender(n, s) for s in SEEDS],
        }
        for source, runs in rows.items():
            sizes = sorted({len(r) for r in runs})
            print(
                f"{name:9}{source:20}n {sizes}  {told([rate(r, label) for r in runs])}  "
                f"agreement problems {invalid([c for r in runs for c in r])}",
                flush=True,
            )


if __name__ == "__main__":
    what, *chosen = sys.argv[1:] or ["phases"]
    chosen = chosen or list(SUBJECTS)
    if what == "phases":
        table(chosen, 1_000, tuple(ARMS))
    elif what == "spread":
        table(chosen, 3_000, ("published", "squared"), ("", "gendered-occupation", "direct-gender"))
    else:
        sources(chosen)
