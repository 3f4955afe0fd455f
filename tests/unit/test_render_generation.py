"""The section on generated cases: figures, and nothing where nothing was generated."""

from __future__ import annotations

from typing import Any

import pytest

from auditor import audit
from auditor.core.record import read
from auditor.report import also_measured
from auditor.report.document import Table
from auditor.report.html import HtmlReport
from auditor.report.terminal import TerminalReport

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def result() -> Any:
    return audit(
        "sentiment",
        model=lambda text: "negative" if "aunt" in text else "positive",
        suite="grammar",
        suite_options=["generation=rand"],
        limit=40,
        order=1,
        anyway=True,
        out=None,
    )


def pages(result: Any, record: dict[str, Any]) -> tuple[str, str]:
    return (
        HtmlReport().render(read(record), result.evidence),
        TerminalReport(width=120, full=True).render(read(record), result.evidence),
    )


def test_both_reports_show_phases_coverage_and_bound(result: Any) -> None:
    bound = {
        "population": 900,
        "drawn": 40,
        "found": 3,
        "level": 0.95,
        "share_at_most": 0.18,
        "method": "hypergeometric",
    }
    told = result.record["generation"] | {"generation": "uniform", "bound": {"m": bound}}  # a run of version 0.2
    record = result.record | {"generation": told}
    (section,) = also_measured.generated(read(record), {})
    assert section is not None
    notes, (made, reached) = section.blocks[:-2], section.blocks[-2:]
    assert isinstance(made, Table)
    assert isinstance(reached, Table)
    [phase] = made.lines
    assert phase[1:4] == ("drawn uniformly from the sentences", "40", str(told["phases"][0]["violating_cases"]))
    covered = told["coverage"]["rand"]
    assert str(reached.lines[0][1]).startswith(f"{covered['terminals_covered']} of ")
    assert f"{bound['population']:,} sentences" in str(notes[1])
    for page in pages(result, record):
        assert "Generated cases" in page
        assert "drawn without replacement" in " ".join(page.split()).replace("\u00a0", " ")


def test_everything_is_escaped(result: Any) -> None:
    told = result.record["generation"]
    rows = [row | {"model": EVIL, "sampling": EVIL, "phase": EVIL} for row in told["phases"]]
    hostile = told | {
        "grammar": EVIL,
        "phases": rows,
        "coverage": {EVIL: told["coverage"]["rand"]},
        "bound": {EVIL: {"population": 9, "drawn": 4, "found": 3, "level": 0.95, "share_at_most": 0.5}},
    }
    score = {"model": EVIL, "format": "bare", "epsilon": 0.1, "cases": 0, "violating_cases": 0}
    probability = {"label": EVIL, "reference": "equal", "rows": [score]}
    html, _ = pages(result, result.record | {"generation": hostile, "probability": probability})
    assert EVIL not in html
    assert html.count("&lt;script&gt;") >= 6
