"""What a run observes: the table that its claims are computed from, filled while answers stream by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from auditor.core.types import Answer, Case, Variant
from auditor.measure.claims import Question
from auditor.measure.observations import Observations, Shape, shape_of
from auditor.run.controls import outcomes

if TYPE_CHECKING:
    from auditor.core.plan import Plan

KEPT_SHAPES = 50_000  # combinations of edits whose shape is remembered


class Observed:
    """Fills a table of observations from cases and the answers to them."""

    def __init__(self, task: Any) -> None:
        self.table = Observations()
        self._task = task
        labels = outcomes(task, {})
        self._score_of = labels[0] if len(labels) == 1 else None
        self._rows: dict[str, int] = {}  # of the versions of this round, by variant id
        self.hidden: dict[str, int] = {}  # rows of hidden variants, by id
        self._shapes: dict[tuple[Any, ...], Shape] = {}

    def forget(self) -> None:
        """A round is over: no more answers to its versions come."""
        self._rows.clear()

    def note(self, variant_id: str) -> None:
        """Remember the row of a hidden variant; a directed one has none."""
        if variant_id in self._rows:
            self.hidden[variant_id] = self._rows[variant_id]

    def take(self, case: Case, answers: Mapping[str, Sequence[Answer]], *, model: str, format: str) -> None:
        """Add what one model answered to one case in one format."""
        for variant in (case.original, *case.variants):
            given = answers.get(variant.id)
            if given is None:
                continue
            row = self._rows.get(variant.id)
            if row is None:
                row = self._rows[variant.id] = self.table.shape(
                    case.id, self._shape(variant), variant.id.removeprefix(case.id)
                )
            self.table.answers(row, model=model, format=format, answers=given, score_of=self._score_of)

    def _shape(self, variant: Variant) -> Shape:
        key = tuple(
            (e.attribute, e.kind, e.source_group, e.target_group, e.source, e.target) for e in variant.edits
        )
        found = self._shapes.get(key)
        if found is None:
            if len(self._shapes) >= KEPT_SHAPES:
                self._shapes.clear()
            found = self._shapes[key] = shape_of(variant.edits)
        return found

    def question(
        self,
        plan: Plan,
        dictionaries: Sequence[Any],
        controls: Mapping[str, bool | None],
        given: Mapping[str, int],
    ) -> Question:
        """What the claims of ``plan`` are about."""
        return Question(
            outcomes=outcomes(self._task, given),
            number=self._task.kind == "score",
            unit=str(getattr(self._task, "unit", "") or ""),
            graded=frozenset(f for f in self._task.formats if self._task.graded(f)),
            primary={d.attribute: d.primary for d in dictionaries if d.primary is not None},
            references=plan.references,
            unmarked={d.attribute: [g.name for g in d.groups.values() if g.unmarked] for d in dictionaries},
            delta=plan.tolerance if self._task.kind == "score" else plan.delta,
            positive_control=controls,
        )
