"""Hidden candidates are asked again before they are claimed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from auditor.core.plan import CONFIRM_REPLICATES
from auditor.core.types import Answer, Case, Progress, Request
from auditor.run.state import State
from auditor.run.tally import Tally

MAX_CONFIRM = 200  # hidden candidates that are replicated, per model


async def confirm(loop: State) -> dict[tuple[str, str, str], dict[str, object]]:
    """Ask the cells of each hidden candidate five more times; a model that wobbles makes them by chance.

    Returns
    -------
    dict
        (model, variant id, format) → ``{"confirmed": bool | None, "p_value": float | None, "cells": {variant id:
        {label: count}}}``; None where answers are missing. Models declared deterministic need none.
    """
    found: dict[tuple[str, str, str], dict[str, object]] = {}
    for tally, client in zip(loop.tallies, loop.clients, strict=True):
        if tally.model.deterministic or loop.plan.protocol != "default" or loop.status_reason:
            continue
        if loop.plan.oracle == "probability":
            continue  # what is asked again is compared by label
        if loop.parts.task.kind.by_degrees:
            continue  # for the reason that `free.NOT_CONFIRMED` gives in the record
        chosen = [
            (variant_id, name, lattice_cells(case, variant_id))
            for case, variant_id, name in _first_of_each(tally.hidden)[:MAX_CONFIRM]
        ]
        # A batch of the provider takes up to a day, so all questions go into one.
        size = max(1, len(chosen)) if loop.plan.batch else 1
        for start in range(0, len(chosen), size):
            some = chosen[start : start + size]
            told = await _repeat(loop, tally, client, [(cells, name) for _, name, cells in some])
            for (variant_id, name, cells), answers in zip(some, told, strict=True):
                found[tally.model.name, variant_id, name] = {
                    "confirmed": _still_hidden(loop.parts.oracle, [answers[v.id] for v in cells]),
                    "p_value": unlike_parts([answers[v.id] for v in cells]),
                    "cells": {v.id: dict(sorted(Counter(label_text(a) for a in answers[v.id]).items())) for v in cells},
                }
            done = start + len(some)
            loop.observe(Progress(phase="confirm", model=tally.model.name, done=done, planned=len(chosen)))
            if client.stopped:
                loop.stop(client)
                break
    return found


def _first_of_each(hidden: Sequence[tuple[Case, str, str]]) -> list[tuple[Case, str, str]]:
    """One candidate of each text, then the second ones, and so on: findings are one for each text."""
    seen: Counter[tuple[str, str]] = Counter()
    places = []
    for case, variant_id, name in hidden:
        if case.variants:
            places.append((seen[case.id, name], (case, variant_id, name)))
            seen[case.id, name] += 1
    return [candidate for _, candidate in sorted(places, key=lambda place: place[0])]


def lattice_cells(case: Case, variant_id: str) -> list[Any]:
    """The original, every proper subset's variant, and the joint variant itself, in this order."""
    joint = next(v for v in case.variants if v.id == variant_id)
    below = [v for v in case.variants if v.choices < joint.choices and set(v.attributes) < set(joint.attributes)]
    return [case.original, *(v for v in below if _whole(v, joint)), joint]


def _whole(part: Any, joint: Any) -> bool:
    """Whether ``part`` holds all of ``joint``'s choices on its attributes."""
    return bool(part.choices == {c for c in joint.choices if c[0] in part.attributes})


async def _repeat(
    loop: State, tally: Tally, client: Any, lattices: Sequence[tuple[Sequence[Any], str]]
) -> list[dict[str, list[Answer]]]:
    """Ask the cells of each (cells, format) again; answers by variant id, one mapping for each."""
    task, style = loop.parts.task, tally.model.style
    requests: list[Request] = []
    places: list[list[Answer]] = []
    told: list[dict[str, list[Answer]]] = []
    for cells, name in lattices:
        answers: dict[str, list[Answer]] = {variant.id: [] for variant in cells}
        told.append(answers)
        task.about(cells[0].input)
        for variant in cells:
            prompt = task.bare(variant.input) if style == "text" else task.render(variant.input, name)
            for k in range(CONFIRM_REPLICATES):
                requests.append(Request(prompt=prompt, replicate=tally.replicates + k, variant_id=variant.id))
                places.append(answers[variant.id])
    for place, response in zip(places, await loop.responses(tally, client, requests), strict=True):
        place.append(loop.answer(tally, response))
    return told


def label_text(answer: Answer) -> str:
    """The answer in short for a table: the label, with the number beside it, or why there is none."""
    if answer.status != "ok":
        return f"({answer.status.replace('_', ' ')})"
    if isinstance(answer.value, tuple):
        return ", ".join(answer.value) or "none"
    beside = answer.number if isinstance(answer.value, str) else None
    return str(answer.value) if beside is None else f"{answer.value} ({beside:g})"


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


def unlike_parts(cells: Sequence[Sequence[Answer]]) -> float | None:
    """Exact p value that the joint version's share of its most frequent answer is that of some part of it.

    Fisher's test against each cell, two-sided since the answer is chosen by what came; the largest p value counts: the
    joint version must differ from every part.

    Examples
    --------
    >>> yes, no = Answer(status="ok", value="yes"), Answer(status="ok", value="no")
    >>> round(unlike_parts([[yes] * 5, [yes] * 5, [yes] * 5, [no] * 5]), 4)
    0.0079
    >>> unlike_parts([[yes] * 5, [yes] * 5, [no] * 5, [no] * 5])
    1.0
    """
    *parts, joint = [Counter(label_text(a) for a in answers if a.status == "ok") for answers in cells]
    if not joint or not all(parts):
        return None
    label, hits = min(joint.items(), key=lambda item: (-item[1], item[0]))
    return max(_fisher(hits, joint.total(), part[label], part.total()) for part in parts)


def _fisher(hits: int, of: int, others: int, other_of: int) -> float:
    """Twice the chance of so many hits or more on the first side, at most 1."""
    total, both = hits + others, math.comb(of + other_of, hits + others)
    tail = sum(math.comb(of, k) * math.comb(other_of, total - k) for k in range(hits, min(of, total) + 1))
    return min(1.0, 2 * tail / both)
