"""Options of the methods: given by name, checked before anything is asked; defaults are the papers'."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, SkipValidation, Strict, ValidationError, model_validator

from auditor.core.errors import ConfigError
from auditor.core.shown import plural
from auditor.tables.coded import Profile, Rows
from auditor.tables.distance import Distance
from auditor.tables.evaluate import Evaluator
from auditor.tables.row_schema import ENUMERABLE, Schema, uniform

MAX_COLUMNS = 20  # among which Themis searches sets
TRIALS, TRIAL_SIZE = 400, 1_000  # of the share that Aequitas estimates: the paper's
ESTIMATE_ROWS = 4_000_000  # that the model is asked about for the share, unless more is asked for
ESTIMATE_SHARE = 0.2  # of a limited number of evaluations, at most
FEWEST = 100  # rows below which a separate estimate is not worth its calls
LEAST_CASES = 100  # of the share, however many combinations there are
POPULATION_DEFAULT = 1000  # cases that a population without a limit judges
PAPER: Mapping[str, object] = {"neighbourhood": "marginal", "order": "confidence", "seed_share": 0.0, "batch": 1}  # SG
EXACT_METHOD = "enumeration of the whole domain"
NOTE = "not valid after stopping: with no change among the first rows the margin is 0"  # of the paper's own rule
Sampler = Callable[[int], Rows]


class OptionSet(BaseModel):
    """A field is an option; its bounds and its default stand at the field."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True, allow_inf_nan=False
    )
    method: ClassVar[str]

    @classmethod
    def of(cls, options: Mapping[str, object]) -> Self:
        """Read options by name; None means the default.

        Raises
        ------
        ConfigError
            An option is unknown, of the wrong kind or out of range.
        """
        known = cls.model_fields
        chosen = {k: v for k, v in options.items() if v is not None and (k != "data" or k in known)}
        try:
            return cls(**chosen)
        except ValidationError as error:
            first = error.errors()[0]
            said = first["msg"].removeprefix("Value error, ").removeprefix("Input should ")
            name = str(first["loc"][0]) if first["loc"] else ""
            if first["type"] == "extra_forbidden":
                said = f" has no option {name!r}; options: {', '.join(sorted(known))}"
            else:
                said = f": {name} must {said}; got {first['input']!r}" if name else f": {said}"
            raise ConfigError(f"--method {cls.method}{said}") from None

    @classmethod
    def read(cls, options: Mapping[str, object], schema: Schema) -> Self:
        """Read options for a schema: what was not said may hang on it."""
        return cls.of(options)


class ThemisOptions(OptionSet):
    """What shapes a Themis run; the paper's experiments use confidence 0.99, epsilon 0.05 and theta 0.75."""

    method: ClassVar[str] = "themis"
    # Scores of the protected columns together, or all minimal sets above `theta` (Algorithm 3).
    mode: Literal["score", "search"] = "score"
    protocol: Literal["default", "themis"] = "default"  # the paper's one-by-one sampling and stopping rule
    confidence: float = Field(0.99, gt=0, lt=1)  # level of intervals
    epsilon: float = Field(0.05, gt=0, lt=1)  # half-width at which sampling stops
    theta: float = Field(0.75, ge=0, le=1)  # threshold of the search
    max_samples: int = Field(10_000, ge=1)  # rows drawn at most per score (protocol themis: per group)
    min_samples: int | None = Field(None, ge=0)  # rows drawn before stopping is considered; see `least`
    columns: Annotated[tuple[str, ...], Strict(False)] | None = None  # to be searched; default: protected
    measure: Literal["causal", "group"] = "causal"  # which score the search is about
    prune: bool = True  # whether the search uses Theorems 4.1-4.3
    max_combos: int = Field(4096, ge=2)  # combinations tried per row; beyond, a causal score is a lower bound
    enumerate: bool | None = None  # walk through the domain; default: if it is small and the model quick
    data: SkipValidation[Any] = None  # given rows for apparent scores
    profile: Profile | None = None  # distribution of rows instead of the uniform one

    @classmethod
    def read(cls, options: Mapping[str, object], schema: Schema) -> Self:
        """As of every method; the columns are those of the schema."""
        read = cls.of(options)
        for name in read.columns or ():
            schema.index_of(name, "--columns")
        return read

    @property
    def least(self) -> int:
        """Rows drawn before stopping is considered: 10 in the released code."""
        if self.min_samples is not None:
            return self.min_samples
        return 10 if self.protocol == "themis" else 1_000

    def plain(self) -> dict[str, object]:
        """The options for the record: rows and profiles by size and name."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        values["data"] = None if self.data is None else plural(len(self.data), "row")
        values["profile"] = None if self.profile is None else self.profile.name
        return values | {"min_samples": self.least}


def walks(evaluator: Evaluator, settings: ThemisOptions) -> bool:
    """Whether the whole domain is walked through instead of sampled."""
    schema = evaluator.schema
    if settings.profile is not None or settings.enumerate is False:
        return False
    if settings.enumerate and schema.size > ENUMERABLE:
        raise ConfigError(f"the domain has {plural(schema.size, 'row')}; at most {ENUMERABLE:,} can be walked through")
    left = evaluator.remaining
    fits = schema.size <= ENUMERABLE and (left is None or schema.size <= left)
    return bool(settings.enumerate) or (settings.enumerate is None and fits and not evaluator.slow)


def sampler(schema: Schema, settings: ThemisOptions, rng: np.random.Generator) -> Sampler:
    """Where rows come from: the profile, or the uniform distribution over the domain."""
    profile = settings.profile
    if profile is None:
        return lambda n: uniform(schema, n, rng)
    return lambda n: profile.sample(schema, n, rng)


class AequitasOptions(OptionSet):
    """How Aequitas searches. ``walk=drift`` is Algorithm 2 as printed; the released code lies between the two."""

    method: ClassVar[str] = "aequitas"
    # The paper's local search with no, with direction, or with direction and column probabilities updated; ours.
    mode: Literal["random", "semi", "fully", "population"] = "fully"
    global_n: int = Field(2000, ge=1)  # trials of the global search; the released script's
    local_n: int = Field(1000, ge=0)  # trials of the local search around each; the released script's
    delta_v: float = Field(0.001, ge=0, le=1)  # how far one answer moves the probability of a direction
    delta_pr: float = Field(0.001, ge=0, le=1)  # how far one answer moves the probability of a column
    walk: Literal["return", "drift"] = "return"  # after a miss: go on from the row before, or from the miss
    max_found: int | None = Field(None, gt=0)  # stop once so many cases are known (section 4.5)
    max_seconds: float | None = Field(None, gt=0)  # stop after so much time (section 4.5)
    generated: int | None = Field(None, gt=0)  # stop once so many distinct cases were judged
    batch: int | None = Field(None, gt=0)  # cases that `population` judges between two updates
    # `population`: ask all combinations, or first the pair that told a case's parent apart (fewer calls).
    ask: Literal["all", "witness"] = "all"
    trials: int = Field(TRIALS, ge=0)  # samples of the estimate (section 4.3); 0: from the global search
    trial_size: int = Field(TRIAL_SIZE, ge=1)  # rows in each of them
    level: float = Field(0.95, gt=0, lt=1)  # confidence level of the share's interval

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.ask == "witness" and self.mode != "population":
            raise ValueError("ask=witness belongs to mode=population; the paper's walks ask all")
        return self

    @classmethod
    def read(cls, options: Mapping[str, object], schema: Schema) -> Self:
        """As of every method, with an end of a population, and K and m that `ESTIMATE_ROWS` allow."""
        chosen = {k: v for k, v in options.items() if v is not None}
        if chosen.get("mode") == "population" and not {"generated", "max_found", "max_seconds"} & set(chosen):
            chosen["generated"] = POPULATION_DEFAULT
        if not {"trials", "trial_size"} & set(chosen) and len(schema.protected_index):
            cases = max(LEAST_CASES, ESTIMATE_ROWS // math.prod(schema.cards[schema.protected_index].tolist()))
            chosen["trial_size"] = size = min(TRIAL_SIZE, cases)
            chosen["trials"] = min(TRIALS, cases // size)
        return cls.of(chosen)

    def record(self, distance: Distance) -> dict[str, object]:
        """Every option with its value, and the threshold γ that the distance stands for."""
        gamma = distance.threshold * distance.scale if distance.kind == "absolute" else 0.0
        return {**self.model_dump(), "gamma": gamma}


class SgOptions(OptionSet):
    """How SG searches."""

    method: ClassVar[str] = "sg"
    limit: int = Field(1000, ge=1)  # distinct cases to generate
    max_seconds: float | None = Field(None, gt=0)  # or stop after this time (its Table 4)
    # K-means clusters of the given rows in turn, the rows shuffled, or uniform rows (its Tables 8–10).
    seed_source: Literal["clusters", "data", "random"] = "clusters"
    clusters: int = Field(4, ge=1)  # for K-means
    threshold: float = Field(0.3, ge=0, le=1)  # T1: global search stops at a predicate of lower confidence
    rank_seed: float = 5.0  # Rank1; higher leaves the queue first
    rank_local: float = 10.0  # Rank2
    rank_global: float = 1.0  # Rank3
    local_search: bool = True  # off in its Tables 8, 10 and 11
    global_search: bool = True
    samples: int = Field(5000, ge=1)  # rows in a LIME neighbourhood (LIME's default)
    # LIME around the input; every column nominal, as released reimplementations have it; the rows asked so far, at no
    # further cost; or `asked` if the limit does not allow one neighbourhood per 50 cases, else `around`.
    neighbourhood: Literal["auto", "around", "marginal", "asked"] = "auto"
    # Local inputs by the success of their seed and of their kind of step, or by the paper's rank alone.
    order: Literal["learned", "confidence"] = "learned"
    seed_share: float = Field(0.1, ge=0, le=1)  # share of inputs taken from the seeds first; 0 in the paper
    batch: int = Field(8, ge=1)  # inputs judged at once; 1 is the paper's order exactly
    coverage: bool = True  # count path coverage and distinct faults on a surrogate tree afterwards

    @classmethod
    def of(cls, options: Mapping[str, object]) -> Self:
        """As of every method; ``protocol="sg"`` stands for the paper's own order, which other values override."""
        chosen = {k: v for k, v in options.items() if k != "protocol" and v is not None}
        protocol = options.get("protocol") or "default"
        if protocol not in ("default", "sg"):
            raise ConfigError(f"--method sg has the protocols default and sg; got {protocol!r}")
        return super().of({**PAPER, **chosen} if protocol == "sg" else chosen)


OPTIONS: Mapping[str, type[OptionSet]] = {"themis": ThemisOptions, "aequitas": AequitasOptions, "sg": SgOptions}
