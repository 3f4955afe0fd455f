"""Hidden findings for the same number of calls: ``--strategy adaptive`` beside the exhaustive order.

Both get the same texts in the same random order and the same number of questions; only distinct prompts count, each
once. The exhaustive order is measured twice: as it runs (with placebo variants, which double its questions) and
without them. A finding is confirmed where its model is declared deterministic, or where its cells came again when
they were repeated.
"""

from __future__ import annotations

import asyncio
import dataclasses
import statistics
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from common import Row

from auditor.config import Plan
from auditor.models.planted import Planted
from auditor.models.reviews import Reviews
from auditor.pipeline.confirm import confirm
from auditor.pipeline.loop import Loop
from auditor.pipeline.parts import Parts, StoredCases, prepare
from auditor.types import Case, Check, Seed

BUDGETS = (500, 1000, 2000)
SEEDS = (1, 2, 3, 4, 5)
POLARITY = Path(__file__).parents[2] / "shared" / "data" / "movie_reviews" / "sentence_polarity.zip"

WOMEN = "she|her|woman|women|girl|girls|mother|daughter|sister|wife|actress|lady|ladies"
YOUNG = "young|teenage|youthful|adolescent|younger"
MODELS: Mapping[str, Callable[[], Any]] = {
    "reviews": Reviews,
    "planted: women and Black": lambda: Planted(interaction={WOMEN, "black"}, name="planted-pair"),
    "planted: women and young": lambda: Planted(interaction={WOMEN, YOUNG}, name="planted-young"),
    "planted: weights that add up": lambda: Planted(
        additive={
            "she": 0.6,
            "woman": 0.6,
            "black": 0.5,
            "asian": 0.5,
            "young": 0.5,
            "nigerian": 0.5,
            "old": 0.2,
        },
        name="planted-additive",
    ),
    "planted: women and Black, 3 % wobble": lambda: Planted(
        interaction={WOMEN, "black"}, wobble=0.03, name="planted-wobble"
    ),
}


def embedded() -> list[Seed]:
    """The embedded texts of the sentiment task."""
    from auditor import tasks

    return list(tasks.load("sentiment").seeds())


def polarity() -> list[Seed]:
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
    return [Seed(id=f"p{i}", text=line) for i, line in enumerate(lines) if line]


@dataclasses.dataclass(frozen=True)
class Count:
    """What a run had found when a number of calls was reached."""

    hidden: int  # confirmed hidden variants
    texts: int  # distinct texts with one


def plan(model: Any, **options: Any) -> Plan:
    """The plan of one run; a model that wobbles is asked three times, as by default."""
    return Plan(task="sentiment", models=(model.name,), cache=False, **options)


def confirmed(loop: Loop, told: Mapping[Any, Mapping[str, Any]], first: int | None = None) -> Count:
    """Hidden variants that are confirmed, among the ``first`` ones that were found."""
    tally = loop.tallies[0]
    found = [
        case
        for case, variant_id, name in tally.hidden[:first]
        if tally.model.deterministic
        or told.get((tally.model.name, variant_id, name), {}).get("confirmed") is True
    ]
    return Count(len(found), len({case.original.input for case in found}))


def to_the_limit(loop: Loop) -> Mapping[Any, Mapping[str, Any]]:
    """Run ``loop`` to its limit; confirmation is asked beyond it, for both strategies alike."""

    async def work() -> Mapping[Any, Mapping[str, Any]]:
        await loop.run()
        loop.status_reason = ""
        loop.parts.budget.max_calls = None
        loop.clients[0].stopped = None
        return await confirm(loop)

    return asyncio.run(work())


def searched(
    make: Callable[[], Any], texts: Sequence[Seed], seed: int, budgets: Sequence[int]
) -> dict[int, Count]:
    """The adaptive strategy: one run, read off at the end of the last round within each budget."""
    model = make()
    parts = prepare(
        plan(model, strategy="adaptive", seed=seed, max_calls=max(budgets)),
        models=[model],
        seeds=shuffled(texts, seed),
    )
    loop = Loop(parts, None)
    reached: list[tuple[int, int]] = [(0, 0)]
    tell = parts.suite.tell

    def noted(verdicts: Sequence[Any]) -> None:
        reached.append((loop.tallies[0].counts["calls"], len(loop.tallies[0].hidden)))
        tell(verdicts)

    parts.suite.tell = noted
    told = to_the_limit(loop)
    return {
        calls: confirmed(loop, told, max(found for asked, found in reached if asked <= calls))
        for calls in budgets
    }


Stored = list[tuple[Case, dict[str, Check]]]


def generated(texts: Sequence[Seed], seed: int, *, placebos: bool, upto: int) -> Stored:
    """The cases of the exhaustive order that ``upto`` calls can reach, with their checks."""
    from auditor.pipeline.rounds import gated

    parts = prepare(Plan(task="sentiment", seed=seed, cache=False), models=[], seeds=shuffled(texts, seed))
    out: Stored = []
    inputs: set[Any] = set()
    while len(inputs) < upto and (cases := parts.suite.ask(16, Random(0))):
        cases, checks = gated(parts.plan, cases, parts.gate, parts.placebos if placebos else None, {})
        for case in cases:
            out.append((case, {v.id: checks[v.id] for v in case.variants}))
            inputs |= {v.input for v in case.variants if checks[v.id].status != "invalid"} | {
                case.original.input
            }
    return out


def exhaustive(make: Callable[[], Any], cases: Stored, seed: int, calls: int) -> Count:
    """The exhaustive order, over cases that were made before."""
    model = make()
    parts: Parts = prepare(plan(model, seed=seed, max_calls=calls), models=[model], cases=cases)
    assert isinstance(parts.suite, StoredCases)
    loop = Loop(parts, None)
    return confirmed(loop, to_the_limit(loop))


def shuffled(texts: Sequence[Seed], seed: int) -> list[Seed]:
    """The texts in a random order."""
    out = list(texts)
    Random(seed).shuffle(out)
    return out


def compare(
    name: str,
    texts: Sequence[Seed],
    models: Mapping[str, Callable[[], Any]],
    budgets: Sequence[int] = BUDGETS,
    seeds: Sequence[int] = SEEDS,
) -> list[Row]:
    """One row for each model, budget and baseline: medians over ``seeds``."""
    found: dict[tuple[str, int, str], list[Count]] = {}
    for seed in seeds:
        with_, without = (
            generated(texts, seed, placebos=placebos, upto=max(budgets)) for placebos in (True, False)
        )
        for label, make in models.items():
            for calls, count in searched(make, texts, seed, budgets).items():
                found.setdefault((label, calls, "adaptive"), []).append(count)
                found.setdefault((label, calls, "exhaustive"), []).append(
                    exhaustive(make, with_, seed, calls)
                )
                found.setdefault((label, calls, "without placebos"), []).append(
                    exhaustive(make, without, seed, calls)
                )
    rows = []
    for label in models:
        for calls in budgets:
            new = found[label, calls, "adaptive"]
            for beside in ("exhaustive", "without placebos"):
                old = found[label, calls, beside]
                value, base = (statistics.median(c.hidden for c in counts) for counts in (new, old))
                rows.append(
                    Row(
                        f"{label}, {name}, {calls:,} calls",
                        value,
                        "confirmed hidden findings",
                        len(seeds),
                        beside,
                        base,
                        value / base if base else None,
                        "in texts: "
                        + " / ".join(
                            f"{statistics.median(c.texts for c in counts):g}" for counts in (new, old)
                        )
                        + "; each run: "
                        + " ".join(f"{a.hidden}/{b.hidden}" for a, b in zip(new, old, strict=True)),
                    )
                )
    return rows


def measure() -> list[Row]:
    """Embedded texts with every model; film-review sentences with ``reviews``."""
    rows = compare("embedded texts", embedded(), MODELS)
    sentences = polarity()
    if sentences:
        rows += compare("film-review sentences", sentences, {"reviews": Reviews})
    return rows
