"""Rates and ratios as they were printed, and the counts that such a rate leaves open."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

EQUAL, TRUNCATED = "equal", "truncated"
_NUMBER = re.compile(r"(\d+)(?:[.,](\d+))?\s*(%?)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Printed:
    """A number as it was printed: its value, and the value of one step of its last digit."""

    value: Fraction
    step: Fraction

    def fits(self, exact: Fraction) -> str | None:
        """``equal`` if ``exact`` rounds (half up) to it, ``truncated`` if it was cut; else None."""
        steps = exact / self.step
        if math.floor(steps + Fraction(1, 2)) * self.step == self.value:
            return EQUAL
        return TRUNCATED if math.floor(steps) * self.step == self.value else None


def printed(text: str) -> Printed | None:
    """Read a printed rate or ratio: ``0.979``, ``0,979``, ``97.9 %``; None if it is no such number.

    Examples
    --------
    >>> printed("47.9 %")
    Printed(value=Fraction(479, 1000), step=Fraction(1, 1000))
    """
    found = _NUMBER.fullmatch(text.strip())
    if not found:
        return None
    whole, decimals, percent = found[1], found[2] or "", found[3]
    scale = 10 ** len(decimals) * (100 if percent else 1)
    return Printed(value=Fraction(int(whole + decimals), scale), step=Fraction(1, scale))


def counts_of(rate: Printed, n: int) -> tuple[int, int, str]:
    """The smallest and the largest count of ``n`` that a printed rate fits, and what has to be said about it.

    Counts that round to the rate; where there is none, those that it cuts; where there is none either, the nearest.

    Examples
    --------
    >>> counts_of(printed("47.9%"), 200), counts_of(printed("64.2%"), 28)[:2], counts_of(printed("0.5"), 100)[:2]
    ((96, 96, 'rounds to no share of n'), (18, 18), (45, 54))
    """
    half = rate.step / 2
    low, high = math.ceil((rate.value - half) * n), math.ceil((rate.value + half) * n) - 1
    told = ""
    if low > high:
        low, high = math.ceil(rate.value * n), math.ceil((rate.value + rate.step) * n) - 1
        told = "was cut, not rounded"
    if low > high:
        low = high = math.floor(rate.value * n + Fraction(1, 2))
        told = "rounds to no share of n"
    return max(0, low), min(n, max(high, 0)), told
