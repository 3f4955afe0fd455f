"""The metamorphic oracle on scores: an original and its variant should get the same amount."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from auditor.core.protocols import Oracle
from auditor.core.types import Answer, Case, Outcome, Variant, Verdict
from auditor.tasks.oracles.walk import Judged, lost, problems, verdicts


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """The replicates of one input, summed up: their mean and how far they lie apart."""

    mean: float
    spread: float  # largest minus smallest; 0 for one answer

    def __str__(self) -> str:
        return f"{self.mean:,.10g}"


_Told = tuple[Amount | None, str]  # what stands for one input, or why nothing does


class ScoreOracle(Oracle):
    """Compares mean scores over replicates.

    - *skipped* where fewer than half of the replicates of the original or the variant give a score.
    - *violation* where the means differ by more than ``tolerance``, else *pass*.

    Without a tolerance the answers themselves set it, for each pair of inputs: the larger one of the two
    spreads, so that a difference counts only if it is larger than any between two answers to one prompt. With
    one answer each that is 0: every difference counts. This judges single variants; what holds of a group is
    in `auditor.measure.scores`, which takes the mean differences of all seeds and needs no tolerance.

    ``distance`` is the absolute difference of the means, in the task's unit.

    Parameters
    ----------
    tolerance : float or None
        In the task's unit, 0 or more.

    Examples
    --------
    >>> from auditor.core.types import Variant
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
        return verdicts(case, answers, _amount, self._judged)

    def answer(self, answers: Sequence[Answer]) -> Amount | None:
        """What stands for the replicates of one input; None where fewer than half give a score."""
        return _amount(answers)[0]

    def differs(self, one: Amount, other: Amount) -> bool:
        """Whether two amounts differ by more than is tolerated."""
        allowed = max(one.spread, other.spread) if self.tolerance is None else self.tolerance
        # Half the unit in the last place of a mean is no difference.
        return abs(one.mean - other.mean) > allowed + 1e-9 * max(1.0, abs(one.mean), abs(other.mean))

    def _judged(self, _: Variant, original: _Told, variant: _Told) -> Judged:
        (one, lacking), (other, missing) = original, variant
        texts = [None if amount is None else str(amount) for amount in (one, other)]
        outcome: Outcome = "skipped"
        distance = None
        if one is not None and other is not None:
            outcome = "violation" if self.differs(one, other) else "pass"
            distance = abs(other.mean - one.mean)
        return outcome, texts[0], texts[1], distance, problems(lacking, missing)


def _amount(answers: Sequence[Answer]) -> _Told:
    values = [float(a.value) for a in answers if isinstance(a.value, int | float)]
    if not answers:
        return None, "no answer"
    if not values or 2 * len(values) < len(answers):
        return None, lost(answers, len(values), "a score")
    return Amount(mean=fmean(values), spread=max(values) - min(values)), ""
