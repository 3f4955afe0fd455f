"""What a run keeps of its variants and of the answers to them while they stream by."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from auditor.core.protocols import Model
from auditor.core.types import Answer, Case, Response, Variant, Verdict, is_wording
from auditor.run.controls import is_placebo
from auditor.store.compact import Contrasts, KeySet, Shared, Verdicts

KEPT_HIDDEN = 1000  # hidden variants whose whole case stays in memory; more are never asked again
KEPT_FACTS = 20_000  # combinations of edits whose facts are remembered
KEPT_VALUES = 1000  # different answers in one format that are counted one by one
LOST = ("failed", "not_asked")  # no answer came
WAITING = 256  # answers that may wait to be journaled, where asking again is cheap and gives the same
Answers = dict[str, dict[str, list[Answer]]]  # format -> variant id -> answers of its replicates
_gist = attrgetter("attribute", "kind", "source_group", "target_group", "target")


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """What the statistics need to know of a variant; one value for all that are alike."""

    directions: tuple[tuple[str, str, str], ...]
    kinds: tuple[str, ...]
    term: str = ""  # the words that were put in


class Facts(NamedTuple):
    """What the edits of a variant come to."""

    attributes: tuple[str, ...]
    placebo: bool
    about: About
    wording: bool = False


class FactsOf:
    """Says what the edits of a variant come to; remembers it for variants with the same edits elsewhere."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Facts] = {}
        self._shared: Shared[About] = Shared()

    def __call__(self, variant: Variant) -> Facts:
        """The facts of one variant."""
        key = tuple(map(_gist, variant.edits))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= KEPT_FACTS:
                self._known.clear()
            found = self._known[key] = self._read(variant)
        return found

    def _read(self, variant: Variant) -> Facts:
        if is_placebo(variant):
            about = About(directions=variant.directions, kinds=("placebo",))
            return Facts(variant.attributes, True, self._shared(about))
        if is_wording(variant):
            about = About(directions=variant.directions, kinds=("wording",))
            return Facts(variant.attributes, False, self._shared(about), True)
        changes = [e for e in variant.edits if e.kind != "agreement"]
        about = About(
            directions=variant.directions,
            kinds=tuple(sorted({e.kind for e in changes})),
            term=" + ".join(sorted({e.target.lower() for e in changes})),
        )
        return Facts(variant.attributes, False, self._shared(about))


@dataclass(kw_only=True)
class First:
    """What became of the first answers of a model; where most cannot be read, it is not worth asking further."""

    FIRST: ClassVar[int] = 40
    MOST: ClassVar[int] = 30
    answers: int = 0
    lost: int = 0  # of these, refused or unreadable

    def add(self, status: str) -> None:
        """Take note of one answer."""
        self.answers += 1
        self.lost += status != "ok"

    @property
    def over(self) -> bool:
        """Whether enough answers were looked at."""
        return self.answers >= self.FIRST or self.hopeless

    @property
    def hopeless(self) -> bool:
        """Whether most of them could not be read, or were refusals."""
        return self.lost >= self.MOST


@dataclass(kw_only=True)
class Tally:
    """What one model's answers came to, while they stream by."""

    model: Model
    replicates: int
    formats: tuple[str, ...]
    verdicts: Verdicts = field(default_factory=Verdicts)
    labels: dict[tuple[str, str], Mapping[str, Sequence[Any]]] = field(
        default_factory=dict
    )  # (case, format) -> variant -> values
    counts: Counter[str] = field(default_factory=Counter)
    groups: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
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
    planned: int = 0
    first: First = field(default_factory=First)
    mutants: list[Any] = field(default_factory=list)  # under --protocol hinter
    hidden: list[tuple[Case, str, str]] = field(default_factory=list)  # case, variant id, format
    placebos: Verdicts = field(default_factory=Verdicts)  # kept apart: they enter no rate of changes
    discarded: list[Verdict] = field(default_factory=list)  # of invalid variants, where the plan asks them
    contrasts: Contrasts = field(default_factory=Contrasts)  # interaction contrasts of joint variants
    canaries: dict[tuple[str, str], dict[str, list[Any]]] = field(
        default_factory=dict
    )  # (prompt, format) -> time -> answers
    control: dict[str, Any] = field(default_factory=dict)  # of the positive control
    texts: dict[tuple[str, str], Any] = field(
        default_factory=dict
    )  # (case, format) -> variant -> metrics of free text
    preferences: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)  # of the judge
    originals: dict[str, list[tuple[str, Any, int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )  # format -> (case, answer for the original, variants judged, violations)

    def count(self, name: str, value: Any) -> None:
        """Count an answer that was read in the format ``name``."""
        counts = self.given[name]
        counts[value if value in counts or len(counts) < KEPT_VALUES else None] += 1

    @property
    def judged_nothing(self) -> bool:
        """Whether no variant could be judged, since most answers were refused, filtered, unreadable or did not come."""
        if 2 * self.lost <= len(self.seen) or self.lost == self.counts["failed"]:
            return False
        return not any(v.outcome in ("pass", "violation") for v in self.verdicts)

    @property
    def lost(self) -> int:
        """How many answers were refused, filtered, unreadable or did not come."""
        return sum(self.counts[status] for status in ("unparsed", "refused", "filtered", "failed"))

    @property
    def together(self) -> bool:
        """Whether answers may be journaled some at a time: one that a kill loses is asked again and is the same."""
        return self.model.deterministic and not self.model.cacheable
