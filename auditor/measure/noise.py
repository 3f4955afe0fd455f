"""How much a model disagrees with itself, and whether a change is more than that."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from auditor.core.types import Estimate
from auditor.measure.intervals import mean_share

Arm = Sequence[Hashable]  # the labels of one input's replicates


def disagreement(labels: Arm) -> float | None:
    """Share of pairs of replicates that differ; None for fewer than two. An unbiased U statistic.

    Examples
    --------
    >>> disagreement(["a", "b"])
    1.0
    """
    n = len(labels)
    if n < 2:
        return None
    equal = sum(count * (count - 1) for count in Counter(labels).values())
    return 1 - equal / (n * (n - 1))


def noise_floor(seeds: Iterable[Sequence[Arm]], level: float = 0.95) -> Estimate | None:
    """Same-prompt disagreement: how often two answers to one identical prompt differ.

    Parameters
    ----------
    seeds : iterable of sequences of arms
        For each seed the replicates of each of its prompts. Prompts with fewer than two answers are left out.
    level : float
        Confidence level.

    Returns
    -------
    Estimate or None
        Mean over seeds of the mean over prompts; ``n_skipped`` counts seeds without a repeated prompt. None
        if no prompt was answered twice.

    Examples
    --------
    >>> noise_floor([[["a", "a"]], [["a", "b"]]]).value
    0.5
    """
    means: list[float] = []
    pairs = skipped = 0
    for arms in seeds:
        found = [(d, len(arm)) for arm in arms if (d := disagreement(arm)) is not None]
        if not found:
            skipped += 1
            continue
        means.append(min(1.0, sum(d for d, _ in found) / len(found)))
        pairs += sum(n * (n - 1) // 2 for _, n in found)
    return mean_share(means, pairs, level, n_skipped=skipped) if means else None


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
