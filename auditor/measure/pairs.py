"""Paired metrics of free text against the model's own noise.

*Signed* metrics (refusals, sentiment, length, a judge's preference) are differences of two numbers and go by
direction through `auditor.measure.scores`. *Unsigned* ones (wording, meaning) are distances: two answers to one
prompt differ too, so what counts is the excess, the distance between the answers to two prompts less that
between two answers to one of them.

A distance less another is not symmetric about 0, so signs may not be flipped there. What holds exactly under
"the edit makes no difference" is that the answers to both prompts come from one distribution: the test deals
them anew to the two prompts of each seed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import fmean

import numpy as np

from auditor.core.counting import plural
from auditor.core.types import Finding, Verdict
from auditor.measure import scores
from auditor.measure.intervals import mean_interval
from auditor.measure.multiplicity import resamples_for
from auditor.measure.paired import sign_flip
from auditor.measure.scores import (
    ALPHA,
    EXEMPLARS,
    MIN_SEEDS,
    Arm,
    Difference,
    Direction,
    Place,
    amount,
    differences,
    finite,
)

PAIR = "GEN140"
SIGNED = {"refusal": "share of answers", "sentiment": "", "length": "words", "preference": ""}
UNSIGNED = ("wording", "meaning")
FULL = 49_999  # patterns at most: all tests are drawn in full here


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The metrics of one variant against its original; a metric that could not be measured is missing.

    Attributes
    ----------
    signed : mapping of str to (float, float)
        Metric → mean of the original's answers, mean of the variant's.
    noise : mapping of str to float
        Signed metric → mean absolute difference of two answers to one prompt.
    between, within, largest : mapping of str to float
        Unsigned metric → mean distance between the sides, mean distance inside them, and the largest one inside.
    splits : mapping of str to tuple of float
        Unsigned metric → the excess for every way to deal the answers to the two prompts, the real one first.
    """

    signed: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)
    between: Mapping[str, float] = field(default_factory=dict)
    within: Mapping[str, float] = field(default_factory=dict)
    splits: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)


def splits(matrix: Sequence[Sequence[float]], n: int) -> tuple[float, ...]:
    """Excess of between over within for every way to call ``n`` of the answers the original's.

    Parameters
    ----------
    matrix : square, shape (answers, answers)
        Distances; the original's ``n`` answers come first.
    n : int
        At least 1, fewer than all; one side has two answers or more.

    Returns
    -------
    tuple of float
        The observed excess first.

    Examples
    --------
    >>> splits([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]], 2)
    (1.0, -0.5, -0.5, -0.5, -0.5, 1.0)
    """
    every = range(len(matrix))
    out = []
    for chosen in combinations(every, n):
        rest = [i for i in every if i not in chosen]
        between = fmean(matrix[i][j] for i in chosen for j in rest)
        own = [
            fmean(matrix[i][j] for i, j in combinations(part, 2)) for part in (chosen, rest) if len(part) > 1
        ]
        out.append(between - fmean(own))
    return tuple(out)


Table = Mapping[str, Mapping[tuple[str, str], Mapping[str, Measured]]]  # model -> (case, format) -> variant


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """Everything that was compared: the rows, decided as one family by `auditor.measure.scores.decide`."""

    signed: tuple[Difference, ...]
    unsigned: tuple[Difference, ...]


def study(
    verdicts: Sequence[Verdict],
    placebos: Sequence[Verdict],
    edits: Mapping[str, tuple[Direction, ...]],
    measured: Table,
    *,
    deterministic: Mapping[str, bool],
    preferences: Mapping[str, Mapping[tuple[str, str], Mapping[str, float]]] | None = None,
    seed: int = 7,
    resamples: int = 1999,
) -> Study:
    """All metrics of a run; p values are not yet adjusted.

    Parameters
    ----------
    verdicts, placebos : sequence of Verdict
        Which variants count; outcomes do not matter.
    edits : mapping of str to tuple
        Variant id → the directions of its edits.
    measured : mapping
        Model → (case, format) → variant → metrics.
    deterministic : mapping of str to bool
        By model, as declared.
    preferences : mapping, optional
        As ``measured``: a judge's preference in [-1, 1]; above 0 the variant's answer was preferred.
    seed : int
        Of the tests.
    resamples : int
        Patterns for each test, at least; more where the family is so large that they could show nothing.
    """
    # All rows of all models and formats are one family.
    ways = {(v.model, v.format, v.attributes, edits[v.variant_id]) for v in verdicts}
    rows_in_all = len(SIGNED) * len(ways) + len(UNSIGNED) * len({way[:3] for way in ways})
    resamples = min(FULL, resamples_for(rows_in_all, least=resamples))
    signed: list[Difference] = []
    for number, (metric, unit) in enumerate(SIGNED.items()):
        rows, others = (
            [
                arm
                for v in group
                if (arm := _signed_arm(v, edits, measured, metric, preferences or {})) is not None
            ]
            for group in (verdicts, placebos)
        )
        if not rows or (all(a.value == 0 for a in rows) and metric == "refusal"):
            continue
        signed += differences(
            rows,
            others,
            metric=metric,
            unit=unit,
            noise=_signed_noise(measured, metric),
            rng=np.random.default_rng([seed, 10, number]),
            resamples=resamples,
        )
    unsigned: list[Difference] = []
    for number, metric in enumerate(UNSIGNED):
        unsigned += distances(
            verdicts,
            placebos,
            measured,
            metric=metric,
            deterministic=deterministic,
            rng=np.random.default_rng([seed, 11, number]),
            resamples=resamples,
        )
    return Study(signed=tuple(signed), unsigned=tuple(unsigned))


def _signed_arm(
    v: Verdict,
    edits: Mapping[str, tuple[Direction, ...]],
    measured: Table,
    metric: str,
    preferences: Mapping[str, Mapping[tuple[str, str], Mapping[str, float]]],
) -> Arm | None:
    key = (v.case_id, v.format)
    place = Place(v.model, v.format, v.attributes, edits[v.variant_id])
    if metric == "preference":
        value = preferences.get(v.model, {}).get(key, {}).get(v.variant_id)
        return None if value is None else Arm(place, v.case_id, v.variant_id, value)
    found = measured.get(v.model, {}).get(key, {}).get(v.variant_id)
    if found is None or metric not in found.signed:
        return None
    before, after = found.signed[metric]
    return Arm(place, v.case_id, v.variant_id, after - before)


def _signed_noise(measured: Table, metric: str) -> dict[str, float | None]:
    out: dict[str, float | None] = {}
    for model, by_case in measured.items():
        means = [
            fmean(found)
            for given in by_case.values()
            if (found := [m.noise[metric] for m in given.values() if metric in m.noise])
        ]
        out[model] = fmean(means) if means else None
    return out


def distances(
    verdicts: Iterable[Verdict],
    placebos: Iterable[Verdict],
    measured: Table,
    *,
    metric: str,
    deterministic: Mapping[str, bool],
    rng: np.random.Generator,
    resamples: int,
    level: float = 1 - ALPHA,
) -> list[Difference]:
    """Excess of an unsigned metric, one row for each model, format and attribute set.

    The mean is over seeds, of all variants of the seed. The test takes the first variant of each seed, which
    the answers had no part in choosing, because dealing anew is exact for one pair of prompts. A claim needs
    more than noise and more than placebo edits do. Where a model is declared deterministic there is no noise to
    deal with, and the placebo edits alone decide.
    """
    found = _by_place(verdicts, measured, metric)
    beside = _by_place(placebos, measured, metric)
    out = []
    for place in sorted(found):
        seeds = found[place]
        silent = deterministic.get(place.model, False)
        values = {case: _excess([m for _, m in given], metric, silent) for case, given in seeds.items()}
        d = {case: value for case, value in sorted(values.items()) if value is not None}
        other = {
            case: value
            for case, given in sorted(beside.get(place, {}).items())
            if case in d and (value := _excess([m for _, m in given], metric, silent)) is not None
        }
        if not d:
            out.append(_blank(place, metric, len(seeds), "not tested: the same prompt was not repeated"))
            continue
        row = _row(place, metric, d, seeds, level)
        if len(d) < MIN_SEEDS:
            note = f"not tested: {plural(len(d), 'seed')}, at least {MIN_SEEDS} are needed"
            out.append(replace(row, notes=(note,)))
            continue
        p_noise = None if silent else _dealt(seeds, d, metric, rng=rng, resamples=resamples)
        out.append(_beside_placebo(row, d, other, p_noise, rng=rng, resamples=resamples))
    return out


def _by_place(
    verdicts: Iterable[Verdict], measured: Table, metric: str
) -> dict[Place, dict[str, list[tuple[str, Measured]]]]:
    out: dict[Place, dict[str, list[tuple[str, Measured]]]] = defaultdict(lambda: defaultdict(list))
    for v in verdicts:
        found = measured.get(v.model, {}).get((v.case_id, v.format), {}).get(v.variant_id)
        if found is not None and metric in found.between:
            out[Place(v.model, v.format, v.attributes)][v.case_id].append((v.variant_id, found))
    return out


def _excess(given: Sequence[Measured], metric: str, silent: bool) -> float | None:
    if silent:
        return fmean(m.between[metric] for m in given)
    found = [m.between[metric] - m.within[metric] for m in given if metric in m.within]
    return fmean(found) if found else None


def _dealt(
    seeds: Mapping[str, Sequence[tuple[str, Measured]]],
    cases: Iterable[str],
    metric: str,
    *,
    rng: np.random.Generator,
    resamples: int,
) -> float:
    """P value of the exchange test, one-sided, with the observed arrangement counted in."""
    ways = []
    for case in cases:
        chosen = next((m for _, m in sorted(seeds[case], key=lambda p: p[0]) if metric in m.splits), None)
        if chosen is not None:
            ways.append(np.asarray(chosen.splits[metric], dtype=float))
    observed = sum(float(w[0]) for w in ways)
    drawn = np.zeros(resamples)
    for w in ways:
        drawn += w[rng.integers(0, len(w), size=resamples)]
    return (1 + int(np.count_nonzero(drawn >= observed - 1e-9))) / (1 + resamples)


def _row(
    place: Place,
    metric: str,
    d: Mapping[str, float],
    seeds: Mapping[str, Sequence[tuple[str, Measured]]],
    level: float,
) -> Difference:
    value, low, high = mean_interval(list(d.values()), level)
    every = [pair for case in d for pair in seeds[case]]
    own = [
        fmean(found)
        for case in d
        if (found := [m.within[metric] for _, m in seeds[case] if metric in m.within])
    ]
    clearest = sorted(every, key=lambda p: (-p[1].between[metric], p[0]))
    return Difference(
        place=place,
        metric=metric,
        unit="",
        value=value,
        low=finite(low),
        high=finite(high),
        level=level,
        n=len(d),
        n_variants=len(every),
        discordant=sum(abs(x) > 1e-12 for x in d.values()),
        noise=fmean(own) if own else None,
        exemplars=tuple(variant_id for variant_id, _ in clearest[:EXEMPLARS]),
    )


def _beside_placebo(
    row: Difference,
    d: Mapping[str, float],
    other: Mapping[str, float],
    p_noise: float | None,
    *,
    rng: np.random.Generator,
    resamples: int,
) -> Difference:
    if len(other) < MIN_SEEDS:
        if p_noise is None:
            note = "not tested: the model is declared deterministic and there are too few placebo edits to compare with"
            return replace(row, notes=(note,))
        note = "without placebo edits: any other change of wording may change the answers as much"
        return replace(row, p_sign=p_noise, p_value=p_noise, notes=(note,))
    excess = [d[case] - other[case] for case in other]
    p_placebo = sign_flip(excess, rng=rng, alternative="greater", resamples=resamples)
    return replace(
        row,
        placebo=fmean(other.values()),
        excess=fmean(excess),
        n_placebo=len(excess),
        p_sign=p_noise,
        p_placebo=p_placebo,
        p_value=p_placebo if p_noise is None else max(p_noise, p_placebo),
    )


def _blank(place: Place, metric: str, seeds: int, note: str) -> Difference:
    return Difference(
        place=place,
        metric=metric,
        unit="",
        value=0.0,
        low=None,
        high=None,
        level=1 - ALPHA,
        n=0,
        n_variants=0,
        discordant=0,
        notes=(f"{note} ({plural(seeds, 'seed')})",),
    )


def findings(found: Iterable[Difference]) -> list[Finding]:
    """Claims in words: each tested row of an attribute set, and the directions that were shown."""
    out = []
    for d in found:
        if d.verdict == "shown" or (not d.place.directions and d.p_value is not None):
            out.append(replace(scores.finding(d, PAIR), text=text_of(d)))
    return out


def text_of(d: Difference) -> str:
    """What was measured, in one sentence; no judgement."""
    if d.metric in UNSIGNED:
        names = " and ".join(a.replace("_", " ") for a in d.place.attributes)
        what = "wording (1 − ROUGE-L)" if d.metric == "wording" else "meaning (1 − cosine of embeddings)"
        return (
            f"answers differed in {what} by {amount(d.value)} more than answers to one prompt do, when {names} terms "
            f"were changed; the changed words themselves are masked ({scores.span(d)}; {plural(d.n, 'seed')})"
        )
    if d.metric == "refusal":
        more = "fewer" if d.value < 0 else "more"
        return (
            f"texts about {scores.side(d, 2, short=True)} were refused in {100 * abs(d.value):.1f} percentage points "
            f"{more} of the answers than the same texts about {scores.side(d, 1, short=True)} ({plural(d.n, 'seed')})"
        )
    if d.metric == "preference":
        less = "less" if d.value < 0 else "more"
        return (
            f"the judge preferred answers about {scores.side(d, 2, short=True)} {less} often than those about "
            f"{scores.side(d, 1, short=True)}, by {amount(abs(d.value))} on a scale from −1 to 1 ({scores.span(d)}; "
            f"{plural(d.n, 'seed')})"
        )
    return scores.text_of(d)
