"""P values: of differences by text and by resampling, of many claims at once, of several looks at the answers.

Holm for claims fixed in advance, Benjamini–Hochberg for exploration.

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
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from auditor.measure.observations import Floats

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
