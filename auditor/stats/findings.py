"""From counts to findings: what the audit says about rates and about hidden changes, and how surely."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from auditor.stats import directions as signed
from auditor.stats.arms import Compared, Placebos, compare, placebo_arm
from auditor.stats.claim_words import Measured, claim_notes, claim_text, placebo_notes
from auditor.stats.claim_words import hidden_text as hidden_text
from auditor.stats.claims import claim_verdict
from auditor.stats.hidden_findings import clearest, hidden_findings
from auditor.stats.multiplicity import holm, resamples_for, too_coarse
from auditor.stats.noise import Excess, between_within
from auditor.stats.settings import Settings as Settings
from auditor.stats.summary import (
    Counts,
    Direction,
    Edited,
    Key,
    Table,
    noise_of,
    seed_violation_rate,
    tabulate,
    violation_rate,
)
from auditor.types import Estimate, Finding, Verdict

EXEMPLARS = 5
ATOMIC, JOINT = "MUT101", "MUT102"


def findings(
    verdicts: Iterable[Verdict],
    edits: Mapping[str, Edited],
    settings: Settings,
    *,
    table: Table | None = None,
) -> list[Finding]:
    """All findings of a run: one claim for each model, format and attribute set; directions; hidden variants.

    The p values of all claims are one family (Holm). Claims with code MUT101 are about one attribute, MUT102
    about several; DIR110 is a direction below a claim that was shown, REF120 one in which more answers were
    refused or unreadable; HID201 is a single hidden variant. docs/decisions/0004-claims.md has the rules.

    Parameters
    ----------
    verdicts : iterable of Verdict
        With model, format and ``hidden`` filled in.
    edits : mapping of str to Edited
        Directions and kinds by variant id.
    settings : Settings
        Everything else.
    table : Table or None
        What `tabulate` makes of the verdicts, directed cases left out; made here if None.
    """
    kept = verdicts if isinstance(verdicts, list) else list(verdicts)
    if table is None:
        table = tabulate(kept, edits, directed=settings.directed)
    noise = {model: noise_of(labels) for model, labels in sorted(settings.labels.items())}
    claims = _claims(kept, edits, settings, noise, table)
    found = [
        *claims,
        *_directions_below(claims, kept, edits, settings),
        *_silences(kept, edits, settings),
        *hidden_findings(kept, edits, settings, noise),
    ]
    return [dataclasses.replace(finding, id=f"F{n:03d}") for n, finding in enumerate(found, 1)]


# -- claims ---------------------------------------------------------------------------------------------


def _claims(
    verdicts: Sequence[Verdict],
    edits: Mapping[str, Edited],
    settings: Settings,
    noise: Mapping[str, Estimate | None],
    table: Table,
) -> list[Finding]:
    by_key: dict[Key, list[Verdict]] = {}
    for v in verdicts:
        by_key.setdefault(Key(v.model, v.format, v.attributes), []).append(v)
    keys = sorted(by_key, key=lambda k: (k.model, k.format, len(k.attributes), k.attributes))
    wanted = resamples_for(len(keys), least=settings.permutations)
    tests = [_test(key, n, by_key[key], edits, settings, wanted) for n, key in enumerate(keys)]
    placebos = placebo_arm(v for v in settings.placebos if v.case_id not in settings.directed)
    tested = frozenset(name for key in keys for name in key.attributes)
    compared = [_compare(key, n, table, placebos, tested, settings, wanted) for n, key in enumerate(keys)]
    noise_p = [None if test is None else test.p_value for test in tests]
    both_p = [
        _both(key, test, other, settings) for key, test, other in zip(keys, tests, compared, strict=True)
    ]
    out = []
    for key, test, other, raw, p_noise, p_adjusted in zip(
        keys, tests, compared, both_p, holm(noise_p), holm(both_p), strict=True
    ):
        if key in table:
            p_values = PValues(raw, p_noise, p_adjusted)
            known = Measured(list(table[key].values()), noise.get(key.model), test, other)
            out.append(_claim(key, by_key[key], edits, settings, known, p_values))
    return out


class PValues(NamedTuple):
    """Of one claim: raw, adjusted against noise alone, adjusted against everything."""

    raw: float | None
    noise: float | None
    adjusted: float | None


def _compare(
    key: Key,
    number: int,
    table: Mapping[Key, Mapping[str, Counts]],
    placebos: Placebos,
    tested: frozenset[str],
    settings: Settings,
    wanted: int,
) -> Compared | None:
    arms = placebos.get((key.model, key.format))
    if not arms or key not in table:
        return None

    def made(resamples: int, *more: int) -> Compared:
        rng = np.random.default_rng([settings.seed, 1, number, *more])
        level = 1 - settings.alpha
        return compare(table[key], arms, key.attributes, tested, rng=rng, level=level, resamples=resamples)

    found = made(settings.permutations)
    p_value = None if found.over is None else found.over.p_value
    return made(wanted, 1) if too_coarse(p_value, settings.permutations, wanted) else found


def _both(key: Key, test: Excess | None, other: Compared | None, settings: Settings) -> float | None:
    """The larger p value of the two comparisons: a claim needs both."""
    deterministic = settings.deterministic.get(key.model, False)
    if test is None and not deterministic:
        return None
    given = [] if test is None else [test.p_value]
    if other is not None and other.over is not None:
        given.append(other.over.p_value)
    return max(given, default=None)


def _test(
    key: Key,
    number: int,
    verdicts: Sequence[Verdict],
    edits: Mapping[str, Edited],
    settings: Settings,
    wanted: int,
) -> Excess | None:
    """Changes against the model's own noise; None if declared deterministic or nothing was repeated."""
    labels = settings.labels.get(key.model)
    if settings.deterministic.get(key.model, False) or not labels:
        return None
    variants: dict[str, list[str]] = {}
    for v in verdicts:
        if v.outcome != "skipped" and v.case_id not in settings.directed:
            variants.setdefault(v.case_id, []).append(v.variant_id)
    originals, changed = [], []
    for case_id in sorted(variants):
        arms = labels.get((case_id, key.format), {})
        original: Sequence[Hashable] = next((arm for name, arm in arms.items() if name not in edits), ())
        originals.append(original)
        changed.append([arms.get(variant_id, ()) for variant_id in sorted(variants[case_id])])

    def made(permutations: int, *more: int) -> Excess | None:
        rng = np.random.default_rng([settings.seed, number, *more])
        return between_within(originals, changed, rng=rng, permutations=permutations)

    found = made(settings.permutations)
    p_value = None if found is None else found.p_value
    return made(wanted, 0, 2) if too_coarse(p_value, settings.permutations, wanted) else found


def _claim(
    key: Key,
    verdicts: Sequence[Verdict],
    edits: Mapping[str, Edited],
    settings: Settings,
    known: Measured,
    p: PValues,
) -> Finding:
    cells, noise = known.cells, known.noise
    deterministic = settings.deterministic.get(key.model, False)
    rate, seeds = violation_rate(cells), seed_violation_rate(cells)
    over = None if known.placebo is None else known.placebo.over
    bound = violation_rate(cells, level=1 - 2 * settings.alpha)
    upper = None if bound is None else bound.high if over is None else over.upper
    verdict, reasons = claim_verdict(
        seeds=0 if rate is None else rate.n,
        discordant=sum(cell.violations > 0 for cell in cells),
        deterministic=deterministic,
        p_adjusted=p.adjusted,
        upper=upper,
        delta=settings.delta,
        positive_control=settings.positive_control.get(key.model),
        placebo=over,
        placebo_seeds=None if known.placebo is None else known.placebo.seeds,
        p_noise=p.noise,
        alpha=settings.alpha,
    )
    return Finding(
        id="",
        kind="claim",
        code=ATOMIC if len(key.attributes) == 1 else JOINT,
        model=key.model,
        format=key.format,
        attributes=key.attributes,
        verdict=verdict,
        rate=rate,
        noise=noise,
        p_value=p.raw,
        p_adjusted=p.adjusted,
        exemplars=tuple(v.variant_id for v in clearest(verdicts)[:EXEMPLARS]),
        text=claim_text(key.attributes, _directions(verdicts, edits), rate, seeds, deterministic, noise),
        notes=(*reasons, *claim_notes(key, known, rate), *placebo_notes(known.placebo, upper, rate)),
    )


# -- directions -----------------------------------------------------------------------------------------


def _directions_below(
    claims: Sequence[Finding], verdicts: Sequence[Verdict], edits: Mapping[str, Edited], settings: Settings
) -> list[Finding]:
    """Signed differences, only below claims that were shown."""
    if not settings.outcomes:
        return []
    opened = [(c.model, c.format, c.attributes) for c in claims if c.verdict == "shown"]
    wanted = set(opened)
    judged = [
        v
        for v in verdicts
        if (v.model, v.format, v.attributes) in wanted
        and v.outcome in ("pass", "violation")
        and v.case_id not in settings.directed
    ]
    places = Counter(
        place[:3]
        for place in {(v.model, v.format, v.attributes, edits[v.variant_id].directions) for v in judged}
    )
    # Within a family q values are multiplied by claims / opened families on top.
    family = len(settings.outcomes) * max(places.values(), default=0) * len(claims) / max(1, len(opened))
    tests = [
        test
        for number, label in enumerate(settings.outcomes)
        for test in signed.label_tests(
            judged,
            edits,
            settings.answers,
            label,
            rng=np.random.default_rng([settings.seed, 2, number]),
            resamples=settings.permutations,
            family=family,
        )
    ]
    families = [[t for t in tests if t.place[:3] == key] for key in opened]
    return signed.direction_findings(
        families,
        len(claims),
        alpha=settings.alpha,
        delta=settings.delta,
        positive_control=settings.positive_control,
    )


def _silences(verdicts: Sequence[Verdict], edits: Mapping[str, Edited], settings: Settings) -> list[Finding]:
    tests = signed.silence_tests(
        [v for v in verdicts if v.case_id not in settings.directed],
        edits,
        settings.silent,
        rng=np.random.default_rng([settings.seed, 3]),
        resamples=settings.permutations,
    )
    return signed.silence_findings(tests, alpha=settings.alpha)


def _directions(verdicts: Iterable[Verdict], edits: Mapping[str, Edited]) -> list[Direction]:
    return sorted({direction for v in verdicts for direction in edits[v.variant_id].directions})


def as_records(found: Iterable[Finding]) -> list[dict[str, Any]]:
    """Findings as plain data for ``run.json``."""
    return [dataclasses.asdict(finding) for finding in found]
