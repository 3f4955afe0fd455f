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
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from auditor.core.counting import plural
from auditor.core.types import Finding
from auditor.measure import scores
from auditor.measure.intervals import mean_interval
from auditor.measure.multiplicity import resamples_for
from auditor.measure.paired import sign_flip
from auditor.measure.scores import ALPHA, EXEMPLARS, MIN_SEEDS, Arm, Difference, Place, amount, differences, finite
from auditor.measure.text_metrics import Metrics, Pair

PAIR = "GEN140"
SIGNED = {"refusal": "share of answers", "sentiment": "", "length": "words", "preference": ""}
UNSIGNED = ("wording", "meaning")
FULL = 49_999  # patterns at most: all tests are drawn in full here


@dataclass(frozen=True, kw_only=True, slots=True)
class Study:
    """Everything that was compared: the rows, decided as one family by `auditor.measure.scores.decide`."""

    signed: tuple[Difference, ...]
    unsigned: tuple[Difference, ...]


def study(metrics: Metrics, *, deterministic: Mapping[str, bool], seed: int = 7, resamples: int | None = None) -> Study:
    """All metrics of a run; p values are not yet adjusted.

    Parameters
    ----------
    metrics : Metrics
        Of the variants that count, and of placebos.
    deterministic : mapping of str to bool
        By model, as declared.
    seed : int
        Of the tests.
    resamples : int or None
        Patterns for each test, at least; None means as many as four directions need.
        More where the family is so large that they could show nothing.
    """
    # All rows of all models and formats are one family.
    ways = metrics.places()
    least = resamples_for(4 * len({way.directions for way in ways})) if resamples is None else resamples
    rows_in_all = len(SIGNED) * len(ways) + len(UNSIGNED) * len({way[:3] for way in ways})
    resamples = min(FULL, resamples_for(rows_in_all, least=least))
    signed: list[Difference] = []
    for number, (metric, unit) in enumerate(SIGNED.items()):
        rows, others = (list(metrics.of(metric, placebo=placebo)) for placebo in (False, True))
        if not rows or (all(a.value == 0 for a in rows) and metric == "refusal"):
            continue
        signed += differences(
            *([Arm(*pair[:4]) for pair in some] for some in (rows, others)),
            metric=metric,
            unit=unit,
            noise=_noise([*rows, *others]),
            rng=np.random.default_rng([seed, 10, number]),
            resamples=resamples,
        )
    unsigned: list[Difference] = []
    for number, metric in enumerate(UNSIGNED):
        unsigned += distances(
            metrics,
            metric=metric,
            deterministic=deterministic,
            rng=np.random.default_rng([seed, 11, number]),
            resamples=resamples,
        )
    return Study(signed=tuple(signed), unsigned=tuple(unsigned))


def _noise(rows: Iterable[Pair]) -> dict[str, float | None]:
    """By model the mean over texts and formats of how far two answers to one prompt lie apart."""
    found: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for pair in rows:
        if pair.spread is not None:
            found[pair.place.model][pair.case_id, pair.place.format].append(pair.spread)
    return {model: fmean(map(fmean, by_text.values())) for model, by_text in found.items()}


Pairs = Mapping[str, Sequence[Pair]]  # by text


def distances(
    metrics: Metrics,
    *,
    metric: str,
    deterministic: Mapping[str, bool],
    rng: np.random.Generator,
    resamples: int,
    level: float = 1 - ALPHA,
) -> list[Difference]:
    """Excess of an unsigned metric, one row for each model, format and attribute set.

    The mean is over texts, of all variants of the text. The test takes the first variant of each text, which
    the answers had no part in choosing, because dealing anew is exact for one pair of prompts. A claim needs
    more than noise and more than placebo edits do. Where a model is declared deterministic there is no noise to
    deal with, and the placebo edits alone decide.
    """
    found, beside = (_by_place(metrics.of(metric, placebo=placebo)) for placebo in (False, True))
    out = []
    for place in sorted(found):
        seeds = found[place]
        silent = deterministic.get(place.model, False)
        values = {case: _excess(given, silent) for case, given in seeds.items()}
        d = {case: value for case, value in sorted(values.items()) if value is not None}
        other = {
            case: value
            for case, given in sorted(beside.get(place, {}).items())
            if case in d and (value := _excess(given, silent)) is not None
        }
        if not d:
            out.append(_blank(place, metric, len(seeds), "not tested: the same prompt was not repeated"))
            continue
        row = _row(place, metric, d, seeds, level)
        if len(d) < MIN_SEEDS:
            note = f"not tested: {plural(len(d), 'seed')}, at least {MIN_SEEDS} are needed"
            out.append(replace(row, notes=(note,)))
            continue
        p_noise = None if silent else _dealt(seeds, d, rng=rng, resamples=resamples)
        out.append(_beside_placebo(row, d, other, p_noise, rng=rng, resamples=resamples))
    return out


def _by_place(rows: Iterable[Pair]) -> dict[Place, dict[str, list[Pair]]]:
    out: dict[Place, dict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for pair in rows:
        out[pair.place._replace(directions=())][pair.case_id].append(pair)
    return out


def _excess(given: Sequence[Pair], silent: bool) -> float | None:
    if silent:
        return fmean(m.value for m in given)
    found = [m.value - m.spread for m in given if m.spread is not None]
    return fmean(found) if found else None


def _dealt(seeds: Pairs, cases: Iterable[str], *, rng: np.random.Generator, resamples: int) -> float:
    """P value of the exchange test, one-sided, with the observed arrangement counted in."""
    ways = []
    for case in cases:
        chosen = next((m for m in sorted(seeds[case], key=lambda p: p.variant_id) if m.splits), None)
        if chosen is not None:
            ways.append(np.asarray(chosen.splits, dtype=float))
    observed = sum(float(w[0]) for w in ways)
    drawn = np.zeros(resamples)
    for w in ways:
        drawn += w[rng.integers(0, len(w), size=resamples)]
    return (1 + int(np.count_nonzero(drawn >= observed - 1e-9))) / (1 + resamples)


def _row(place: Place, metric: str, d: Mapping[str, float], seeds: Pairs, level: float) -> Difference:
    value, low, high = mean_interval(list(d.values()), level)
    every = [pair for case in d for pair in seeds[case]]
    own = [fmean(found) for case in d if (found := [m.spread for m in seeds[case] if m.spread is not None])]
    clearest = sorted(every, key=lambda p: (-p.value, p.variant_id))
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
        exemplars=tuple(pair.variant_id for pair in clearest[:EXEMPLARS]),
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
