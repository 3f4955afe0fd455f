"""What a run observes: the tables that its claims are computed from, filled while answers come, or from a folder."""

from __future__ import annotations

import itertools
import json
from array import array
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from auditor.core.plan import Plan
from auditor.core.types import Answer, Case, Variant, Verdict
from auditor.measure.claims import Question
from auditor.measure.comparison import Side
from auditor.measure.interactions import smaller
from auditor.measure.observations import Arm, Observations, Shape, place_of, shape_of
from auditor.measure.rates import VIOLATION
from auditor.measure.text_metrics import Measured, Metrics
from auditor.perturb.dictionaries import Dictionary
from auditor.store.folder import RunFolder
from auditor.store.journal import short
from auditor.tasks.task import Task

KEPT_SHAPES = 50_000  # combinations of edits whose shape is remembered


class Observed:
    """Fills tables of observations from cases and the answers to them."""

    def __init__(self, models: Iterable[str] = (), score_of: str | None = None, *, parts: bool = False) -> None:
        self.table = Observations()  # drawn at random and valid: all rates and claims are of these
        self.directed = Observations()  # cases that earlier verdicts led to
        self.discarded = Observations()  # variants of drawn cases that the validity check refused
        for name in models:
            self.table.models.of(name)
        self._score_of, self._parts = score_of, parts
        self._rows: dict[str, tuple[Observations, int]] = {}  # of the versions of this round, by variant id
        self._shapes: dict[tuple[object, ...], Shape] = {}

    @cached_property
    def metrics(self) -> Metrics:
        """What answers that are texts came to, of the versions in ``table``."""
        return Metrics(self.table)

    def forget(self) -> None:
        """A round is over: no more answers to its versions come."""
        self._rows.clear()

    def add(self, case: Case, valid: Container[str]) -> None:
        """Add the versions of a case, those of its variants that are ``valid`` in their table."""
        table = self.directed if case.sampling == "directed" else self.table
        if case.label is not None:
            table.golds[table.texts.of(case.id)] = case.label
        if case.source is not None:
            table.sources[case.id] = case.source
        by_choices = {v.choices: v.id for v in case.variants} if self._parts else {}
        for variant in (case.original, *case.variants):
            shape = self.shape(variant)
            kept = variant is case.original or variant.id in valid
            if kept or table is self.table:
                place = table if kept else self.discarded
                groups = tuple(variant.groups.items())
                # The ids of the versions of one attribute that a joint one is put together from.
                alone = itertools.islice(smaller(variant), variant.order) if self._parts else ()
                parts = [by_choices[one] for one in alone if one in by_choices]
                at = place_of(variant.edits, case.original.input)
                row = place.shape(case.id, shape, variant.id, groups, parts, at)
                self._rows[variant.id] = place, row

    def take(self, answers: Mapping[str, Sequence[Answer]], *, model: str, format: str) -> None:
        """Add what one model answered to the variants of one case in one format."""
        for variant_id, own in answers.items():
            if variant_id in self._rows:
                table, row = self._rows[variant_id]
                table.answers(row, model=model, format=format, answers=own, score_of=self._score_of)

    def judge(self, verdict: Verdict) -> None:
        """Add what the oracle said."""
        if verdict.variant_id in self._rows:
            table, row = self._rows[verdict.variant_id]
            table.judge(row, verdict)

    def measure(self, measured: Mapping[str, Measured], *, model: str, format: str) -> None:
        """Add what the free answers of one model to the variants of one case came to."""
        for variant_id, metrics in measured.items():
            if (row := self._drawn(variant_id)) is not None:
                self.metrics.add(row, model, format, metrics)

    def prefer(self, variant_id: str, value: float, *, model: str, format: str) -> None:
        """Add what the judge of texts said."""
        if (row := self._drawn(variant_id)) is not None:
            self.metrics.prefer(row, model, format, value)

    def _drawn(self, variant_id: str) -> int | None:
        table, row = self._rows.get(variant_id, (None, 0))
        return row if table is self.table else None

    def verdicts(self, models: Iterable[str]) -> Iterator[Verdict]:
        """All verdicts of the run on valid variants, model by model; placebos after the others."""
        for model in models:
            for placebo in (False, True):
                for table in (self.table, self.directed):
                    judged = table.judged()
                    arm = np.array([s.arm == Arm.PLACEBO for s in table.shapes.values], dtype=bool)
                    here = judged.model == table.models.get(model)  # none where the model said nothing
                    yield from table.verdicts(np.flatnonzero(here & (arm[judged.shape] == placebo)).tolist())

    def changes(self) -> tuple[Counter[int], Counter[int]]:
        """Violations, and hidden ones among them, by order."""
        changes: tuple[Counter[int], Counter[int]] = Counter(), Counter()
        for table in (self.table, self.directed):
            judged = table.judged()
            order = np.array([len(s.attributes) if s.arm == Arm.EDITED else 0 for s in table.shapes.values])
            for counted, here in zip(changes, (judged.outcome == VIOLATION, judged.hidden == 1), strict=True):
                counted.update(order[judged.shape[here]].tolist())
        return changes

    def shape(self, variant: Variant) -> Shape:
        """What the edits of a variant come to; remembered for variants with the same edits elsewhere."""
        key = tuple((e.attribute, e.kind, e.source_group, e.target_group, e.source, e.target) for e in variant.edits)
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) >= KEPT_SHAPES:
                self._shapes.clear()
            shape = self._shapes[key] = shape_of(variant.edits)
        return shape


def outcomes(task: Task, counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the labels that are compared: the favourable one, one of two, or the twelve most frequent."""
    if not task.labels:
        return ()
    if task.favourable is not None:
        return (task.favourable,)
    if len(task.labels) <= 2 and not task.kind.several:
        return ("positive",) if "positive" in task.labels else (task.labels[0],)
    ranked = sorted(task.labels, key=lambda label: (-counts.get(label, 0), label))
    return tuple(sorted(label for label in ranked[:12] if counts.get(label)))


def score_of(task: Task) -> str | None:
    """The label whose log odds tell the answers of ``task`` apart: one of two."""
    labels = outcomes(task, {})
    return labels[0] if len(labels) == 1 else None


def question(
    task: Task,
    plan: Plan,
    dictionaries: Sequence[Dictionary],
    controls: Mapping[str, bool | None],
    counts: Mapping[str, int],
) -> Question:
    """What the claims of ``plan`` are about, where labels were given as often as ``counts`` says."""
    return Question(
        outcomes=outcomes(task, counts),
        number=task.kind.number,
        unit=task.unit,
        graded=frozenset(f for f in task.formats if task.graded(f)),
        primary={d.attribute: d.primary for d in dictionaries if d.primary is not None},
        references=plan.references,
        unmarked={d.attribute: [g.name for g in d.groups.values() if g.unmarked] for d in dictionaries},
        delta=(plan.tolerance or (None,))[0] if task.kind.number else plan.delta,
        positive_control=controls,
    )


def side(path: Path) -> Side:
    """What `auditor.measure.comparison` reads of a run: its record, and what was judged of which text."""
    folder, observed, keys = RunFolder.open(path), Observed(), array("Q")
    for case, checks in folder.cases():
        valid = {v.id for v in case.variants if (c := checks.get(v.id)) is None or c.status != "invalid"}
        observed.add(case, valid)
        if case.sampling != "directed":
            for v in (case.original, *(v for v in case.variants if v.id in valid)):
                text = v.input if isinstance(v.input, str) else json.dumps(dict(v.input), sort_keys=True)
                keys.append(short(f"{case.id}\0{text}"))
    for verdict in folder.verdicts():
        observed.judge(verdict)
    return Side(folder.run(), observed.table, np.array(keys, dtype=np.uint64))
