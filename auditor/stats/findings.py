"""From counts to findings: what the audit says about rates and about hidden changes, and how surely."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from auditor.stats import directions as signed
from auditor.stats.arms import Compared, Placebos, compare, placebo_arm
from auditor.stats.claims import ALPHA, claim_verdict
from auditor.stats.multiplicity import holm
from auditor.stats.noise import PERMUTATIONS, Excess, between_within, hidden_by_chance
from auditor.stats.summary import (
    Counts,
    Direction,
    Edited,
    Key,
    Labels,
    Table,
    noise_of,
    percent,
    seed_violation_rate,
    tabulate,
    violation_rate,
    with_interval,
)
from auditor.types import ClaimVerdict, Estimate, Finding, Verdict

EXEMPLARS = 5
MAX_HIDDEN = 25  # hidden findings for each model, format and attribute set
ATOMIC, JOINT, HIDDEN = "MUT101", "MUT102", "HID201"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the findings depend on besides the verdicts.

    Attributes
    ----------
    deterministic : mapping of str to bool
        By model, as declared.
    labels : mapping of str to Labels
        By model: the labels of all replicates, of originals too. Needed for models that are not declared
        deterministic.
    delta : float or None
        The largest rate that the user calls negligible.
    positive_control : mapping of str to bool or None
        By model: whether a change that must show was seen. A model that is not named was not tried.
    confirmed : mapping
        (model, variant id, format) → whether a hidden change came again when its prompts were repeated.
    directed : container of str
        Ids of cases that may not enter a rate.
    placebos : sequence of Verdict
        Of placebo variants; ``attributes`` are those whose edits they copy.
    answers : mapping of str to Labels
        By model: as ``labels``, of every model. Needed for signed differences.
    outcomes : sequence of str
        The labels whose share is compared between groups.
    silent : mapping of str to Silent
        By model: the share of answers that were refused or unreadable.
    contrasts : mapping
        (model, variant id, format) → interaction contrast of a joint variant, where there are scores.
    seed : int
        Of the permutation tests.
    alpha : float
        Significance level for the family of all claims of the run.
    permutations : int
        For each test.
    """

    deterministic: Mapping[str, bool]
    labels: Mapping[str, Labels] = dataclasses.field(default_factory=dict)
    delta: float | None = None
    positive_control: Mapping[str, bool | None] = dataclasses.field(default_factory=dict)
    confirmed: Mapping[tuple[str, str, str], bool | None] = dataclasses.field(default_factory=dict)
    directed: Container[str] = frozenset()
    placebos: Sequence[Verdict] = ()
    answers: Mapping[str, Labels] = dataclasses.field(default_factory=dict)
    outcomes: Sequence[str] = ()
    silent: Mapping[str, signed.Silent] = dataclasses.field(default_factory=dict)
    contrasts: Mapping[tuple[str, str, str], float] = dataclasses.field(default_factory=dict)
    seed: int = 7
    alpha: float = ALPHA
    permutations: int = PERMUTATIONS


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
        *_hidden(kept, edits, settings, noise),
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
    tests = [_test(key, n, by_key[key], edits, settings) for n, key in enumerate(keys)]
    placebos = placebo_arm(v for v in settings.placebos if v.case_id not in settings.directed)
    tested = frozenset(name for key in keys for name in key.attributes)
    compared = [_compare(key, n, table, placebos, tested, settings) for n, key in enumerate(keys)]
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


class Measured(NamedTuple):
    """What one claim rests on."""

    cells: list[Counts]
    noise: Estimate | None
    test: Excess | None
    placebo: Compared | None


def _compare(
    key: Key,
    number: int,
    table: Mapping[Key, Mapping[str, Counts]],
    placebos: Placebos,
    tested: frozenset[str],
    settings: Settings,
) -> Compared | None:
    arms = placebos.get((key.model, key.format))
    if not arms or key not in table:
        return None
    return compare(
        table[key],
        arms,
        key.attributes,
        tested,
        rng=np.random.default_rng([settings.seed, 1, number]),
        level=1 - settings.alpha,
        resamples=settings.permutations,
    )


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
    key: Key, number: int, verdicts: Sequence[Verdict], edits: Mapping[str, Edited], settings: Settings
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
    rng = np.random.default_rng([settings.seed, number])
    return between_within(originals, changed, rng=rng, permutations=settings.permutations)


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
        notes=(*reasons, *_notes(key, known, rate), *_placebo_notes(known.placebo, upper, rate)),
    )


def _placebo_notes(placebo: Compared | None, upper: float | None, rate: Estimate | None) -> list[str]:
    notes = []
    if placebo is not None and placebo.rate is not None:
        notes.append(
            f"placebo edits, which change no group, changed the label in {with_interval(placebo.rate)} of "
            f"{placebo.rate.n_variants} variants of {placebo.rate.n} seeds"
        )
        over = placebo.over
        if over is not None:
            notes.append(
                f"excess over placebo: {100 * over.value:.1f} percentage points ({over.level * 100:.0f} %: "
                f"{100 * over.low:.1f} to {100 * over.high:.1f}; {over.n} seeds, p = {over.p_value:.2g} before "
                "correction)"
            )
    elif placebo is None and rate is not None:
        notes.append("without placebo edits: any other change of wording may change the label as often")
    if upper is not None:
        notes.append(f"the smallest delta this run could have bounded is {percent(upper)} %")
    return notes


def _notes(key: Key, known: Measured, rate: Estimate | None) -> list[str]:
    cells, test = known.cells, known.test
    notes = [rate.note] if rate is not None and rate.note else []
    if test is not None:
        notes.append(
            f"answers to changed and unchanged prompts differ by {percent(max(0.0, test.value))} percentage "
            f"points more than answers to one prompt ({test.n} seeds, permutation test)"
        )
    lost = sum(cell.lost for cell in cells)
    if lost:
        notes.append(f"{lost} variants were not judged (no majority, or too few answers that parse)")
    hidden = sum(cell.hidden for cell in cells)
    if len(key.attributes) > 1 and hidden:
        total = sum(cell.violations for cell in cells)
        notes.append(
            f"{hidden} of {total} changes are hidden: no smaller set of these attributes changed the label"
        )
    return notes


def clearest(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The violations, those with the largest distance first."""
    found = [v for v in verdicts if v.outcome == "violation"]
    return sorted(found, key=lambda v: (-(v.distance or 0.0), v.case_id, v.variant_id))


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
    base = f"{rate.n_variants} variants of {rate.n} seeds ({interval})"
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


# -- directions -----------------------------------------------------------------------------------------


def _directions_below(
    claims: Sequence[Finding], verdicts: Sequence[Verdict], edits: Mapping[str, Edited], settings: Settings
) -> list[Finding]:
    """Signed differences, only below claims that were shown."""
    if not settings.outcomes:
        return []
    opened = [(c.model, c.format, c.attributes) for c in claims if c.verdict == "shown"]
    judged = [
        v
        for v in verdicts
        if (v.model, v.format, v.attributes) in set(opened)
        and v.outcome in ("pass", "violation")
        and v.case_id not in settings.directed
    ]
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


# -- hidden ---------------------------------------------------------------------------------------------


def _hidden(
    verdicts: Sequence[Verdict],
    edits: Mapping[str, Edited],
    settings: Settings,
    noise: Mapping[str, Estimate | None],
) -> list[Finding]:
    by_key: dict[Key, list[Verdict]] = {}
    for v in verdicts:
        if v.hidden:
            by_key.setdefault(Key(v.model, v.format, v.attributes), []).append(v)
    out: list[Finding] = []
    for key in sorted(by_key, key=lambda k: (k.model, k.format, len(k.attributes), k.attributes)):
        ordered = clearest(by_key[key])
        rank = [_confirmation(v, settings)[0] != "shown" for v in ordered]
        chosen = [v for _, v in sorted(zip(rank, ordered, strict=True), key=lambda pair: pair[0])][
            :MAX_HIDDEN
        ]
        chance = _chance_note(key, settings, noise.get(key.model))
        for v in chosen:
            verdict, note = _confirmation(v, settings)
            out.append(
                Finding(
                    id="",
                    kind="hidden",
                    code=HIDDEN,
                    model=v.model,
                    format=v.format,
                    attributes=v.attributes,
                    directions=edits[v.variant_id].directions,
                    verdict=verdict,
                    noise=noise.get(v.model),
                    exemplars=(v.variant_id,),
                    text=hidden_text(v, edits[v.variant_id].directions),
                    notes=(note, *chance, *_contrast_note(v, settings)),
                )
            )
    return out


def _confirmation(verdict: Verdict, settings: Settings) -> tuple[ClaimVerdict, str]:
    if settings.deterministic.get(verdict.model, False):
        return "shown", "declared deterministic: repeatable as it stands"
    confirmed = settings.confirmed.get((verdict.model, verdict.variant_id, verdict.format))
    if confirmed is None:
        return "not_determined", "not yet confirmed by repeating its prompts"
    if confirmed:
        return "shown", "came again when its prompts were repeated"
    return "not_determined", "did not come again when its prompts were repeated"


def _chance_note(key: Key, settings: Settings, noise: Estimate | None) -> tuple[str, ...]:
    """How many joint variants would look hidden by noise alone; only stated for two attributes."""
    if noise is None or len(key.attributes) != 2:
        return ()
    labels = settings.labels.get(key.model, {})
    replicates = max((len(arm) for arms in labels.values() for arm in arms.values()), default=1)
    rate, _ = hidden_by_chance(noise.value, replicates)
    if rate <= 0.0:
        return ()
    return (f"at the measured noise, {percent(rate)} % of joint variants would look hidden by chance",)


def _contrast_note(verdict: Verdict, settings: Settings) -> tuple[str, ...]:
    """How far the joint effect on the score differs from the sum of the single ones."""
    value = settings.contrasts.get((verdict.model, verdict.variant_id, verdict.format))
    if value is None:
        return ()
    return (
        f"interaction contrast on the probability scale: {100 * value:+.1f} percentage points (joint effect "
        "minus the sum of the single ones; near 0 means that the effects add up and cross a threshold together)",
    )


def hidden_text(verdict: Verdict, directions: Sequence[Direction]) -> str:
    """What was measured for one hidden variant, in one sentence."""
    changes = " and ".join(f"{_plain(a)} ({_plain(s)} → {_plain(t)})" for a, s, t in directions)
    alone = "either was changed alone" if verdict.order == 2 else "fewer of them were changed"
    return (
        f"the label changed from {verdict.original_output} to {verdict.variant_output} when {changes} terms "
        f"were changed together; it stayed {verdict.original_output} when {alone}"
    )


def _directions(verdicts: Iterable[Verdict], edits: Mapping[str, Edited]) -> list[Direction]:
    return sorted({direction for v in verdicts for direction in edits[v.variant_id].directions})


def _plain(name: str) -> str:
    return name.replace("_", " ")


def as_records(found: Iterable[Finding]) -> list[dict[str, Any]]:
    """Findings as plain data for ``run.json``."""
    return [dataclasses.asdict(finding) for finding in found]
