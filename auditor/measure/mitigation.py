"""Changed prompts beside the one that was audited: what each does to the claims, to accuracy and to instability.

All answers lie in one table whose formats are the prompts. A change of a net difference is itself a net difference,
of ``answer under the changed prompt − answer under the first`` to the same version of the same text, so that it has
the same intervals, tests and correction for many as any claim.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from auditor.core.record.measured import Claim
from auditor.core.types import Answer
from auditor.measure import interactions
from auditor.measure.claims import MIN_TEXTS, Question, Tested, decide, differing, net, scales
from auditor.measure.contrasts import Versions, outcome_means
from auditor.measure.intervals import holm, mean_interval, sign_flip
from auditor.measure.observations import STATUS, Arm, Bools, Columns, Floats, Observations

UNMITIGATED = "unmitigated"
ALPHA = 0.05
Effect = Literal["reduced", "reversed", "larger", "not_shown", "not_tested"]
What = Literal["accuracy", "instability"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What one changed prompt does to one net difference, or to one interaction."""

    mitigation: str
    before: Claim
    after: Claim
    change: Claim  # answer by answer, in ``unit``; it moves towards 0 where a difference shrinks
    unit: str
    effect: Effect


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """What one changed prompt does to the accuracy on unchanged texts, or to how often an edit changes the answer."""

    mitigation: str
    what: What
    before: float
    after: float
    low: float | None
    high: float | None
    texts: int
    p_value: float | None
    p_adjusted: float | None = None

    @property
    def shown(self) -> bool:
        """Whether the difference is shown."""
        return self.p_adjusted is not None and self.p_adjusted < ALPHA


@dataclass(frozen=True, kw_only=True, slots=True)
class Mitigated:
    """All that changed prompts do, beside the prompt ``base``."""

    base: str
    mitigations: tuple[str, ...]
    changes: tuple[Change, ...]
    sides: tuple[Side, ...]

    def helps(self) -> list[str]:
        """Prompts that reduce a difference that was shown, and are shown to do no harm by any measure here."""
        bad = {c.mitigation for c in self.changes if c.effect in ("reversed", "larger")}
        bad |= {s.mitigation for s in self.sides if s.shown and (s.after > s.before) == (s.what == "instability")}
        good = {c.mitigation for c in self.changes if c.effect == "reduced" and c.before.verdict == "shown"}
        return [name for name in self.mitigations if name in good - bad]


def _key(claim: Claim) -> tuple[object, ...]:
    return claim.family, claim.attribute, claim.groups, claim.label, claim.model


def compare(table: Observations, question: Question, base: str, golds: Mapping[str, object] | None = None) -> Mitigated:
    """Lay the prompts of ``table`` beside the prompt ``base``."""
    made: dict[tuple[object, ...], Claim] = {}
    for family, prompt in itertools.product(_tested(table, question), table.formats.values):
        # Those under each prompt are decided as in a run of it alone.
        decided = decide([t for t in family if t.claim.format == prompt], question)
        made |= {(prompt, *_key(claim)): claim for claim in decided}
    changes = []
    for unit, claim in _changed(table, question, base):
        key = _key(claim)
        before, after = made.get((base, *key)), made.get((claim.format, *key))
        if before is not None and after is not None:
            effect = _effect(before, after, claim)
            changes.append(
                Change(mitigation=claim.format, before=before, after=after, change=claim, unit=unit, effect=effect)
            )
    sides = [*_accuracy(table, base, golds or {}), *_instability(table, base)]
    adjusted = holm([side.p_value for side in sides])
    return Mitigated(
        base=base,
        mitigations=tuple(name for name in table.formats.values if name != base),
        changes=tuple(changes),
        sides=tuple(dataclasses.replace(s, p_adjusted=p) for s, p in zip(sides, adjusted, strict=True)),
    )


def _tested(table: Observations, question: Question) -> tuple[list[Tested], list[Tested]]:
    """Net differences and interactions."""
    columns = table.columns()
    of_groups = net(table, columns, Versions(table, columns), "net", question)
    return list(of_groups), list(interactions.tested(table, columns, question))


def _effect(before: Claim, after: Claim, change: Claim) -> Effect:
    if change.verdict == "not_tested" or before.estimate is None or after.estimate is None:
        return "not_tested"
    if change.verdict != "shown":
        return "not_shown"
    turned = before.estimate * after.estimate < 0
    if turned and before.verdict == "shown" and after.verdict == "shown":
        return "reversed"
    assert change.estimate is not None
    return (
        "reduced" if change.estimate * before.estimate < 0 and abs(after.estimate) < abs(before.estimate) else "larger"
    )


def _changed(table: Observations, question: Question, base: str) -> Iterator[tuple[str, Claim]]:
    """The changes of all net differences and interactions, those of a family decided together, with their unit."""
    tested: tuple[list[tuple[str, Tested]], ...] = ([], [])
    for label in question.outcomes or ("",):
        for unit, differences in _differences(table, question, base, label).items():
            plain = dataclasses.replace(question, outcomes=(), number=True, unit=unit, delta=None, graded=frozenset())
            for family, changes in zip(tested, _tested(differences, plain), strict=True):
                named = (dataclasses.replace(t, claim=dataclasses.replace(t.claim, label=label)) for t in changes)
                family += [(unit, one) for one in named]
    asked = dataclasses.replace(question, delta=None)
    for family in tested:
        yield from zip((unit for unit, _ in family), decide([t for _, t in family], asked), strict=True)


def _differences(table: Observations, question: Question, base: str, label: str) -> dict[str, Observations]:
    """By unit a table of how far the answers to each version are from those under ``base``."""
    out: dict[str, Observations] = {}
    columns = table.columns()
    for model, name in enumerate(table.models.values):
        for prompt, first, rows in _arms(table, columns, base):
            sides = [use & (columns.model == model) for use in (first, rows)]
            if not all(side.any() for side in sides):
                continue
            before, after = (scales(table, columns, side, label, question) for side in sides)
            scale = next((s for s in before if s in after), None)
            if scale is None:
                continue
            (y0, known0), (y1, known1) = (outcome_means(columns, side, before[scale]) for side in sides)
            unit = question.unit_of(scale)
            to = out[unit] if unit in out else out.setdefault(unit, table.bare())
            size = 100.0 if scale == "share" else 1.0
            for version in np.flatnonzero(known0 & known1).tolist():
                value = size * float(y1[version] - y0[version])
                to.answers(version, model=name, format=prompt, answers=[Answer(status="ok", value=value)])
    return out


def _arms(table: Observations, columns: Columns, base: str) -> Iterator[tuple[str, Bools, Bools]]:
    """Each changed prompt with its answers and those under ``base``, models together."""
    first = columns.format == table.formats.get(base)
    for code, prompt in enumerate(table.formats.values):
        if prompt != base:
            yield prompt, first, columns.format == code


def _accuracy(table: Observations, base: str, golds: Mapping[str, object]) -> Iterator[Side]:
    """Of unchanged texts with a label, how often the answer is that label; what cannot be read is not."""
    columns = table.columns()
    gold = np.full(len(table.texts.values), -1, dtype=np.int64)
    for text, label in golds.items():
        code, value = table.texts.get(text), table.labels.get(label)
        if code is not None and value is not None:
            gold[code] = value
    original = table.in_arm(Arm.ORIGINAL)[columns.version_shape]
    known = np.array([name in golds for name in table.texts.values], dtype=bool)
    use = (original & known[columns.version_text])[columns.version] & (columns.status != STATUS["failed"])
    right = (columns.label >= 0) & (columns.label == gold[columns.version_text[columns.version]])
    at, size = columns.version_text[columns.version], len(gold)
    for prompt, first, rows in _arms(table, columns, base):
        count = [np.bincount(at[use & side], minlength=size) for side in (first, rows)]
        total = [np.bincount(at[use & side & right], minlength=size) for side in (first, rows)]
        both = (count[0] > 0) & (count[1] > 0)
        if both.any():
            yield _paired(prompt, "accuracy", *(t[both] / n[both] for t, n in zip(total, count, strict=True)))


def _paired(prompt: str, what: What, before: Floats, after: Floats) -> Side:
    d = after - before
    _, low, high = mean_interval(d.tolist())
    bounded = math.isfinite(low)
    return Side(
        mitigation=prompt,
        what=what,
        before=float(before.mean()),
        after=float(after.mean()),
        low=low if bounded else None,
        high=high if bounded else None,
        texts=len(d),
        p_value=sign_flip(d, rng=np.random.default_rng(len(d))) if len(d) >= MIN_TEXTS else None,
    )


def _instability(table: Observations, base: str) -> Iterator[Side]:
    """How often the answer to an edited text is another than to the unchanged one, by text."""
    columns = table.columns()
    original, edited = (table.in_arm(arm)[columns.version_shape] for arm in (Arm.ORIGINAL, Arm.EDITED))
    for prompt, first, rows in _arms(table, columns, base):
        sides = [differing(columns, use, original) for use in (first, rows)]
        both = ~np.isnan(sides[0]) & ~np.isnan(sides[1]) & edited
        if both.any():
            text = columns.version_text[both]
            n = np.bincount(text)
            y0, y1 = (np.bincount(text, side[both])[n > 0] / n[n > 0] for side in sides)
            yield _paired(prompt, "instability", y0, y1)
