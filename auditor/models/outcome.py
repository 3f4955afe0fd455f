"""Responses: how they are made, which are worth keeping, and what a client counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from auditor.core.errors import BadRequest, ContentFiltered
from auditor.core.protocols import Reply
from auditor.core.secrets import scrub_text
from auditor.core.types import Answer, Request, Response

Key = tuple[str, int]  # (prompt sha256, replicate)


class Known(Protocol):
    """Answers by (prompt sha256, replicate), such as a mapping of them."""

    def get(self, key: Key, /) -> Response | None:
        """The answer to a question; ``default`` where there is none."""
        ...


BUDGET = "budget"  # Response.error of requests that a limit kept from being asked
FIRST, HOPELESS = 40, 30  # answers of a model that are looked at, and how many may be lost of them
DEFINITIVE = frozenset({ContentFiltered.code, BadRequest.code})


def definitive(response: Response) -> bool:
    """Whether asking again would be a waste: an answer, or a refusal that is about this prompt.

    A journal hands the client only these as ``answered``; what failed in passing is asked again.
    """
    return response.output is not None or response.error in DEFINITIVE


@dataclass(slots=True)
class Counts:
    """What a client did. Money and tokens are those of this process; cached answers cost nothing.

    Sum these rather than responses: one answer may serve many requests.
    """

    calls: int = 0  # attempts that reached the adapter
    answered: int = 0  # by the adapter
    cached: int = 0
    replayed: int = 0  # from the journal
    failed: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0


@dataclass(kw_only=True, slots=True)
class First:
    """What became of the first answers of a model; where most cannot be read, it is not worth asking further."""

    answers: int = 0
    lost: int = 0  # of these, refused or unreadable

    def add(self, readable: bool) -> None:
        """Take note of one answer, as long as not enough were looked at."""
        if not self.over:
            self.answers += 1
            self.lost += not readable

    @property
    def over(self) -> bool:
        """Whether enough answers were looked at."""
        return self.answers >= FIRST or self.hopeless

    @property
    def hopeless(self) -> bool:
        """Whether most of them could not be read, or were refusals."""
        return self.lost >= HOPELESS


def clean(reply: Reply) -> Reply:
    """``reply`` without the secrets that are known: a server may echo the key that it was sent."""
    text, scores, reported = reply.text, reply.scores, reply.model_reported
    return reply._replace(
        text=scrub_text(text),
        scores=None if scores is None else {scrub_text(label): score for label, score in scores.items()},
        model_reported=None if reported is None else scrub_text(reported),
    )


def unanswered(error: str) -> Answer:
    """What a response without an output comes to: kept back by a provider's filter, or a call that failed."""
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
    """Make the response of a request that was answered."""
    reply = clean(reply)
    return Response(
        variant_id=request.variant_id,
        prompt_sha256=request.prompt.sha256,
        format=request.prompt.format,
        replicate=request.replicate,
        output=reply.text,
        scores=reply.scores,
        cached=cached,
        latency_s=latency_s,
        usage=reply.usage,
        cost_usd=cost_usd,
        model=model,
        model_reported=reply.model_reported,
        cut_off=reply.cut_off,
    )


def failure(model: str, request: Request, code: str, detail: str) -> Response:
    """Make the response of a request that has no answer."""
    return Response(
        variant_id=request.variant_id,
        prompt_sha256=request.prompt.sha256,
        format=request.prompt.format,
        replicate=request.replicate,
        error=code,
        detail=detail,
        model=model,
    )
