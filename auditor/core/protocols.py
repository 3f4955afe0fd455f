"""The places to extend. Implement the methods; there is no base class to inherit.

Entry-point groups: ``auditor.perturb``, ``auditor.checks``, ``auditor.models``, ``auditor.tasks.oracles``,
``auditor.renderers``. Names end in a version (``org/name.v1``); a change of behaviour is a new version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Literal, NamedTuple, Protocol

from auditor.core.errors import CallError
from auditor.core.types import Answer, Case, Check, Progress, Request, Usage, Variant, Verdict


class Reply(NamedTuple):
    """What an adapter hands back for one request that was answered; ``cut_off`` at the limit on tokens."""

    text: str
    scores: Mapping[str, float] | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    model_reported: str | None = None
    cut_off: bool = False


class Suite(Protocol):
    """Makes cases. ``tell`` is the only edge that runs backwards."""

    name: str

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """Up to ``n`` further cases; an empty answer means that the suite is exhausted."""
        ...

    def tell(self, verdicts: Sequence[Verdict]) -> None:
        """Learn from the verdicts of one round, sorted by case and variant id."""
        ...


class Validity(Protocol):
    """Says whether a variant is a text that its original could have been."""

    name: str

    def check(self, original: Variant, variants: Sequence[Variant]) -> Sequence[Check]:
        """One check for each variant of one original, in their order."""
        ...


class Model(Protocol):
    """An adapter. No cache, budget, retry or limiter: the client wraps those around it.

    ``style`` says what it reads: "text" the bare input (classifiers), "chat" the rendered prompt.
    ``deterministic`` is declared, never inferred. ``fingerprint`` identifies the model and the parameters
    that shape its answers; it is part of the cache key. ``cacheable`` is False where asking again is
    cheaper than the cache.
    """

    name: str
    fingerprint: str
    style: Literal["text", "chat"]
    deterministic: bool
    cacheable: bool
    max_batch: int

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """One reply or error for each request, in order; at most ``max_batch`` requests."""
        ...

    async def aclose(self) -> None:
        """Release connections and processes."""
        ...


class Oracle(Protocol):
    """Judges variants against their original."""

    name: str

    def judge(self, case: Case, answers: Mapping[str, Sequence[Answer]]) -> Sequence[Verdict]:
        """Verdicts for the variants of ``case`` that ``answers`` (variant id → replicates) holds."""
        ...


class Renderer(Protocol):
    """Turns a run into a report."""

    name: str
    suffix: str  # file ending, e.g. ".html"

    def render(self, record: Mapping[str, Any], evidence: Any) -> str | bytes:
        """``record`` is run.json as plain data; ``evidence`` reads cases, prompts, answers by id."""
        ...


class Observer(Protocol):
    """Gets progress events."""

    def __call__(self, event: Progress) -> None:
        """Take note of ``event``; must return at once."""
        ...
