"""The loop of an audit: the one module that knows the order of the stages.

Cases stream through in rounds: ask the suite, gate the variants, journal them, ask each model every
distinct prompt, judge (`auditor.run.judging`), tell the suite. Statistics, confirmation and reports come
after the last round.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from auditor.core.errors import BudgetExceeded, Unreadable, UserError
from auditor.core.plan import DEFAULT_REPLICATES
from auditor.core.protocols import Model, Observer
from auditor.core.types import (
    Answer,
    Case,
    Check,
    Progress,
    Prompt,
    Request,
    Response,
    Variant,
    Verdict,
    text_of,
)
from auditor.models.outcome import unanswered
from auditor.run import free, questions
from auditor.run.figures import Figures
from auditor.run.judging import Judge, judge
from auditor.run.observed import Observed
from auditor.run.parts import Parts, formats_for
from auditor.run.rounds import source
from auditor.run.tally import WAITING, Answers, Tally
from auditor.run.until import Until

__all__ = ["Loop", "Tally", "silent"]
if TYPE_CHECKING:
    from auditor.measure.claims import Claim

KEPT_OUTPUTS = 10_000  # short outputs of models whose reading is remembered
SHORT = 200  # characters
BESIDE = ("placebo", "wording")  # kinds of variants that are counted apart
WAITING_S = 1.0  # how long answers may wait to be journaled: some models say that they are deterministic, and are slow


def silent(event: Progress) -> None:
    """Observe nothing."""


class Loop:
    """One run: streams cases through the stages and keeps what the statistics need."""

    def __init__(
        self,
        parts: Parts,
        folder: Any | None,
        *,
        observe: Observer = silent,
        answered: Mapping[str, Mapping[tuple[str, int], Response]] | None = None,
    ) -> None:
        self.parts, self.folder, self.observe = parts, folder, observe
        self.plan = parts.plan
        self.counts: Counter[str] = Counter()
        self.oracle = Judge(parts.oracle, parts.suite)
        self.observed = Observed(parts.task, [model.name for model in parts.models])
        self.figures = Figures(parts.suite)
        self.status_reason = ""
        self.stopped_by = ""  # the limit of the plan that was reached
        self.canary_prompts: dict[str, dict[tuple[str, str], Prompt]] = {}
        self._text = ""  # of the last case
        self._read: dict[tuple[str, str, str], Answer] = {}
        self._waiting_since: dict[str, float] = {}  # by model
        self.agreement: dict[str, list[int]] = {k: [0, 0] for k in ("originals", "valid", "discarded")}
        self._answered = answered or {}
        self.tallies = [self.tally(model) for model in parts.models]
        if parts.cache is not None:
            parts.cache.tell(lambda said: observe(Progress(phase="cache", done=0, message=said)))
        self.clients = [self._client(tally) for tally in self.tallies]
        self.judge = free.pair_judge(self)
        self.until = Until(self) if self.plan.until_decided else None

    def stop(self, client: Any, *, what: str = "") -> None:
        """Take note that ``client`` makes no further call, where that is so."""
        if not client.stopped:
            return
        if isinstance(client.stopped, BudgetExceeded):
            self.stopped_by = self.stopped_by or client.stopped.limit
        self.status_reason = self.status_reason or what + self.why(client.stopped)
        ids = [i for i in client.model.under_way if i not in self.status_reason]
        if ids:
            self.status_reason += (
                f"; the provider still works on {', '.join(ids)}, and audit resume goes on waiting for "
                + ("it" if len(ids) == 1 else "them")
            )

    def why(self, error: Exception) -> str:
        """What ``error`` says; a server may quote a text."""
        from auditor.store import redact

        return redact.reason(error) if self.plan.redact else str(error)

    def tally(self, model: Model) -> Tally:
        """An empty tally for ``model``, with the replicates and formats that the plan gives it."""
        plan = self.plan
        replicates = plan.replicates
        if replicates is None or model.deterministic:
            replicates = 1 if model.deterministic or plan.protocol != "default" else DEFAULT_REPLICATES
        return Tally(
            model=model,
            replicates=replicates,
            formats=formats_for(plan, self.parts.task, model),
        )

    def _client(self, tally: Tally) -> Any:
        from auditor.models.client import Client
        from auditor.models.retry import RetryPolicy

        model = tally.model
        answered: Any = self._answered.get(model.name, {})
        # What the folder finds on disk again, as it came, need not stay in memory.
        find = None if self.plan.redact else getattr(self.folder, "answers", None)
        live = find is not None and (not answered or answered is find(model.name))
        if find is not None and live:
            answered = find(model.name)
        patience = model.patience_s
        return Client(
            model,
            retry=None if patience is None else RetryPolicy(ceiling_s=patience),
            cache=self.parts.cache if model.cacheable else None,
            budget=self.parts.budget,
            concurrency=self.plan.concurrency,
            answered=answered,
            remember=not live,
            on_response=lambda response: self._journal(tally, response),
            keep=lambda text, format: self._reading(text, model.style, format).status == "ok",
        )

    def _journal(self, tally: Tally, response: Response) -> None:
        tally.known.add((response.prompt_sha256, response.replicate))
        self._watch(tally, response)
        if self.folder is not None:
            now = time.monotonic()
            if not tally.waiting:
                self._waiting_since[tally.model.name] = now
            tally.waiting.append(self._redacted(tally, response) if self.plan.redact else response)
            late = now - self._waiting_since[tally.model.name] >= WAITING_S
            if tally.together and len(tally.waiting) < WAITING and not late:
                return
            self._flush(tally)
        self._progress(tally)

    def _watch(self, tally: Tally, response: Response) -> None:
        """Stop asking a model when most of its first answers cannot be read."""
        first = tally.first
        if response.output is None or not self.parts.task.labels or first.over:
            return
        if tally.model.recorded:
            return  # costs nothing, and nothing else will come
        answer = self._reading(response.output, tally.model.style, response.format)
        first.add(answer.status)
        if first.hopeless:
            client = next(c for t, c in zip(self.tallies, self.clients, strict=True) if t is tally)
            told = (
                f"{first.lost} of the first {first.answers} answers of {tally.model.name} could not be read"
            )
            client.stop(Unreadable(told))

    def _flush(self, tally: Tally) -> None:
        """Journal the answers that wait."""
        if tally.waiting and self.folder is not None:
            self.folder.add_responses(tally.waiting)
            tally.waiting.clear()

    def _redacted(self, tally: Tally, response: Response) -> Response:
        from auditor.store import redact

        task, style = self.parts.task, tally.model.style

        def write(value: Any) -> str:
            if style == "text":
                return value if isinstance(value, str) else str(value)
            return str(task.write(value, response.format))

        return redact.response(response, lambda text: task.read(text, style, response.format), write)

    def _progress(self, tally: Tally, phase: str = "ask") -> None:
        planned = None
        if self.parts.seeds and self.counts["cases"]:
            planned = max(tally.planned, round(tally.planned * self.parts.seeds / self.counts["taken"]))
        self.observe(
            Progress(
                phase=phase,
                model=tally.model.name,
                done=len(tally.seen),
                planned=planned if planned and planned >= len(tally.seen) else None,
                cached=tally.counts["cached"],
                failed=tally.counts["failed"],
                cost_usd=tally.cost_usd or None,
            )
        )

    # -- the rounds -------------------------------------------------------

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

    async def _round(
        self, cases: Sequence[Case], checks: Mapping[str, Check], lines: Mapping[str, bytes]
    ) -> None:
        self.observed.forget()
        prompts = self._take(cases, checks, lines)
        told: list[Verdict] = []
        asked = [
            asyncio.ensure_future(self._question(i, cases, checks, prompts, told))
            for i in range(len(self.tallies))
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
            for variant in (case.original, *case.variants):
                if variant is not case.original and not self.asked(checks[variant.id]):
                    continue
                for style, name in styles:
                    prompt = task.bare(variant.input) if style == "text" else task.render(variant.input, name)
                    prompts[variant.id, name] = prompt
                    written.append((variant.id, prompt))
        if self.folder is not None:
            self.folder.add_cases(
                (case, {v.id: checks[v.id] for v in case.variants}, lines.get(case.id)) for case in cases
            )
            self.folder.add_prompts(written)
        done = self.counts["taken" if self.parts.seeds else "cases"]  # a text may have several cases
        self.observe(Progress(phase="generate", done=done, planned=self.parts.seeds))
        return prompts

    def asked(self, check: Check) -> bool:
        """Whether a model gets to see the variant: invalid ones only where the plan says so."""
        return check.status != "invalid" or self.plan.test_discarded

    def count(self, case: Case, checks: Mapping[str, Check]) -> None:
        """Count a case and its variants."""
        counts = self.counts
        counts["cases"] += 1
        text = text_of(case.id)
        counts["taken"] += text != self._text  # the cases of one text come one after the other
        self._text = text
        self._agree("originals", case.original.input)
        for variant in case.variants:
            valid = checks[variant.id].status != "invalid"
            kind = self.observed.shape(variant).kind
            if kind in BESIDE:
                counts[f"{kind}s"] += 1
                counts[f"{kind}s_valid"] += valid
                continue
            counts["variants"] += 1
            counts["valid" if valid else "discarded"] += 1
            self._agree("valid" if valid else "discarded", variant.input)

    def _agree(self, arm: str, text: Any) -> None:
        if self.parts.agreement is None or not isinstance(text, str):
            return
        from auditor.perturb.gate.agreement import problems

        cell = self.agreement[arm]
        if cell[1] < 5000:  # a rate needs no more, and the check is not free
            cell[0] += bool(problems(text))
            cell[1] += 1

    # -- questions and verdicts -------------------------------------------

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
        await self._ask(tally, client, first, prompts, answers, once=once | worded)
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
        client: Any,
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

    async def responses(self, tally: Tally, client: Any, requests: Sequence[Request]) -> list[Response]:
        """Ask one model; all that it answered is in the journal before it is handed back."""
        tally.planned += tally.seen.missing((r.prompt.sha256, r.replicate) for r in requests)
        try:
            found: list[Response] = await client.ask(requests)
        finally:
            self._flush(tally)
        return found

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

    def _once(self, case: Case) -> bool:
        """Whether a first answer that is the same is enough: in a search, where labels are compared."""
        return self._lazy(case) and self.parts.task.kind not in free.KINDS

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
        changed: list[frozenset[Any]] = []
        by_id = {v.id: v for v in case.variants}
        for name in tally.formats:
            given = answers[name]
            present = {v.id: given[v.id] for v in (case.original, *case.variants) if v.id in given}
            changed += [
                by_id[v.variant_id].choices
                for v in self.parts.oracle.judge(case, present)
                if v.outcome == "violation"
            ]
        return [v for v in case.variants if any(v.choices < choices for choices in changed)]

    def _require_scores(self, tally: Tally, answers: Mapping[str, Mapping[str, Sequence[Answer]]]) -> None:
        """Stop at once where the oracle compares scores and the model gives none."""
        if self.plan.oracle != "probability":
            return
        label = self.parts.oracle.label
        read = [
            a for by_id in answers.values() for given in by_id.values() for a in given if a.status == "ok"
        ]
        if read and not any(a.scores and label in a.scores for a in read):
            raise UserError(
                f"{tally.model.name} gives no probability of {label!r}, and --oracle probability compares nothing "
                "else. Use --oracle label, or a model with scores: hf:NAME, vader, or python: and exec: adapters "
                "that return them."
            )

    def answer(self, tally: Tally, response: Response) -> Answer:
        """Count a response (each distinct one once) and read it."""
        if response.error is not None:
            answer = unanswered(response.error)
        else:
            answer = self._reading(response.output or "", tally.model.style, response.format)
            if response.scores:
                answer = dataclasses.replace(answer, scores=response.scores)
        key = (response.prompt_sha256, response.replicate)
        journaled = key in tally.known or key in self._answered.get(tally.model.name, ())
        if not journaled and answer.status == "failed" and key not in tally.seen:
            return Answer(status="not_asked", reason=answer.reason)
        if journaled and tally.seen.add(key):
            tally.known.discard(key)
            counts = tally.counts
            counts["cached" if response.cached else "calls"] += 1
            if answer.status != "ok":
                counts[answer.status] += 1
                counts["cut_off"] += response.cut_off
            if answer.value is not None:
                tally.count(response.format, answer.value)
            if tally.unread is None and answer.status in ("refused", "unparsed"):
                tally.unread = (response.variant_id, (response.output or "")[:SHORT])
            if response.usage is not None:
                counts["tokens_in"] += response.usage.tokens_in
                counts["tokens_out"] += response.usage.tokens_out
            tally.cost_usd += response.cost_usd or 0.0
            if response.model_reported:
                tally.reported.add(response.model_reported)
        return answer

    def _reading(self, output: str, style: Any, format: str) -> Answer:
        """What the task reads in an output; that of short ones, which come again and again, is remembered."""
        found = self._read.get((output, style, format))
        if found is None:
            found = self.parts.task.read(output, style, format)
            if len(output) <= SHORT and len(self._read) < KEPT_OUTPUTS:
                self._read[output, style, format] = found
        return found

    def free_text(self, claims: Sequence[Claim]) -> free.FreeText | None:
        """What the answers came to where they are amounts or texts; else None."""
        return free.study(self, claims)
