"""What all oracles share: the walk over a case, and why a side has no answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from auditor.core.types import Answer, AnswerStatus, Case, Outcome, Variant, Verdict

S = TypeVar("S")  # the replicates of one input, summed up
Judged = tuple[Outcome, str | None, str | None, float | None, str]  # outcome, both outputs, distance, reason


def verdicts(
    case: Case,
    answers: Mapping[str, Sequence[Answer]],
    sum_up: Callable[[Sequence[Answer]], S],
    compare: Callable[[Variant, S, S], Judged],
) -> list[Verdict]:
    """Verdicts for the variants of ``case`` that ``answers`` holds, in the order of the case."""
    original = sum_up(answers.get(case.original.id, ()))
    out = []
    for variant in case.variants:
        if variant.id in answers:
            outcome, before, after, distance, reason = compare(variant, original, sum_up(answers[variant.id]))
            out.append(
                Verdict(
                    case_id=case.id,
                    variant_id=variant.id,
                    order=variant.order,
                    attributes=variant.attributes,
                    outcome=outcome,
                    original_output=before,
                    variant_output=after,
                    distance=distance,
                    reason=reason,
                )
            )
    return out


def lost(answers: Sequence[Answer], given: int, what: str) -> str:
    """Why too few of ``answers`` gave ``what``."""
    by_status = Counter(answer.status for answer in answers if answer.value is None)
    kinds: tuple[AnswerStatus, ...] = ("refused", "filtered", "unparsed", "failed", "not_asked")
    names = ", ".join(f"{by_status[s]} {s.replace('_', ' ')}" for s in kinds if by_status[s])
    return f"{given} of {len(answers)} answers gave {what} ({names})"


def problems(original: str, variant: str) -> str:
    """The problems of both sides as one reason."""
    sides = (("original", original), ("variant", variant))
    return "; ".join(f"{name}: {problem}" for name, problem in sides if problem)
