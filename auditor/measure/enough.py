"""How many texts a claim needs before its answers can decide anything."""

from __future__ import annotations

import math
from functools import cache

ALPHA = 0.05  # of a family of claims
POWER = 0.8
LARGE = 0.3  # a net difference that fewer texts than are needed would not show
ASSUMED_FLIPS = 0.016  # of edits that say nothing about a person
FEW = 0.05  # of its level, for a claim with too few texts: all of them would have to differ


@cache
def texts_needed(share: float = 1.0) -> int:
    """Texts from which on a net difference of 30 points is shown in 80 % of runs, where answers are labels.

    Each text is asked once about either group; half of the answers are favourable, and `ASSUMED_FLIPS` of them change
    with any edit.

    Parameters
    ----------
    share : float
        Of the level of 5 %.

    Examples
    --------
    >>> texts_needed(), texts_needed(0.1)
    (23, 40)
    """
    from scipy.stats import norm, t

    spread = LARGE + 2 * ASSUMED_FLIPS - LARGE**2
    n = 6
    while (t.isf(ALPHA * share / 2, n - 1) + norm.ppf(POWER)) * math.sqrt(spread / n) > LARGE:
        n += 1
    return n
