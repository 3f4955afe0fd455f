"""From claims and verdicts to findings: what the audit says, how surely, and by which variants it is seen."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from auditor.core.record.measured import Claim
from auditor.core.shown import plural, verb
from auditor.core.types import VERDICTS, ClaimVerdict, Estimate, Finding
from auditor.measure.claims import OTHERS
from auditor.measure.hidden import Seen, Settings, hidden_findings
from auditor.measure.intervals import percent, with_interval
from auditor.measure.observations import Bools, Direction, Judged, Observations, Place
from auditor.measure.rates import VIOLATION, Counts, by_size, edited, seed_violation_rate, tabulate, violation_rate

EXEMPLARS = 5
ATOMIC, JOINT = "MUT101", "MUT102"
SCORE = "SCO130"
CODES = {  # of families of claims
    "net": "DIR110",
    "refusal": "REF120",
    "instability": "INS140",
    "interaction": "INT150",
    "omnibus": "OMN160",
}
METHOD = "net difference by text, texts and words random"


Key = tuple[Place, tuple[str, ...]]  # and attributes


def findings(tables: Sequence[Observations], settings: Settings, claims: Sequence[Claim] = ()) -> list[Finding]:
    """All findings of a run.

    For each model, format and attribute set one with its rate of changes (MUT101 one attribute, MUT102 several); its
    verdict is that of the net claims of the attribute, and of the claim about unsigned changes where there is no
    net claim. `CODES` has those of claims; HID201 is a single hidden variant.
    docs/decisions/0004-claims.md has the rules.

    Parameters
    ----------
    tables : sequence of Observations
        What was drawn at random, which rates are of; and cases that earlier verdicts led to, which give examples.
    settings : Settings
        Everything else.
    claims : sequence of Claim
        Of the run.
    """
    of_sets: list[Finding] = []
    of_groups: list[Finding] = []
    for place, by_set in sorted(tabulate(tables[0], edited).items()):
        for attributes, counts in sorted(by_set.items(), key=lambda one: by_size(one[0])):
            key = (place, attributes)
            about = [c for c in claims if _key(c) == key]
            changed = _changed(tables, key)
            of_sets.append(_set(key, counts, tables, changed, settings, about))
            of_groups += _claims(about, changed)
    return _numbered([*of_sets, *of_groups, *hidden_findings(tables, settings)])


def of_claims(claims: Sequence[Claim], tables: Sequence[Observations]) -> list[Finding]:
    """Findings of claims alone: for answers that are amounts, where a rate of changes says little."""
    by_key: dict[Key, list[Claim]] = {}
    for claim in claims:
        by_key.setdefault(_key(claim), []).append(claim)
    made = (one for key, own in by_key.items() for one in _claims(own, _changed(tables, key)))
    return _numbered(one for one in made if one.verdict != "not_determined")


def _numbered(findings: Iterable[Finding]) -> list[Finding]:
    return [dataclasses.replace(finding, id=f"F{n:03d}") for n, finding in enumerate(findings, 1)]


def _key(claim: Claim) -> Key:
    return Place(claim.model, claim.format), tuple(claim.attribute.split("+"))


def _rows(table: Observations, judged: Judged, key: Key) -> Bools:
    """Which verdicts are about a set of attributes."""
    place, attributes = key
    own = np.array([attributes in edited(s) for s in table.shapes.values], dtype=bool)
    return np.asarray(table.at(judged, place) & own[judged.shape])


def _changed(tables: Iterable[Observations], key: Key) -> list[Seen]:
    """The violations of a set of attributes, the clearest first."""
    seen: list[Seen] = []
    for table in tables:
        judged = table.judged()
        seen += Seen.of(table, judged, np.flatnonzero(_rows(table, judged, key) & (judged.outcome == VIOLATION)))
    return sorted(seen, key=lambda one: (-(one.verdict.distance or 0.0), one.verdict.case_id, one.verdict.variant_id))


def _directions(tables: Iterable[Observations], key: Key) -> list[Direction]:
    turns: set[Direction] = set()
    for table in tables:
        judged = table.judged()
        for code in np.unique(judged.shape[_rows(table, judged, key)]).tolist():
            turns.update(table.shapes.values[code].directions)
    return sorted(turns)


# -- sets of attributes -----------------------------------------------------------------------------------


def _set(
    key: Key,
    counts: Counts,
    tables: Iterable[Observations],
    changed: Sequence[Seen],
    settings: Settings,
    claims: Sequence[Claim],
) -> Finding:
    (model, name), attributes = key
    rate, seeds = violation_rate(counts), seed_violation_rate(counts)
    verdict, why, decisive = _summary(claims, judged=rate is not None)
    noise = settings.noise.get(model)
    deterministic = settings.deterministic.get(model, False)
    moved = next((c.examples for c in claims if c.verdict == "shown" and c.examples), ())
    return Finding(
        id="",
        kind="claim",
        code=ATOMIC if len(attributes) == 1 else JOINT,
        model=model,
        format=name,
        attributes=attributes,
        verdict=verdict,
        rate=rate,
        noise=noise,
        p_value=None if decisive is None else decisive.p_value,
        p_adjusted=None if decisive is None else decisive.p_adjusted,
        exemplars=tuple(one.verdict.variant_id for one in changed[:EXEMPLARS]) or moved,
        text=claim_text(attributes, _directions(tables, key), rate, seeds, deterministic, noise),
        notes=(
            *which_way(decisive),
            *why,
            *claim_notes(attributes, counts, rate),
            *placebo_notes(next((c for c in claims if c.family == "instability"), None)),
        ),
    )


def _summary(claims: Sequence[Claim], *, judged: bool) -> tuple[ClaimVerdict, tuple[str, ...], Claim | None]:
    """The verdict of a set of attributes, why, and the claim that it rests on."""
    net = [c for c in claims if c.family == "net"]
    tested = [c for c in net if c.p_value is not None] or [
        c for c in claims if c.family == "instability" and c.p_value is not None
    ]
    if not tested or not judged:
        why = next((c.why for c in claims if c.why), "")
        return ("not_determined" if judged else "not_tested"), ((why,) if why else ()), None
    # Bounded where all are.
    states = {c.verdict for c in tested} - {"bounded"} or {"bounded"}
    verdict: ClaimVerdict = next(v for v in VERDICTS if v in states)
    alike = [c for c in tested if c.verdict == verdict]
    first = min(alike, key=lambda c: (c.p_adjusted or 0.0, c.p_value or 0.0))
    why = next((c.why for c in (first, *alike) if c.why), "")
    return verdict, ((why,) if why else ()), first


# -- claims about groups ------------------------------------------------------------------------------------


def _claims(claims: Sequence[Claim], changed: Sequence[Seen]) -> list[Finding]:
    """Net and refusal claims that are decided, the clearest net claim of those that are not, what else is shown."""
    out = []
    for family, code in CODES.items():
        tested = [c for c in claims if c.family == family and c.p_value is not None]
        decided = [c for c in tested if c.verdict != "not_determined"]
        if family == "net" and not decided and tested:
            decided = [min(tested, key=lambda c: c.p_value or 0.0)]
        if family not in ("net", "refusal"):
            decided = [c for c in decided if c.verdict == "shown"]
        out += [_finding(c, code, changed) for c in decided]
    return out


def _measured(claim: Claim) -> tuple[float, float, float]:
    """The difference with its interval: in shares where the claim is tested on log odds."""
    value, low, high = claim.estimate, claim.low, claim.high
    if claim.scale == "log_odds":
        value, low, high = claim.share_difference, claim.share_low, claim.share_high
    assert value is not None
    assert low is not None
    assert high is not None
    return value, low, high


def _finding(claim: Claim, code: str, changed: Sequence[Seen]) -> Finding:
    rate = None
    if claim.family != "omnibus" and (claim.scale == "share" or claim.share_difference is not None):
        value, low, high = _measured(claim)
        rate = Estimate(value=value, low=low, high=high, level=0.95, n=claim.texts, n_skipped=0, method=METHOD)
    steps = ((claim.attribute, claim.groups[1], claim.groups[0]),) if claim.groups else ()
    return Finding(
        id="",
        kind="claim",
        code=SCORE if claim.scale == "number" and claim.family == "net" else code,
        model=claim.model,
        format=claim.format,
        attributes=tuple(claim.attribute.split("+")),
        directions=steps,
        verdict=claim.verdict,
        rate=rate,
        p_value=claim.p_value,
        p_adjusted=claim.p_adjusted,
        exemplars=_examples(claim, changed),
        text=net_text(claim),
        notes=net_notes(claim),
    )


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


def as_records(findings: Iterable[Finding]) -> list[dict[str, object]]:
    """Findings as plain data for ``run.json``."""
    return [dataclasses.asdict(finding) for finding in findings]


# -- in words -------------------------------------------------------------------------------------------------


def claim_text(
    attributes: Sequence[str],
    directions: Sequence[Direction],
    rate: Estimate | None,
    seeds: Estimate | None,
    deterministic: bool,
    noise: Estimate | None,
) -> str:
    """What was measured, in one sentence; no judgement."""
    names = " and ".join(_plain(a) for a in attributes)
    if rate is None:
        return f"no answer to a changed prompt could be judged where {names} terms were changed"
    change = f"when {names} terms were changed"
    if len(directions) == 1 and len(attributes) == 1:
        change += f" from {_plain(directions[0][1])} to {_plain(directions[0][2])}"
    elif len(attributes) > 1:
        change += " together"
    interval = f"{rate.level * 100:.0f} %: {percent(rate.low)}–{percent(rate.high)} %"
    base = f"{plural(rate.n_variants or 0, 'variant')} of {plural(rate.n, 'seed')} ({interval})"
    text = f"the label changed in {percent(rate.value)} % of {base} {change}"
    if seeds is not None and seeds.value > 0:
        text += f", on {percent(seeds.value)} % of the seeds at least once"
    return f"{text}; {_noise_text(deterministic, noise)}"


def _noise_text(deterministic: bool, noise: Estimate | None) -> str:
    if deterministic:
        return "the same prompt repeated changed in 0 % (declared deterministic)"
    if noise is None:
        return "the same prompt was not repeated"
    return f"two answers to the same prompt differed in {with_interval(noise)}"


def claim_notes(attributes: Sequence[str], counts: Counts, rate: Estimate | None) -> list[str]:
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


def placebo_notes(claim: Claim | None) -> list[str]:
    """What placebo edits of the same shape did."""
    if claim is None:
        return []
    if claim.shares is None or claim.estimate is None or claim.low is None or claim.high is None:
        return [f"changes are not compared with placebo edits: {claim.why}"]
    edited, placebo = claim.shares
    return [
        f"placebo edits of the same shape changed the label in {percent(placebo)} %, edits of the group in "
        f"{percent(edited)} % of the same {plural(claim.texts, 'text')}: {_points(claim.estimate)} points more "
        f"(95 %: {_points(claim.low)} to {_points(claim.high)})"
    ]


def net_text(claim: Claim) -> str:
    """What was measured, in one sentence."""
    if claim.family == "omnibus":
        return f"words about {_sets(claim.attribute)} moved answers more than neutral words do ({claim.texts} texts)"
    if claim.family == "interaction":
        size = f"{claim.estimate or 0:+.3g} {claim.unit} (95 %: {claim.low:+.3g} to {claim.high:+.3g})"
        size = f"{_difference(claim)}, label {claim.label}," if claim.scale == "share" else size
        pair = " against ".join(map(_plain, claim.groups))
        return f"{pair}: {size} beyond what {_sets(claim.attribute)} do on their own ({plural(claim.texts, 'text')})"
    if not claim.groups:
        return f"the label changed more often with {_sets(claim.attribute)} than under placebo edits of the same shape"
    group, reference = (_plain(g) for g in claim.groups)
    reference = f"other groups of {_plain(claim.attribute)}" if reference == OTHERS else reference
    texts = plural(claim.texts, "text")
    if claim.family == "refusal":
        what = "got no label (refused, filtered or not readable)"
        return f"texts about {group} {what} {_difference(claim)} than the same texts about {reference} ({texts})"
    if claim.scale == "number":
        more = "lower" if (claim.estimate or 0) < 0 else "higher"
        size = f"{abs(claim.estimate or 0):.3g} {claim.unit}".strip()
        interval = f"95 %: {claim.low:.3g} to {claim.high:.3g}"
        return (
            f"the mean answer was {size} {more} for texts about {group} than for the same texts about {reference} "
            f"({interval}; {texts})"
        )
    return (
        f"texts about {group} got the label {claim.label} {_difference(claim)} than the same texts about {reference} "
        f"({texts})"
    )


def which_way(claim: Claim | None) -> tuple[str, ...]:
    """Of attributes whose verdict is that of a net difference: which, since how often answers change is another."""
    if claim is None or claim.family != "net" or claim.verdict != "shown":
        return ()
    return (f"what is shown is which way answers change: {net_text(claim)}",)


def _difference(claim: Claim) -> str:
    value, low, high = _measured(claim)
    return (
        f"{_points(abs(value))} percentage points {'less' if value < 0 else 'more'} often "
        f"(95 %: {_points(low)} to {_points(high)})"
    )


def net_notes(claim: Claim) -> tuple[str, ...]:
    """How the claim was reached, and what it would take where it is open."""
    notes = [claim.why] if claim.why else []
    if claim.scale == "log_odds" and claim.estimate is not None:
        notes.append(
            f"on the log odds of the label: {claim.estimate:+.3f} (95 %: {claim.low:+.3f} to {claim.high:+.3f}), "
            "which decides"
        )
    if claim.words_low is not None and claim.words_high is not None and claim.scale != "number":
        scale = "log odds " if claim.scale == "log_odds" else ""
        shown = (
            f"{claim.words_low:+.3f} to {claim.words_high:+.3f}"
            if scale
            else (f"{_points(claim.words_low)} to {_points(claim.words_high)} points")
        )
        notes.append(f"for these words alone: {scale}95 % {shown}; {claim.words:.1f} words stand for the groups")
    if claim.calls_needed is not None:
        notes.append(f"some {claim.calls_needed:,} calls would decide it, as far as texts do")
    return tuple(notes)


def _points(share: float) -> str:
    text = f"{100 * abs(share):.1f}"
    return f"−{text}" if share < 0 and float(text) else text


def _sets(attribute: str) -> str:
    return " and ".join(_plain(a) for a in attribute.split("+"))


def _plain(name: str) -> str:
    return name.replace("_", " ")
