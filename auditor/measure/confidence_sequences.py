"""Intervals for a rate that stay valid however often one looks and whenever one stops."""

from __future__ import annotations

METHOD = "beta-binomial mixture confidence sequence"


def confidence_sequence(
    successes: int, n: int, level: float = 0.95, *, a: float = 0.5, b: float = 0.5
) -> tuple[float, float]:
    """Always-valid interval for the rate of independent yes/no draws.

    The likelihood ratio of a Beta(a, b) mixture against one rate p is a martingale if p is the truth, so by
    Ville's inequality it ever exceeds ``1 / (1 - level)`` with probability at most ``1 - level``. The interval
    holds the rates for which it has not. It may be looked at after every draw and used to stop.

    Parameters
    ----------
    successes, n : int
        ``0 <= successes <= n``; with ``n = 0`` the interval is [0, 1].
    level : float
        Probability, in (0, 1), that the truth is inside at all times together.
    a, b : float
        The mixture; ½, ½ (Krichevsky–Trofimov) adapts to rates near 0 and 1.

    Returns
    -------
    (low, high) : tuple of float
        ``0 <= low <= successes / n <= high <= 1``.

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
    from math import lgamma, log, log1p

    from scipy.optimize import brentq

    fails = n - successes

    def log_beta(x: float, y: float) -> float:
        return lgamma(x) + lgamma(y) - lgamma(x + y)

    mixture = log_beta(a + successes, b + fails) - log_beta(a, b)
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
