"""Intervals of impact ratios, and tests of equal rates: ``x`` of ``n`` people selected, of the reference ``x0``.

References
----------
A. Donner, G. Y. Zou, Closed-form confidence intervals for functions of the normal mean and standard deviation,
Statistical Methods in Medical Research 21 (2012): limits of a ratio from the limits of its parts (MOVER-R).
C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934). J. C. Hsu, Constrained
simultaneous confidence intervals for multiple comparisons with the best, Annals of Statistics 12 (1984).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.measure.intervals import LEVEL

METHOD = "MOVER-R of Clopper–Pearson limits, to the best of all categories (Hsu, Bonferroni)"
METHOD_ONE_PER_RUN = "Clopper–Pearson on the sum of two, to the best of all categories (Hsu, Bonferroni)"


def to_best(counts: Sequence[tuple[int, int]], *, one_per_run: bool = False) -> list[tuple[float, float] | None]:
    """Return the interval of each category's rate over the highest true rate, at `LEVEL` each, of counts (x, n).

    The data name a best category, and chance helps it there. So no category is taken as given. The ratio to the best
    rate is at most the ratio to any rate: the upper limit is the lowest one against each other category, at a level
    shared among them (Bonferroni). One category is truly the best: the lower limit is the lowest one against each. The
    limits of single rates are exact, so few people give a wide interval.
    """
    if len(counts) < 2:
        return [None] * len(counts)
    x, n = np.array(counts, dtype=float).T
    limits, tail = _upper_one_per_run if one_per_run else _upper, (1 - LEVEL) / 2
    upper, back = limits(x, n, tail / (len(counts) - 1)), limits(x, n, tail)
    np.fill_diagonal(upper, np.inf)
    np.fill_diagonal(back, 1.0)
    high, low = upper.min(axis=1), 1 / back.max(axis=0)  # the lowest ratio is one over the highest the other way round
    return [(float(a), float(b)) if math.isfinite(b) else None for a, b in zip(low, high, strict=True)]


def _upper(x: NDArray[np.float64], n: NDArray[np.float64], tail: float) -> NDArray[np.float64]:
    """Upper limits of the rates (rows) over each other (columns); inf where the other may be 0."""
    from scipy.stats import beta

    rate = x / n
    most = np.where(x < n, beta.isf(tail, x + 1, np.maximum(n - x, 1)), 1.0)[:, None]
    least = np.where(x > 0, beta.ppf(tail, np.maximum(x, 1), n - x + 1), 0.0)
    own, other, below = rate[:, None], rate[None, :], (least * (2 * rate - least))[None, :]
    root = np.sqrt(np.maximum((own * other) ** 2 - most * (2 * own - most) * below, 0.0))
    limits = np.full((len(x), len(x)), np.inf)
    np.divide(own * other + root, below, out=limits, where=below > 0)
    return limits


def _upper_one_per_run(x: NDArray[np.float64], n: NDArray[np.float64], tail: float) -> NDArray[np.float64]:
    """`_upper` for first places: the share that one of two categories has of their sum."""
    from scipy.stats import beta

    share = beta.isf(tail, x[:, None] + 1, np.maximum(x, 1)[None, :])
    limits: NDArray[np.float64] = np.where(x[None, :] > 0, share / (1 - share) * n[None, :] / n[:, None], np.inf)
    return limits


def exact_test(x: int, n: int, x0: int, n0: int, *, one_per_run: bool = False) -> float:
    """Two-sided exact p value of equal rates: Fisher's test, or with ``one_per_run`` the binomial test."""
    if one_per_run:
        from scipy.stats import binomtest

        return float(binomtest(x, x + x0, n / (n + n0)).pvalue) if x + x0 else 1.0
    from scipy.stats import fisher_exact

    return min(1.0, float(fisher_exact([[x, n - x], [x0, n0 - x0]]).pvalue))


def z_score(x: int, n: int, x0: int, n0: int) -> float | None:
    """Difference of the rates in pooled standard deviations; None where everybody or nobody is selected."""
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
