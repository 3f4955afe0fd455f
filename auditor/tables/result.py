"""What every tabular method hands back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditor.core.types import Estimate, Sampling
from auditor.tables.column import Raw
from auditor.tables.given import Given, Rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """A minimal counterfactual pair: two rows that differ in protected columns only, with different labels.

    ``changed`` are the columns that differ; no proper subset of them changes the label of ``row``.
    """

    row: Mapping[str, Raw]
    other: Mapping[str, Raw]
    changed: tuple[str, ...]
    label: str
    other_label: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Subset:
    """One set of protected columns in the lattice."""

    columns: tuple[str, ...]  # the set
    rows: int  # rows (case and protected values) that were judged
    changes: int  # rows whose label changes when some or all of these columns change
    minimal: int  # those of them that no proper subset changes. A row may be among them for several sets
    # those of them that none of these columns changes alone: *hidden* to any audit of one column at a
    # time. Of the set of all protected columns, the last one of a lattice, it is the number of hidden
    # rows
    hidden: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """One score of a set of columns."""

    name: str  # the measure
    columns: tuple[str, ...]  # the set that is varied
    estimate: Estimate  # value, interval, sample size; ``method`` says how
    population: str  # which rows it is about: ``domain (uniform)``, ``given rows``, ``profile``
    detail: Mapping[str, object] = field(default_factory=dict)  # rates of groups and the like


@dataclass(frozen=True, kw_only=True, slots=True)
class TabularResult:
    """The outcome of Themis, Aequitas or SG on one model."""

    method: Literal["themis", "aequitas", "sg"]  # the method
    # its mode: ``score``, ``search`` / ``random``, ``semi``, ``fully``, ``population`` / ``symbolic``
    mode: str
    sampling: Sampling  # only cases that were drawn independently of earlier verdicts enter a rate
    options: Mapping[str, object]  # every option with the value that was used
    # at least ``generated`` (distinct cases judged), ``discriminatory`` (distinct cases among them with
    # different labels), ``off_manifold`` (distinct cases whose label differs only on rows that nobody
    # could be), ``evaluations`` (rows passed to the model) and ``seconds``. In the record of a run
    # ``seconds`` are those of the whole run, and ``evaluations_in_all`` has the rows of pairs and
    # slices too
    counts: Mapping[str, float]
    scores: tuple[Score, ...] = ()  # from independent samples only
    # the minimal sets above a threshold that a discrimination search found
    minimal_sets: tuple[Score, ...] = ()
    lattice: tuple[Subset, ...] = ()  # every set of protected columns, smaller first
    pairs: tuple[Pair, ...] = ()  # exemplars
    # tables of the method's own (contribution per phase, path coverage, distinct faults)
    details: Mapping[str, object] = field(default_factory=dict)
    # whether all rows of a case were asked about, whatever the answers were; not part of the record
    whole_cases: bool = True
    # codes of the discriminatory cases, for export; not part of the record
    found: NDArray[np.int32] | None = None
    # given rows whose label changes, as they are, for export; not part of the record
    found_given: Given | None = None
    # independent draws and whether the label of their case changes, by where they come from
    # (``domain``, ``given``), for comparisons with another run; not part of the record
    judged: Mapping[str, tuple[Rows, NDArray[np.bool_]]] = field(default_factory=dict)
    # ``partial`` where a limit ended the search before it was done, and which
    status: Literal["complete", "partial"] = "complete"
    status_reason: str = ""
    notes: tuple[str, ...] = ()  # what a reader has to know

    def to_record(self) -> dict[str, object]:
        """The result as plain data (JSON), without the array of finds."""
        if self.sampling == "directed" and any(s.name == "causal" for s in self.scores):
            raise ValueError(f"{self.method}: a directed search cannot carry a causal score")
        return {
            item.name: plain(getattr(self, item.name))
            for item in dataclasses.fields(self)
            if item.name not in ("found", "found_given", "judged", "whole_cases")
        }


def plain(value: object) -> Any:
    """``value`` with dataclasses, tuples and NumPy scalars turned into what JSON holds."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return value.item() if isinstance(value, np.generic) else value
