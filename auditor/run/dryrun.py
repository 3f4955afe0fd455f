"""What a plan will ask, without asking; attributes of which it has too few texts to decide anything."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from msgspec.structs import replace

from auditor.core.protocols import Model, Observer
from auditor.core.record.rows import ExpectedJudge, ExpectedModel, ExpectedTexts, Power
from auditor.core.types import Case, Check, Prompt, Usage, Variant, is_beside, is_wording
from auditor.measure.claims import pairs, texts_needed
from auditor.measure.contrasts import Versions
from auditor.measure.observations import Observations, attributes_of, carrier_of
from auditor.run.audit import run_sync
from auditor.run.loop import Loop, source
from auditor.run.observed import question
from auditor.run.preparation import CANARIES, CANARY_REPLICATES, Parts, left_out, prepare, prompt_of
from auditor.run.rounds import ROUND
from auditor.run.run_controls import has_canaries
from auditor.run.state import Tally, silent

if TYPE_CHECKING:
    from auditor.models.budget import Price

R = TypeVar("R", ExpectedModel, ExpectedJudge)
MOST = 500  # texts that are looked at to tell whether there are enough; of more, a sample
COUNTED = (
    "cases", "taken", "variants", "valid", "discarded", "placebos", "placebos_valid", "wordings", "wordings_valid",
)  # fmt: skip


@dataclass(kw_only=True)
class _Prompts:
    """The different prompts of one model."""

    tally: Tally
    seen: set[str] = field(default_factory=set)
    once: set[str] = field(default_factory=set)  # of these, prompts that are asked without replicates
    tokens: int = 0

    def add(self, parts: Parts, text: object, *, once: bool = False) -> None:
        for name in self.tally.formats:
            prompt = prompt_of(parts.task, text, self.tally.model.style, name)
            if not once:
                self.once.discard(prompt.sha256)
            if prompt.sha256 not in self.seen:
                self.seen.add(prompt.sha256)
                self.tokens += _tokens(prompt)
                if once:
                    self.once.add(prompt.sha256)

    def expected(self, parts: Parts, cases: int) -> ExpectedModel:
        """What asking them comes to, with the first ones again as canaries."""
        tally, task, bare = self.tally, parts.task, self.tally.model.style == "text"
        each = task.calls  # of a conversation: one for each turn, and one for tools
        calls = len(self.seen) * tally.replicates - len(self.once) * (tally.replicates - 1)
        out = 0 if bare else max(task.max_tokens(name) for name in tally.formats) * calls * each
        prompts = max(1, len(self.seen))
        total_in, canaries = round(self.tokens * calls / prompts), 0
        if has_canaries(parts, tally.model):
            times = 2 if cases > ROUND else 1
            canaries = min(CANARIES, cases) * len(tally.formats) * CANARY_REPLICATES * times
            total_in += round(canaries * self.tokens / prompts)
            out += 0 if bare else round(canaries * out / max(1, calls))
        price = _price(parts, tally.model)
        cost = None if price is None else price.usd(Usage(tokens_in=total_in, tokens_out=out))
        return ExpectedModel(
            prompts=len(self.seen),
            replicates=tally.replicates,
            calls=calls * each,
            calls_canary=canaries * each,
            tokens_in=0 if bare else total_in,
            tokens_out=out,
            cost_usd=0.0 if bare else cost,
        )


def estimate(parts: Parts, *, observe: Observer = silent) -> ExpectedTexts:
    """Count the cases, prompts, calls, tokens and cost of a plan without asking anything."""
    loop = Loop(dataclasses.replace(parts, models=[], judge=None), observe=observe)
    prompts = [_Prompts(tally=loop.tally(model)) for model in parts.models]
    table = Observations()
    compared = 0
    carried: dict[str, Counter[str]] = {}

    def take(case: Case, asked: Sequence[Variant], checks: Mapping[str, Check]) -> None:
        nonlocal compared
        parts.task.about(case.original.input)
        real = (v for v in asked if v.order == 1 and not is_beside(v))
        for attribute, carrier in {(v.attributes[0], carrier_of(v.edits)) for v in real}:
            carried.setdefault(attribute, Counter())[carrier] += 1
        for variant in asked:
            for one in prompts:
                one.add(parts, variant.input, once=is_wording(variant) or loop.once(case))
            table.version(case.id, variant.edits, original=case.original.input)
        compared += sum(checks[v.id].status != "invalid" for v in case.variants if not is_wording(v))

    _walk(loop, take)
    for text in (text for pair in parts.task.controls for text in pair if parts.plan.protocol == "default"):
        for one in prompts:
            one.add(parts, text)
    tallies = [one.tally for one in prompts]
    rows = {one.tally.model.name: one.expected(parts, loop.counts["cases"]) for one in prompts}
    judge = None if parts.judge is None else _judge(parts, parts.judge, compared, tallies)
    whole, most = sum(r.calls + r.calls_canary for r in rows.values()), parts.plan.max_calls
    whole += judge.calls if judge else 0
    if limited := most is not None and whole > most:
        rows = {name: _part(row, most / whole) for name, row in rows.items()}
        judge = None if judge is None else _part(judge, most / whole)
    return ExpectedTexts(
        seeds=parts.seeds or loop.counts["cases"],
        **{k: loop.counts[k] for k in COUNTED},
        carried={attribute: dict(sorted(by.items())) for attribute, by in sorted(carried.items())},
        not_english=parts.facts.get("seeds", {}).get("not_english", 0),
        models=rows,
        judge=judge,
        calls_whole=whole if limited else 0,
        left_out=" ".join(left_out(parts)),
        power=_power(parts, table, tallies),
    )


def _part(row: R, share: float) -> R:
    """Return a share of what is expected: as much of it as a limit of calls allows."""
    names = ("calls", "calls_canary", "tokens_in", "tokens_out", "pairs")
    fewer: dict[str, float | None] = {n: int(getattr(row, n) * share + 1e-6) for n in names if hasattr(row, n)}
    return replace(row, **fewer, cost_usd=None if row.cost_usd is None else row.cost_usd * share)


async def cases_of(parts: Parts) -> AsyncIterator[tuple[Case, Mapping[str, Check]]]:
    """The cases of a plan, with what the validity gate says of their variants."""
    rounds, rng = source(parts), Random(parts.plan.seed)
    try:
        while True:
            cases, checks = await rounds.next(rng)
            if not cases:
                return
            for case in cases:
                yield case, checks
    finally:
        rounds.close()


def _walk(loop: Loop, take: Callable[[Case, Sequence[Variant], Mapping[str, Check]], None]) -> None:
    """Hand out each case of a plan, what is asked of it before any answer is in, and the checks of its variants."""

    async def go() -> None:
        async for case, checks in cases_of(loop.parts):
            loop.count(case, checks)
            every = (case.original, *case.variants) if loop.until is None else loop.until.wanted(case, checks)
            take(case, [v for v in every if v is case.original or loop.asked(checks[v.id])], checks)

    run_sync(go)


def _power(parts: Parts, table: Observations, tallies: Sequence[Tally]) -> Power:
    """What the net claims of the plan can show; none are made of free text or under another protocol."""
    from auditor.measure.power import reach

    task = parts.task
    if parts.plan.protocol != "default" or task.kind.text:
        return Power()
    labels = dict.fromkeys(task.labels or (), 1)
    asked = question(task, parts.plan, parts.dictionaries, {}, labels)
    families = sum(len(tally.formats) for tally in tallies) * max(1, len(asked.outcomes))
    return reach(table, asked, families, parts.plan.seed)


def versions(parts: Parts) -> Observations:
    """The versions that a plan asks about, in a table without answers."""
    table = Observations()

    def take(case: Case, asked: Sequence[Variant], checks: Mapping[str, Check]) -> None:
        if case.source is not None:
            table.sources[case.id] = case.source
        for variant in asked:
            table.version(case.id, variant.edits, variant.id, case.original.input)

    _walk(Loop(dataclasses.replace(parts, models=[], judge=None)), take)
    return table


def _price(parts: Parts, model: Model) -> Price | None:
    """What the tokens of ``model`` cost in this run; batches cost half the list price."""
    price: Price | None = parts.budget.price_of(model)
    if not parts.plan.batch or parts.budget.price is not None:
        return price
    from auditor.models.batch import half

    return half(price)


def _judge(parts: Parts, model: Model, compared: int, tallies: Sequence[Tally]) -> ExpectedJudge:
    """The most that the judge is asked: both orders of each pair, and of the pairs with known answers.

    Answers that are alike are not asked about, and an answer may be shorter than its format allows.
    """
    from auditor.models.pair_judge import both
    from auditor.tasks import load

    task = load("judge")

    def tokens(text: str) -> int:
        return _tokens(prompt_of(task, text, model.style))

    shown = compared * sum(len(tally.formats) for tally in tallies)
    calls = 2 * (shown + len(task.controls))
    answers = sum(2 * compared * parts.task.max_tokens(name) * 2 for tally in tallies for name in tally.formats)
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


def count(parts: Parts) -> tuple[dict[str, dict[str, int]], tuple[str, ...]]:
    """The attributes with too few texts for a difference of 30 points, and the others.

    Of the former the texts of the clearest claim, and how many that needs.
    """
    texts = list(parts.texts)
    if len(texts) > MOST:
        texts = Random(parts.plan.seed).sample(texts, MOST)
    ratio = len(parts.texts) / len(texts)
    table = versions(prepare(parts.plan, models=parts.models, seeds=texts))
    columns = table.columns()
    asked = question(parts.task, parts.plan, parts.dictionaries, {}, dict.fromkeys(parts.task.labels or (), 1))
    laid = Versions(table, columns)
    layout = laid.where(np.ones(len(columns.version_text), dtype=bool))
    lacking: dict[str, dict[str, int]] = {}
    names = attributes_of(table)
    for attribute in names:
        claims = [(0.0, 0, texts_needed())]
        for pair in pairs(layout.names(attribute), attribute, asked):
            contrast, _ = layout.contrast(attribute, pair.group, pair.against)
            needed = pair.needed("number" if asked.number else "share")
            claims.append((contrast.sides * ratio / needed, round(len(contrast.text) * ratio), needed))
        enough, here, needed = max(claims[1:] or claims)
        if enough < 1:
            lacking[attribute] = {"texts": here, "needed": needed}
    return dict(sorted(lacking.items())), tuple(name for name in names if name not in lacking)
