"""What a run keeps of its variants and of the answers to them while they stream by."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from auditor.core.protocols import Model
from auditor.core.types import Answer, Case, Response
from auditor.models.outcome import First
from auditor.store.compact import KeySet

KEPT_HIDDEN = 1000  # hidden variants whose whole case stays in memory; more are never asked again
KEPT_VALUES = 1000  # different answers in one format that are counted one by one
LOST = ("failed", "not_asked")  # no answer came
WAITING = 256  # answers that may wait to be journaled, where asking again is cheap and gives the same
Answers = dict[str, dict[str, list[Answer]]]  # format -> variant id -> answers of its replicates


@dataclass(kw_only=True)
class Tally:
    """What one model's answers came to, while they stream by."""

    model: Model
    replicates: int
    formats: tuple[str, ...]
    counts: Counter[str] = field(default_factory=Counter)
    judged: bool = False  # whether any variant could be
    given: dict[str, Counter[Any]] = field(
        default_factory=lambda: defaultdict(Counter)
    )  # format -> answer that was read -> how often; None: all that came after `KEPT_VALUES`
    unread: tuple[str, str] | None = None  # variant id and output of the first answer without a label
    cost_usd: float = 0.0
    reported: set[str] = field(default_factory=set)
    seen: KeySet = field(default_factory=KeySet)
    known: set[tuple[str, int]] = field(
        default_factory=set
    )  # journaled and not counted yet; what was not asked is not among them
    waiting: list[Response] = field(default_factory=list)  # to be journaled together
    ahead: Counter[str] = field(default_factory=Counter)  # of a round under way: answers that are not counted yet
    ahead_usd: float = 0.0
    planned: int = 0
    first: First = field(default_factory=First)  # the client's
    hidden: list[tuple[Case, str, str]] = field(default_factory=list)  # case, variant id, format
    canaries: dict[tuple[str, str], dict[str, list[object]]] = field(
        default_factory=dict
    )  # (prompt, format) -> time -> answers
    control: dict[str, object] = field(default_factory=dict)  # of the positive control

    def count(self, name: str, value: Any) -> None:
        """Count an answer that was read in the format ``name``."""
        counts = self.given[name]
        counts[value if value in counts or len(counts) < KEPT_VALUES else None] += 1

    @property
    def judged_nothing(self) -> bool:
        """Whether no variant could be judged, since most answers were refused, filtered, unreadable or did not come."""
        if 2 * self.lost <= len(self.seen) or self.lost == self.counts["failed"]:
            return False
        return not self.judged

    @property
    def lost(self) -> int:
        """How many answers were refused, filtered, unreadable or did not come."""
        return sum(self.counts[status] for status in ("unparsed", "refused", "filtered", "failed"))

    @property
    def together(self) -> bool:
        """Whether answers may be journaled some at a time: one that a kill loses is asked again and is the same."""
        return self.model.deterministic and not self.model.cacheable
