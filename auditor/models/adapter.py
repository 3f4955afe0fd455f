"""What adapters share: reading a request, limits of answers, and what came back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from auditor.core.errors import BadResponse
from auditor.core.types import Prompt, Usage

MAX_TOKENS = 256  # of an answer, where the task does not say
MOST_TOKENS = 10**8  # of one call that are believed; more than any model takes


def user_text(prompt: Prompt) -> str:
    """Return the text a prompt is about: its bare input, or its last user message, or ""."""
    if prompt.text is not None:
        return prompt.text
    return next((m.content for m in reversed(prompt.messages or ()) if m.role == "user"), "")


def read_scores(value: Mapping[Any, object], where: str) -> dict[str, float]:
    """Return labels with probabilities that came from outside, checked; else raise `BadResponse`."""
    scores: dict[str, float] = {}
    for label, number in value.items():
        if not isinstance(label, str):
            raise BadResponse(f"{where}: score label {label!r} is not text")
        if isinstance(number, bool) or not isinstance(number, Real):
            raise BadResponse(f"{where}: the score of {label!r} is {number!r}, not a number")
        probability = float(number)
        if not math.isfinite(probability) or not -1e-6 <= probability <= 1 + 1e-6:
            raise BadResponse(f"{where}: the score of {label!r} is {probability!r}, not in [0, 1]")
        scores[str(label)] = min(1.0, max(0.0, probability))
    if not scores:
        raise BadResponse(f"{where}: the mapping of scores is empty")
    return scores


def best_label(scores: Mapping[str, float]) -> str:
    """Return the label of the highest score; the first in the alphabet among equals."""
    return min(scores, key=lambda label: (-scores[label], label))


def usage(tokens_in: object, tokens_out: object) -> Usage | None:
    """Return the tokens that a server counted; None where it names none, or more than a call can use.

    >>> usage(12, 3), usage(12, None), usage(10**30, 3)
    (Usage(tokens_in=12, tokens_out=3), None, None)
    """
    whole = [n for n in (tokens_in, tokens_out) if type(n) is int and 0 <= n <= MOST_TOKENS]
    return Usage(tokens_in=whole[0], tokens_out=whole[1]) if len(whole) == 2 else None


def token_limits(task: Any, most: int | None = None) -> dict[str, int]:
    """Return the most tokens of an answer by prompt format; "" for any other."""
    if most is not None:
        return {"": most}
    formats = sorted(getattr(task, "formats", ()))
    limits = {form: int(task.max_tokens(form)) for form in formats}
    return {**limits, "": max(limits.values(), default=MAX_TOKENS)}


def scalar(value: object) -> Any:
    """Return one value of a row for JSON or a text: whole numbers without a decimal point; None for NaN.

    >>> scalar(31.0), scalar(0.5), scalar(True), scalar(float("nan"))
    (31, 0.5, True, None)
    """
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else int(value) if value.is_integer() else value
