"""From claims and verdicts to findings: what the audit says, how surely, and by which variants it is seen."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auditor.core.types import ClaimVerdict, Estimate, Finding, Verdict
from auditor.measure.claim_words import claim_notes, claim_text, net_notes, net_text, placebo_notes
from auditor.measure.claims import OTHERS, Claim
from auditor.measure.hidden_findings import clearest, hidden_findings
from auditor.measure.settings import Settings as Settings
from auditor.measure.summary import (
    Direction,
    Edited,
    Key,
    Table,
    noise_of,
    seed_violation_rate,
    tabulate,
    violation_rate,
)

EXEMPLARS = 5
ATOMIC, JOINT = "MUT101", "MUT102"
NET, SCORE, REFUSAL, INSTABILITY = "DIR110", "SCO130", "REF120", "INS140"
METHOD = "net difference by text, texts and words random"


def findings(
    verdicts: Iterable[Verdict],
    edits: Mapping[str, Edited],
    settings: Settings,
    claims: Sequence[Claim] = (),
    *,
    table: Table | None = None,
) -> list[Finding]:
    """All findings of a run.

    For each model, format and attribute set one with its rate of changes (MUT101 one attribute, MUT102 several); its
    verdict is that of the net claims of the attribute, and of the claim about unsigned changes where there is no
    net claim. DIR110 is a net claim, REF120 one about refusals, INS140 changes beyond placebo edits of the same
    shape, HID201 a single hidden variant. docs/decisions/0004-claims.md has the rules.

    Parameters
    ----------
    verdicts : iterable of Verdict
        With model, format and ``hidden`` filled in.
    edits : mapping of str to Edited
        Directions and kinds by variant id.
    settings : Settings
        Everything else.
    claims : sequence of Claim
        Of the run.
    table : Table or None
        What `tabulate` makes of the verdicts, directed cases left out; made here if None.
    """
    kept = verdicts if isinstance(verdicts, list) else list(verdicts)
    if table is None:
        table = tabulate(kept, edits, directed=settings.directed)
    noise = {model: noise_of(labels) for model, labels in sorted(settings.labels.items())}
    by_key: dict[Key, list[Verdict]] = {}
    for v in kept:
        by_key.setdefault(Key(v.model, v.format, v.attributes), []).append(v)
    keys = sorted(by_key, key=lambda k: (k.model, k.format, len(k.attributes), k.attributes))
    about = {key: [c for c in claims if _key(c) == key] for key in keys}
    found = [
        _set(key, by_key[key], edits, settings, table, noise, about[key]) for key in keys if key in table
    ]
    found += [one for key in keys for one in _claims(about[key], by_key[key], edits)]
    found += hidden_findings(kept, edits, settings, noise)
    return [dataclasses.replace(finding, id=f"F{n:03d}") for n, finding in enumerate(found, 1)]


def _key(claim: Claim) -> Key:
    return Key(claim.model, claim.format, tuple(claim.attribute.split("+")))


# -- sets of attributes -----------------------------------------------------------------------------------


def _set(
    key: Key,
    verdicts: Sequence[Verdict],
    edits: Mapping[str, Edited],
    settings: Settings,
    table: Table,
    noise: Mapping[str, Estimate | None],
    claims: Sequence[Claim],
) -> Finding:
    cells = list(table[key].values())
    rate, seeds = violation_rate(cells), seed_violation_rate(cells)
    verdict, why, p_value, p_adjusted = _summary(claims, judged=rate is not None)
    deterministic = settings.deterministic.get(key.model, False)
    own = noise.get(key.model)
    return Finding(
        id="",
        kind="claim",
        code=ATOMIC if len(key.attributes) == 1 else JOINT,
        model=key.model,
        format=key.format,
        attributes=key.attributes,
        verdict=verdict,
        rate=rate,
        noise=own,
        p_value=p_value,
        p_adjusted=p_adjusted,
        exemplars=tuple(v.variant_id for v in clearest(verdicts)[:EXEMPLARS]),
        text=claim_text(key.attributes, _directions(verdicts, edits), rate, seeds, deterministic, own),
        notes=(
            *why,
            *claim_notes(key, cells, rate),
            *placebo_notes(next((c for c in claims if c.family == "instability"), None)),
        ),
    )


def _summary(
    claims: Sequence[Claim], *, judged: bool
) -> tuple[ClaimVerdict, tuple[str, ...], float | None, float | None]:
    """The verdict of a set of attributes, why, and the smallest p values behind it."""
    net = [c for c in claims if c.family == "net"]
    tested = [c for c in net if c.p_value is not None] or [
        c for c in claims if c.family == "instability" and c.p_value is not None
    ]
    if not tested or not judged:
        why = next((c.why for c in claims if c.why), "")
        return ("not_determined" if judged else "not_tested"), ((why,) if why else ()), None, None
    order: tuple[ClaimVerdict, ...] = ("shown", "shown_for_words", "bounded", "not_determined")
    if all(c.verdict == "bounded" for c in tested):
        verdict: ClaimVerdict = "bounded"
    else:
        found = {c.verdict for c in tested} - {"bounded"}
        verdict = next(v for v in order if v in found)
    first = min(tested, key=lambda c: (c.p_adjusted or 0.0, c.p_value or 0.0))
    why = next((c.why for c in (first, *tested) if c.verdict == verdict and c.why), "")
    return verdict, ((why,) if why else ()), first.p_value, first.p_adjusted


def _directions(verdicts: Iterable[Verdict], edits: Mapping[str, Edited]) -> list[Direction]:
    return sorted({direction for v in verdicts for direction in edits[v.variant_id].directions})


# -- claims about groups ------------------------------------------------------------------------------------


def _claims(
    claims: Sequence[Claim], verdicts: Sequence[Verdict], edits: Mapping[str, Edited]
) -> list[Finding]:
    """Claims that are decided, and the clearest of those that are not."""
    out = []
    for family, code in (("net", NET), ("refusal", REFUSAL), ("instability", INSTABILITY)):
        tested = [c for c in claims if c.family == family and c.p_value is not None]
        decided = [c for c in tested if c.verdict != "not_determined"]
        if family == "net" and not decided and tested:
            decided = [min(tested, key=lambda c: c.p_value or 0.0)]
        if family == "instability":
            decided = [c for c in decided if c.verdict in ("shown", "shown_for_words")]
        out += [_finding(c, code, verdicts, edits) for c in decided]
    return out


def of_claims(
    claims: Sequence[Claim], verdicts: Sequence[Verdict], edits: Mapping[str, Edited]
) -> list[Finding]:
    """Findings of claims alone: for answers that are amounts, where a rate of changes says little."""
    by_key: dict[Key, list[Claim]] = {}
    for claim in claims:
        by_key.setdefault(_key(claim), []).append(claim)
    found = [
        one
        for key, own in by_key.items()
        for one in _claims(own, [v for v in verdicts if Key(v.model, v.format, v.attributes) == key], edits)
        if one.verdict != "not_determined"
    ]
    return [dataclasses.replace(finding, id=f"F{n:03d}") for n, finding in enumerate(found, 1)]


def _finding(claim: Claim, code: str, verdicts: Sequence[Verdict], edits: Mapping[str, Edited]) -> Finding:
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
        code=SCORE if claim.scale == "number" else code,
        model=claim.model,
        format=claim.format,
        attributes=tuple(claim.attribute.split("+")),
        directions=steps,
        verdict=claim.verdict,
        rate=None if claim.scale == "number" else rate,
        p_value=claim.p_value,
        p_adjusted=claim.p_adjusted,
        exemplars=_examples(claim, verdicts, edits),
        text=net_text(claim),
        notes=net_notes(claim),
    )


def _examples(claim: Claim, verdicts: Sequence[Verdict], edits: Mapping[str, Edited]) -> tuple[str, ...]:
    """Variants whose answer changed the way the claim says, the clearest first."""
    if not claim.groups or not claim.label:
        return tuple(v.variant_id for v in clearest(verdicts)[:EXEMPLARS])
    group, reference = claim.groups
    gains = (claim.estimate or 0.0) > 0

    def fits(v: Verdict) -> bool:
        steps = [(s, t) for a, s, t in edits[v.variant_id].directions if a == claim.attribute]
        if len(steps) != 1:
            return False
        source, target = steps[0]
        if group not in steps[0] or (reference != OTHERS and reference not in steps[0]):
            return False
        mine, other = (
            (v.variant_output, v.original_output)
            if target == group
            else (v.original_output, v.variant_output)
        )
        return (mine == claim.label) is gains and (other == claim.label) is not gains and source != target

    return tuple(v.variant_id for v in clearest(verdicts) if fits(v))[:EXEMPLARS]


def as_records(found: Iterable[Finding]) -> list[dict[str, Any]]:
    """Findings as plain data for ``run.json``."""
    return [dataclasses.asdict(finding) for finding in found]
