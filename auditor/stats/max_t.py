"""Westfall and Young's step-down max-T: p values of correlated differences of the same seeds.

Attributes are tested on the same seeds, so their differences go together. Holm's correction has to reckon with
the worst case; flipping the sign of a whole seed, in all its differences at once, keeps their correlation.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal

import numpy as np

from auditor.stats.paired import RESAMPLES


def max_t(
    differences: Sequence[Mapping[Hashable, float]],
    *,
    rng: np.random.Generator,
    alternative: Literal["two-sided", "greater"] = "greater",
    resamples: int = RESAMPLES,
) -> list[float]:
    """Adjusted p values that bound the chance of any false claim among the hypotheses.

    Parameters
    ----------
    differences : sequence of mapping of seed to float
        For each hypothesis one difference per seed; a seed may be missing in some of them.
    rng : numpy.random.Generator
        Draws the signs, one for each seed and resample.
    alternative : {"two-sided", "greater"}
        "greater": the mean difference is above 0.
    resamples : int
        Number of sign patterns; the observed one is counted in.

    Returns
    -------
    list of float
        In (0, 1], in the order given; 1 where all differences are 0. Never larger than the p values of single-step
        max-T on the same draws, and in the order of the statistics.

    References
    ----------
    P. H. Westfall, S. S. Young, Resampling-Based Multiple Testing, Wiley 1993, algorithm 2.8 (step-down).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> same = {seed: 1.0 for seed in range(10)}
    >>> first, second, none = max_t([same, same, {0: 0.0}], rng=rng)
    >>> first == second < 0.01, none
    (True, 1.0)
    """
    seeds = {seed: i for i, seed in enumerate(sorted({s for d in differences for s in d}, key=str))}
    table = np.zeros((len(differences), len(seeds)))
    for row, by_seed in zip(table, differences, strict=True):
        for seed, value in by_seed.items():
            row[seeds[seed]] = value
    # Flips leave the sum of squares as it is, so this is monotone in the t statistic of each hypothesis.
    size = np.sqrt((table**2).sum(axis=1))
    live = np.flatnonzero(size > 0)
    out = [1.0] * len(differences)
    if not len(live):
        return out
    scaled = table[live] / size[live, None]
    signs = rng.integers(0, 2, size=(resamples, len(seeds))) * 2.0 - 1.0
    flipped, observed = signs @ scaled.T, scaled.sum(axis=1)
    if alternative == "two-sided":
        flipped, observed = np.abs(flipped), np.abs(observed)
    order = np.argsort(-observed, kind="stable")
    # Largest statistic among the hypotheses not yet stepped over, for each pattern.
    highest = np.maximum.accumulate(flipped[:, order[::-1]], axis=1)[:, ::-1]
    beyond = (highest >= observed[order] - 1e-9).sum(axis=0)
    adjusted = np.maximum.accumulate((1 + beyond) / (1 + resamples))
    for place, p in zip(order, adjusted, strict=True):
        out[int(live[place])] = float(p)
    return out
