"""The run record (``run.json``) as typed values: what a run writes and every report reads.

`read` makes the plain data of ``run.json`` a `RunRecord`, once. Fields with a default may be absent: a run has only
what it measured, and older runs lack what newer ones added. `RunRecord.raw` is the plain data themselves, for what is
listed or hashed as it stands. `frame`, `head` and `code_sha256` say what shaped it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from auditor._version import __version__
from auditor.core.errors import RunFolderError
from auditor.core.reading import PACKAGE
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
    FAMILIES,
    Caution,
    Claim,
    Discarded,
    Generation,
    HinterFigures,
    HinterPair,
    Performance,
    Probability,
    Scores,
    TextPairs,
    Tokens,
    ToldApart,
)
from auditor.core.record.outcome_tables import DataFile, Outcomes, Tool
from auditor.core.record.rows import Tabular
from auditor.core.types import FORMAT_VERSION, Diagnosis, Finding, digest

Plain = Mapping[str, Any]
Told = TypeVar("Told")
CODE = (".py", ".j2", ".css")
_LEFT_OUT = re.compile(r"(^|/)(__pycache__|\.|_data(/|$))")


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
    discarded: Discarded = Discarded()
    generation: Generation | None = None
    probability: Probability | None = None
    scores: Scores | None = None
    generation_pairs: TextPairs | None = None
    told_apart: tuple[ToldApart, ...] = ()
    hinter: dict[str, tuple[HinterPair, ...]] = msgspec.field(default_factory=dict)
    hinter_figures: HinterFigures | None = None
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
    def waived(self) -> dict[str, Waived]:
        """The active waiver of each waived finding, by the finding's id."""
        return {id: item for item in reversed(self.waivers.items) if item.status == "active" for id in item.findings}

    @property
    def outcomes(self) -> Outcomes:
        """The tables of outcomes; empty ones in other runs."""
        return self.ll144 or Outcomes(mode="")


OF_WORDS = "shown_for_words"  # a verdict of version 0.2
EARLIER = "version 0.2 said: shown for these words"


def read(plain: Plain) -> RunRecord:
    """The record as typed values; `RunFolderError` names the place where something in it has another shape.

    Examples
    --------
    >>> read({"id": "r1", "spec": {"task": "hiring"}}).spec.task
    'hiring'
    """
    today = plain
    with suppress(KeyError, TypeError, AttributeError):  # of another shape: `part` says where
        today = _today(plain)
    return msgspec.structs.replace(part(today, RunRecord), raw=plain)


def with_sections(record: RunRecord, **sections: object) -> RunRecord:
    """Return ``record`` with sections that are laid over it when it is shown."""
    return read({**record.raw, **sections})


def _today(plain: Plain) -> Plain:
    """Return a record of version 0.2 as today's: no verdict about words alone, and findings that name their claims."""
    claims, findings = plain.get("claims"), plain.get("findings")
    if not isinstance(claims, list) or not isinstance(findings, list) or not findings or "claim" in findings[0]:
        return plain
    known = {_about(c["family"], c["attribute"], c["groups"], c): n for n, c in enumerate(claims)}
    linked = []
    for f in findings:
        groups = [group for step in f.get("directions", ()) for group in step[1:]]
        key = _about(FAMILIES.get(f["code"][:3], ""), "+".join(f["attributes"]), groups, f)
        rate = f["code"].startswith("MUT")  # had the verdict of the net claims of its attribute
        own = {"claim": None, "p_value": None, "p_adjusted": None} if rate else {"claim": known.get(key)}
        linked.append(f | own | ({"notes": [EARLIER]} if f["verdict"] == OF_WORDS else {}))
    said = [c | ({"why": EARLIER} if c["verdict"] == OF_WORDS else {}) for c in claims]
    return {**plain, "claims": [*map(_decided, said)], "findings": [*map(_decided, linked)]}


def _about(family: str, attribute: str, groups: Sequence[str], where: Plain) -> tuple[object, ...]:
    return family, frozenset(attribute.split("+")), frozenset(groups), where["model"], where.get("format", "")


def _decided(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"verdict": "not_determined"} if row["verdict"] == OF_WORDS else row


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


def head(record: Mapping[str, object]) -> str:
    """The head of a run: one hash for its plan, journals and figures, to be noted elsewhere.

    SHA-256 of the canonical JSON of ``run.json``, which names the plan's hash and the last hash of each journal. What
    is laid over a record when it is shown (waivers, what people filled in) does not enter.
    """
    own = {k: v for k, v in record.items() if k not in ("waivers", "responsible")}
    return digest(json.loads(json.dumps(own)))


def frame(
    id: str,
    plan_sha256: str | None,
    spec: Mapping[str, object],
    facts: Mapping[str, object],
    started: datetime,
    seconds: float | None = None,
    *,
    reason: str = "",
    packages: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what every record begins with: its run, its plan, where it comes from, and no figures yet.

    ``facts`` are what it rests on; ``reason`` says why it is partial. It ends now, if ``seconds`` are not given.
    """
    import platform
    from importlib.metadata import PackageNotFoundError, version

    versions: dict[str, str | None] = dict.fromkeys(packages)
    for name in packages:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    took = (datetime.now(UTC) - started).total_seconds() if seconds is None else seconds
    return {
        "id": id,
        "format_version": FORMAT_VERSION,
        "tool_version": __version__,
        "status": "partial" if reason else "complete",
        "status_reason": reason,
        "spec": dict(spec),
        "provenance": {
            "started": started.isoformat(timespec="seconds"),
            "ended": (started + timedelta(seconds=took)).astimezone(UTC).isoformat(timespec="seconds"),
            "seconds": round(took, 3),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "packages": versions,
            "plan_sha256": plan_sha256,
            "code": code_sha256(),
            **facts,
        },
        **{name: [] for name in ("estimates", "findings", "diagnoses")},
        **{name: {} for name in ("controls", "models")},
    }


@cache
def code_sha256(package: Path = PACKAGE) -> dict[str, object]:
    """One hash over the source files of a package, and how many there are: ``{"sha256": …, "files": …}``.

    SHA-256 over the sorted lines ``<SHA-256 of the file>  <path>``, as ``sha256sum`` prints them: it can be recomputed
    without this package. Byte code and data are left out.
    """
    lines = sorted(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(package).as_posix()}\n"
        for path in package.rglob("*")
        if path.suffix in CODE and path.is_file() and not _LEFT_OUT.search(path.relative_to(package).as_posix())
    )
    return {"sha256": hashlib.sha256("".join(lines).encode()).hexdigest(), "files": len(lines)}


def dictionaries(described: Mapping[str, object]) -> dict[str, object]:
    """Return the dictionaries of a suite by what it says of itself (`auditor.core.protocols.Suite.describe`)."""
    every = msgspec.convert(described.get("dictionaries") or (), tuple[dict[str, object], ...])
    listed = [{k: d.get(k) for k in ("attribute", "name", "version", "sha256")} for d in every]
    return {"dictionaries": listed} if listed else {}


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
    "code_sha256",
    "dictionaries",
    "frame",
    "head",
    "part",
    "read",
    "with_sections",
]
