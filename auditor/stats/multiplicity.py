"""Many claims at once. Holm for claims fixed in advance, Benjamini–Hochberg for exploration."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p values that bound the chance of any false claim (Holm 1979).

    Parameters
    ----------
    p_values : sequence of float or None
        In [0, 1]; None is a claim that was not tested: it stays None and is not one of the family.

    Examples
    --------
    >>> holm([0.01, None, 0.04])
    [0.02, None, 0.04]
    """

    def adjust(values: list[float]) -> Sequence[float]:
        # statsmodels has it, at the price of a full garbage collection at each call.
        order = sorted(range(len(values)), key=values.__getitem__)
        out, largest = [0.0] * len(values), 0.0
        for rank, place in enumerate(order):
            largest = max(largest, (len(values) - rank) * values[place])
            out[place] = largest
        return out

    return _adjusted(p_values, adjust)


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p values (q) that bound the expected share of false findings; None stays None.

    Examples
    --------
    >>> benjamini_hochberg([])
    []
    """

    def adjust(values: list[float]) -> Sequence[float]:
        from scipy.stats import false_discovery_control

        return list(false_discovery_control(values))

    return _adjusted(p_values, adjust)


def _adjusted(
    p_values: Sequence[float | None], adjust: Callable[[list[float]], Sequence[float]]
) -> list[float | None]:
    given = [p for p in p_values if p is not None]
    if any(not 0.0 <= p <= 1.0 for p in given):
        raise ValueError(f"p values are in [0, 1], got {given}")
    if not given:
        return [None] * len(p_values)
    fresh = iter(adjust(given))
    return [None if p is None else min(1.0, float(next(fresh))) for p in p_values]
