"""What the claims of a run show, and how often they err: planted answers to the cases that the product makes.

The cases come once from the product's own pipeline; answers are drawn by `planted_answers` and judged by
`auditor.measure.findings.claims`. `shown` measures all settings and prints the table.
"""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from planted_answers import MODEL, YES, Effects, Simulated, Told

from auditor.core.plan import UNTIL_WORDINGS, Plan
from auditor.core.record.measured import Claim
from auditor.measure.claims import Question
from auditor.measure.contrasts import Versions
from auditor.measure.findings import claims
from auditor.measure.intervals import clopper_pearson
from auditor.measure.power import shift, spread
from auditor.run.preparation import prepare
from auditor.run.state import question as question_of

Scale = Literal["share", "log_odds", "number"]
PLANNED = {
    "sentiment": "vader",
    "hiring": "rules",
    "resume": "rules",
}  # local models: what they answer is not asked here
PAIR = {"female": 0.5, "male": -0.5}
# Every claim of gender lies at one unit at least: a group minus the mean of the others, women minus men.
ALL_APART = {"female": 0.5, "male": -0.5, "nonbinary": 1.0, "trans_female": 1.0, "trans_male": -1.0}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One row of the table."""

    name: str
    effects: Effects
    kind: Literal["null", "power", "bounded"] = "null"
    scale: Scale = "share"
    worth: Mapping[str, float] = dataclasses.field(default_factory=lambda: PAIR)
    task: str = "sentiment"
    attributes: tuple[str, ...] | None = ("gender",)
    most_calls: int | None = None  # of what --until-decided asks: the primary pair in several wordings
    delta: float = 0.05
    must: float | None = None  # share of runs that a power row has to reach


@dataclass
class Measured:
    """In how many runs some claim has each verdict."""

    shown: int = 0
    bounded: int = 0
    refusals: int = 0
    instability: int = 0


@cache
def plan(
    task: str,
    attributes: tuple[str, ...] | None,
    until: bool = False,
    wordings: int = 1,
    most: int | None = None,
    carrier: tuple[str, ...] = (),
) -> tuple[Told, Question]:
    """The versions of a plan, and the question that its claims answer; ``most`` calls are a limit to plan with."""
    given = {"task": task, "models": (PLANNED[task],), "attributes": attributes, "carrier": carrier}
    given |= {"until_decided": True, "max_calls": most} if until else {"wordings": wordings}
    parts = prepare(Plan.of(given))
    question = question_of(parts.task, parts.plan, parts.dictionaries, {MODEL: True}, {})
    table = Told.of(parts)
    if most is not None:
        table = first(table, most)
    return table, dataclasses.replace(question, outcomes=(YES,))


def first(table: Told, most: int) -> Told:
    """The texts that ``most`` calls are enough for."""
    by_text: dict[int, list[int]] = {}
    for n, text in enumerate(table.columns().version_text.tolist()):
        by_text.setdefault(text, []).append(n)
    ends = itertools.accumulate(map(len, by_text.values()))
    return table.only(n for rows, end in zip(by_text.values(), ends, strict=True) if end <= most for n in rows)


def runs(setting: Setting, many: int, start: int = 0) -> Iterable[tuple[Simulated, list[Claim], np.random.Generator]]:
    """Repetitions of a setting: the table and the claims of each."""
    table, question = plan(setting.task, setting.attributes, wordings=UNTIL_WORDINGS if setting.attributes else 1)
    if setting.most_calls is not None:
        table, _ = plan(setting.task, setting.attributes, until=True, most=setting.most_calls)
    number = setting.scale == "number"
    question = dataclasses.replace(
        question, outcomes=() if number else (YES,), number=number, unit="points", delta=setting.delta
    )
    simulated = Simulated(table, "gender", setting.worth)
    laid_out = Versions(simulated, simulated.columns())
    for n in range(start, start + many):
        rng = np.random.default_rng([n, zlib.crc32(setting.name.encode())])
        simulated.draw(rng, setting.effects, scores=setting.scale == "log_odds", number=number)
        yield simulated, claims(simulated, question, laid_out), rng


def measure_setting(setting: Setting, many: int, start: int = 0) -> Measured:
    """How often the claims of a setting come to each verdict; of a power row, the claim about women and men."""
    count = Measured()
    for _, found, _ in runs(setting, many, start):
        # Words of groups that do more than neutral words are no false find of the omnibus.
        net = [c for c in found if c.family == "net" or (c.family == "omnibus" and setting.effects.neutral == 1)]
        if setting.kind == "power":
            net = [c for c in net if set(c.groups) == set(PAIR)]
        shown = {c.family for c in found if c.verdict == "shown"}
        count.shown += any(c.verdict == "shown" for c in net)
        count.bounded += any(c.verdict == "bounded" for c in net)
        count.refusals += "refusal" in shown
        count.instability += "instability" in shown
    return count


SMALL, LARGE = spread(0.016), spread(0.032)


def settings() -> list[Setting]:
    """All rows."""
    two, five = Effects(net=shift(0.02)), Effects(net=shift(0.05))
    found = [
        Setting(name=f"{name}, {scale}", effects=effects, scale=scale, task=task, most_calls=2000)
        for task in ("sentiment", "hiring")
        for name, effects in nulls().items()
        for scale in (("share", "log_odds") if task == "sentiment" else ("share",))
    ]
    found += [
        Setting(name=f"score task, word sd {sd}", effects=Effects(word=sd, noise=0.1), scale="number", most_calls=2000)
        for sd in (0.1, 0.2)
    ]
    found += [
        Setting(name=f"{name}, all attributes", effects=effects, attributes=None)
        for name, effects in nulls().items()
        if name in ("word sd 0.1", "words 0.2 each", "refusals by length", "text noise 3.2 %")
    ]
    for noise, flips in ((SMALL, "1.6 %"), (LARGE, "3.2 %")):
        for task in ("sentiment", "hiring"):
            found.append(
                Setting(
                    name=f"2 % effect, noise {flips}",
                    effects=dataclasses.replace(two, noise=noise),
                    kind="power",
                    task=task,
                    most_calls=2000,
                    must=0.8,
                )
            )
        found.append(
            Setting(
                name=f"2 % effect, noise {flips}, 200 calls",
                effects=dataclasses.replace(two, noise=noise),
                kind="power",
                scale="log_odds",
                most_calls=200,
                must=0.8,
            )
        )
    for task, (scale, must) in itertools.product(("sentiment", "hiring"), (("log_odds", 0.95), ("share", 0.6))):
        found.append(
            Setting(
                name=f"5 % effect, word sd 0.05, {scale}",
                effects=dataclasses.replace(five, word=0.05),
                kind="power",
                scale=scale,  # type: ignore[arg-type]
                task=task,
                most_calls=1336,
                must=must,
            )
        )
    # Pairs of one résumé with twelve posts are no twelve texts.
    for kind, effects, must in (
        ("null", Effects(per_source=0.5, noise=SMALL), None),
        ("power", Effects(net=shift(0.1), per_source=0.2, noise=SMALL), 0.8),
    ):
        found.append(
            Setting(
                name="effects of résumés" if kind == "null" else "10 % effect, effects of résumés",
                effects=effects,
                kind=kind,  # type: ignore[arg-type]
                task="resume",
                must=must,
            )
        )
    return [*found, *at_delta()]


def at_delta() -> list[Setting]:
    """Settings in which every claim lies at delta."""
    return [
        Setting(
            name=f"at delta, {name}, {scale}",
            effects=dataclasses.replace(effects, net=1.03 * shift(0.05)),
            kind="bounded",
            scale=scale,  # type: ignore[arg-type]
            worth=ALL_APART,
        )
        for name, effects in {
            "noise 1.6 %": Effects(noise=SMALL),
            "no noise": Effects(),
            "word sd 0.05": Effects(word=0.05),
        }.items()
        for scale in ("share", "log_odds")
    ]


def nulls() -> dict[str, Effects]:
    """No difference between groups, and something else that moves answers."""
    return {
        "text noise 1.6 %": Effects(noise=SMALL),
        "text noise 3.2 %": Effects(noise=LARGE),
        "word sd 0.02": Effects(word=0.02, noise=SMALL),
        "word sd 0.05": Effects(word=0.05),
        "trigrams sd 0.03": Effects(trigram=0.03, noise=SMALL),
        "word sd 0.1": Effects(word=0.1),
        "word sd 0.3": Effects(word=0.3, noise=SMALL),
        "word sd 0.1, neutral words a third": Effects(word=0.1, neutral=1 / 3),
        "words 0.1 each": Effects(more_words=0.1, noise=SMALL),
        "words 0.2 each": Effects(more_words=0.2, noise=SMALL),
        "characters 0.02 each": Effects(more_chars=0.02, noise=SMALL),
        "edited 0.2": Effects(edited=0.2, noise=SMALL),
        "position 0.6": Effects(position=0.6, noise=SMALL),
        "noise by changed words": Effects(per_change=0.1),
        "text hash": Effects(noise=10.0),
        "fragile texts 4 %": Effects(fragile=0.04, noise=SMALL),
        "wobble 1 %": Effects(wobble=0.01, replicates=3),
        "wobble 10 %": Effects(wobble=0.1, replicates=3),
        "drift 0.5": Effects(drift=0.5, noise=SMALL),
        "refusals by length": Effects(refused=0.03, refused_per_word=0.7, noise=SMALL),
        "refusals at random": Effects(refused=0.05, noise=SMALL),
    }


# -- coverage -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Covered:
    """In how many runs the 95 % intervals of a claim hold what is true."""

    group: int
    words: int


def coverage(name: str, effects: Effects, scale: Scale, many: int) -> Covered:
    """Of the claim about women and men; words are drawn anew in each run.

    For the group the truth is the planted net effect. For these words it is what the words at hand come to: the same
    claim made from answers without any chance in them.
    """
    setting = Setting(name=name, effects=effects, kind="power", scale=scale)
    table, question = plan(setting.task, setting.attributes, wordings=UNTIL_WORDINGS)
    expected = Simulated(table, "gender", PAIR)
    laid_out = Versions(expected, expected.columns())
    number = dataclasses.replace(question, outcomes=(), number=True)
    group = words = 0
    variance = 1 + effects.noise**2
    for n, (simulated, found, _) in enumerate(runs(setting, many)):
        claim = next(c for c in found if set(c.groups) == set(PAIR))
        rng = np.random.default_rng([n, zlib.crc32(name.encode())])
        centre = simulated.centres(rng, effects)
        truth_group = effects.net
        if scale == "share":
            from scipy.special import ndtr

            centre = ndtr(centre / np.sqrt(variance))
            # The words of both sides are moved: a version has two, one in and one out.
            truth_group = 2 * float(ndtr(effects.net / 2 / np.sqrt(variance + 2 * effects.word**2))) - 1
        expected.give(centre)
        truth = next(c for c in claims(expected, number, laid_out) if set(c.groups) == set(PAIR)).words_estimate
        assert claim.low is not None
        assert claim.high is not None
        assert truth is not None
        assert claim.words_low is not None
        assert claim.words_high is not None
        group += claim.low <= truth_group <= claim.high
        words += claim.words_low <= truth <= claim.words_high
    return Covered(group=group, words=words)


def covered() -> dict[str, Effects]:
    """Settings whose intervals are looked at."""
    five = Effects(net=shift(0.05))
    return {
        "5 % effect, noise 3.2 %": dataclasses.replace(five, noise=LARGE),
        "5 % effect, word sd 0.05": dataclasses.replace(five, word=0.05, noise=SMALL),
        "5 % effect, word sd 0.2": dataclasses.replace(five, word=0.2, noise=SMALL),
        "no effect, word sd 0.1": Effects(word=0.1, noise=SMALL),
    }


def limits(count: int, many: int) -> str:
    """A share with its 95 % limits, in per cent."""
    found = clopper_pearson(count, many, 0.95)
    return f"{100 * count / many:.1f} ({100 * (found.low or 0.0):.1f}–{100 * (found.high or 0.0):.1f})"
