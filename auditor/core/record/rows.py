"""The section ``tabular`` of a search over rows, and what plans of both kinds are expected to ask and to show."""

from __future__ import annotations

from typing import Self

import msgspec

from auditor.core.record.base import Counts, Part
from auditor.core.types import Estimate

Raw = str | int | float | bool  # a value of a row
METHODS = {"themis": "Themis", "aequitas": "Aequitas", "sg": "SG"}  # what the methods are called


class SchemaFacts(Part, frozen=True, kw_only=True):
    """What a record says about a schema."""

    name: str = ""
    columns: int = 0
    protected: tuple[str, ...] = ()
    binned: tuple[str, ...] = ()
    rows_in_domain: str = ""
    cases_in_domain: str = ""
    constraints: tuple[str, ...] = ()
    sha256: str = ""


class GroupRate(Part, frozen=True, kw_only=True):
    """How often a label is given to one group."""

    group: dict[str, Raw]
    rate: float
    n: int


class ScoreDetail(Part, frozen=True, kw_only=True, omit_defaults=True):
    """What a score rests on: of a group score the label and the extremes, of a search what decided."""

    label: str = ""
    favourable: bool | None = None
    largest: GroupRate | None = None
    smallest: GroupRate | None = None
    decided_by: str = ""  # interval or estimate


class Score(Part, frozen=True, kw_only=True):
    """One score of a set of columns."""

    name: str
    columns: tuple[str, ...]
    estimate: Estimate
    population: str = ""  # which rows it is about: ``domain (uniform)``, ``given rows``
    detail: ScoreDetail = ScoreDetail()


class ColumnSet(Part, frozen=True, kw_only=True):
    """One set of protected columns in the lattice; the last set has all of them."""

    columns: tuple[str, ...]
    rows: int  # that were judged
    changes: int  # rows with a label that changes when some or all of the columns change
    minimal: int  # of these, rows that no proper subset changes
    hidden: int | None = None  # of these, rows that no column changes alone


class RowPair(Part, frozen=True, kw_only=True):
    """Two rows that differ in ``changed`` only, with different labels; no proper subset of it changes the label."""

    row: dict[str, Raw]
    other: dict[str, Raw]
    changed: tuple[str, ...]
    label: str
    other_label: str


class SearchOptions(Part, frozen=True, kw_only=True):
    """Options of a search, as far as reports speak of them."""

    columns: tuple[str, ...] | None = None
    measure: str | None = None
    theta: float | None = None


class SearchedPhase(Part, frozen=True, kw_only=True):
    """What a phase of a search contributed."""

    generated: int = 0
    discriminatory: int = 0


class Details(Part, frozen=True, kw_only=True):
    """Tables of a method's own."""

    phases: dict[str, SearchedPhase] = msgspec.field(default_factory=dict)
    start_rows: int | None = None
    ended: str = ""
    solver: dict[str, int] | None = None


class RowAnswers(Part, frozen=True, kw_only=True):
    """How a language model was asked about rows."""

    task: str | None
    format: str
    replicates: int
    rows: dict[str, int]
    calls: int
    cached: int


class RowNoise(Part, frozen=True, kw_only=True):
    """Whether a model repeats itself on one and the same row."""

    same_row: Estimate | None = None


class Tabular(Part, frozen=True, kw_only=True):
    """A search over rows."""

    method: str = ""
    mode: str = ""
    sampling: str = "iid"
    options: SearchOptions = SearchOptions()
    counts: Counts = Counts()
    scores: tuple[Score, ...] = ()
    minimal_sets: tuple[Score, ...] = ()
    lattice: tuple[ColumnSet, ...] = ()
    pairs: tuple[RowPair, ...] = ()
    details: Details = Details()
    notes: tuple[str, ...] = ()
    schema: SchemaFacts = SchemaFacts()
    answers: RowAnswers | None = None
    noise: RowNoise | None = None

    @property
    def measured(self) -> tuple[Score, ...]:
        """All scores, those of minimal sets last."""
        return (*self.scores, *self.minimal_sets)

    @property
    def varied(self) -> tuple[str, ...]:
        """The columns that the search changes."""
        return (self.mode == "search" and self.options.columns) or self.schema.protected


class Range(Part, frozen=True, kw_only=True, omit_defaults=True):
    """At least and at most so many."""

    at_least: int | None = None
    at_most: int | None = None
    reason: str = ""

    @classmethod
    def exactly(cls, n: int) -> Self:
        """Neither more nor less."""
        return cls(at_least=n, at_most=n)


class ExpectedRows(Part, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="rows"):
    """What a search over rows is expected to ask.

    ``evaluations`` are rows that the model is asked about: cases times combinations of protected values.
    """

    combinations: int = 1
    given_rows: int = 0
    cases: Range = Range()
    evaluations: Range = Range()
    calls_at_most: int | None = None
    limits: dict[str, float] = msgspec.field(default_factory=dict)


class ExpectedModel(Part, frozen=True, kw_only=True):
    """What one model is expected to be asked; ``cost_usd`` None: not known."""

    prompts: int
    calls: int
    replicates: int = 1
    calls_canary: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None


class ExpectedJudge(Part, frozen=True, kw_only=True):
    """The most that a judge is asked."""

    model: str
    pairs: int
    calls: int
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None


class ExpectedClaim(Part, frozen=True, kw_only=True):
    """What one net claim of a plan can show.

    Attributes
    ----------
    texts, words : int, float
        Texts that have a version about both groups; effective number of words.
    smallest : float or None
        Smallest net difference (a share of the answers) that is shown in 80 % of runs. None where not even 30 points
        would be.
    calls : mapping of str to int or None
        Net difference → calls about the attribute that show it in 80 % of runs. None where no number of texts does,
        because words vary.
    why : str
        Why the claim cannot be tested.
    """

    attribute: str
    groups: tuple[str, ...]
    texts: int = 0
    words: float = 0.0
    smallest: float | None = None
    calls: dict[str, int | None] = msgspec.field(default_factory=dict)
    why: str = ""


class Assumed(Part, frozen=True, kw_only=True):
    """What the reckoning of a plan's power assumes."""

    flips: float
    word_sd: float
    draws: int
    favourable: float = 0.5


class Power(Part, frozen=True, kw_only=True):
    """What the claims of a plan can show."""

    power: float = 0.8
    alpha: float = 0.05
    claims: tuple[ExpectedClaim, ...] | None = None
    assumed: Assumed | None = None


class ExpectedTexts(Part, frozen=True, kw_only=True):
    """What a run of texts is expected to ask and to show.

    ``carried`` has how many of its texts say each attribute in which way (words, a name line, a statement).
    ``sampled`` is how many of the texts it was worked out on, 0 for all. ``calls_whole`` is how many calls the plan has
    where a ``limit`` (an option) ends it before; 0 where it is asked to its end.
    """

    cases: int
    seeds: int
    variants: int
    valid: int
    taken: int = 0
    discarded: int = 0
    placebos: int = 0
    placebos_valid: int = 0
    wordings: int = 0
    wordings_valid: int = 0
    languages: dict[str, int] = msgspec.field(default_factory=dict)
    carried: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    models: dict[str, ExpectedModel] = msgspec.field(default_factory=dict)
    judge: ExpectedJudge | None = None
    sampled: int = 0
    calls_whole: int = 0
    limit: str = ""
    left_out: str = ""
    power: Power = Power()

    @property
    def canaries(self) -> int:
        """Calls that repeat the first prompts, to see whether a model stays the same."""
        return sum(model.calls_canary for model in self.models.values())
