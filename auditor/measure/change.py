"""Whether a model changed between dates, looked at again and again.

Each text has one value at each date: the difference between two groups, or the mean outcome of its versions. If the
model stayed what it was, the dates of a text are in no particular order: its last value could as well be any of them,
and texts are answered independently. So the p value of a look compares the mean distance of the last values from those
before with what it is when each text's last value is drawn from all of its own. Each p value becomes an e-value
(Vovk and Wang 2021), and their products, begun at every look with weights that sum to one, are an e-process: that it
ever reaches 1 / alpha has a chance of alpha at most, at however many looks (Ville's inequality).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ALPHA = 0.01  # of all looks together, over all figures that are watched
DRAWS = 9_999
PARTS = 2_000_000  # drawn values that are held at once
LEAST = 6  # texts


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """One look at one figure.

    Attributes
    ----------
    difference : float or None
        Mean of the last values minus mean of those before, over texts; None where there is nothing before.
    p_value, e_value : float or None
        Of this look alone.
    capital : float
        Of all looks since the last change: a change is found where it reaches ``needed``.
    needed : float
    texts, dates : int
        Texts that were compared, and dates before this one.
    """

    difference: float | None
    p_value: float | None
    e_value: float | None
    capital: float
    needed: float
    texts: int
    dates: int

    @property
    def changed(self) -> bool:
        """Whether a change was found at this look."""
        return self.capital >= self.needed


def e_value(p: float) -> float:
    """What a bet against uniform p values returns (the mixture of ``k p^(k − 1)`` over k from 0 to 1).

    Examples
    --------
    >>> round(e_value(0.0001), 1), e_value(1.0)
    (117.8, 0.5)
    """
    if p >= 1:
        return 0.5
    log = math.log(p)
    return (1 - p + p * log) / (p * log * log)


def p_value(before: Floats, now: Floats, rng: np.random.Generator, draws: int = DRAWS) -> float:
    """How often the last values would lie as far off, were each drawn from all values of its text.

    Parameters
    ----------
    before : (dates, texts) array
        Values at earlier dates.
    now : (texts,) array
        The last ones.
    rng, draws
        Of the Monte Carlo test, which is exact: the order that there was counts as one draw.
    """
    values = np.vstack([before, now])
    moved = values[:, np.ptp(values, axis=0) > 0]  # the others are the same whatever is drawn
    dates, texts = moved.shape
    if not texts:
        return 1.0
    total = moved.sum(axis=0)
    seen = abs(float((moved[-1] - (total - moved[-1]) / (dates - 1)).sum()))
    beyond = 0
    for start in range(0, draws, max(1, PARTS // texts)):
        size = min(max(1, PARTS // texts), draws - start)
        drawn = np.take_along_axis(moved, rng.integers(dates, size=(size, texts)), axis=0)
        apart = np.abs((drawn - (total - drawn) / (dates - 1)).sum(axis=1))
        beyond += int((apart >= seen - 1e-9).sum())
    return (1 + beyond) / (1 + draws)


class Watch:
    """Looks at one figure, date by date; begins anew after a change.

    Parameters
    ----------
    figures : int
        How many are watched together: alpha is shared by them.
    seed : int
        Of the draws.
    """

    def __init__(self, figures: int = 1, *, alpha: float = ALPHA, seed: int = 7) -> None:
        self._needed = figures / alpha
        self._rng = np.random.default_rng(seed)
        self._begin()

    def _begin(self) -> None:
        self._before: list[dict[str, float]] = []
        self._looks = 0
        self._capital = 0.0

    def look(self, values: dict[str, float]) -> Look:
        """Take the values of one more date, by text."""
        texts = sorted(set(values).intersection(*self._before)) if self._before else []
        dates = len(self._before)
        told = Look(
            difference=None, p_value=None, e_value=None, capital=0.0, needed=self._needed, texts=len(texts), dates=dates
        )
        if len(texts) >= LEAST:
            before = np.array([[one[t] for t in texts] for one in self._before])
            now = np.array([values[t] for t in texts])
            p = p_value(before, now, self._rng)
            e = e_value(p)
            self._looks += 1
            self._capital = (self._capital + 1 / (self._looks * (self._looks + 1))) * e
            told = Look(
                difference=float(now.mean() - before.mean()),
                p_value=p,
                e_value=e,
                capital=self._capital + 1 / (self._looks + 1),
                needed=self._needed,
                texts=len(texts),
                dates=dates,
            )
        if told.changed:
            self._begin()
        self._before.append(values)
        return told


def moved(before: Sequence[dict[str, float]], now: dict[str, float], most: int) -> list[tuple[str, float, float]]:
    """The texts whose values moved most: text, mean before, now; those that did not move are left out."""
    told = [
        (text, float(np.mean([one[text] for one in before])), value)
        for text, value in now.items()
        if before and all(text in one for one in before)
    ]
    apart = [one for one in told if abs(one[2] - one[1]) > 1e-9]
    return sorted(apart, key=lambda one: (-abs(one[2] - one[1]), one[0]))[:most]
