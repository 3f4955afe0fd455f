"""Asks the oracle of a run, and says which of its verdicts are hidden."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from auditor.core.protocols import Oracle, Suite
from auditor.core.types import Answer, Case, Check, Outcome, Variant, Verdict
from auditor.measure.observations import Shape

if TYPE_CHECKING:
    pass

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

    def judge(self, case: Case, answers: Mapping[str, Sequence[Answer]], shapes: Mapping[str, Shape]) -> list[Verdict]:
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
