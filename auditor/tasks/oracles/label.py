"""The metamorphic oracle on labels: an original and its variant should get the same one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from auditor.core.protocols import Oracle
from auditor.core.types import Answer, Case, Outcome, Variant, Verdict
from auditor.tasks.oracles.walk import Judged, lost, problems, verdicts

Label = str | tuple[str, ...] | float


@dataclass(frozen=True, kw_only=True, slots=True)
class _Side:
    """The replicates of one input, summed up."""

    counts: Counter[Label]
    n: int
    winner: Label | None
    problem: str  # why it has no label; empty if it has one
    skipped: bool


class LabelOracle(Oracle):
    """Compares majority labels over replicates.

    - *skipped* where fewer than half of the replicates of the original or the variant give a label; refusals,
      answers that do not parse and failed calls are counted in the reason and are never a label.
    - *inconclusive* where no label has more than half of the answers that parse.
    - *violation* if the majority labels differ, else *pass*. Labels of multi-label tasks compare as sets.

    ``distance`` is the total variation distance of the two label distributions, in [0, 1]. With one replicate
    this is the oracle of HInter (Algorithm 1, line 22).

    Examples
    --------
    >>> from auditor.core.types import Variant
    >>> case = Case(id="c", suite="s", original=Variant(id="c.o", input="a"),
    ...             variants=(Variant(id="c.v0", input="b"),))
    >>> answers = {"c.o": [Answer(status="ok", value="yes")], "c.v0": [Answer(status="ok", value="no")]}
    >>> [verdict.outcome for verdict in LabelOracle().judge(case, answers)]
    ['violation']
    """

    name = "label.v1"
    by_labels = True

    def judge(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> list[Verdict]:
        """Verdicts for the variants of ``case`` that ``answers`` holds, in the order of the case."""
        return verdicts(case, answers, _side, _judged)

    def answer(self, answers: Sequence[Answer]) -> Label | None:
        """The label that stands for the replicates of one input; None where there is none."""
        return _side(answers).winner


def label_text(label: Label | None) -> str | None:
    """A label as text: the labels of a set joined by ", ", an empty set as "none"."""
    if isinstance(label, tuple):
        return ", ".join(label) or "none"
    return None if label is None else str(label)


def total_variation(a: Counter[Label], b: Counter[Label]) -> float | None:
    """Total variation distance of two label distributions, in [0, 1]; None if one is empty."""
    n, m = a.total(), b.total()
    if not n or not m:
        return None
    return sum(abs(a[label] / n - b[label] / m) for label in a.keys() | b.keys()) / 2


def _side(answers: Sequence[Answer]) -> _Side:
    counts: Counter[Label] = Counter(_comparable(a.value) for a in answers if a.value is not None)
    n, parsed = len(answers), counts.total()
    if not n:
        return _Side(counts=counts, n=0, winner=None, problem="no answer", skipped=True)
    if 2 * parsed < n:
        problem = lost(answers, parsed, "a label")
        return _Side(counts=counts, n=n, winner=None, problem=problem, skipped=True)
    winner = next((label for label, count in counts.items() if 2 * count > parsed), None)
    if winner is None:
        split = ", ".join(sorted(f"{count} {label_text(label)}" for label, count in counts.items()))
        return _Side(counts=counts, n=n, winner=None, problem=f"no majority ({split})", skipped=False)
    return _Side(counts=counts, n=n, winner=winner, problem="", skipped=False)


def _comparable(value: Label) -> Label:
    return tuple(sorted(set(value))) if isinstance(value, tuple) else value


def _judged(_: Variant, original: _Side, variant: _Side) -> Judged:
    outcome: Outcome = "pass" if original.winner == variant.winner else "violation"
    distance = None
    if original.skipped or variant.skipped:
        outcome = "skipped"
    else:
        distance = total_variation(original.counts, variant.counts)
        if original.winner is None or variant.winner is None:
            outcome = "inconclusive"
    reason = problems(original.problem, variant.problem)
    return outcome, label_text(original.winner), label_text(variant.winner), distance, reason
