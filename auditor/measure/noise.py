"""What noise alone makes look hidden."""

from __future__ import annotations

import math


def hidden_by_chance(noise: float, replicates: int = 1) -> tuple[float, float | None]:
    """How often noise alone looks hidden, for two attributes.

    If each of four independent answers (original, two atomic, joint) is off its usual label with probability
    d, the joint label differs while both atomic ones do not with d(1 − d)³ + d³(1 − d). With an odd number
    of replicates and a majority, d is the chance that most of them are off.

    Parameters
    ----------
    noise : float
        Same-prompt disagreement, in [0, 1]: for two labels it is 2d(1 − d).
    replicates : int
        Answers behind each majority.

    Returns
    -------
    rate : float
        Share of joint variants that look hidden.
    share : float or None
        Share of joint changes that look hidden; None without noise.

    Examples
    --------
    >>> rate, share = hidden_by_chance(2 * 0.02 * 0.98)
    >>> round(rate, 4), round(share, 2)
    (0.0188, 0.48)
    """
    from scipy.stats import binom

    single = (1 - math.sqrt(max(0.0, 1 - 2 * noise))) / 2
    d = float(binom.sf(replicates // 2, replicates, single)) if replicates > 1 else single
    if d <= 0.0:
        return 0.0, None
    return d * (1 - d) ** 3 + d**3 * (1 - d), ((1 - d) ** 2 + d**2) / 2
