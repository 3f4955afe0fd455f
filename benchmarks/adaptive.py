"""Confirmed hidden findings for the same number of calls: ``--strategy adaptive`` beside the exhaustive order.

A finding is a joint variant that is hidden, each pair of texts once, and it is confirmed where its model is declared
deterministic or its cells came again when they were repeated: one definition for both orders. Calls are distinct
(prompt, replicate) pairs, with placebos, controls and confirmation.

What is compared is the number of texts with a finding: several findings in one text are one. Three orders stand beside
the search: the one that runs by default (the texts in the order of their file, with placebo variants, which double its
questions), the same without placebos over the texts in random order, and a lazy one, which asks the joint variants of a
text first and their parts only where one changed the answer, as the search does. None is charged for confirming its
candidates, and the search is.
"""

from __future__ import annotations

import asyncio
import dataclasses
import statistics
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from common import SHARED, Row

from auditor.core.plan import Plan
from auditor.core.types import Case, Check, SourceText
from auditor.models.sentiment import Reviews
from auditor.run.again import confirm
from auditor.run.loop import Loop
from auditor.run.preparation import Parts, StoredCases, prepare
from auditor.testing.planted import Planted

BUDGETS = (500, 1000, 2000)
SEEDS = (1, 2, 3, 4, 5)
DEFAULT, LEAN = "exhaustive", "exhaustive, random order, no placebos"
LAZY = "joint first, random order, no placebos"
POLARITY = SHARED / "movie_reviews" / "sentence_polarity.zip"

MEN = "he|his|him|man|men|boy|boys|father|son|brother|husband|actor|gentleman"
WOMEN = "she|her|woman|women|girl|girls|mother|daughter|sister|wife|actress|lady|ladies"
YOUNG = "young|teenage|youthful|adolescent|younger"
MODELS: Mapping[str, Callable[[], Any]] = {
    "reviews": Reviews,
    "planted: women and Black": lambda: Planted(interaction={WOMEN, "black"}, name="planted-pair"),
    "planted: women and young": lambda: Planted(interaction={WOMEN, YOUNG}, name="planted-young"),
    "planted: weights that add up": lambda: Planted(
        additive={"she": 0.6, "woman": 0.6, "black": 0.5, "asian": 0.5, "young": 0.5, "nigerian": 0.5, "old": 0.2},
        name="planted-additive",
    ),
    "planted: men and Asian": lambda: Planted(interaction={MEN, "asian"}, name="planted-men"),
    "planted: weights that add up, with scores": lambda: Planted(
        additive={"he": 0.6, "man": 0.6, "black": 0.5, "german": 0.5, "old": 0.5, "elderly": 0.5, "rich": 0.3},
        scores=True,
        name="planted-scores",
    ),
    "planted: women and Black, 3 % wobble": lambda: Planted(
        interaction={WOMEN, "black"}, wobble=0.03, name="planted-wobble"
    ),
}


def embedded() -> list[SourceText]:
    """The embedded texts of the sentiment task."""
    from auditor import tasks

    return list(tasks.load("sentiment").seeds())


def polarity() -> list[SourceText]:
    """Sentences of film reviews, where the shared data are present."""
    if not POLARITY.exists():
        return []
    with zipfile.ZipFile(POLARITY) as packed:
        lines = [
            line.strip()
            for name in sorted(packed.namelist())
            if "rt-polarity." in name and "__MACOSX" not in name
            for line in packed.read(name).decode("latin-1").splitlines()
        ]
    return [SourceText(id=f"p{i}", text=line) for i, line in enumerate(lines) if line]


@dataclasses.dataclass(frozen=True)
class Count:
    """What a run had found when a number of calls was reached."""

    hidden: int  # confirmed hidden variants
    texts: int  # distinct texts with one
    calls: int  # what it had asked by then


def plan(model: Any, **options: Any) -> Plan:
    """The plan of one run; a model that wobbles is asked three times, as by default."""
    return Plan(task="sentiment", models=(model.name,), cache=False, **options)


def confirmed(loop: Loop, told: Mapping[Any, Mapping[str, Any]], first: int | None, calls: int) -> Count:
    """Hidden variants that are confirmed, among the ``first`` ones that were found."""
    tally = loop.tallies[0]
    found = {
        (case.original.input, next(v.input for v in case.variants if v.id == variant_id))
        for case, variant_id, name in tally.hidden[:first]
        if tally.model.deterministic or told.get((tally.model.name, variant_id, name), {}).get("confirmed") is True
    }
    return Count(len(found), len({original for original, _ in found}), calls)


def run(loop: Loop, *, charged: bool) -> Mapping[Any, Mapping[str, Any]]:
    """Run ``loop`` to its limit and ask candidates again, beyond the limit where that is not ``charged``."""

    async def work() -> Mapping[Any, Mapping[str, Any]]:
        await loop.run()
        if not charged:
            loop.status_reason = ""
            loop.parts.budget.max_calls = None
            loop.tallies[0].client.stopped = None
        return await confirm(loop)

    return asyncio.run(work())


def searched(
    make: Callable[[], Any], texts: Sequence[SourceText], seed: int, budgets: Sequence[int]
) -> dict[int, Count]:
    """The adaptive strategy within each budget.

    A model that is declared deterministic is searched once, and read off at the end of the last round within each
    budget. Where calls are kept for confirmation, the budget matters from the start: each has a run of its own.
    """
    if len(budgets) > 1 and not make().deterministic:
        return {calls: searched(make, texts, seed, (calls,))[calls] for calls in budgets}
    model = make()
    parts = prepare(plan(model, strategy="adaptive", seed=seed, max_calls=max(budgets)), models=[model], seeds=texts)
    loop = Loop(parts, None)
    tally = loop.tallies[0]
    reached: list[tuple[int, int]] = [(0, 0)]
    tell = parts.suite.tell

    def noted(verdicts: Sequence[Any]) -> None:
        reached.append((tally.counts["calls"], len(tally.hidden)))
        tell(verdicts)

    parts.suite.tell = noted
    told = run(loop, charged=True)
    if not model.deterministic:
        assert parts.budget.calls <= max(budgets)
        return {calls: confirmed(loop, told, None, parts.budget.calls) for calls in budgets}
    at = {calls: max(point for point in reached if point[0] <= calls) for calls in budgets}
    return {calls: confirmed(loop, told, found, asked) for calls, (asked, found) in at.items()}


Stored = list[tuple[Case, dict[str, Check]]]


def generated(texts: Sequence[SourceText], seed: int, *, placebos: bool, upto: int) -> Stored:
    """The cases of the exhaustive order that ``upto`` calls can reach, with their checks."""
    from auditor.run.rounds import gated

    parts = prepare(Plan(task="sentiment", seed=seed, cache=False), models=[], seeds=texts)
    out: Stored = []
    inputs: set[Any] = set()
    while len(inputs) < upto and (cases := parts.suite.ask(16, Random(0))):
        cases, checks = gated(parts.plan, cases, parts.gate, parts.placebos if placebos else None, {})
        for case in cases:
            out.append((case, {v.id: checks[v.id] for v in case.variants}))
            inputs |= {v.input for v in case.variants if checks[v.id].status != "invalid"} | {case.original.input}
    return out


def exhaustive(make: Callable[[], Any], cases: Stored, seed: int, calls: int) -> Count:
    """The exhaustive order, over cases that were made before."""
    model = make()
    # Cases that are marked as directed are asked joint variants first.
    first = any(case.sampling == "directed" for case, _ in cases)
    asked = plan(model, seed=seed, max_calls=calls, **({"strategy": "adaptive"} if first else {}))
    parts: Parts = prepare(asked, models=[model], cases=cases)
    assert isinstance(parts.suite, StoredCases)
    loop = Loop(parts, None)
    told = run(loop, charged=False)
    return confirmed(loop, told, None, calls)


def lazy(cases: Stored) -> Stored:
    """The cases with joint variants, to be asked these first."""
    return [
        (dataclasses.replace(case, sampling="directed"), checks)
        for case, checks in cases
        if any(v.order > 1 for v in case.variants)
    ]


def shuffled(texts: Sequence[SourceText], seed: int) -> list[SourceText]:
    """The texts in a random order."""
    out = list(texts)
    Random(seed).shuffle(out)
    return out


def mean(values: Iterable[float]) -> float:
    """Their mean, to two places."""
    return round(statistics.fmean(values), 2)


def compare(
    name: str,
    texts: Sequence[SourceText],
    models: Mapping[str, Callable[[], Any]],
    budgets: Sequence[int] = BUDGETS,
    seeds: Sequence[int] = SEEDS,
) -> list[Row]:
    """Rows for each model and budget, one beside each other order: means over ``seeds``."""
    found: dict[tuple[str, int, str], list[Count]] = {}
    for seed in seeds:
        default = generated(texts, seed, placebos=True, upto=max(budgets))
        lean = generated(shuffled(texts, seed), seed, placebos=False, upto=4 * max(budgets))
        for label, make in models.items():
            for calls, count in searched(make, texts, seed, budgets).items():
                found.setdefault((label, calls, "adaptive"), []).append(count)
                found.setdefault((label, calls, DEFAULT), []).append(exhaustive(make, default, seed, calls))
                found.setdefault((label, calls, LEAN), []).append(exhaustive(make, lean, seed, calls))
                found.setdefault((label, calls, LAZY), []).append(exhaustive(make, lazy(lean), seed, calls))
    return [
        row(f"{label}, {name}, {calls:,} calls", found[label, calls, "adaptive"], beside, found[label, calls, beside])
        for label in models
        for calls in budgets
        for beside in (DEFAULT, LEAN, LAZY)
    ]


def row(name: str, new: Sequence[Count], beside: str, old: Sequence[Count]) -> Row:
    """Means of both, and each run."""
    value, base = (mean(c.texts for c in counts) for counts in (new, old))
    findings = " / ".join(f"{mean(c.hidden for c in counts):g}" for counts in (new, old))
    runs = " ".join(f"{a.texts}/{b.texts}" for a, b in zip(new, old, strict=True))
    return Row(
        name,
        value,
        "texts with a confirmed hidden finding",
        len(new),
        beside,
        base,
        value / base if base else None,
        f"means; lowest run: {min(c.texts for c in new)}; in findings: {findings}; each run: {runs}",
    )


def measure() -> list[Row]:
    """Embedded texts with every model; film-review sentences with ``reviews``."""
    rows = compare("embedded texts", embedded(), MODELS)
    sentences = polarity()
    if sentences:
        rows += compare("film-review sentences", sentences, {"reviews": Reviews}, seeds=SEEDS[:2])
    return rows
