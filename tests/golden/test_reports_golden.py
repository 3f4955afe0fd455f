"""Reports of a made-up run, byte for byte.

After a wanted change: ``UPDATE_GOLDEN=1 pytest tests/golden``, then read the diff.
"""

from __future__ import annotations

import pytest
import specimen as SPECIMEN

from auditor.core.record import read
from auditor.report.finding import render_finding
from auditor.report.html import HtmlReport
from auditor.report.markdown import MarkdownReport
from auditor.report.terminal import TerminalReport

FULL = (read(SPECIMEN.record()), SPECIMEN.evidence())
FAILING = (read(SPECIMEN.failing()[0]), SPECIMEN.failing()[1])
CLAIMS = (read(SPECIMEN.claimed()), SPECIMEN.evidence())
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
}


@pytest.mark.parametrize("name", CASES)
def test_report(name: str) -> None:
    SPECIMEN.require(CASES[name](), SPECIMEN.FILES / name)
