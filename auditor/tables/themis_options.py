"""The options of Themis, and where its rows come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, SkipValidation, Strict

from auditor.core.counting import plural
from auditor.core.errors import ConfigError
from auditor.tables.evaluate import Evaluator
from auditor.tables.given import Rows
from auditor.tables.options import OptionSet
from auditor.tables.profile import Profile
from auditor.tables.schema import ENUMERABLE, Schema, uniform

Sampler = Callable[[int], Rows]
EXACT_METHOD = "enumeration of the whole domain"


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


def walks(evaluator: Evaluator, schema: Schema, settings: ThemisOptions) -> bool:
    """Whether the whole domain is walked through instead of sampled."""
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
