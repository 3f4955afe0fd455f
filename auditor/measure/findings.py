"""From claims and verdicts to findings: which claim each is about, and by which variants it is seen; no sentences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from auditor.core.record.measured import Claim
from auditor.core.shown import plural, verb
from auditor.core.types import DECIDED, Estimate, Finding
from auditor.measure.claims import OTHERS
from auditor.measure.hidden import Seen, Settings, hidden_findings
from auditor.measure.observations import Observations, Place
from auditor.measure.rates import VIOLATION, Counts, by_size, edited, tabulate, violation_rate

EXEMPLARS = 5
ATOMIC, JOINT = "MUT101", "MUT102"
SCORE = "SCO130"
CODES = {  # of families of claims
    "net": "DIR110",
    "refusal": "REF120",
    "instability": ATOMIC,
    "interaction": "INT150",
    "omnibus": "OMN160",
}
METHOD = "net difference by text, texts and words random"


Key = tuple[Place, tuple[str, ...]]  # and attributes


def findings(tables: Sequence[Observations], settings: Settings, claims: Sequence[Claim] = ()) -> list[Finding]:
    """All findings of a run.

    For each model, format and attribute set one with its rate of changes (MUT101 one attribute, MUT102 several) and
    the verdict of the claim about instability. `CODES` has those of other claims; HID201 is a single hidden variant.
    docs/decisions/0004-claims.md has the rules.
    """
    places = {id(claim): n for n, claim in enumerate(claims)}
    of_sets: list[Finding] = []
    of_groups: list[Finding] = []
    for place, by_set in sorted(tabulate(tables[0], edited).items()):
        for attributes, counts in sorted(by_set.items(), key=lambda one: by_size(one[0])):
            key = (place, attributes)
            about = [c for c in claims if _key(c) == key]
            changed = _changed(tables, key)
            rate = violation_rate(counts)
            own = next((c for c in about if c.family == "instability"), None)
            shown = (c.examples for c in about if c.verdict == "shown" and c.examples)  # where no label changed
            of_sets.append(
                Finding(
                    id="",
                    kind="claim",
                    code=ATOMIC if len(attributes) == 1 else JOINT,
                    model=place.model,
                    format=place.format,
                    attributes=attributes,
                    verdict="not_tested" if own is None or rate is None else own.verdict,
                    rate=rate,
                    noise=settings.noise.get(place.model),
                    p_value=None if own is None else own.p_value,
                    p_adjusted=None if own is None else own.p_adjusted,
                    exemplars=tuple(one.verdict.variant_id for one in changed[:EXEMPLARS]) or next(shown, ()),
                    notes=tuple(rate_notes(attributes, counts, rate)),
                    claim=None if own is None else places[id(own)],
                )
            )
            of_groups += _claims([c for c in about if c is not own], changed, places)
    return numbered([*of_sets, *of_groups, *hidden_findings(tables, settings)])


def of_claims(claims: Sequence[Claim], tables: Sequence[Observations]) -> list[Finding]:
    """Findings of claims alone: for answers that are amounts, where a rate of changes says little."""
    places = {id(claim): n for n, claim in enumerate(claims)}
    by_key: dict[Key, list[Claim]] = {}
    for claim in claims:
        by_key.setdefault(_key(claim), []).append(claim)
    made = (one for key, own in by_key.items() for one in _claims(own, _changed(tables, key), places))
    return numbered(one for one in made if one.verdict != "not_determined")


def numbered(findings: Iterable[Finding]) -> list[Finding]:
    """Give each finding its id."""
    return [dataclasses.replace(finding, id=f"F{n:03d}") for n, finding in enumerate(findings, 1)]


def _key(claim: Claim) -> Key:
    return Place(claim.model, claim.format), tuple(claim.attribute.split("+"))


def _changed(tables: Iterable[Observations], key: Key) -> list[Seen]:
    """The violations of a set of attributes, the clearest first."""
    seen: list[Seen] = []
    place, attributes = key
    for table in tables:
        judged = table.judged()
        own = np.array([attributes in edited(s) for s in table.shapes.values], dtype=bool)[judged.shape]
        seen += Seen.of(table, judged, np.flatnonzero(table.at(judged, place) & own & (judged.outcome == VIOLATION)))
    return sorted(seen, key=lambda one: (-(one.verdict.distance or 0.0), one.verdict.case_id, one.verdict.variant_id))


# -- claims about groups ------------------------------------------------------------------------------------


def _claims(claims: Sequence[Claim], changed: Sequence[Seen], places: Mapping[int, int]) -> list[Finding]:
    """Net and refusal claims that are decided, the clearest net claim of those that are not, what else is shown."""
    out = []
    for family in CODES:
        tested = [c for c in claims if c.family == family and c.p_value is not None and c.verdict != "not_tested"]
        decided = [c for c in tested if c.verdict in DECIDED]
        if family == "net" and not decided and tested:
            decided = [min(tested, key=lambda c: c.p_value or 0.0)]
        if family not in ("net", "refusal"):
            decided = [c for c in decided if c.verdict == "shown"]
        out += [_finding(c, changed, places[id(c)]) for c in decided]
    return out


def _finding(claim: Claim, changed: Sequence[Seen], place: int) -> Finding:
    rate = None
    if claim.family != "omnibus" and (claim.scale == "share" or claim.share_difference is not None):
        value, low, high = claim.estimate, claim.low, claim.high
        if claim.scale == "log_odds":
            value, low, high = claim.share_difference, claim.share_low, claim.share_high
        assert value is not None
        assert low is not None
        assert high is not None
        rate = Estimate(value=value, low=low, high=high, level=0.95, n=claim.texts, n_skipped=0, method=METHOD)
    steps = ((claim.attribute, claim.groups[1], claim.groups[0]),) if claim.groups else ()
    return Finding(
        id="",
        kind="claim",
        code=_code(claim),
        model=claim.model,
        format=claim.format,
        attributes=tuple(claim.attribute.split("+")),
        directions=steps,
        verdict=claim.verdict,
        rate=rate,
        p_value=claim.p_value,
        p_adjusted=claim.p_adjusted,
        exemplars=_examples(claim, changed),
        claim=place,
    )


def _code(claim: Claim) -> str:
    if claim.family == "net" and claim.scale == "number":
        return SCORE
    return JOINT if claim.family == "instability" and "+" in claim.attribute else CODES[claim.family]


def _examples(claim: Claim, changed: Sequence[Seen]) -> tuple[str, ...]:
    """Variants whose answer changed the way the claim says, then those whose score did; the clearest first."""
    if claim.family == "interaction":
        wanted = set(zip(claim.attribute.split("+"), claim.groups[0].split("+"), strict=True))
        changed = [one for one in changed if {(a, target) for a, _, target in one.directions} == wanted]
    if not claim.groups or claim.family == "interaction":
        return tuple(one.verdict.variant_id for one in changed[:EXEMPLARS])
    group, reference = claim.groups
    gains = (claim.estimate or 0.0) > 0

    def fits(one: Seen) -> bool:
        steps = [(s, t) for a, s, t in one.directions if a == claim.attribute]
        if len(steps) != 1:
            return False
        source, target = steps[0]
        if group not in steps[0] or (reference != OTHERS and reference not in steps[0]):
            return False
        v = one.verdict
        mine, other = (
            (v.variant_output, v.original_output) if target == group else (v.original_output, v.variant_output)
        )
        return (mine == claim.label) is gains and (other == claim.label) is not gains and source != target

    turned = [one.verdict.variant_id for one in changed if fits(one)] if claim.label else []
    first = [name for name in claim.examples if name in turned]
    moved = claim.examples if claim.scale != "share" and claim.verdict == "shown" else ()
    return tuple(dict.fromkeys((*first, *turned, *moved)))[:EXEMPLARS]


# -- what a rate rests on ------------------------------------------------------------------------------------


def rate_notes(attributes: Sequence[str], counts: Counts, rate: Estimate | None) -> list[str]:
    """What else was measured: what was lost, how many changes are hidden."""
    notes = [rate.note] if rate is not None and rate.note else []
    lost = int(counts.lost.sum())
    if lost:
        notes.append(
            f"{plural(lost, 'variant')} {verb(lost, 'was', 'were')} not judged (no majority, or too few answers that "
            "parse)"
        )
    hidden = int(counts.hidden.sum())
    if len(attributes) > 1 and hidden:
        total = int(counts.violations.sum())
        notes.append(f"{hidden} of {total} changes are hidden: no smaller set of these attributes changed the label")
    return notes
