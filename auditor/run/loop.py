"""The loop of an audit: the one module that knows the order of the stages.

Cases stream through in rounds: ask the suite, gate the variants, journal them, ask each model every
distinct prompt, judge (`auditor.run.judging`), tell the suite. Statistics, confirmation and reports come
after the last round.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

from auditor.core.errors import UserError
from auditor.core.protocols import Observer
from auditor.core.types import Answer, Case, Check, Progress, Prompt, Request, Response, Variant, Verdict
from auditor.run import free, questions
from auditor.run.judging import judge
from auditor.run.parts import Parts, formats_for
from auditor.run.rounds import source
from auditor.run.state import State, silent
from auditor.run.tally import Answers, Tally
from auditor.run.until import Until
from auditor.store.base import RunStore

__all__ = ["Loop", "Tally", "silent"]
if TYPE_CHECKING:
    from auditor.measure.claims import Claim


class Loop(State):
    """One run: streams cases through the stages."""

    def __init__(
        self,
        parts: Parts,
        folder: RunStore | None = None,
        *,
        observe: Observer = silent,
        answered: Mapping[str, Mapping[tuple[str, int], Response]] | None = None,
    ) -> None:
        super().__init__(parts, folder, observe=observe, answered=answered)
        self.judge = free.pair_judge(self)
        self.until = Until(self) if self.plan.until_decided else None

    async def run(self) -> None:
        """Ask, gate, question, judge, tell, until the suite is exhausted or a limit is reached."""
        rng = Random(self.plan.seed)
        rounds = source(self.parts)
        if self.until is not None:  # nothing is bounded before the control was seen
            await questions.positive_control(self)
        try:
            while not self.status_reason and not (self.until and self.until.done):
                cases, checks = await rounds.next(rng)
                if not cases:
                    break
                await self._round(cases, checks, rounds.lines)
        finally:
            rounds.close()
        await questions.canaries(self, {}, ())
        if self.until is None:
            await questions.positive_control(self)
        done = self.counts["taken" if self.parts.seeds else "cases"]
        self.observe(Progress(phase="generate", done=done, planned=done))

    async def _round(self, cases: Sequence[Case], checks: Mapping[str, Check], lines: Mapping[str, bytes]) -> None:
        self.observed.forget()
        prompts = self._take(cases, checks, lines)
        told: list[Verdict] = []
        asked = [
            asyncio.ensure_future(self._question(i, cases, checks, prompts, told)) for i in range(len(self.tallies))
        ]
        try:
            await asyncio.gather(*asked)
        finally:
            # Where one failed, or the run is cut off: the others journal what they were told before the folder closes.
            for one in asked:
                one.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        self.parts.suite.tell(sorted(told, key=lambda v: (v.case_id, v.variant_id, v.model, v.format)))
        await questions.canaries(self, prompts, cases)
        if self.until is not None:
            self.until.look()
        await asyncio.sleep(0)

    def _take(
        self, cases: Sequence[Case], checks: Mapping[str, Check], lines: Mapping[str, bytes]
    ) -> dict[tuple[str, str], Prompt]:
        """Journal cases and prompts; returns the prompt of each (variant id, format)."""
        task = self.parts.task
        styles = sorted({(t.model.style, f) for t in self.tallies for f in t.formats})
        if not self.tallies:
            styles = [("chat", f) for f in formats_for(self.plan, task, None)]
        prompts: dict[tuple[str, str], Prompt] = {}
        written: list[tuple[str, Prompt]] = []
        for case in cases:
            self.count(case, checks)
            self.observed.add(case, {v.id for v in case.variants if checks[v.id].status != "invalid"})
            task.about(case.original.input)
            for variant in (case.original, *case.variants):
                if variant is not case.original and not self.asked(checks[variant.id]):
                    continue
                text = str(variant.input)
                for style, name in styles:
                    prompt = task.bare(text) if style == "text" else task.render(text, name)
                    prompts[variant.id, name] = prompt
                    written.append((variant.id, prompt))
        self.folder.add_cases((case, {v.id: checks[v.id] for v in case.variants}, lines.get(case.id)) for case in cases)
        self.folder.add_prompts(written)
        done = self.counts["taken" if self.parts.seeds else "cases"]  # a text may have several cases
        self.observe(Progress(phase="generate", done=done, planned=self.parts.seeds))
        return prompts

    async def _question(
        self,
        index: int,
        cases: Sequence[Case],
        checks: Mapping[str, Check],
        prompts: Mapping[tuple[str, str], Prompt],
        told: list[Verdict],
    ) -> None:
        """Ask one model about one round and judge its answers."""
        tally, client = self.tallies[index], self.clients[index]
        answers: Answers = {name: defaultdict(list) for name in tally.formats}
        first = [v for case in cases for v in self.first(case, checks)]
        once = {v.id for case in cases if self._once(case) for v in (case.original, *case.variants)}
        # A wording more says more of a text than the same wording again.
        worded = {v.id for v in first if self.observed.shape(v).kind == "wording"}
        single = {v.id for case in cases if self.once(case) for v in (case.original, *case.variants)}
        await self._ask(tally, client, first, prompts, answers, once=once | worded | single)
        if once and tally.replicates > 1 and not client.stopped:
            again = [v for case in cases if self._once(case) for v in self._again(tally, case, answers)]
            await self._ask(tally, client, again, prompts, answers, start=1)
        later = [v for case in cases for v in self._later(tally, case, answers)]
        if later and not client.stopped:
            await self._ask(tally, client, later, prompts, answers)
        self.stop(client)
        self._require_scores(tally, answers)
        if self.until is not None:
            self.until.leave(cases, checks, prompts, answers)
        for case in cases:
            for name in tally.formats:
                told += judge(self, tally, case, name, answers[name], checks)
        await free.prefer(self, tally, cases, checks, answers)

    async def _ask(
        self,
        tally: Tally,
        client: object,
        variants: Sequence[Variant],
        prompts: Mapping[tuple[str, str], Prompt],
        answers: Answers,
        *,
        once: Collection[str] = (),
        start: int = 0,
    ) -> None:
        """Ask one model about ``variants`` in its formats and put what it said into ``answers``.

        Variants in ``once`` are asked once, the others from replicate ``start`` on.
        """
        keys: list[tuple[str, str]] = []
        requests: list[Request] = []
        for variant in variants:
            for name in tally.formats:
                prompt = prompts.get((variant.id, name))
                if prompt is None:
                    continue
                for replicate in range(start, 1 if variant.id in once else tally.replicates):
                    keys.append((variant.id, name))
                    requests.append(Request(prompt=prompt, replicate=replicate, variant_id=variant.id))
        told = await self.responses(tally, client, requests)
        for (variant_id, name), response in zip(keys, told, strict=True):
            answers[name][variant_id].append(self.answer(tally, response))
        self._progress(tally)

    def _lazy(self, case: Case) -> bool:
        return self.plan.strategy == "adaptive" and case.sampling == "directed"

    def first(self, case: Case, checks: Mapping[str, Check]) -> Sequence[Variant]:
        """What is asked at once: all, or of a directed case the original and variants that are part of no other."""
        if self.until is not None:
            return self.until.wanted(case, checks)
        if not self._lazy(case):
            return (case.original, *case.variants)
        parts = [v for v in case.variants if not any(v.choices < other.choices for other in case.variants)]
        return [case.original, *parts]

    def once(self, case: Case) -> bool:
        """Whether the plan asks the prompts of a case once, whatever the replicates; texts are known by several."""
        return bool(self.plan.repeat) and case.id not in self._repeated and not self.parts.task.kind.text

    def _once(self, case: Case) -> bool:
        """Whether a first answer that is the same is enough: in a search, where labels are compared."""
        return self._lazy(case) and not self.parts.task.kind.by_degrees

    def _again(self, tally: Tally, case: Case, answers: Answers) -> list[Variant]:
        """Of a case that was asked once: what differs from the original or has no label, and the original."""
        found: dict[str, Variant] = {}
        by_id = {v.id: v for v in case.variants}
        for name in tally.formats:
            given = answers[name]
            present = {v.id: given[v.id] for v in (case.original, *case.variants) if v.id in given}
            told = self.parts.oracle.judge(case, present)
            found |= {v.variant_id: by_id[v.variant_id] for v in told if v.outcome != "pass"}
        return [case.original, *found.values()] if found else []

    def _later(self, tally: Tally, case: Case, answers: Answers) -> list[Variant]:
        """The parts of a directed case's joint variants that changed the answer, in some format."""
        if not self._lazy(case):
            return []
        changed: list[frozenset[object]] = []
        by_id = {v.id: v for v in case.variants}
        for name in tally.formats:
            given = answers[name]
            present = {v.id: given[v.id] for v in (case.original, *case.variants) if v.id in given}
            changed += [
                by_id[v.variant_id].choices for v in self.parts.oracle.judge(case, present) if v.outcome == "violation"
            ]
        return [v for v in case.variants if any(v.choices < choices for choices in changed)]

    def _require_scores(self, tally: Tally, answers: Mapping[str, Mapping[str, Sequence[Answer]]]) -> None:
        """Stop at once where the oracle compares scores and the model gives none."""
        if self.plan.oracle != "probability":
            return
        label = self.parts.oracle.label
        read = [a for by_id in answers.values() for given in by_id.values() for a in given if a.status == "ok"]
        if read and not any(a.scores and label in a.scores for a in read):
            raise UserError(
                f"{tally.model.name} gives no probability of {label!r}, and --oracle probability compares nothing "
                "else. Use --oracle label, or a model with scores: hf:NAME, vader, or python: and exec: adapters "
                "that return them."
            )

    def free_text(self, claims: Sequence[Claim]) -> free.FreeText | None:
        """What the answers came to where they are amounts or texts; else None."""
        return free.study(self, claims)
