"""The example that stands beside a claim: one text in which the answer changed the way that the claim says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from auditor.core.record import RunRecord
from auditor.core.types import Finding
from auditor.measure.claims import OTHERS
from auditor.report import cards
from auditor.report.claimed import Told

TRIED = 60  # variants that are looked at for one that fits


@dataclass(frozen=True, kw_only=True, slots=True)
class Example(cards.Brief):
    """One variant with its answers."""

    finding_id: str  # that shows more like it; empty where no finding holds it
    more: int  # further examples of that finding


def find(record: RunRecord, evidence: object, told: Told) -> Example | None:
    """The first variant of the claim, else of findings about its attribute, that shows what the claim says.

    Where no label changed with it, one whose score did.
    """
    if evidence is None:
        return None
    second = None
    for variant_id, finding in islice(_candidates(record, told), TRIED):
        made = _fits(evidence, told, variant_id)
        if made is None:
            continue
        brief, turned = made
        more = len(set(finding.exemplars) - {variant_id}) if finding else 0
        one = Example(
            variant_id=variant_id,
            text=brief.text,
            before=brief.before,
            after=brief.after,
            finding_id=finding.id if finding else "",
            more=more,
        )
        if turned:
            return one
        second = second or one
    return second


def _candidates(record: RunRecord, told: Told) -> Iterator[tuple[str, Finding | None]]:
    """Variant ids with the finding that holds each: of this claim first, then of its attribute."""
    claim = told.claim
    findings = [
        f
        for f in record.findings
        if list(f.attributes) == claim.attribute.split("+")
        and f.model == claim.model
        and f.format in ("", claim.format)
    ]
    groups = set(claim.groups)
    findings.sort(key=lambda f: ({g for s in f.directions for g in s[1:]} != groups, f.verdict != "shown"))
    for finding in findings:
        for variant_id in finding.exemplars:
            yield variant_id, finding
    for variant_id in claim.examples:
        yield variant_id, next((f for f in findings if f.exemplars), None)


def _fits(evidence: object, told: Told, variant_id: str) -> tuple[cards.Brief, bool] | None:
    """The answers and the text, where the change is from one side to the other; whether it goes the way of the claim.

    None where the label changed otherwise, or nothing did.
    """
    claim = told.claim
    case, variant, _ = cards.look_up(evidence, variant_id)
    if case is None or variant is None:
        return None
    sides = {_side(told, step) for step in variant.directions}
    if len(sides) != 1 or None in sides:
        return None
    cells = cards.lattice(case, variant, evidence, claim.model, claim.format)
    brief = cards.brief(evidence, variant_id, claim.model, claim.format)
    old, new = cells[0].tally.majority, cells[-1].tally.majority
    if brief is None or old is None or new is None or brief.before == brief.after:
        return None
    if old == new or cells[-1].compared != "changed":
        return (brief, False) if old == new else None
    return (brief, True) if _as_claimed(told, *((new, old) if sides == {True} else (old, new))) else None


def _side(told: Told, step: tuple[str, str, str]) -> bool | None:
    """Whether an edit goes to the group of the claim (True) or from it (False); None: it is about others."""
    attribute, source, target = step
    if told.claim.family == "instability":
        return True
    if attribute not in told.claim.attribute.split("+"):
        return None
    if target == told.group and told.reference in (source, OTHERS):
        return True
    if source == told.group and told.reference in (target, OTHERS):
        return False
    return None


def _as_claimed(told: Told, group: str, reference: str) -> bool:
    """Whether the answer about the group lies on the side of that about the reference that the claim says."""
    claim, up = told.claim, told.effect.value > 0
    if claim.family != "net":
        return True
    if claim.scale == "number":
        numbers = [re.search(r"-?\d+(?:\.\d+)?", text.replace(",", "")) for text in (group, reference)]
        if numbers[0] is None or numbers[1] is None:
            return True
        return (float(numbers[0].group()) > float(numbers[1].group())) is up
    label = claim.label.lower()
    has, other = (label in text.lower() for text in (group, reference))
    return (has and not other) if up else (other and not has)
