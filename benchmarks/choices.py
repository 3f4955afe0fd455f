"""Calls that decide: choices between two and rankings beside single answers, with the same difference planted.

The candidates are versions that the product makes and the panels those that it asks; answers go through its reader and
its claims. What single answers cost stands in ``shown.md`` and ``until.md``. A choice sets two versions of one text side by
side, so the merit of the text cancels, and what is left is what a model's choices vary by (``wobble``, in standard
deviations of merit between texts): how many calls decide depends on it, and nobody knows it beforehand.

    python benchmarks/choices.py [--runs 100] [--only choice] [--task hiring]
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random

import numpy as np

from auditor.core.plan import Plan
from auditor.core.types import Response, Variant
from auditor.measure.families import claims
from auditor.measure.intervals import clopper_pearson
from auditor.measure.observations import Observations
from auditor.measure.power import shift, spread
from auditor.run.audit import run_sync
from auditor.run.choose import Seen, _of, _take
from auditor.run.loop import source
from auditor.run.panels import CHOICE, FIRST, RANKING, SECOND, Panel, panels, task_of
from auditor.run.preparation import Parts, prepare

PAIR = {"female": 0.5, "male": -0.5}
CALLS = (200, 400, 800, 1600)  # at most: a plan may have fewer
# How much choices vary, and what standing first is worth, in standard deviations of merit between texts.
MODELS = ((0.1, 0.0), (0.1, 0.2), (0.5, 0.0), (1.0, 0.0))


@cache
def asked(name: str, kind: str, candidates: int) -> tuple[Parts, tuple[tuple[Panel, ...], ...]]:
    """The panels of each text."""
    task = task_of(name, candidates)
    plan: dict[str, object] = {"task": name, "attributes": ("gender",), "order": 1, "models": ("rules",)}
    plan |= {"groups": ("gender:female/male",)} if kind == CHOICE else {}
    parts = prepare(Plan.of(plan), models=[], task=task)
    found: list[tuple[Panel, ...]] = []

    async def make() -> None:
        rounds = source(parts)
        while True:
            cases, checks = await rounds.next(Random(7))
            if not cases:
                return
            found.extend(tuple(panels(task, kind, c, checks, candidates, 1)) for c in cases)

    run_sync(make)
    return parts, tuple(p for p in found if p)


def answers(
    rng: np.random.Generator, shown: Sequence[Panel], kind: str, net: float, wobble: float, place: float
) -> Iterator[Response]:
    """What a planted model says to each panel."""
    merits: dict[str, float] = {}

    def merit(v: Variant) -> float:
        if v.id not in merits:
            merits[v.id] = net * PAIR.get(v.groups.get("gender", ""), 0.0) + rng.normal(0, spread(0.016))
        return merits[v.id]

    for panel in shown:
        own = np.array([merit(v) for v in panel.shown]) + rng.normal(0, wobble / np.sqrt(2), len(panel.shown))
        own[0] += place
        order = np.argsort(-own)
        said = (FIRST, SECOND)[order[0]] if kind == CHOICE else ", ".join(str(n + 1) for n in order)
        yield Response(variant_id=panel.id, prompt_sha256="", format=kind, replicate=0, output=said, model="planted")


def shown(name: str, kind: str, candidates: int, calls: int, net: float, wobble: float, place: float, runs: int) -> int:
    """Runs in which women and men are told apart."""
    parts, texts = asked(name, kind, candidates)
    of, count = _of(parts, parts.task), 0
    for n in range(runs):
        rng = np.random.default_rng([n, calls, zlib.crc32(f"{kind} {net} {wobble} {place}".encode())])
        here: list[Panel] = []
        for at in rng.permutation(len(texts)):
            if len(here) + len(texts[at]) > calls:
                break
            here += texts[at]
        table = Observations()
        _take(table, Seen(), kind, parts.task, "planted", here, list(answers(rng, here, kind, net, wobble, place)))
        found = [c for c in claims(table, of) if c.family == "net" and set(c.groups) == set(PAIR)]
        count += any(c.verdict == "shown" for c in found)
    return count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--task", default="hiring")
    args = parser.parse_args()
    for kind, candidates in ((CHOICE, 2), (RANKING, 4)):
        if args.only not in kind:
            continue
        for net in (0.02, 0.0):
            for wobble, place in MODELS:
                for calls in CALLS if net else CALLS[2:3]:
                    k = shown(args.task, kind, candidates, calls, shift(net) if net else 0.0, wobble, place, args.runs)
                    found = clopper_pearson(k, args.runs, 0.95)
                    print(
                        f"{kind} {candidates}, {100 * net:g} points, wobble {wobble}, first place {place}, {calls:,} calls: "
                        f"{100 * k / args.runs:.1f} % ({100 * (found.low or 0):.0f}–{100 * (found.high or 0):.0f})",
                        flush=True,
                    )
                    if net and k >= 0.97 * args.runs:
                        break


if __name__ == "__main__":
    main()
