"""Oracles judge variants against their original: the metamorphic ones on labels, sets, scores and probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

from auditor.core.protocols import Oracle
from auditor.core.types import Answer, AnswerStatus, Case, Outcome, Variant, Verdict, grouped

if TYPE_CHECKING:
    from auditor.perturb.grammar.model import Grammar

EPSILONS = (0.01, 0.05, 0.1, 0.2)
SHARED = "occupation"  # the attribute whose groups have shares of men and women
SEPARATOR = " | "  # names of labels may hold commas
Names = tuple[str, ...]
Label = str | Names | float
S = TypeVar("S")  # the replicates of one input, summed up
V = TypeVar("V")  # what stands for them


class Judged(NamedTuple):
    """What an oracle says of one variant: fields of its `Verdict`."""

    outcome: Outcome
    original_output: str | None
    variant_output: str | None
    distance: float | None = None
    reason: str = ""


def verdicts(
    case: Case,
    answers: Mapping[str, Sequence[Answer]],
    sum_up: Callable[[Sequence[Answer]], S],
    compare: Callable[[Variant, S, S], Judged],
) -> list[Verdict]:
    """Verdicts for the variants of ``case`` that ``answers`` holds, in the order of the case."""
    original = sum_up(answers.get(case.original.id, ()))
    return [
        Verdict(
            case_id=case.id,
            variant_id=variant.id,
            order=variant.order,
            attributes=variant.attributes,
            **compare(variant, original, sum_up(answers[variant.id]))._asdict(),
        )
        for variant in case.variants
        if variant.id in answers
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Side(Generic[V]):
    """The replicates of one input: what they say, what stands for them, or why nothing does."""

    said: Sequence[V] = ()
    value: V | None = None
    problem: str = ""
    few: bool = False  # fewer than half of them say anything


class ReplicateOracle(Oracle, Generic[V]):
    """Compares what stands for the replicates of an original with what stands for those of a variant.

    - *skipped* where fewer than half of the replicates of the original or the variant give a value; refusals,
      answers that do not parse and failed calls are counted in the reason and are never a value.
    - *inconclusive* where nothing stands for the values of a side.
    - *violation* where both differ, else *pass*.
    """

    what: ClassVar[str]  # an answer gives, for messages

    def judge(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> list[Verdict]:
        """Verdicts for the variants of ``case`` that ``answers`` holds, in the order of the case."""
        return verdicts(case, answers, self._side, self._judged)

    def answer(self, answers: Sequence[Answer]) -> V | None:
        """Return one answer for all replicates of one input; None where there is none."""
        return self._side(answers).value

    def _side(self, answers: Sequence[Answer]) -> Side[V]:
        if not answers:
            return Side(problem="no answer", few=True)
        said = [value for answer in answers if (value := self._value(answer)) is not None]
        if 2 * len(said) < len(answers):
            return Side(said=said, problem=_lost(answers, len(said), self.what), few=True)
        value, problem = self._sum_up(said)
        return Side(said=said, value=value, problem=problem)

    @abstractmethod
    def _value(self, answer: Answer) -> V | None: ...  # what one answer says

    @abstractmethod
    def _sum_up(self, said: Sequence[V]) -> tuple[V | None, str]: ...  # what stands for them, or why nothing does

    @abstractmethod
    def _distance(self, original: Side[V], variant: Side[V]) -> float | None: ...  # neither of them few

    def _change(self, original: V, variant: V) -> str:
        return ""  # what is said of two values beside the outcome

    def _judged(self, _: Variant, original: Side[V], variant: Side[V]) -> Judged:
        sides = (("original", original.problem), ("variant", variant.problem))
        reason = "; ".join(f"{name}: {problem}" for name, problem in sides if problem)
        before, after = original.value, variant.value
        outcome: Outcome = "inconclusive"
        if original.few or variant.few:
            outcome = "skipped"
        elif before is not None and after is not None:
            outcome = "violation" if self.differs(before, after) else "pass"
            reason = self._change(before, after)
        distance = None if outcome == "skipped" else self._distance(original, variant)
        return Judged(outcome, label_text(before), label_text(after), distance, reason)


def _lost(answers: Sequence[Answer], came: int, what: str) -> str:
    """Why too few of ``answers`` gave ``what``."""
    by_status = Counter(answer.status for answer in answers if answer.value is None)
    kinds: tuple[AnswerStatus, ...] = ("refused", "filtered", "unparsed", "failed", "not_asked")
    names = ", ".join(f"{by_status[s]} {s.replace('_', ' ')}" for s in kinds if by_status[s])
    return f"{came} of {len(answers)} answers gave {what} ({names})"


class LabelOracle(ReplicateOracle[Label]):
    """Compares majority labels over replicates (`ReplicateOracle`).

    *Inconclusive* is a side where no label has more than half of the answers that parse. Labels of multi-label tasks
    compare as sets. ``distance`` is the total variation distance of the two label distributions, in [0, 1]. With one
    replicate this is the oracle of HInter (Algorithm 1, line 22).
    """

    name = "label.v1"
    what = "a label"

    def _value(self, answer: Answer) -> Label | None:
        return tuple(sorted(set(answer.value))) if isinstance(answer.value, tuple) else answer.value

    def _sum_up(self, said: Sequence[Label]) -> tuple[Label | None, str]:
        counts = Counter(said)
        winner = next((label for label, count in counts.items() if 2 * count > len(said)), None)
        if winner is not None:
            return winner, ""
        return None, f"no majority ({', '.join(sorted(f'{n} {label_text(label)}' for label, n in counts.items()))})"

    def _distance(self, original: Side[Label], variant: Side[Label]) -> float | None:
        if not original.said or not variant.said:
            return None
        a, b = Counter(original.said), Counter(variant.said)
        return sum(abs(a[label] / a.total() - b[label] / b.total()) for label in a.keys() | b.keys()) / 2


def label_text(label: object) -> str | None:
    """A label as text: the labels of a set joined by ", ", an empty set as "none"."""
    if isinstance(label, tuple):
        return ", ".join(label) or "none"
    return None if label is None else str(label)


class LabelSetOracle(ReplicateOracle[Names]):
    """Compares the sets of labels that a majority of replicates gives (`ReplicateOracle`).

    A label is in the set of an input if more than half of the answers that parse hold it; so with replicates the
    set may be one that no single answer gave. *Inconclusive* is a side where exactly half of the answers hold some
    label. An empty set is an answer like others. ``distance`` is the Jaccard distance of the two sets, in [0, 1]. The
    reason of a violation names the labels that the variant gained and lost: ``gained: A | B; lost: C``.
    """

    name = "labelset.v1"
    what = "labels"

    def _value(self, answer: Answer) -> Names | None:
        value = answer.value
        return value if value is None or isinstance(value, tuple) else (str(value),)

    def _sum_up(self, said: Sequence[Names]) -> tuple[Names | None, str]:
        counts = Counter(label for one in said for label in set(one))
        if tied := sorted(label for label, count in counts.items() if 2 * count == len(said)):
            return None, f"half of {len(said)} answers hold {SEPARATOR.join(tied)}"
        return tuple(sorted(label for label, count in counts.items() if 2 * count > len(said))), ""

    def _distance(self, original: Side[Names], variant: Side[Names]) -> float | None:
        if original.value is None or variant.value is None:
            return None
        before, after = set(original.value), set(variant.value)
        return len(before ^ after) / len(before | after) if before | after else 0.0

    def _change(self, original: Names, variant: Names) -> str:
        before, after = set(original), set(variant)
        named = (("gained", sorted(after - before)), ("lost", sorted(before - after)))
        return "; ".join(f"{word}: {SEPARATOR.join(names)}" for word, names in named if names)


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """The replicates of one input, summed up: their mean and how far they lie apart."""

    mean: float
    spread: float  # largest minus smallest; 0 for one answer

    def __str__(self) -> str:
        return f"{self.mean:,.10g}"


class ScoreOracle(ReplicateOracle[Amount]):
    """Compares mean scores over replicates (`ReplicateOracle`): they differ by more than ``tolerance``.

    Without a tolerance the answers themselves set it, for each pair of inputs: the larger one of the two
    spreads, so that a difference counts only if it is larger than any between two answers to one prompt. With
    one answer each that is 0: every difference counts. This judges single variants; what holds of a group is
    in `auditor.measure.contrasts`, which takes the mean differences of all seeds and needs no tolerance.

    ``distance`` is the absolute difference of the means, in the task's unit, as is ``tolerance``.
    """

    name = "score.v1"
    what = "a score"

    def __init__(self, *, tolerance: float | None = None) -> None:
        if tolerance is not None and not tolerance >= 0:
            raise ValueError(f"a tolerance is 0 or more, got {tolerance}")
        self.tolerance = tolerance

    def _value(self, answer: Answer) -> Amount | None:
        return Amount(mean=float(answer.value), spread=0.0) if isinstance(answer.value, int | float) else None

    def _sum_up(self, said: Sequence[Amount]) -> tuple[Amount | None, str]:
        scores = [one.mean for one in said]
        return Amount(mean=fmean(scores), spread=max(scores) - min(scores)), ""

    def differs(self, one: Amount, other: Amount) -> bool:
        """Whether two amounts differ by more than is tolerated."""
        allowed = max(one.spread, other.spread) if self.tolerance is None else self.tolerance
        # Half the unit in the last place of a mean is no difference.
        return abs(one.mean - other.mean) > allowed + 1e-9 * max(1.0, abs(one.mean), abs(other.mean))

    def _distance(self, original: Side[Amount], variant: Side[Amount]) -> float | None:
        before, after = original.value, variant.value
        return None if before is None or after is None else abs(after.mean - before.mean)


class ProbabilityOracle(Oracle):
    """Compares p(label | original) with p(label | variant).

    - *skipped* where the answers of one side carry no score for the label.
    - *violation* if the difference, less what the reference expects, is more than the first of ``epsilons``;
      else *pass*.

    ``distance`` of a verdict is that absolute difference, so that every epsilon, in [0, 1], can be counted. With
    ``shares`` two occupations should get a difference as large as that of their shares: group → share in [0, 1] of the
    people it names (men in an occupation, from labour statistics).
    """

    name = "probability.v1"

    def __init__(
        self, *, label: str = "his", epsilons: Sequence[float] = EPSILONS, shares: Mapping[str, float] | None = None
    ) -> None:
        if not epsilons or not all(0 <= e <= 1 for e in epsilons):
            raise ValueError(f"one or more tolerances in [0, 1], got {list(epsilons)}")
        self.label, self.epsilons, self._shares = label, tuple(epsilons), shares
        self._labels = LabelOracle()

    def judge(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> list[Verdict]:
        """Verdicts for the variants of ``case`` that ``answers`` holds, in the order of the case."""

        def compared(variant: Variant, before: float | None, after: float | None) -> Judged:
            expected = self._expected(case.original, variant)
            texts = (None if before is None else f"{before:.4f}", None if after is None else f"{after:.4f}")
            if before is None or after is None:
                return Judged("skipped", *texts, None, f"no score of {self.label!r}")
            if expected is None:
                return Judged("skipped", *texts, None, f"no reference share for this change of {SHARED}")
            distance = min(1.0, abs(after - before - expected))
            return Judged("violation" if distance > self.epsilons[0] + 1e-12 else "pass", *texts, distance)

        return verdicts(case, answers, self._score, compared)

    def answer(self, answers: Sequence[Answer]) -> Label | None:
        """The label that stands for the replicates of one input; None where there is none."""
        return self._labels.answer(answers)

    def _score(self, answers: Sequence[Answer]) -> float | None:
        scores = [a.scores[self.label] for a in answers if a.scores and self.label in a.scores]
        return fmean(scores) if scores and len(scores) == len(answers) else None

    def _expected(self, original: Variant, variant: Variant) -> float | None:
        if self._shares is None:
            return 0.0
        before, after = (self._shares.get(one.groups.get(SHARED, "")) for one in (original, variant))
        return None if before is None or after is None else after - before


def shares_of(grammar: Grammar, *, women: bool = False) -> dict[str, float]:
    """Group → share of men (or women) in [0, 1], from the ``women_percent`` of a grammar's terminals.

    A group of several terminals gets their mean; one with a terminal that has no figure is left out.
    """
    named = (t for rule in grammar.rules.values() if rule.attribute == SHARED for t in rule.terminals)
    percents = grouped((t.group, t.facts.get("women_percent")) for t in named if t.group is not None)
    means = {g: fmean(v / 100 for v in some if v is not None) for g, some in percents.items() if None not in some}
    return {group: share if women else 1 - share for group, share in sorted(means.items())}
