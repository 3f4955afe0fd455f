"""The plan of a tabular run, and what a run hands back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from auditor.core.errors import ConfigError
from auditor.core.plan import as_share
from auditor.core.secrets import hidden

if TYPE_CHECKING:
    from auditor.tables.result import TabularResult

Method = Literal["themis", "aequitas", "sg"]
METHODS: Mapping[str, tuple[str, str]] = {
    "themis": ("auditor.tables.sampling", "Themis"),
    "aequitas": ("auditor.tables.directed", "Aequitas"),
    "sg": ("auditor.tables.symbolic", "SG"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TabularPlan:
    """Everything that shapes a tabular run.

    Parameters
    ----------
    data : str
        CSV file with the rows; also what a schema is inferred from. May be empty with a schema or a task.
    model : str
        ``sklearn:FILE``, ``python:MODULE:FUNCTION``, ``exec:COMMAND`` or ``http:FILE.yaml``; with a task any model
        of text.
    task : str, optional
        A row-to-prompt task (``lending``, ``income``, or a task file with labels): the model reads each row as
        ``column: value`` lines within the task's prompt.
    target : str, optional
        The label column; needed without a schema that names it.
    schema : str, optional
        YAML file; inferred from the data without one.
    protected : tuple of str
        Columns that are varied; default: those that the schema protects.
    method : {"themis", "aequitas", "sg"}
        How cases are made.
    options : mapping
        The method's own options, by name.
    profile : str, optional
        Themis: a distribution of rows (YAML) or rows (CSV).
    favourable : str, optional
        The label that is good for the person concerned.
    distance, distance_threshold, distance_scale
        When two labels differ (Themis, Definition 3.3): ``exact``, ``absolute`` or a YAML file of distances; see
        `auditor.tables.distance.read_distance`.
    delta : float, optional
        The largest score that counts as bounded, in points (2) or as a share (0.02); there is no default.
    seed : int
        Of every random choice.
    max_evaluations, max_seconds
        Limits.
    trust_pickle : bool
        Whether a pickled model may be opened.
    retrain : bool
        Aequitas on ``sklearn:`` models: fit again with portions of the finds (Algorithm 5).
    max_calls, max_cost, price_in, price_out, concurrency, cache, base_url
        With a task or ``http:``: as for an audit of texts.
    prompt_format : str, optional
        With a task: which of its prompt formats; default: its first.
    replicates : int
        With a task: times each row is asked; the label is the answer of more than half.
    slices : int
        How many subgroups with the highest rates are shown; 0: none are looked for.
    out : str
        Folder of the run folders; empty: nothing is written.
    """

    data: str
    model: str
    task: str | None = None
    target: str | None = None
    schema: str | None = None
    protected: tuple[str, ...] = ()
    method: Method = "themis"
    options: Mapping[str, Any] = field(default_factory=dict)
    profile: str | None = None
    favourable: str | None = None
    distance: str = "exact"
    distance_threshold: float = 0.0
    distance_scale: float = 1.0
    delta: float | None = None
    seed: int = 7
    max_evaluations: int | None = None
    max_seconds: float | None = None
    trust_pickle: bool = False
    retrain: bool = False
    max_calls: int | None = None
    max_cost: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    concurrency: int = 16
    cache: bool = True
    base_url: str | None = None
    prompt_format: str | None = None
    replicates: int = 1
    slices: int = 10
    out: str = "reports"

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "delta", as_share(self.delta))
        except ValueError as error:
            raise ConfigError(f"--delta {error}; got {self.delta:g}.") from None

    @property
    def served(self) -> bool:
        """Whether rows are asked through the client, one call each: with a task, or of an ``http:`` model."""
        return self.task is not None or self.model.startswith("http:")

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain data."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values |= {"protected": list(self.protected), "options": dict(self.options), "kind": "tabular"}
        return values | {"base_url": hidden(self.base_url)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TabularPlan:
        """The plan that `as_dict` wrote; other entries are left out."""
        known = {f.name: values[f.name] for f in dataclasses.fields(cls) if f.name in values}
        return cls(**known | {"protected": tuple(known.get("protected", ()))})


@dataclass(frozen=True, kw_only=True, slots=True)
class TabularRun:
    """What a run hands back: the record as plain data, the result, and where it was written."""

    record: Mapping[str, Any]
    result: TabularResult
    path: Path | None = None

    @property
    def complete(self) -> bool:
        """Whether no limit ended the search early."""
        return self.result.status == "complete"

    def to_text(self, width: int = 100, encoding: str = "utf-8", color: bool = False) -> str:
        """The terminal report."""
        from auditor.report.terminal import TerminalReport

        return TerminalReport(width=width, encoding=encoding, color=color).render(self.record)
