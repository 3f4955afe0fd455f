"""What a report for a terminal says about waivers."""

from __future__ import annotations

from auditor.core import waivers
from auditor.core.record import RunRecord
from auditor.report.page import Page


def of_finding(page: Page, record: RunRecord, finding: str) -> None:
    """The waiver of one finding, where it has one."""
    waiver = waivers.of(record).get(finding)
    if waiver is not None:
        page.paragraph(
            f"Waived until {waiver.expires} by {waiver.owner}; reason: {waiver.reason}", indent="  "
        )
