"""Interval of a ratio of two rates, and the tests beside it: ``x`` of ``n`` people selected, of the reference ``x0``.

References
----------
P. A. R. Koopman, Confidence intervals for the ratio of two binomial proportions, Biometrics 40 (1984). J. C. Hsu,
Constrained simultaneous confidence intervals for multiple comparisons with the best, Annals of Statistics 12 (1984).
C. W. Dunnett, A multiple comparison procedure for comparing several treatments with a control, JASA 50 (1955).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from auditor.measure.intervals import LEVEL


@dataclass(frozen=True, kw_only=True, slots=True)
class RatioInterval:
    """Limits of a ratio; ``high`` None with a reason where the data set no upper limit, both where none."""

    low: float | None = None
    high: float | None = None
    method: str = ""
    reason: str = ""


def interval(x: int, n: int, x0: int, n0: int, *, level: float = LEVEL, one_per_run: bool = False) -> RatioInterval:
    """Confidence interval of ``(x / n) / (x0 / n0)``: selected and all people of the category and of the reference.

    Koopman's score interval by statsmodels. Where a rate is 0 or 1 its closed form breaks down (it then gives
    complex numbers, or an interval that does not hold the ratio), and the same statistic is inverted by
    bisection instead. With ``one_per_run`` the interval conditions on ``x + x0`` (Clopper–Pearson).

    Examples
    --------
    >>> made = interval(555, 1181, 667, 1390)
    >>> round(made.low, 3), round(made.high, 3)
    (0.902, 1.062)
    """
    if not x0:
        return RatioInterval(reason="the rate of the reference is 0")
    if one_per_run:
        from scipy.stats import binomtest

        limits = binomtest(x, x + x0).proportion_ci(level, "exact")
        low, high = (math.inf if share >= 1 else share / (1 - share) * n0 / n for share in (limits.low, limits.high))
        return RatioInterval(low=float(low), high=float(high), method="Clopper–Pearson on the sum of both")
    if 0 < x < n and x0 < n0:
        from statsmodels.stats.proportion import confint_proportions_2indep

        both = confint_proportions_2indep(
            x, n, x0, n0, compare="ratio", method="score", correction=False, alpha=1 - level
        )
        first, last = map(complex, both)
        sound = not first.imag and not last.imag and math.isfinite(last.real)
        if sound and 0 <= first.real <= x * n0 / (n * x0) <= last.real:
            return RatioInterval(low=first.real, high=last.real, method="Koopman score")
    low, high = invert_score(x, n, x0, n0, level)
    return RatioInterval(low=low, high=high, method="Koopman score, inverted")


def against_best(
    own: tuple[int, int], reference: tuple[int, int], others: Sequence[tuple[int, int]], *, one_per_run: bool = False
) -> RatioInterval:
    """Interval of a ratio to a reference that was picked because its rate is the highest of all.

    The rate of such a reference is too high by chance, so the interval of `interval` lies too low: with fourteen
    equal rates it misses the ratio 1 in about one of five cases. Here the upper limit is that of a comparison with
    every category at once (critical value for the largest of correlated normal deviates), and the lower limit the
    lowest of those against each: it holds for whichever category is truly the best. ``others`` are all further
    categories that hold anybody; all are selected and all people.

    Examples
    --------
    >>> alone = against_best((555, 1181), (667, 1390), [])
    >>> round(alone.low, 3), round(alone.high, 3)
    (0.902, 1.062)
    """
    plain = interval(*own, *reference, one_per_run=one_per_run)
    if plain.low is None or not others:
        return plain
    wide = _level_for_all(own, (reference, *others), one_per_run)
    high = interval(*own, *reference, level=wide, one_per_run=one_per_run).high
    low = plain.low
    for other in others:
        # The lowest ratio to another category, which may have no selected people, is one over the highest back.
        back = interval(*other, *own, one_per_run=one_per_run).high if own[0] else None
        low = min(low, 1 / back if back else 0.0)
    return RatioInterval(low=low, high=high, method=f"{plain.method}, reference chosen by the data")


def _level_for_all(own: tuple[int, int], others: Sequence[tuple[int, int]], one_per_run: bool) -> float:
    """The two-sided level of one comparison whose upper limits hold for all ``others`` together at `LEVEL`."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def variance(x: int, n: int) -> float:  # of the logarithm of a rate
        return 1 / (x + 0.5) - (0.0 if one_per_run else 1 / (n + 1))

    # The deviates share the category's own error: corr(j, k) = b_j b_k, which leaves an integral over one normal.
    mine = variance(*own)
    shared = np.array([mine / (mine + variance(*other)) for other in others])[:, None]
    at = np.linspace(-8.0, 8.0, 401)
    weight = norm.pdf(at) * (at[1] - at[0])

    def excess(critical: float) -> float:
        below = norm.cdf((critical + np.sqrt(shared) * at) / np.sqrt(1 - shared)).prod(axis=0)
        return float((weight * below).sum()) - (1 + LEVEL) / 2

    return float(2 * norm.cdf(brentq(excess, 0.0, 8.0, xtol=1e-6)) - 1)


def invert_score(x: int, n: int, x0: int, n0: int, level: float) -> tuple[float, float]:
    """Limits where Koopman's statistic reaches the chi-square quantile; x0 at least 1."""
    from scipy.optimize import brentq
    from scipy.stats import chi2

    limit = float(chi2.ppf(level, 1))

    def excess(log_ratio: float) -> float:
        return score_statistic(math.exp(log_ratio), x, n, x0, n0) - limit

    def beyond(start: float, step: float, sign: float = 1.0) -> float:
        while sign * excess(start + step) <= 0:
            start, step = start + step, 2 * step
        return start + step

    start = math.log(x * n0 / (n * x0)) if x else math.log(0.5 / n)
    low = 0.0
    if x:
        low = math.exp(brentq(excess, beyond(start, -1.0), start, xtol=1e-12))
    elif excess(start) > 0:
        start = beyond(start, -1.0, sign=-1.0)
    return low, math.exp(brentq(excess, start, beyond(start, 1.0), xtol=1e-12))


def score_statistic(ratio: float, x: int, n: int, x0: int, n0: int) -> float:
    """Pearson's chi-square of the two counts, at the rates that are likeliest under a given ratio > 0."""
    a = (n + n0) * ratio
    b = -((n + x0) * ratio + x + n0)
    c = x + x0
    root = math.sqrt(max(b * b - 4 * a * c, 0.0))
    p0 = min(2 * c / (-b + root), 1.0, 1.0 / ratio)
    return _term(x, n, p0 * ratio) + _term(x0, n0, p0)


def _term(x: int, n: int, p: float) -> float:
    difference, variance = x - n * p, n * p * (1 - p)
    if variance <= 0.0:
        return 0.0 if abs(difference) < 1e-9 * n else math.inf
    return difference * difference / variance


def exact_test(x: int, n: int, x0: int, n0: int, *, one_per_run: bool = False) -> float:
    """Two-sided exact p value of equal rates: Fisher's test, or with ``one_per_run`` the binomial test.

    Examples
    --------
    >>> round(exact_test(7, 17, 215, 412), 2)
    0.46
    """
    if one_per_run:
        from scipy.stats import binomtest

        return float(binomtest(x, x + x0, n / (n + n0)).pvalue) if x + x0 else 1.0
    from scipy.stats import fisher_exact

    return min(1.0, float(fisher_exact([[x, n - x], [x0, n0 - x0]]).pvalue))


def z_score(x: int, n: int, x0: int, n0: int) -> float | None:
    """Difference of the rates in pooled standard deviations; None where everybody or nobody is selected.

    Examples
    --------
    >>> round(z_score(95, 226, 215, 412), 2)
    -2.45
    """
    pooled = (x + x0) / (n + n0)
    variance = pooled * (1 - pooled) * (1 / n + 1 / n0)
    return (x / n - x0 / n0) / math.sqrt(variance) if variance > 0 else None


def omnibus(counts: Sequence[tuple[int, int]], *, one_per_run: bool = False) -> float | None:
    """Chi-square p value of equal rates in all categories (x of n each); None where there is no spread."""
    selected, total = sum(x for x, _ in counts), sum(n for _, n in counts)
    if len(counts) < 2 or selected in (0, total):
        return None
    if one_per_run:
        from scipy.stats import chisquare

        return float(chisquare([x for x, _ in counts], [selected * n / total for _, n in counts]).pvalue)
    from scipy.stats import chi2_contingency

    return float(chi2_contingency([[x for x, _ in counts], [n - x for x, n in counts]])[1])
