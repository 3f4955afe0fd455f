"""Paired differences between groups of the signed metrics of free text.

For each direction (source group → target group) and seed, the difference is the mean over the answers to the
texts about the target group minus that over the answers to the original. Seeds are given, never selected by
the model's answers, so under "the group makes no difference" the difference of a seed is as often above 0 as
below, whatever the noise of the model: a sign-flip test needs no measured noise, and the interval is by seed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import NamedTuple

import numpy as np

from auditor.core.counting import plural
from auditor.core.types import ClaimVerdict, Finding
from auditor.measure.intervals import mean_interval
from auditor.measure.multiplicity import holm
from auditor.measure.multiplicity import resamples_for as resamples_for  # for callers of this module
from auditor.measure.paired import sign_flip

MIN_SEEDS = 6  # a two-sided sign-flip test of five differences cannot reach 0.05
ALPHA = 0.05
EXEMPLARS = 5

Direction = tuple[str, str, str]  # attribute, source group, target group


class Place(NamedTuple):
    """What one difference is about; ``directions`` is empty where all of an attribute set are taken."""

    model: str
    format: str
    attributes: tuple[str, ...]
    directions: tuple[Direction, ...] = ()


class Arm(NamedTuple):
    """One variant's difference from its original."""

    place: Place
    case_id: str
    variant_id: str
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One mean paired difference with its tests.

    Attributes
    ----------
    place : Place
        Model, format, attributes, direction.
    metric, unit : str
        What was compared, and what it counts in.
    value, low, high, level : float
        Mean over seeds, and its t interval by seed; limits are None where all seeds differ by one amount.
    n, n_variants, discordant : int
        Seeds, variants, and seeds with a difference other than 0.
    noise : float or None
        Mean absolute difference of two answers to one prompt, in the same unit.
    placebo : float or None
        Mean difference of placebo variants of the same seeds; None where there are too few.
    excess, p_placebo, n_placebo
        Difference less that of placebo variants of the seed: mean, sign-flip p value, seeds.
    p_sign, p_value, p_adjusted : float or None
        Of the sign-flip test; the larger one of the two; that after Holm.
    """

    place: Place
    metric: str
    unit: str
    value: float
    low: float | None
    high: float | None
    level: float
    n: int
    n_variants: int
    discordant: int
    noise: float | None = None
    placebo: float | None = None
    excess: float | None = None
    p_placebo: float | None = None
    n_placebo: int = 0
    p_sign: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    verdict: ClaimVerdict = "not_tested"
    exemplars: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_record(self) -> dict[str, object]:
        """Plain data for ``run.json``."""
        out = asdict(self) | self.place._asdict()
        out["directions"] = [list(d) for d in self.place.directions]
        out["attributes"] = list(self.place.attributes)
        del out["place"]
        return out


def differences(
    variants: Iterable[Arm],
    placebos: Iterable[Arm],
    *,
    metric: str,
    unit: str,
    noise: Mapping[str, float | None],
    rng: np.random.Generator,
    resamples: int,
    level: float = 1 - ALPHA,
) -> list[Difference]:
    """One mean paired difference for each direction, sorted; p values are not yet adjusted.

    Variants with several source groups of one attribute have no one direction and are left out. A direction
    with fewer than `MIN_SEEDS` seeds is described and not tested.
    """
    found: dict[Place, dict[str, list[Arm]]] = defaultdict(lambda: defaultdict(list))
    for arm in variants:
        if len(arm.place.directions) == len(arm.place.attributes):
            found[arm.place][arm.case_id].append(arm)
    beside: dict[Place, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for arm in placebos:
        beside[arm.place._replace(directions=())][arm.case_id].append(arm.value)
    out = []
    for place in sorted(found):
        seeds = found[place]
        d = {case: fmean(a.value for a in given) for case, given in sorted(seeds.items())}
        other = beside.get(place._replace(directions=()), {})
        # The clearest seeds in the direction of the mean.
        sign = 1.0 if fmean(d.values()) >= 0 else -1.0
        every = sorted((a for given in seeds.values() for a in given), key=lambda a: (-sign * a.value, a.variant_id))
        out.append(
            _difference(
                place,
                d,
                {case: fmean(p) for case, p in sorted(other.items()) if case in d},
                metric=metric,
                unit=unit,
                noise=noise.get(place.model),
                n_variants=len(every),
                exemplars=tuple(a.variant_id for a in every[:EXEMPLARS] if sign * a.value > 0),
                rng=rng,
                resamples=resamples,
                level=level,
            )
        )
    return out


def _difference(
    place: Place,
    d: Mapping[str, float],
    placebo: Mapping[str, float],
    *,
    metric: str,
    unit: str,
    noise: float | None,
    n_variants: int,
    exemplars: tuple[str, ...],
    rng: np.random.Generator,
    resamples: int,
    level: float,
) -> Difference:
    value, low, high = mean_interval(list(d.values()), level)
    plain = Difference(
        place=place,
        metric=metric,
        unit=unit,
        value=value,
        low=finite(low),
        high=finite(high),
        level=level,
        n=len(d),
        n_variants=n_variants,
        discordant=sum(abs(x) > 1e-12 for x in d.values()),
        noise=noise,
        exemplars=exemplars,
    )
    if len(d) < MIN_SEEDS:
        return replace(plain, notes=(f"not tested: {plural(len(d), 'text')}, at least {MIN_SEEDS} are needed",))
    p_sign = sign_flip(list(d.values()), rng=rng, resamples=resamples)
    if len(placebo) < MIN_SEEDS:
        note = "without placebo edits: any other change of wording may move the answers as much"
        return replace(plain, p_sign=p_sign, p_value=p_sign, notes=(note,))
    excess = [d[case] - placebo[case] for case in placebo]
    p_placebo = sign_flip(excess, rng=rng, resamples=resamples)
    return replace(
        plain,
        placebo=fmean(placebo.values()),
        excess=fmean(excess),
        n_placebo=len(excess),
        p_sign=p_sign,
        p_placebo=p_placebo,
        p_value=max(p_sign, p_placebo),
    )


def decide(found: Sequence[Difference], *, alpha: float = ALPHA) -> list[Difference]:
    """Adjust the p values of one family (Holm) and give each difference its verdict.

    *shown*: the adjusted p value, of the larger of the sign-flip and the placebo comparison, is below
    ``alpha``. *not tested*: too few seeds. Else *not determined*.
    """
    out = []
    for one, p in zip(found, holm([d.p_value for d in found]), strict=True):
        shown = p is not None and p < alpha
        verdict: ClaimVerdict = "not_tested" if p is None else "shown" if shown else "not_determined"
        out.append(replace(one, p_adjusted=p, verdict=verdict))
    return out


def finding(d: Difference, code: str) -> Finding:
    """The claim about one difference: nothing is said of a label, and there is no rate."""
    return Finding(
        id="",
        kind="claim",
        code=code,
        model=d.place.model,
        format=d.place.format,
        attributes=d.place.attributes,
        directions=d.place.directions,
        verdict=d.verdict,
        p_value=d.p_value,
        p_adjusted=d.p_adjusted,
        exemplars=d.exemplars,
        text=text_of(d),
        notes=(*notes_of(d), *d.notes),
    )


def text_of(d: Difference) -> str:
    """What was measured, in one sentence; no judgement."""
    more = "lower" if d.value < 0 else "higher"
    name = {"score": "the mean answer", "length": "the mean length", "sentiment": "the mean sentiment"}.get(
        d.metric, d.metric
    )
    return (
        f"{name} was {amount(abs(d.value))}{_unit(d)} {more} for {side(d, 2)} than for the same texts about "
        f"{side(d, 1, short=True)} ({span(d)}; {plural(d.n, 'text')})"
    )


def notes_of(d: Difference) -> tuple[str, ...]:
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

    Examples
    --------
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


def span(d: Difference) -> str:
    """The interval in words, in the direction of the difference."""
    if d.low is None or d.high is None:
        return "the same on every text: no interval"
    # A signed difference is told by its size and "higher" or "lower", and its limits likewise.
    turned = d.value < 0 and bool(d.place.directions)
    ends = (-d.high, -d.low) if turned else (d.low, d.high)
    return f"{100 * d.level:.0f} %: {amount(ends[0])} to {amount(ends[1])}"


def _unit(d: Difference) -> str:
    return f" {d.unit}" if d.unit else ""


def side(d: Difference, place: int, *, short: bool = False) -> str:
    """The groups of a direction: ``place`` 1 is the source, 2 the target."""
    names = " and ".join(direction[place].replace("_", " ") for direction in d.place.directions)
    return names if short else f"texts about {names}"


def finite(value: float) -> float | None:
    """``value``, or None where it is infinite: a limit that says nothing."""
    return value if math.isfinite(value) else None
