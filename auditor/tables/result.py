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
    """One set of protected columns in the lattice.

    Attributes
    ----------
    columns : tuple of str
        The set.
    rows : int
        Rows (case and protected values) that were judged.
    changes : int
        Rows whose label changes when some or all of these columns change.
    minimal : int
        Those of them that no proper subset changes. A row may be among them for several sets.
    hidden : int
        Those of them that none of these columns changes alone: *hidden* to any audit of one column at a time. Of the
        set of all protected columns, the last one of a lattice, it is the number of hidden rows.
    """

    columns: tuple[str, ...]
    rows: int
    changes: int
    minimal: int
    hidden: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """One score of a set of columns.

    Attributes
    ----------
    name : {"group", "causal", "apparent_group", "apparent_causal", "discriminatory_share"}
        The measure.
    columns : tuple of str
        The set that is varied.
    estimate : Estimate
        Value, interval, sample size; ``method`` says how.
    population : str
        Which rows it is about: ``domain (uniform)``, ``given rows``, ``profile``.
    detail : mapping
        Rates of groups and the like.
    """

    name: str
    columns: tuple[str, ...]
    estimate: Estimate
    population: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class TabularResult:
    """The outcome of Themis, Aequitas or SG on one model.

    Parameters
    ----------
    method : {"themis", "aequitas", "sg"}
        The method.
    mode : str
        Its mode: ``score``, ``search`` / ``random``, ``semi``, ``fully``, ``population`` / ``symbolic``.
    sampling : {"iid", "directed"}
        Only cases that were drawn independently of earlier verdicts enter a rate.
    options : mapping
        Every option with the value that was used.
    counts : mapping
        At least ``generated`` (distinct cases judged), ``discriminatory`` (distinct cases among them with
        different labels), ``off_manifold`` (distinct cases whose label differs only on rows that nobody
        could be), ``evaluations`` (rows passed to the model) and ``seconds``. In the record of a run ``seconds`` are
        those of the whole run, and ``evaluations_in_all`` has the rows of pairs and slices too.
    scores : tuple of Score
        From independent samples only.
    minimal_sets : tuple of Score
        The minimal sets above a threshold that a discrimination search found.
    lattice : tuple of Subset
        Every set of protected columns, smaller first.
    pairs : tuple of Pair
        Exemplars.
    details : mapping
        Tables of the method's own (contribution per phase, path coverage, distinct faults).
    found : array of int32, shape (k, d), optional
        Codes of the discriminatory cases, for export; not part of the record.
    found_given : Given, optional
        Given rows whose label changes, as they are, for export; not part of the record.
    judged : mapping of str to (rows, array of bool, shape (n,))
        Independent draws and whether the label of their case changes, by where they come from (``domain``,
        ``given``), for comparisons with another run; not part of the record.
    status, status_reason : str
        ``partial`` where a limit ended the search before it was done, and which.
    notes : tuple of str
        What a reader has to know.
    """

    method: Literal["themis", "aequitas", "sg"]
    mode: str
    sampling: Sampling
    options: Mapping[str, Any]
    counts: Mapping[str, Any]
    scores: tuple[Score, ...] = ()
    minimal_sets: tuple[Score, ...] = ()
    lattice: tuple[Subset, ...] = ()
    pairs: tuple[Pair, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    found: NDArray[np.int32] | None = None
    found_given: Given | None = None
    judged: Mapping[str, tuple[Rows, NDArray[np.bool_]]] = field(default_factory=dict)
    status: Literal["complete", "partial"] = "complete"
    status_reason: str = ""
    notes: tuple[str, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """The result as plain data (JSON), without the array of finds.

        Raises
        ------
        ValueError
            A directed search carries a score: finds that were searched for say nothing about a rate.
        """
        if self.sampling == "directed" and any(s.name == "causal" for s in self.scores):
            raise ValueError(f"{self.method}: a directed search cannot carry a causal score")
        return {
            item.name: plain(getattr(self, item.name))
            for item in dataclasses.fields(self)
            if item.name not in ("found", "found_given", "judged")
        }


def plain(value: Any) -> Any:
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
