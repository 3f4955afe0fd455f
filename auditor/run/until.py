"""``--until-decided``: looks at the answers at fixed shares of the plan, and asks on only about what is open.

Of an attribute whose dictionary names a primary pair, only what decides the pair is asked: the two groups in several
wordings, and a placebo edit.

When a look is due depends on how many texts were taken and how many prompts were answered, never on time or on what
came from a cache: a run that is gone on with looks and stops where it would have.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from auditor.core.record.measured import Claim
from auditor.core.types import DECIDED, NEUTRAL, Answer, Case, Check, Edit, Variant, is_beside, is_wording
from auditor.measure.claims import MIN_TEXTS, Question
from auditor.measure.findings import claims
from auditor.measure.intervals import LOOKS, Look, nominal, spent
from auditor.measure.observations import attributes_of

if TYPE_CHECKING:
    from auditor.core.plan import Plan
    from auditor.perturb.dictionaries import Dictionary
    from auditor.run.rounds import Round
    from auditor.run.state import Answers, Prompts, State

PLANNED = ("max_calls", "max_cost")  # limits that the looks were planned with
EVERY = 8  # texts between two looks at what is left of the calls
PLAIN = 3.0  # versions of a text in one wording, before any text was seen
Key = tuple[str, ...]


class _Row(NamedTuple):
    """A look as ``looks`` in ``run.json`` has it."""

    look: Look
    calls: int
    open: tuple[str, ...]


class Until:
    """What a run knows of its looks."""

    def __init__(self, loop: State) -> None:
        self._loop = loop
        self._rows: list[_Row] = []
        self._decided: dict[Key, Claim] = {}  # as they were at their look: later answers take nothing back
        self._closed: dict[str, int] = {}  # attribute -> looks that it had
        self.done = False  # nothing is open, or the plan is used up
        self.full = False  # no calls are left for a further text
        self._asked: dict[str, tuple[str, ...]] = {}  # what was asked of each case
        self._planned = self._plain = 0
        self._further = 0
        self._ends = {d.attribute: _ends(d) for d in loop.parts.dictionaries if _asks_pair(loop.plan, d)}

    def share(self) -> float:
        """How much of the plan is done: of its texts, calls or cost, whichever is nearest to its end."""
        loop, plan = self._loop, self._loop.plan
        done = [0.0]
        if loop.parts.seeds:
            done.append(self._texts() / loop.parts.seeds)
        if plan.max_calls:
            done.append(self._calls() / plan.max_calls)
        if plan.max_cost:
            done.append(sum(t.cost_usd for t in loop.tallies) / plan.max_cost)
        return min(1.0, max(done))

    def look(self) -> None:
        """After a round: look, if a look is due."""
        share = self.share()
        if any(self._seen < due <= share for due in LOOKS):
            self._look(share)

    def claims(self) -> list[Claim]:
        """What is decided, and where the rest stands; takes the last look of a run that was not decided before."""
        loop = self._loop
        planned_end = not loop.status_reason or loop.stopped_by in PLANNED
        share = 1.0 if planned_end else self.share()
        return self._now() if self.done or share <= self._seen else self._look(share)

    def record(self) -> list[dict[str, object]]:
        """The looks as ``run.json`` has them."""
        return [
            {"texts": row.look.texts, "calls": row.calls, "share": row.look.share}
            | {"spent": spent(row.look.share), "alpha": nominal(self._until(n)), "open": list(row.open)}
            for n, row in enumerate(self._rows, start=1)
        ]

    @property
    def _seen(self) -> float:
        return self._rows[-1].look.share if self._rows else 0.0

    def _calls(self) -> int:
        return sum(len(t.seen) for t in self._loop.tallies)

    def _until(self, number: int | None) -> tuple[Look, ...]:
        return tuple(row.look for row in self._rows[:number])

    def _look(self, share: float) -> list[Claim]:
        here = self._loop.counts["cases"]
        if not here:
            return []
        # Without a further text it is the same look again, and more may be spent on it.
        self._rows = [row for row in self._rows if row.look.texts < here]
        self._rows.append(_Row(Look(share, here), self._calls(), ()))
        now = self._now()
        self._decided |= {_key(c): c for c in now if c.verdict in DECIDED}
        # What has too few texts at this pace will never be decided, and is not asked about.
        left = {
            c.attribute
            for c in primary(now, self._question().primary)
            if c.verdict not in DECIDED and c.texts >= MIN_TEXTS * share
        }
        for attribute in {c.attribute for c in now} - left - self._closed.keys():
            self._closed[attribute] = len(self._rows)
        still = tuple(sorted(left - self._closed.keys()))
        self._rows[-1] = self._rows[-1]._replace(open=still)
        self.done = share >= 1 or (bool(now) and not still)
        return now

    def _question(self) -> Question:
        loop = self._loop
        asked = loop.question()
        names = attributes_of(loop.observed.table)
        looks = {attribute: self._until(self._closed.get(attribute)) for attribute in names}
        return dataclasses.replace(asked, looks=looks)

    def _now(self) -> list[Claim]:
        now = claims(self._loop.observed.table, self._question())
        return [self._decided.get(_key(c), c) for c in now]

    # -- what is asked ------------------------------------------------------

    def wanted(self, case: Case, checks: Mapping[str, Check]) -> list[Variant]:
        """The versions of ``case`` that are asked about: those that decide what is open, and then the original."""
        if case.id not in self._asked:
            self._asked[case.id] = tuple(v.id for v in self._choose(case, checks))
        ids = set(self._asked[case.id])
        return [v for v in (case.original, *case.variants) if v.id in ids]

    def _choose(self, case: Case, checks: Mapping[str, Check]) -> list[Variant]:
        shape = self._loop.observed.shape
        closed = self._closed.keys()
        asked = [v for v in case.variants if self._loop.asked(checks[v.id])]
        if len(self._asked) % EVERY == 0:
            self._further = self._affordable()
        kept = [v for v in self._decisive(asked) if not set(shape(v).attributes) <= closed]
        if not kept:
            return []
        left = self._most() - self._planned
        if self._cost(kept) > left:  # a text more says more than a wording
            kept = [v for v in kept if not is_wording(v)]
        self.full = self.full or self._cost(kept) > left
        if self.full:
            return []
        once = sum(map(is_wording, kept))
        self._planned += self._cost(kept)
        self._plain += len(kept) + 1 - once
        return [case.original, *kept]

    def _cost(self, versions: Sequence[Variant]) -> int:
        once = sum(map(is_wording, versions))
        return (len(versions) + 1 - once) * self._replicates + once

    @property
    def _replicates(self) -> int:
        return max((t.replicates for t in self._loop.tallies), default=1)

    def _most(self) -> float:
        """How many prompts about texts the calls of the plan allow each model in each format."""
        loop = self._loop
        if loop.plan.max_calls is None:
            return math.inf
        formats = sum(len(t.formats) for t in loop.tallies) or 1
        left = loop.plan.max_calls / loop.parts.task.calls - sum(t.further for t in loop.tallies)
        return left / formats

    def _affordable(self) -> int:
        """How many further wordings of each text there are calls for: another text says more than another wording."""
        loop, plan = self._loop, self._loop.plan
        most, texts = self._most(), self._texts()
        cost = sum(t.cost_usd for t in loop.tallies)
        if plan.max_cost and cost:
            formats = sum(len(t.formats) for t in loop.tallies) or 1
            most = min(most, math.floor(self._calls() * plan.max_cost / cost) / formats)
        if most == math.inf or not loop.parts.seeds:
            return plan.wordings - 1
        cases = len(self._asked)
        left = max(1, loop.parts.seeds - texts) * (cases / max(1, texts) if cases else 1.0)
        plain = (self._plain / cases if cases else PLAIN) * self._replicates
        room = (most - self._planned) / left - plain
        return min(plan.wordings - 1, max(0, math.floor(room / 2)))

    def _texts(self) -> int:
        """How many texts were taken: one that is given makes one case or none, a grammar skips without counting."""
        skipped = self._loop.parts.suite.skipped if self._loop.parts.texts else {}
        return int(self._loop.counts["taken"] + sum(skipped.values()))

    def _decisive(self, variants: Sequence[Variant]) -> list[Variant]:
        """Of a primary pair: both groups, as many wordings as there are calls for, a placebo; of others all."""
        primary = self._ends
        wordings: dict[tuple[str, ...], list[frozenset[Edit]]] = {}
        for v in filter(is_wording, variants):
            taken = wordings.setdefault(v.attributes, [])
            if (neutral := _neutral(v)) not in taken and len(taken) < self._further:
                taken.append(neutral)
        kept: dict[object, Variant] = {}
        for v in variants:
            ends = primary.get(v.attributes[0]) if v.order == 1 else None
            if is_wording(v):
                if _neutral(v) in wordings[v.attributes]:
                    kept[v.id] = v
            elif ends is None or (is_beside(v) and _neutral(v) in wordings.get(v.attributes, ())):
                kept[v.id] = v  # a placebo may be one side of a wording
            elif is_beside(v):
                kept.setdefault((v.attributes, "placebo"), v)
            elif len(v.directions) == 1 and v.directions[0][1] in ends[0] and v.directions[0][2] in ends[1]:
                kept.setdefault(v.directions, v)
        real = {v.attributes for v in kept.values() if not is_beside(v)}
        return [v for v in kept.values() if v.attributes in real or v.attributes[0] not in primary]

    def leave(self, made: Round, prompts: Prompts, answers: Answers) -> None:
        """Say of the versions that were left unasked that they were."""
        for case in made.cases:
            asked = {v.id for v in self.wanted(case, made.checks)}
            for variant in (case.original, *case.variants):
                for name, own in answers.items():
                    if variant.id not in asked and (variant.id, name) in prompts:
                        own[variant.id].append(Answer(status="not_asked"))


def primary(claims: Iterable[Claim], pairs: Mapping[str, tuple[str, str]]) -> list[Claim]:
    """The claims that a run goes on for: an attribute's primary pair, or all its net claims where it has none."""
    net = [c for c in claims if c.family == "net"]
    named = {c.attribute for c in net if pairs.get(c.attribute) == c.groups}
    return [c for c in net if c.attribute not in named or pairs[c.attribute] == c.groups]


def _neutral(v: Variant) -> frozenset[Edit]:
    """The edits of a version that stand for no group, whatever they are made for."""
    return frozenset(
        dataclasses.replace(e, kind="wording", source_group="", target_group="") for e in v.edits if e.kind in NEUTRAL
    )


def _key(c: Claim) -> Key:
    return (c.family, c.attribute, *c.groups, c.label, c.model, c.format)


def _asks_pair(plan: Plan, dictionary: Dictionary) -> bool:
    """Whether the primary pair is what a plan asks about: no other groups, and no other reference, are named."""
    name, pair = dictionary.attribute, dictionary.primary
    named = [entry.partition(":")[2] for entry in plan.groups if entry.startswith(f"{name}:")]
    return (
        pair is not None and name not in plan.references and all(set(entry.split("/")) == set(pair) for entry in named)
    )


def _ends(dictionary: Dictionary) -> tuple[set[str], set[str]]:
    """The groups that an edit which decides the primary pair may lead from, and to."""
    pair = set(dictionary.primary or ())
    return pair | {g.name for g in dictionary.groups.values() if g.unmarked}, pair
