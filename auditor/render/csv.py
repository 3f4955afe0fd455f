"""Findings and estimates as one CSV table that no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from typing import Any

from auditor.render import exchange, words

COLUMNS = (
    "row", "id", "key", "name", "verdict", "waived", "model", "format", "attributes", "directions", "kind",
    "value", "low", "high", "level", "n", "n_skipped", "n_variants", "method", "p_value", "p_adjusted",
    "exemplars", "text", "notes",
)  # fmt: skip
_ACTING = "=+\\-@\uff1d\uff0b\uff0d\uff20"
# A semicolon parts cells where the list separator is one.
_FORMULA = re.compile(rf"(^\s*|[;,|]\s*)(?=[{_ACTING}])")


class CsvReport:
    """One row for each finding (``row`` = finding), then one for each estimate; UTF-8 with a header.

    Shares are numbers in [0, 1]; what is missing is empty. A text that begins like a formula (``=``, ``+``,
    ``-``, ``@`` and their wide forms, also after white space or a separator) gets an apostrophe in front, and
    acting characters are made visible.
    """

    name = "csv.v1"
    suffix = ".csv"

    def render(self, record: Mapping[str, Any], evidence: Any = None) -> str:
        """Write the table."""
        file = io.StringIO()
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
        writer.writeheader()
        for row in exchange.rows(record):
            f = row.finding
            values = {
                "row": "finding",
                "id": row.id,
                "key": row.key,
                "name": row.code,
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
            writer.writerow({name: safe(value) for name, value in values.items()})
        for e in exchange.estimates(record):
            figures = e["estimate"]
            values = {
                "row": "estimate",
                "name": e["name"],
                "model": e.get("model"),
                "format": e.get("format"),
                **_place(e),
                "kind": e.get("kind"),
                **_figures(figures),
                "text": e.get("population"),
                "notes": figures.get("note") or figures.get("reason"),
            }
            writer.writerow({name: safe(value) for name, value in values.items()})
        return file.getvalue()


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


def safe(value: object) -> object:
    """A cell: numbers as they are, missing as nothing, text so that it stays text.

    Examples
    --------
    >>> safe("=1+1"), safe(-0.5), safe(None), safe("a;=b")
    ("'=1+1", -0.5, '', "a;'=b")
    """
    if value is None or isinstance(value, bool | int | float):
        return "" if value is None else value
    return _FORMULA.sub(r"\1'", words.visible(str(value), newlines=False))
