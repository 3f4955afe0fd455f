"""Compliance reports of a made-up run, and reports of the selection example of Local Law 144, byte for byte.

After a wanted change: ``UPDATE_GOLDEN=1 pytest tests/golden``, then read the diff.
"""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import specimen as SPECIMEN

from auditor.contrib.ll144 import applicants, categories, draft
from auditor.core.protocols import RENDERERS
from auditor.core.record import read
from auditor.report import html, outcome_report, terminal
from auditor.report.exchange import JsonReport
from auditor.report.terminal import Page

FROZEN = {
    "file": "plan.toml", "sha256": "f0" * 32, "frozen_at": "2026-01-01T08:00:00+00:00", "frozen_by": "A. Person",
    "reason": "two points were called small in the risk file",
    "deviations": [{"what": "setting: limit", "planned": None, "actual": 312}],
}  # fmt: skip


def full() -> dict[str, Any]:
    return {**SPECIMEN.record(), "frozen": FROZEN}


def rows() -> dict[str, Any]:
    """A made-up tabular search."""
    estimate = SPECIMEN.estimate(0.104, 0.081, 0.131, 2000)
    score = {"name": "causal", "columns": ["sex"], "population": "domain (uniform)", "estimate": estimate, "detail": {}}
    finding = SPECIMEN.findings()[0] | {
        "code": "tabular-causal", "model": "python:m:f", "attributes": ["sex"], "verdict": "bounded",
        "rate": estimate, "text": "causal score of sex, domain (uniform)", "exemplars": [],
    }  # fmt: skip
    pair = {
        "changed": ["sex"], "row": {"sex": "female", "age": "30"}, "other": {"sex": "male", "age": "30"},
        "label": "bad", "other_label": "good",
    }  # fmt: skip
    section = {
        "method": "themis", "mode": "score", "sampling": "iid", "options": {}, "counts": {}, "details": {},
        "schema": {
            "name": "credit", "protected": ["sex"], "rows_in_domain": "120", "cases_in_domain": "60",
            "sha256": "ab" * 32,
        },
        "scores": [score], "minimal_sets": [],
        "lattice": [{"columns": ["sex"], "rows": 2000, "changes": 208, "minimal": 208}],
        "pairs": [pair], "notes": ["a note"],
    }  # fmt: skip
    section["counts"] = {"evaluations": 4000, "seconds": 0.5, "discriminatory": 208, "generated": 2000}
    return {
        "id": "20260102-rows", "format_version": 2, "tool_version": "0.1.0", "status": "complete",
        "status_reason": "", "spec": {"kind": "tabular", "model": "python:m:f", "delta": 0.2},
        "provenance": {"started": "2026-01-02T09:00:00Z", "ended": "2026-01-02T09:00:01Z", "python": "3.11.9"},
        "counts": section["counts"], "estimates": [], "controls": {}, "findings": [finding], "diagnoses": [],
        "models": {"python:m:f": {"fingerprint": "f1", "counts": {"calls": 4000}}}, "tabular": section,
    }  # fmt: skip


COUNTS = SPECIMEN.FILES / "ll144-counts.csv"


def people_record() -> dict[str, Any]:
    """The rule's printed example, with one category left out."""
    cells, mode, source = applicants.read_counts(COUNTS, categories.load())
    settings = draft.Settings(
        data_kind="historical", source="Printed example of 6 RCNY 5-301(b)", audit_date=datetime.date(2026, 10, 1),
        excluded={"Native American or Alaska Native / Female": "17 people"},
    )  # fmt: skip
    found = draft.from_counts(cells, source, settings, mode=mode)
    found["tool"]["version"] = "0"
    return dict(rounded(found))


def rounded(value: Any) -> Any:
    """Numerical libraries differ in the last digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def text(width: int, encoding: str) -> str:
    page = Page(width=width, encoding=encoding, color=False)
    return terminal.write(page, outcome_report.build(read(people_record())))


RESPONSIBLE = {
    "source": "responsible.toml",
    "fields": {"organisation": "Example Ltd", "purpose": "Sorting reviews", "affected": "Writers of reviews"},
    "signature": {"name": "A. Person", "date": "2026-01-05", "signed": "on paper"},
    "measures": [{"finding": "F001", "measure": "The prompt names no first names", "owner": "B. Person"}],
    "pages": {"ll144": {"auditor": "C. Person, Audits Ltd", "tool": "Tool 3"}},
}


def made(name: str, *what: Any) -> str:
    return str(RENDERERS.create(name).render(read(what[0]), *what[1:]))


CASES = {
    "compliance-eu-ai-act.html": lambda: made("eu-ai-act", full(), SPECIMEN.evidence()),
    "compliance-nist-ai-rmf.html": lambda: made("nist-ai-rmf", *SPECIMEN.failing()),
    "compliance-ai-verify.html": lambda: made("ai-verify", SPECIMEN.quiet(), SPECIMEN.evidence()),
    "compliance-rows.html": lambda: made("eu-ai-act", rows(), None),
    "compliance-ll144.html": lambda: made("ll144", people_record(), None),
    "compliance-ll144-summary.html": lambda: made(
        "ll144-summary", people_record() | {"responsible": RESPONSIBLE}, None
    ),
    "compliance-us-six-factors.md": lambda: made(
        "us-six-factors-md", full() | {"responsible": RESPONSIBLE}, SPECIMEN.evidence()
    ),
    "compliance-nj-disparate-impact.json": lambda: made("nj-disparate-impact-json", full(), None),
    "compliance-co-admt.html": lambda: made("co-admt", full() | {"responsible": RESPONSIBLE}, None),
    "compliance-iso-42005.md": lambda: made("iso-42005-md", rows(), None),
    "ll144.txt": lambda: text(110, "utf-8"),
    "ll144-ascii.txt": lambda: text(80, "ascii"),
    "ll144.html": lambda: html.write(outcome_report.build(read(people_record())), read(people_record())),
    "ll144.json": lambda: JsonReport().render(read(people_record())),
    "compliance-iso-12791.md": lambda: made("iso-12791-md", SPECIMEN.quiet(), SPECIMEN.evidence()),
}


@pytest.mark.parametrize("name", CASES)
def test_report(name: str) -> None:
    SPECIMEN.require(CASES[name](), SPECIMEN.FILES / name)
