"""The plan of a tabular run, and the options of the methods: given by name, checked before anything is asked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from auditor.core.errors import ConfigError
from auditor.core.options import (
    ASKED,
    CHANGED,
    LARGEST,
    LIMITS,
    ROWS,
    Amount,
    Names,
    Option,
    PathText,
    PlanModel,
    SharedPlan,
    Times,
)
from auditor.core.plan import Plan

if TYPE_CHECKING:
    from auditor.tables.evaluate import Evaluator
    from auditor.tables.row_schema import Schema

Method = Literal["themis", "aequitas", "sg"]
TEXT = Plan.flags()
REMOVED: Mapping[str, str] = {  # options until 0.2, and what to use instead
    "mode": "use --theta to search sets",
    "columns": "use --protected NAME,NAME",
    "enumerate": "give --max-samples to sample",
    "seed_source": "sg takes clusters of --data",
    "max_seconds": "use --max-seconds",
    "walk": "use --protocol aequitas",
    "distance": "for numbers give --distance-threshold",
    "distance_scale": "use --distance-threshold, in the model's own units",
    "profile": "give rows with --data: apparent scores are about them",
    **dict.fromkeys(("order", "seed_share", "batch"), "use --protocol sg"),
    "ask": "use --method sg",
    "slices": "run audit tabular on the rows of a subgroup",
    "retrain": "use audit augment RUN and train the model again yourself",
    "neighbourhood": "use --protocol sg for that of the paper",
}
ENUMERABLE = 10_000_000  # rows up to which a domain is walked through instead of sampled
MAX_COLUMNS = 20  # among which Themis searches sets
MAX_COMBOS = 4096  # combinations that a search tries on a row
MAX_SAMPLES = 10_000  # rows drawn at most per score
LEAST = 1_000  # rows drawn before stopping is considered; by the paper's rule as many as in the released code:
LEAST_OF_PAPER = 10
TRIALS, TRIAL_SIZE = 400, 1_000  # of the share that Aequitas estimates: the paper's
ESTIMATE_ROWS = 4_000_000  # that the model is asked about for the share, unless more is asked for
ESTIMATE_SHARE = 0.2  # of a limited number of evaluations, at most
FEWEST = 100  # rows below which a separate estimate is not worth its calls
LEAST_CASES = 100  # of the share, however many combinations there are
EXACT_METHOD = "enumeration of the whole domain"
NOTE = "not valid after stopping: with no change among the first rows the margin is 0"  # of the paper's own rule


class MethodOptions(PlanModel):
    """Options of the methods that have a flag of their own; the methods say what they take, and check it."""

    gone = REMOVED

    # fmt: off
    protocol: Annotated[str | None, TEXT["protocol"].meaning(ROWS,
        "default; themis, aequitas or sg: as the paper has it.")] = None
    confidence: Annotated[float | None, Option("--confidence", CHANGED, ROWS, "themis: level (default 0.99).")] = None
    epsilon: Annotated[float | None, Option("--epsilon", CHANGED, ROWS,
        "themis: half-width at which sampling stops (default 0.05).")] = None
    theta: Annotated[float | None, Option("--theta", CHANGED, ROWS, 
        "themis: search the minimal sets of --protected with a score above it (0.75 in the paper).")] = None
    max_samples: Annotated[int | None, Option("--max-samples", CHANGED, ROWS,
        "themis: rows drawn at most per score (default: all of a small domain, else 10,000).")] = None
    measure: Annotated[str | None, Option("--measure", CHANGED, ROWS,
        "themis: the score that --theta is about: causal (default) or group.")] = None
    # fmt: on


def read_settings(said: object) -> dict[str, object]:
    """``NAME=VALUE`` options, and mappings between them, as one; values are read as YAML scalars or lists.

    Examples
    --------
    >>> read_settings(["global-n=500", "trials=0"])
    {'global_n': 500, 'trials': 0}
    """
    from auditor.core import reading

    if isinstance(said, Mapping):
        return dict(said)
    if isinstance(said, str) or not isinstance(said, Iterable):
        raise ConfigError(f"--set takes NAME=VALUE; got {said!r}.")
    result: dict[str, object] = {}
    for pair in said:
        if isinstance(pair, Mapping):
            result |= pair
            continue
        name, equals, value = str(pair).partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set takes NAME=VALUE; got {pair!r}.")
        result[name.strip().replace("-", "_")] = reading.load_yaml(f"--set {pair}", value)
    return {name: value for name, value in result.items() if value is not None}


class TabularPlan(SharedPlan):
    """Everything that shapes a tabular run; each field is an option of ``audit tabular``.

    ``data`` may be empty with a schema or a task. ``options`` are the method's own, by name. ``out`` empty: nothing is
    written.
    """

    table = "tabular"
    gone = REMOVED

    # fmt: off
    data: Annotated[PathText, TEXT["data"].meaning(ROWS,
        "Rows: a .csv or .csv.gz file with a header. Not needed with --task.")] = ""
    task: Annotated[str | None, TEXT["task"].meaning(ROWS,
        "A language model decides: lending, income, or a task file with labels.")] = None
    target: Annotated[str | None, Option("--target", ASKED, ROWS, "The column that holds the label.")] = None
    schema_file: Annotated[PathText | None, Field(alias="schema"), Option("--schema", ASKED, ROWS,
        "Schema file (audit tabular schema DATA). Default: inferred.")] = None
    model: Annotated[str, TEXT["models"].meaning(ROWS,
        "sklearn:FILE, python:MODULE:FUNCTION (array to array), exec:COMMAND, http:FILE.yaml (a server); with --task "
        "any model of text, e.g. openai:NAME.")]
    protected: Annotated[Names, Option("--protected", CHANGED, ROWS,
        "Columns that are changed, comma-separated, e.g. sex,race.")] = ()
    method: Annotated[Method, Option("--method", CHANGED, ROWS, "themis (default), aequitas or sg.")] = "themis"
    options: Annotated[dict[str, object], BeforeValidator(read_settings), Option("--set", CHANGED, ROWS,
        "NAME=VALUE: any further option of the method.", repeated=True)] = Field(default_factory=dict)
    distance_threshold: Annotated[Amount | None, Option("--distance-threshold", CHANGED, ROWS,
        "For models that return numbers: two differ if they are more than this apart.")] = None
    max_evaluations: Annotated[int | None, Field(ge=0, le=LARGEST), Option("--max-evaluations", LIMITS, ROWS,
        "Rows passed to the model at most.")] = None
    prompt_format: Annotated[str | None, Option("--prompt-format", ASKED, ROWS,
        "With --task: one of its prompt formats.")] = None
    replicates: Annotated[Times, TEXT["replicates"].meaning(ROWS,
        "With --task: times each row is asked; the majority is its label (default 1).")] = 1
    trust_pickle: Annotated[bool, Option("--trust-pickle", ASKED, ROWS,
        "Open .joblib and .pickle models; opening one runs its code.", shapes=False)] = False
    # fmt: on

    @property
    def served(self) -> bool:
        """Whether rows are asked through the client, one call each: with a task, or of an ``http:`` model."""
        return self.task is not None or self.model.startswith("http:")

    def as_dict(self) -> dict[str, object]:
        """Return the plan as plain data."""
        return super().as_dict() | {"kind": "tabular"}

    @classmethod
    def written(cls) -> frozenset[str]:
        """Return the names of the fields as `as_dict` writes them."""
        return frozenset(info.alias or name for name, info in cls.settings().items())

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """Read a plan that `as_dict` wrote; other entries are left out."""
        return cls.model_validate({name: value for name, value in values.items() if name in cls.written()})


# -- options of the methods; defaults are the papers' ---------------------------------------------------------


class OptionSet(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """A field is an option; its bounds and its default stand at the field."""

    method: ClassVar[str]

    @classmethod
    def of(cls, options: Mapping[str, object]) -> Self:
        """Read options by name; None means the default, and a mistake is a `ConfigError`."""
        known = cls.model_fields
        chosen = {k: v for k, v in options.items() if v is not None}
        if gone := sorted(chosen.keys() & REMOVED.keys()):
            raise ConfigError(f"The option {gone[0]} of --method {cls.method} was removed in 0.3; {REMOVED[gone[0]]}.")
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


class ThemisOptions(OptionSet):
    """Scores of the protected columns together; with ``theta`` all minimal sets of them above it (Algorithm 3).

    The paper's experiments use confidence 0.99, epsilon 0.05 and theta 0.75.
    """

    method: ClassVar[str] = "themis"
    protocol: Literal["default", "themis"] = "default"  # the paper's one-by-one sampling and stopping rule
    confidence: float = Field(0.99, gt=0, lt=1)  # level of intervals
    epsilon: float = Field(0.05, gt=0, lt=1)  # half-width at which sampling stops
    max_samples: int | None = Field(None, ge=1)  # rows drawn at most; None: see `walks`, else `MAX_SAMPLES`
    theta: float | None = Field(None, ge=0, le=1)  # threshold of the search
    measure: Literal["causal", "group"] = "causal"  # which score the search is about

    @property
    def most(self) -> int:
        """Rows drawn at most per score (protocol themis: per group)."""
        return self.max_samples or MAX_SAMPLES

    @property
    def least(self) -> int:
        """Rows drawn before stopping is considered."""
        return LEAST_OF_PAPER if self.protocol == "themis" else LEAST


def walks(evaluator: Evaluator, settings: ThemisOptions) -> bool:
    """Whether the whole domain is walked through: it is small, the model is quick, and no sample was asked for."""
    size, left = evaluator.schema.size, evaluator.remaining
    fits = size <= ENUMERABLE and (left is None or size <= left)
    return fits and settings.max_samples is None and not evaluator.slow


class AequitasOptions(OptionSet):
    """Fully directed search. A walk that lost the region goes on from the row before; as printed, from the miss.

    The released code lies between the two.
    """

    method: ClassVar[str] = "aequitas"
    protocol: Literal["default", "aequitas"] = "default"  # Algorithm 2 as printed
    global_n: int = Field(2000, ge=1)  # trials of the global search; the released script's
    local_n: int = Field(1000, ge=0)  # trials of the local search around each; the released script's
    max_found: int | None = Field(None, gt=0)  # stop once so many cases are known (section 4.5)
    generated: int | None = Field(None, gt=0)  # stop once so many distinct cases were judged
    trials: int | None = Field(None, ge=0)  # samples of the estimate (section 4.3); 0: from the global search

    def estimate(self, schema: Schema, left: int | None) -> tuple[int, int]:
        """Return how many samples of how many cases the share is taken from: K and m, as far as rows may be asked."""
        combos = math.prod(schema.cards[schema.protected_index].tolist())
        trials, size = self.trials, TRIAL_SIZE
        if trials is None:
            cases = max(LEAST_CASES, ESTIMATE_ROWS // combos)
            size = min(TRIAL_SIZE, cases)
            trials = min(TRIALS, cases // size)
        if left is not None:
            rows = int(left * ESTIMATE_SHARE) // combos
            if rows < min(FEWEST, schema.cases):
                return 0, size
            size = min(size, rows)
            trials = min(trials, rows // size)
        return trials, size


class SgOptions(OptionSet):
    """How SG searches. The protocol sg has the paper's order, batches of one, and every column nominal to LIME."""

    method: ClassVar[str] = "sg"
    protocol: Literal["default", "sg"] = "default"
    limit: int = Field(1000, ge=1)  # distinct cases to generate
    samples: int = Field(5000, ge=1)  # rows in a LIME neighbourhood (LIME's default)


OPTIONS: Mapping[str, type[OptionSet]] = {"themis": ThemisOptions, "aequitas": AequitasOptions, "sg": SgOptions}
