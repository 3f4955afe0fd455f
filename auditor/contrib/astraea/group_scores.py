"""Which of many groups stand out by their mean scores (ASTRAEA, Algorithm 4), and what holds where its index does not.

A group is a value of one attribute (an occupation); its score is a mean over many generated sentences (the probability
of "his" in a blank). Under the published definition a group violates when its absolute index is above 2.

References
----------
E. Chung and J. P. Romano, Exact and asymptotically robust permutation tests, Annals of Statistics 41 (2013).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from auditor.contrib.astraea.outliers import THRESHOLD, TINY, anomaly_indices
from auditor.core.errors import ConfigError, UnknownPlugin, UserError
from auditor.measure.intervals import mean_interval
from auditor.measure.observations import Arm, Floats, shape_of
from auditor.measure.p_values import benjamini_hochberg
from auditor.store.folder import RunFolder

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


def group_report(
    folder: RunFolder,
    *,
    attribute: str,
    labels: Sequence[str] | None = None,
    model: str | None = None,
    rounds: int = ROUNDS,
    seed: int = 7,
) -> list[GroupFairness]:
    """Compare the groups of ``attribute`` on the mean score of each label (ASTRAEA, Algorithm 4 and Table 6).

    A case of a grammar run with ``per_seed=None`` holds one sentence with a term of every group. Only cases that were
    drawn independently of verdicts count. ``labels`` None means all that the answers score, ``model`` None the first.
    """
    record = folder.record()
    names = list(record["spec"]["models"])
    if model is not None and model not in names:
        raise UnknownPlugin("model", model, names)
    chosen = model or names[0]
    groups, by_label = _scores(folder, attribute, chosen)
    if len(groups) < 2:
        raise ConfigError(f"{record['id']}: fewer than two groups of {attribute!r}; see --attribute")
    known = sorted(by_label)
    if not known:
        raise UserError(f"{record['id']}: the answers of {chosen} carry no scores, so no means can be compared.")
    for label in labels or ():
        if label not in known:
            raise UnknownPlugin("label", label, known)
    report = []
    for label in labels or known:
        texts = [by_text for _, by_text in sorted(by_label[label].items())]
        table = {group: [fmean(own[group]) if group in own else None for own in texts] for group in sorted(groups)}
        paired = all(score is not None for scores in table.values() for score in scores)
        report.append(group_fairness(table, score=f"p({label})", paired=paired, rounds=rounds, seed=seed))
    return report


ByCase = dict[str, dict[str, list[float]]]  # case -> group -> scores


def _scores(
    folder: RunFolder, attribute: str, model: str
) -> tuple[set[str], dict[str, dict[str, dict[str, list[float]]]]]:
    """The groups, and by label, case and group the scores of its versions, each a mean over its answers."""
    groups: set[str] = set()
    by_label: dict[str, ByCase] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    evidence = folder.evidence()
    try:
        for case, checks in folder.cases():
            for version in (case.original, *case.variants) if case.sampling == "iid" else ():
                shape, check = shape_of(version.edits), checks.get(version.id)
                alone = shape.arm in (Arm.ORIGINAL, Arm.EDITED) and not {*shape.attributes} - {attribute}
                if not alone or attribute not in version.groups or (check is not None and check.status == "invalid"):
                    continue
                group = version.groups[attribute]
                groups.add(group)
                answers: dict[str, list[float]] = defaultdict(list)
                for came in evidence.responses(version.id):
                    for label, score in (came.scores or {}).items() if came.model == model else ():
                        answers[label].append(score)
                for label, own in answers.items():
                    by_label[label][case.id][group].append(fmean(own))
    finally:
        evidence.close()
    return groups, by_label


def group_fairness(
    scores: Mapping[str, Sequence[float | None]],
    *,
    score: str = "score",
    paired: bool = False,
    rounds: int = ROUNDS,
    seed: int = 7,
) -> GroupFairness:
    """Compare the mean scores of groups.

    ``scores`` has the scores of each group's distinct sentences, None where there is none. Where they are ``paired``,
    the i-th sentences of all groups are the same but for the group (Algorithm 4 changes one terminal of each input):
    permutations stay within a sentence, and one without a score is left out. The smallest p value is
    ``1 / (rounds + 1)``.

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
    _, low, high = mean_interval(values.tolist())
    return (low, high) if math.isfinite(low) else (None, None)


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
