"""The run record (``run.json``) as typed values: what a run writes and every report reads.

A record is plain data on disk and for plug-ins; `read` makes it a `RunRecord`, once. Fields with a default may be
absent: a run has only what it measured, and older runs lack what newer ones added. `RunRecord.raw` is the plain data
themselves, for what is listed or hashed as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from auditor.core.errors import RunFolderError
from auditor.core.record.base import (
    Asked,
    Controls,
    Counts,
    Frozen,
    Head,
    NamedEstimate,
    Part,
    Provenance,
    Responsible,
    Spec,
    SuiteFigure,
    Vocabulary,
    Waived,
    Waivers,
)
from auditor.core.record.measured import (
    Caution,
    Claim,
    Compared,
    Discarded,
    Generation,
    Performance,
    Probability,
    Scores,
    TextPairs,
    Tokens,
    ToldApart,
)
from auditor.core.record.outcome_tables import DataFile, Outcomes, Tool
from auditor.core.record.rows import Tabular
from auditor.core.record.searches import Adaptive, HinterFigures, HinterPair
from auditor.core.types import FORMAT_VERSION, Diagnosis, Finding

Plain = Mapping[str, Any]
Told = TypeVar("Told")


class RunRecord(Part, frozen=True, kw_only=True):
    """One run: what was asked, what came of it, and what may be said."""

    id: str | None = None
    format_version: int = FORMAT_VERSION
    tool_version: str | None = None
    status: str = ""
    status_reason: str | None = None
    stopped_by: str | None = None
    spec: Spec = Spec()
    provenance: Provenance = Provenance()
    counts: Counts = Counts()
    estimates: tuple[NamedEstimate, ...] = ()
    controls: Controls = msgspec.field(default_factory=Controls)
    claims: tuple[Claim, ...] | None = None  # None: a run of an older version, or of a kind that makes none
    findings: tuple[Finding, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    models: dict[str, Asked] = msgspec.field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()
    performance: Performance = Performance()
    tokens: tuple[Tokens, ...] = ()
    vocabulary: Vocabulary = Vocabulary()
    comparison: Compared | None = None
    discarded: Discarded = Discarded()
    generation: Generation | None = None
    probability: Probability | None = None
    scores: Scores | None = None
    generation_pairs: TextPairs | None = None
    told_apart: tuple[ToldApart, ...] = ()
    hinter: dict[str, tuple[HinterPair, ...]] = msgspec.field(default_factory=dict)
    hinter_figures: HinterFigures | None = None
    adaptive: Adaptive | None = None
    figures: tuple[SuiteFigure, ...] = ()
    frozen: Frozen | None = None
    journal: dict[str, Head] = msgspec.field(default_factory=dict)
    tabular: Tabular | None = None
    # of recorded outcomes
    kind: str = ""
    tool: Tool = Tool()
    data: DataFile = DataFile()
    warnings: tuple[str, ...] = ()
    ll144: Outcomes | None = None
    # laid over the record when it is shown
    waivers: Waivers = Waivers()
    responsible: Responsible | None = None
    sections: tuple[str, ...] = ()
    raw: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether everything planned was asked."""
        return self.status != "partial"

    @property
    def rows(self) -> Tabular:
        """The search over rows; an empty one in other runs."""
        return self.tabular or Tabular()

    @property
    def outcomes(self) -> Outcomes:
        """The tables of outcomes; empty ones in other runs."""
        return self.ll144 or Outcomes(mode="")


def read(plain: Plain | RunRecord) -> RunRecord:
    """The record as typed values; `RunFolderError` names the place where something in it has another shape.

    Examples
    --------
    >>> read({"id": "r1", "spec": {"task": "hiring"}}).spec.task
    'hiring'
    """
    if isinstance(plain, RunRecord):
        return plain
    return msgspec.structs.replace(part(plain, RunRecord), raw=plain)


def part(plain: object, kind: type[Told]) -> Told:
    """A part of a record as typed values; `RunFolderError` where it has another shape."""
    try:
        return msgspec.convert(plain, kind, dec_hook=_controls)
    except msgspec.ValidationError as error:
        raise RunFolderError(f"run.json cannot be read: {error}") from None


def _controls(kind: type, value: object) -> object:
    if kind is Controls and isinstance(value, Mapping):
        return Controls(value)
    raise NotImplementedError


__all__ = [
    "Asked",
    "Caution",
    "Claim",
    "Controls",
    "Counts",
    "NamedEstimate",
    "Plain",
    "RunRecord",
    "Waived",
    "part",
    "read",
]
