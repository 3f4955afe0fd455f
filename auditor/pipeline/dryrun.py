"""What a plan will ask, without asking."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

from auditor.controls import CANARIES, CANARY_REPLICATES, control_pairs
from auditor.pipeline.loop import Loop, silent
from auditor.pipeline.parts import Parts
from auditor.pipeline.rounds import ROUND, source
from auditor.pipeline.run import run_sync
from auditor.protocols import Observer
from auditor.types import Prompt


def estimate(parts: Parts, *, observe: Observer = silent) -> dict[str, Any]:
    """Count the cases, prompts, calls, tokens and cost of a plan without asking anything."""
    from auditor.stats import power
    from auditor.types import Usage

    loop = Loop(dataclasses.replace(parts, models=[]), None, observe=observe)
    tallies = [loop.tally(model) for model in parts.models]
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

    async def count() -> None:
        rounds = source(parts)
        try:
            while True:
                cases, checks = await rounds.next(rng)
                if not cases:
                    return
                for case in cases:
                    loop.count(case, checks)
                    for variant in (case.original, *case.variants):
                        if variant is case.original or loop.asked(checks[variant.id]):
                            add(variant.input)
        finally:
            rounds.close()

    run_sync(count)
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
