"""Which of many groups stand out by their mean scores (ASTRAEA, Algorithm 4), and what holds where its index does not.

A group is a value of one attribute (an occupation); its score is a mean over many generated sentences (the probability
of "his" in a blank). Under the published definition a group violates when its absolute index is above 2.

References
----------
E. Chung and J. P. Romano, Exact and asymptotically robust permutation tests, Annals of Statistics 41 (2013).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from auditor.measure.intervals import LEVEL, t_quantile
from auditor.measure.observations import Arm, Floats, Ints, Observations
from auditor.measure.outliers import THRESHOLD, TINY, anomaly_indices
from auditor.measure.p_values import benjamini_hochberg

ROUNDS = 9_999  # permutations: the smallest p value is 1 / 10,000


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """One group's line.

    Attributes
    ----------
    n : int
        Distinct sentences with a score.
    mean, low, high : float
        Mean score and its 95 % interval, in the unit of the scores; the limits are None with one sentence, or
        where all scores are equal.
    index : float or None
        Anomaly index of the mean on the normal scale.
    index_printed : float or None
        The same without the normal constant, as the paper's formula is written.
    violates : bool or None
        ``|index| > 2``: the published definition of a violation of group fairness; None without an index.
    p, q : float or None
        Permutation p value of the distance of this group's mean from the median of the groups' means, in standard
        errors, and after Benjamini–Hochberg.
    shrunken : float
        The mean pulled towards the mean of the groups, by how well it is known.
    stands_out : bool
        ``q`` is at most 0.05.
    """

    name: str
    n: int
    mean: float
    low: float | None
    high: float | None
    index: float | None
    index_printed: float | None
    violates: bool | None
    p: float | None
    q: float | None
    shrunken: float
    stands_out: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupFairness:
    """All groups on one score.

    ``violating`` and ``standing_out`` count groups; ``share_violating`` is of all groups and None where there
    are no indices (``reason`` says why). ``paired`` says whether the groups shared their sentences.
    """

    score: str
    groups: tuple[Group, ...]
    median: float | None
    mad: float | None
    reason: str
    violating: int | None
    share_violating: float | None
    standing_out: int
    paired: bool
    method: Mapping[str, object] = field(default_factory=dict)


def groups_of(table: Observations, attribute: str) -> list[str]:
    """The groups of ``attribute`` that versions name which change nothing else, sorted; placebos name none."""
    codes = np.unique(_group_of(table, attribute))
    return sorted({dict(table.groups.values[code])[attribute] for code in codes[codes >= 0].tolist()})


def _group_of(table: Observations, attribute: str) -> Ints:
    """Of each version the code of the groups that it names; −1 where it takes no part."""
    part = [s.arm in (Arm.ORIGINAL, Arm.EDITED) and not {*s.attributes} - {attribute} for s in table.shapes.values]
    named = [attribute in dict(groups) for groups in table.groups.values]
    shape, groups = table.columns().version_shape, table.version_groups()
    here = np.array(part, dtype=bool)[shape] & np.array(named, dtype=bool)[groups]
    return np.where(here, groups, -1)


def scores_by_group(table: Observations, attribute: str, label: str) -> dict[str, list[float | None]]:
    """The score of ``label`` by group and text: a mean over versions, each a mean over its answers.

    Texts are sorted by name; those without any score of the label are left out.
    """
    columns, of = table.columns(), _group_of(table, attribute)
    names = groups_of(table, attribute)
    number = {name: n for n, name in enumerate(names)}
    group = np.array([number.get(dict(g).get(attribute, ""), -1) for g in table.groups.values])[of]
    asked = (columns.label == table.labels.get(label)) & (of >= 0)[columns.version]
    size = len(columns.version_text)
    answers = np.bincount(columns.version[asked], minlength=size)
    total = np.bincount(columns.version[asked], columns.score[asked], minlength=size)
    has = np.flatnonzero(answers)
    texts, at = np.unique(np.array(table.texts.values)[columns.version_text[has]], return_inverse=True)
    cell, cells = at * len(names) + group[has], len(texts) * len(names)
    count = np.bincount(cell, minlength=cells).reshape(len(texts), len(names))
    sums = np.bincount(cell, total[has] / answers[has], minlength=cells).reshape(len(texts), len(names))
    return {
        name: [s / n if n else None for s, n in zip(sums[:, i].tolist(), count[:, i].tolist(), strict=True)]
        for i, name in enumerate(names)
    }


def group_fairness(
    scores: Mapping[str, Sequence[float | None]],
    *,
    score: str = "score",
    paired: bool = False,
    rounds: int = ROUNDS,
    seed: int = 7,
) -> GroupFairness:
    """Compare the mean scores of groups.

    Parameters
    ----------
    scores : mapping of str to sequence of float or None
        Group → scores of its distinct sentences; None where there is no score.
    score : str
        What was scored ("p(his)").
    paired : bool, default False
        The i-th sentences of all groups are the same but for the group (Algorithm 4 changes one terminal of
        each input); the permutations then stay within a sentence, and sentences with a missing score are left out.
    rounds : int
        Permutations; the smallest p value is ``1 / (rounds + 1)``.
    seed : int
        Fixes the permutations.

    Raises
    ------
    ValueError
        Fewer than two groups have scores, or paired groups differ in length.

    Examples
    --------
    >>> flat = {f"job {i:02d}": [0.5 + 0.001 * ((7 * i + j) % 11) for j in range(40)] for i in range(12)}
    >>> made = group_fairness(flat | {"nurse": [0.1 + 0.001 * (j % 11) for j in range(40)]}, rounds=999)
    >>> [g.name for g in made.groups if g.violates and g.stands_out]
    ['nurse']
    """
    lengths = {len(values) for values in scores.values()}
    if paired and len(lengths) > 1:
        raise ValueError(f"paired groups have equally many sentences, got {sorted(lengths)}")
    known = {name: np.array([np.nan if v is None else v for v in values]) for name, values in scores.items()}
    whole = ~np.isnan(np.sum([*known.values()], axis=0)) if paired else None
    known = {name: v[~np.isnan(v) if whole is None else whole] for name, v in known.items()}
    arrays = {name: v for name, v in known.items() if len(v)}
    if len(arrays) < 2:
        raise ValueError(f"two or more groups with scores, got {len(arrays)}")
    means, units = [float(v.mean()) for v in arrays.values()], [len(v) for v in arrays.values()]
    indices, printed = (anomaly_indices(means, units, normal=normal) for normal in (True, False))
    table = list(arrays.values())
    rng = np.random.default_rng([seed, 5])
    p_values = _paired_p(np.stack(table), rounds, rng) if paired else _free_p(table, rounds, rng)
    adjusted, pulled = benjamini_hochberg(p_values), shrunken_means(table)
    groups = []
    for i, (name, own) in enumerate(arrays.items()):
        index, q = indices.values[i], adjusted[i]
        low, high = _limits(own)
        groups.append(
            Group(
                name=name,
                n=units[i],
                mean=means[i],
                low=low,
                high=high,
                index=index,
                index_printed=printed.values[i],
                violates=None if index is None else abs(index) > THRESHOLD,
                p=p_values[i],
                q=q,
                shrunken=pulled[i],
                stands_out=q is not None and q <= 0.05,
            )
        )
    violating = None if indices.reason else sum(bool(g.violates) for g in groups)
    within = " within sentences" if paired else ""
    return GroupFairness(
        score=score,
        groups=tuple(groups),
        median=indices.median,
        mad=indices.mad,
        reason=indices.reason,
        violating=violating,
        share_violating=None if violating is None else violating / len(groups),
        standing_out=sum(g.stands_out for g in groups),
        paired=paired,
        method={"test": f"studentised permutation of groups{within}", "rounds": rounds},
    )


def shrunken_means(scores: Sequence[Floats]) -> list[float]:
    """Means pulled towards their average, by the method of DerSimonian and Laird.

    Groups that differ no more than their scatter explains get one mean; a group with few sentences or a wide
    scatter moves furthest.
    """
    means, sizes = np.array([x.mean() for x in scores]), np.array([float(len(x)) for x in scores])
    within = sum(float(((x - x.mean()) ** 2).sum()) for x in scores)
    freedom = sizes.sum() - len(scores)
    # One common variance: a group of few equal scores must not look perfectly known.
    variance = within / freedom if freedom > 0 else 0.0
    if variance <= 0:
        return [float(m) for m in means]
    weights = sizes / variance
    centre = float((weights * means).sum() / weights.sum())
    spread = float((weights * (means - centre) ** 2).sum())
    scale = float(weights.sum() - (weights**2).sum() / weights.sum())
    between = max(0.0, (spread - (len(scores) - 1)) / scale) if scale > 0 else 0.0
    keep = between / (between + variance / sizes)
    joint = 1 / (between + variance / sizes)
    centre = float((joint * means).sum() / joint.sum())
    return [float(centre + k * (m - centre)) for k, m in zip(keep, means, strict=True)]


def _limits(values: Floats) -> tuple[float | None, float | None]:
    if len(values) < 2 or float(np.ptp(values)) == 0.0:
        return None, None
    half = float(t_quantile(LEVEL, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return float(values.mean()) - half, float(values.mean()) + half


# The centre is the median of the group means, in the data and in every permutation: with the mean, one far
# group would move the centre away from all others and make them stand out as well. Distances are in standard errors
# of their own group and of the centre: permutations give every group the variance of all, so that without it a group
# whose scores merely vary more stands out (Chung & Romano 2013).
def _distance(means: Floats, errors: Floats) -> Floats:
    """|mean − centre| over its standard error; ``errors`` are squared standard errors of the means."""
    centre = np.pi / 2 * np.median(errors) / len(errors)  # a median varies pi / 2 times as much as a mean
    spread = np.sqrt(errors + centre)
    away = np.abs(means - np.median(means))
    return np.asarray(np.divide(away, spread, out=np.where(away > TINY, np.inf, 0.0), where=spread > TINY))


def _free_p(scores: Sequence[Floats], rounds: int, rng: np.random.Generator) -> list[float | None]:
    """Sentences change groups freely."""
    pooled = np.concatenate(scores)
    pooled = pooled - pooled.mean()  # sums of squares then lose no digits
    sizes = np.asarray([len(x) for x in scores])
    starts = np.cumsum(sizes) - sizes

    def distance(values: Floats) -> Floats:
        means = np.add.reduceat(values, starts) / sizes
        within = np.maximum(np.add.reduceat(values**2, starts) - sizes * means**2, 0.0)
        # A group of one sentence, or of equal scores, has no scatter of its own to go by: it takes that of all.
        shared = within.sum() / max(1, len(values) - len(sizes))
        own = np.where(within > TINY, within / np.maximum(sizes - 1, 1), shared)
        return _distance(means, own / sizes)

    return _p(distance(pooled), (distance(rng.permutation(pooled)) for _ in range(rounds)), rounds)


def _paired_p(table: Floats, rounds: int, rng: np.random.Generator) -> list[float | None]:
    """Scores change groups within a sentence; ``table`` has shape (groups, sentences)."""
    n = table.shape[1]
    centred = table - table.mean(axis=0)

    def distance(values: Floats) -> Floats:
        own = values.var(axis=1, ddof=1) if n > 1 else np.zeros(len(values))
        return _distance(values.mean(axis=1), np.where(own > TINY, own, own.mean()) / n)

    return _p(distance(centred), (distance(rng.permuted(centred, axis=0)) for _ in range(rounds)), rounds)


def _p(seen: Floats, drawn: Iterable[Floats], rounds: int) -> list[float | None]:
    hits = sum((distances >= seen - TINY for distances in drawn), np.zeros(len(seen), dtype=int))
    return [float((h + 1) / (rounds + 1)) for h in hits]
