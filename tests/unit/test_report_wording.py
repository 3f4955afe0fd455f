"""Sentences that no report prints any more: a busy engineer has to read each of them once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = [
    *sorted((ROOT / "auditor/report").rglob("*.py")),
    *sorted((ROOT / "auditor/report/templates").iterdir()),
    *sorted((ROOT / "auditor/measure").glob("*.py")),
    *sorted((ROOT / "tests/golden/files").iterdir()),
]
GONE = {
    "changed its label most clearly with": "name who",
    "a difference in the rate was shown for none": "No difference was shown in 12 comparisons",
    "declares itself deterministic": "not measured: the model is declared deterministic",
    "none (deterministic)": "not measured: the model is declared deterministic",
    "all seeds alike": "goes to the CSV",
    "The data support neither": "Too little data to show a difference or to rule one out",
    "smallest delta that can be bounded": "Cannot show less than 3.3 points with these texts",
    "needs more texts or words than": "too little data for a difference this small",
    "It may answer so whatever it is asked: that": "cannot be judged",
}


@pytest.mark.parametrize("sentence", GONE)
def test_no_report_says(sentence: str) -> None:
    spaced = re.compile(r"[\s\"']+".join(map(re.escape, sentence.split())))
    found = [p.name for p in PLACES if p.is_file() and spaced.search(p.read_text(encoding="utf-8"))]
    assert found == [], GONE[sentence]


VERDICTS = re.compile(r"\b(unbiased|bias-free|discrimination-free|is fair|are fair|passes the)\b", re.I)


def test_no_page_calls_a_model_fair() -> None:
    pages = [p for p in PLACES if p.parent.name == "files"]
    assert len(pages) > 20
    assert [p.name for p in pages if VERDICTS.search(p.read_text(encoding="utf-8"))] == []
