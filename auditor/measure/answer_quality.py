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
from auditor.measure.intervals import clopper_pearson, korn_graubard
from auditor.measure.observations import STATUSES, Arm, Observations, Place
from auditor.measure.rates import edited, tabulate

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
    """Reasons to be careful with the figures of one model."""
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
    """Whether so many of ``answers`` were lost that a report warns."""
    return lost > UNREADABLE * answers


def alike(
    model: str, counts: Mapping[str, Mapping[object, int]], labels: Mapping[object, str], seen: Collection[str] = ()
) -> Iterator[Caution]:
    """Yield a caution for each format in which (nearly) every answer that could be read is the same.

    ``counts``: format → answer → how often it came, None for texts; ``seen``: formats whose positive control was seen.
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
    def right(self) -> bool:
        """Whether the answer equals the gold label; for several labels, the whole set."""
        if isinstance(self.gold, tuple) and isinstance(self.predicted, tuple):
            return set(self.gold) == set(self.predicted)
        return self.predicted == self.gold


def accuracy(originals: Iterable[Original]) -> Estimate | None:
    """Share of answered originals whose answer equals the gold label (whole set); None if none was answered.

    One original per seed, so the interval is Clopper–Pearson.
    """
    rows = list(originals)
    answered = [o for o in rows if o.predicted is not None]
    right = sum(o.right for o in answered)
    return clopper_pearson(right, len(answered), n_skipped=len(rows) - len(answered)) if answered else None


def violations(originals: Iterable[Original], *, right: bool) -> Estimate | None:
    """Share of judged variants that violate, of originals answered right (or wrong); None if none was judged."""
    rows = [o for o in originals if o.predicted is not None and o.right is right]
    judged = [o for o in rows if o.judged]
    if not judged:
        return None
    counts = [o.violations for o in judged], [o.judged for o in judged]
    return korn_graubard(*counts, n_skipped=len(rows) - len(judged))


def table(model: str, format: str, originals: Sequence[Original]) -> dict[str, object]:
    """One model in one format: overall, by group named in the original, and violations among right and wrong."""
    by_group: dict[tuple[str, str], list[Original]] = defaultdict(list)
    for original in originals:
        for group in original.groups.items():
            by_group[group].append(original)
    groups = [
        {"attribute": attribute, "group": group, "n": len(rows), "accuracy": _plain(accuracy(rows))}
        for (attribute, group), rows in sorted(by_group.items())
    ]
    changed = {name: _plain(violations(originals, right=name == "right")) for name in ("right", "wrong")}
    about = {"model": model, "format": format, "n": len(originals)}
    return about | {"overall": {"accuracy": _plain(accuracy(originals))}, "groups": groups, "violations": changed}


def _plain(estimate: Estimate | None) -> dict[str, object] | None:
    return None if estimate is None else dataclasses.asdict(estimate)


def originals(
    observations: Observations, golds: Mapping[str, Value], answer: Callable[[Sequence[Answer]], Value | None]
) -> dict[Place, list[Original]]:
    """The originals with a gold label."""
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
