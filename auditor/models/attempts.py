"""Values of the client: counts, responses, and when a failed call is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from auditor.core.errors import BadRequest, CallError, ContentFiltered, PromptTooLong
from auditor.core.protocols import Reply
from auditor.core.shown import scrub_text
from auditor.core.types import Answer, Request, Response

BUDGET = "budget"  # Response.error of requests that a limit kept from being asked
DEFINITIVE = frozenset({ContentFiltered.code, BadRequest.code, PromptTooLong.code})
Key = tuple[str, int]  # (prompt sha256, replicate)


class Known(Protocol):
    """Answers by (prompt sha256, replicate), such as a mapping of them."""

    def get(self, key: Key, /) -> Response | None:
        """Return the answer to a question, if there is one."""
        ...


def definitive(response: Response) -> bool:
    """Return whether asking again is a waste: an answer, or a refusal that is about this prompt."""
    return response.output is not None or response.error in DEFINITIVE


@dataclass(slots=True)
class Counts:
    """What a client did in this process; one answer may serve many requests."""

    calls: int = 0  # attempts that reached the adapter
    answered: int = 0  # by the adapter
    cached: int = 0
    replayed: int = 0  # from the journal
    failed: int = 0
    retries: int = 0


def clean(reply: Reply) -> Reply:
    """Return ``reply`` without known secrets: a server may echo the key that it was sent."""
    text, scores, reported = reply.text, reply.scores, reply.model_reported
    return reply._replace(
        text=scrub_text(text),
        scores=None if scores is None else {scrub_text(label): score for label, score in scores.items()},
        model_reported=None if reported is None else scrub_text(reported),
    )


def unanswered(error: str) -> Answer:
    """Return the answer for a response without an output: filtered, or failed."""
    return Answer(status="filtered" if error == ContentFiltered.code else "failed", reason=error)


def answer(
    model: str,
    request: Request,
    reply: Reply,
    *,
    cached: bool = False,
    cost_usd: float | None = None,
    latency_s: float = 0.0,
) -> Response:
    """Return the response to a request that was answered."""
    reply = clean(reply)
    return Response(
        output=reply.text,
        scores=reply.scores,
        cached=cached,
        latency_s=latency_s,
        usage=reply.usage,
        cost_usd=cost_usd,
        model_reported=reply.model_reported,
        cut_off=reply.cut_off,
        **_question(model, request),
    )


def failure(model: str, request: Request, code: str, detail: str) -> Response:
    """Return the response to a request that has no answer."""
    return Response(error=code, detail=detail, **_question(model, request))


def _question(model: str, request: Request) -> dict[str, Any]:
    return {
        "variant_id": request.variant_id,
        "prompt_sha256": request.prompt.sha256,
        "format": request.prompt.format,
        "replicate": request.replicate,
        "model": model,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """Bounded retries with exponential backoff and full jitter.

    The wait after attempt *a* is uniform in [0, min(``cap_s``, ``base_s`` · 2^(a−1))]. A time that the server names
    (``Retry-After``) is kept in full, plus jitter of at most ``base_s``.
    """

    attempts: int = 5  # in all
    base_s: float = 0.5
    cap_s: float = 60.0
    ceiling_s: float = 300.0  # all waits between the attempts at one request, together
    seed: int = 7  # of the jitter

    def delay(self, attempt: int, error: CallError, waited_s: float, rng: Random) -> float | None:
        """Return the seconds to wait after ``attempt`` (from 1) ended in ``error``; None means give up."""
        if not error.transient or attempt >= self.attempts:
            return None
        if error.retry_after_s is not None:
            wait = error.retry_after_s + rng.uniform(0.0, self.base_s)
        else:
            wait = rng.uniform(0.0, min(self.cap_s, self.base_s * 2.0 ** (attempt - 1)))
        return wait if waited_s + wait <= self.ceiling_s else None
