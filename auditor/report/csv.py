"""Findings and estimates as one CSV table that no spreadsheet takes for formulas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from auditor.core.protocols import Renderer
from auditor.core.shown import csv_text
from auditor.measure.rates import ARMS
from auditor.report import exchange

COLUMNS = (
    "row", "id", "key", "name", "arm", "verdict", "waived", "model", "format", "attributes", "directions", "kind",
    "value", "low", "high", "level", "n", "n_skipped", "n_variants", "method", "p_value", "p_adjusted",
    "exemplars", "text", "notes",
)  # fmt: skip


class CsvReport(Renderer):
    """One row for each finding (``row`` = finding), then one for each estimate; UTF-8 with a header.

    Shares are numbers in [0, 1]; what is missing is empty. A text that begins like a formula (``=``, ``+``,
    ``-``, ``@`` and their wide forms, also after white space or a separator) gets an apostrophe in front, and
    acting characters are made visible.
    """

    name = "csv.v1"
    suffix = ".csv"

    def render(self, record: Mapping[str, Any], evidence: Any = None) -> str:
        """Write the table."""
        lines: list[dict[str, object]] = []
        for row in exchange.rows(record):
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
                **_figures(f.get("rate")),
                "p_value": f.get("p_value"),
                "p_adjusted": f.get("p_adjusted"),
                "exemplars": " ".join(f.get("exemplars") or ()),
                "text": f.get("text") or row.sentence,
                "notes": " | ".join(f.get("notes") or ()),
            }
            lines.append(values)
        for e in exchange.estimates(record):
            figures = e["estimate"]
            values = {
                "row": "estimate",
                "name": e["name"],
                "arm": ARMS.get(e["name"], "edited"),
                "model": e.get("model"),
                "format": e.get("format"),
                **_place(e),
                "kind": e.get("kind"),
                **_figures(figures),
                "text": e.get("population"),
                "notes": figures.get("note") or figures.get("reason"),
            }
            lines.append(values)
        rows = [COLUMNS, *([line.get(name) for name in COLUMNS] for line in lines)]
        return csv_text(rows, newlines=False)


def _waived(row: exchange.Row) -> str:
    if row.waiver is None:
        return ""
    return f"until {row.waiver['expires']}, {row.waiver['owner']}: {row.waiver['reason']}"


def _place(entry: Mapping[str, Any]) -> dict[str, str]:
    steps = entry.get("directions") or ()
    return {
        "attributes": " + ".join(str(a) for a in entry.get("attributes") or ()),
        "directions": " + ".join(f"{a}: {source} > {target}" for a, source, target in steps),
    }


def _figures(estimate: Mapping[str, Any] | None) -> dict[str, Any]:
    names = ("value", "low", "high", "level", "n", "n_skipped", "n_variants", "method")
    return {name: (estimate or {}).get(name) for name in names}
