"""Shares and mean changes of what was drawn with known chances: each row weighs what it stands for, by text."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from auditor.core.types import Estimate
from auditor.measure.intervals import approximate_note, beta_limits, t_quantile
from auditor.measure.paired import apart

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
METHOD = "weighted by inclusion (Hájek), by text"


def _by_text(weights: Floats, texts: Ints, *columns: Floats) -> tuple[float, list[Floats]]:
    """Effective number of texts, and sums of ``columns`` by text."""
    _, at = np.unique(texts, return_inverse=True)
    total = np.bincount(at, weights)
    sums = [np.asarray(np.bincount(at, column), dtype=np.float64) for column in columns]
    return float(total.sum() ** 2 / (total @ total)), sums


def weighted_share(events: Floats, weights: Floats, texts: Ints, level: float = 0.95) -> Estimate:
    """Share of the rows with an event, each row counted with its weight.

    A ratio of weighted sums; its variance by linearisation over texts gives an effective sample size as in Korn and
    Graubard (1998), with the effective number of texts for the degrees of freedom, and as the size where there is no
    event.

    Parameters
    ----------
    events : array, shape (rows,)
        0 or 1.
    weights : array, shape (rows,)
        What each row stands for, above 0, in any unit.
    texts : array of int, shape (rows,)
        Rows of one text may depend on each other in any way.

    Examples
    --------
    >>> even = weighted_share(np.array([1.0, 0, 0, 0] * 25), np.ones(100), np.arange(100))
    >>> even.value, round(even.low, 3), round(even.high, 3)
    (0.25, 0.167, 0.348)
    """
    unit = weights / weights.sum()
    p = float(unit @ events)
    several, (residuals, hit) = _by_text(unit, texts, unit * (events - p), unit * events)
    n = len(residuals)
    variance = n / max(n - 1, 1) * float(residuals @ residuals)
    size = several
    if 0 < p < 1 and variance > 0:
        ratio = t_quantile(level, 1e9) / t_quantile(level, max(several - 1, 1.0))
        own = p * (1 - p) / variance * ratio**2
        # What is seldom drawn weighs most, and may have events that were not drawn: until as many events as some of
        # the heaviest rows were seen, the sample is worth no more than one without any event.
        seen = float(unit @ events) / float(unit.max())
        size = min(own, several + max(0.0, own - several) * (1 - math.exp(-seen / 2)))
    low, high = beta_limits(p, size, level)
    return Estimate(
        value=p,
        low=low,
        high=high,
        level=level,
        n=n,
        n_skipped=0,
        method=METHOD,
        n_variants=len(events),
        note=approximate_note(n, int(np.count_nonzero(hit))),
    )


def weighted_change(changes: Floats, weights: Floats, texts: Ints, strata: Ints, level: float = 0.95) -> Estimate:
    """Mean of changes in {−1, 0, 1} over strata that count the same, rows of a stratum with their weights.

    Limits are those of t, or of the shares that go up and down where these are wider: rare changes make t too short.

    Examples
    --------
    >>> one = weighted_change(np.array([1.0, 0, 0, 0]), np.ones(4), np.arange(4), np.array([0, 0, 1, 1]))
    >>> one.value, one.low < 0 < one.high
    (0.25, True)
    """
    unit, centre = np.zeros(len(weights)), np.zeros(len(weights))
    kinds = np.unique(strata)
    for kind in kinds:
        own = strata == kind
        unit[own] = weights[own] / weights[own].sum() / len(kinds)
        centre[own] = float(unit[own] @ changes[own]) * len(kinds)
    mean = float(unit @ changes)
    several, (residuals,) = _by_text(unit, texts, unit * (changes - centre))
    n = len(residuals)
    half = t_quantile(level, max(several - 1, 1.0)) * math.sqrt(n / max(n - 1, 1) * float(residuals @ residuals))
    up, down = (weighted_share((changes == way).astype(float), unit, texts, level) for way in (1, -1))
    low, high = apart(up, down)
    return Estimate(
        value=mean,
        low=max(-1.0, min(low, mean - half)),
        high=min(1.0, max(high, mean + half)),
        level=level,
        n=n,
        n_skipped=0,
        method=METHOD,
        n_variants=len(changes),
        note=up.note or down.note,
    )
