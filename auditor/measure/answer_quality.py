"""What must be known of a model's answers before any figure about groups: could a change show, and are they right.

Nothing here selects texts: a seed enters whether the model gets it right or wrong. Originals without an answer that
parses are left out and counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from auditor.core.record.controls import PositiveControl
from auditor.core.record.measured import Caution, Gold
from auditor.core.types import Answer, Estimate
from auditor.measure.intervals import clopper_pearson
from auditor.measure.observations import STATUSES, Arm, Bools, Observations
from auditor.measure.rates import edited, share, tabulate

ONE_LABEL = 0.95  # share of answers that are alike from which on a report warns
UNREADABLE = 0.20  # share of answers that could not be read above which a report warns
LEAST = 2  # answers that can be alike
SHOWN = 5  # labels that could not be mapped, as examples

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
