"""Findings and estimates as rows of a CSV file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from auditor.core.protocols import Renderer
from auditor.core.record import NamedEstimate, RunRecord
from auditor.core.shown import csv_text
from auditor.core.types import Estimate, Finding
from auditor.measure.rates import ARMS
from auditor.report import claimed

COLUMNS = (
    "row", "id", "key", "name", "arm", "verdict", "waived", "model", "format", "attributes", "directions", "kind",
    "value", "low", "high", "level", "n", "n_skipped", "n_variants", "method", "p_value", "p_adjusted",
    "exemplars", "text", "notes",
)  # fmt: skip


class CsvReport(Renderer):
    """One row for each finding (``row`` = finding), each estimate, each figure of a suite; UTF-8 with a header."""

    name = "csv"
    suffix = ".csv"

    def render(self, record: RunRecord, evidence: Any = None) -> str:
        """Write the table."""
        return csv_text([COLUMNS, *([line.get(name) for name in COLUMNS] for line in _lines(record))], newlines=False)


def _lines(record: RunRecord) -> Iterator[dict[str, object]]:
    for row in claimed.rows(record):
        f, waiver = row.finding, row.waiver
        yield {
            "row": "finding",
            "id": f.id,
            "key": row.key,
            "name": f.code,
            "arm": "edited",
            "verdict": f.verdict,
            "waived": f"until {waiver.expires}, {waiver.owner}: {waiver.reason}" if waiver is not None else "",
            **_place(f),
            **_figures(f.rate),
            "p_value": f.p_value,
            "p_adjusted": f.p_adjusted,
            "exemplars": " ".join(f.exemplars),
            "text": f.text or row.sentence,
            "notes": " | ".join(row.notes),
        }
    for e in record.estimates:
        yield {
            "row": "estimate",
            "name": e.name,
            "arm": ARMS.get(e.name, "edited"),
            **_place(e),
            **_figures(e.estimate),
            "text": e.population,
            "notes": e.estimate.note,
        }
    for one in record.figures or ():
        yield {
            "row": "figure",
            "name": one.figure,
            **{name: getattr(one, name) for name in ("model", "format", "value", "low", "high")},
            "n": one.cases,
            "n_skipped": one.left_out,
            "text": one.what,
        }


def _place(entry: Finding | NamedEstimate) -> dict[str, object]:
    return {
        "model": entry.model,
        "format": entry.format,
        "kind": entry.kind,
        "attributes": " + ".join(entry.attributes),
        "directions": " + ".join(f"{a}: {source} > {target}" for a, source, target in entry.directions or ()),
    }


def _figures(estimate: Estimate | None) -> dict[str, object]:
    return {} if estimate is None else {k: v for k, v in dataclasses.asdict(estimate).items() if k != "note"}
