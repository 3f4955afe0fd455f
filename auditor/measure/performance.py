"""How often a model's answers equal the labels in the data, overall and by group. Pure functions.

Nothing here selects texts: a seed enters whether the model gets it right or wrong. Originals without an answer that
parses are left out and counted.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from auditor.core.types import Answer, Estimate
from auditor.measure.intervals import approximate_note, beta_limits, clopper_pearson, effective_size, korn_graubard
from auditor.measure.observations import STATUSES, Arm, Ints, Observations
from auditor.measure.rates import Counts, Place, edited, tabulate

NONE = "none"  # stands for an empty set of labels in F1, as one more label
SHOWN = 5  # labels that could not be mapped, as examples

Value = str | tuple[str, ...]


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
    def right(self) -> bool:
        """Whether the answer equals the gold label; for several labels, the whole set."""
        return self.predicted is not None and _set(self.predicted) == _set(self.gold)


def accuracy(originals: Iterable[Original], level: float = 0.95) -> Estimate | None:
    """Share of answered originals whose answer equals the gold label (whole set); None if none was answered.

    One original per seed, so the interval is Clopper–Pearson.

    Examples
    --------
    >>> rows = [Original(case_id=str(i), gold="a", predicted="a" if i else None, groups={}) for i in range(3)]
    >>> estimate = accuracy(rows)
    >>> (estimate.value, estimate.n, estimate.n_skipped)
    (1.0, 2, 1)
    """
    rows = list(originals)
    answered = [o for o in rows if o.predicted is not None]
    if not answered:
        return None
    right = sum(o.right for o in answered)
    return clopper_pearson(right, len(answered), level, n_skipped=len(rows) - len(answered))


def micro_f1(originals: Iterable[Original], level: float = 0.95) -> Estimate | None:
    """F1 over all labels and answered originals together: ``2 TP / (2 TP + FP + FN)``; None if none was answered.

    An empty set counts as one label, "none", on either side. A ratio of sums over seeds, so the interval is
    Korn–Graubard by seed. With one label each it is the accuracy, and has its interval.
    """
    rows = list(originals)
    answered = [o for o in rows if o.predicted is not None]
    if not answered:
        return None
    if all(isinstance(o.gold, str) and isinstance(o.predicted, str) for o in answered):
        return accuracy(rows, level)
    twice, both = [], []
    for o in answered:
        gold, predicted = _set(o.gold), _set(o.predicted or ())
        twice.append(2.0 * len(gold & predicted))
        both.append(float(len(gold) + len(predicted)))
    found = korn_graubard(twice, both, level, n_skipped=len(rows) - len(answered))
    return dataclasses.replace(found, n_variants=None)


def macro_f1(originals: Iterable[Original], level: float = 0.95) -> Estimate | None:
    """Mean of the labels' F1, each label with equal weight; None if no original was answered.

    Labels that neither the gold labels nor the answers hold are left out; the note counts the others. The interval
    is Korn–Graubard on the variance by linearisation over seeds; with few seeds per label it is rough.
    """
    rows = list(originals)
    answered = [o for o in rows if o.predicted is not None]
    if not answered:
        return None
    golds = [_set(o.gold) for o in answered]
    guesses = [_set(o.predicted or ()) for o in answered]
    sizes: Counter[str] = Counter()
    hits: Counter[str] = Counter()
    for gold, guess in zip(golds, guesses, strict=True):
        sizes.update(gold)
        sizes.update(guess)
        hits.update(gold & guess)
    scores = {label: 2 * hits[label] / size for label, size in sizes.items()}
    value = sum(scores.values()) / len(scores)
    influence = np.zeros(len(answered))
    for i, (gold, guess) in enumerate(zip(golds, guesses, strict=True)):
        for label in gold | guess:
            got = 2 * (label in gold and label in guess) - scores[label] * ((label in gold) + (label in guess))
            influence[i] += got / sizes[label]
    units = float(len(answered))
    size = effective_size(value, influence / len(scores) * units, units, level)
    low, high = beta_limits(value, size, level)
    wrong = sum(not o.right for o in answered)
    notes = (f"mean over {len(scores)} labels that occur", approximate_note(len(answered), wrong))
    return Estimate(
        value=value,
        low=low,
        high=high,
        level=level,
        n=len(answered),
        n_skipped=len(rows) - len(answered),
        method="korn-graubard by seed, linearised",
        note="; ".join(note for note in notes if note),
    )


def violations(originals: Iterable[Original], *, right: bool, level: float = 0.95) -> Estimate | None:
    """Share of judged variants that violate, of originals answered right (or wrong); None if none was judged."""
    rows = [o for o in originals if o.predicted is not None and o.right is right]
    judged = [o for o in rows if o.judged]
    if not judged:
        return None
    return korn_graubard(
        [o.violations for o in judged], [o.judged for o in judged], level, n_skipped=len(rows) - len(judged)
    )


def measures(originals: Sequence[Original]) -> dict[str, object]:
    """Accuracy, micro- and macro-F1 as plain data; None where nothing was answered."""
    return {
        "accuracy": _plain(accuracy(originals)),
        "micro_f1": _plain(micro_f1(originals)),
        "macro_f1": _plain(macro_f1(originals)),
    }


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
        for attribute, group in original.groups.items():
            by_group[attribute, group].append(original)
    return {
        "model": model,
        "format": format,
        "n": len(originals),
        "overall": measures(originals),
        "groups": [
            {"attribute": attribute, "group": group, "n": len(rows), **measures(rows)}
            for (attribute, group), rows in sorted(by_group.items())
        ],
        "violations": {
            "right": _plain(violations(originals, right=True)),
            "wrong": _plain(violations(originals, right=False)),
        },
    }


def originals(
    observations: Observations, golds: Mapping[str, Value], answer: Callable[[Sequence[Answer]], Value | None]
) -> dict[tuple[str, str], list[Original]]:
    """The originals with a gold label, by model and format.

    Parameters
    ----------
    observations : Observations
        Of the run.
    golds : mapping of str to str or tuple
        Text → its label, as the task reads it.
    answer : callable
        The answer that stands for the replicates of one input; None where there is none.
    """
    columns, groups = observations.columns(), observations.version_groups()
    first = np.array([s.arm == Arm.ORIGINAL for s in observations.shapes.values], dtype=bool)
    wanted = np.array([name in golds for name in observations.texts.values], dtype=bool)
    own = first[columns.version_shape] & wanted[columns.version_text]
    judged = {
        place: _sums(found.values(), len(observations.texts.values))
        for place, found in tabulate(observations, edited, units=False).items()
    }
    given: dict[tuple[str, str], dict[int, list[Answer]]] = defaultdict(lambda: defaultdict(list))
    for row in np.flatnonzero(own[columns.version]).tolist():
        place = (observations.models.values[columns.model[row]], observations.formats.values[columns.format[row]])
        status, label = STATUSES[columns.status[row]], columns.label[row]
        value = observations.labels.values[label] if label >= 0 else None
        given[place][int(columns.version[row])].append(Answer(status=status, value=value))
    out = {}
    for place, by_version in given.items():
        counts = judged.get(Place(*place))
        rows = []
        for version, told in by_version.items():
            text = int(columns.version_text[version])
            case = observations.texts.values[text]
            rows.append(
                Original(
                    case_id=case,
                    gold=golds[case],
                    predicted=answer(told),
                    groups=dict(observations.groups.values[groups[version]]),
                    judged=0 if counts is None else int(counts[0][text]),
                    violations=0 if counts is None else int(counts[1][text]),
                )
            )
        out[place] = rows
    return out


def _sums(found: Iterable[Counts], texts: int) -> tuple[Ints, Ints]:
    """Judged variants and violations of each text, all attribute sets together."""
    judged, changed = np.zeros((2, texts), dtype=np.int64)
    for counts in found:
        judged[counts.text] += counts.judged
        changed[counts.text] += counts.violations
    return judged, changed


class Golds(NamedTuple):
    """Gold labels of texts: how many there are, and how many the task knows."""

    given: int
    mapped: int
    unmapped: int
    examples: list[str]
    missing: int


def gold_summary(golds: Mapping[str, tuple[str | None, bool]]) -> Golds:
    """Count gold labels.

    Parameters
    ----------
    golds : mapping of str to (str or None, bool)
        Case id → the label as the data writes it (None: none), and whether the task knows it.
    """
    unknown = Counter(text for text, known in golds.values() if text is not None and not known)
    given = sum(text is not None for text, _ in golds.values())
    ranked = sorted(unknown.items(), key=lambda item: (-item[1], item[0]))
    return Golds(
        given=given,
        mapped=given - unknown.total(),
        unmapped=unknown.total(),
        examples=[text[:80] for text, _ in ranked[:SHOWN]],
        missing=len(golds) - given,
    )


def _set(value: Value) -> frozenset[str]:
    if isinstance(value, tuple):
        return frozenset(value) or frozenset((NONE,))
    return frozenset((value,))


def _plain(estimate: Estimate | None) -> dict[str, object] | None:
    return None if estimate is None else dataclasses.asdict(estimate)
