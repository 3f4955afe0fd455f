"""The loop of an audit, and the one module that knows the order of the stages; statistics come after the last round."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from random import Random

from auditor.contrib.hinter import joint_first
from auditor.core.errors import PluginError, UserError
from auditor.core.protocols import Observer, Suite
from auditor.core.types import Answer, Case, Check, Progress, Prompt, Request, Variant, Verdict
from auditor.measure.interactions import mark_hidden
from auditor.measure.intervals import mean_interval
from auditor.measure.observations import Arm
from auditor.run import free, run_controls
from auditor.run.preparation import Parts
from auditor.run.rounds import Source
from auditor.run.state import Answered, Answers, State, Tally, silent, together
from auditor.run.until import Until
from auditor.store.folder import RunFolder


class Loop(State):
    """One run: streams cases through the stages."""

    def __init__(
        self,
        parts: Parts,
        folder: RunFolder | None = None,
        *,
        observe: Observer = silent,
        answered: Answered | None = None,
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
        self._doubtful = await run_controls.first_look(self)
        rounds.least = run_controls.FIRST_TEXTS if self._doubtful else 0
        try:
            while not self.status_reason and not (self.until and (self.until.done or self.until.full)):
                cases, checks = await rounds.next(rng)
                if not cases:
                    break
                await self._round(cases, checks, rounds.lines)
        finally:
            rounds.close()
        await run_controls.canaries(self, end=True)
        await run_controls.positive_control(self)
        done = self._generated
        self.observe(Progress(phase="generate", done=done, planned=done))

    @property
    def _generated(self) -> int:
        return self.counts["taken" if self.parts.seeds else "cases"]  # a text may have several cases

    async def _round(self, cases: Sequence[Case], checks: Mapping[str, Check], lines: Mapping[str, bytes]) -> None:
        self.observed.forget()
        prompts = self._take(cases, checks, lines)
        if self._doubtful:
            first = [self._first(case, checks) for case in cases[: run_controls.FIRST_TEXTS]]
            await run_controls.look_further(self, first, prompts)
            self._doubtful = False
        verdicts: list[Verdict] = []
        await together(self._question(t, cases, checks, prompts, verdicts) for t in self.tallies)
        self.parts.suite.tell(sorted(verdicts, key=lambda v: (v.case_id, v.variant_id, v.model, v.format)))
        await run_controls.canaries(self, end=False)
        if self.until is not None:
            self.until.look()
        await asyncio.sleep(0)

    def _take(
        self, cases: Sequence[Case], checks: Mapping[str, Check], lines: Mapping[str, bytes]
    ) -> dict[tuple[str, str], Prompt]:
        """Journal cases and prompts; returns the prompt of each (variant id, format)."""
        prompts: dict[tuple[str, str], Prompt] = {}
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

    async def _question(
        self,
        tally: Tally,
        cases: Sequence[Case],
        checks: Mapping[str, Check],
        prompts: Mapping[tuple[str, str], Prompt],
        verdicts: list[Verdict],
    ) -> None:
        """Ask one model about one round and judge its answers."""
        answers: Answers = {name: defaultdict(list) for name in tally.formats}
        first = [v for case in cases for v in self._first(case, checks)]
        ordered = [case for case in cases if joint_first.ordered(case)]
        # A wording more says more of a text than the same wording again.
        once = {v.id for v in first if self.observed.shape(v).kind == "wording"}
        once |= {v.id for case in ordered for v in (case.original, *case.variants)}
        await self._ask(tally, first, prompts, answers, once=once)
        if tally.replicates > 1 and not tally.client.stopped:
            again = [v for case in ordered for v in joint_first.again(case, self._said(tally, case, answers))]
            await self._ask(tally, again, prompts, answers, start=1)
        if not tally.client.stopped:
            later = [v for case in ordered for v in joint_first.later(case, self._said(tally, case, answers))]
            await self._ask(tally, later, prompts, answers)
        self.stop(tally.client)
        self._require_scores(tally, answers)
        if self.until is not None:
            self.until.leave(cases, checks, prompts, answers)
        run_controls.begin_canaries(self, tally, cases, prompts, answers)
        for case in cases:
            for name in tally.formats:
                judged = self._judge(tally, case, name, answers[name], checks)
                tally.keep(case, judged)
                verdicts += judged
        if self.judge is not None:
            await free.prefer(self, self.judge, tally, cases, checks, answers)

    async def _ask(
        self,
        tally: Tally,
        variants: Sequence[Variant],
        prompts: Mapping[tuple[str, str], Prompt],
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
        return joint_first.first(case) if joint_first.ordered(case) else (case.original, *case.variants)

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


def _present(case: Case, answers: Mapping[str, list[Answer]]) -> dict[str, list[Answer]]:
    """The answers to the versions of ``case`` that there are any of, in its order."""
    return {v.id: answers[v.id] for v in (case.original, *case.variants) if v.id in answers}


def source(parts: Parts) -> Source:
    """The source that ``--jobs`` names; this process where a case depends on more than its seed."""
    plan = parts.plan
    if not parts.texts or plan.jobs == "1":
        return Source(parts)
    from auditor.run.workers import actors, processes

    engine, _, n = plan.jobs.rpartition(":")
    return (actors if engine else processes)(parts, int(n))


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
