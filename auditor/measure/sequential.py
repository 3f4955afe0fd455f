"""Looking at the answers before all are in, and stopping: what each look may spend of the level.

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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Shares of the plan after which the answers are looked at. Before a fifth, too few answers can have changed.
LOOKS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
POWER = 1.5  # of the share that is done: 1 spends evenly, 3 is close to O'Brien and Fleming's rule
GRID = 401
LEVELS: NDArray[np.float64] = np.concatenate([np.logspace(-8, -0.5, 31), [1.0]])


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

    Parameters
    ----------
    looks : tuple of Look
        In their order, with more texts each time; none is a test at the end, the only one.
    alpha : float
        Two-sided, of all looks of the plan together.

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

    density: NDArray[np.float64] = np.ones(1)  # of the sum so far, where no look rejected, times the step of the grid
    at: NDArray[np.float64] = np.zeros(1)
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


def _went_on(
    at: NDArray[np.float64], density: NDArray[np.float64], bound: float, deviation: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
def _table(looks: tuple[Look, ...]) -> NDArray[np.float64]:
    """Nominal level of the last look for each overall level."""
    found = [max(nominal(looks, float(level)), 1e-300) for level in LEVELS[:-1]]
    return np.maximum.accumulate(np.array([*found, 1.0]))
