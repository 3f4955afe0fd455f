"""What the records of all kinds of run share: the plan, provenance, counts, estimates, controls, models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from auditor.core.types import Estimate

Step = tuple[str, str, str]  # attribute, group in the original, group in the variant
NOT_CLEAR = "not clear whose words to change"  # why a text makes no case: a key of `Counts.skipped`


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a record; what a field has a default for may be absent."""


class Spec(Part, frozen=True, kw_only=True):
    """The plan that was run, as far as reports speak of it."""

    task: str | None = None
    data: str | None = None
    labels: tuple[str, ...] = ()  # that a user named in place of the task's
    favourable: str | None = None  # as a user named it
    models: tuple[str, ...] = ()
    model: str | None = None
    kind: str = ""  # of the task; "tabular" for rows
    suite: str = ""
    protocol: str = "default"
    oracle: str | None = None
    order: int = 1
    per_seed: int | None = None
    limit: int | None = None
    formats: tuple[str | None, ...] = ()
    parser: str | None = None
    until_decided: bool = False
    attributes: tuple[str, ...] | None = None
    delta: float | None = None
    seed: int | None = None
    replicates: int | None = None
    out: str | None = None
    base_url: str | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None

    @property
    def asked(self) -> str | None:
        """The name of the task, and whether its labels are the user's."""
        return f"{self.task}, own labels" if self.task and self.labels else self.task


class Source(Part, frozen=True, kw_only=True):
    """A file or data set that shaped a run."""

    name: str = ""
    source: str | None = None
    attribute: str = ""
    n: int | None = None
    skipped: int | dict[str, int] = 0  # rows without a text
    repeated: int | None = None  # rows whose text stood in an earlier one; None of pairs of texts
    not_english: int = 0  # whose words were changed
    languages: dict[str, int] = msgspec.field(default_factory=dict)
    sha256: str | None = None


class People(Part, frozen=True, kw_only=True):
    """Whose words the edits of a run change."""

    who: str = ""
    subject: str = ""


class TooFew(Part, frozen=True, kw_only=True):
    """How many texts an attribute has that was not asked about, and how many it takes."""

    texts: int
    needed: int


class Provenance(Part, frozen=True, kw_only=True):
    """When, where and on what a run was made."""

    started: str | None = None
    ended: str | None = None
    seconds: float | None = None
    python: str | None = None
    platform: str | None = None
    packages: dict[str, str | None] = msgspec.field(default_factory=dict)
    plan_sha256: str | None = None
    task_sha256: str | None = None
    seeds: Source = Source()
    people: People = People()
    rows: Source | None = None
    profile: Source | None = None
    parser: Source | None = None
    grammar: Source | None = None
    code: Source | None = None
    too_few_texts: dict[str, TooFew] = msgspec.field(default_factory=dict)
    dictionaries: tuple[Source, ...] = ()


class Losses(Part, frozen=True, kw_only=True):
    """Answers without a label, by what became of them; None: not counted."""

    refused: int | None = None
    filtered: int | None = None
    unparsed: int | None = None
    failed: int | None = None

    @property
    def lost(self) -> dict[str, int]:
        """Those that were counted, by name."""
        counted = {name: getattr(self, name) for name in Losses.__struct_fields__}
        return {name: n for name, n in counted.items() if n is not None}


class Counts(Losses, frozen=True, kw_only=True):
    """How many of what a run made, asked, and lost; None: not counted in this kind of run."""

    seeds: int | None = None
    cases: int | None = None
    variants: int | None = None
    valid: int | None = None
    discarded: int | None = None
    calls: int | None = None  # all that left, with those that failed: what limits and providers count
    asked: int | None = None  # questions, or conversations, that the cache did not answer
    conversations: bool = False
    cached: int | None = None
    answers: int | None = None
    cost_usd: float | None = None  # of all calls
    reserved_usd: float = 0.0  # of this: the most that calls without a stated cost can have cost
    violations: dict[str, int] | None = None
    skipped: dict[str, int] = msgspec.field(default_factory=dict)
    passed_over: dict[str, int] = msgspec.field(default_factory=dict)  # edits, lines and placebos that no text got
    generated: int | None = None
    discriminatory: int | None = None
    off_manifold: int = 0
    evaluations: int | None = None
    evaluations_in_all: int | None = None
    rows_asked: int | None = None
    not_judged: int | None = None
    seconds: float | None = None

    @property
    def fresh(self) -> int | None:
        """How many questions the cache did not answer; records of earlier versions have them as calls."""
        return self.calls if self.asked is None else self.asked


class NamedEstimate(Part, frozen=True, kw_only=True):
    """One estimate and what it is about."""

    name: str
    estimate: Estimate
    arm: str = ""
    model: str = ""
    format: str = ""
    attributes: tuple[str, ...] = ()
    directions: tuple[Step, ...] | None = None
    kind: str | None = None
    population: str = ""


class Unread(Losses, frozen=True, kw_only=True):
    """What became of the answers of a model of which too many could not be read."""

    answers: int = 0
    judged_nothing: bool = False
    cut_off: int = 0
    stopped: tuple[int, int] | None = None
    variant: str = ""
    example: str | None = None
    expected: str = ""
    labels: tuple[str, ...] = ()  # that the answers show, where they look like labels


class ModelCounts(Losses, frozen=True, kw_only=True):
    """What was asked of one model."""

    asked: int = 0
    cached: int = 0
    measured_usd: float | None = None  # of answers that say what they cost


class Asked(Part, frozen=True, kw_only=True):
    """One model as it was asked."""

    counts: ModelCounts = ModelCounts()
    deterministic: bool = False
    fingerprint: str | None = None
    style: str = ""
    replicates: int | None = None
    formats: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    answers: dict[str, int] = msgspec.field(default_factory=dict)
    unread: Unread | None = None
    unparsed: dict[str, int] = msgspec.field(default_factory=dict)  # the answers that were most often not read


class Vocabulary(Part, frozen=True, kw_only=True):
    """What a run calls its groups and labels; empty in old records."""

    favourable: str | None = None
    attributes: tuple[str, ...] = ()
    groups: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)


class Deviation(Part, frozen=True, kw_only=True):
    """One thing that is not as the frozen plan has it."""

    what: str
    planned: Any = None
    actual: Any = None


class Frozen(Part, frozen=True, kw_only=True):
    """The frozen plan of a run; ``expected`` is what `auditor.report.run_checks` reads."""

    sha256: str
    frozen_at: str
    frozen_by: str = ""
    reason: str = ""
    file: str = ""
    expected: dict[str, Any] = msgspec.field(default_factory=dict)
    deviations: tuple[Deviation, ...] = ()


class Waived(Part, frozen=True, kw_only=True):
    """One waiver, and the findings that it is about."""

    finding: str
    reason: str
    owner: str
    expires: str
    status: str
    findings: tuple[str, ...] = ()
    run: str | None = None
    line: int = 0


class Waivers(Part, frozen=True, kw_only=True):
    """The waivers file as it was when the record was shown."""

    source: str | None = None
    date: str | None = None
    items: tuple[Waived, ...] = ()


class Responsible(Part, frozen=True, kw_only=True):
    """What people filled in."""

    fields: dict[str, str] = msgspec.field(default_factory=dict)
    measures: tuple[dict[str, str], ...] = ()
    signature: dict[str, str] = msgspec.field(default_factory=dict)
    pages: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)


class SuiteFigure(Part, frozen=True, kw_only=True):
    """One measure of a suite's own, of one model."""

    figure: str
    what: str
    model: str
    format: str
    cases: int
    left_out: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


class Head(Part, frozen=True, kw_only=True):
    """Records and last hash of a journal."""

    records: int
    hash: str


# -- controls: what came of each, by name ------------------------------------------------------------------------------


class GroupAnswers(Losses, frozen=True, kw_only=True):
    """What became of the answers about one group."""

    model: str
    attribute: str
    group: str
    n: int


class Shift(Part, frozen=True, kw_only=True):
    """Whether the same prompts were answered alike at the start and at the end of a run."""

    shifted: bool
    p_value: float
    prompts: int  # that were answered at two or more times
    answers: int
    differing: int = 0  # prompts whose most frequent answer is not the same at all times


class PositiveControl(Part, frozen=True, kw_only=True):
    """What came of pairs of texts that need different answers, and whether all answers were the same.

    ``seen`` goes by the scale of the claims: by the mean difference within the pairs where answers have scores, by the
    share of pairs that were answered differently where they are labels. Limits are None where there is no interval.
    """

    seen: bool
    differ: int  # pairs that were answered differently
    pairs: int
    scale: str = "share"  # or log_odds, number
    mean: float | None = None  # difference of the scores, first text of a pair less the second
    low: float | None = None
    high: float | None = None
    alike: bool = False  # every answer that came until then is the same
    answers: int = 0  # how many came until then
    answer: str | None = None  # the one that all are, where it is a label or a number

    @property
    def hopeless(self) -> bool:
        """Whether nothing can be learned of groups: the model reacts to nothing that it was asked."""
        return self.alike and not self.seen


@dataclass(slots=True)
class Control:
    """One control: a figure, a test, a declaration, why there is none, or several of these by name."""

    estimate: Estimate | None = None
    positive: PositiveControl | None = None
    rate: float | None = None
    n: int | None = None
    shift: Shift | None = None
    declared: bool = False
    reason: str | None = None  # why it was not run
    text: str = ""  # anything else
    parts: Mapping[str, Control] = field(default_factory=dict)

    @classmethod
    def read(cls, value: object) -> Control:
        """What a record says of one control."""
        if not isinstance(value, Mapping):
            return cls(text="" if value is None else str(value), rate=value if isinstance(value, float) else None)
        plain: dict[str, Any] = dict(value)
        if plain.pop("status", None) == "not_tested":
            return cls(reason=str(plain.pop("reason", None) or "no reason given"))
        if plain.get("declared"):
            return cls(declared=True)
        if {"seen", "differ"} <= plain.keys():
            return cls(positive=msgspec.convert(plain, PositiveControl))
        if {"value", "low", "high"} <= plain.keys():
            seen = plain.pop("seen", None)  # of a positive control until 0.2: the share of the pairs
            made = cls(estimate=(known := msgspec.convert(plain, Estimate)))
            if seen is not None:
                made.positive = PositiveControl(seen=seen, differ=round(known.value * known.n), pairs=known.n)
            return made
        if "shifted" in plain:
            return cls(shift=msgspec.convert(plain, Shift))
        if "rate" in plain:
            return cls(rate=plain["rate"], n=plain.get("n"))
        return cls(parts={str(name): cls.read(part) for name, part in plain.items()})

    def walk(self) -> Iterator[Control]:
        """All figures, tests and declarations in it."""
        if not self.parts:
            yield self
        for part in self.parts.values():
            yield from part.walk()


class Controls:
    """The controls of a run by name, and what became of answers by group."""

    __slots__ = ("answers_by_group", "every")

    def __init__(self, plain: Mapping[str, object] | None = None) -> None:
        every = dict(plain or {})
        groups = every.pop("answers_by_group", None) or ()
        self.answers_by_group = msgspec.convert(groups, tuple[GroupAnswers, ...])
        self.every = {name: Control.read(value) for name, value in every.items() if value is not None}

    def of(self, name: str, model: str | None = None) -> Control | None:
        """A control, or the part of it that is about one model; None where there is none."""
        control = self.every.get(name)
        return control if model is None or control is None else control.parts.get(model)
