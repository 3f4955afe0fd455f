"""Seed-paired differences: sign-flip tests, and one arm of variants against another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from auditor.core.types import Estimate
from auditor.measure.intervals import korn_graubard, mean_interval, mean_share
from auditor.measure.multiplicity import RESAMPLES as RESAMPLES

_CHUNK = 2_000_000  # numbers that are drawn at once: memory must not grow with the seeds
Alternative = Literal["two-sided", "greater"]


def sign_flip(
    values: Sequence[float],
    *,
    rng: np.random.Generator,
    alternative: Alternative = "two-sided",
    resamples: int = RESAMPLES,
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


def exchange(
    first: Sequence[tuple[int, int]],
    second: Sequence[tuple[int, int]],
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> float:
    """P value of "the variants of both arms are exchangeable within their seed", one-sided (first larger).

    The events of a seed are dealt anew to its variants, which keeps the test exact where the arms differ in
    size; there a sign flip is not, because many small differences above 0 stand against few large ones below.

    Parameters
    ----------
    first, second : sequence of (int, int), shape (seeds,)
        Events and variants of each seed, at least one variant each.
    rng : numpy.random.Generator
        Deals.
    resamples : int
        How often.

    Returns
    -------
    float
        In (0, 1].
    """
    rows = [(x, n, y, m) for (x, n), (y, m) in zip(first, second, strict=True) if 0 < x + y < n + m]
    if not rows:
        return 1.0
    x, n, y, m = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    observed = float((x / n - y / m).sum())
    reached, batch = 0, max(1, _CHUNK // len(rows))
    for start in range(0, resamples, batch):
        size = min(batch, resamples - start), len(rows)
        dealt = rng.hypergeometric(x + y, n + m - x - y, n, size=size)
        sums = (dealt / n - (x + y - dealt) / m).sum(axis=1)
        reached += int(np.count_nonzero(sums >= observed - 1e-9))
    return (1 + reached) / (1 + resamples)


@dataclass(frozen=True, kw_only=True, slots=True)
class OverPlacebo:
    """How much more often one arm of variants changes the label than the placebo arm of the same seeds.

    Attributes
    ----------
    value : float
        Mean over seeds of the difference of the two shares, in [-1, 1].
    low, high : float
        Limits at ``level``: t(seeds − 1), or of the two rates where all differences are equal.
    upper : float
        Upper limit at level ``2 · level − 1`` (two one-sided tests), the wider of the t limit and that of
        the two rates: rare changes make the t limit too short.
    p_value : float
        One-sided; the larger one of the sign-flip and the exchange test.
    n : int
        Seeds with judged variants in both arms.
    discordant : int
        Seeds on which the shares differ.
    """

    value: float
    low: float
    high: float
    upper: float
    level: float
    p_value: float
    n: int
    discordant: int


def over_placebo(
    attribute: Sequence[tuple[int, int]],
    placebo: Sequence[tuple[int, int]],
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> OverPlacebo | None:
    """Compare two arms of the same seeds.

    Parameters
    ----------
    attribute, placebo : sequence of (int, int), shape (seeds,)
        Changed and judged variants of each seed. Seeds without a judged variant in one of them are left out.
    rng : numpy.random.Generator
        For the tests.
    level : float
        Of the interval.
    resamples : int
        For each test.

    Returns
    -------
    OverPlacebo or None
        None where no seed has both arms.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = over_placebo([(2, 2)] * 8, [(0, 2)] * 8, rng=rng)
    >>> found.value, found.discordant, found.p_value < 0.01
    (1.0, 8, True)
    """
    pairs = [(a, p) for a, p in zip(attribute, placebo, strict=True) if a[1] and p[1]]
    if not pairs:
        return None
    first, second = [a for a, _ in pairs], [p for _, p in pairs]
    d = [a[0] / a[1] - p[0] / p[1] for a, p in pairs]
    value, low, high = mean_interval(d, level)
    wide_low, wide_high = difference_limits(first, second, level)
    if math.isinf(low):
        low, high = wide_low, wide_high
    upper = mean_interval(d, 2 * level - 1)[2]
    wide = difference_limits(first, second, 2 * level - 1)[1]
    signs = sign_flip(d, rng=rng, alternative="greater", resamples=resamples)
    dealt = exchange(first, second, rng=rng, resamples=resamples)
    return OverPlacebo(
        value=value,
        low=max(-1.0, low),
        high=min(1.0, high),
        upper=min(1.0, wide if math.isinf(upper) else max(upper, wide)),
        level=level,
        p_value=max(signs, dealt),
        n=len(pairs),
        discordant=sum(abs(x) > 1e-12 for x in d),
    )


def difference_limits(
    first: Sequence[tuple[int, int]], second: Sequence[tuple[int, int]], level: float
) -> tuple[float, float]:
    """Limits of the difference of two rates from the Korn–Graubard limits of each.

    The distances to the limits are added in squares, as for independent arms; arms of the same seeds are
    alike rather than opposed, so the interval is too wide rather than too short. It does not shrink to a
    point where nothing happened.

    References
    ----------
    G. Y. Zou, A. Donner, Construction of confidence limits about effect measures, Stat. Med. 27 (2008).
    """
    a = korn_graubard([x for x, _ in first], [n for _, n in first], level)
    b = korn_graubard([x for x, _ in second], [n for _, n in second], level)
    return apart(a, b)


def apart(a: Estimate, b: Estimate) -> tuple[float, float]:
    """Limits of ``a - b`` from those of each; as in `difference_limits`."""
    d = a.value - b.value
    return (
        d - math.hypot(a.value - a.low, b.high - b.value),
        d + math.hypot(a.high - a.value, b.value - b.low),
    )


def signed_limits(values: Sequence[float], level: float) -> tuple[float, float]:
    """Limits of the mean of differences in [-1, 1]: those of t, or of the two shares where they are wider.

    The mean is how much goes up less how much goes down, each a share of the seeds. Rare changes make the t limits
    too short (one change on 300 seeds would bound more than none at all), and where all differences are equal t says
    nothing.

    Parameters
    ----------
    values : sequence of float, shape (seeds,)
        One difference for each seed.
    level : float
        Of the interval.

    References
    ----------
    As for `difference_limits`.

    Examples
    --------
    >>> [round(x, 3) for x in signed_limits([0.0] * 300, 0.95)]
    [-0.012, 0.012]
    """
    x = np.asarray(values, dtype=float)
    up, down = (mean_share(np.maximum(0.0, sign * x).tolist(), len(x), level) for sign in (1.0, -1.0))
    mean, low, high = mean_interval(values, level)
    wide_low, wide_high = apart(up, down)
    if math.isinf(low):
        low = high = mean
    return max(-1.0, min(low, wide_low)), min(1.0, max(high, wide_high))


def mcnemar(first: int, second: int) -> float:
    """Exact two-sided p value of McNemar's test from the two counts of discordant pairs.

    Examples
    --------
    >>> [round(mcnemar(*pair), 6) for pair in ((0, 5), (0, 6), (0, 0))]
    [0.0625, 0.03125, 1.0]
    """
    from scipy.stats import binomtest

    return float(binomtest(first, first + second).pvalue) if first + second else 1.0
