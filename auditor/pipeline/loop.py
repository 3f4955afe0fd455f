"""The loop of an audit: the one module that knows the order of the stages.

Cases stream through in rounds: ask the suite, gate the variants, journal them, ask each model every
distinct prompt, judge, tell the suite. Statistics, confirmation and reports come after the last round.
"""

from __future__ import annotations

import asyncio
import dataclasses
import operator
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from auditor.config import DEFAULT_REPLICATES
from auditor.controls import (
    CANARIES,
    CANARY_FROM,
    CANARY_REPLICATES,
    control_pairs,
    is_placebo,
    outcomes,
)
from auditor.errors import UserError
from auditor.pipeline import free
from auditor.pipeline.parts import Parts, StoredCases, formats_for
from auditor.pipeline.rounds import source
from auditor.protocols import Model, Observer
from auditor.store.compact import ByVariant, Contrasts, KeySet, OfCase, Shared, Verdicts
from auditor.types import Answer, Case, Check, Progress, Prompt, Request, Response, Variant, Verdict

KEPT_HIDDEN = 1000  # hidden variants whose whole case stays in memory; more are never asked again
Answers = dict[str, dict[str, list[Answer]]]  # format -> variant id -> answers of its replicates


def silent(event: Progress) -> None:
    """Observe nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """What the statistics need to know of a variant; one value for all that are alike."""

    directions: tuple[tuple[str, str, str], ...]
    kinds: tuple[str, ...]
    term: str = ""  # the words that were put in


@dataclass(kw_only=True)
class Tally:
    """What one model's answers came to, while they stream by."""

    model: Model
    replicates: int
    formats: tuple[str, ...]
    verdicts: Verdicts = field(default_factory=Verdicts)
    labels: dict[tuple[str, str], Mapping[str, Sequence[Any]]] = field(
        default_factory=dict
    )  # (case, format) -> variant -> values
    counts: Counter[str] = field(default_factory=Counter)
    groups: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    cost_usd: float = 0.0
    reported: set[str] = field(default_factory=set)
    seen: KeySet = field(default_factory=KeySet)
    known: set[tuple[str, int]] = field(
        default_factory=set
    )  # journaled and not counted yet; what was not asked is not among them
    planned: int = 0
    mutants: list[Any] = field(default_factory=list)  # under --protocol hinter
    hidden: list[tuple[Case, str, str]] = field(default_factory=list)  # case, variant id, format
    placebos: Verdicts = field(default_factory=Verdicts)  # kept apart: they enter no rate of changes
    discarded: list[Verdict] = field(default_factory=list)  # of invalid variants, where the plan asks them
    silent: dict[tuple[str, str], dict[str, float]] = field(
        default_factory=dict
    )  # (case, format) -> variant -> share of answers without a label, where there are some
    contrasts: Contrasts = field(default_factory=Contrasts)  # interaction contrasts of joint variants
    canaries: dict[tuple[str, str], dict[str, list[Any]]] = field(
        default_factory=dict
    )  # (prompt, format) -> time -> answers
    control: dict[str, Any] = field(default_factory=dict)  # of the positive control
    texts: dict[tuple[str, str], Any] = field(
        default_factory=dict
    )  # (case, format) -> variant -> metrics of free text
    preferences: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)  # of the judge
    originals: dict[str, list[tuple[str, Any, int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )  # format -> (case, answer for the original, variants judged, violations)


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
        self.about: ByVariant[About] = ByVariant()
        self._shared: Shared[Any] = Shared()
        self.directed: set[str] = set()  # cases that earlier verdicts led to: they enter no rate
        self.golds: dict[str, tuple[str | None, Mapping[str, str]]] = {}  # case id -> label, groups named
        self.status_reason = ""
        self._canary_prompts: dict[str, dict[tuple[str, str], Prompt]] = {}
        self.agreement: dict[str, list[int]] = {k: [0, 0] for k in ("originals", "valid", "discarded")}
        self.valid_by_case: dict[str, dict[tuple[str, ...], list[int]]] = {}
        self._answered = answered or {}
        self.tallies = [self.tally(model) for model in parts.models]
        self.clients = [self._client(tally) for tally in self.tallies]
        self.judge = free.pair_judge(parts)

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
        apart = self.plan.redact or self.plan.journal != "jsonl"
        find = None if apart else getattr(self.folder, "answers", None)
        live = find is not None and (not answered or answered is find(model.name))
        if find is not None and live:
            answered = find(model.name)
        patience: float | None = getattr(model, "patience_s", None)
        return Client(
            model,
            retry=None if patience is None else RetryPolicy(ceiling_s=patience),
            cache=self.parts.cache if model.cacheable else None,
            budget=self.parts.budget,
            concurrency=self.plan.concurrency,
            answered=answered,
            remember=not live,
            on_response=lambda response: self._journal(tally, response),
        )

    def _journal(self, tally: Tally, response: Response) -> None:
        if self.folder is not None:
            self.folder.add_response(self._redacted(tally, response) if self.plan.redact else response)
        tally.known.add((response.prompt_sha256, response.replicate))
        self._progress(tally)

    def _redacted(self, tally: Tally, response: Response) -> Response:
        from auditor.store import redact

        task, style = self.parts.task, tally.model.style

        def write(value: Any) -> str:
            if style == "text":
                return value if isinstance(value, str) else str(value)
            return str(task.write(value, response.format))

        return redact.response(response, lambda text: task.read(text, style), write)

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
        try:
            while not self.status_reason:
                cases, checks = await rounds.next(rng)
                if not cases:
                    break
                await self._round(cases, checks)
        finally:
            rounds.close()
        await self._canaries({}, ())
        await self._positive_control()
        self.observe(Progress(phase="generate", done=self.counts["cases"], planned=self.counts["cases"]))

    async def _round(self, cases: Sequence[Case], checks: Mapping[str, Check]) -> None:
        prompts = self._take(cases, checks)
        told: list[Verdict] = []
        await asyncio.gather(
            *(self._question(i, cases, checks, prompts, told) for i in range(len(self.tallies)))
        )
        self.parts.suite.tell(sorted(told, key=lambda v: (v.case_id, v.variant_id, v.model, v.format)))
        await self._canaries(prompts, cases)
        await asyncio.sleep(0)

    def _take(self, cases: Sequence[Case], checks: Mapping[str, Check]) -> dict[tuple[str, str], Prompt]:
        """Journal cases and prompts; returns the prompt of each (variant id, format)."""
        styles = sorted({(t.model.style, f) for t in self.tallies for f in t.formats})
        if not self.tallies:
            styles = [("chat", f) for f in formats_for(self.plan, self.parts.task, None)]
        prompts: dict[tuple[str, str], Prompt] = {}
        for case in cases:
            self.count(case, checks)
            if self.folder is not None:
                self.folder.add_case(case, {v.id: checks[v.id] for v in case.variants})
            for variant in (case.original, *case.variants):
                if variant is not case.original and not self.asked(checks[variant.id]):
                    continue
                for style, name in styles:
                    prompt = (
                        self.parts.task.bare(variant.input)
                        if style == "text"
                        else self.parts.task.render(variant.input, name)
                    )
                    prompts[variant.id, name] = prompt
                    if self.folder is not None:
                        self.folder.add_prompt(variant.id, prompt)
        self.observe(Progress(phase="generate", done=self.counts["cases"], planned=self.parts.seeds))
        return prompts

    def asked(self, check: Check) -> bool:
        """Whether a model gets to see the variant: invalid ones only where the plan says so."""
        return check.status != "invalid" or self.plan.test_discarded

    def count(self, case: Case, checks: Mapping[str, Check]) -> None:
        """Count a case and keep what the statistics need to know of its variants."""
        self.counts["cases"] += 1
        self.counts["taken"] += 1
        groups = self._shared.made(tuple(case.original.groups.items()), case.original.groups)
        self.golds[case.id] = (case.label, groups)
        abouts: list[About] = []
        valid_here: dict[tuple[str, ...], list[int]] = {}
        if case.sampling == "directed":
            self.directed.add(case.id)
        self._agree("originals", case.original.input)
        for variant in case.variants:
            valid = checks[variant.id].status != "invalid"
            if is_placebo(variant):
                self.counts["placebos"] += 1
                self.counts["placebos_valid"] += valid
                abouts.append(self._shared(About(directions=variant.directions, kinds=("placebo",))))
                continue
            self.counts["variants"] += 1
            self.counts["valid" if valid else "discarded"] += 1
            cell = valid_here.setdefault(variant.attributes, [0, 0])
            cell[0] += valid
            cell[1] += 1
            about = About(
                directions=variant.directions,
                kinds=tuple(sorted({e.kind for e in variant.edits if e.kind != "agreement"})),
                term=" + ".join(sorted({e.target.lower() for e in variant.edits if e.kind != "agreement"})),
            )
            abouts.append(self._shared(about))
            self._agree("valid" if valid else "discarded", variant.input)
        self.about.add(case.id, [v.id for v in case.variants], abouts)
        if case.sampling == "iid":
            alike = tuple((attributes, *cell) for attributes, cell in valid_here.items())
            self.valid_by_case[case.id] = self._shared.made(alike, valid_here)

    def _agree(self, arm: str, text: Any) -> None:
        if self.parts.agreement is None or not isinstance(text, str):
            return
        from auditor.validity.agreement import problems

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
        first = [v for case in cases for v in (case.original, *self._first(case))]
        await self._ask(tally, client, first, prompts, answers)
        later = [v for case in cases for v in self._later(tally, case, answers)]
        if later and not client.stopped:
            await self._ask(tally, client, later, prompts, answers)
        if client.stopped and not self.status_reason:
            self.status_reason = str(client.stopped)
        self._require_scores(tally, answers)
        for case in cases:
            for name in tally.formats:
                told += self._judge(tally, case, name, answers[name], checks)
        await free.prefer(self, tally, cases, checks, answers)

    async def _ask(
        self,
        tally: Tally,
        client: Any,
        variants: Sequence[Variant],
        prompts: Mapping[tuple[str, str], Prompt],
        answers: Answers,
    ) -> None:
        """Ask one model about ``variants`` in its formats and put what it said into ``answers``."""
        keys: list[tuple[str, str]] = []
        requests: list[Request] = []
        for variant in variants:
            for name in tally.formats:
                prompt = prompts.get((variant.id, name))
                if prompt is None:
                    continue
                for replicate in range(tally.replicates):
                    keys.append((variant.id, name))
                    requests.append(Request(prompt=prompt, replicate=replicate, variant_id=variant.id))
        tally.planned += tally.seen.missing((r.prompt.sha256, r.replicate) for r in requests)
        for (variant_id, name), response in zip(keys, await client.ask(requests), strict=True):
            answers[name][variant_id].append(self.answer(tally, response))
        self._progress(tally)

    def _lazy(self, case: Case) -> bool:
        return self.plan.strategy == "adaptive" and case.sampling == "directed"

    def _first(self, case: Case) -> Sequence[Variant]:
        """The variants that are asked at once: all, or of a directed case those that are part of no other."""
        if not self._lazy(case):
            return case.variants
        return [v for v in case.variants if not any(v.choices < other.choices for other in case.variants)]

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
            answer = Answer(status="failed", reason=response.error)
        else:
            answer = self.parts.task.read(response.output, tally.model.style)
            if response.scores:
                answer = dataclasses.replace(answer, scores=response.scores)
        key = (response.prompt_sha256, response.replicate)
        journaled = key in tally.known or key in self._answered.get(tally.model.name, ())
        if journaled and key not in tally.seen:
            tally.seen.add(key)
            tally.known.discard(key)
            counts = tally.counts
            counts["cached" if response.cached else "calls"] += 1
            counts["failed"] += answer.status == "failed"
            counts["refused"] += answer.status == "refused"
            counts["unparsed"] += answer.status == "unparsed"
            if response.usage is not None:
                counts["tokens_in"] += response.usage.tokens_in
                counts["tokens_out"] += response.usage.tokens_out
            tally.cost_usd += response.cost_usd or 0.0
            if response.model_reported:
                tally.reported.add(response.model_reported)
        return answer

    def _judge(
        self,
        tally: Tally,
        case: Case,
        name: str,
        answers: Mapping[str, list[Answer]],
        checks: Mapping[str, Check],
    ) -> list[Verdict]:
        from auditor.diagnosis.hidden import mark_hidden

        present = {v.id: answers[v.id] for v in (case.original, *case.variants) if v.id in answers}
        judged_all = [
            dataclasses.replace(v, model=tally.model.name, format=name)
            for v in mark_hidden(case, self.parts.oracle.judge(case, present), checks)
        ]
        if self.plan.test_discarded:
            bad = {v.id for v in case.variants if checks[v.id].status == "invalid"}
            tally.discarded += [v for v in judged_all if v.variant_id in bad]
            judged_all = [v for v in judged_all if v.variant_id not in bad]
            present = {variant_id: given for variant_id, given in present.items() if variant_id not in bad}
        placebo = {v.id for v in case.variants if is_placebo(v)}
        # Order 0: no group changed. ``attributes`` are those whose edits a placebo copies.
        tally.placebos += [dataclasses.replace(v, order=0) for v in judged_all if v.variant_id in placebo]
        verdicts = [v for v in judged_all if v.variant_id not in placebo]
        tally.verdicts += verdicts
        outcomes = Counter(v.outcome for v in verdicts)
        texts = self.parts.task.kind == "generation"
        told = None if texts else self.parts.oracle.answer(present.get(case.original.id, ()))
        judged = outcomes["pass"] + outcomes["violation"]
        tally.originals[name].append((case.id, told, judged, outcomes["violation"]))
        if self.plan.protocol == "hinter":
            from auditor.stats.hinter import mutants_of

            tally.mutants += mutants_of(case, verdicts, checks)
        for v in verdicts:
            if v.hidden:  # whole cases of those only that can be asked again
                kept = len(tally.hidden) < KEPT_HIDDEN or case.id in self.directed
                bare = case if kept else dataclasses.replace(case, variants=())
                tally.hidden.append((bare, v.variant_id, name))
        if texts:  # figures stay in memory, texts do not
            free.keep(self, tally, case, name, present)
        else:
            arms = [self._labels(given) for given in present.values()]
            tally.labels[case.id, name] = OfCase(case.id, list(present), arms)
        silent = {variant_id: share for variant_id, given in present.items() if (share := _silent(given))}
        if silent:
            tally.silent[case.id, name] = silent
        self._contrasts(tally, case, name, present, verdicts)
        for variant in (case.original, *case.variants):
            if variant.id in placebo:
                continue
            for answer in present.get(variant.id, ()):
                for attribute, group in variant.groups.items():
                    cell = tally.groups[attribute, group]
                    cell["n"] += 1
                    cell[answer.status] += 1
        return verdicts

    def _labels(self, given: Sequence[Answer]) -> tuple[Any, ...]:
        """The labels of the replicates; equal ones are kept once (not numbers: 1 and 1.0 are equal)."""
        values = tuple(a.value for a in given if a.status == "ok")
        return self._shared(values) if all(isinstance(v, str) for v in values) else values

    def _contrasts(
        self,
        tally: Tally,
        case: Case,
        name: str,
        answers: Mapping[str, Sequence[Answer]],
        verdicts: Sequence[Verdict],
    ) -> None:
        """Interaction contrast of each joint variant of two attributes, where the answers carry scores."""
        if not any(a.scores for given in answers.values() for a in given):
            return
        from auditor.diagnosis.hidden import Lattice

        lattice = Lattice(case, {})
        label = (*outcomes(self.parts.task, {}), *self.parts.task.labels, "")[0]
        for verdict in verdicts:
            if verdict.order != 2 or verdict.outcome not in ("pass", "violation"):
                continue
            single = [part for _, part in lattice.subsets(lattice.by_id[verdict.variant_id])]
            cells = [case.original.id, *single, verdict.variant_id]
            values = [None if c is None else _score(answers.get(c, ()), label) for c in cells]
            if len(values) == 4 and all(v is not None for v in values):
                o, a, b, both = (float(v) for v in values if v is not None)
                contrast = (both - o) - (a - o) - (b - o)
                tally.contrasts.add(verdict, contrast)

    def free_text(self) -> free.FreeText | None:
        """What the answers came to where they are amounts or texts; else None."""
        return free.study(self)

    # -- controls ---------------------------------------------------------

    async def _canaries(self, prompts: Mapping[tuple[str, str], Prompt], cases: Sequence[Case]) -> None:
        """Ask the first prompts again, in the middle of the run and at its end."""
        plan = self.plan
        if self.status_reason or plan.protocol != "default" or isinstance(self.parts.suite, StoredCases):
            return
        if self.parts.task.kind == "generation":
            return  # nobody expects a text to come again word for word
        if plan.batch:
            return  # each time would be a batch of its own, up to a day apart
        seeds = self.parts.seeds
        middle = bool(seeds) and self.counts["taken"] < (seeds or 0) <= 2 * self.counts["taken"]
        for tally, client in zip(self.tallies, self.clients, strict=True):
            if tally.model.deterministic:
                continue
            if not self._canary_prompts.get(tally.model.name):
                self._canary_prompts[tally.model.name] = {
                    (case.id, name): prompt
                    for case in cases[:CANARIES]
                    for name in tally.formats
                    if (prompt := prompts.get((case.original.id, name))) is not None
                }
                for key in self._canary_prompts[tally.model.name]:
                    arms = tally.labels.get(key, {})
                    tally.canaries[key] = {"start": list(next(iter(arms.values()), ()))}
            time_ = "middle" if cases and middle else "" if cases else "end"
            if time_ and not any(time_ in times for times in tally.canaries.values()):
                await self._ask_canaries(tally, client, time_)

    async def _ask_canaries(self, tally: Tally, client: Any, time_: str) -> None:
        keys, requests = [], []
        first = CANARY_FROM * (1 if time_ == "middle" else 2)
        for key, prompt in self._canary_prompts[tally.model.name].items():
            for k in range(CANARY_REPLICATES):
                keys.append(key)
                requests.append(Request(prompt=prompt, replicate=first + k, variant_id=f"{key[0]}.o"))
        tally.planned += tally.seen.missing((r.prompt.sha256, r.replicate) for r in requests)
        for key, response in zip(keys, await client.ask(requests), strict=True):
            answer = self.answer(tally, response)
            if answer.status != "failed":
                told = answer.value if answer.status == "ok" else answer.status
                tally.canaries[key].setdefault(time_, []).append(told)
        if client.stopped and not self.status_reason:
            self.status_reason = str(client.stopped)

    async def _positive_control(self) -> None:
        """Ask pairs of texts that must get different answers."""
        pairs = control_pairs(self.parts.task) if self.plan.protocol == "default" else []
        if self.status_reason or not pairs:
            return
        task = self.parts.task
        styles = sorted({(t.model.style, f) for t in self.tallies for f in t.formats})
        if not self.tallies:
            styles = [("chat", f) for f in formats_for(self.plan, task, None)]
        prompts: dict[tuple[str, str, str], Prompt] = {}
        for pair in pairs:
            for place, text in zip("ov", pair.texts, strict=True):
                for style, name in styles:
                    variant_id = f"{pair.id}.{place}"
                    prompt = task.bare(text) if style == "text" else task.render(text, name)
                    prompts[variant_id, style, name] = prompt
                    if self.folder is not None:
                        self.folder.add_prompt(variant_id, prompt)
        for tally, client in zip(self.tallies, self.clients, strict=True):
            # Each format is a way of asking on its own, and each must be able to show an effect.
            told = await self._ask_pairs(tally, client, [p.id for p in pairs], prompts)
            tally.control = {name: verdicts for name, verdicts in told.items() if verdicts}

    async def _ask_pairs(
        self, tally: Tally, client: Any, pairs: Sequence[str], prompts: Mapping[tuple[str, str, str], Prompt]
    ) -> dict[str, list[bool]]:
        keys = [
            (name, f"{pair}.{place}", k)
            for name in tally.formats
            for pair in pairs
            for place in "ov"
            for k in range(tally.replicates)
        ]
        style = tally.model.style
        requests = [
            Request(prompt=prompts[variant_id, style, name], replicate=k, variant_id=variant_id)
            for name, variant_id, k in keys
        ]
        tally.planned += tally.seen.missing((r.prompt.sha256, r.replicate) for r in requests)
        answers: dict[tuple[str, str], list[Answer]] = defaultdict(list)
        for (name, variant_id, _), response in zip(keys, await client.ask(requests), strict=True):
            # A file of recorded answers need not hold them; that makes no run partial.
            if response.error is None:
                answers[name, variant_id].append(self.answer(tally, response))
        told: dict[str, list[bool]] = {}
        for name in tally.formats:
            sides = [
                [self.parts.oracle.answer(answers.get((name, f"{pair}.{place}"), ())) for place in "ov"]
                for pair in pairs
                if any((name, f"{pair}.{place}") in answers for place in "ov")
            ]
            differs = getattr(self.parts.oracle, "differs", operator.ne)
            told[name] = [None not in pair and differs(*pair) for pair in sides]
        return told


def _silent(answers: Sequence[Answer]) -> float:
    """Share of answers that were refused or unreadable, calls that failed left out."""
    came = [a for a in answers if a.status != "failed"]
    return sum(a.status in ("refused", "unparsed") for a in came) / len(came) if came else 0.0


def _score(answers: Sequence[Answer], label: str) -> float | None:
    """Mean score of ``label`` over the replicates; None where one has none."""
    scores = [None if a.scores is None else a.scores.get(label) for a in answers]
    given = [s for s in scores if s is not None]
    return sum(given) / len(given) if given and len(given) == len(scores) else None
