"""Intervals for rates and their differences; the unit is the source text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from auditor.core.shown import plural
from auditor.core.types import Estimate
from auditor.measure.observations import Floats

LEVEL = 0.95
FEW_SEEDS = 100
FEW_WITH_FLIP = 10
BY_SEED = "korn-graubard by seed"
SEQUENCE = "beta-binomial mixture confidence sequence"


def share_estimate(
    p: float, size: float, level: float, *, n: int, method: str, n_skipped: int = 0, note: str = ""
) -> Estimate:
    """A share with the limits that ``size`` independent units, which need not be whole, would give it."""
    low, high = beta_limits(p, size, level)
    return Estimate(value=p, low=low, high=high, level=level, n=n, n_skipped=n_skipped, method=method, note=note)


def korn_graubard(successes: ArrayLike, totals: ArrayLike, level: float = LEVEL, n_skipped: int = 0) -> Estimate:
    """Share of variants with an event, with an interval that knows that variants of one seed are alike.

    The ratio of two sums over seeds; its variance by linearisation over seeds gives an effective sample size
    ``p(1 − p) / Var(p)``, adjusted by the squared ratio of t quantiles with all variants and with all seeds
    as units, and capped at the number of variants; then a Clopper–Pearson interval on that size. Where no
    variant or every variant has the event, the variance says nothing, and the effective size is the number of
    seeds. A note says where few seeds make it approximate.

    References
    ----------
    E. L. Korn, B. I. Graubard, Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data, Survey Methodology 24 (1998).
    """
    x, n = np.asarray(successes, dtype=float), np.asarray(totals, dtype=float)
    if x.ndim != 1 or x.shape != n.shape or not len(x):
        raise ValueError(f"one or more seeds with events and variants each, got shapes {x.shape} and {n.shape}")
    if (n <= 0).any() or (x < 0).any() or (x > n).any():
        raise ValueError("each seed needs 0 <= events <= variants and at least one variant")
    p, units = float(x.sum() / n.sum()), float(n.sum())
    size = effective_size(p, x - p * n, units, level)
    note = approximate_note(len(x), int(np.count_nonzero(x)))
    made = share_estimate(p, size, level, n=len(x), method=BY_SEED, n_skipped=n_skipped, note=note)
    return replace(made, n_variants=round(units))


def effective_size(p: float, residuals: Floats, units: float, level: float) -> float:
    """Effective sample size of the share ``p`` after Korn and Graubard, at most ``units``.

    ``residuals`` are, of each seed, events minus ``p`` times units.
    """
    seeds = len(residuals)
    if p <= 0.0 or p >= 1.0 or seeds == 1:
        return float(seeds)
    variance = seeds / (seeds - 1) * float(residuals @ residuals) / units**2
    if variance <= 0.0:
        return units
    ratio = t_quantile(level, max(units - 1, 1)) / t_quantile(level, seeds - 1)
    return min(p * (1 - p) / variance * ratio**2, units)


def t_quantile(level: float, df: float) -> float:
    """Upper quantile of Student's t for a two-sided interval at ``level``.

    From ``scipy.special``, as that of ``scipy.stats`` is, which checks its arguments for longer than it computes.
    """
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + level / 2))


def mean_share(values: ArrayLike, units: float, n_skipped: int = 0) -> Estimate:
    """Mean over seeds of a share that each seed has, each seed with equal weight.

    Korn–Graubard on the variance of the mean, capped at ``units``, the comparisons behind them in all: unlike a t
    interval it stays within [0, 1] and does not shrink to a point when all seeds have 0.
    """
    x = np.asarray(values, dtype=float)
    if not len(x) or (x < 0).any() or (x > 1).any():
        raise ValueError("one or more seeds with a share in [0, 1] each")
    # The mean of equal values is rounded: hold it within the range of the values.
    p = float(min(max(x.mean(), x.min()), x.max()))
    scale = max(float(units), float(len(x))) / len(x)
    size = effective_size(p, (x - p) * scale, scale * len(x), LEVEL)
    note = approximate_note(len(x), int(np.count_nonzero(x)))
    return share_estimate(p, size, LEVEL, n=len(x), method=BY_SEED, n_skipped=n_skipped, note=note)


def clopper_pearson(successes: int, n: int, level: float = LEVEL, n_skipped: int = 0) -> Estimate:
    """Exact interval for a share of independent units: one yes or no for each seed."""
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"0 <= successes <= n and n >= 1, got {successes} of {n}")
    made = share_estimate(successes / n, float(n), level, n=n, method="clopper-pearson", n_skipped=n_skipped)
    return replace(made, n_variants=n)


def mean_interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float, float]:
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
    """Why an interval by seed is approximate; empty where enough seeds have the event, or none, which is exact."""
    if with_event and (seeds < FEW_SEEDS or with_event < FEW_WITH_FLIP):
        return f"interval approximate: {with_event} of {plural(seeds, 'seed')} with the event"
    return ""


def beta_limits(p: float, size: float, level: float) -> tuple[float, float]:
    """Clopper–Pearson limits for ``p * size`` events of ``size``, which need not be whole."""
    from scipy.special import betaincinv

    alpha, x = 1 - level, p * size
    low = 0.0 if p <= 0.0 else float(betaincinv(x, size - x + 1, alpha / 2))
    high = 1.0 if p >= 1.0 else float(betaincinv(x + 1, size - x, 1 - alpha / 2))
    return min(max(low, 0.0), p), max(min(high, 1.0), p)


# -- differences ----------------------------------------------------------------------------------------------


def difference_of_rates(x: ArrayLike, y: ArrayLike, n: ArrayLike) -> tuple[float, float, float]:
    """Difference of two rates on the same variants of the same texts: (value, low, high).

    A ratio of sums over texts, as each of the rates is; its variance by linearisation. Rare changes make the t limits
    too short (one change on 300 texts would bound more than none at all), and where all texts differ alike t says
    nothing: then those of what goes up less what goes down, each a share of the variants, are wider. Their distances to
    the limits are added in squares, as for independent arms; arms of the same texts are alike rather than opposed, so
    that is too wide rather than too short, and does not shrink to a point where nothing happened.

    References
    ----------
    G. Y. Zou, A. Donner, Construction of confidence limits about effect measures, Stat. Med. 27 (2008).
    """
    d, of = np.asarray(x, dtype=float) - np.asarray(y, dtype=float), np.asarray(n, dtype=float)
    units, texts = float(of.sum()), len(of)
    value = float(d.sum()) / units
    up, down = (korn_graubard(np.maximum(0.0, sign * d), of) for sign in (1.0, -1.0))
    apart = up.value - down.value
    low = apart - math.hypot(up.value - up.low, down.high - down.value)
    high = apart + math.hypot(up.high - up.value, down.value - down.low)
    residuals = d - value * of
    if texts > 1 and residuals.any():
        variance = texts / (texts - 1) * float(residuals @ residuals) / units**2
        half = t_quantile(LEVEL, texts - 1) * math.sqrt(variance)
        low, high = min(low, value - half), max(high, value + half)
    return value, max(-1.0, low), min(1.0, high)


def confidence_sequence(successes: int, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Always-valid interval for the rate of independent yes/no draws.

    The likelihood ratio of a Beta(a, b) mixture against one rate p is a martingale if p is the truth, so by
    Ville's inequality it ever exceeds ``1 / (1 - level)`` with probability at most ``1 - level``. The interval
    holds the rates for which it has not. It may be looked at after every draw and used to stop.

    With ``n = 0`` it is [0, 1]. The mixture ½, ½ (Krichevsky–Trofimov) adapts to rates near 0 and 1.

    References
    ----------
    H. Robbins, Statistical methods related to the law of the iterated logarithm, Ann. Math. Stat. 41 (1970).
    S. R. Howard, A. Ramdas, J. McAuliffe, J. Sekhon, Time-uniform, nonparametric, nonasymptotic confidence
    sequences, Ann. Stat. 49 (2021).
    """
    if not 0 <= successes <= n or not 0 < level < 1:
        raise ValueError(f"needs 0 <= successes <= n and 0 < level < 1, got {successes}, {n}, {level}")
    if n == 0:
        return 0.0, 1.0
    from scipy.optimize import brentq

    fails = n - successes

    def log_beta(x: float, y: float) -> float:
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)

    mixture = log_beta(0.5 + successes, 0.5 + fails) - log_beta(0.5, 0.5)
    bound = -math.log(1 - level)

    def below(hits: int, misses: int) -> float:
        """The limit under ``hits / n``, the share of one of the two outcomes; ``hits`` is at least 1."""

        def excess(p: float) -> float:
            # 0 log 0 is 0: without misses the term is left out
            likelihood = hits * math.log(p) + (misses * math.log1p(-p) if misses else 0.0)
            return mixture - likelihood - bound

        return float(brentq(excess, 1e-300, hits / n, xtol=1e-13, rtol=1e-10))

    rate = successes / n
    low = below(successes, fails) if successes else 0.0
    # Through the other outcome: near 1 floats are too far apart to hold the limit of very many draws.
    high = 1.0 - below(fails, successes) if fails else 1.0
    return min(low, rate), max(high, rate)
