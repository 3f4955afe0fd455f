"""The loop of an audit: the one module that knows the order of the stages.

Cases stream through in rounds: ask the suite, gate the variants, journal them, ask each model every
distinct prompt, judge, tell the suite. Statistics, confirmation and reports come after the last round.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from auditor.config import CONFIRM_REPLICATES, DEFAULT_REPLICATES, Plan
from auditor.controls import (
    CANARIES,
    CANARY_FROM,
    CANARY_REPLICATES,
    control_pairs,
    is_placebo,
    outcomes,
    with_placebos,
)
from auditor.errors import BudgetExceeded, ConfigError, UserError
from auditor.protocols import Model, Observer
from auditor.types import Answer, Case, Check, Progress, Prompt, Request, Response, Seed, Verdict

ROUND = 64  # seeds per round
BARE = "bare"  # the format name of an input that is sent as it is
MAX_CONFIRM = 200  # hidden candidates that are replicated, per model


def silent(event: Progress) -> None:
    """Observe nothing."""


@dataclass(kw_only=True)
class Parts:
    """The stages of one run, built from a plan by `prepare`."""

    plan: Plan
    task: Any
    suite: Any
    gate: Any | None  # batch validity; None where the checks come with the cases
    agreement: Any
    oracle: Any
    models: list[Model]
    budget: Any
    cache: Any | None
    seeds: int | None  # how many are given, where that is known
    placebos: Any | None = None  # makes placebo variants; None where the cases bring theirs, or have none
    facts: dict[str, Any] = field(default_factory=dict)  # for the provenance


def prepare(
    plan: Plan,
    *,
    models: Sequence[Model] | None = None,
    seeds: Iterable[Seed] | None = None,
    cases: Iterable[tuple[Case, Mapping[str, Check]]] | None = None,
    need_models: bool = True,
) -> Parts:
    """Build the stages of ``plan``.

    Parameters
    ----------
    plan : Plan
        What to run.
    models : sequence of Model, optional
        Adapters to use instead of those that ``plan.models`` names.
    seeds : iterable of Seed, optional
        Texts to use instead of ``plan.data`` or the task's embedded ones.
    cases : iterable of (Case, checks), optional
        Stored cases to use instead of a suite.
    need_models : bool, default True
        False builds no adapter (``audit generate``).

    Raises
    ------
    UserError
        Anything in the plan that cannot be done; nothing has been asked then.
    """
    from auditor import tasks
    from auditor.models.budget import Budget
    from auditor.models.cache import Cache

    task = tasks.load(plan.task)
    for name in plan.formats:
        if name != "all" and name not in task.formats:
            raise ConfigError(
                f"task {task.name!r} has no prompt format {name!r}; formats: {', '.join(task.formats)}, all."
            )
    facts: dict[str, Any] = {"task_sha256": task.sha256}
    gate, agreement, suite, n_seeds, placebos = None, None, None, None, None
    if cases is not None:
        suite = StoredCases(cases)
    else:
        suite, gate, agreement, n_seeds, placebos = _stages(plan, task, seeds, facts)
    if models is None:
        models = _models(plan, task) if need_models else []
    budget = Budget(
        max_calls=plan.max_calls,
        max_cost=plan.max_cost,
        max_seconds=plan.max_seconds,
        price_in=plan.price_in,
        price_out=plan.price_out,
    )
    if plan.max_cost is not None:
        for model in models:
            budget.require_price(model)
    return Parts(
        plan=plan,
        task=task,
        suite=suite,
        gate=gate,
        agreement=agreement,
        oracle=_oracle(plan, task),
        models=list(models),
        budget=budget,
        cache=Cache() if plan.cache and any(m.cacheable for m in models) else None,
        seeds=n_seeds,
        placebos=placebos,
        facts=facts,
    )


def _oracle(plan: Plan, task: Any) -> Any:
    """Chosen by the plan, or else by the kind of the task."""
    from auditor.registry import ORACLES

    if plan.oracle != "probability":
        return ORACLES.create("labelset" if task.kind == "multilabel" else "label")
    label = next(iter((*outcomes(task, {}), *task.labels)), None)
    if label is None:
        raise ConfigError(
            f"--oracle probability needs a task with labels; {task.name!r} is of kind {task.kind}."
        )
    return ORACLES.create(
        "probability",
        label=label,
        reference="equal" if plan.reference == "equal" else "shares",
        shares=None if plan.reference == "equal" else _shares(plan, task, label),
        **({"epsilons": plan.epsilon} if plan.epsilon else {}),
    )


def _shares(plan: Plan, task: Any, label: str) -> dict[str, float]:
    """Share of the people in each occupation whom the possessive ``label`` stands for, as the grammar says."""
    from auditor import grammar
    from auditor.oracles.probability import shares_of

    loaded = grammar.load(plan.grammar or task.name)
    if label not in ("his", "her"):
        raise ConfigError(
            f"--reference bls needs a task whose first label is his or her; that of {task.name!r} is {label!r}."
        )
    found = shares_of(loaded, women=label == "her")
    if not found:
        raise ConfigError(
            f"--reference bls: the grammar {loaded.full_name} has no occupations with women_percent. "
            "Use --grammar fill-mask, or add the figures to yours (grammars/README.md)."
        )
    return found


def _stages(
    plan: Plan, task: Any, seeds: Iterable[Seed] | None, facts: dict[str, Any]
) -> tuple[Any, Any, Any, int | None, Any]:
    """Suite, gate, agreement check, the number of seeds, and what makes placebo variants."""
    from auditor.registry import CHECKS, SUITES
    from auditor.text.parse import Parser

    if plan.suite == "grammar":
        generated = _grammar(plan, task)
        facts["grammar"] = generated.describe()
        facts["seeds"] = {
            "source": f"generated by the grammar {generated.grammar.full_name}",
            "n": generated.total,
            "skipped": {},
            "sha256": generated.grammar.sha256,
        }
        return generated, None, CHECKS.create("agreement"), generated.total, generated
    texts = _seeds(plan, task, seeds, facts)
    parser = Parser(plan.parser)
    facts["parser"] = {"name": parser.name, "sha256": parser.fingerprint}
    dictionaries = _dictionaries(plan)
    common = {"seeds": texts, "dictionaries": dictionaries, "seed": plan.seed}
    placebos: Any = None
    if plan.protocol == "hinter":
        suite = SUITES.create(
            "hinter", **common, attributes=plan.attributes, order=min(plan.order, 2), per_seed=plan.per_seed
        )
    else:
        suite = SUITES.create(
            plan.suite,
            **common,
            attributes=plan.attributes,
            order=plan.order,
            scope=plan.scope,
            per_seed=plan.per_seed,
            parser=parser,
            limit_chars=task.kept,
        )
        placebos = _placebos(suite, dictionaries, task)
    gate, agreement = CHECKS.create("dependency", parser=parser), CHECKS.create("agreement")
    return suite, gate, agreement, len(texts), placebos


def _placebos(suite: Any, dictionaries: Sequence[Any], task: Any) -> Any:
    """The suite's own placebos, or for the suite of this project those made from its dictionaries."""
    if hasattr(suite, "placebos"):
        return suite
    if not suite.name.startswith("mutation."):
        return None
    from auditor.suites.placebo import Placebos

    return Placebos(dictionaries=dictionaries, limit_chars=task.kept)


def _seeds(plan: Plan, task: Any, seeds: Iterable[Seed] | None, facts: dict[str, Any]) -> list[Seed]:
    from auditor import tasks

    if seeds is not None:
        texts = list(seeds)
        facts["seeds"] = {"source": "given by the caller", "n": len(texts)}
    else:
        source = plan.data or task.seeds_path
        if source is None:
            raise ConfigError(f"task {task.name!r} has no embedded texts. Give texts with --data FILE.")
        file = tasks.read_seeds(
            source,
            text_column=plan.text_column or "text",
            label_column=plan.label_column,
            limit=plan.limit,
        )
        texts = list(file.seeds)
        facts["seeds"] = {
            "source": plan.data or f"embedded texts of task {task.name}",
            "n": len(texts),
            "skipped": file.skipped,
            "sha256": file.sha256,
        }
    return texts


def _grammar(plan: Plan, task: Any) -> Any:
    """The suite that generates cases; by default from the grammar of the task's name."""
    from auditor import grammar
    from auditor.registry import SUITES

    name = plan.grammar or task.name
    if plan.grammar is None and name not in grammar.available():
        raise ConfigError(
            f"There is no grammar for the task {name!r}. Give one: --grammar FILE. "
            f"Shipped: {', '.join(grammar.available())}."
        )
    literal = plan.protocol == "astraea"
    return SUITES.create(
        "grammar",
        grammar=name,
        generation=plan.generation,
        attributes=plan.attributes,
        order=1 if literal else plan.order,
        per_case=plan.per_seed,
        pairs=literal,
        power=1.0 if literal else 2.0,
        seed=plan.seed,
        **({} if plan.limit is None else {"cases": plan.limit}),
    )


def _dictionaries(plan: Plan) -> list[Any]:
    """The built-in dictionaries, replaced or joined by those that the plan names."""
    from auditor import dictionaries

    if plan.protocol == "hinter" and not plan.dictionaries:
        # The paper's three attributes are unions of ours.
        names = plan.attributes or tuple(dictionaries.VIEWS)
        return [
            dictionaries.view(n) if n in dictionaries.VIEWS else dictionaries.load(n) for n in sorted(names)
        ]
    chosen = {name: dictionaries.load(name) for name in dictionaries.builtin()}
    if plan.dictionaries:
        own = dictionaries.load_options(plan.dictionaries)
        chosen = {d.attribute: d for d in own}
        for name in plan.attributes or ():
            if name not in chosen and name in dictionaries.builtin():
                chosen[name] = dictionaries.load(name)
    return [chosen[name] for name in sorted(chosen)]


def _models(plan: Plan, task: Any) -> list[Model]:
    from auditor import models

    return [
        models.make(spec, base_url=plan.base_url, task=task) for spec in plan.models or models.defaults(task)
    ]


class StoredCases:
    """A suite that hands out cases which were generated before."""

    name = "stored.v1"

    def __init__(self, cases: Iterable[tuple[Case, Mapping[str, Check]]]) -> None:
        self._cases = iter(cases)
        self.checks: dict[str, Check] = {}

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """The next ``n`` stored cases; their checks are put beside them."""
        taken: list[Case] = []
        for case, checks in self._cases:
            taken.append(case)
            self.checks.update(checks)
            if len(taken) == n:
                break
        return taken

    def tell(self, verdicts: Sequence[Verdict]) -> None:
        """Not adaptive."""


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """What the statistics need to know of a variant."""

    case_id: str
    directions: tuple[tuple[str, str, str], ...]
    kinds: tuple[str, ...]
    term: str = ""  # the words that were put in


@dataclass(kw_only=True)
class Tally:
    """What one model's answers came to, while they stream by."""

    model: Model
    replicates: int
    formats: tuple[str, ...]
    verdicts: list[Verdict] = field(default_factory=list)
    labels: dict[tuple[str, str], dict[str, list[Any]]] = field(
        default_factory=dict
    )  # (case, format) -> variant -> values
    counts: Counter[str] = field(default_factory=Counter)
    groups: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    cost_usd: float = 0.0
    reported: set[str] = field(default_factory=set)
    seen: set[tuple[str, int]] = field(default_factory=set)
    known: set[tuple[str, int]] = field(
        default_factory=set
    )  # journaled; what was not asked is not among them
    planned: int = 0
    mutants: list[Any] = field(default_factory=list)  # under --protocol hinter
    hidden: list[tuple[Case, str, str]] = field(default_factory=list)  # case, variant id, format
    placebos: list[Verdict] = field(default_factory=list)  # kept apart: they enter no rate of changes
    silent: dict[tuple[str, str], dict[str, float]] = field(
        default_factory=dict
    )  # (case, format) -> variant -> share of answers without a label, where there are some
    contrasts: dict[tuple[str, str], tuple[str, tuple[str, ...], float]] = field(
        default_factory=dict
    )  # (variant, format) -> case, attributes, interaction contrast
    canaries: dict[tuple[str, str], dict[str, list[Any]]] = field(
        default_factory=dict
    )  # (prompt, format) -> time -> answers
    control: dict[str, Any] = field(default_factory=dict)  # of the positive control
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
        self.about: dict[str, About] = {}
        self.cases: dict[str, tuple[str, ...]] = {}  # case id -> variant ids
        self.directed: set[str] = set()  # cases that earlier verdicts led to: they enter no rate
        self.golds: dict[str, tuple[str | None, Mapping[str, str]]] = {}  # case id -> label, groups named
        self.status_reason = ""
        self._canary_prompts: dict[str, dict[tuple[str, str], Prompt]] = {}
        self.agreement: dict[str, list[int]] = {k: [0, 0] for k in ("originals", "valid", "discarded")}
        self.valid_by_case: dict[str, dict[tuple[str, ...], list[int]]] = {}
        self._answered = answered or {}
        self.tallies = [self._tally(model) for model in parts.models]
        self.clients = [self._client(tally) for tally in self.tallies]

    def _tally(self, model: Model) -> Tally:
        plan = self.plan
        known = set(self._answered.get(model.name, ()))
        replicates = plan.replicates
        if replicates is None or model.deterministic:
            replicates = 1 if model.deterministic or plan.protocol != "default" else DEFAULT_REPLICATES
        return Tally(
            model=model,
            replicates=replicates,
            formats=formats_for(plan, self.parts.task, model),
            known=known,
        )

    def _client(self, tally: Tally) -> Any:
        from auditor.models.client import Client

        model = tally.model
        return Client(
            model,
            cache=self.parts.cache if model.cacheable else None,
            budget=self.parts.budget,
            concurrency=self.plan.concurrency,
            answered=self._answered.get(model.name, {}),
            on_response=lambda response: self._journal(tally, response),
        )

    def _journal(self, tally: Tally, response: Response) -> None:
        if self.folder is not None:
            self.folder.add_response(response)
        tally.known.add((response.prompt_sha256, response.replicate))
        self._progress(tally)

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
        while not self.status_reason:
            cases = self.parts.suite.ask(ROUND, rng)
            if not cases:
                break
            cases = self._with_placebos(cases)
            checks = self._gate(cases)
            prompts = self._take(cases, checks)
            told: list[Verdict] = []
            await asyncio.gather(
                *(self._question(i, cases, checks, prompts, told) for i in range(len(self.tallies)))
            )
            self.parts.suite.tell(sorted(told, key=lambda v: (v.case_id, v.variant_id, v.model, v.format)))
            await self._canaries(prompts, cases)
            await asyncio.sleep(0)
        await self._canaries({}, ())
        await self._positive_control()
        self.observe(Progress(phase="generate", done=self.counts["cases"], planned=self.counts["cases"]))

    def _with_placebos(self, cases: Sequence[Case]) -> Sequence[Case]:
        plan, make = self.plan, self.parts.placebos
        if make is None or plan.protocol != "default":
            return cases
        return [with_placebos(c, make, per_seed=plan.per_seed, seed=plan.seed) for c in cases]

    def _gate(self, cases: Sequence[Case]) -> dict[str, Check]:
        if self.parts.gate is None:
            return {v.id: self.parts.suite.checks[v.id] for case in cases for v in case.variants}
        found: dict[str, Check] = {}
        for checks in self.parts.gate.check_many(cases):
            found.update((check.variant_id, check) for check in checks)
        return found

    def _take(self, cases: Sequence[Case], checks: Mapping[str, Check]) -> dict[tuple[str, str], Prompt]:
        """Journal cases and prompts; returns the prompt of each (variant id, format)."""
        styles = sorted({(t.model.style, f) for t in self.tallies for f in t.formats})
        if not self.tallies:
            styles = [("chat", f) for f in formats_for(self.plan, self.parts.task, None)]
        prompts: dict[tuple[str, str], Prompt] = {}
        for case in cases:
            self._count(case, checks)
            if self.folder is not None:
                self.folder.add_case(case, {v.id: checks[v.id] for v in case.variants})
            for variant in (case.original, *case.variants):
                if variant is not case.original and checks[variant.id].status == "invalid":
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

    def _count(self, case: Case, checks: Mapping[str, Check]) -> None:
        self.counts["cases"] += 1
        self.counts["taken"] += 1
        self.cases[case.id] = tuple(v.id for v in case.variants)
        self.golds[case.id] = (case.label, case.original.groups)
        valid_here: dict[tuple[str, ...], list[int]] = {}
        if case.sampling == "directed":
            self.directed.add(case.id)
        self._agree("originals", case.original.input)
        for variant in case.variants:
            valid = checks[variant.id].status != "invalid"
            if is_placebo(variant):
                self.counts["placebos"] += 1
                self.counts["placebos_valid"] += valid
                self.about[variant.id] = About(
                    case_id=case.id, directions=variant.directions, kinds=("placebo",)
                )
                continue
            self.counts["variants"] += 1
            self.counts["valid" if valid else "discarded"] += 1
            cell = valid_here.setdefault(variant.attributes, [0, 0])
            cell[0] += valid
            cell[1] += 1
            self.about[variant.id] = About(
                case_id=case.id,
                directions=variant.directions,
                kinds=tuple(sorted({e.kind for e in variant.edits if e.kind != "agreement"})),
                term=" + ".join(sorted({e.target.lower() for e in variant.edits if e.kind != "agreement"})),
            )
            self._agree("valid" if valid else "discarded", variant.input)
        if case.sampling == "iid":
            self.valid_by_case[case.id] = valid_here

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
        keys: list[tuple[str, str]] = []
        requests: list[Request] = []
        for case in cases:
            for variant in (case.original, *case.variants):
                for name in tally.formats:
                    prompt = prompts.get((variant.id, name))
                    if prompt is None:
                        continue
                    for replicate in range(tally.replicates):
                        keys.append((variant.id, name))
                        requests.append(Request(prompt=prompt, replicate=replicate, variant_id=variant.id))
        tally.planned += len({(r.prompt.sha256, r.replicate) for r in requests} - tally.seen)
        answers: dict[str, dict[str, list[Answer]]] = {name: defaultdict(list) for name in tally.formats}
        for (variant_id, name), response in zip(keys, await client.ask(requests), strict=True):
            answers[name][variant_id].append(self._answer(tally, response))
        self._progress(tally)
        if client.stopped and not self.status_reason:
            self.status_reason = str(client.stopped)
        self._require_scores(tally, answers)
        for case in cases:
            for name in tally.formats:
                told += self._judge(tally, case, name, answers[name], checks)

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

    def _answer(self, tally: Tally, response: Response) -> Answer:
        """Count a response (each distinct one once) and read it."""
        if response.error is not None:
            answer = Answer(status="failed", reason=response.error)
        else:
            answer = self.parts.task.read(response.output, tally.model.style)
            if response.scores:
                answer = dataclasses.replace(answer, scores=response.scores)
        key = (response.prompt_sha256, response.replicate)
        if key in tally.known and key not in tally.seen:
            tally.seen.add(key)
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
        placebo = {v.id for v in case.variants if is_placebo(v)}
        # Order 0: no group changed. ``attributes`` are those whose edits a placebo copies.
        tally.placebos += [
            dataclasses.replace(v, order=0, hidden=None) for v in judged_all if v.variant_id in placebo
        ]
        verdicts = [v for v in judged_all if v.variant_id not in placebo]
        tally.verdicts += verdicts
        outcomes = Counter(v.outcome for v in verdicts)
        told = self.parts.oracle.answer(present.get(case.original.id, ()))
        judged = outcomes["pass"] + outcomes["violation"]
        tally.originals[name].append((case.id, told, judged, outcomes["violation"]))
        if self.plan.protocol == "hinter":
            from auditor.stats.hinter import mutants_of

            tally.mutants += mutants_of(case, verdicts, checks)
        tally.hidden += [(case, v.variant_id, name) for v in verdicts if v.hidden]
        tally.labels[case.id, name] = {
            variant_id: [a.value for a in given if a.status == "ok"] for variant_id, given in present.items()
        }
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
                tally.contrasts[verdict.variant_id, name] = (case.id, verdict.attributes, contrast)

    # -- controls ---------------------------------------------------------

    async def _canaries(self, prompts: Mapping[tuple[str, str], Prompt], cases: Sequence[Case]) -> None:
        """Ask the first prompts again, in the middle of the run and at its end."""
        if self.status_reason or self.plan.protocol != "default" or isinstance(self.parts.suite, StoredCases):
            return
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
        tally.planned += len({(r.prompt.sha256, r.replicate) for r in requests} - tally.seen)
        for key, response in zip(keys, await client.ask(requests), strict=True):
            answer = self._answer(tally, response)
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
        tally.planned += len({(r.prompt.sha256, r.replicate) for r in requests} - tally.seen)
        answers: dict[tuple[str, str], list[Answer]] = defaultdict(list)
        for (name, variant_id, _), response in zip(keys, await client.ask(requests), strict=True):
            # A file of recorded answers need not hold them; that makes no run partial.
            if response.error is None:
                answers[name, variant_id].append(self._answer(tally, response))
        told: dict[str, list[bool]] = {}
        for name in tally.formats:
            sides = [
                [self.parts.oracle.answer(answers.get((name, f"{pair}.{place}"), ())) for place in "ov"]
                for pair in pairs
                if any((name, f"{pair}.{place}") in answers for place in "ov")
            ]
            told[name] = [None not in pair and pair[0] != pair[1] for pair in sides]
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


def formats_for(plan: Plan, task: Any, model: Model | None) -> tuple[str, ...]:
    """The prompt formats that ``model`` is asked in; a classifier gets the bare input."""
    if model is not None and model.style == "text":
        return (BARE,)
    if not plan.formats:
        return (task.default_format,)
    return tuple(task.formats) if "all" in plan.formats else plan.formats


async def confirm(loop: Loop) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Ask the cells of each hidden candidate five more times; a model that wobbles makes them by chance.

    Returns
    -------
    dict
        (model, variant id, format) → ``{"confirmed": bool | None, "cells": {variant id: {label: count}}}``; None
        where answers are missing. Models declared deterministic need none.
    """
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for tally, client in zip(loop.tallies, loop.clients, strict=True):
        if tally.model.deterministic or loop.plan.protocol != "default" or loop.status_reason:
            continue
        if loop.plan.oracle == "probability":
            continue  # what is asked again is compared by label
        chosen = tally.hidden[:MAX_CONFIRM]
        for done, (case, variant_id, name) in enumerate(chosen):
            cells = lattice_cells(case, variant_id)
            counts = await _repeat(loop, tally, client, cells, name)
            found[tally.model.name, variant_id, name] = {
                "confirmed": _still_hidden([counts[v.id] for v in cells]),
                "cells": counts,
            }
            loop.observe(
                Progress(phase="confirm", model=tally.model.name, done=done + 1, planned=len(chosen))
            )
            if client.stopped:
                loop.status_reason = str(client.stopped)
                break
    return found


def lattice_cells(case: Case, variant_id: str) -> list[Any]:
    """The original, every proper subset's variant, and the joint variant itself, in this order."""
    joint = next(v for v in case.variants if v.id == variant_id)
    below = [
        v for v in case.variants if v.choices < joint.choices and set(v.attributes) < set(joint.attributes)
    ]
    return [case.original, *(v for v in below if _whole(v, joint)), joint]


def _whole(part: Any, joint: Any) -> bool:
    """Whether ``part`` holds all of ``joint``'s choices on its attributes."""
    return bool(part.choices == {c for c in joint.choices if c[0] in part.attributes})


async def _repeat(
    loop: Loop, tally: Tally, client: Any, cells: Sequence[Any], name: str
) -> dict[str, dict[str, int]]:
    task, style = loop.parts.task, tally.model.style
    requests = []
    for variant in cells:
        prompt = task.bare(variant.input) if style == "text" else task.render(variant.input, name)
        requests += [
            Request(prompt=prompt, replicate=tally.replicates + k, variant_id=variant.id)
            for k in range(CONFIRM_REPLICATES)
        ]
    tally.planned += len({(r.prompt.sha256, r.replicate) for r in requests} - tally.seen)
    counts: dict[str, Counter[str]] = {variant.id: Counter() for variant in cells}
    for request, response in zip(requests, await client.ask(requests), strict=True):
        answer = loop._answer(tally, response)
        counts[request.variant_id][label_text(answer)] += 1
    return {variant_id: dict(sorted(cell.items())) for variant_id, cell in counts.items()}


def label_text(answer: Answer) -> str:
    """The answer as one word for a table: the label, or why there is none."""
    if answer.status != "ok":
        return f"({answer.status})"
    if isinstance(answer.value, tuple):
        return ", ".join(answer.value) or "none"
    return str(answer.value)


def _still_hidden(cells: Sequence[Mapping[str, int]]) -> bool | None:
    """Majority of each cell: all subsets like the original, the joint one not."""
    majorities = []
    for cell in cells:
        label, count = max(cell.items(), key=lambda item: (item[1], item[0]), default=("(failed)", 0))
        if label.startswith("(") or 2 * count <= CONFIRM_REPLICATES:
            return None
        majorities.append(label)
    original, *below, joint = majorities
    return joint != original and all(label == original for label in below)


async def run_audit(
    parts: Parts,
    folder: Any | None,
    *,
    observe: Observer = silent,
    answered: Mapping[str, Mapping[tuple[str, int], Response]] | None = None,
) -> dict[str, Any]:
    """Run an audit to its record.

    Parameters
    ----------
    parts : Parts
        What `prepare` built.
    folder : RunFolder or None
        Where everything is journaled; ``plan.json`` is there already.
    observe : Observer
        Gets progress events.
    answered : mapping, optional
        Model → {(prompt sha256, replicate): Response} of an earlier, cut-off try; never asked again.

    Returns
    -------
    dict
        The run record (``run.json``), also when a limit was reached: its ``status`` is "partial" then.

    Raises
    ------
    UserError
        Nothing could be asked: a wrong key, an unreachable server.
    """
    from auditor.record import build

    started, clock = datetime.now(UTC), time.monotonic()
    loop = Loop(parts, folder, observe=observe, answered=answered)
    confirmed: dict[tuple[str, str, str], dict[str, Any]] = {}

    def record() -> dict[str, Any]:
        return build(loop, confirmed, started=started, seconds=time.monotonic() - clock)

    try:
        await loop.run()
        confirmed = await confirm(loop)
    except asyncio.CancelledError:
        loop.status_reason = "Interrupted."
        if folder is not None:
            folder.write_verdicts(v for t in loop.tallies for v in (*t.verdicts, *t.placebos))
            folder.write_run(record())
        raise
    finally:
        for model in parts.models:
            await model.aclose()
    _refuse_if_nothing_was_answered(loop)
    observe(Progress(phase="report", done=0, planned=1))
    result = record()
    if folder is not None:
        folder.write_verdicts(v for t in loop.tallies for v in (*t.verdicts, *t.placebos))
        folder.write_run(result)
    observe(Progress(phase="report", done=1, planned=1))
    return result


def _refuse_if_nothing_was_answered(loop: Loop) -> None:
    if not loop.counts["cases"] and not loop.status_reason:
        names = ", ".join(loop.plan.attributes or ()) or "an attribute of the dictionaries"
        raise UserError(
            f"None of the {loop.parts.seeds or 0} texts names people by {names}, so there is nothing to change. "
            "Give texts about people (--data), other attributes (--attributes) or your own terms (--dictionary)."
        )
    for tally, client in zip(loop.tallies, loop.clients, strict=True):
        stopped = client.stopped
        if stopped is None or isinstance(stopped, BudgetExceeded):
            continue
        if len(tally.seen) == tally.counts["failed"]:
            raise UserError(f"{tally.model.name} answered nothing: {client.stopped}")


def run_sync(make: Callable[[], Any]) -> Any:
    """Run a coroutine to its end, also from inside a running event loop (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(lambda: asyncio.run(make())).result()


def root_folder(plan: Plan) -> Path:
    """The folder that holds the run folders."""
    return Path(plan.out)


def plan_of(spec: Mapping[str, Any]) -> Plan:
    """The plan in the ``spec`` of a run record."""
    return Plan.from_dict({name: spec[name] for name in Plan.__dataclass_fields__ if name in spec})


def plan_record(parts: Parts) -> dict[str, Any]:
    """What ``plan.json`` holds: the plan, the resolved models, and hashes of everything that shapes the cases."""
    return {
        "plan": parts.plan.as_dict() | {"models": [m.name for m in parts.models]},
        "fingerprints": {m.name: m.fingerprint for m in parts.models},
        "inputs": parts.facts
        | {
            "suite": parts.suite.describe()
            if hasattr(parts.suite, "describe")
            else {"name": parts.suite.name}
        },
    }


def require_same_inputs(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to resume when texts, task, dictionaries, parser or model are no longer what the plan says."""
    import json

    from auditor.errors import RunFolderError

    def flat(value: Any) -> Any:
        return json.loads(json.dumps(value, sort_keys=True))

    for part in ("task_sha256", "seeds", "parser", "suite"):
        old, new = (flat(v["inputs"].get(part)) for v in (before, now))
        if old != new:
            raise RunFolderError(
                f"The {part.removesuffix('_sha256')} changed since this run began, so its answers would be "
                "judged against other questions. Start a new run, or put the old files back."
            )
    for name, old in before["fingerprints"].items():
        if now["fingerprints"].get(name) != old:
            raise RunFolderError(
                f"The model {name} or its parameters changed since this run began. Start a new run."
            )


def estimate(parts: Parts, *, observe: Observer = silent) -> dict[str, Any]:
    """Count the cases, prompts, calls, tokens and cost of a plan without asking anything."""
    from auditor.stats import power
    from auditor.types import Usage

    loop = Loop(dataclasses.replace(parts, models=[]), None, observe=observe)
    tallies = [loop._tally(model) for model in parts.models]
    rng = Random(parts.plan.seed)
    seen: list[set[str]] = [set() for _ in tallies]
    tokens = [0] * len(tallies)

    def add(text: Any) -> None:
        for i, tally in enumerate(tallies):
            for name in tally.formats:
                bare = tally.model.style == "text"
                prompt = parts.task.bare(text) if bare else parts.task.render(text, name)
                if prompt.sha256 not in seen[i]:
                    seen[i].add(prompt.sha256)
                    tokens[i] += _tokens(prompt)

    while cases := parts.suite.ask(ROUND, rng):
        cases = loop._with_placebos(cases)
        checks = loop._gate(cases)
        for case in cases:
            loop._count(case, checks)
            for variant in (case.original, *case.variants):
                if variant is case.original or checks[variant.id].status != "invalid":
                    add(variant.input)
    if parts.plan.protocol == "default":
        for pair in control_pairs(parts.task):
            for text in pair.texts:
                add(text)
    counts = loop.counts
    models: dict[str, Any] = {}
    for tally, hashes, tokens_in in zip(tallies, seen, tokens, strict=True):
        calls = len(hashes) * tally.replicates
        out = (
            0
            if tally.model.style == "text"
            else max(parts.task.max_tokens(name) for name in tally.formats) * calls
        )
        price = parts.budget.price_of(tally.model)
        total_in = tokens_in * tally.replicates
        canaries = 0
        if not tally.model.deterministic and parts.plan.protocol == "default":
            times = 2 if counts["cases"] > ROUND else 1
            canaries = min(CANARIES, counts["cases"]) * len(tally.formats) * CANARY_REPLICATES * times
            total_in += round(canaries * tokens_in / max(1, len(hashes)))
            out += 0 if tally.model.style == "text" else round(canaries * out / max(1, calls))
        cost = None if price is None else price.usd(Usage(tokens_in=total_in, tokens_out=out))
        if tally.model.style == "text":
            total_in, cost = 0, 0.0
        models[tally.model.name] = {
            "prompts": len(hashes),
            "replicates": tally.replicates,
            "calls": calls,
            "calls_canary": canaries,
            "tokens_in": total_in,
            "tokens_out": out,
            "cost_usd": cost,
        }
    return {
        "seeds": parts.seeds or counts["cases"],
        **{k: counts[k] for k in ("cases", "variants", "valid", "discarded", "placebos", "placebos_valid")},
        "models": models,
        "power": power.plan(counts["cases"]),
    }


def _tokens(prompt: Prompt) -> int:
    """Estimated tokens of a prompt: characters / 3.5, and a few per message."""
    if prompt.messages is None:
        return round(len(prompt.text or "") / 3.5)
    return sum(4 + round(len(m.content) / 3.5) for m in prompt.messages)


async def replay(result: Any, wanted: str, replicates: int) -> dict[str, Any]:
    """Ask the cells of one finding or variant again, past every cache; see `auditor.result.replay`."""
    from auditor.models.client import Client

    plan = plan_of(result.record["spec"])
    found = next((f for f in result.findings if f.id == wanted), None)
    variant_id = found.exemplars[0] if found is not None and found.exemplars else wanted
    case = result.evidence.case_of(variant_id)
    if case is None or variant_id == case.original.id:
        from auditor.errors import UnknownPlugin

        raise UnknownPlugin(
            "finding or variant", wanted, [f.id for f in result.findings], f"See: audit show {result.path}"
        )
    model_name = found.model if found is not None else plan.models[0]
    parts = prepare(dataclasses.replace(plan, models=(model_name,), cache=False), cases=iter(()))
    loop = Loop(parts, None)
    tally = loop.tallies[0]
    client = Client(tally.model, cache=None, budget=parts.budget, concurrency=plan.concurrency)
    name = found.format if found is not None and found.format else tally.formats[0]
    cells = lattice_cells(case, variant_id)
    shown = []
    try:
        for variant in cells:
            text = tally.model.style == "text"
            prompt = parts.task.bare(variant.input) if text else parts.task.render(variant.input, name)
            asked = [Request(prompt=prompt, replicate=k, variant_id=variant.id) for k in range(replicates)]
            now = Counter(label_text(loop._answer(tally, r)) for r in await client.ask(asked))
            if client.stopped and len(tally.seen) == tally.counts["failed"]:
                raise UserError(f"{model_name} answered nothing: {client.stopped}")
            before = Counter(
                label_text(
                    parts.task.read(r.output, tally.model.style)
                    if r.error is None
                    else Answer(status="failed", reason=r.error)
                )
                for r in result.evidence.responses(variant.id)
                if r.model == model_name
            )
            shown.append(
                {
                    "variant_id": variant.id,
                    "role": "original"
                    if variant is case.original
                    else "joint"
                    if variant.id == variant_id and variant.order > 1
                    else "atomic"
                    if variant.order == 1
                    else "subset",
                    "edits": [dataclasses.asdict(e) for e in variant.edits if e.kind != "agreement"],
                    "before": dict(sorted(before.items())),
                    "now": dict(sorted(now.items())),
                }
            )
    finally:
        await tally.model.aclose()
    return {"id": wanted, "model": model_name, "format": name, "replicates": replicates, "cells": shown}
