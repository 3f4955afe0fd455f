"""Reports of the rule's selection example, byte for byte.

After a wanted change: ``UPDATE_GOLDEN=1 pytest tests/golden``, then read the diff.
"""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import specimen as SPECIMEN

from auditor.contrib.ll144 import applicants, categories, draft
from auditor.core.record import read
from auditor.report import html, outcome_report, terminal
from auditor.report.exchange import JsonReport
from auditor.report.page import Page

COUNTS = SPECIMEN.FILES / "ll144-counts.csv"


def made() -> dict[str, Any]:
    """The rule's printed example, with one category left out."""
    cells, mode, source = applicants.read_counts(COUNTS, categories.load())
    settings = draft.Settings(
        data_kind="historical",
        source="Printed example of 6 RCNY 5-301(b)",
        excluded={"Native American or Alaska Native / Female": "17 people"},
        audit_date=datetime.date(2026, 10, 1),
    )
    found = draft.from_counts(cells, source, settings, mode=mode)
    found["tool"]["version"] = "0"
    return rounded(found)


def rounded(value: Any) -> Any:
    """Numerical libraries differ in the last digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def text(width: int, encoding: str) -> str:
    return terminal.write(Page(width=width, encoding=encoding, color=False), outcome_report.build(read(made())))


CASES = {
    "ll144.txt": lambda: text(110, "utf-8"),
    "ll144-ascii.txt": lambda: text(80, "ascii"),
    "ll144.html": lambda: html.write(outcome_report.build(read(made())), read(made())),
    "ll144.json": lambda: JsonReport().render(read(made())),
}


@pytest.mark.parametrize("name", CASES)
def test_report(name: str) -> None:
    SPECIMEN.require(CASES[name](), SPECIMEN.FILES / name)
