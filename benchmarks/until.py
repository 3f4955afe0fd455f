"""How often ``--until-decided`` shows a difference, what it errs, and what it costs: planted answers to real cases.

The cases come once from the product's own pipeline, in random order; a simulated model answers what `Until` wants asked,
until it says that it is enough. Prints a table as it goes, writes ``until.json`` and ``until.md``.

    python benchmarks/until.py [--runs 200] [--only TEXT] [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from auditor.core.plan import Plan
from auditor.core.types import Answer, Case, Check, Variant
from auditor.measure.claims import Claim
from auditor.measure.intervals import clopper_pearson
from auditor.measure.simulate import shift, spread
from auditor.run.audit import run_sync
from auditor.run.observed import Observed, score_of
from auditor.run.parts import Parts, prepare
from auditor.run.rounds import FEW, source
from auditor.run.state import State
from auditor.run.until import Until

BUDGET = 2000
SHOWN = ("shown", "shown_for_words")


class Ended(NamedTuple):
    """How one simulated run ended: the claim about women and men, prompts asked, looks taken."""

    claim: Claim
    calls: int
    looks: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What is planted: a net effect as a share of the answers, and standard deviations on log odds."""

    name: str
    effect: float = 0.0
    word: float = 0.0
    noise: float = spread(0.016)
    scores: bool = False
    delta: float | None = None
    task: str = "sentiment"


@cache
def planned(task: str, delta: float | None = None) -> tuple[Parts, tuple[Case, ...], dict[str, Check]]:
    """The cases of a plan about gender with ``BUDGET`` calls, made once, and the checks of their variants."""
    given = {
        "task": task,
        "attributes": ("gender",),
        "until_decided": True,
        "delta": delta,
        "max_calls": BUDGET,
    }
    parts = prepare(Plan.of(given), models=[])
    found: list[Case] = []
    checked: dict[str, Check] = {}

    async def make() -> None:
        rounds = source(parts)
        while True:
            cases, checks = await rounds.next(Random(7))
            if not cases:
                return
            found.extend(cases)
            checked.update(checks)

    run_sync(make)
    return parts, tuple(found), checked


def side(case: Case, variant: Variant) -> float:
    """½ for a version about women, −½ for one about men."""
    moved = [d for d in variant.directions if d[1] != d[2]]
    first = [d for v in case.variants for d in v.directions if d[1] != d[2]]
    group = moved[0][2] if moved else first[0][1] if first else ""
    return {"female": 0.5, "male": -0.5}.get(group, 0.0)


def run(setting: Setting, number: int) -> Ended:
    """Ask a simulated model about the cases in random order until `Until` says that it is enough."""
    parts, cases, checks = planned(setting.task, setting.delta)
    labels = parts.task.labels or ()
    draws = np.random.default_rng([number, 15])
    ordered = Random(number).sample(cases, len(cases))
    words: dict[str, float] = {}
    tally = SimpleNamespace(
        seen=[], cost_usd=0.0, control={"bare": [True]}, model=SimpleNamespace(name="m"), formats=("bare",),
        replicates=1,
    )  # fmt: skip
    loop: Any = SimpleNamespace(
        parts=SimpleNamespace(
            seeds=len(cases), suite=SimpleNamespace(skipped={}), texts=(), task=parts.task, dictionaries=parts.dictionaries
        ),
        plan=parts.plan, counts=Counter(), tallies=[tally], observed=Observed(["m"], score_of(parts.task)), status_reason="",
        stopped_by="", asked=lambda check: check.status != "invalid",
    )  # fmt: skip
    loop.question = lambda: State.question(loop)
    until = loop.until = Until(loop)
    favourable = parts.task.favourable or labels[0]
    other = next(label for label in labels if label != favourable)
    for start in range(0, len(cases), FEW):
        loop.observed.forget()
        for case in ordered[start : start + FEW]:
            base = draws.normal()
            answers: dict[str, list[Answer]] = {}
            for v in until.wanted(case, checks):
                margin = base + shift(setting.effect) * side(case, v) + setting.noise * draws.normal()
                for e in v.edits:
                    for text, sign in ((e.target, 1.0), (e.source, -1.0)):
                        margin += sign * words.setdefault(text.lower(), setting.word * draws.normal())
                p = float(1 / (1 + np.exp(-margin)))
                scores = {favourable: p, other: 1 - p} if setting.scores else None
                answers[v.id] = [
                    Answer(status="ok", value=favourable if margin > 0 else other, scores=scores)
                ]
            loop.observed.add(case, {v.id for v in case.variants if checks[v.id].status != "invalid"})
            loop.observed.take(answers, model="m", format="bare")
            tally.seen += answers
            loop.counts.update(cases=1, taken=1)
            if len(tally.seen) >= BUDGET:
                loop.stopped_by = loop.status_reason = "max_calls"
                break
        until.look()
        if until.done or loop.status_reason:
            break
    claim = next(c for c in until.claims() if c.family == "net" and set(c.groups) == {"female", "male"})
    return Ended(claim, len(tally.seen), len(until.record()))


def settings() -> list[Setting]:
    """All rows."""
    return [
        *(
            Setting(name=f"2 % effect, noise {flips}", effect=0.02, noise=noise, task=task)
            for task in ("sentiment", "hiring")
            for flips, noise in (("1.6 %", spread(0.016)), ("3.2 %", spread(0.032)))
        ),
        *(
            Setting(name=f"no effect{more}", scores=scores, word=word, task=task)
            for task in ("sentiment", "hiring")
            for more, scores, word in (("", False, 0.0), ("", True, 0.0), (", word sd 0.1", True, 0.1))
        ),
        *(Setting(name="at delta", effect=0.0515, delta=0.05, task=task) for task in ("sentiment", "hiring")),
        Setting(name="5 % effect", effect=0.05, scores=True),
    ]


def measure(setting: Setting, many: int) -> dict[str, Any]:
    """How often a setting comes to each verdict, and the mean number of calls."""
    ended = [run(setting, n) for n in range(many)]
    verdicts = Counter(e.claim.verdict for e in ended)
    return {
        "name": setting.name,
        "task": setting.task,
        "answers": "log_odds" if setting.scores else "share",
        "runs": many,
        "texts": round(float(np.mean([e.claim.texts for e in ended]))),
        "calls": round(float(np.mean([e.calls for e in ended]))),
        "looks": float(np.mean([e.looks for e in ended])),
        "shown": verdicts["shown"],
        "shown_or_for_words": sum(verdicts[v] for v in SHOWN),
        "bounded": verdicts["bounded"],
    }


def table(rows: list[dict[str, Any]]) -> str:
    """All figures as Markdown."""

    def share(count: int, many: int) -> str:
        found = clopper_pearson(count, many, 0.95)
        return f"{100 * count / many:.1f} ({100 * (found.low or 0.0):.1f}–{100 * (found.high or 0.0):.1f})"

    lines = [
        "| setting | task | answers | mean texts | mean calls | shown, % | shown at least for these words, % | bounded, % |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    for r in rows:
        counts = " | ".join(share(r[k], r["runs"]) for k in ("shown", "shown_or_for_words", "bounded"))
        lines.append(
            f"| {r['name']} | {r['task']} | {r['answers']} | {r['texts']} | {r['calls']:,} | {counts} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="", help="settings whose name holds this")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "results")
    args = parser.parse_args()
    rows = []
    for setting in settings():
        if args.only in f"{setting.name}, {setting.task}":
            rows.append(measure(setting, args.runs))
            print(table(rows).splitlines()[-1], flush=True)
    args.out.mkdir(exist_ok=True)
    (args.out / "until.json").write_text(json.dumps(rows, indent=2) + "\n")
    (args.out / "until.md").write_text(table(rows))


if __name__ == "__main__":
    main()
