"""Hidden candidates are asked again before they are claimed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from auditor.config import CONFIRM_REPLICATES
from auditor.pipeline import free
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
        if loop.parts.task.kind in free.KINDS:
            continue  # for the reason that `free.NOT_CONFIRMED` gives in the record
        chosen = tally.hidden[:MAX_CONFIRM]
        for done, (case, variant_id, name) in enumerate(chosen):
            cells = lattice_cells(case, variant_id)
            answers = await _repeat(loop, tally, client, cells, name)
            found[tally.model.name, variant_id, name] = {
                "confirmed": _still_hidden(loop.parts.oracle, [answers[v.id] for v in cells]),
                "cells": {
                    v.id: dict(sorted(Counter(label_text(a) for a in answers[v.id]).items())) for v in cells
                },
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
) -> dict[str, list[Answer]]:
    task, style = loop.parts.task, tally.model.style
    requests = []
    for variant in cells:
        prompt = task.bare(variant.input) if style == "text" else task.render(variant.input, name)
        requests += [
            Request(prompt=prompt, replicate=tally.replicates + k, variant_id=variant.id)
            for k in range(CONFIRM_REPLICATES)
        ]
    tally.planned += tally.seen.missing((r.prompt.sha256, r.replicate) for r in requests)
    answers: dict[str, list[Answer]] = {variant.id: [] for variant in cells}
    for request, response in zip(requests, await client.ask(requests), strict=True):
        answers[request.variant_id].append(loop.answer(tally, response))
    return answers


def label_text(answer: Answer) -> str:
    """The answer as one word for a table: the label, or why there is none."""
    if answer.status != "ok":
        return f"({answer.status})"
    if isinstance(answer.value, tuple):
        return ", ".join(answer.value) or "none"
    return str(answer.value)


def _still_hidden(oracle: Any, cells: Sequence[Sequence[Answer]]) -> bool | None:
    """What the oracle says of each cell: all subsets like the original, the joint one not."""
    told = []
    for answers in cells:
        came = sum(a.status == "ok" for a in answers)
        answer = oracle.answer(answers) if 2 * came > CONFIRM_REPLICATES else None
        if answer is None:
            return None
        told.append(answer)
    original, *below, joint = told
    return joint != original and all(answer == original for answer in below)
