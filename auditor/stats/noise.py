"""How much a model disagrees with itself, and whether a change is more than that."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.stats.intervals import mean_share
from auditor.types import Estimate

PERMUTATIONS = 1999
_CHUNK = 2_000_000  # array cells per batch of permutations

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Excess:
    """Disagreement between original and variants beyond that within each of them.

    Attributes
    ----------
    value : float
        Mean over seeds of ``values``; 0 is expected where the change does nothing. It can be negative.
    values : tuple of float
        The excess of each seed that could be measured, in order.
    p_value : float
        One-sided, of the permutation test; in (0, 1].
    n, n_skipped : int
        Seeds measured, and seeds that could not be.
    discordant : int
        Seeds with an excess above 0.
    permutations : int
        How many were drawn.
    """

    value: float
    values: tuple[float, ...]
    p_value: float
    n: int
    n_skipped: int
    discordant: int
    permutations: int


def seed_excess(original: Arm, variants: Sequence[Arm]) -> float | None:
    """Excess disagreement of one seed: between the original and its variants, minus within the arms.

    Between is the mean, over variants, of the share of (original, variant) pairs of answers that differ.
    Within is the mean of the original's own disagreement and of the mean of the variants' own. If all answers
    of the seed come from one distribution, each of these shares has the same expectation, so the expectation
    of the excess is 0. For one variant its expectation is half the squared distance of the two label
    distributions: 1 for a change that always happens.

    Returns
    -------
    float or None
        None without answers on both sides, or without a repeated prompt.
    """
    arms = [arm for arm in variants if len(arm)]
    if not len(original) or not arms:
        return None
    counts = Counter(original)
    between = sum(1 - sum(counts[label] for label in arm) / (len(original) * len(arm)) for arm in arms) / len(
        arms
    )
    own = disagreement(original)
    others = [d for arm in arms if (d := disagreement(arm)) is not None]
    within = [d for d in (own, sum(others) / len(others) if others else None) if d is not None]
    return between - sum(within) / len(within) if within else None


def between_within(
    originals: Sequence[Arm],
    variants: Sequence[Sequence[Arm]],
    *,
    rng: np.random.Generator,
    permutations: int = PERMUTATIONS,
) -> Excess | None:
    """Test whether answers to variants differ from answers to originals more than answers to one prompt do.

    Under "what was changed makes no difference", all answers of a seed are exchangeable, whatever the model's
    noise. The test shuffles them among the seed's prompts; the statistic is the mean excess over seeds. With
    the observed arrangement counted in, its p value is valid for any number of permutations. It speaks about
    these seeds; the interval of the rate speaks about seeds like them.

    Parameters
    ----------
    originals : sequence of arms, shape (seeds,)
        Labels of the replicates of each seed's original.
    variants : sequence of sequences of arms, shape (seeds, variants of the seed)
        Labels of the replicates of each variant.
    rng : numpy.random.Generator
        Draws the permutations.
    permutations : int
        How many.

    Returns
    -------
    Excess or None
        None if no seed could be measured (nothing was repeated).
    """
    if len(originals) != len(variants):
        raise ValueError(f"{len(originals)} originals, but variants of {len(variants)} seeds")
    values: list[float] = []
    groups: dict[tuple[int, ...], list[tuple[int, list[int]]]] = defaultdict(list)
    for original, others in zip(originals, variants, strict=True):
        arms = [original, *(arm for arm in others if len(arm))]
        if not len(original) or len(arms) < 2 or max(map(len, arms)) < 2:
            continue
        codes: dict[Hashable, int] = {}
        coded = [codes.setdefault(label, len(codes)) for arm in arms for label in arm]
        if len(codes) > 1:  # where all answers are equal, every arrangement has the excess 0
            groups[tuple(map(len, arms))].append((len(values), coded))
        values.append(0.0)
    if not values:
        return None
    sums = np.zeros(permutations)
    for sizes in sorted(groups):
        answers = np.array([coded for _, coded in groups[sizes]], dtype=np.int64)
        for (place, _), value in zip(groups[sizes], _excess(answers[None], sizes)[0], strict=True):
            values[place] = float(value)
        sums += _permuted_sums(answers, sizes, permutations, rng)
    observed = math.fsum(values)
    # The tolerance makes rounding count as a tie, which is the safe side.
    reached = int(np.count_nonzero(sums >= observed - 1e-9))
    return Excess(
        value=observed / len(values),
        values=tuple(values),
        p_value=(1 + reached) / (1 + permutations),
        n=len(values),
        n_skipped=len(originals) - len(values),
        discordant=sum(value > 1e-9 for value in values),
        permutations=permutations,
    )


def _permuted_sums(
    answers: NDArray[np.int64], sizes: tuple[int, ...], permutations: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Sum over seeds of the excess, for each permutation; ``answers`` has shape (seeds, answers)."""
    step = max(1, _CHUNK // (answers.size * (int(answers.max()) + 1)))
    out = np.empty(permutations)
    for begin in range(0, permutations, step):
        count = min(step, permutations - begin)
        shuffled = rng.permuted(np.broadcast_to(answers, (count, *answers.shape)), axis=-1)
        out[begin : begin + count] = _excess(shuffled, sizes).sum(axis=1)
    return out


def _excess(answers: NDArray[np.int64], sizes: tuple[int, ...]) -> NDArray[np.float64]:
    """`seed_excess` for arrays of shape (permutations, seeds, answers) of one layout of arms."""
    labels = int(answers.max()) + 1
    starts = np.cumsum((0, *sizes[:-1]))
    one_hot = answers[..., None] == np.arange(labels)
    counts = np.add.reduceat(one_hot, starts, axis=2, dtype=np.int64)  # (…, arms, labels)
    size = np.array(sizes, dtype=float)
    between = 1 - (counts[:, :, :1] * counts[:, :, 1:]).sum(axis=-1) / (size[0] * size[1:])
    repeated = size > 1
    pairs = np.where(repeated, size * (size - 1), 1.0)
    own = 1 - (counts * (counts - 1)).sum(axis=-1) / pairs
    parts = [own[:, :, 0]] if repeated[0] else []
    if repeated[1:].any():
        parts.append(own[:, :, 1:][:, :, repeated[1:]].mean(axis=-1))
    result: NDArray[np.float64] = between.mean(axis=-1) - np.mean(parts, axis=0)
    return result


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
