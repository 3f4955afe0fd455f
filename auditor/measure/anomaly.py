"""Which of many groups or tokens stand out: the median-deviation index, and what holds where it does not.

The index of ASTRAEA (Soremekun et al. 2022, §6, Algorithms 3 and 4) divides a distance from the median by the
median of such distances. That median is 0 as soon as more than half of the values are equal, which is usual for
rates near 0, and with few values chance alone passes the threshold often. So exact tests and shrunken rates
stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

THRESHOLD = 2.0  # the published threshold of the absolute index
MIN_VALUES = 10  # fewer values give no index here
MIN_UNITS = 30  # a rate of fewer units takes no part in the index here
LEVEL = 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class Indices:
    """Anomaly indices of several values, or why there are none.

    Attributes
    ----------
    values : tuple of float or None
        One for each value, without unit; None where it has none.
    median, mad : float or None
        The median of the values that took part, and the median absolute deviation in the values' unit, scaled
        as asked; None where there are no indices, except that ``mad`` is 0.0 where that is the reason.
    reason : str
        Why there are none; empty where there are.
    """

    values: tuple[float | None, ...]
    median: float | None
    mad: float | None
    reason: str = ""


def anomaly_indices(
    values: Sequence[float],
    units: Sequence[int] | None = None,
    *,
    normal: bool = True,
    min_values: int = MIN_VALUES,
    min_units: int = MIN_UNITS,
) -> Indices:
    """Distance of each value from the median, in median absolute deviations, with its sign.

    Parameters
    ----------
    values : sequence of float, shape (k,)
        Rates or mean scores.
    units : sequence of int, optional
        Independent units behind each value; one with fewer than ``min_units`` takes no part.
    normal : bool, default True
        Scale the deviation so that an index of 2 is two standard deviations of a normal distribution, which is
        how the paper reads its threshold. False divides by the plain deviation, which is how the paper
        writes its formula; the same threshold then flags about 18 % of normal values.
    min_values, min_units : int
        Fewer values than ``min_values`` give no index.

    Examples
    --------
    >>> anomaly_indices([0.1, 0.2, 0.3, 0.4, 9.0], min_values=5, normal=False).values[4]
    87.0
    >>> anomaly_indices([0.0] * 11 + [0.5]).reason
    'not computable: more than half of the values are equal, so their median deviation is 0'
    """
    import numpy as np
    from scipy.stats import median_abs_deviation

    enough = [units is None or units[i] >= min_units for i in range(len(values))]
    part = np.asarray([v for v, ok in zip(values, enough, strict=True) if ok], dtype=float)
    none: tuple[float | None, ...] = (None,) * len(values)
    if len(part) < min_values:
        what = f" with {min_units} or more cases" if units is not None else ""
        return Indices(
            values=none, median=None, mad=None, reason=f"not computable: fewer than {min_values} values{what}"
        )
    median = float(np.median(part))
    mad = float(median_abs_deviation(part, scale="normal" if normal else 1.0))
    # Equal values can differ in the last bits; such a deviation is none.
    if mad <= 1e-12 * max(1.0, abs(median)):
        return Indices(
            values=none,
            median=median,
            mad=0.0,
            reason="not computable: more than half of the values are equal, so their median deviation is 0",
        )
    return Indices(
        values=tuple(round((float(v) - median) / mad, 9) if ok else None for v, ok in zip(values, enough, strict=True)),
        median=median,
        mad=mad,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Prior:
    """A beta distribution of rates; ``alpha + beta`` is how many units of evidence it is worth."""

    alpha: float
    beta: float


MAX_WORTH = 1e6  # a prior worth more than this says that all rates are equal
MIN_WORTH = 0.5


def fit_prior(errors: Sequence[int], totals: Sequence[int]) -> Prior | None:
    """Beta distribution that the rates of a family come from, by maximum marginal likelihood.

    Parameters
    ----------
    errors, totals : sequence of int, shape (k,)
        Events and units of each member; members without units say nothing.

    Returns
    -------
    Prior or None
        None where there are fewer than two members with units, or where no unit or every unit has the event.
    """
    import numpy as np
    from scipy.special import betaln

    pairs = [(e, n) for e, n in zip(errors, totals, strict=True) if n]
    x = np.asarray([e for e, _ in pairs], dtype=float)
    n = np.asarray([n for _, n in pairs], dtype=float)
    if len(pairs) < 2 or x.sum() in (0, n.sum()):
        return None
    centre = math.log(x.sum() / (n.sum() - x.sum()))
    low, high = math.log(MIN_WORTH), math.log(MAX_WORTH)
    spans = ((centre - 2.0, centre + 2.0), (low, high))
    alpha = beta = 1.0
    # The likelihood is smooth with one top: a grid, then a finer one around its best point, is exact enough
    # and cannot wander off along the flat ridge of equal rates.
    for _ in range(3):
        logits = np.linspace(*spans[0], 21)
        worths = np.linspace(*spans[1], 41)
        mean, worth = (1 / (1 + np.exp(-logits)))[:, None], np.exp(worths)[None, :]
        a, b = (mean * worth)[..., None], ((1 - mean) * worth)[..., None]
        gain = (betaln(a + x, b + n - x) - betaln(a, b)).sum(axis=-1)
        i, j = np.unravel_index(int(np.argmax(gain)), gain.shape)
        alpha, beta = float(a[i, j, 0]), float(b[i, j, 0])
        step = (float(logits[1] - logits[0]), float(worths[1] - worths[0]))
        spans = (
            (float(logits[i]) - step[0], float(logits[i]) + step[0]),
            (max(low, float(worths[j]) - step[1]), min(high, float(worths[j]) + step[1])),
        )
    return Prior(alpha=alpha, beta=beta)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shrunken:
    """A rate pulled towards those of its family, with the limits of its 95 % credible interval."""

    value: float
    low: float
    high: float


def shrink(prior: Prior, errors: int, total: int, level: float = LEVEL) -> Shrunken:
    """Posterior mean and credible interval of one rate under ``prior``."""
    from scipy.stats import beta

    a, b = prior.alpha + errors, prior.beta + total - errors
    tail = (1 - level) / 2
    return Shrunken(value=a / (a + b), low=float(beta.ppf(tail, a, b)), high=float(beta.ppf(1 - tail, a, b)))


def funnel_p(errors: int, total: int, family_errors: int, family_total: int) -> float | None:
    """Exact two-sided binomial p value of one rate against the pooled rate of its family, itself included.

    Including it keeps the pooled rate from being 0 where the member has the only events; the p value is on the
    safe side for it. None where the member is the whole family.
    """
    from scipy.stats import binomtest

    if not total or family_total <= total:
        return None
    return float(binomtest(errors, total, family_errors / family_total).pvalue)
