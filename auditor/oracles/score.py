"""The metamorphic oracle on scores: an original and its variant should get the same amount."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from auditor.types import Answer, Case, Outcome, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """The replicates of one input, summed up: their mean and how far they lie apart."""

    mean: float
    spread: float  # largest minus smallest; 0 for one answer

    def __str__(self) -> str:
        return f"{self.mean:,.10g}"


class ScoreOracle:
    """Compares mean scores over replicates.

    - *skipped* where fewer than half of the replicates of the original or the variant give a score.
    - *violation* where the means differ by more than ``tolerance``, else *pass*.

    Without a tolerance the answers themselves set it, for each pair of inputs: the larger one of the two
    spreads, so that a difference counts only if it is larger than any between two answers to one prompt. With
    one answer each that is 0: every difference counts. This judges single variants; what holds of a group is
    in `auditor.stats.scores`, which takes the mean differences of all seeds and needs no tolerance.

    ``distance`` is the absolute difference of the means, in the task's unit.

    Parameters
    ----------
    tolerance : float or None
        In the task's unit, 0 or more.

    Examples
    --------
    >>> from auditor.types import Variant
    >>> case = Case(id="c", suite="s", original=Variant(id="c.o", input="a"),
    ...             variants=(Variant(id="c.v0", input="b"),))
    >>> def told(*values): return [Answer(status="ok", value=float(v)) for v in values]
    >>> verdict = ScoreOracle().judge(case, {"c.o": told(80, 82, 81), "c.v0": told(85, 86, 84)})[0]
    >>> verdict.outcome, verdict.distance
    ('violation', 4.0)
    """

    name = "score.v1"

    def __init__(self, *, tolerance: float | None = None) -> None:
        if tolerance is not None and not tolerance >= 0:
            raise ValueError(f"a tolerance is 0 or more, got {tolerance}")
        self.tolerance = tolerance

    def judge(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> list[Verdict]:
        """Verdicts for the variants of ``case`` that ``answers`` holds, in the order of the case."""
        original, lost = _amount(answers.get(case.original.id, ()))
        verdicts = []
        for variant in case.variants:
            if variant.id not in answers:
                continue
            amount, missing = _amount(answers[variant.id])
            outcome: Outcome = "skipped"
            if original is not None and amount is not None:
                outcome = "violation" if self.differs(original, amount) else "pass"
            sides = (("original", lost), ("variant", missing))
            verdicts.append(
                Verdict(
                    case_id=case.id,
                    variant_id=variant.id,
                    order=variant.order,
                    attributes=variant.attributes,
                    outcome=outcome,
                    original_output=None if original is None else str(original),
                    variant_output=None if amount is None else str(amount),
                    distance=None if original is None or amount is None else abs(amount.mean - original.mean),
                    reason="; ".join(f"{name}: {problem}" for name, problem in sides if problem),
                )
            )
        return verdicts

    def answer(self, answers: Sequence[Answer]) -> Amount | None:
        """What stands for the replicates of one input; None where fewer than half give a score."""
        return _amount(answers)[0]

    def differs(self, one: Amount, other: Amount) -> bool:
        """Whether two amounts differ by more than is tolerated."""
        allowed = max(one.spread, other.spread) if self.tolerance is None else self.tolerance
        # Half the unit in the last place of a mean is no difference.
        return abs(one.mean - other.mean) > allowed + 1e-9 * max(1.0, abs(one.mean), abs(other.mean))


def _amount(answers: Sequence[Answer]) -> tuple[Amount | None, str]:
    values = [float(a.value) for a in answers if isinstance(a.value, int | float)]
    if not answers:
        return None, "no answer"
    if not values or 2 * len(values) < len(answers):
        lost = Counter(answer.status for answer in answers if answer.value is None)
        names = ", ".join(f"{lost[s]} {s}" for s in ("refused", "unparsed", "failed") if lost[s])
        return None, f"{len(values)} of {len(answers)} answers gave a score ({names})"
    return Amount(mean=fmean(values), spread=max(values) - min(values)), ""
