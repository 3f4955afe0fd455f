"""Differences by text: sign-flip tests, and two rates on the same variants."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from auditor.core.types import Estimate
from auditor.measure.intervals import korn_graubard, t_quantile
from auditor.measure.multiplicity import RESAMPLES as RESAMPLES

_CHUNK = 2_000_000  # numbers that are drawn at once: memory must not grow with the seeds
Alternative = Literal["two-sided", "greater"]


def sign_flip(
    values: ArrayLike, *, rng: np.random.Generator, alternative: Alternative = "two-sided", resamples: int = RESAMPLES
) -> float:
    """P value of the sign-flip permutation test of "the differences are symmetric about 0".

    Seeds with the difference 0 say nothing and are left out. Where all sign patterns are no more than
    ``resamples`` the test is exact; else patterns are drawn, and the observed one is counted in.

    Parameters
    ----------
    values : sequence of float, shape (seeds,)
        One difference for each seed.
    rng : numpy.random.Generator
        Draws patterns.
    alternative : {"two-sided", "greater"}
        "greater": the mean is above 0.
    resamples : int
        How many patterns at most.

    Returns
    -------
    float
        In (0, 1]; 1 where no difference differs from 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sign_flip([1.0] * 5, rng=rng), sign_flip([1.0] * 6, rng=rng)
    (0.0625, 0.03125)
    """
    from scipy.stats import permutation_test

    x = np.asarray(values, dtype=float)
    x = x[x != 0.0]
    if not len(x):
        return 1.0
    if len(x) == 1:  # scipy needs two
        return 1.0 if alternative == "two-sided" else 0.5 if x[0] > 0 else 1.0
    result = permutation_test(
        (x,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        alternative=alternative,
        rng=rng,
        batch=max(1, _CHUNK // len(x)),
    )
    return float(min(1.0, result.pvalue))


def difference_of_rates(x: ArrayLike, y: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[float, float, float]:
    """Difference of two rates on the same variants of the same texts: (value, low, high).

    A ratio of sums over texts, as each of the rates is; its variance by linearisation. Rare changes make the t limits
    too short (one change on 300 texts would bound more than none at all), and where all texts differ alike t says
    nothing: then those of what goes up less what goes down, each a share of the variants, are wider.

    Parameters
    ----------
    x, y : array of int, shape (texts,)
        Events on either side.
    n : array of int, shape (texts,)
        Variants of each text.

    Examples
    --------
    >>> [round(v, 3) for v in difference_of_rates([0] * 300, [0] * 300, [1] * 300)]
    [0.0, -0.012, 0.012]
    """
    d, of = np.asarray(x, dtype=float) - np.asarray(y, dtype=float), np.asarray(n, dtype=float)
    units, texts = float(of.sum()), len(of)
    value = float(d.sum()) / units
    up, down = (korn_graubard(np.maximum(0.0, sign * d), of, level) for sign in (1.0, -1.0))
    low, high = apart(up, down)
    residuals = d - value * of
    if texts > 1 and residuals.any():
        variance = texts / (texts - 1) * float(residuals @ residuals) / units**2
        half = t_quantile(level, texts - 1) * math.sqrt(variance)
        low, high = min(low, value - half), max(high, value + half)
    return value, max(-1.0, low), min(1.0, high)


def apart(a: Estimate, b: Estimate) -> tuple[float, float]:
    """Limits of ``a - b`` from those of each.

    The distances to the limits are added in squares, as for independent arms; arms of the same texts are
    alike rather than opposed, so the interval is too wide rather than too short. It does not shrink to a
    point where nothing happened.

    References
    ----------
    G. Y. Zou, A. Donner, Construction of confidence limits about effect measures, Stat. Med. 27 (2008).
    """
    d = a.value - b.value
    return (d - math.hypot(a.value - a.low, b.high - b.value), d + math.hypot(a.high - a.value, b.value - b.low))


def mcnemar(first: int, second: int) -> float:
    """Exact two-sided p value of McNemar's test from the two counts of discordant pairs.

    Examples
    --------
    >>> [round(mcnemar(*pair), 6) for pair in ((0, 5), (0, 6), (0, 0))]
    [0.0625, 0.03125, 1.0]
    """
    from scipy.stats import binomtest

    return float(binomtest(first, first + second).pvalue) if first + second else 1.0
