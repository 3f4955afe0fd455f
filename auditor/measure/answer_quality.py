"""What must be known of a model's answers before any figure about groups.

Could a change show, are they right, and is the model still what it was within one run.

Nothing here selects texts: a seed enters whether the model gets it right or wrong. Originals without an answer that
parses are left out and counted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Literal

import numpy as np
from msgspec.structs import replace

from auditor.core.record.base import PositiveControl, Shift
from auditor.core.record.measured import Caution, Gold
from auditor.core.types import Answer, Estimate
from auditor.measure.intervals import RESAMPLES, clopper_pearson, mean_interval
from auditor.measure.observations import STATUSES, Arm, Bools, Floats, Ints, Observations, score_in
from auditor.measure.rates import edited, share, tabulate

ONE_LABEL = 0.95  # share of answers that are alike from which on a report warns
UNREADABLE = 0.20  # share of answers that could not be read above which a report warns
LEAST = 2  # answers that can be alike
SEEN = 0.75  # share of the pairs of a control that must be answered differently, where answers are labels
DIGITS = 2  # of a score: smaller differences are none
NAMED = 60  # characters of an answer that is named; longer ones are texts
SHOWN = 5  # labels that could not be mapped, as examples
# A shift puts a warning over the whole report: seldom without cause; of all looks and figures together.
SHIFT_ALPHA = 0.01

Value = str | tuple[str, ...]


# -- cautions -------------------------------------------------------------------------------------------------


def cautions(
    model: str,
    *,
    lost: int,
    answers: int,
    counts: Mapping[str, Mapping[object, int]],
    labels: Mapping[object, str],
    control: Mapping[str, PositiveControl],
    reported: Collection[str],
) -> Iterator[Caution]:
    """Reasons to be careful with the figures of one model.

    ``counts``: format → answer that could be read → how often it came, None for texts.
    """
    for name, by_answer in sorted(counts.items()):
        total = sum(by_answer.values())
        if total < LEAST:
            continue
        most = max((value for value in by_answer if value is not None), key=lambda value: by_answer[value])
        if by_answer[most] >= ONE_LABEL * total:
            seen = name in control and control[name].seen
            yield Caution(
                code="one_label" if by_answer[most] < total else "scores_alone" if seen else "constant_answers",
                model=model,
                format=name if len(counts) > 1 else "",
                n=by_answer[most],
                of=total,
                label=labels.get(most),
            )
    if too_many_unreadable(lost, answers):
        yield Caution(code="unreadable_answers", model=model, format="", n=lost, of=answers)
    for name, one in sorted(control.items()):
        if not one.seen:
            form = name if len(control) > 1 else ""
            yield Caution(code="control_not_seen", model=model, format=form, n=one.differ, of=one.pairs)
    if len(reported) > 1:
        names = ", ".join(sorted(reported))
        yield Caution(code="model_changed", model=model, format="", n=len(reported), of=answers, label=names)


def too_many_unreadable(lost: int, answers: int) -> bool:
    """Whether so many of ``answers`` were lost that a report warns."""
    return lost > UNREADABLE * answers


# -- answers against the labels in the data -------------------------------------------------------------------


def performance(
    observations: Observations, golds: Mapping[str, Value], answer: Callable[[Sequence[Answer]], Value | None]
) -> Iterator[dict[str, object]]:
    """Of the originals with a gold label, how many each model answered so in each format, in all and by group.

    With the share of their variants that violate, of originals answered right and of others. ``answer`` says what
    stands for the replicates: where it is None, fewer than half of them parse or no majority was reached.
    """
    columns, groups = observations.columns(), observations.version_groups()
    texts = observations.texts.values
    wanted = np.array([name in golds for name in texts], dtype=bool)
    own = observations.in_arm(Arm.ORIGINAL)[columns.version_shape] & wanted[columns.version_text]
    counted = tabulate(observations, edited, units=False)
    for place, rows in sorted(observations.places(columns), key=lambda one: one[0]):
        answers: dict[int, list[Answer]] = defaultdict(list)
        for row in np.flatnonzero(rows & own[columns.version]).tolist():
            status, label = STATUSES[columns.status[row]], columns.label[row]
            value = observations.labels.values[label] if label >= 0 else None
            answers[int(columns.version[row])].append(Answer(status=status, value=value))
        if not answers:
            continue
        text = columns.version_text[list(answers)]
        said = [answer(some) for some in answers.values()]
        known = np.array([one is not None for one in said])
        right = np.array([_is(one, golds[texts[n]]) for one, n in zip(said, text.tolist(), strict=True)])
        judged, changed = np.zeros((2, len(texts)), dtype=np.int64)
        for counts in counted.get(place, {}).values():  # all attribute sets together
            judged[counts.text] += counts.judged
            changed[counts.text] += counts.violations
        by_group: dict[tuple[str, str], list[int]] = defaultdict(list)
        for n, version in enumerate(answers):
            for group in observations.groups.values[groups[version]]:
                by_group[group].append(n)
        sides = {"right": text[known & right], "wrong": text[known & ~right]}
        yield place._asdict() | {
            "n": len(said),
            "overall": {"accuracy": _accuracy(right, known)},
            "groups": [
                {"attribute": attribute, "group": group, "n": len(n), "accuracy": _accuracy(right[n], known[n])}
                for (attribute, group), n in sorted(by_group.items())
            ],
            "violations": {side: share(changed[of], judged[of]) for side, of in sides.items()},
        }


def _is(said: Value | None, gold: Value) -> bool:
    """Whether an answer equals the gold label; for several labels, the whole set."""
    return set(said) == set(gold) if isinstance(said, tuple) and isinstance(gold, tuple) else said == gold


def _accuracy(right: Bools, known: Bools) -> Estimate | None:
    """Share of answered originals whose answer is right: one original for each text, so Clopper–Pearson."""
    n = int(known.sum())
    return clopper_pearson(int(right[known].sum()), n, n_skipped=len(known) - n) if n else None


def gold_summary(labels: Iterable[str | None], known: Callable[[str], bool]) -> Gold:
    """Count gold labels as the data write them (None: none); ``known`` says whether the task knows one."""
    counts = Counter(labels)
    missing = counts.pop(None, 0)
    unknown = Counter({label: n for label, n in counts.items() if label is not None and not known(label)})
    ranked = sorted(unknown.items(), key=lambda item: (-item[1], item[0]))
    return Gold(
        given=counts.total(),
        mapped=counts.total() - unknown.total(),
        unmapped=unknown.total(),
        examples=tuple(text[:80] for text, _ in ranked[:SHOWN]),
        missing=missing,
    )


# -- the positive control ------------------------------------------------------------------------------------


Kind = tuple[object, ...]  # what tells one answer from another
Pair = tuple[Sequence[Answer], Sequence[Answer]]  # the replicates of both texts


def control(
    pairs: Sequence[Pair],
    differ: Sequence[bool],
    *,
    scale: Literal["share", "log_odds", "number"],
    score_of: str | None = None,
) -> PositiveControl:
    """Judge the answers to the pairs of a control."""
    made = PositiveControl(seen=sum(differ) >= SEEN * len(differ), differ=sum(differ), pairs=len(differ))
    scores = [(_mean(one, score_of), _mean(other, score_of)) for one, other in pairs]
    if scale != "share" and scores and not np.isnan(scores).any():
        apart = [a - b for a, b in scores]
        mean, low, high = mean_interval(apart)
        if len(apart) > 1 and min(apart) == max(apart):
            low = high = mean  # all pairs are equally far apart
        limits = (low, high) if math.isfinite(low) else (None, None)
        seen = made.seen or low > 0 or high < 0
        made = replace(made, seen=seen, scale=scale, mean=mean, low=limits[0], high=limits[1])
    return made


def alike(made: PositiveControl, kinds: Collection[Kind], answers: int) -> PositiveControl:
    """Add to a control whether all ``answers`` that came are of one kind (`kind_of`), and could be read."""
    (kind,) = kinds if len(kinds) == 1 else ((),)
    if not kind or kind[0] != "ok" or answers < LEAST:
        return made
    said = kind[1]
    name = ", ".join(said) or "none" if isinstance(said, tuple) else f"{said:g}" if isinstance(said, float) else said
    return replace(made, alike=True, answers=answers, answer=str(name) if len(str(name)) <= NAMED else None)


def kind_of(answer: Answer, score_of: str | None) -> Kind | None:
    """Return what tells an answer from others on the scale of the claims; None where none came."""
    if answer.status in ("failed", "not_asked"):
        return None
    score = score_in(answer, score_of)
    return answer.status, answer.value, None if math.isnan(score) else round(score, DIGITS)


def _mean(answers: Sequence[Answer], score_of: str | None) -> float:
    """Return the mean score of the replicates of one text; NaN where one of them that could be read has none."""
    scores = [score_in(a, score_of) for a in answers if a.status == "ok"]
    return fmean(scores) if scores else math.nan


# -- prompts that are asked again -------------------------------------------------------------------------------------


def shift(
    prompts: Sequence[Sequence[Sequence[Hashable]]], *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Shift | None:
    """Test whether the answers to each prompt have one distribution at all times; None where none has two times.

    They are shuffled within the prompt; the statistic is the sum over prompts, times and answers of count² / answers
    at that time.
    """
    observed, null = 0.0, np.zeros(resamples)
    used = answers = differing = 0
    for times in prompts:
        arms = [arm for arm in times if len(arm)]
        if len(arms) < 2:
            continue
        used += 1
        codes: dict[Hashable, int] = {}
        flat = np.array([codes.setdefault(x, len(codes)) for arm in arms for x in arm])
        answers += len(flat)
        if len(codes) < 2:
            continue
        sizes = np.array([len(arm) for arm in arms])
        observed += float(_spread(flat[None], sizes, len(codes))[0])
        shuffled = rng.permuted(np.broadcast_to(flat, (resamples, len(flat))), axis=1)
        null += _spread(shuffled, sizes, len(codes))
        usual = {max(set(arm), key=lambda x: (list(arm).count(x), str(x))) for arm in arms}
        differing += len(usual) > 1
    if not used:
        return None
    p = (1 + int(np.count_nonzero(null >= observed - 1e-9))) / (1 + resamples)
    return Shift(p_value=p, prompts=used, answers=answers, differing=differing, shifted=p < SHIFT_ALPHA)


def _spread(codes: Ints, sizes: Ints, labels: int) -> Floats:
    """Statistic of one prompt for each row of ``codes``, shape (rows, answers)."""
    one_hot = codes[..., None] == np.arange(labels)
    counts = np.add.reduceat(one_hot, np.cumsum(sizes) - sizes, axis=1, dtype=np.int64)
    out: Floats = (counts**2 / sizes.astype(float)[:, None]).sum(axis=(1, 2))
    return out
