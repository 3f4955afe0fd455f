"""What default runs edit: the shape of placebos beside that of edits, and how many words stand for an attribute.

    python benchmarks/edits.py                                # all tasks with embedded texts
    python benchmarks/edits.py --tasks hiring sentiment
    python benchmarks/edits.py --gates                        # what either gate leaves

Variants that the gate keeps, with the defaults of a run; no model is asked. For each task and attribute:

- **texts** with such an edit, and the share of them that have a placebo too;
- **same spans, words, characters**: the share of edits beside which the same text has a placebo that changes as many
  spans, adds as many words, adds as many characters (two more or less); and all three at once;
- **effective words**: inverse Simpson of the shares of the words put in.

Joint edits (two attributes) are one row of each task.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import NamedTuple

from auditor import tasks
from auditor.core.plan import Plan
from auditor.core.types import Edit, Variant
from auditor.measure.observations import Arm, shape_of
from auditor.run.rounds import gated
from auditor.run.stages import stages

JOINT = "two together"
NEAR = 2  # characters
TASKS = ["hiring", "sentiment", "lending", "triage", "letter", "salary", "rating", "advice", "support"]
SHOWN = ("gender", "race", "nationality")


class Form(NamedTuple):
    """How much a version differs from its original."""

    spans: int
    words: int
    chars: int


class Text:
    """The forms of the edits and placebos of one text for one attribute."""

    def __init__(self) -> None:
        self.edits: list[Form] = []
        self.placebos: list[Form] = []

    def matched(self, alike: Callable[[Form, Form], bool]) -> int:
        """How many edits have a placebo like them in the text."""
        return sum(any(alike(edit, p) for p in self.placebos) for edit in self.edits)


class Arms:
    """All texts of one task and attribute."""

    def __init__(self) -> None:
        self.texts: dict[str, Text] = {}
        self.words: Counter[str] = Counter()

    def row(self) -> list[str]:
        """Texts, share with a placebo, placebos for each edit, what matches, effective words."""
        texts = [t for t in self.texts.values() if t.edits]
        edits = sum(len(t.edits) for t in texts)
        with_placebo = [t for t in texts if t.placebos]

        def share(alike: Callable[[Form, Form], bool]) -> str:
            return f"{100 * sum(t.matched(alike) for t in texts) / edits:.0f} %"

        changed = 100 * sum(f.words != 0 for t in texts for f in t.edits) / edits
        placebos = [f for t in texts for f in t.placebos]
        beside = 100 * sum(f.words != 0 for f in placebos) / max(1, len(placebos))
        return [
            str(len(texts)),
            f"{100 * len(with_placebo) / len(texts):.1f} %",
            f"{len(placebos) / edits:.2f}",
            f"{changed:.0f} / {beside:.0f} %",
            share(lambda e, p: e.spans == p.spans),
            share(lambda e, p: e.words == p.words),
            share(lambda e, p: abs(e.chars - p.chars) <= NEAR),
            share(lambda e, p: e[:2] == p[:2] and abs(e.chars - p.chars) <= NEAR),
            f"{effective(self.words):.1f}",
        ]


HEAD = [
    "task", "attribute", "texts", "with placebo", "placebos an edit", "change words: edits / placebos",
    "same spans", "same words", "chars ± 2", "all three", "effective words",
]  # fmt: skip


def effective(counts: Mapping[str, int]) -> float:
    """Inverse Simpson: as many equally frequent words would have this concentration."""
    total = sum(counts.values())
    return total * total / sum(n * n for n in counts.values()) if total else 0.0


def form(variant: Variant) -> Form:
    """Spans, words and characters that ``variant`` changes or adds."""
    shape = shape_of(variant.edits)
    return Form(shape.spans, shape.more_words, shape.more_chars)


def written(edits: Iterable[Edit]) -> set[str]:
    """The words that a version puts in, repairs left out."""
    return {e.target.lower() for e in edits if e.kind != "agreement"}


def versions(plan: Plan, passed_over: Counter[str]) -> Iterator[tuple[str, Variant, Arm, bool]]:
    """Case, version, arm and whether the gate keeps it, of edits and placebos of the embedded texts."""
    loaded = tasks.load(plan.task)
    suite, gate, _, placebos = stages(plan, loaded, list(loaded.seeds()), {})
    rng = Random(plan.seed)
    while cases := suite.ask(64, rng):
        cases, checks = gated(plan, cases, gate, placebos, {})
        for case in cases:
            for variant in case.variants:
                arm = shape_of(variant.edits).arm
                if arm in (Arm.EDITED, Arm.PLACEBO):
                    yield case.id, variant, arm, checks[variant.id].status != "invalid"
    passed_over.update({k: n for k, n in suite.passed_over.items() if k.startswith("placebo")})


def measure(task: str, attributes: list[str] | None) -> tuple[dict[str, Arms], Counter[str]]:
    """The arms of one task by attribute, and why texts have no placebo."""
    out, why = dict[str, Arms](), Counter[str]()
    plan = Plan(task=task, attributes=tuple(attributes) if attributes else None)
    for case, variant, arm, kept in versions(plan, why):
        if not kept:
            continue
        name = variant.attributes[0] if len(variant.attributes) == 1 else JOINT
        arms = out.setdefault(name, Arms())
        text = arms.texts.setdefault(case, Text())
        (text.edits if arm == Arm.EDITED else text.placebos).append(form(variant))
        if arm == Arm.EDITED:
            arms.words.update(written(variant.edits))
    return out, why


def left(task: str, gate: str) -> tuple[int, int, float, str]:
    """Texts that keep an edit, edits made, share of them kept in %, effective words of `SHOWN`."""
    texts, words, kept = set[str](), {name: Counter[str]() for name in SHOWN}, []
    for case, variant, arm, good in versions(Plan(task=task, gate=gate), Counter()):
        if arm != Arm.EDITED:
            continue
        kept.append(good)
        if good:
            texts.add(case)
            if variant.attributes in [(name,) for name in SHOWN]:
                words[variant.attributes[0]].update(written(variant.edits))
    told = "; ".join(f"{effective(counts):.1f}" for counts in words.values())
    return len(texts), len(kept), 100 * sum(kept) / len(kept), told


def main() -> None:
    """Print one table, and why placebos are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--attributes", nargs="+")
    parser.add_argument("--gates", action="store_true", help="what either gate leaves of the edits")
    args = parser.parse_args()
    if args.gates:
        for task in args.tasks:
            (texts, n, share, words), after = left(task, "dependency"), left(task, "constructs")
            print(f"| {task} | {texts} → {after[0]} | {share:.1f} → {after[2]:.1f} % of {n:,} | {words} | {after[3]} |")
        return
    rows, reasons = [HEAD, ["---"] * len(HEAD)], Counter[str]()
    for task in args.tasks:
        found, why = measure(task, args.attributes)
        rows += [
            [task, name, *arms.row()]
            for name, arms in sorted(found.items())
            if any(t.edits for t in arms.texts.values())
        ]
        reasons += why
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))
    for reason, n in reasons.most_common():
        print(f"{n:6} {reason}")


if __name__ == "__main__":
    main()
