"""The loop of an audit, and the one module that knows the order of the stages; statistics come after the last round.

The loop also asks the controls of the run.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from random import Random

from auditor.contrib.hinter import mutants
from auditor.core.errors import BudgetExceeded, PluginError, UserError
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Observer, Oracle, Suite
from auditor.core.record.base import PositiveControl
from auditor.core.types import Answer, Case, Check, Progress, Prompt, Request, Variant, Verdict, is_beside
from auditor.measure.answer_quality import Pair, control
from auditor.measure.interactions import mark_hidden
from auditor.measure.intervals import mean_interval
from auditor.measure.observations import Arm
from auditor.report import run_checks
from auditor.run import free
from auditor.run.preparation import CANARIES, CANARY_REPLICATES, Parts, StoredCases
from auditor.run.rounds import ROUND, Round, source
from auditor.run.state import LOST, NOTHING, Answered, Answers, Prompts, State, Tally, silent, together
from auditor.run.until import Until
from auditor.store.folder import RunFolder
from auditor.tasks.task import Task

MOST_CALLS = 60  # of a model that cannot be judged, until the run stops
FIRST_TEXTS = 20  # that are asked where the control was not seen, before the run goes on
CONTROL = "control"  # what stopped such a run
CANARY_FROM = 10_000  # replicate numbers that nothing else uses
TIMES = ("start", "middle", "end")


class Loop(State):
    """One run: streams cases through the stages."""

    def __init__(
        self, parts: Parts, folder: RunFolder | None = None, *, observe: Observer = silent, answered: Answered = NOTHING
    ) -> None:
        super().__init__(parts, folder, observe=observe, answered=answered)
        self.figures = Figures(parts.suite)
        self.judge = None if parts.judge is None else free.pair_judge(self, parts.judge)
        self.until = Until(self) if self.plan.until_decided else None
        self._doubtful = False  # whether the control was not seen, and too little else was asked

    async def run(self) -> None:
        """Ask, gate, question, judge, tell, until the suite is exhausted or a limit is reached."""
        rng = Random(self.plan.seed)
        rounds = source(self.parts)
        self._doubtful = await first_look(self)
        rounds.least = FIRST_TEXTS if self._doubtful else 0
        try:
            while not self.status_reason and not (self.until and (self.until.done or self.until.full)):
                made = await rounds.next(rng)
                if not made.cases:
                    break
                await self._round(made)
        finally:
            rounds.close()
        await canaries(self, end=True)
        await positive_control(self)
        done = self._generated
        self.observe(Progress(phase="generate", done=done, planned=done))

    @property
    def _generated(self) -> int:
        return self.counts["taken" if self.parts.seeds else "cases"]  # a text may have several cases

    async def _round(self, made: Round) -> None:
        self.observed.forget()
        prompts = self._take(made)
        if self._doubtful:
            first = [self._first(case, made.checks) for case in made.cases[:FIRST_TEXTS]]
            await look_further(self, first, prompts)
            self._doubtful = False
        verdicts: list[Verdict] = []
        await together(self._question(t, made, prompts, verdicts) for t in self.tallies)
        self.parts.suite.tell(sorted(verdicts, key=lambda v: (v.case_id, v.variant_id, v.model, v.format)))
        await canaries(self, end=False)
        if self.until is not None:
            self.until.look()
        await asyncio.sleep(0)

    def _take(self, made: Round) -> Prompts:
        """Journal cases and prompts; returns the prompts."""
        cases, checks, lines = made
        prompts: Prompts = {}
        written: list[tuple[str, Prompt]] = []
        for case in cases:
            self.count(case, checks)
            self.observed.add(case, {v.id for v in case.variants if checks[v.id].status != "invalid"})
            self.parts.task.about(case.original.input)
            for variant in (case.original, *case.variants):
                if variant is case.original or self.asked(checks[variant.id]):
                    for (_, name), prompt in self.prompts(variant.input).items():
                        prompts[variant.id, name] = prompt
                        written.append((variant.id, prompt))
        self.folder.add_cases((case, {v.id: checks[v.id] for v in case.variants}, lines.get(case.id)) for case in cases)
        self.folder.add_prompts(written)
        self.observe(Progress(phase="generate", done=self._generated, planned=self.parts.seeds))
        return prompts

    async def _question(self, tally: Tally, made: Round, prompts: Prompts, verdicts: list[Verdict]) -> None:
        """Ask one model about one round and judge its answers."""
        cases, checks, _ = made
        answers: Answers = {name: defaultdict(list) for name in tally.formats}
        first = [v for case in cases for v in self._first(case, checks)]
        ordered = [case for case in cases if _ordered(case)]
        # A wording more says more of a text than the same wording again.
        once = {v.id for v in first if self.observed.shape(v).kind == "wording"}
        once |= {v.id for case in ordered for v in (case.original, *case.variants)}
        await self._ask(tally, first, prompts, answers, once=once)
        if tally.replicates > 1 and not tally.client.stopped:
            again = [v for case in ordered for v in mutants.again(case, self._said(tally, case, answers))]
            await self._ask(tally, again, prompts, answers, start=1)
        if not tally.client.stopped:
            later = [v for case in ordered for v in mutants.later(case, self._said(tally, case, answers))]
            await self._ask(tally, later, prompts, answers)
        self.stop(tally.client)
        self._require_scores(tally, answers)
        if self.until is not None:
            self.until.leave(made, prompts, answers)
        begin_canaries(self, tally, cases, prompts, answers)
        for case in cases:
            for name in tally.formats:
                judged = self._judge(tally, case, name, answers[name], checks)
                tally.keep(case, judged)
                verdicts += judged
        if self.judge is not None:
            await free.prefer(self, self.judge, tally, made, answers)

    async def _ask(
        self,
        tally: Tally,
        variants: Sequence[Variant],
        prompts: Prompts,
        answers: Answers,
        *,
        once: Collection[str] = (),
        start: int = 0,
    ) -> None:
        """Ask one model about ``variants`` in its formats and put what it said into ``answers``."""
        asked = [
            (answers[name][variant.id], Request(prompt=prompt, replicate=k, variant_id=variant.id))
            for variant in variants
            for name in tally.formats
            if (prompt := prompts.get((variant.id, name))) is not None
            for k in range(start, 1 if variant.id in once else tally.replicates)
        ]
        for own, answer in await self.ask(tally, asked):
            own.append(answer)
        self._progress(tally)

    def _judge(
        self, tally: Tally, case: Case, name: str, answers: Mapping[str, list[Answer]], checks: Mapping[str, Check]
    ) -> list[Verdict]:
        """Observe what one model answered to one case in the format ``name``; the verdicts on valid edits."""
        where = {"model": tally.model.name, "format": name}
        shapes = {v.id: self.observed.shape(v) for v in case.variants}
        came = _present(case, answers)
        compared = {i: own for i, own in came.items() if i not in shapes or shapes[i].kind != "wording"}
        self.observed.take(came, **where)
        judged: list[Verdict] = []
        for verdict in mark_hidden(case, self.parts.oracle.judge(case, compared), checks):
            placebo = shapes[verdict.variant_id].arm == Arm.PLACEBO
            # Order 0: no group changed. ``attributes`` are those whose edits a placebo copies.
            order = 0 if placebo else verdict.order
            verdict = dataclasses.replace(verdict, order=order, model=tally.model.name, format=name)
            self.observed.judge(verdict)
            if not placebo and checks[verdict.variant_id].status != "invalid":
                judged.append(verdict)
        if case.sampling == "iid":
            self.figures.take(case, compared, **where)
        if self.parts.task.kind.text:  # figures are kept, texts are not
            self.observed.measure(self.parts.oracle.measure(case, compared), **where)
        return judged

    def _first(self, case: Case, checks: Mapping[str, Check]) -> Sequence[Variant]:
        if self.until is not None:
            return self.until.wanted(case, checks)
        return mutants.first(case) if _ordered(case) else (case.original, *case.variants)

    def _said(self, tally: Tally, case: Case, answers: Answers) -> list[Verdict]:
        """What the oracle says so far, in all formats."""
        return [v for name in tally.formats for v in self.parts.oracle.judge(case, _present(case, answers[name]))]

    def _require_scores(self, tally: Tally, answers: Answers) -> None:
        """Stop at once where the oracle compares scores and the model gives none."""
        if self.plan.oracle != "probability":
            return
        label = self.parts.oracle.label
        read = [a for by_id in answers.values() for own in by_id.values() for a in own if a.status == "ok"]
        if read and not any(a.scores and label in a.scores for a in read):
            raise UserError(
                f"{tally.model.name} gives no probability of {label!r}, and --oracle probability compares nothing "
                "else. Use --oracle label, or a model with scores: hf:NAME, vader, or python: and exec: adapters "
                "that return them."
            )


def _ordered(case: Case) -> bool:
    """Whether joint changes of a case are asked first, and their parts only after a change."""
    return case.suite == mutants.JointFirst.name


def _present(case: Case, answers: Mapping[str, list[Answer]]) -> dict[str, list[Answer]]:
    """The answers to the versions of ``case`` that there are any of, in its order."""
    return {v.id: answers[v.id] for v in (case.original, *case.variants) if v.id in answers}


class Figures:
    """The measures that a suite brings: a mean over cases for each model and format."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._measured: dict[tuple[str, str], list[Mapping[str, float | None]]] = defaultdict(list)  # of each case

    def take(self, case: Case, answers: Mapping[str, Sequence[Answer]], *, model: str, format: str) -> None:
        """Measure one case."""
        if not self._suite.figures:
            return
        known, measured = {figure.name for figure in self._suite.figures}, self._suite.measure(case, answers)
        for name, value in measured.items():
            if name not in known or (value is not None and not math.isfinite(value)):
                raise PluginError(f"suite {self._suite.name!r} measured {name!r} of {case.id} as {value!r}")
        self._measured[model, format].append(measured)

    def rows(self) -> list[dict[str, str | int | float | None]]:
        """Rows for ``run.json``; no limits where fewer than two cases or only equal ones came."""
        rows: list[dict[str, str | int | float | None]] = []
        for (model, format), every in self._measured.items():
            for figure in self._suite.figures:
                values = [float(value) for own in every if (value := own.get(figure.name)) is not None]
                mean, low, high = mean_interval(values) if values else (None, -math.inf, math.inf)
                rows.append(
                    {"figure": figure.name, "what": figure.what, "model": model, "format": format, "value": mean}
                    | {"low": low if math.isfinite(low) else None, "high": high if math.isfinite(high) else None}
                    | {"cases": len(values), "left_out": len(every) - len(values)}
                    | {"method": "mean over cases, t interval"}
                )
        return rows


# -- the controls: canaries, and a positive control; what they showed is in `auditor.run.run_record` ----------


def has_canaries(parts: Parts, model: Model) -> bool:
    """Whether the first prompts are asked again."""
    # Batches would be up to a day apart, and nobody expects a text to come again word for word.
    plan: Plan = parts.plan
    return not (
        model.deterministic
        or plan.protocol != "default"
        or plan.batch
        or parts.task.kind.text
        or isinstance(parts.suite, StoredCases)
    )


def begin_canaries(loop: State, tally: Tally, cases: Sequence[Case], prompts: Prompts, answers: Answers) -> None:
    """Take note of the first prompts that one model got, and of its answers."""
    if tally.canaries or not has_canaries(loop.parts, tally.model):
        return
    for case, name in itertools.product(cases[:CANARIES], tally.formats):
        if (prompt := prompts.get((case.original.id, name))) is not None:
            start: list[object] = [a.value for a in answers[name].get(case.original.id, ()) if a.status == "ok"]
            tally.canary_prompts[case.id, name], tally.canaries[case.id, name] = prompt, {"start": start}


async def canaries(loop: State, *, end: bool) -> None:
    """Ask the first prompts again, in the middle of the run and at its end."""
    middle = loop.counts["taken"] < (loop.parts.seeds or 0) <= 2 * loop.counts["taken"]
    time_ = "end" if end else "middle" if middle else ""
    for tally in loop.tallies if time_ and not loop.status_reason else ():
        if tally.canaries and not any(time_ in times for times in tally.canaries.values()):
            await _ask_canaries(loop, tally, time_)


async def _ask_canaries(loop: State, tally: Tally, time_: str) -> None:
    first = CANARY_FROM * TIMES.index(time_)
    asked = [
        (key, Request(prompt=prompt, replicate=first + k, variant_id=f"{key[0]}.o"))
        for key, prompt in tally.canary_prompts.items()
        for k in range(CANARY_REPLICATES)
    ]
    for key, answer in await loop.ask(tally, asked, further=True):
        if answer.status not in LOST:
            value = answer.value if answer.status == "ok" else answer.status
            tally.canaries[key].setdefault(time_, []).append(value)
    loop.stop(tally.client)


def asked_further(parts: Parts, tally: Tally) -> int:
    """How many prompts of controls one model gets in the whole run."""
    pairs = parts.task.controls if parts.plan.protocol == "default" else ()
    again = CANARIES * CANARY_REPLICATES * (1 + ((parts.seeds or 0) > ROUND)) * has_canaries(parts, tally.model)
    return len(tally.formats) * (2 * len(pairs) * tally.replicates + again)


async def first_look(loop: State) -> bool:
    """Ask the positive control before anything else; gives whether a model may be such that nothing can be learned."""
    for tally in loop.tallies:
        tally.further = asked_further(loop.parts, tally)
    await positive_control(loop, first=True)
    doubted = bool(doubtful(loop))
    if loop.plan.until_decided and not doubted:  # nothing is bounded before the whole control was seen
        await positive_control(loop)
    return doubted


async def positive_control(loop: State, *, first: bool = False) -> None:
    """Ask the task's pairs of texts that must get different answers; with ``first`` a few of them once."""
    pairs = loop.parts.task.controls if loop.plan.protocol == "default" else ()
    if loop.status_reason or not pairs:
        return
    prompts: dict[str, Prompts] = {}
    for n, texts in enumerate(pairs):
        for place, text in zip("ov", texts, strict=True):
            prompts[f"control.{n}.{place}"] = loop.prompts(text)
    loop.folder.add_prompts((name, prompt) for name, own in prompts.items() for prompt in own.values())
    brief = first and not loop.plan.batch

    async def ask(tally: Tally) -> None:
        few = max(2, MOST_CALLS // (4 * loop.parts.task.calls * len(tally.formats))) if brief else len(pairs)
        asked = dict(list(prompts.items())[: 2 * few])
        await _ask_pairs(loop, tally, asked, 1 if brief else tally.replicates)
        loop.stop(tally.client)

    await together(map(ask, loop.tallies))


async def _ask_pairs(loop: State, tally: Tally, prompts: Mapping[str, Prompts], times: int) -> None:
    asked = [
        ((name, text), Request(prompt=own[tally.model.style, name], replicate=k, variant_id=text))
        for name in tally.formats
        for text, own in prompts.items()
        for k in range(times)
    ]
    answers: dict[tuple[str, str], list[Answer]] = defaultdict(list)
    responses = await loop.responses(tally, [request for _, request in asked], further=True)
    for (key, _), response in zip(asked, responses, strict=True):
        # A file of recorded answers need not hold them; that makes no run partial.
        if response.error is None:
            answers[key].append(loop.answer(tally, response))
    texts = list(prompts)
    for name in tally.formats:
        both = [(answers[name, one], answers[name, other]) for one, other in zip(texts[::2], texts[1::2], strict=True)]
        if pairs := [pair for pair in both if any(pair)]:
            tally.control[name] = judged(loop.parts.task, loop.parts.oracle, name, pairs)


def judged(task: Task, oracle: Oracle, format: str, pairs: Sequence[Pair]) -> PositiveControl:
    """What the answers to pairs of control texts show, on the scale of the claims."""
    sides = [(oracle.answer(one), oracle.answer(other)) for one, other in pairs]
    differ = [None not in pair and oracle.differs(*pair) for pair in sides]
    number, of = task.kind.number or task.graded(format), task.score_of
    return control(pairs, differ, scale="number" if number else "log_odds" if of else "share", score_of=of)


def doubtful(loop: State) -> list[Tally]:
    """Models whose control was asked and not seen in any format, and of which asking on costs anything."""
    if loop.plan.anyway or isinstance(loop.parts.suite, StoredCases):
        return []
    asked = [t for t in loop.tallies if t.control and not t.model.recorded]
    return [t for t in asked if not any(one.seen for one in t.control.values())]


async def look_further(loop: State, versions: Sequence[Sequence[Variant]], prompts: Prompts) -> None:
    """Ask doubtful models about the first texts, and stop the run where a model answers everything alike."""

    async def ask(tally: Tally) -> None:
        left = (MOST_CALLS // loop.parts.task.calls - len(tally.seen)) // len(tally.formats)
        requests = []
        for n, (original, *others) in enumerate([*filter(None, versions)][: max(1, left // 2)]):
            # A model that minds only other people goes on.
            changed = [v for v in others if v.order and not is_beside(v)] or others
            for variant in (original, *changed[n % len(changed) :][:1]) if changed else (original,):
                own = (prompts.get((variant.id, name)) for name in tally.formats)
                requests += [Request(prompt=p, replicate=0, variant_id=variant.id) for p in own if p is not None]
        for response in await loop.responses(tally, requests):
            loop.answer(tally, response)
        loop.stop(tally.client)
        controls = tally.controls
        if not loop.status_reason and controls and all(one.hopeless for one in controls.values()):
            (worst, *_) = controls.values()
            further = ways(loop.parts.task, tally.model, tally.formats)
            said = f"{run_checks.hopeless(tally.model.name, worst)} {further}"
            for one in loop.tallies:
                if not one.model.recorded:
                    one.client.stop(BudgetExceeded(said, limit=CONTROL))
            loop.stop(tally.client)

    await together(map(ask, doubtful(loop)))


def ways(task: Task, model: Model, asked: Sequence[str]) -> str:
    """What to try where a model reacts to nothing in the formats that were asked; a classifier has no formats."""
    other = [] if model.style == "text" else [name for name in task.formats if name not in asked]
    return run_checks.to_try(other, [name for name in task.formats if task.graded(name)])
