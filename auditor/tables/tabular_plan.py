"""The plan of a tabular run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field

from auditor.core.errors import ConfigError
from auditor.core.options import LARGEST, Amount, Names, Option, PathText, PlanModel, Times
from auditor.core.plan import Plan
from auditor.core.shared_plan import ASKED, CHANGED, LIMITS, MEASURED, ROWS, SharedPlan

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


class MethodOptions(PlanModel):
    """Options of the methods that have a flag of their own; the methods say what they take, and check it."""

    gone = REMOVED

    # fmt: off
    protocol: Annotated[str | None, TEXT["protocol"].meaning(ROWS,
        "default; themis, aequitas or sg: as the paper has it.")] = None
    confidence: Annotated[float | None, Option("--confidence", MEASURED, ROWS, "themis: level (default 0.99).")] = None
    epsilon: Annotated[float | None, Option("--epsilon", MEASURED, ROWS,
        "themis: half-width at which sampling stops (default 0.05).")] = None
    theta: Annotated[float | None, Option("--theta", MEASURED, ROWS, 
        "themis: search the minimal sets of --protected with a score above it (0.75 in the paper).")] = None
    max_samples: Annotated[int | None, Option("--max-samples", MEASURED, ROWS,
        "themis: rows drawn at most per score (default: all of a small domain, else 10,000).")] = None
    measure: Annotated[str | None, Option("--measure", MEASURED, ROWS,
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
    method: Annotated[Method, Option("--method", MEASURED, ROWS, "themis (default), aequitas or sg.")] = "themis"
    options: Annotated[dict[str, object], BeforeValidator(read_settings), Option("--set", MEASURED, ROWS,
        "NAME=VALUE: any further option of the method.", repeated=True)] = Field(default_factory=dict)
    distance_threshold: Annotated[Amount | None, Option("--distance-threshold", MEASURED, ROWS,
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
