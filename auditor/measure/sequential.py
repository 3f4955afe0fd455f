"""Looking at answers before all are in, and stopping: levels of looks at claims, and intervals valid at all times.

A test that is made again and again, and believed when it comes out, errs far more often than its level says. Here
the level is spent little by little, as a function of the share of the plan that is done (Lan and DeMets 1983), so
that all looks together err as often as one test; when one looks may depend on anything but the answers. Later looks
hold the earlier texts too: their joint distribution is that of sums of independent normal steps (Armitage,
McPherson and Rowe 1969).

A p value of one look becomes the smallest *overall* level that would have been enough to reject there. Those can be
adjusted for many claims as any other p values (Maurer and Bretz 2013), which nominal levels of a look cannot.

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

from functools import cache
from math import lgamma, log, log1p
from typing import NamedTuple

import numpy as np

from auditor.measure.observations import Floats

# Shares of the plan after which the answers are looked at. Before a fifth, too few answers can have changed.
LOOKS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
POWER = 1.5  # of the share that is done: 1 spends evenly, 3 is close to O'Brien and Fleming's rule
GRID = 401
SEQUENCE = "beta-binomial mixture confidence sequence"
LEVELS: Floats = np.concatenate([np.logspace(-8, -0.5, 31), [1.0]])


class Look(NamedTuple):
    """One look at the answers: the share of the plan that was done, and on how many texts they were."""

    share: float
    texts: int


def spent(share: float, alpha: float = 0.05) -> float:
    """What may be spent of ``alpha`` when ``share`` of the plan is done (Kim and DeMets 1987).

    Examples
    --------
    >>> [round(spent(share), 4) for share in (0.2, 0.4, 0.6, 0.8, 1.0)]
    [0.0045, 0.0126, 0.0232, 0.0358, 0.05]
    """
    return float(alpha * min(1.0, max(0.0, share)) ** POWER)


def nominal(looks: tuple[Look, ...], alpha: float = 0.05) -> float:
    """Level of the last of ``looks`` that keeps the error of all of them together at what may be spent.

    ``looks`` are in their order, with more texts each time; none is a test at the end, the only one. ``alpha`` is
    two-sided, of all looks of the plan together.

    Examples
    --------
    One look is one test; of two that spend alike, the second gets more than half, for it repeats the first in part.

    >>> nominal((Look(1.0, 100),))
    0.05
    >>> first, second = nominal((Look(0.5, 50),), 0.05), nominal((Look(0.5, 50), Look(1.0, 100)), 0.05)
    >>> round(first, 4), 0.05 - first < second < 0.05
    (0.0177, True)
    """
    return _nominal(looks, alpha) if looks else alpha


@cache
def _nominal(looks: tuple[Look, ...], alpha: float) -> float:
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

    Examples
    --------
    >>> overall((Look(1.0, 100),), 0.03)
    0.03
    >>> overall((Look(0.2, 20), Look(0.4, 40)), 0.004) > 0.02
    True
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


def confidence_sequence(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
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

    Examples
    --------
    >>> low, high = confidence_sequence(0, 300)
    >>> low, round(high, 3)
    (0.0, 0.021)
    """
    if not 0 <= successes <= n or not 0 < level < 1:
        raise ValueError(f"needs 0 <= successes <= n and 0 < level < 1, got {successes}, {n}, {level}")
    if n == 0:
        return 0.0, 1.0
    from scipy.optimize import brentq

    fails = n - successes

    def log_beta(x: float, y: float) -> float:
        return lgamma(x) + lgamma(y) - lgamma(x + y)

    mixture = log_beta(0.5 + successes, 0.5 + fails) - log_beta(0.5, 0.5)
    bound = -log(1 - level)

    def below(hits: int, misses: int) -> float:
        """The limit under ``hits / n``, the share of one of the two outcomes; ``hits`` is at least 1."""

        def excess(p: float) -> float:
            # 0 log 0 is 0: without misses the term is left out
            likelihood = hits * log(p) + (misses * log1p(-p) if misses else 0.0)
            return mixture - likelihood - bound

        return float(brentq(excess, 1e-300, hits / n, xtol=1e-13, rtol=1e-10))

    rate = successes / n
    low = below(successes, fails) if successes else 0.0
    # Through the other outcome: near 1 floats are too far apart to hold the limit of very many draws.
    high = 1.0 - below(fails, successes) if fails else 1.0
    return min(low, rate), max(high, rate)
