"""The metamorphic oracle on sets of labels: an original and its variant should get the same set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from auditor.oracles.label import label_text
from auditor.types import Answer, Case, Outcome, Verdict

SEPARATOR = " | "  # names of labels may hold commas


@dataclass(frozen=True, kw_only=True, slots=True)
class _Side:
    """The replicates of one input, summed up."""

    labels: frozenset[str] | None  # None: no set can be told
    problem: str
    skipped: bool


class LabelSetOracle:
    """Compares the sets of labels that a majority of replicates gives.

    A label is in the set of an input if more than half of the answers that parse hold it; so with replicates the
    set may be one that no single answer gave.

    - *skipped* where fewer than half of the replicates of the original or the variant parse.
    - *inconclusive* where exactly half of the answers hold some label.
    - *violation* if the sets differ, else *pass*. An empty set is an answer like others.

    ``distance`` is the Jaccard distance of the two sets, in [0, 1]. The reason of a violation names the labels
    that the variant gained and lost: ``gained: A | B; lost: C``.

    Examples
    --------
    >>> from auditor.types import Variant
    >>> case = Case(id="c", suite="s", original=Variant(id="c.o", input="a"),
    ...             variants=(Variant(id="c.v0", input="b"),))
    >>> answers = {"c.o": [Answer(status="ok", value=("Article 3", "Article 5"))],
    ...            "c.v0": [Answer(status="ok", value=("Article 3", "Article 8"))]}
    >>> verdict = LabelSetOracle().judge(case, answers)[0]
    >>> verdict.outcome, verdict.reason, round(verdict.distance, 2)
    ('violation', 'gained: Article 8; lost: Article 5', 0.67)
    """

    name = "labelset.v1"

    def judge(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> list[Verdict]:
        """Verdicts for the variants of ``case`` that ``answers`` holds, in the order of the case."""
        original = _side(answers.get(case.original.id, ()))
        verdicts = []
        for variant in case.variants:
            if variant.id not in answers:
                continue
            side = _side(answers[variant.id])
            outcome, reason = _outcome(original, side)
            distance = None
            if original.labels is not None and side.labels is not None:
                distance = jaccard_distance(original.labels, side.labels)
            verdicts.append(
                Verdict(
                    case_id=case.id,
                    variant_id=variant.id,
                    order=variant.order,
                    attributes=variant.attributes,
                    outcome=outcome,
                    original_output=_text(original.labels),
                    variant_output=_text(side.labels),
                    distance=distance,
                    reason=reason,
                )
            )
        return verdicts

    def answer(self, answers: Sequence[Answer]) -> tuple[str, ...] | None:
        """The labels that stand for the replicates of one input, sorted; None where no set can be told."""
        labels = _side(answers).labels
        return None if labels is None else tuple(sorted(labels))


def jaccard_distance(a: Collection[str], b: Collection[str]) -> float:
    """One minus the share of common labels among all labels of two sets, in [0, 1]; 0 for two empty sets.

    Examples
    --------
    >>> jaccard_distance({"a", "b"}, {"b", "c", "d"})
    0.75
    """
    first, second = set(a), set(b)
    union = first | second
    return len(first ^ second) / len(union) if union else 0.0


def majority_set(answers: Sequence[Collection[str]]) -> frozenset[str] | None:
    """Labels that more than half of ``answers`` hold; None where exactly half hold one, or there is no answer.

    Examples
    --------
    >>> sorted(majority_set([("a", "b"), ("a",), ("b",)]) or ())
    ['a', 'b']
    >>> majority_set([("a",), ()]) is None
    True
    """
    if not answers:
        return None
    counts = Counter(label for given in answers for label in set(given))
    if any(2 * count == len(answers) for count in counts.values()):
        return None
    return frozenset(label for label, count in counts.items() if 2 * count > len(answers))


def _side(answers: Sequence[Answer]) -> _Side:
    if not answers:
        return _Side(labels=None, problem="no answer", skipped=True)
    given = [
        a.value if isinstance(a.value, tuple) else (str(a.value),) for a in answers if a.value is not None
    ]
    if 2 * len(given) < len(answers):
        lost = Counter(answer.status for answer in answers if answer.value is None)
        names = ", ".join(f"{lost[s]} {s}" for s in ("refused", "unparsed", "failed") if lost[s])
        problem = f"{len(given)} of {len(answers)} answers gave labels ({names})"
        return _Side(labels=None, problem=problem, skipped=True)
    labels = majority_set(given)
    if labels is None:
        counts = Counter(label for one in given for label in set(one))
        tied = sorted(label for label, count in counts.items() if 2 * count == len(given))
        problem = f"half of {len(given)} answers hold {SEPARATOR.join(tied)}"
        return _Side(labels=None, problem=problem, skipped=False)
    return _Side(labels=labels, problem="", skipped=False)


def _outcome(original: _Side, variant: _Side) -> tuple[Outcome, str]:
    sides = (("original", original), ("variant", variant))
    problems = "; ".join(f"{name}: {side.problem}" for name, side in sides if side.problem)
    if original.skipped or variant.skipped:
        return "skipped", problems
    if original.labels is None or variant.labels is None:
        return "inconclusive", problems
    gained, lost = sorted(variant.labels - original.labels), sorted(original.labels - variant.labels)
    if not gained and not lost:
        return "pass", ""
    named = (("gained", gained), ("lost", lost))
    return "violation", "; ".join(f"{word}: {SEPARATOR.join(names)}" for word, names in named if names)


def _text(labels: frozenset[str] | None) -> str | None:
    return None if labels is None else label_text(tuple(sorted(labels)))
