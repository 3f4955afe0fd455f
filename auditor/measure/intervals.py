"""Confidence intervals for rates whose unit is the seed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.core.counting import plural
from auditor.core.types import Estimate

FEW_SEEDS = 100
FEW_WITH_FLIP = 10
APPROXIMATE = "interval approximate"

AFTER_STOPPING = "Wald margin after stopping (the paper's rule)"  # of Themis; no interval to rest a verdict on


def korn_graubard(successes: ArrayLike, totals: ArrayLike, level: float = 0.95, n_skipped: int = 0) -> Estimate:
    """Share of variants with an event, with an interval that knows that variants of one seed are alike.

    The ratio of two sums over seeds; its variance by linearisation over seeds gives an effective sample size
    ``p(1 − p) / Var(p)``, adjusted by the squared ratio of t quantiles with all variants and with all seeds
    as units, and capped at the number of variants; then a Clopper–Pearson interval on that size. Where no
    variant or every variant has the event, the variance says nothing, and the effective size is the number of
    seeds.

    Parameters
    ----------
    successes, totals : sequence of float, shape (seeds,)
        Events and variants of each seed, 0 ≤ successes ≤ totals and totals > 0.
    level : float
        Confidence level in (0, 1).
    n_skipped : int
        Seeds that were left out, kept with the number.

    Returns
    -------
    Estimate
        ``n`` seeds, ``n_variants`` variants. The note says so where fewer than 100 seeds, or fewer than 10
        seeds with the event, make the interval approximate.

    Raises
    ------
    ValueError
        No seed is given, or a seed has more events than variants or no variant.

    References
    ----------
    E. L. Korn, B. I. Graubard, Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data, Survey Methodology 24 (1998).

    Examples
    --------
    >>> none_of_twelve = korn_graubard([0] * 12, [8] * 12)
    >>> round(none_of_twelve.low, 2), round(none_of_twelve.high, 2)
    (0.0, 0.26)
    """
    x, n = np.asarray(successes, dtype=float), np.asarray(totals, dtype=float)
    if x.ndim != 1 or x.shape != n.shape or not len(x):
        raise ValueError(f"one or more seeds with events and variants each, got shapes {x.shape} and {n.shape}")
    if (n <= 0).any() or (x < 0).any() or (x > n).any():
        raise ValueError("each seed needs 0 <= events <= variants and at least one variant")
    p = float(x.sum() / n.sum())
    size = effective_size(p, x - p * n, float(n.sum()), level)
    low, high = beta_limits(p, size, level)
    with_event = int(np.count_nonzero(x))
    return Estimate(
        value=p,
        low=low,
        high=high,
        level=level,
        n=len(x),
        n_skipped=n_skipped,
        method="korn-graubard by seed",
        n_variants=round(float(n.sum())),
        note=approximate_note(len(x), with_event),
    )


def effective_size(p: float, residuals: NDArray[np.float64], units: float, level: float) -> float:
    """Effective sample size of a share after Korn and Graubard.

    Parameters
    ----------
    p : float
        The share, in [0, 1].
    residuals : array of float, shape (seeds,)
        Events minus ``p`` times units, of each seed.
    units : float
        All units together; the cap.
    level : float
        Confidence level.
    """
    seeds = len(residuals)
    if p <= 0.0 or p >= 1.0 or seeds == 1:
        return float(seeds)
    variance = seeds / (seeds - 1) * float(residuals @ residuals) / units**2
    if variance <= 0.0:
        return units
    return min(p * (1 - p) / variance * t_ratio(units, seeds, level) ** 2, units)


def t_quantile(level: float, df: float) -> float:
    """Upper quantile of Student's t for a two-sided interval at ``level``.

    From ``scipy.special``, as that of ``scipy.stats`` is, which checks its arguments for longer than it computes.
    """
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + level / 2))


def t_ratio(units: float, clusters: int, level: float) -> float:
    """How much shorter an interval gets from ``units`` independent units than from ``clusters``: Korn and Graubard."""
    return t_quantile(level, max(units - 1, 1)) / t_quantile(level, clusters - 1)


def mean_share(values: ArrayLike, units: float, level: float = 0.95, n_skipped: int = 0) -> Estimate:
    """Mean over seeds of a share that each seed has, each seed with equal weight.

    Korn–Graubard on the variance of the mean, capped at ``units``: unlike a t interval it stays within
    [0, 1] and does not shrink to a point when all seeds have 0.

    Parameters
    ----------
    values : sequence of float, shape (seeds,)
        The share of each seed, in [0, 1].
    units : float
        How many comparisons are behind them in all; at least the number of seeds.

    Raises
    ------
    ValueError
        No seed is given, or a share is outside [0, 1].

    Examples
    --------
    >>> mean_share([0.0, 2 / 3, 0.0, 0.0], units=12).n
    4
    """
    x = np.asarray(values, dtype=float)
    if not len(x) or (x < 0).any() or (x > 1).any():
        raise ValueError("one or more seeds with a share in [0, 1] each")
    # The mean of equal values is rounded: hold it within the range of the values.
    p = float(min(max(x.mean(), x.min()), x.max()))
    scale = max(float(units), float(len(x))) / len(x)
    size = effective_size(p, (x - p) * scale, scale * len(x), level)
    low, high = beta_limits(p, size, level)
    return Estimate(
        value=p,
        low=low,
        high=high,
        level=level,
        n=len(x),
        n_skipped=n_skipped,
        method="korn-graubard by seed",
        note=approximate_note(len(x), int(np.count_nonzero(x))),
    )


def clopper_pearson(successes: int, n: int, level: float = 0.95, n_skipped: int = 0) -> Estimate:
    """Exact interval for a share of independent units: one yes or no for each seed.

    Raises
    ------
    ValueError
        ``n`` is 0, or ``successes`` is outside 0 … n.

    Examples
    --------
    >>> estimate = clopper_pearson(0, 299, level=0.90)
    >>> round(estimate.high, 3)
    0.01
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"0 <= successes <= n and n >= 1, got {successes} of {n}")
    p = successes / n
    low, high = beta_limits(p, float(n), level)
    return Estimate(
        value=p, low=low, high=high, level=level, n=n, n_skipped=n_skipped, method="clopper-pearson", n_variants=n
    )


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Mean of seed values with a t interval: (mean, low, high), for differences that may be negative.

    With one seed, or where all values are equal, the interval says nothing: the limits are infinite.
    """
    x = np.asarray(values, dtype=float)
    if not len(x):
        raise ValueError("one or more seeds")
    mean = float(x.mean())
    spread = float(x.std(ddof=1)) if len(x) > 1 else 0.0
    if spread == 0.0:
        return mean, -math.inf, math.inf
    half = t_quantile(level, len(x) - 1) * spread / math.sqrt(len(x))
    return mean, mean - half, mean + half


def approximate_note(seeds: int, with_event: int) -> str:
    """Why an interval by seed is approximate, or an empty text.

    Where no seed has the event the interval is that of independent seeds, and no note is needed.
    """
    if with_event and (seeds < FEW_SEEDS or with_event < FEW_WITH_FLIP):
        return f"{APPROXIMATE}: {with_event} of {plural(seeds, 'seed')} with the event"
    return ""


def beta_limits(p: float, size: float, level: float) -> tuple[float, float]:
    """Clopper–Pearson limits for ``p * size`` events of ``size``, which need not be whole."""
    from scipy.special import betaincinv

    alpha, x = 1 - level, p * size
    low = 0.0 if p <= 0.0 else float(betaincinv(x, size - x + 1, alpha / 2))
    high = 1.0 if p >= 1.0 else float(betaincinv(x + 1, size - x, 1 - alpha / 2))
    return min(max(low, 0.0), p), max(min(high, 1.0), p)


def percent(share: float, *, up: bool = False) -> str:
    """A share as a percentage, without ever rounding something to 0 or 100.

    ``up`` never rounds down, for what holds from a limit on: a smallest delta of 16.4 % is no 16 %.

    Examples
    --------
    >>> percent(0.1641), percent(0.1641, up=True), percent(0.9999, up=True)
    ('16', '17', '99.99')
    >>> [percent(x) for x in (0.0, 0.0004, 0.0414, 0.2646, 0.9996, 1.0)]
    ['0', '0.04', '4.1', '26', '99.96', '100']
    """
    if up:
        digits = len(percent(share).partition(".")[2])
        scale = 10**digits
        value = math.ceil(100 * share * scale - 1e-6) / scale
        return f"{value:.{digits if value < 10 or value > 99 else 0}f}" if value < 100 else "100"
    if share <= 0.0 or share >= 1.0:
        return "0" if share <= 0.0 else "100"
    if 0.0995 <= share <= 0.99:
        return f"{100 * share:.0f}"
    for digits in range(1, 16):
        text = f"{100 * share:.{digits}f}"
        if float(text) not in (0.0, 100.0):
            return text
    return "0" if share < 0.5 else "100"


def with_interval(estimate: Estimate) -> str:
    """A rate with its interval, as reports print it.

    Examples
    --------
    >>> with_interval(korn_graubard([0] * 12, [1] * 12))
    '0 % (0–26 %)'
    """
    return f"{percent(estimate.value)} % ({percent(estimate.low)}–{percent(estimate.high)} %)"
