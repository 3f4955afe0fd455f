"""What must be known of a model's answers before any figure about groups: could a change show, and are they right.

Nothing here selects texts: a seed enters whether the model gets it right or wrong. Originals without an answer that
parses are left out and counted.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from auditor.core.record.controls import PositiveControl
from auditor.core.record.measured import Caution, Gold
from auditor.core.types import Answer, Estimate
from auditor.measure.intervals import (
    LEVEL,
    approximate_note,
    clopper_pearson,
    effective_size,
    korn_graubard,
    share_estimate,
)
from auditor.measure.observations import STATUSES, Arm, Observations, Place
from auditor.measure.rates import edited, tabulate

ONE_LABEL = 0.95  # share of answers that are alike from which on a report warns
UNREADABLE = 0.20  # share of answers that could not be read above which a report warns
LEAST = 2  # answers that can be alike
NONE = "none"  # stands for an empty set of labels in F1, as one more label
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

    Parameters
    ----------
    lost, answers : int
        Answers that could not be read, of how many.
    counts, labels : mapping
        As `alike` takes them.
    control : mapping
        Format → what came of the positive control.
    reported : collection of str
        Names that the server gave for the model that answered.
    """
    yield from alike(model, counts, labels, {name for name, one in control.items() if one.seen})
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
    """Whether so many of ``answers`` were lost that a report warns.

    Examples
    --------
    >>> too_many_unreadable(2, 10), too_many_unreadable(3, 10)
    (False, True)
    """
    return lost > UNREADABLE * answers


def alike(
    model: str, counts: Mapping[str, Mapping[object, int]], labels: Mapping[object, str], seen: Collection[str] = ()
) -> Iterator[Caution]:
    """Yield a caution for each format in which (nearly) every answer that could be read is the same.

    Parameters
    ----------
    counts : mapping
        Format → answer → how often it came; None stands for answers that were not told apart.
    labels : mapping
        What an answer is called; those that are not in it (texts) stay unnamed.
    seen : collection of str
        Formats whose positive control was seen: where all answers are the same, it was seen on their scores.
    """
    for name, by_answer in sorted(counts.items()):
        total = sum(by_answer.values())
        if total < LEAST:
            continue
        most = max((value for value in by_answer if value is not None), key=lambda value: by_answer[value])
        if by_answer[most] >= ONE_LABEL * total:
            yield Caution(
                code="one_label" if by_answer[most] < total else "scores_alone" if name in seen else "constant_answers",
                model=model,
                format=name if len(counts) > 1 else "",
                n=by_answer[most],
                of=total,
                label=labels.get(most),
            )


# -- answers against the labels in the data -------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Original:
    """One original with its gold label.

    ``predicted`` is None where fewer than half of the replicates parse or no majority was reached. ``judged`` and
    ``violations`` count its variants under the same model and format.
    """

    case_id: str
    gold: Value
    predicted: Value | None
    groups: Mapping[str, str]  # attribute -> group that the original names
    judged: int = 0
    violations: int = 0

    @property
    def sets(self) -> tuple[frozenset[str], frozenset[str]]:
        """The gold labels, and those of the answer."""
        return _set(self.gold), _set(self.predicted or ())

    @property
    def right(self) -> bool:
        """Whether the answer equals the gold label; for several labels, the whole set."""
        return self.predicted is not None and _set(self.predicted) == _set(self.gold)


def _set(value: Value) -> frozenset[str]:
    if isinstance(value, tuple):
        return frozenset(value) or frozenset((NONE,))
    return frozenset((value,))


def _answered(originals: Iterable[Original]) -> tuple[list[Original], int]:
    """Those with an answer, and how many have none."""
    rows = list(originals)
    answered = [o for o in rows if o.predicted is not None]
    return answered, len(rows) - len(answered)


def accuracy(originals: Iterable[Original]) -> Estimate | None:
    """Share of answered originals whose answer equals the gold label (whole set); None if none was answered.

    One original per seed, so the interval is Clopper–Pearson.

    Examples
    --------
    >>> rows = [Original(case_id=str(i), gold="a", predicted="a" if i else None, groups={}) for i in range(3)]
    >>> estimate = accuracy(rows)
    >>> (estimate.value, estimate.n, estimate.n_skipped)
    (1.0, 2, 1)
    """
    answered, skipped = _answered(originals)
    right = sum(o.right for o in answered)
    return clopper_pearson(right, len(answered), n_skipped=skipped) if answered else None


def micro_f1(originals: Iterable[Original]) -> Estimate | None:
    """F1 over all labels and answered originals together: ``2 TP / (2 TP + FP + FN)``; None if none was answered.

    An empty set counts as one label, "none", on either side. A ratio of sums over seeds, so the interval is
    Korn–Graubard by seed. With one label each it is the accuracy, and has its interval.
    """
    rows = list(originals)
    answered, skipped = _answered(rows)
    if all(isinstance(o.gold, str) and isinstance(o.predicted, str) for o in answered):
        return accuracy(rows)
    twice = [2.0 * len(gold & guess) for gold, guess in (o.sets for o in answered)]
    both = [float(len(gold) + len(guess)) for gold, guess in (o.sets for o in answered)]
    return dataclasses.replace(korn_graubard(twice, both, n_skipped=skipped), n_variants=None)


def macro_f1(originals: Iterable[Original]) -> Estimate | None:
    """Mean of the labels' F1, each label with equal weight; None if no original was answered.

    Labels that neither the gold labels nor the answers hold are left out; the note counts the others. The interval
    is Korn–Graubard on the variance by linearisation over seeds; with few seeds per label it is rough.
    """
    answered, skipped = _answered(originals)
    if not answered:
        return None
    sets = [o.sets for o in answered]
    sizes: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    for gold, guess in sets:
        sizes.update(gold)
        sizes.update(guess)
        hits.update(gold & guess)
    scores = {label: 2 * hits[label] / size for label, size in sizes.items()}
    value = sum(scores.values()) / len(scores)
    influence = np.zeros(len(answered))
    for i, (gold, guess) in enumerate(sets):
        for label in gold | guess:
            got = 2 * (label in gold and label in guess) - scores[label] * ((label in gold) + (label in guess))
            influence[i] += got / sizes[label]
    units = float(len(answered))
    size = effective_size(value, influence / len(scores) * units, units, LEVEL)
    wrong = sum(not o.right for o in answered)
    notes = (f"mean over {len(scores)} labels that occur", approximate_note(len(answered), wrong))
    method, note = "korn-graubard by seed, linearised", "; ".join(filter(None, notes))
    return share_estimate(value, size, LEVEL, n=len(answered), method=method, n_skipped=skipped, note=note)


def violations(originals: Iterable[Original], *, right: bool) -> Estimate | None:
    """Share of judged variants that violate, of originals answered right (or wrong); None if none was judged."""
    rows = [o for o in originals if o.predicted is not None and o.right is right]
    judged = [o for o in rows if o.judged]
    if not judged:
        return None
    counts = [o.violations for o in judged], [o.judged for o in judged]
    return korn_graubard(*counts, n_skipped=len(rows) - len(judged))


def table(model: str, format: str, originals: Sequence[Original]) -> dict[str, object]:
    """One model in one format: overall, by group named in the original, and violations among right and wrong.

    Returns
    -------
    dict
        ``{"model", "format", "n", "overall": {…}, "groups": [{"attribute", "group", "n", …}],
        "violations": {"right": Estimate | None, "wrong": …}}``; ``n`` counts originals with a gold label.
    """
    by_group: dict[tuple[str, str], list[Original]] = defaultdict(list)
    for original in originals:
        for group in original.groups.items():
            by_group[group].append(original)
    groups = [
        {"attribute": attribute, "group": group, "n": len(rows), **_measures(rows)}
        for (attribute, group), rows in sorted(by_group.items())
    ]
    changed = {name: _plain(violations(originals, right=name == "right")) for name in ("right", "wrong")}
    about = {"model": model, "format": format, "n": len(originals)}
    return about | {"overall": _measures(originals), "groups": groups, "violations": changed}


def _measures(originals: Sequence[Original]) -> dict[str, object]:
    return {
        "accuracy": _plain(accuracy(originals)),
        "micro_f1": _plain(micro_f1(originals)),
        "macro_f1": _plain(macro_f1(originals)),
    }


def _plain(estimate: Estimate | None) -> dict[str, object] | None:
    return None if estimate is None else dataclasses.asdict(estimate)


def originals(
    observations: Observations, golds: Mapping[str, Value], answer: Callable[[Sequence[Answer]], Value | None]
) -> dict[Place, list[Original]]:
    """The originals with a gold label.

    Parameters
    ----------
    golds : mapping of str to str or tuple
        Text → its label, as the task reads it.
    answer : callable
        The answer that stands for the replicates of one input; None where there is none.
    """
    columns, groups = observations.columns(), observations.version_groups()
    texts = observations.texts.values
    wanted = np.array([name in golds for name in texts], dtype=bool)
    own = observations.in_arm(Arm.ORIGINAL)[columns.version_shape] & wanted[columns.version_text]
    counted = tabulate(observations, edited, units=False)
    out: dict[Place, list[Original]] = {}
    for place, rows in observations.places(columns):
        answers: dict[int, list[Answer]] = defaultdict(list)
        for row in np.flatnonzero(rows & own[columns.version]).tolist():
            status, label = STATUSES[columns.status[row]], columns.label[row]
            value = observations.labels.values[label] if label >= 0 else None
            answers[int(columns.version[row])].append(Answer(status=status, value=value))
        judged, changed = np.zeros((2, len(texts)), dtype=np.int64)
        for counts in counted.get(place, {}).values():  # all attribute sets together
            judged[counts.text] += counts.judged
            changed[counts.text] += counts.violations
        if answers:
            out[place] = [
                Original(
                    case_id=texts[text],
                    gold=golds[texts[text]],
                    predicted=answer(own_answers),
                    groups=dict(observations.groups.values[groups[version]]),
                    judged=int(judged[text]),
                    violations=int(changed[text]),
                )
                for version, own_answers in answers.items()
                for text in (int(columns.version_text[version]),)
            ]
    return out


def gold_summary(golds: Mapping[str, tuple[str | None, bool]]) -> Gold:
    """Count gold labels: case id → the label as the data writes it (None: none), and whether the task knows it."""
    unknown = Counter(text for text, known in golds.values() if text is not None and not known)
    labelled = sum(text is not None for text, _ in golds.values())
    ranked = sorted(unknown.items(), key=lambda item: (-item[1], item[0]))
    return Gold(
        given=labelled,
        mapped=labelled - unknown.total(),
        unmapped=unknown.total(),
        examples=tuple(text[:80] for text, _ in ranked[:SHOWN]),
        missing=len(golds) - labelled,
    )
