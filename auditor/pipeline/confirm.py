"""Hidden candidates are asked again before they are claimed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from auditor.config import CONFIRM_REPLICATES
from auditor.pipeline.loop import Loop, Tally
from auditor.types import Answer, Case, Progress, Request

MAX_CONFIRM = 200  # hidden candidates that are replicated, per model


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
