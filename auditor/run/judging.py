"""From the answers to one case to verdicts, and to what the statistics keep of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from auditor.core.types import Answer, Case, Check, Outcome, Variant, Verdict
from auditor.run import free
from auditor.run.controls import outcomes
from auditor.run.tally import KEPT_HIDDEN, Facts, Tally
from auditor.store.compact import OfCase

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

    def __init__(self, oracle: Any) -> None:
        from auditor.tasks.oracles.label import LabelOracle
        from auditor.tasks.oracles.labelset import LabelSetOracle

        self._oracle = oracle
        self._by_answers = type(oracle) in (LabelOracle, LabelSetOracle)
        self._known: dict[tuple[Given, Given], Told] = {}

    def judge(
        self, case: Case, answers: Mapping[str, Sequence[Answer]], facts: Mapping[str, Facts]
    ) -> list[Verdict]:
        """Verdicts for the variants that ``answers`` holds, in the order of the case."""
        if not self._by_answers:
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
            attributes = facts[variant.id].attributes
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
    facts = {v.id: loop.facts(v) for v in case.variants}
    present = {v.id: answers[v.id] for v in (case.original, *case.variants) if v.id in answers}
    worded = {v.id: present.pop(v.id) for v in case.variants if facts[v.id].wording and v.id in present}
    told = loop.oracle.judge(case, present, facts)
    bad = set()
    if loop.plan.test_discarded:
        bad = {v.id for v in case.variants if checks[v.id].status == "invalid"}
        present = {variant_id: given for variant_id, given in present.items() if variant_id not in bad}
        worded = {variant_id: given for variant_id, given in worded.items() if variant_id not in bad}
    verdicts: list[Verdict] = []
    for v, is_hidden in zip(told, hidden(case, told, checks), strict=True):
        placebo = facts[v.variant_id].placebo
        kept = tally.discarded if v.variant_id in bad else tally.placebos if placebo else verdicts
        # Order 0: no group changed. ``attributes`` are those whose edits a placebo copies.
        order = 0 if placebo and kept is not tally.discarded else v.order
        kept.append(_named(v, is_hidden, order, tally.model.name, name))
    tally.verdicts += verdicts
    if case.id not in loop.directed:
        loop.observed.take(case, present | worded, model=tally.model.name, format=name)
    _keep(loop, tally, case, name, present, verdicts, checks)
    _contrasts(loop, tally, case, name, present, verdicts)
    if case.id not in loop.directed:
        _by_group(tally, case, present, facts)
    return verdicts


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
    present: Mapping[str, Sequence[Answer]],
    verdicts: Sequence[Verdict],
    checks: Mapping[str, Check],
) -> None:
    """Keep the labels of a case, what its original was answered, and what of it has to be asked again."""
    counted = Counter([v.outcome for v in verdicts])
    texts = loop.parts.task.kind == "generation"
    told = None if texts else loop.parts.oracle.answer(present.get(case.original.id, ()))
    judged = counted["pass"] + counted["violation"]
    tally.originals[name].append((case.id, told, judged, counted["violation"]))
    if loop.plan.protocol == "hinter":
        from auditor.contrib.hinter.statistics import mutants_of

        tally.mutants += mutants_of(case, verdicts, checks, name)
    for v in verdicts:
        if v.hidden:  # whole cases of those only that can be asked again
            kept = len(tally.hidden) < KEPT_HIDDEN or case.id in loop.directed
            bare = case if kept else dataclasses.replace(case, variants=())
            tally.hidden.append((bare, v.variant_id, name))
            loop.observed.note(v.variant_id)
    if texts:  # figures stay in memory, texts do not
        free.keep(loop, tally, case, name, present)
    else:
        arms = [_labels(loop, given) for given in present.values()]
        tally.labels[case.id, name] = OfCase(case.id, list(present), arms)


def _labels(loop: Loop, given: Sequence[Answer]) -> tuple[Any, ...]:
    """The labels of the replicates; equal ones are kept once (not numbers: 1 and 1.0 are equal)."""
    values = tuple([a.value for a in given if a.status == "ok"])
    return loop.shared(values) if all(isinstance(v, str) for v in values) else values


def _contrasts(
    loop: Loop,
    tally: Tally,
    case: Case,
    name: str,
    answers: Mapping[str, Sequence[Answer]],
    verdicts: Sequence[Verdict],
) -> None:
    """Interaction contrast of each joint variant of two attributes, where the answers carry scores."""
    joint = [v for v in verdicts if v.order == 2 and v.outcome in ("pass", "violation")]
    if case.id in loop.directed or not joint:
        return
    if not any(a.scores for given in answers.values() for a in given):
        return
    from auditor.measure.hidden_lattice import Lattice

    lattice = Lattice(case, {})
    label = (*outcomes(loop.parts.task, {}), *loop.parts.task.labels, "")[0]
    for verdict in joint:
        single = [part for _, part in lattice.subsets(lattice.by_id[verdict.variant_id])]
        cells = [case.original.id, *single, verdict.variant_id]
        values = [None if c is None else _score(answers.get(c, ()), label) for c in cells]
        if len(values) == 4 and all(v is not None for v in values):
            o, a, b, both = (float(v) for v in values if v is not None)
            tally.contrasts.add(verdict, (both - o) - (a - o) - (b - o))


def _score(answers: Sequence[Answer], label: str) -> float | None:
    """Mean score of ``label`` over the replicates; None where one has none."""
    scores = [None if a.scores is None else a.scores.get(label) for a in answers]
    given = [s for s in scores if s is not None]
    return sum(given) / len(given) if given and len(given) == len(scores) else None


def _by_group(
    tally: Tally, case: Case, present: Mapping[str, Sequence[Answer]], facts: Mapping[str, Facts]
) -> None:
    """Count the kinds of answers by the groups that a text names."""
    for variant in (case.original, *case.variants):
        given = present.get(variant.id)
        if given is None or (variant is not case.original and facts[variant.id].placebo):
            continue
        for attribute, group in variant.groups.items():
            cell = tally.groups[attribute, group]
            for answer in given:
                if answer.status == "not_asked":
                    continue
                cell["n"] += 1
                cell[answer.status] += 1
