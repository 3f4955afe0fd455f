"""Where the outcomes of people lie that a page is about: in the record itself, or beside the run."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from auditor.core.decoded import from_json
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.record import RunRecord, read
from auditor.core.shown import quoted

OUTCOMES = "ll144.json"  # where a run folder may hold what `audit ll144 --out` wrote


def people(record: RunRecord, evidence: object, format: str) -> RunRecord:
    """The outcomes of people that a page is about; the rest of the run is not part of it.

    Raises
    ------
    ConfigError
        The run holds none, or they are rankings of made-up applications.
    """
    found = outcomes_of(record, evidence)
    if found is None:
        raise ConfigError(
            f"--format {format} needs outcomes of people who applied; run {record.id or ''} measured how answers "
            "change when texts or rows are altered, which says nothing about rates of selection. Compute the "
            "tables from a file of applicants with: audit ll144 --data FILE --sex COLUMN --race COLUMN "
            "--selected COLUMN (--out RUN/ll144.json puts them beside this run)"
        )
    if found.kind == "ranking":
        raise ConfigError(
            "these outcomes are recorded rankings of made-up applications: test data that can never become tables "
            "under Local Law 144. See them with: audit ll144 --rankings FILE --out FILE.html"
        )
    return found if record.responsible is None else structs.replace(found, responsible=record.responsible)


def outcomes_of(record: RunRecord, evidence: object) -> RunRecord | None:
    """The record of ``audit ll144`` that ``record`` is, or that lies in the run folder.

    Raises
    ------
    DataFileError
        The file in the run folder is no such record.
    """
    if record.ll144 is not None:
        return record
    folder = getattr(evidence, "path", None)
    path = Path(folder) / OUTCOMES if folder is not None else None
    if path is None or not path.is_file():
        return None
    try:
        found = from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataFileError(
            f"{path}: cannot be read: {error}. Write it with: audit ll144 --out {quoted(str(path))}"
        ) from None
    needed = {"ll144", "data", "kind", "tool", "warnings"}
    if not isinstance(found, dict) or not needed <= set(found):
        raise DataFileError(
            f"{path}: this is no record of audit ll144. Write it with: audit ll144 --out {quoted(str(path))}"
        )
    return read(found)
