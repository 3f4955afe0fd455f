"""Exchange formats of a made-up run, byte for byte.

After a wanted change: ``UPDATE_GOLDEN=1 pytest tests/golden``, then read the diff.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
import run_schema
import specimen as SPECIMEN
from judged import side

from auditor.core import waivers
from auditor.core.record import read
from auditor.core.registry import RENDERERS
from auditor.core.types import Verdict
from auditor.core.waivers import Waiver
from auditor.measure import comparison
from auditor.report import html, markdown, side_by_side, terminal
from auditor.report.exchange import workflow_commands
from auditor.report.page import Page

TODAY = datetime.date(2026, 11, 20)


def waiver(finding: str, **more: Any) -> Waiver:
    values = {"reason": "Known; ticket 812.", "owner": "A. Person", "expires": datetime.date(2027, 3, 31)}
    return Waiver(finding=finding, **{**values, **more})


WAIVED = waivers.apply(
    read(SPECIMEN.record()),
    [
        waiver("rate/reviews/bare/race"),
        waiver("*/gender+race", expires=datetime.date(2026, 1, 31)),
        waiver("rate/other/*"),
    ],
    TODAY,
)
EVIDENCE = SPECIMEN.evidence()


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


def rendered(name: str, **options: Any) -> Any:
    return RENDERERS.create(name, **options).render(WAIVED, EVIDENCE)


def compared() -> comparison.Comparison:
    import dataclasses

    changed = [dataclasses.replace(v, outcome="pass", hidden=None) for v in verdicts()]
    record = SPECIMEN.record()
    later = {
        **record,
        "id": "20261121-101500-later0",
        "spec": {**record["spec"], "order": 3, "data": "<b>new</b>|x"},
        "findings": [f for f in record["findings"] if f["id"] != "H001"],
    }
    return comparison.compare(side(verdicts(), record), side(changed, later))


CASES = {
    "exchange.md": lambda: rendered("markdown"),
    "exchange.csv": lambda: rendered("csv"),
    "exchange-junit.xml": lambda: rendered("junit"),
    "exchange.sarif": lambda: rendered("sarif"),
    "exchange.json": lambda: rendered("json"),
    "exchange-github.md": lambda: rendered("github"),
    "exchange-github.txt": lambda: "\n".join(workflow_commands(WAIVED)) + "\n",
    "compare.txt": lambda: terminal.write(
        Page(width=100, encoding="utf-8", color=False), side_by_side.runs(compared())
    ),
    "compare.md": lambda: markdown.write(side_by_side.runs(compared())),
    "compare.html": lambda: html.write(side_by_side.runs(compared())),
}


@pytest.mark.parametrize("name", CASES)
def test_format(name: str) -> None:
    SPECIMEN.require(CASES[name](), SPECIMEN.FILES / name)


def test_published_schema_is_the_one_of_the_types() -> None:
    root = Path(__file__).parents[2]
    SPECIMEN.require(run_schema.schema_text(), root / "docs" / "reference" / "schema" / "run.schema.json")
