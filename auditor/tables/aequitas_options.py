"""The options of Aequitas by name, with the paper's values as defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from auditor.tables.distance import Distance
from auditor.tables.options import OptionSet
from auditor.tables.schema import Schema

TRIALS, TRIAL_SIZE = 400, 1_000  # the paper's
ESTIMATE_ROWS = 4_000_000  # that the model is asked about for the share, unless more is asked for
POPULATION_DEFAULT = 1000  # cases that a population without a limit judges
LEAST_CASES = 100  # of the share, however many combinations there are


class Options(OptionSet):
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
    def read(cls, options: Mapping[str, object], schema: Schema) -> Options:
        """Options as `of` reads them, with an end of a population and an estimate that the schema can afford."""
        given = {k: v for k, v in options.items() if v is not None}
        if given.get("mode") == "population" and not {"generated", "max_found", "max_seconds"} & set(given):
            given["generated"] = POPULATION_DEFAULT
        return cls.of({**_estimate_size(schema, given), **given})

    def record(self, distance: Distance) -> dict[str, object]:
        """Every option with its value, and the threshold γ that the distance stands for."""
        gamma = distance.threshold * distance.scale if distance.kind == "absolute" else 0.0
        return {**self.model_dump(), "gamma": gamma}


def _estimate_size(schema: Schema, given: Mapping[str, object]) -> dict[str, int]:
    """K and m where nothing was said about either: the paper's, or as many as `ESTIMATE_ROWS` allow."""
    if "trials" in given or "trial_size" in given or not len(schema.protected_index):
        return {}
    cases = max(LEAST_CASES, ESTIMATE_ROWS // math.prod(schema.cards[schema.protected_index].tolist()))
    size = min(TRIAL_SIZE, cases)
    return {"trials": min(TRIALS, cases // size), "trial_size": size}
