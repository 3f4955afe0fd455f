"""Options of the methods: given by name, checked before anything is asked; defaults are the papers'."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, Field, ValidationError

from auditor.core.errors import ConfigError
from auditor.tables.evaluate import Evaluator
from auditor.tables.row_schema import ENUMERABLE, Schema
from auditor.tables.tabular_plan import REMOVED

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
