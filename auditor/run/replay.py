"""The cells of one finding, asked again."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from auditor.core.errors import UserError
from auditor.core.types import Request
from auditor.models.outcome import unanswered
from auditor.run.audit import plan_of
from auditor.run.confirm import label_text, lattice_cells
from auditor.run.loop import Loop
from auditor.run.parts import prepare
from auditor.store.folder import RunFolder

NAMED = 10  # findings that a message lists


async def replay(result: Any, wanted: str, replicates: int) -> dict[str, object]:
    """Ask the cells of one finding or variant again, past every cache; see `auditor.run.result.replay`."""
    from auditor.models.talks import client_of

    plan = plan_of(result.record["spec"])
    if plan.redact and result.path is not None:
        RunFolder.open(result.path).require_texts("asking its prompts again")
    found = next((f for f in result.findings if f.id == wanted), None)
    if found is not None and not found.exemplars:
        others = [f.id for f in result.findings if f.exemplars]
        told = f"Findings with one: {', '.join(others[:NAMED])}" if others else "No finding of this run has one"
        raise UserError(f"{wanted} has no example to ask again. {told}.")
    variant_id = found.exemplars[0] if found is not None and found.exemplars else wanted
    case = result.evidence.case_of(variant_id)
    if case is None or variant_id == case.original.id:
        from auditor.core.errors import UnknownPlugin

        raise UnknownPlugin(
            "finding or variant", wanted, [f.id for f in result.findings], f"See: audit show {result.path}"
        )
    model_name = found.model if found is not None else plan.models[0]
    parts = prepare(plan.but(models=(model_name,), cache=False), cases=iter(()))
    loop = Loop(parts)
    tally = loop.tallies[0]
    client = client_of(parts.task)(
        tally.model,
        cache=None,
        budget=parts.budget,
        concurrency=plan.concurrency,
        on_response=lambda r: tally.known.add((r.prompt_sha256, r.replicate)),
    )
    name = found.format if found is not None and found.format else tally.formats[0]
    cells = lattice_cells(case, variant_id)
    shown = []
    parts.task.about(case.original.input)
    try:
        for variant in cells:
            text = tally.model.style == "text"
            prompt = parts.task.bare(variant.input) if text else parts.task.render(variant.input, name)
            asked = [Request(prompt=prompt, replicate=k, variant_id=variant.id) for k in range(replicates)]
            now = Counter(label_text(loop.answer(tally, r)) for r in await client.ask(asked))
            if client.stopped and len(tally.seen) == tally.counts["failed"]:
                raise UserError(f"{model_name} answered nothing: {client.stopped}")
            before = Counter(
                label_text(
                    parts.task.read(r.output, tally.model.style, r.format) if r.error is None else unanswered(r.error)
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
