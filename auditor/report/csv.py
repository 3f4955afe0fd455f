"""Findings and estimates as one CSV table that no spreadsheet takes for formulas."""

from __future__ import annotations

import dataclasses
from typing import Any

from auditor.core.protocols import Renderer
from auditor.core.record import NamedEstimate, Plain, RunRecord, read
from auditor.core.shown import csv_text
from auditor.core.types import Estimate, Finding
from auditor.measure.rates import ARMS
from auditor.report import exchange

COLUMNS = (
    "row", "id", "key", "name", "arm", "verdict", "waived", "model", "format", "attributes", "directions", "kind",
    "value", "low", "high", "level", "n", "n_skipped", "n_variants", "method", "p_value", "p_adjusted",
    "exemplars", "text", "notes",
)  # fmt: skip


class CsvReport(Renderer):
    """One row for each finding (``row`` = finding), each estimate, each figure of a suite; UTF-8 with a header.

    Shares are numbers in [0, 1]; what is missing is empty. A text that begins like a formula (``=``, ``+``,
    ``-``, ``@`` and their wide forms, also after white space or a separator) gets an apostrophe in front, and
    acting characters are made visible.
    """

    name = "csv.v1"
    suffix = ".csv"

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> str:
        """Write the table."""
        lines: list[dict[str, object]] = []
        told = read(record)
        for row in exchange.rows(told):
            f = row.finding
            values = {
                "row": "finding",
                "id": row.id,
                "key": row.key,
                "name": row.code,
                "arm": "edited",
                "verdict": row.verdict,
                "waived": _waived(row),
                "model": row.model,
                "format": row.format,
                **_place(f),
                "kind": row.kind,
                **_figures(f.rate),
                "p_value": f.p_value,
                "p_adjusted": f.p_adjusted,
                "exemplars": " ".join(f.exemplars),
                "text": f.text or row.sentence,
                "notes": " | ".join(f.notes),
            }
            lines.append(values)
        for e in told.estimates:
            values = {
                "row": "estimate",
                "name": e.name,
                "arm": ARMS.get(e.name, "edited"),
                "model": e.model,
                "format": e.format,
                **_place(e),
                "kind": e.kind,
                **_figures(e.estimate),
                "text": e.population,
                "notes": e.estimate.note,
            }
            lines.append(values)
        for one in told.figures or ():
            values = {
                "row": "figure",
                "name": one.figure,
                "model": one.model,
                "format": one.format,
                "value": one.value,
                "low": one.low,
                "high": one.high,
                "n": one.cases,
                "n_skipped": one.left_out,
                "text": one.what,
            }
            lines.append(values)
        rows = [COLUMNS, *([line.get(name) for name in COLUMNS] for line in lines)]
        return csv_text(rows, newlines=False)


def _waived(row: exchange.Row) -> str:
    if row.waiver is None:
        return ""
    return f"until {row.waiver.expires}, {row.waiver.owner}: {row.waiver.reason}"


def _place(entry: Finding | NamedEstimate) -> dict[str, str]:
    return {
        "attributes": " + ".join(entry.attributes),
        "directions": " + ".join(f"{a}: {source} > {target}" for a, source, target in entry.directions or ()),
    }


def _figures(estimate: Estimate | None) -> dict[str, object]:
    return {} if estimate is None else {k: v for k, v in dataclasses.asdict(estimate).items() if k != "note"}
