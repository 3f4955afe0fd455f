"""What a plan will ask, without asking."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING

from auditor.core.protocols import Model, Observer
from auditor.core.record.rows import ExpectedJudge, ExpectedModel, ExpectedTexts, Power
from auditor.core.types import Case, Check, Prompt, Variant, is_beside, is_wording
from auditor.measure.enough import texts_needed
from auditor.measure.observations import Observations, carrier_of
from auditor.report import words
from auditor.run.audit import run_sync
from auditor.run.controls import CANARIES, CANARY_REPLICATES, control_pairs
from auditor.run.loop import Loop, Tally, silent
from auditor.run.parts import Parts, StoredCases
from auditor.run.rounds import ROUND, source

if TYPE_CHECKING:
    from auditor.models.prices import Price

FEW = "too_few_texts"  # in the inputs of a plan: attributes that are left out for want of texts
COUNTED = (
    "cases", "taken", "variants", "valid", "discarded", "placebos", "placebos_valid", "wordings", "wordings_valid",
)  # fmt: skip


def estimate(parts: Parts, *, observe: Observer = silent) -> ExpectedTexts:
    """Count the cases, prompts, calls, tokens and cost of a plan without asking anything."""
    from auditor.core.types import Usage

    loop = Loop(dataclasses.replace(parts, models=[], judge=None), observe=observe)
    tallies = [loop.tally(model) for model in parts.models]
    table = Observations()
    seen: list[set[str]] = [set() for _ in tallies]
    once: list[set[str]] = [set() for _ in tallies]  # of these, prompts that are asked without replicates
    tokens = [0] * len(tallies)
    pairs = 0
    carried: dict[str, Counter[str]] = {}

    def add(text: str, *, wording: bool = False) -> None:
        for i, tally in enumerate(tallies):
            for name in tally.formats:
                bare = tally.model.style == "text"
                prompt = parts.task.bare(text) if bare else parts.task.render(text, name)
                if not wording:
                    once[i].discard(prompt.sha256)
                if prompt.sha256 not in seen[i]:
                    seen[i].add(prompt.sha256)
                    tokens[i] += _tokens(prompt)
                    if wording:
                        once[i].add(prompt.sha256)

    async def count() -> None:
        nonlocal pairs
        async for case, checks in _cases(parts):
            loop.count(case, checks)
            parts.task.about(case.original.input)
            asked = _asked(loop, case, checks)
            for attribute, carrier in {
                (v.attributes[0], carrier_of(v.edits)) for v in asked if v.order == 1 and not is_beside(v)
            }:
                carried.setdefault(attribute, Counter())[carrier] += 1
            for variant in asked:
                add(str(variant.input), wording=is_wording(variant) or loop.once(case))
                table.version(case.id, variant.edits)
            pairs += sum(checks[variant.id].status != "invalid" for variant in case.variants if not is_wording(variant))

    run_sync(count)
    if parts.plan.protocol == "default":
        for pair in control_pairs(parts.task):
            for text in pair.texts:
                add(text)
    counts = loop.counts
    models: dict[str, ExpectedModel] = {}
    each = parts.task.calls  # of a conversation: one for each turn, and one for tools
    for tally, hashes, single, tokens_in in zip(tallies, seen, once, tokens, strict=True):
        calls = len(hashes) * tally.replicates - len(single) * (tally.replicates - 1)
        out = (
            0
            if tally.model.style == "text"
            else max(parts.task.max_tokens(name) for name in tally.formats) * calls * each
        )
        price = _price(parts, tally.model)
        total_in = round(tokens_in * calls / max(1, len(hashes)))
        canaries = 0
        if _has_canaries(parts, tally.model):
            times = 2 if counts["cases"] > ROUND else 1
            canaries = min(CANARIES, counts["cases"]) * len(tally.formats) * CANARY_REPLICATES * times
            total_in += round(canaries * tokens_in / max(1, len(hashes)))
            out += 0 if tally.model.style == "text" else round(canaries * out / max(1, calls))
        cost = None if price is None else price.usd(Usage(tokens_in=total_in, tokens_out=out))
        if tally.model.style == "text":
            total_in, cost = 0, 0.0
        models[tally.model.name] = ExpectedModel(
            prompts=len(hashes),
            replicates=tally.replicates,
            calls=calls * each,
            calls_canary=canaries * each,
            tokens_in=total_in,
            tokens_out=out,
            cost_usd=cost,
        )
    return ExpectedTexts(
        seeds=parts.seeds or counts["cases"],
        **{k: counts[k] for k in COUNTED},
        carried={attribute: dict(sorted(by.items())) for attribute, by in sorted(carried.items())},
        not_english=parts.facts.get("seeds", {}).get("not_english", 0),
        models=models,
        judge=None if parts.judge is None else _judge(parts, parts.judge, pairs, tallies),
        left_out=" ".join(left_out(parts)),
        power=_power(parts, table, tallies),
    )


def left_out(parts: Parts) -> list[str]:
    """What a plan leaves out, and that it has too few texts to decide anything, in sentences."""
    plan, told = parts.plan, parts.facts.get(FEW, {})
    said = [left] if (left := plan.left_out()) else []
    if told:
        named = words.listing([f"{name} ({one['texts']} of {one['needed']})" for name, one in told.items()])
        said.append(
            f"Left out, since they have too few texts to decide anything: {named}. --attributes asks about them."
        )
    needed, given = texts_needed(), parts.seeds
    plain = (plan.suite, plan.protocol) == ("mutation", "default")
    if plain and parts.task.labels and given is not None and given * (plan.wordings or 1) < needed:
        said.append(
            f"This plan can decide little: {given} texts show no difference of 30 points between labels, and {needed} "
            "would; only what changes nearly all answers can be shown."
        )
    return said


def _power(parts: Parts, table: Observations, tallies: Sequence[Tally]) -> Power:
    """What the net claims of the plan can show; none are made of free text or under another protocol."""
    from auditor.measure.power import reach
    from auditor.run.observed import question

    task = parts.task
    if parts.plan.protocol != "default" or task.kind.text:
        return Power()
    labels = dict.fromkeys(task.labels or (), 1)
    asked = question(task, parts.plan, parts.dictionaries, {}, labels)
    families = sum(len(tally.formats) for tally in tallies) * max(1, len(asked.outcomes))
    return reach(table, asked, families, parts.plan.seed)


async def _cases(parts: Parts) -> AsyncIterator[tuple[Case, Mapping[str, Check]]]:
    """The cases of a plan, with what the validity gate says of their variants."""
    rounds = source(parts)
    rng = Random(parts.plan.seed)
    try:
        while True:
            cases, checks = await rounds.next(rng)
            if not cases:
                return
            for case in cases:
                yield case, checks
    finally:
        rounds.close()


def versions(parts: Parts) -> Observations:
    """The versions that a plan asks about, in a table without answers."""
    loop = Loop(dataclasses.replace(parts, models=[], judge=None), observe=silent)
    table = Observations()

    async def fill() -> None:
        async for case, checks in _cases(parts):
            loop.count(case, checks)
            if case.source is not None:
                table.sources[case.id] = case.source
            for variant in _asked(loop, case, checks):
                table.version(case.id, variant.edits, variant.id)

    run_sync(fill)
    return table


def _asked(loop: Loop, case: Case, checks: Mapping[str, Check]) -> list[Variant]:
    """The versions of ``case`` that are asked about before any answer is in."""
    every = (case.original, *case.variants) if loop.until is None else loop.until.wanted(case, checks)
    return [v for v in every if v is case.original or loop.asked(checks[v.id])]


def _has_canaries(parts: Parts, model: Model) -> bool:
    """Whether the first prompts are asked again: as `auditor.run.loop.Loop` has it."""
    plan = parts.plan
    return (
        not model.deterministic
        and plan.protocol == "default"
        and not plan.batch
        and not parts.task.kind.text
        and not isinstance(parts.suite, StoredCases)
    )


def _price(parts: Parts, model: Model) -> Price | None:
    """What the tokens of ``model`` cost in this run; batches cost half the list price."""
    price: Price | None = parts.budget.price_of(model)
    if not parts.plan.batch or parts.budget.price is not None:
        return price
    from auditor.models.batch import half

    return half(price)


def _judge(parts: Parts, model: Model, pairs: int, tallies: Sequence[Tally]) -> ExpectedJudge:
    """The most that the judge is asked: both orders of each pair, and of the pairs with known answers.

    Answers that are alike are not asked about, and an answer may be shorter than its format allows.
    """
    from auditor.core.types import Usage
    from auditor.models.judge import both
    from auditor.tasks import load

    task = load("judge")

    def tokens(text: str) -> int:
        return _tokens(task.bare(text) if model.style == "text" else task.render(text))

    compared = pairs * sum(len(tally.formats) for tally in tallies)
    calls = 2 * (compared + len(task.controls))
    answers = sum(2 * pairs * parts.task.max_tokens(name) * 2 for tally in tallies for name in tally.formats)
    tokens_in = 2 * compared * tokens(both("", "")) + answers
    tokens_in += sum(tokens(text) for pair in task.controls for text in pair)
    tokens_out = calls * task.max_tokens(task.default_format)
    price = parts.budget.price_of(model)
    cost = None if price is None else price.usd(Usage(tokens_in=tokens_in, tokens_out=tokens_out))
    if model.costs != "tokens":
        tokens_in = tokens_in if model.style == "chat" else 0
        tokens_out, cost = (tokens_out if model.style == "chat" else 0), 0.0
    return ExpectedJudge(
        model=model.name, pairs=compared, calls=calls, tokens_in=tokens_in, tokens_out=tokens_out, cost_usd=cost
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
