"""What the adapters that run on this machine share: reading a request, and leaving the event loop free."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

from auditor.core.errors import BadRequest, BadResponse, CallError
from auditor.core.protocols import Reply
from auditor.core.types import Prompt, Request


def user_text(prompt: Prompt) -> str:
    """Give the text a prompt is about: its bare input, or its last user message.

    Returns an empty text where there is no user message.

    Examples
    --------
    >>> user_text(Prompt(format="bare", text="A fine film."))
    'A fine film.'
    """
    if prompt.text is not None:
        return prompt.text
    return next((m.content for m in reversed(prompt.messages or ()) if m.role == "user"), "")


def bare_text(request: Request) -> str | BadRequest:
    """Give the bare input of a request, or the error for a prompt that was rendered as messages."""
    if request.prompt.text is not None:
        return request.prompt.text
    return BadRequest("this model reads the bare text; it was sent chat messages")


async def classify(batch: Sequence[Request], answer: Callable[[str], Reply | CallError]) -> list[Reply | CallError]:
    """Answer a batch with a quick function of the text, in a worker thread.

    The worker stops at the next text when the caller is cancelled, so that an interrupt does not wait
    for the rest of the batch.
    """
    stop = threading.Event()

    def work() -> list[Reply | CallError]:
        replies: list[Reply | CallError] = []
        for request in batch:
            if stop.is_set():
                break
            text = bare_text(request)
            replies.append(text if isinstance(text, BadRequest) else answer(text))
        return replies

    try:
        return await asyncio.to_thread(work)
    finally:
        stop.set()


def has_neutral(task: object) -> bool:
    """Whether a task has a third label, "neutral", beside those of approval and disapproval."""
    return "neutral" in {str(label).casefold() for label in getattr(task, "labels", ())}


def read_scores(value: Mapping[Any, object], where: str) -> dict[str, float]:
    """Check a label → probability mapping that came from outside.

    Parameters
    ----------
    value : mapping
        Labels to numbers in [0, 1]; NumPy numbers are welcome.
    where : str
        Who gave it, for the message.

    Raises
    ------
    BadResponse
        A label is not text, or a number is missing, not finite or outside [0, 1].
    """
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
    """Pick the label of the highest score; the first in the alphabet among equals."""
    return min(scores, key=lambda label: (-scores[label], label))
