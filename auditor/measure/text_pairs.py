"""Free text in pairs: the answers for a variant beside those for its original, and the model's own noise.

*Signed* metrics (refusals, sentiment, length, a judge's preference) are differences of two numbers and go by direction
(source group → target group). Texts are chosen before anything is answered, so under "the group makes no difference"
the difference of a text is as often above 0 as below, whatever the noise of the model: a sign-flip test needs no
measured noise, and the interval is by text.

*Unsigned* ones (wording, meaning) are distances: two answers to one prompt differ too, so what counts is the distance
between the answers to two prompts less that between two answers to one of them. That is not symmetric about 0, so
signs may not be flipped. What holds exactly under "the edit makes no difference" is that the answers to both prompts
come from one distribution: the test deals them anew to the two prompts of each text.

A claim needs more than placebo edits of the same texts do, too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from auditor.core.record.measured import Difference
from auditor.core.shown import plural
from auditor.core.types import ClaimVerdict, Finding
from auditor.measure.claims import MIN_TEXTS
from auditor.measure.intervals import Alternative, holm, mean_interval, resamples_for, sign_flip
from auditor.measure.observations import Arm, Direction, Observations

ALPHA = 0.05
EXEMPLARS = 5
PAIR = "GEN140"
SIGNED = {"refusal": "share of answers", "sentiment": "", "length": "words", "preference": ""}
UNSIGNED = ("wording", "meaning")
FULL = 49_999  # patterns at most: all tests are drawn in full here


class About(NamedTuple):
    """What one difference is about; ``directions`` is empty where all of an attribute set are taken."""

    model: str
    format: str
    attributes: tuple[str, ...]
    directions: tuple[Direction, ...] = ()

    @property
    def undirected(self) -> About:
        """All directions of the attribute set."""
        return self._replace(directions=())


class Pair(NamedTuple):
    """One metric of one version against its original.

    ``value`` is a difference or a distance, ``spread`` the same of two answers to one prompt; ``splits`` are as
    `splits` has them.
    """

    about: About
    case_id: str
    variant_id: str
    value: float
    spread: float | None = None
    splits: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The metrics of one variant against its original; a metric that could not be measured is missing."""

    signed: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)
    between: Mapping[str, float] = field(default_factory=dict)
    within: Mapping[str, float] = field(default_factory=dict)
    splits: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)


def splits(matrix: Sequence[Sequence[float]], n: int) -> tuple[float, ...]:
    """Excess of between over within for every way to call ``n`` of the answers the original's, the real one first.

    ``matrix`` holds distances, the original's ``n`` answers first; one side has two answers or more.
    """
    every = range(len(matrix))
    out = []
    for chosen in combinations(every, n):
        rest = [i for i in every if i not in chosen]
        between = fmean(matrix[i][j] for i in chosen for j in rest)
        own = [fmean(matrix[i][j] for i, j in combinations(part, 2)) for part in (chosen, rest) if len(part) > 1]
        out.append(between - fmean(own))
    return tuple(out)


class Metrics:
    """The metrics of the versions of ``table``, each against its original."""

    def __init__(self, table: Observations) -> None:
        self.table = table
        self._pairs: dict[tuple[str, Arm], list[Pair]] = defaultdict(list)

    def add(self, version: int, model: str, format: str, measured: Measured) -> None:
        """Add the metrics of a version against its original."""
        for metric, (before, after) in measured.signed.items():
            self._put(version, model, format, metric, after - before, measured.noise.get(metric))
        for metric, between in measured.between.items():
            splits = measured.splits.get(metric, ())
            self._put(version, model, format, metric, between, measured.within.get(metric), splits)

    def prefer(self, version: int, model: str, format: str, value: float) -> None:
        """Add a judge's preference in [-1, 1]: above 0 the answer to the version was preferred."""
        self._put(version, model, format, "preference", value)

    def _put(self, version: int, model: str, format: str, metric: str, *measured: Any) -> None:
        text, shape = self.table.version_of(version)
        about = About(model, format, shape.attributes, shape.directions)
        self._pairs[metric, shape.arm].append(Pair(about, text, self.table.name(version), *measured))

    def of(self, metric: str, *, placebo: bool = False) -> list[Pair]:
        """The pairs of one metric, of edited versions or of placebos."""
        return self._pairs[metric, Arm.PLACEBO if placebo else Arm.EDITED]

    def places(self) -> set[About]:
        """What edited versions were measured on."""
        return {pair.about for (_, arm), pairs in self._pairs.items() if arm == Arm.EDITED for pair in pairs}


# -- the study --------------------------------------------------------------------------------------------------------


ByText = Mapping[str, Sequence[Pair]]


def study(
    metrics: Metrics, *, deterministic: Mapping[str, bool], seed: int = 7, resamples: int | None = None
) -> list[Difference]:
    """All metrics of a run, distances first: one family, whose p values `decide` adjusts."""
    ways = metrics.places()
    least = resamples_for(4 * len({way.directions for way in ways})) if resamples is None else resamples
    rows_in_all = len(SIGNED) * len(ways) + len(UNSIGNED) * len({way[:3] for way in ways})
    resamples = min(FULL, resamples_for(rows_in_all, least=least))
    silent = {model for model, declared in deterministic.items() if declared}
    out: list[Difference] = []
    for kind, names in ((11, UNSIGNED), (10, tuple(SIGNED))):
        for number, metric in enumerate(names):
            rows, others = (metrics.of(metric, placebo=placebo) for placebo in (False, True))
            if not rows or (metric == "refusal" and all(pair.value == 0 for pair in rows)):
                continue
            rng = np.random.default_rng([seed, kind, number])
            out += differences(rows, others, metric=metric, silent=silent, rng=rng, resamples=resamples)
    return out


def differences(
    pairs: Sequence[Pair],
    placebos: Sequence[Pair],
    *,
    metric: str,
    rng: np.random.Generator,
    resamples: int,
    silent: Collection[str] = (),
) -> list[Difference]:
    """One mean difference for each direction, or distance for each attribute set, sorted; p values not yet adjusted.

    Variants with several source groups of one attribute have no one direction and are left out of signed metrics. The
    mean is over texts, of all variants of the text. With fewer than `MIN_TEXTS` texts it is described and not tested.
    ``silent`` are models declared deterministic: there is no noise in a distance, and placebo edits alone decide.
    """
    distance = metric in UNSIGNED
    rows: dict[About, dict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    beside: dict[About, dict[str, list[Pair]]] = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        if distance:
            rows[pair.about.undirected][pair.case_id].append(pair)
        elif len(pair.about.directions) == len(pair.about.attributes):
            rows[pair.about][pair.case_id].append(pair)
    for pair in placebos:
        beside[pair.about.undirected][pair.case_id].append(pair)
    noise = {} if distance else _noise((*pairs, *placebos))
    out = []
    for about, texts in sorted(rows.items()):
        beyond_noise = distance and about.model not in silent
        d = _means(texts, beyond_noise)
        unit = SIGNED.get(metric, "")
        blank = Difference(**about._asdict(), metric=metric, unit=unit, noise=noise.get(about.model))
        if not d:
            note = f"not tested: the same prompt was not repeated ({plural(len(texts), 'seed')})"
            out.append(replace(blank, notes=(note,)))
            continue
        row = _row(blank, d, texts)
        if len(d) < MIN_TEXTS:
            few = plural(len(d), "seed" if distance else "text")
            out.append(replace(row, notes=(f"not tested: {few}, at least {MIN_TEXTS} are needed",)))
            continue
        p_own: float | None = None
        if not distance:
            p_own = sign_flip(list(d.values()), rng=rng, resamples=resamples)
        elif beyond_noise:
            p_own = _dealt(texts, d, rng=rng, resamples=resamples)
        other = {case: v for case, v in _means(beside.get(about.undirected, {}), beyond_noise).items() if case in d}
        row = replace(row, p_sign=p_own, p_value=p_own)
        if len(other) < MIN_TEXTS:
            moved = "change" if distance else "move"
            note = f"without placebo edits: any other change of wording may {moved} the answers as much"
            if p_own is None:
                why = "the model is declared deterministic and there are too few placebo edits to compare with"
                note = f"not tested: {why}"
            out.append(replace(row, notes=(note,)))
            continue
        excess = [d[case] - other[case] for case in other]
        sides: Alternative = "greater" if distance else "two-sided"
        p_placebo = sign_flip(excess, rng=rng, alternative=sides, resamples=resamples)
        row = replace(
            row, placebo=fmean(other.values()), excess=fmean(excess), n_placebo=len(excess), p_placebo=p_placebo
        )
        out.append(replace(row, p_value=p_placebo if p_own is None else max(p_own, p_placebo)))
    return out


def _noise(pairs: Iterable[Pair]) -> dict[str, float]:
    """By model the mean over texts and formats of how far two answers to one prompt lie apart."""
    spreads: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        if pair.spread is not None:
            spreads[pair.about.model][pair.case_id, pair.about.format].append(pair.spread)
    return {model: fmean(map(fmean, by_text.values())) for model, by_text in spreads.items()}


def _means(texts: ByText, beyond_noise: bool) -> dict[str, float]:
    """By text the mean over its variants, if wanted less the spread of answers to one prompt, where that is known."""
    values = {
        case: [p.value - (p.spread or 0.0) for p in own if p.spread is not None]
        if beyond_noise
        else [p.value for p in own]
        for case, own in sorted(texts.items())
    }
    return {case: fmean(own) for case, own in values.items() if own}


def _row(blank: Difference, d: Mapping[str, float], texts: ByText) -> Difference:
    """The figures, and the clearest variants: of signed metrics those in the direction of the mean."""
    distance = blank.metric in UNSIGNED
    value, low, high = mean_interval(list(d.values()), blank.level)
    every = [pair for case in d for pair in texts[case]]
    sign = 1.0 if distance or fmean(d.values()) >= 0 else -1.0
    clearest = sorted(every, key=lambda p: (-sign * p.value, p.variant_id))[:EXEMPLARS]
    spreads = [fmean(own) for case in d if (own := [p.spread for p in texts[case] if p.spread is not None])]
    return replace(
        blank,
        value=value,
        low=low if math.isfinite(low) else None,
        high=high if math.isfinite(high) else None,
        n=len(d),
        n_variants=len(every),
        discordant=sum(abs(x) > 1e-12 for x in d.values()),
        noise=blank.noise if not distance else fmean(spreads) if spreads else None,
        exemplars=tuple(pair.variant_id for pair in clearest if distance or sign * pair.value > 0),
    )


def _dealt(texts: ByText, cases: Iterable[str], *, rng: np.random.Generator, resamples: int) -> float:
    """P value of the exchange test, one-sided, with the observed arrangement counted in.

    It takes the first variant of each text, which the answers had no part in choosing, because dealing anew is exact
    for one pair of prompts.
    """
    ways = []
    for case in cases:
        chosen = next((p for p in sorted(texts[case], key=lambda p: p.variant_id) if p.splits), None)
        if chosen is not None:
            ways.append(np.asarray(chosen.splits, dtype=float))
    observed = sum(float(w[0]) for w in ways)
    drawn = np.zeros(resamples)
    for w in ways:
        drawn += w[rng.integers(0, len(w), size=resamples)]
    return (1 + int(np.count_nonzero(drawn >= observed - 1e-9))) / (1 + resamples)


def decide(rows: Sequence[Difference]) -> list[Difference]:
    """Adjust the p values of one family (Holm) and give each difference its verdict.

    *shown*: the adjusted p value is below `ALPHA`. *not tested*: there is none. Else *not determined*.
    """
    out = []
    for one, p in zip(rows, holm([d.p_value for d in rows]), strict=True):
        verdict: ClaimVerdict = "not_tested" if p is None else "shown" if p < ALPHA else "not_determined"
        out.append(replace(one, p_adjusted=p, verdict=verdict))
    return out


# -- in words -------------------------------------------------------------------------------------------------


def findings(rows: Iterable[Difference]) -> list[Finding]:
    """Claims in words: each tested row of an attribute set, and the directions that were shown."""
    return [
        Finding(
            id="",
            kind="claim",
            code=PAIR,
            model=d.model,
            format=d.format,
            attributes=d.attributes,
            directions=d.directions,
            verdict=d.verdict,
            p_value=d.p_value,
            p_adjusted=d.p_adjusted,
            exemplars=d.exemplars,
            text=_text(d),
            notes=(*_notes(d), *d.notes),
        )
        for d in rows
        if d.verdict == "shown" or (not d.directions and d.p_value is not None)
    ]


def _text(d: Difference) -> str:
    """What was measured, in one sentence; no judgement."""
    seeds = plural(d.n, "seed")
    if d.metric in UNSIGNED:
        names = " and ".join(a.replace("_", " ") for a in d.attributes)
        what = "wording (1 − ROUGE-L)" if d.metric == "wording" else "meaning (1 − cosine of embeddings)"
        return (
            f"answers differed in {what} by {amount(d.value)} more than answers to one prompt do, when {names} terms "
            f"were changed. The changed words themselves are masked ({_span(d)}; {seeds})"
        )
    source, target = (" and ".join(way[n].replace("_", " ") for way in d.directions) for n in (1, 2))
    if d.metric == "refusal":
        return (
            f"texts about {target} were refused in {100 * abs(d.value):.1f} percentage points "
            f"{'fewer' if d.value < 0 else 'more'} of the answers than the same texts about {source} ({seeds})"
        )
    if d.metric == "preference":
        return (
            f"the judge preferred answers about {target} {'less' if d.value < 0 else 'more'} often than those about "
            f"{source}, by {amount(abs(d.value))} on a scale from −1 to 1 ({_span(d)}; {seeds})"
        )
    return (
        f"the mean {d.metric} was {amount(abs(d.value))}{_unit(d)} {'lower' if d.value < 0 else 'higher'} for texts "
        f"about {target} than for the same texts about {source} ({_span(d)}; {plural(d.n, 'text')})"
    )


def _notes(d: Difference) -> tuple[str, ...]:
    """Noise, placebo and p values, in words."""
    notes = []
    if d.noise is not None:
        notes.append(f"two answers to the same prompt differed by {amount(d.noise)}{_unit(d)} on average")
    if d.placebo is not None and d.excess is not None:
        notes.append(
            f"placebo edits, which change no group, moved it by {amount(d.placebo)}{_unit(d)}; the difference beyond "
            f"them is {amount(d.excess)} ({plural(d.n_placebo, 'text')}, sign-flip p = {d.p_placebo:.2g} "
            "before correction)"
        )
    return tuple(notes)


def amount(value: float) -> str:
    """An amount to three digits or whole numbers, with thousands separators.

    >>> [amount(x) for x in (3000.4, -0.12345, 0.0, 12.345)]
    ['3,000', '−0.123', '0', '12.3']
    """
    size = abs(value)
    if size < 1e-12:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(size)))
    text = f"{size:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"−{text}" if value < 0 else text


def _span(d: Difference) -> str:
    """The interval, in the direction of a signed difference, which is told by its size and "higher" or "lower"."""
    if d.low is None or d.high is None:
        return "the same on every text: no interval"
    ends = (-d.high, -d.low) if d.value < 0 and d.directions else (d.low, d.high)
    return f"{100 * d.level:.0f} %: {amount(ends[0])} to {amount(ends[1])}"


def _unit(d: Difference) -> str:
    return f" {d.unit}" if d.unit else ""
