"""What chance can do: intervals for rates and their differences, and p values; the unit is the source text.

P values are of differences by text, by resampling; of many claims at once, with Holm's correction for claims fixed in
advance and Benjamini and Hochberg's for exploration; and of several looks at the answers.

A test that is made again and again, and believed when it comes out, errs far more often than its level says. Of looks
before all answers are in, the level is spent little by little, as a function of the share of the plan that is done, so
that all looks together err as often as one test; when one looks may depend on anything but the answers. Later looks
hold the earlier texts too: their joint distribution is that of sums of independent normal steps. A p value of one look
becomes the smallest *overall* level that would have been enough to reject there. Those can be adjusted for many claims
as any other p values, which nominal levels of a look cannot.

References
----------
P. Armitage, C. K. McPherson, B. C. Rowe, Repeated significance tests on accumulating data, J. R. Stat. Soc. A 132
(1969). K. K. G. Lan, D. L. DeMets, Discrete sequential boundaries for clinical trials, Biometrika 70 (1983).
K. Kim, D. L. DeMets, Design and analysis of group sequential tests based on the type I error spending rate
function, Biometrika 74 (1987). W. Maurer, F. Bretz, Multiple testing in group sequential trials using graphical
approaches, Stat. Biopharm. Res. 5 (2013). C. Jennison, B. W. Turnbull, Interim analyses: the repeated confidence
interval approach, J. R. Stat. Soc. B 51 (1989).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, NamedTuple

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
RESAMPLES = 1999  # of a test by resampling, at least
MAX_RESAMPLES = 199_999  # beyond 5,000 two-sided tests nothing could be shown
CHUNK = 2_000_000  # numbers that are drawn at once: memory must not grow with the texts
FEW = 10
# Shares of the plan after which the answers are looked at. Before a fifth, too few answers can have changed.
LOOKS = (0.2, 0.4, 0.6, 0.8, 1.0)
SPENDING = 2.5  # of the share that is done: 1 spends evenly, 3 is close to O'Brien and Fleming's rule
GRID = 401
LEVELS: Floats = np.concatenate([np.logspace(-8, -0.5, 31), [1.0]])
Alternative = Literal["two-sided", "greater"]


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
    return replace(_by_seed(p, x, x - p * n, units, level, n_skipped), n_variants=round(units))


def _by_seed(p: float, events: Floats, residuals: Floats, units: float, level: float, n_skipped: int) -> Estimate:
    """The share ``p`` with the limits that as many independent units would give it as the seeds are worth."""
    seeds, with_event = len(events), int(np.count_nonzero(events))
    low, high = beta_limits(p, effective_size(p, residuals, units, level), level)
    note = ""
    if with_event and (seeds < FEW_SEEDS or with_event < FEW_WITH_FLIP):  # without any it is exact
        note = f"interval approximate: {with_event} of {plural(seeds, 'seed')} with the event"
    return Estimate(value=p, low=low, high=high, level=level, n=seeds, n_skipped=n_skipped, method=BY_SEED, note=note)


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
    return _by_seed(p, x, (x - p) * scale, scale * len(x), LEVEL, n_skipped)


def clopper_pearson(successes: int, n: int, level: float = LEVEL, n_skipped: int = 0) -> Estimate:
    """Exact interval for a share of independent units: one yes or no for each seed."""
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"0 <= successes <= n and n >= 1, got {successes} of {n}")
    p, method = successes / n, "clopper-pearson"
    low, high = beta_limits(p, float(n), level)
    return Estimate(value=p, low=low, high=high, level=level, n=n, n_skipped=n_skipped, method=method, n_variants=n)


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


# -- p values ---------------------------------------------------------------------------------------------------------


def sign_flip(
    values: ArrayLike, *, rng: np.random.Generator, alternative: Alternative = "two-sided", resamples: int = RESAMPLES
) -> float:
    """P value of the sign-flip permutation test of "the differences, one for each seed, are symmetric about 0".

    Differences of 0 say nothing and are left out; without any other it is 1. Where all sign patterns are no more than
    ``resamples`` the test is exact; else patterns are drawn, and the observed one is counted in.
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
        batch=max(1, CHUNK // len(x)),
    )
    return float(min(1.0, result.pvalue))


def resamples_for(tests: float, *, least: int = RESAMPLES) -> int:
    """Resamples that let the smallest possible p value survive the correction for ``tests`` tests.

    A p value from n resamples is at least 1 / (n + 1), two-sided 2 / (n + 1): times the number of tests, 1,999 of
    them cannot come below 5 % where there are 50 two-sided tests and more.
    """
    return min(MAX_RESAMPLES, max(least, math.ceil(80 * tests) - 1))


def fine_enough(test: Callable[[int], float], wanted: int) -> float:
    """The p value of a ``test`` by resampling, drawn again with the ``wanted`` resamples where few are too coarse.

    That is where no more than `FEW` of the first reached what was seen: others lie so far above the smallest possible p
    value that more resamples would hardly move them. The p value stays valid: one that was not drawn again is above
    ``(FEW + 1) / (RESAMPLES + 1)``, so whatever the level, no more than a test of fixed size calls significant is.
    """
    p = test(RESAMPLES)
    return test(wanted) if wanted > RESAMPLES and p * (RESAMPLES + 1) <= FEW + 1 + 1e-9 else p


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p values that bound the chance of any false claim (Holm 1979).

    None is a claim that was not tested: it stays None and is not one of the family.
    """
    return _adjusted(p_values, lambda known: holm_in_blocks(known, [1.0] * len(known), [0] * len(known)))


def holm_in_blocks(p_values: Sequence[float], weights: Sequence[float], blocks: Sequence[Hashable]) -> list[float]:
    """Adjusted p values where the level of a rejected claim goes to the others of its block, then to other blocks.

    The graphical procedure of Bretz, Maurer, Brannath and Posch (2009): a block begins with the sum of its weights.
    What a rejected claim had is shared by the rest of its block by their weights; what a block had of which all are
    rejected, by the other blocks by theirs. With one block it is Holm's procedure with weights, which are above 0 in
    any unit.
    """
    own: dict[Hashable, list[int]] = {}
    for i in sorted(range(len(p_values)), key=lambda i: (p_values[i] / weights[i], i)):
        own.setdefault(blocks[i], []).append(i)
    queues = list(own.values())
    left = [np.cumsum([weights[i] for i in reversed(queue)])[::-1] for queue in queues]  # of a block, from each on
    inner = np.array([rest[0] for rest in left])
    budget = inner / max(float(inner.sum()), 1e-300)
    first = np.array([p_values[queue[0]] / weights[queue[0]] for queue in queues])
    place, largest, out = [0] * len(queues), 0.0, [0.0] * len(p_values)
    for _ in range(len(p_values)):
        b = int(np.argmin(first * inner / budget))
        i = queues[b][place[b]]
        largest = max(largest, float(first[b] * inner[b] / budget[b]))
        out[i] = min(1.0, largest)
        place[b] += 1
        if place[b] < len(queues[b]):
            inner[b] = left[b][place[b]]
            first[b] = p_values[queues[b][place[b]]] / weights[queues[b][place[b]]]
        else:
            first[b], inner[b], freed = np.inf, 1.0, budget[b]
            budget = budget * (1 + freed / max(1 - freed, 1e-300))
            budget[b] = 1.0
    return out


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p values (q) that bound the expected share of false findings; None stays None."""

    def adjust(values: list[float]) -> Sequence[float]:
        from scipy.stats import false_discovery_control  # slow to import, and often there is nothing to adjust

        return list(false_discovery_control(values))

    return _adjusted(p_values, adjust)


def _adjusted(p_values: Sequence[float | None], adjust: Callable[[list[float]], Sequence[float]]) -> list[float | None]:
    known = [p for p in p_values if p is not None]
    if any(not 0.0 <= p <= 1.0 for p in known):
        raise ValueError(f"p values are in [0, 1], got {known}")
    if not known:
        return [None] * len(p_values)
    fresh = iter(adjust(known))
    return [None if p is None else min(1.0, float(next(fresh))) for p in p_values]


# -- looks before all answers are in ----------------------------------------------------------------------------


class Look(NamedTuple):
    """One look at the answers: the share of the plan that was done, and on how many texts they were."""

    share: float
    texts: int


def spent(share: float, alpha: float = 0.05) -> float:
    """What may be spent of ``alpha`` when ``share`` of the plan is done (Kim and DeMets 1987)."""
    return float(alpha * min(1.0, max(0.0, share)) ** SPENDING)


@cache
def nominal(looks: tuple[Look, ...], alpha: float = 0.05) -> float:
    """Level of the last of ``looks`` that keeps the error of all of them together at what may be spent.

    ``looks`` are in their order, with more texts each time; none is a test at the end, the only one. ``alpha`` is
    two-sided, of all looks of the plan together.
    """
    if not looks:
        return alpha
    from scipy.special import ndtr, ndtri

    density: Floats = np.ones(1)  # of the sum so far, where no look rejected, times the step of the grid
    at: Floats = np.zeros(1)
    before, gone, level = 0, 0.0, 0.0
    for number, look in enumerate(looks):
        left = spent(look.share, alpha) - gone
        if left <= 0:
            return 0.0
        deviation = np.sqrt(look.texts - before)
        if number == 0:
            level = left
            bound = -ndtri(level / 2) * deviation
        else:
            low, high = 0.0, 40.0 * np.sqrt(look.texts)
            for _ in range(60):
                bound = (low + high) / 2
                beyond = density @ (ndtr((at - bound) / deviation) + ndtr((-bound - at) / deviation))
                low, high = (bound, high) if beyond > left else (low, bound)
            level = float(2 * ndtr(-bound / np.sqrt(look.texts)))
        gone += left
        before = look.texts
        if number + 1 < len(looks):
            at, density = _went_on(at, density, float(bound), float(deviation))
    return level


def _went_on(at: Floats, density: Floats, bound: float, deviation: float) -> tuple[Floats, Floats]:
    """Where the sum is after one more step, if it stays within ``bound``; Simpson's rule."""
    points = np.linspace(-bound, bound, GRID)
    weights = np.ones(GRID)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    weights *= (points[1] - points[0]) / 3
    steps = np.exp(-(((points[:, None] - at[None, :]) / deviation) ** 2) / 2) / (deviation * np.sqrt(2 * np.pi))
    return points, weights * (steps @ density)


def overall(looks: tuple[Look, ...], p_value: float) -> float:
    """The smallest level of all looks together at which ``p_value`` at the last of them would be enough.

    Between tabulated levels it is interpolated, below the least of them it is that one.
    """
    if not looks or (len(looks) == 1 and looks[0].share >= 1):
        return p_value
    levels = _table(looks)
    if p_value <= levels[0]:
        return float(LEVELS[0])
    return float(np.exp(np.interp(np.log(p_value), np.log(levels), np.log(LEVELS))))


@cache
def _table(looks: tuple[Look, ...]) -> Floats:
    """Nominal level of the last look for each overall level."""
    levels = [max(nominal(looks, float(level)), 1e-300) for level in LEVELS[:-1]]
    return np.maximum.accumulate(np.array([*levels, 1.0]))
