"""Reports and exchange formats of a made-up run, byte for byte.

After a wanted change: ``UPDATE_GOLDEN=1 pytest tests/golden``, then read the diff.
"""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path
from typing import Any

import pytest
import run_schema
import specimen as SPECIMEN
from judged import side

from auditor.core import waivers
from auditor.core.protocols import RENDERERS
from auditor.core.record import read
from auditor.core.types import Verdict
from auditor.core.waivers import Waiver
from auditor.measure import comparison
from auditor.report import html, markdown, side_by_side, terminal
from auditor.report.exchange import workflow_commands
from auditor.report.html import HtmlReport
from auditor.report.markdown import MarkdownReport
from auditor.report.terminal import Page, TerminalReport, render_finding

FULL = (read(SPECIMEN.record()), SPECIMEN.evidence())
FAILING = (read(SPECIMEN.failing()[0]), SPECIMEN.failing()[1])
CLAIMS = (read(SPECIMEN.claimed()), SPECIMEN.evidence())
WIDE = Page(width=100, encoding="utf-8", color=False)
TODAY = datetime.date(2026, 11, 20)


def waiver(finding: str, **more: Any) -> Waiver:
    values = {"reason": "Known; ticket 812.", "owner": "A. Person", "expires": datetime.date(2027, 3, 31)}
    return Waiver(finding=finding, **{**values, **more})


OLD = waiver("*/gender+race", expires=datetime.date(2026, 1, 31))
WAIVED = waivers.apply(FULL[0], [waiver("rate/reviews/bare/race"), OLD, waiver("rate/other/*")], TODAY)


def verdicts() -> list[Verdict]:
    out = []
    for case in SPECIMEN.cases():
        for variant in case.variants:
            changed = variant.order > 1
            out.append(
                Verdict(
                    case_id=case.id, variant_id=variant.id, order=variant.order, attributes=variant.attributes,
                    outcome="violation" if changed else "pass", hidden=True if changed else None,
                    original_output="positive", variant_output="negative" if changed else "positive",
                    distance=float(changed), model="reviews", format="bare",
                )
            )  # fmt: skip
    return out


def compared() -> comparison.Comparison:
    changed = [dataclasses.replace(v, outcome="pass", hidden=None) for v in verdicts()]
    record = SPECIMEN.record()
    later = record | {
        "id": "20261121-101500-later0", "spec": record["spec"] | {"order": 3, "data": "<b>new</b>|x"},
        "findings": [f for f in record["findings"] if f["id"] != "H001"],
    }  # fmt: skip
    return comparison.compare(side(verdicts(), record), side(changed, later))


CASES = {
    "full.txt": lambda: TerminalReport(width=100, full=True).render(*FULL),
    "full-ascii.txt": lambda: TerminalReport(width=72, encoding="ascii", full=True).render(*FULL),
    "full.html": lambda: HtmlReport().render(*FULL),
    "partial.txt": lambda: TerminalReport(width=100, full=True).render(read(SPECIMEN.partial()), FULL[1]),
    "quiet.txt": lambda: TerminalReport(width=100).render(read(SPECIMEN.quiet()), FULL[1]),
    "failing.txt": lambda: TerminalReport(width=100, full=True).render(*FAILING),
    "failing.html": lambda: HtmlReport().render(*FAILING),
    "claims.txt": lambda: TerminalReport(width=80).render(*CLAIMS),
    "claims-full.txt": lambda: TerminalReport(width=100, full=True).render(*CLAIMS),
    "claims.html": lambda: HtmlReport().render(*CLAIMS),
    "claims.md": lambda: MarkdownReport().render(*CLAIMS),
    "finding.txt": lambda: render_finding(FULL[0], FULL[1], "H002", width=100),
    "exchange.md": lambda: RENDERERS.create("markdown").render(WAIVED, FULL[1]),
    "exchange.csv": lambda: RENDERERS.create("csv").render(WAIVED, FULL[1]),
    "exchange-junit.xml": lambda: RENDERERS.create("junit").render(WAIVED, FULL[1]),
    "exchange.sarif": lambda: RENDERERS.create("sarif").render(WAIVED, FULL[1]),
    "exchange.json": lambda: RENDERERS.create("json").render(WAIVED, FULL[1]),
    "exchange-github.md": lambda: RENDERERS.create("github").render(WAIVED, FULL[1]),
    "exchange-github.txt": lambda: "\n".join(workflow_commands(WAIVED)) + "\n",
    "compare.txt": lambda: terminal.write(WIDE, side_by_side.runs(compared())),
    "compare.md": lambda: markdown.write(side_by_side.runs(compared())),
    "compare.html": lambda: html.write(side_by_side.runs(compared())),
}


@pytest.mark.parametrize("name", CASES)
def test_report(name: str) -> None:
    SPECIMEN.require(CASES[name](), SPECIMEN.FILES / name)


def test_published_schema_is_the_one_of_the_types() -> None:
    root = Path(__file__).parents[2]
    SPECIMEN.require(run_schema.schema_text(), root / "docs" / "reference" / "schema" / "run.schema.json")
