"""How often ``--until-decided`` shows a difference, what it errs, and what it costs: planted answers to real cases.

The cases come once from the product's own pipeline. In each of some random orders `Until` says once what it wants asked
of an undecided run; answers to that are drawn again and again, and looked at where the run looks, until a look decides.
`shown` measures all settings and prints the table.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections import Counter
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from planted_answers import MODEL, YES, Effects, Simulated, Told

from auditor.core.plan import Plan
from auditor.core.record.base import PositiveControl
from auditor.core.record.measured import Claim
from auditor.core.types import Answer, Case, Check
from auditor.measure.claims import Question, decide, net
from auditor.measure.contrasts import Versions
from auditor.measure.intervals import Look
from auditor.measure.power import shift, spread
from auditor.run.dryrun import cases_of
from auditor.run.preparation import Parts, prepare
from auditor.run.rounds import FEW
from auditor.run.state import Observed, State
from auditor.run.state import question as question_of
from auditor.run.until import DECIDED, Until

BUDGET = 2000
ORDERS = 8  # of the texts
PAIR = {"female": 0.5, "male": -0.5}


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
def planned(task: str) -> tuple[Parts, tuple[Case, ...], dict[str, Check]]:
    """The cases of a plan about gender with ``BUDGET`` calls, made once, and the checks of their variants."""
    given = {"task": task, "attributes": ("gender",), "until_decided": True, "max_calls": BUDGET}
    parts = prepare(Plan.of(given), models=[])
    found: list[Case] = []
    checked: dict[str, Check] = {}
    for case, checks in cases_of(parts):
        found.append(case)
        checked.update(checks)
    return parts, tuple(found), checked


class Stage(NamedTuple):
    """What was asked up to a look."""

    look: Look
    table: Simulated
    versions: Versions


class Undecided(Until):
    """Looks that decide nothing."""

    def _now(self) -> list[Claim]:
        return []


@cache
def stages(task: str, order: int) -> tuple[Stage, ...]:
    """The looks of a run that decides nothing, with the texts in a random ``order``."""
    parts, cases, checks = planned(task)
    ordered = Random(order).sample(cases, len(cases))
    tally = SimpleNamespace(
        seen=[], cost_usd=0.0, control={"bare": PositiveControl(seen=True, differ=1, pairs=1)}, model=SimpleNamespace(name="m"), formats=("bare",),
        replicates=1, further=0,
    )  # fmt: skip
    loop: Any = SimpleNamespace(
        parts=SimpleNamespace(
            seeds=len(cases), suite=SimpleNamespace(skipped={}), texts=(), task=parts.task, dictionaries=parts.dictionaries
        ),
        plan=parts.plan, counts=Counter(), tallies=[tally], observed=Observed(["m"], parts.task.score_of), status_reason="",
        stopped_by="", asked=lambda check: check.status != "invalid",
    )  # fmt: skip
    loop.question = lambda: State.question(loop)
    until = loop.until = Undecided(loop)
    asked, ends = Told(), []
    for start in range(0, len(cases), FEW):
        loop.observed.forget()
        for case in ordered[start : start + FEW]:
            answers = {v.id: [Answer(status="ok", value="")] for v in until.wanted(case, checks)}
            loop.observed.add(case, {v.id for v in case.variants if checks[v.id].status != "invalid"})
            loop.observed.take(answers, model="m", format="bare")
            for v in (case.original, *case.variants):
                if v.id in answers:
                    asked.version(case.id, v.edits, v.id, case.original.input)
                    asked.said.append(str(v.input))
            tally.seen += answers
            loop.counts.update(cases=1, taken=1)
            if len(tally.seen) >= BUDGET:
                loop.stopped_by = loop.status_reason = "max_calls"
                break
        until.look()
        if loop.status_reason or start + FEW >= len(cases):
            until.claims()
        rows = until.record()
        if len(rows) > len(ends):
            ends.append((Look(rows[-1]["share"], rows[-1]["texts"]), len(tally.seen)))
        if until.done or loop.status_reason:
            break
    found = []
    for look, calls in ends:
        table = Simulated(asked.only(range(calls)), "gender", PAIR)
        found.append(Stage(look, table, Versions(table, table.columns())))
    return tuple(found)


@cache
def asked_of(task: str, delta: float | None) -> Question:
    """What the claims are about."""
    parts = planned(task)[0]
    question = question_of(parts.task, parts.plan, parts.dictionaries, {MODEL: True}, {})
    return dataclasses.replace(question, outcomes=(YES,), delta=delta)


def run(setting: Setting, number: int, orders: int = ORDERS) -> Ended:
    """Draw answers and look at them where the run does, until a look decides."""
    question = asked_of(setting.task, setting.delta)
    looked = stages(setting.task, number % orders)
    effects = Effects(net=shift(setting.effect), word=setting.word, noise=setting.noise)
    rng = np.random.default_rng([number, zlib.crc32(setting.name.encode())])
    looked[-1].table.draw(rng, effects, scores=setting.scores)
    for n, (_, table, versions) in enumerate(looked, start=1):
        table.follow(looked[-1].table)
        now = dataclasses.replace(question, looks={"gender": tuple(stage.look for stage in looked[:n])})
        found = decide(list(net(table, table.columns(), versions, "net", now)), now)
        claim = next(c for c in found if set(c.groups) == PAIR.keys())
        if claim.verdict in DECIDED:
            break
    return Ended(claim, table.versions, n)


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
        *(Setting(name="5 % effect, word sd 0.05", effect=0.05, word=0.05, task=t) for t in ("sentiment", "hiring")),
    ]


class Measured(NamedTuple):
    """Mean calls of a run, and the runs that end with each verdict."""

    calls: int
    shown: int
    bounded: int


def measure(setting: Setting, many: int, start: int = 0) -> Measured:
    """Run a setting ``many`` times."""
    ended = [run(setting, n) for n in range(start, start + many)]
    verdicts = Counter(e.claim.verdict for e in ended)
    return Measured(round(float(np.mean([e.calls for e in ended]))), verdicts["shown"], verdicts["bounded"])
