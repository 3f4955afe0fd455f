"""The values that flow through an audit.

Immutable, keyword-only, standard library only. Rates are in [0, 1]; suffixes carry units (``_s``
seconds, ``_usd`` dollars); missing is ``None`` with a reason, never NaN, 0 or a magic string.
Mappings inside a value are not to be changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar, get_args

from auditor.core.talk import Message as Message
from auditor.core.talk import Talk, Tool

Scalar = str | int | float | bool | None
Span = tuple[int, int]  # characters of a text, the end not among them
Input = str | Mapping[str, Scalar]  # a text, or one table row
EditKind = Literal["swap", "marking", "insertion", "agreement", "placebo", "wording", "name_line", "statement"]
NEUTRAL: frozenset[EditKind] = frozenset(("placebo", "wording"))  # edits that change no group
Outcome = Literal["pass", "violation", "inconclusive", "skipped"]
Sampling = Literal["iid", "directed"]
AnswerStatus = Literal["ok", "unparsed", "refused", "filtered", "failed", "not_asked"]
ClaimVerdict = Literal["shown", "bounded", "not_determined", "not_tested"]
VERDICTS: tuple[ClaimVerdict, ...] = get_args(ClaimVerdict)  # what decides most first
DECIDED = VERDICTS[:2]
InteractionKind = Literal["confirmed", "threshold_crossing", "not_tested"]
FORMAT_VERSION = 2
_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")
# Made once: `json.dumps` makes an encoder for each call.
_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def canonical(value: object) -> bytes:
    """Write JSON with sorted keys and without white space, as UTF-8; as ASCII where it holds a lone surrogate.

    Raises `ValueError` where a number is NaN or infinite.
    """
    try:
        return _CANONICAL.encode(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()


def digest(value: object, *, size: int = 32) -> str:
    """Return the SHA-256 of the canonical JSON of ``value``, in ``size`` * 2 hexadecimal digits at most."""
    text = _CANONICAL.encode(value).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[: 2 * size]


def names(listed: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names in a list, or in one text with commas between them.

    Examples
    --------
    >>> names("gender, race"), names(["gender"])
    (('gender', 'race'), ('gender',))
    """
    if isinstance(listed, str):
        return tuple(part.strip() for part in listed.split(",") if part.strip())
    return tuple(listed)


def grouped(rows: Iterable[tuple[_K, _T]]) -> dict[_K, list[_T]]:
    """Return the values of each key, keys in the order of their first row."""
    out: dict[_K, list[_T]] = {}
    for key, value in rows:
        out.setdefault(key, []).append(value)
    return out


def id_of(kind: str, value: object) -> str:
    """Join ``kind`` and 64 bits of a digest; two of a million contents share an id with probability 3e-8."""
    return kind + digest(value, size=8)


def text_of(case_id: str) -> str:
    """Return the id that all cases of one text share; a line in front of the text makes a second case."""
    return case_id[1:]


def draws_of(case_id: str) -> str:
    """Return the key of random choices about a case: the part of its id that shorter ids had."""
    return case_id[:11]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceText:
    """One text that is given; the source of one `Case`.

    Attributes
    ----------
    label : str or None
        The gold label where the data has one; it never selects seeds.
    subject : tuple of (int, int), or None
        Where the text speaks of the person it is about: nouns, names, titles and pronouns as ``[start, end)`` in
        characters of ``text``, in order, none inside another. Empty: there is no single such person; None: nothing is
        said.
    source : str or None
        What it was made of, where that is in other texts too: the résumé of a pair with a post. Texts with one source
        are no independent ones.
    """

    id: str
    text: str
    label: str | None = None
    subject: tuple[Span, ...] | None = None
    source: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """One changed span.

    ``where`` is ``[start, end)`` in characters of the *original*, or a column name for rows; an
    insertion has ``start == end``. ``kind`` is ``agreement`` for a repair that another edit of the same
    attribute forces (a/an, a verb); it never stands alone. ``placebo`` and ``wording`` edits put one neutral word
    for another; they carry the attribute that they stand beside. ``name_line`` and ``statement`` edits
    lie in a line that stands in front of a text, of the original too.
    """

    attribute: str
    kind: EditKind
    source_group: str
    target_group: str
    source: str
    target: str
    where: Span | str


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """One input to the model. The original is the variant without edits."""

    id: str
    input: Input
    groups: Mapping[str, str] = field(default_factory=dict)  # attribute -> group that the input names
    edits: tuple[Edit, ...] = ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The distinct attributes edited, sorted."""
        return tuple(sorted({edit.attribute for edit in self.edits}))

    @property
    def order(self) -> int:
        """Attributes changed: 0 original, 1 atomic, 2 and more intersectional."""
        return len({edit.attribute for edit in self.edits})

    @property
    def choices(self) -> frozenset[tuple[str, tuple[int, int] | str, str]]:
        """What was chosen: (attribute, where, target) of each edit that is no repair."""
        return frozenset((e.attribute, e.where, e.target) for e in self.edits if e.kind != "agreement")

    @property
    def directions(self) -> tuple[tuple[str, str, str], ...]:
        """(attribute, source group, target group), sorted and distinct, repairs left out."""
        steps = {(e.attribute, e.source_group, e.target_group) for e in self.edits if e.kind != "agreement"}
        return tuple(sorted(steps))


def is_beside(variant: Variant) -> bool:
    """Return whether a variant enters no rate, finding or table by group: a placebo, or another wording of a text."""
    return any(edit.kind in NEUTRAL for edit in variant.edits)


def is_wording(variant: Variant) -> bool:
    """Return whether a variant is another wording; only net differences use it."""
    return any(edit.kind == "wording" for edit in variant.edits)


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """An original and its counterfactuals: the unit of analysis.

    Only "iid" cases, which were drawn independently of earlier verdicts, may enter a rate; ``source``: of its text.
    """

    id: str
    suite: str
    original: Variant
    variants: tuple[Variant, ...]
    sampling: Sampling = "iid"
    label: str | None = None
    source: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """What one validity check said about one variant."""

    variant_id: str
    check: str
    status: Literal["valid", "invalid", "unknown"]
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """What is sent to a model: either ``text``, the bare input for classifiers, or ``messages`` for generators.

    ``sha256`` identifies the content (not the format). ``tools`` may be called; ``talk`` says that the messages are
    played one after the other (`auditor.models.talks`).
    """

    format: str
    text: str | None = None
    messages: tuple[Message, ...] | None = None
    sha256: str = ""
    tools: tuple[Tool, ...] = ()
    talk: Talk | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.messages is None):
            raise ValueError("a prompt has exactly one of text and messages")
        if not self.sha256:
            object.__setattr__(self, "sha256", digest(self.payload()))

    def payload(self) -> dict[str, Any]:
        """Return the content as plain data: ``{"input": …}``, or ``{"messages": […]}`` and ``tools``."""
        if self.messages is None:
            return {"input": self.text}
        made: dict[str, Any] = {"messages": [m.plain() for m in self.messages]}
        if self.talk is not None:
            made["talk"] = json.loads(json.dumps([asdict(self.talk), *map(asdict, self.tools)]))
        elif self.tools:
            made["tools"] = [tool.plain() for tool in self.tools]
        return made


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One question to a model. ``replicate`` makes repeats of one prompt distinct."""

    prompt: Prompt
    replicate: int
    variant_id: str  # the first variant that asks it


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one call, as the server counts them."""

    tokens_in: int
    tokens_out: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """One answer, or why there is none: a `CallError.code` with its message; ``scores``: probabilities of labels."""

    variant_id: str
    prompt_sha256: str
    format: str
    replicate: int
    output: str | None = None
    error: str | None = None
    detail: str = ""
    scores: Mapping[str, float] | None = None
    cached: bool = False
    latency_s: float = 0.0
    usage: Usage | None = None
    cost_usd: float | None = None
    model: str = ""  # the model spec that was asked
    model_reported: str | None = None  # what the server says it is
    cut_off: bool = False  # the output ends at the limit on tokens

    def __post_init__(self) -> None:
        if (self.output is None) == (self.error is None):
            raise ValueError(f"exactly one of output and error, got {self!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a response means for the task.

    ``value`` is the canonical label, a sorted tuple of labels, a score, or the text. It is None unless ``status`` is
    "ok": a refusal or an answer that does not parse is never a label. ``number`` is what a graded answer said, of
    which ``value`` is the label. ``not_asked``: the run stopped before.
    """

    status: AnswerStatus
    value: str | tuple[str, ...] | float | None = None
    reason: str = ""
    scores: Mapping[str, float] | None = None
    number: float | None = None

    def __post_init__(self) -> None:
        if (self.status == "ok") != (self.value is not None):
            raise ValueError(f"there is a value if and only if the status is ok, got {self!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """One oracle's judgement of one variant against its original.

    ``hidden``: a violation whose every proper non-empty subset of attributes was valid and passed; None where that
    could not be judged, and for order 1. Placebo variants have order 0, and ``hidden`` where they are joint.
    """

    case_id: str
    variant_id: str
    order: int
    attributes: tuple[str, ...]
    outcome: Outcome
    hidden: bool | None = None
    original_output: str | None = None
    variant_output: str | None = None
    distance: float | None = None
    reason: str = ""
    model: str = ""
    format: str = ""


AFTER_STOPPING = "Wald margin after stopping (the paper's rule)"  # a method whose interval supports no verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A number with its uncertainty; ``n`` counts independent cases (seeds), ``n_variants`` their variants."""

    value: float
    low: float
    high: float
    level: float
    n: int
    n_skipped: int
    method: str
    n_variants: int | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interaction:
    """Whether a joint change of a text goes further beyond its parts than placebo edits do.

    "confirmed" is beyond what placebo edits do, "threshold_crossing" not beyond; ``why`` says why it is not confirmed.
    ``contrast`` is the measure, signed, on ``scale`` ("log_odds", "number" or "share"), ``se`` its standard deviation
    over placebo versions. ``p_value`` is that of this version among placebo versions, ``p_adjusted`` that of its text
    (Benjamini–Hochberg over texts).
    """

    kind: InteractionKind
    why: str = ""
    contrast: float | None = None
    se: float | None = None
    scale: str = ""
    p_value: float | None = None
    p_adjusted: float | None = None

    @property
    def strength(self) -> float:
        """Contrast in standard errors; what hidden findings are ranked by."""
        return abs(self.contrast) / self.se if self.contrast is not None and self.se else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Something the audit saw, with a verdict about how far it is supported.

    A "claim" is about a rate (an attribute set, or a direction in it), the others about one variant. ``exemplars`` are
    variant ids, the clearest first; ``interaction``, of a hidden one, as in `Interaction`. ``claim`` is the index of
    the claim of the run that gives the verdict; None where there is none, and in runs of 0.2.
    """

    id: str
    kind: Literal["claim", "hidden", "violation"]
    code: str
    model: str
    attributes: tuple[str, ...]
    directions: tuple[tuple[str, str, str], ...] = ()
    verdict: ClaimVerdict
    rate: Estimate | None = None
    noise: Estimate | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    exemplars: tuple[str, ...] = ()
    text: str = ""
    notes: tuple[str, ...] = ()
    format: str = ""
    interaction: InteractionKind | None = None
    claim: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """Why, with evidence; ``minimal`` is the id of the smallest variant that still shows it, if there is one."""

    finding: str
    cause: str
    evidence: str
    minimal: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """One event for whoever draws: the library prints nothing."""

    phase: str
    done: int
    planned: int | None = None
    model: str = ""
    cached: int = 0
    failed: int = 0
    cost_usd: float | None = None
    message: str = ""
