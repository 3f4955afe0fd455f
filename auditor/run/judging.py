"""From the answers to one case to verdicts, in the tables that statistics are computed from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from auditor.core.protocols import Oracle, Suite
from auditor.core.types import Answer, Case, Check, Outcome, Variant, Verdict
from auditor.measure.observations import Arm, Shape
from auditor.run import free
from auditor.run.tally import KEPT_HIDDEN, Tally

if TYPE_CHECKING:
    from auditor.run.loop import Loop

KEPT_PAIRS = 10_000  # pairs of answers whose comparison is remembered
Given = tuple[tuple[str, Any], ...]  # status and value of each replicate


class Told(NamedTuple):
    """What an oracle said of a pair of answers."""

    outcome: Outcome
    original_output: str | None
    variant_output: str | None
    distance: float | None
    reason: str


class Judge:
    """Asks the oracle of a run.

    An oracle that compares labels says the same of the same answers whatever the texts are, and there are few
    different answers: what it said is remembered.
    """

    def __init__(self, oracle: Oracle, suite: Suite) -> None:
        self._oracle, self._suite = oracle, suite
        self._known: dict[tuple[Given, Given], Told] = {}

    def judge(
        self, case: Case, answers: Mapping[str, Sequence[Answer]], shapes: Mapping[str, Shape]
    ) -> list[Verdict]:
        """Verdicts for the variants that ``answers`` holds, in the order of the case."""
        if self._suite.listens:  # verdicts carry no scores
            self._suite.hear(case, answers)
        if not self._oracle.by_labels:
            return list(self._oracle.judge(case, answers))
        before = _given(answers.get(case.original.id, ()))
        found = []
        for variant in case.variants:
            given = answers.get(variant.id)
            if given is None:
                continue
            pair = before, _given(given)
            told = self._known.get(pair)
            if told is None:
                told = self._ask(case, variant, answers)
                if len(self._known) < KEPT_PAIRS:
                    self._known[pair] = told
            attributes = shapes[variant.id].attributes
            found.append(
                Verdict(
                    case_id=case.id,
                    variant_id=variant.id,
                    order=len(attributes),
                    attributes=attributes,
                    outcome=told.outcome,
                    original_output=told.original_output,
                    variant_output=told.variant_output,
                    distance=told.distance,
                    reason=told.reason,
                )
            )
        return found

    def _ask(self, case: Case, variant: Variant, answers: Mapping[str, Sequence[Answer]]) -> Told:
        alone = dataclasses.replace(case, variants=(variant,))
        (v,) = self._oracle.judge(alone, answers)
        return Told(v.outcome, v.original_output, v.variant_output, v.distance, v.reason)


def _given(answers: Sequence[Answer]) -> Given:
    return tuple([(answer.status, answer.value) for answer in answers])


def hidden(case: Case, verdicts: Sequence[Verdict], checks: Mapping[str, Check]) -> list[bool | None]:
    """The ``hidden`` of each verdict, as `auditor.measure.hidden_lattice.mark_hidden` sets it.

    Most cases have no joint violation, and then nothing of them is hidden.
    """
    if any(v.order > 1 and v.outcome == "violation" for v in verdicts):
        from auditor.measure.hidden_lattice import mark_hidden

        return [v.hidden for v in mark_hidden(case, verdicts, checks)]
    return [
        False if v.order > 1 and v.outcome == "pass" and checks[v.variant_id].status != "invalid" else None
        for v in verdicts
    ]


def judge(
    loop: Loop,
    tally: Tally,
    case: Case,
    name: str,
    answers: Mapping[str, list[Answer]],
    checks: Mapping[str, Check],
) -> list[Verdict]:
    """Judge what one model answered to one case in the format ``name``; placebo variants are not among the verdicts.

    Further wordings of a text are observed and not judged: only net differences use them.
    """
    shapes = {v.id: loop.observed.shape(v) for v in case.variants}
    given = {v.id: answers[v.id] for v in (case.original, *case.variants) if v.id in answers}
    compared = {i: own for i, own in given.items() if i not in shapes or shapes[i].kind != "wording"}
    told = loop.oracle.judge(case, compared, shapes)
    loop.observed.take(given, model=tally.model.name, format=name)
    verdicts: list[Verdict] = []
    counted: list[Verdict] = []
    for v, is_hidden in zip(told, hidden(case, told, checks), strict=True):
        placebo = shapes[v.variant_id].arm == Arm.PLACEBO
        # Order 0: no group changed. ``attributes`` are those whose edits a placebo copies.
        verdict = _named(v, is_hidden, 0 if placebo else v.order, tally.model.name, name)
        loop.observed.judge(verdict)
        if not placebo:
            verdicts.append(verdict)
            if checks[v.variant_id].status != "invalid":
                counted.append(verdict)
    if case.sampling == "iid":
        loop.figures.take(case, compared, model=tally.model.name, format=name)
    tally.judged = tally.judged or any(v.outcome in ("pass", "violation") for v in counted)
    if loop.plan.protocol == "hinter":
        from auditor.contrib.hinter.statistics import mutants_of

        tally.mutants += mutants_of(case, verdicts, checks, name)
    _keep(loop, tally, case, name, compared, counted, checks)
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


def _keep(
    loop: Loop,
    tally: Tally,
    case: Case,
    name: str,
    given: Mapping[str, Sequence[Answer]],
    verdicts: Sequence[Verdict],
    checks: Mapping[str, Check],
) -> None:
    """Keep what of a case has to be asked again, and what no table holds."""
    for v in verdicts:
        if v.hidden:  # whole cases of those only that can be asked again
            kept = len(tally.hidden) < KEPT_HIDDEN or case.sampling == "directed"
            tally.hidden.append(
                (case if kept else dataclasses.replace(case, variants=()), v.variant_id, name)
            )
    if loop.parts.task.kind == "generation":  # figures stay in memory, texts do not
        valid = {i: own for i, own in given.items() if i not in checks or checks[i].status != "invalid"}
        free.keep(loop, tally, case, name, valid)
