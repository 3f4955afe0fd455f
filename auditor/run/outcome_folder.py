"""Run folders for tables of recorded outcomes (``audit ll144 --out DIR``); their journals are empty."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from auditor.core.record import frame

KIND = "ll144"


def is_outcomes(record: Mapping[str, Any]) -> bool:
    """Whether a run record or the plan of a run folder is of recorded outcomes."""
    return KIND in record or record.get("kind") == KIND


def write(tables: Mapping[str, Any], plan: Mapping[str, Any], root: Path, *, started: datetime) -> Path:
    """Write a run folder below ``root``: ``plan.json``, ``run.json``, ``report.html`` and empty journals."""
    from auditor.report import html, outcome_report
    from auditor.store.folder import REPORT, RunFolder

    data = tables["data"]
    source = {"file": data["file"], "sha256": data["sha256"], "rows": data["rows"]}
    about = {"kind": KIND, "plan": dict(plan), "inputs": {"outcomes": source}, "fingerprints": {}}
    with RunFolder.create(root, about) as folder:
        made = frame(folder.id, folder.plan_sha256, {"kind": KIND, **plan}, {"outcomes": source}, started)
        folder.write_run(dict(tables) | made | {"counts": {"rows": data["rows"]}})
        written = folder.run()
        folder.write_text(REPORT, html.write(outcome_report.build(written), written))
        return folder.path


def still_there(record: Mapping[str, Any], file: Path) -> bool | None:
    """Whether the file of outcomes is the one that was read; None where it is not at hand."""
    from auditor.core.reading import sha256

    return sha256(file) == str(record["provenance"]["outcomes"]["sha256"]) if file.is_file() else None
