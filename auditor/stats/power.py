"""What a number of seeds can show, and what it can bound: planning before anything is asked."""

from __future__ import annotations

import math

POWER = 0.8
DISCORDANT = (0.02, 0.05, 0.10)  # shares of seeds with a changed answer that a plan is laid out for


def seeds_for_difference(
    discordant: float, difference: float, alpha: float = 0.05, power: float = POWER
) -> int:
    """Seeds that show a net difference, one pair for each seed, two-sided.

    Parameters
    ----------
    discordant : float
        Share of seeds on which the two answers differ, in (0, 1].
    difference : float
        Net difference of the two rates, in (0, discordant].

    References
    ----------
    R. J. Connor, Sample size for testing differences in proportions for the paired-sample design,
    Biometrics 43 (1987); O. S. Miettinen, The matched pairs design in the case of all-or-none responses,
    Biometrics 24 (1968).

    Examples
    --------
    >>> seeds_for_difference(0.05, 0.02)
    979
    """
    _check(discordant, difference)
    a, b = _z(1 - alpha / 2), _z(power)
    root = a * math.sqrt(discordant) + b * math.sqrt(discordant - difference**2)
    return math.ceil((root / difference) ** 2)


def seeds_for_bound(discordant: float, delta: float, alpha: float = 0.05, power: float = POWER) -> int:
    """Seeds that bound a net difference below ``delta`` where it is 0 (two one-sided tests).

    Examples
    --------
    >>> seeds_for_bound(0.05, 0.02)
    1071
    """
    _check(discordant, delta)
    a, b = _z(1 - alpha), _z(1 - (1 - power) / 2)
    return math.ceil((a + b) ** 2 * discordant / delta**2)


def detectable(seeds: int, discordant: float, alpha: float = 0.05, power: float = POWER) -> float | None:
    """Smallest net difference that ``seeds`` show; None if not even one-sided changes of that share would.

    Examples
    --------
    >>> round(detectable(979, 0.05), 3)
    0.02
    """
    from scipy.optimize import brentq

    a, b = _z(1 - alpha / 2), _z(power)

    def short(d: float) -> float:
        return a * math.sqrt(discordant) + b * math.sqrt(max(0.0, discordant - d * d)) - d * math.sqrt(seeds)

    if seeds < 1 or short(discordant) > 0:
        return None
    return float(brentq(short, 0.0, discordant))


def boundable(seeds: int, discordant: float, alpha: float = 0.05, power: float = POWER) -> float:
    """Smallest δ below which ``seeds`` bound a net difference of 0."""
    if seeds < 1:
        return 1.0
    a, b = _z(1 - alpha), _z(1 - (1 - power) / 2)
    return min(1.0, (a + b) * math.sqrt(discordant / seeds))


def unchanged_bound(seeds: int, alpha: float = 0.05) -> float:
    """Upper limit of a rate that was 0 on ``seeds`` independent seeds.

    Examples
    --------
    >>> round(unchanged_bound(299), 4)
    0.01
    """
    return 1.0 if seeds < 1 else float(1 - alpha ** (1 / seeds))


def plan(seeds: int, alpha: float = 0.05, power: float = POWER) -> dict[str, object]:
    """The power of a plan with ``seeds`` seeds, as plain data for ``--dry-run``."""
    return {
        "seeds": seeds,
        "alpha": alpha,
        "power": power,
        "delta_if_nothing_changes": unchanged_bound(seeds, alpha),
        "rows": [
            {
                "discordant": share,
                "difference": detectable(seeds, share, alpha, power),
                # Too few seeds for the formula: no run bounds less than one in which nothing changed.
                "delta": max(boundable(seeds, share, alpha, power), unchanged_bound(seeds, alpha)),
            }
            for share in DISCORDANT
        ],
    }


def _check(discordant: float, difference: float) -> None:
    if not 0 < difference <= discordant <= 1:
        raise ValueError(f"needs 0 < difference <= discordant <= 1, got {difference} and {discordant}")


def _z(quantile: float) -> float:
    from scipy.stats import norm

    return float(norm.ppf(quantile))
