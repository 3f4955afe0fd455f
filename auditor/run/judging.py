"""From the answers to one case to verdicts, in the tables that statistics are computed from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from auditor.core.types import Answer, Case, Check, Verdict
from auditor.measure.observations import Arm
from auditor.run.tally import KEPT_HIDDEN, Tally
from auditor.run.verdict import hidden

if TYPE_CHECKING:
    from auditor.run.state import State


def judge(
    loop: State, tally: Tally, case: Case, name: str, answers: Mapping[str, list[Answer]], checks: Mapping[str, Check]
) -> list[Verdict]:
    """Judge what one model answered to one case in the format ``name``; placebo variants are not among the verdicts.

    Further wordings of a text are observed and not judged: only net differences use them.
    """
    shapes = {v.id: loop.observed.shape(v) for v in case.variants}
    given = {v.id: answers[v.id] for v in (case.original, *case.variants) if v.id in answers}
    compared = {i: own for i, own in given.items() if i not in shapes or shapes[i].kind != "wording"}
    told = loop.oracle.judge(case, compared, shapes)
    loop.observed.take(given, model=tally.model.name, format=name)
    counted: list[Verdict] = []
    for v, is_hidden in zip(told, hidden(case, told, checks), strict=True):
        placebo = shapes[v.variant_id].arm == Arm.PLACEBO
        # Order 0: no group changed. ``attributes`` are those whose edits a placebo copies.
        verdict = _named(v, is_hidden, 0 if placebo else v.order, tally.model.name, name)
        loop.observed.judge(verdict)
        if not placebo and checks[v.variant_id].status != "invalid":
            counted.append(verdict)
    if case.sampling == "iid":
        loop.figures.take(case, compared, model=tally.model.name, format=name)
    tally.judged = tally.judged or any(v.outcome in ("pass", "violation") for v in counted)
    if loop.parts.task.kind.text:  # figures are kept, texts are not
        measured = loop.parts.oracle.measure(case, compared)
        loop.observed.measure(measured, model=tally.model.name, format=name)
    for v in counted:
        if v.hidden:  # whole cases of those only that can be asked again
            kept = len(tally.hidden) < KEPT_HIDDEN or case.sampling == "directed"
            tally.hidden.append((case if kept else dataclasses.replace(case, variants=()), v.variant_id, name))
    return counted


def _named(v: Verdict, is_hidden: bool | None, order: int, model: str, name: str) -> Verdict:
    return Verdict(
        case_id=v.case_id,
        variant_id=v.variant_id,
        order=order,
        attributes=v.attributes,
        outcome=v.outcome,
        hidden=is_hidden,
        original_output=v.original_output,
        variant_output=v.variant_output,
        distance=v.distance,
        reason=v.reason,
        model=model,
        format=name,
    )
