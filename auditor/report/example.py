"""The example that stands beside a claim: one text in which the answer changed the way that the claim says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from auditor.core.record import RunRecord
from auditor.core.types import Finding
from auditor.measure.claims import OTHERS
from auditor.report import cards, diff, words
from auditor.report.claimed import Told

TRIED = 60  # variants that are looked at for one that fits
ROOM = 34  # characters kept on each side of a change
LENGTH = 150  # characters of the text with its changes, at most


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One variant with its answers."""

    variant_id: str
    finding_id: str  # that shows more like it; empty where no finding holds it
    more: int  # further examples of that finding
    text: str  # "… [He → She] grinned …"
    before: str
    after: str


def find(record: RunRecord, evidence: Any, told: Told) -> Example | None:
    """The first variant of the claim, else of findings about its attribute, that shows what the claim says."""
    if evidence is None:
        return None
    for n, (variant_id, finding) in enumerate(_candidates(record, told)):
        if n == TRIED:
            break
        if (made := _fits(evidence, told, variant_id)) is None:
            continue
        original, variant, text = made
        others = set(finding.exemplars) - {variant_id} if finding else ()
        return Example(
            variant_id=variant_id,
            finding_id=finding.id if finding else "",
            more=len(others),
            text=text,
            before=original,
            after=variant,
        )
    return None


def _candidates(record: RunRecord, told: Told) -> Iterator[tuple[str, Finding | None]]:
    """Variant ids with the finding that holds each: of this claim first, then of its attribute."""
    claim = told.claim
    findings = list(_findings(record, told))
    for variant_id in claim.examples:
        holds = (f for f in findings if variant_id in f.exemplars)
        yield variant_id, next(holds, next((f for f in findings if f.exemplars), None))
    for finding in findings:
        for variant_id in finding.exemplars:
            yield variant_id, finding


def _findings(record: RunRecord, told: Told) -> Iterable[Finding]:
    """Findings about the attribute of a claim and no other, net differences first, then the shown ones."""
    claim = told.claim
    about = [
        f
        for f in record.findings
        if list(f.attributes) == claim.attribute.split("+")
        and f.model == claim.model
        and f.format in ("", claim.format)
    ]

    def rank(finding: Finding) -> tuple[bool, bool, bool]:
        groups = {group for step in finding.directions for group in step[1:]}
        return not finding.code.startswith("NET"), not set(claim.groups) <= groups, finding.verdict != "shown"

    return sorted(about, key=rank)


def _fits(evidence: Any, told: Told, variant_id: str) -> tuple[str, str, str] | None:
    """The two answers and the text, where the change is from one side to the other and the way the claim goes."""
    claim = told.claim
    case, variant, missing = cards.look_up(evidence, variant_id)
    if missing or case is None or variant is None:
        return None
    sides = {_side(told, step) for step in variant.directions}
    if len(sides) != 1 or None in sides or not sides:
        return None
    to_group = sides == {True}
    cells = cards.lattice(case, variant, evidence, claim.model, claim.format)
    old, new = cells[0].tally.majority, cells[-1].tally.majority
    if old is None or new is None or old == new or cells[-1].compared != "changed":
        return None
    group, reference = (new, old) if to_group else (old, new)
    if not _as_claimed(told, group, reference):
        return None
    left, right = diff.compare(case.original, variant)
    return cards.shorten(old), cards.shorten(new), marked(left, right)


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


def marked(left: tuple[diff.Segment, ...], right: tuple[diff.Segment, ...]) -> str:
    """The variant in one line, its changed words as ``[old → new]``, what lies between them cut."""
    old = [s.text for s in left if s.changed]
    out = ""
    for segment in diff.excerpt(right, limit=LENGTH, context=ROOM):
        if not segment.changed:
            out += segment.text
            continue
        before = segment.edit.source if segment.edit is not None else (old.pop(0) if len(old) == 1 else "")
        out += f"[{before} → {segment.text}]" if before else f"[{segment.text}]"
    line = " ".join(words.visible(out, newlines=False).replace("⏎", " ").split())
    return line if len(line) <= 2 * LENGTH else line[: 2 * LENGTH - 1].rstrip() + "…"
