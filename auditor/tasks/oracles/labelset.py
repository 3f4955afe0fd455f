"""The metamorphic oracle on sets of labels: an original and its variant should get the same set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from auditor.core.protocols import Oracle
from auditor.core.types import Answer, Case, Outcome, Variant, Verdict
from auditor.tasks.oracles.label import label_text
from auditor.tasks.oracles.walk import Judged, lost, problems, verdicts

SEPARATOR = " | "  # names of labels may hold commas


@dataclass(frozen=True, kw_only=True, slots=True)
class _Side:
    """The replicates of one input, summed up."""

    labels: frozenset[str] | None  # None: no set can be told
    problem: str
    skipped: bool


class LabelSetOracle(Oracle):
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
    >>> from auditor.core.types import Variant
    >>> case = Case(id="c", suite="s", original=Variant(id="c.o", input="a"),
    ...             variants=(Variant(id="c.v0", input="b"),))
    >>> answers = {"c.o": [Answer(status="ok", value=("Article 3", "Article 5"))],
    ...            "c.v0": [Answer(status="ok", value=("Article 3", "Article 8"))]}
    >>> verdict = LabelSetOracle().judge(case, answers)[0]
    >>> verdict.outcome, verdict.reason, round(verdict.distance, 2)
    ('violation', 'gained: Article 8; lost: Article 5', 0.67)
    """

    name = "labelset.v1"
    by_labels = True

    def judge(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> list[Verdict]:
        """Verdicts for the variants of ``case`` that ``answers`` holds, in the order of the case."""
        return verdicts(case, answers, _side, _judged)

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
    given = [a.value if isinstance(a.value, tuple) else (str(a.value),) for a in answers if a.value is not None]
    if 2 * len(given) < len(answers):
        problem = lost(answers, len(given), "labels")
        return _Side(labels=None, problem=problem, skipped=True)
    labels = majority_set(given)
    if labels is None:
        counts = Counter(label for one in given for label in set(one))
        tied = sorted(label for label, count in counts.items() if 2 * count == len(given))
        problem = f"half of {len(given)} answers hold {SEPARATOR.join(tied)}"
        return _Side(labels=None, problem=problem, skipped=False)
    return _Side(labels=labels, problem="", skipped=False)


def _judged(_: Variant, original: _Side, variant: _Side) -> Judged:
    before, after = original.labels, variant.labels
    outcome: Outcome = "skipped" if original.skipped or variant.skipped else "inconclusive"
    reason, distance = problems(original.problem, variant.problem), None
    if before is not None and after is not None:
        outcome, distance = "pass" if before == after else "violation", jaccard_distance(before, after)
        named = (("gained", sorted(after - before)), ("lost", sorted(before - after)))
        reason = "; ".join(f"{word}: {SEPARATOR.join(names)}" for word, names in named if names)
    return outcome, _text(before), _text(after), distance, reason


def _text(labels: frozenset[str] | None) -> str | None:
    return None if labels is None else label_text(tuple(sorted(labels)))
