"""Cells of a case that are asked again: of hidden candidates before they are claimed, and of one finding on demand."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from auditor.core.errors import UnknownPlugin, UserError
from auditor.core.plan import CONFIRM_REPLICATES, Plan
from auditor.core.protocols import Oracle
from auditor.core.types import Answer, Case, Progress, Request, Variant
from auditor.measure.interactions import smaller
from auditor.models.client import unanswered
from auditor.run.preparation import prepare, prompt_of
from auditor.run.state import State, Tally
from auditor.store.folder import RunFolder
from auditor.tasks import oracles

MAX_CONFIRM = 200  # hidden candidates that are replicated, per model
NAMED = 10  # findings that a message lists


async def confirm(loop: State) -> dict[tuple[str, str, str], dict[str, object]]:
    """Ask the cells of each hidden candidate five more times; a model that wobbles makes them by chance."""
    plan = loop.plan
    confirmed: dict[tuple[str, str, str], dict[str, object]] = {}  # by model, variant and format
    # What is asked again is compared by label; amounts are not, for the reason that `free.NOT_CONFIRMED` gives.
    if plan.protocol != "default" or plan.oracle == "probability" or loop.parts.task.kind.by_degrees:
        return confirmed
    for tally in loop.tallies:
        if tally.model.deterministic or loop.status_reason:
            continue
        chosen = [
            (variant_id, name, lattice_cells(case, variant_id))
            for case, variant_id, name in _first_of_each(tally.hidden)[:MAX_CONFIRM]
        ]
        # A batch of the provider takes up to a day, so all questions go into one.
        size = max(1, len(chosen)) if plan.batch else 1
        for start in range(0, len(chosen), size):
            some = chosen[start : start + size]
            asked = await _repeat(loop, tally, [(cells, name) for _, name, cells in some], CONFIRM_REPLICATES)
            for (variant_id, name, _), answers in zip(some, asked, strict=True):
                confirmed[tally.model.name, variant_id, name] = {
                    "confirmed": _still_hidden(loop.parts.oracle, list(answers.values())),
                    "p_value": unlike_parts(list(answers.values())),
                    "cells": {name: _counted(own) for name, own in answers.items()},
                }
            done = start + len(some)
            loop.observe(Progress(phase="confirm", model=tally.model.name, done=done, planned=len(chosen)))
            if tally.client.stopped:
                loop.stop(tally.client)
                break
    return confirmed


async def replay(folder: RunFolder, wanted: str, replicates: int) -> dict[str, Any]:
    """Ask the cells of one finding or variant again, past every cache; see `auditor.run.audit.replay`."""
    record, evidence = folder.run(), folder.evidence()
    plan, findings = Plan.from_dict(folder.plan["plan"]), record.findings
    if plan.redact:
        folder.require_texts("asking its prompts again")
    finding = next((f for f in findings if f.id == wanted), None)
    if finding is not None and not finding.exemplars:
        others = [f.id for f in findings if f.exemplars]
        which = f"Findings with one: {', '.join(others[:NAMED])}" if others else "No finding of this run has one"
        raise UserError(f"{wanted} has no example to ask again. {which}.")
    variant_id = wanted if finding is None else finding.exemplars[0]
    case = evidence.case_of(variant_id)
    if case is None or variant_id == case.original.id:
        known = [f.id for f in findings]
        raise UnknownPlugin("finding or variant", wanted, known, f"See: audit show {folder.path}")
    model = plan.models[0] if finding is None else finding.model
    parts = prepare(plan.but(models=(model,), cache=False), cases=iter(()))
    loop = State(parts, give_up=False)
    (tally,) = loop.tallies
    name = finding.format if finding is not None and finding.format else tally.formats[0]
    cells = lattice_cells(case, variant_id)
    try:
        (now,) = await _repeat(loop, tally, [(cells, name)], replicates, first=0)
    finally:
        await tally.model.aclose()
    if tally.client.stopped and len(tally.seen) == tally.counts["failed"]:
        raise UserError(f"{model} answered nothing: {tally.client.stopped}")
    shown = []
    for variant in cells:
        before = [
            parts.task.read(r.output or "", tally.model.style, r.format) if r.error is None else unanswered(r.error)
            for r in evidence.responses(variant.id)
            if r.model == model
        ]
        single = "joint" if variant.id == variant_id and variant.order > 1 else "subset"
        role = "original" if variant is case.original else "atomic" if variant.order == 1 else single
        edits = [dataclasses.asdict(e) for e in variant.edits if e.kind != "agreement"]
        shown.append(
            {"variant_id": variant.id, "role": role, "edits": edits}
            | {"before": _counted(before), "now": _counted(now[variant.id])}
        )
    return {"id": wanted, "model": model, "format": name, "replicates": replicates, "cells": shown}


def _first_of_each(hidden: Sequence[tuple[Case, str, str]]) -> list[tuple[Case, str, str]]:
    """One candidate of each text, then the second ones, and so on: findings are one for each text."""
    seen: Counter[tuple[str, str]] = Counter()
    places = []
    for case, variant_id, name in hidden:
        if case.variants:
            places.append((seen[case.id, name], (case, variant_id, name)))
            seen[case.id, name] += 1
    return [candidate for _, candidate in sorted(places, key=lambda place: place[0])]


def lattice_cells(case: Case, variant_id: str) -> list[Variant]:
    """The original, every proper subset's variant, and the joint variant itself, in this order."""
    joint = next(v for v in case.variants if v.id == variant_id)
    parts = set(smaller(joint))
    return [case.original, *(v for v in case.variants if v.choices in parts), joint]


async def _repeat(
    loop: State, tally: Tally, lattices: Sequence[tuple[Sequence[Variant], str]], times: int, first: int | None = None
) -> list[dict[str, list[Answer]]]:
    """Ask the cells of each (cells, format) again; answers by variant id, one mapping for each."""
    task, asked = loop.parts.task, []
    start = tally.replicates if first is None else first
    answers: list[dict[str, list[Answer]]] = [{variant.id: [] for variant in cells} for cells, _ in lattices]
    for (cells, name), own in zip(lattices, answers, strict=True):
        task.about(cells[0].input)
        for variant in cells:
            prompt = prompt_of(task, variant.input, tally.model.style, name)
            for k in range(start, start + times):
                asked.append((own[variant.id], Request(prompt=prompt, replicate=k, variant_id=variant.id)))
    for place, answer in await loop.ask(tally, asked):
        place.append(answer)
    return answers


def _counted(answers: Iterable[Answer]) -> dict[str, int]:
    return dict(sorted(Counter(map(label_text, answers)).items()))


def label_text(answer: Answer) -> str:
    """The answer in short for a table: the label, with the number beside it, or why there is none."""
    if answer.status != "ok":
        return f"({answer.status.replace('_', ' ')})"
    beside = answer.number if isinstance(answer.value, str) else None
    return str(oracles.label_text(answer.value)) if beside is None else f"{answer.value} ({beside:g})"


def _still_hidden(oracle: Oracle, cells: Sequence[Sequence[Answer]]) -> bool | None:
    """What the oracle says of each cell: all subsets like the original, the joint one not."""
    said = []
    for answers in cells:
        came = sum(a.status == "ok" for a in answers)
        answer = oracle.answer(answers) if 2 * came > CONFIRM_REPLICATES else None
        if answer is None:
            return None
        said.append(answer)
    original, *below, joint = said
    return joint != original and all(answer == original for answer in below)


def unlike_parts(cells: Sequence[Sequence[Answer]]) -> float | None:
    """Exact p value that the joint version's share of its most frequent answer is that of some part of it."""
    from scipy.stats import fisher_exact

    *parts, joint = [Counter(label_text(a) for a in answers if a.status == "ok") for answers in cells]
    if not joint or not all(parts):
        return None
    # Two-sided, since the answer is chosen by what came. The joint version must differ from every part.
    label, hits = min(joint.items(), key=lambda item: (-item[1], item[0]))
    tables = ([[hits, joint.total() - hits], [part[label], part.total() - part[label]]] for part in parts)
    return max(min(1.0, 2 * float(fisher_exact(table, alternative="greater").pvalue)) for table in tables)
