"""What a plan will ask, without asking: worked out on its texts, or on a sample of many."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from msgspec.structs import replace

from auditor.core.protocols import Model, Observer
from auditor.core.record.rows import ExpectedJudge, ExpectedModel, ExpectedTexts, Power
from auditor.core.shown import plural
from auditor.core.types import (
    Case,
    Check,
    Progress,
    Prompt,
    SourceText,
    Usage,
    Variant,
    id_of,
    is_beside,
    is_wording,
    text_of,
)
from auditor.measure.answer_quality import gold_summary
from auditor.measure.claims import Question, pairs, texts_needed
from auditor.measure.contrasts import Versions
from auditor.measure.observations import Observations, attributes_of, carrier_of
from auditor.report import run_checks
from auditor.report.words import listing
from auditor.run.loop import Loop, asked_further, has_canaries
from auditor.run.preparation import CANARIES, CANARY_REPLICATES, FEW, Parts, prepare, prompt_of, remade, tell_proxies
from auditor.run.rounds import ROUND, Source
from auditor.run.state import State, Tally, question, silent

if TYPE_CHECKING:
    from auditor.core.plan import Plan

R = TypeVar("R", ExpectedModel, ExpectedJudge)
Checked = tuple[Case, Mapping[str, Check]]
MOST = 72  # texts that a plan is worked out on; of more, a sample
FEWEST = 24  # texts that name an attribute: so many are in the sample, or all
COUNTED = (
    "cases", "taken", "variants", "valid", "discarded", "placebos", "placebos_valid", "wordings", "wordings_valid",
)  # fmt: skip


class Row(NamedTuple):
    """A case, what is asked of it before any answer is in, and how many cases it counts for."""

    case: Case
    checks: Mapping[str, Check]
    asked: Sequence[Variant]
    counts: Counter[str]
    weight: float

    @property
    def versions(self) -> Iterator[Variant]:
        """The original and all valid variants in one wording, asked about or not."""
        for v in (self.case.original, *self.case.variants):
            if v is self.case.original or (self.checks[v.id].status != "invalid" and not is_wording(v)):
                yield v


class Ahead:
    """The cases of a plan before its run."""

    def __init__(self, parts: Parts, made: tuple[Sequence[Checked], dict[str, float]] | None = None) -> None:
        self.parts = parts
        self._cases, self._weights = made or ((), _sample(parts))  # of the sample
        self._rows: list[Row] = []

    @property
    def rows(self) -> Iterable[Row]:
        """The cases of the sample; of a suite without texts one after the other."""
        if self.parts.texts and not self._rows:
            self._rows = list(self._walk())
        return self._rows or self._walk()

    def _walk(self) -> Iterator[Row]:
        parts = self.parts
        texts = [text for text in parts.texts if not self._weights or _id(text) in self._weights]
        if not self._cases:
            cases = cases_of(remade(parts, texts=texts))  # the suite of the run is left as it is
            self._cases = list(cases) if texts else ()
        share = len(texts) / len(parts.texts) if texts else 1.0
        plan = parts.plan
        if plan.max_calls is not None:
            plan = plan.but(max_calls=math.ceil(plan.max_calls * share))
        seeds = len(texts) if texts else parts.seeds
        loop = Loop(dataclasses.replace(parts, plan=plan, models=[], judge=None, seeds=seeds))
        loop.tallies = [loop.tally(model) for model in parts.models]
        for tally in loop.tallies:
            tally.further = round(asked_further(parts, tally) * share)
        for case, checks in self._cases or cases:
            before = loop.counts.copy()
            loop.count(case, checks)
            every = (case.original, *case.variants) if loop.until is None else loop.until.wanted(case, checks)
            asked = [v for v in every if v is case.original or loop.asked(checks[v.id])]
            yield Row(case, checks, asked, loop.counts - before, self._weights.get(text_of(case.id), 1.0))

    @cached_property
    def narrowed(self) -> Ahead:
        """The same without attributes of too few texts, where little is asked and the plan names no attribute."""
        parts, plan = self.parts, self.parts.plan
        if parts.open is None or plan.attributes is not None or plan.groups or not parts.texts:
            return self
        lacking, others = self.lacking()
        if not (lacking and others):
            return self
        left = remade(parts, plan=plan.but(attributes=others))
        left.facts[FEW] = lacking
        kept = []
        for case, checks in self._cases:
            if fewer := tuple(v for v in case.variants if lacking.keys().isdisjoint(v.attributes)):
                kept.append((dataclasses.replace(case, variants=fewer), checks))
        return Ahead(left, (kept, self._weights))

    def lacking(self) -> tuple[dict[str, dict[str, int]], tuple[str, ...]]:
        """The attributes with too few texts for a difference of 30 points, and the others."""
        table, asked, times = self.table(every=True), self._question(), self._times()
        columns = table.columns()
        versions = Versions(table, columns)
        layout = versions.where(np.ones(len(columns.version_text), dtype=bool))
        lacking: dict[str, dict[str, int]] = {}
        names = attributes_of(table)
        for name in names:
            claims = [(0.0, 0, texts_needed())]
            for pair in pairs(layout.names(name), name, asked):
                contrast, _ = layout.contrast(name, pair.group, pair.against)
                needed, ratio = pair.needed("number" if asked.number else "share"), times.get(name, 1.0)
                claims.append((contrast.sides * ratio / needed, round(len(contrast.text) * ratio), needed))
            enough, here, needed = max(claims[1:] or claims)
            if enough < 1:
                lacking[name] = {"texts": here, "needed": needed}
        return dict(sorted(lacking.items())), tuple(name for name in names if name not in lacking)

    def table(self, *, every: bool = False) -> Observations:
        """The versions that are asked about, or every valid one in one wording, in a table without answers."""
        table = Observations()
        for row in self.rows:
            if row.case.source is not None:
                table.sources[row.case.id] = row.case.source
            for variant in row.versions if every else row.asked:
                table.version(row.case.id, variant.edits, variant.id, row.case.original.input)
        return table

    def expected(self) -> ExpectedTexts:
        """Count the cases, prompts, calls, tokens and cost."""
        parts = self.parts
        state = State(dataclasses.replace(parts, models=[], judge=None))
        prompts = [_Prompts(tally=state.tally(model)) for model in parts.models]
        counts: dict[str, float] = defaultdict(float)
        carried: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        compared = 0.0
        for row in self.rows:
            parts.task.about(row.case.original.input)
            for name, n in row.counts.items():
                counts[name] += n * row.weight
            alone = (v for v in row.asked if v.order == 1 and not is_beside(v))
            for attribute, carrier in {(v.attributes[0], carrier_of(v.edits)) for v in alone}:
                carried[attribute][carrier] += row.weight
            for variant in row.asked:
                for one in prompts:
                    one.add(parts, variant.input, row.weight, once=is_wording(variant))
            shown = (v for v in row.case.variants if row.checks[v.id].status != "invalid")
            compared += row.weight * sum(not is_wording(v) for v in shown)
        for text in (text for pair in parts.task.controls for text in pair if parts.plan.protocol == "default"):
            for one in prompts:
                one.add(parts, text, 1.0)
        tallies = [one.tally for one in prompts]
        rows = {one.tally.model.name: one.expected(parts, counts["cases"]) for one in prompts}
        judge = None if parts.judge is None else _judge(parts, parts.judge, compared, tallies)
        every: list[ExpectedModel | ExpectedJudge] = [*rows.values(), *filter(None, [judge])]
        whole = sum(row.calls + getattr(row, "calls_canary", 0) for row in every)
        limit, left = _limit(parts.plan, whole, [row.cost_usd for row in every])
        if limit:
            rows = {name: _part(row, left) for name, row in rows.items()}
            judge = None if judge is None else _part(judge, left)
        return ExpectedTexts(
            seeds=parts.seeds or round(counts["cases"]),
            sampled=len(self._weights),
            **{name: round(counts[name]) for name in COUNTED},
            carried={name: {c: round(n) for c, n in sorted(by.items())} for name, by in sorted(carried.items())},
            languages=parts.facts.get("seeds", {}).get("languages", {}),
            models=rows,
            judge=judge,
            calls_whole=whole if limit else 0,
            limit=limit,
            left_out=" ".join(left_out(parts)),
            power=self._power(tallies),
        )

    def _question(self) -> Question:
        parts = self.parts
        return question(parts.task, parts.plan, parts.dictionaries, {}, dict.fromkeys(parts.task.labels or (), 1))

    def _power(self, tallies: Sequence[Tally]) -> Power:
        """What the net claims of the plan can show; none are made of free text or under another protocol."""
        from auditor.measure.power import reach

        if self.parts.plan.protocol != "default" or self.parts.task.kind.text:
            return Power()
        asked = self._question()
        families = sum(len(tally.formats) for tally in tallies) * max(1, len(asked.outcomes))
        return reach(self.table(), asked, families, self.parts.plan.seed, self._times())

    def _times(self) -> dict[str, float]:
        """By attribute for how many texts one of the sample counts."""
        seen: Counter[str] = Counter()
        weights: dict[str, float] = defaultdict(float)
        for row in self.rows if self._weights else ():
            for name in {v.attributes[0] for v in row.versions if v.order == 1 and not is_beside(v)}:
                seen[name] += 1
                weights[name] += row.weight
        return {name: weights[name] / n for name, n in seen.items()}


def _id(text: SourceText) -> str:
    return text_of(id_of("c", [text.id, text.text]))


def _sample(parts: Parts) -> dict[str, float]:
    """The texts to look at, with the number of texts that each counts for; empty where all are looked at."""
    from auditor.perturb.matching import Matcher

    texts = parts.texts
    if len(texts) <= MOST or parts.plan.suite not in ("mutation", "joint-first"):
        return {}
    matcher = Matcher(parts.dictionaries)
    named = [{t.attribute for hit in matcher.scan(text.text).hits for t in hit.terms} for text in texts]
    size = Counter(name for names in named for name in names)
    order = list(range(len(texts)))
    Random(f"{parts.plan.seed}:ahead").shuffle(order)
    out = {}
    # Each attribute's texts have a chance of their own, so that what few texts name is counted well.
    for place, n in enumerate(order):
        chance = max([MOST / len(texts), *(min(1.0, FEWEST / size[name]) for name in named[n])])
        if (place + 0.5) / len(texts) < chance:
            out[_id(texts[n])] = 1 / chance
    total = sum(out.values())
    return {text: weight * len(texts) / total for text, weight in out.items()}


def cases_of(parts: Parts) -> Iterator[tuple[Case, Mapping[str, Check]]]:
    """The cases of a plan, with what the validity gate says of their variants, made in this process."""
    rounds, rng = Source(parts), Random(parts.plan.seed)
    while (made := rounds.made(rng)).cases:
        for case in made.cases:
            yield case, made.checks


@dataclass(kw_only=True)
class _Prompts:
    """The different prompts of one model, with the number of prompts that each counts for."""

    tally: Tally
    seen: dict[str, float] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)  # of these, prompts that are asked with replicates
    tokens: float = 0.0

    def add(self, parts: Parts, text: object, weight: float, *, once: bool = False) -> None:
        for name in self.tally.formats:
            prompt = prompt_of(parts.task, text, self.tally.model.style, name)
            if not once:
                self.repeated.add(prompt.sha256)
            if prompt.sha256 not in self.seen:
                self.seen[prompt.sha256] = weight
                self.tokens += weight * _tokens(prompt)

    @property
    def number(self) -> float:
        """How many there are, each as often as it is asked."""
        again = sum(self.seen[one] for one in self.repeated)
        return sum(self.seen.values()) + again * (self.tally.replicates - 1)

    def expected(self, parts: Parts, cases: float) -> ExpectedModel:
        """What asking them amounts to, with the first ones again as canaries."""
        tally, task, bare = self.tally, parts.task, self.tally.model.style == "text"
        each = task.calls  # of a conversation: one for each turn, and one for tools
        prompts = sum(self.seen.values())
        calls = round(self.number)
        out = 0 if bare else max(task.max_tokens(name) for name in tally.formats) * calls * each
        total_in, canaries = round(self.tokens * calls / max(1.0, prompts)), 0
        if has_canaries(parts, tally.model):
            times = 2 if cases > ROUND else 1
            canaries = min(CANARIES, round(cases)) * len(tally.formats) * CANARY_REPLICATES * times
            total_in += round(canaries * self.tokens / max(1.0, prompts))
            out += 0 if bare else round(canaries * out / max(1, calls))
        price = parts.budget.price_of(tally.model)
        if parts.plan.batch and parts.budget.price is None:
            from auditor.models.batch import half

            price = half(price)
        cost = None if price is None else price.usd(Usage(tokens_in=total_in, tokens_out=out))
        return ExpectedModel(
            prompts=round(prompts),
            replicates=tally.replicates,
            calls=calls * each,
            calls_canary=canaries * each,
            tokens_in=0 if bare else total_in,
            tokens_out=out,
            cost_usd=0.0 if bare else cost,
        )


def _limit(plan: Plan, calls: int, costs: Sequence[float | None]) -> tuple[str, float]:
    """The option whose limit ends the run before its plan is done, and the share that is asked until then."""
    cost = sum(one or 0.0 for one in costs)
    shares = {
        "--max-calls": 1.0 if plan.max_calls is None or not calls else plan.max_calls / calls,
        "--max-cost": 1.0 if plan.max_cost is None or not cost else plan.max_cost / cost,
    }
    name = min(shares, key=lambda one: shares[one])
    return (name, shares[name]) if shares[name] < 1 else ("", 1.0)


def _part(row: R, share: float) -> R:
    """Return a share of what is expected: as much of it as a limit of calls allows."""
    names = ("calls", "calls_canary", "tokens_in", "tokens_out", "pairs")
    fewer: dict[str, float | None] = {n: int(getattr(row, n) * share + 1e-6) for n in names if hasattr(row, n)}
    return replace(row, **fewer, cost_usd=None if row.cost_usd is None else row.cost_usd * share)


def _judge(parts: Parts, model: Model, compared: float, tallies: Sequence[Tally]) -> ExpectedJudge:
    """The most that the judge is asked: both orders of each pair, and of the pairs with known answers."""
    from auditor.models.pair_judge import both
    from auditor.tasks import load

    task = load("judge")

    def tokens(text: str) -> int:
        return _tokens(prompt_of(task, text, model.style))

    shown = round(compared * sum(len(tally.formats) for tally in tallies))
    calls = 2 * (shown + len(task.controls))
    answers = sum(2 * round(compared) * parts.task.max_tokens(name) * 2 for tally in tallies for name in tally.formats)
    tokens_in = 2 * shown * tokens(both("", "")) + answers
    tokens_in += sum(tokens(text) for pair in task.controls for text in pair)
    tokens_out = calls * task.max_tokens(task.default_format)
    price = parts.budget.price_of(model)
    cost = None if price is None else price.usd(Usage(tokens_in=tokens_in, tokens_out=tokens_out))
    if model.costs != "tokens":
        tokens_in = tokens_in if model.style == "chat" else 0
        tokens_out, cost = (tokens_out if model.style == "chat" else 0), 0.0
    return ExpectedJudge(
        model=model.name, pairs=shown, calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, cost_usd=cost
    )


def _tokens(prompt: Prompt) -> int:
    """Estimated tokens of a prompt: characters / 3.5, and a few per message."""
    if prompt.messages is None:
        return round(len(prompt.text or "") / 3.5)
    sizes = [4 + round(len(m.content) / 3.5) for m in prompt.messages]
    if prompt.talk is None:
        return sum(sizes)
    # Each turn sends again what was said before, and the tools.
    tools = sum(round(len(str(tool.plain())) / 3.5) for tool in prompt.tools)
    users = [n for n, m in enumerate(prompt.messages) if m.role == "user"]
    return sum(sum(sizes[: n + 1]) + tools for n in users)


def planned(
    plan: Plan,
    *,
    models: Sequence[Model] | None = None,
    seeds: Iterable[SourceText] | None = None,
    observe: Observer = silent,
) -> Ahead:
    """Prepare a plan, without attributes that have too few texts, where it names none and asks a hosted model."""
    made = Ahead(prepare(plan, models=models, seeds=seeds)).narrowed
    tell_left_out(made.parts, observe)
    return made


def dry_run(plan: Plan, *, observe: Observer = silent) -> ExpectedTexts:
    """What ``plan`` would ask and what it would cost, without asking."""
    made = planned(plan)
    tell_proxies([*made.parts.models, made.parts.judge], observe)
    return made.expected()


def left_out(parts: Parts) -> list[str]:
    """What a plan leaves out, and that it has too few texts to decide anything, in sentences."""
    plan, few = parts.plan, parts.facts.get(FEW, {})
    said = [*filter(None, [cheap_said(parts)])]
    if few:
        named = listing([f"{name} ({one['texts']} of {one['needed']})" for name, one in few.items()])
        said.append(
            f"Left out, since they have too few texts to decide anything: {named}. --attributes asks about them."
        )
    seeds = parts.facts.get("seeds", {})
    if gone := run_checks.dropped(seeds.get("skipped"), seeds.get("repeated")):
        said.append(f"Left out of {seeds['source']}: {gone}.")
    if parts.task.labels:
        gold = gold_summary((t.label for t in parts.texts), lambda label: parts.task.read(label, "text").status == "ok")
        said += filter(None, [run_checks.golds(gold, parts.task.labels)])
    if plan.labels and any(model.style == "chat" for model in parts.models):
        said.append(
            "A plain prompt asks for your labels. A task file asks in your own words: audit list tasks new NAME."
        )
    needed, texts = texts_needed(), parts.seeds
    plain = (plan.suite, plan.protocol) == ("mutation", "default")
    if plain and parts.task.labels and texts is not None and texts * (plan.wordings or 1) < needed:
        said.append(
            f"This plan can decide little: with {plural(texts, 'text')} even a difference of 30 points between "
            f"labels goes unnoticed. Use at least {needed}."
        )
    return said


def cheap_said(parts: Parts) -> str:
    """Say what is asked by default where a model costs money or time; "" where the plan sets the limit of calls."""
    plan = parts.plan
    if parts.open is None or plan.max_calls == parts.open.max_calls:
        return ""
    stops = " and stops when every claim is decided" if plan.until_decided else ""
    return f"Asks at most {plan.max_calls:,} calls{stops}; --full-plan asks everything."


def tell_left_out(parts: Parts, observe: Observer) -> None:
    """Tell what a plan leaves out, and that it can decide little."""
    for line in left_out(parts):
        observe(Progress(phase="plan", done=0, message=line))
