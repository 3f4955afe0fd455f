"""A hidden finding is about one text, and reports say so: "shown for its text" beside "shown for none" of the rates."""

from __future__ import annotations

import re

import pytest
import specimen as SPECIMEN

from auditor.core.record import read
from auditor.core.registry import RENDERERS
from auditor.report import claimed, words

RECORD, EVIDENCE = SPECIMEN.record(), SPECIMEN.evidence()
HIDDEN = [f for f in RECORD["findings"] if f["kind"] == "hidden"]


def plain(text: str) -> str:
    page = re.sub(r"<[^>]+>", " ", text) if text.startswith("<!doctype") else text
    return " ".join(page.replace("\u00a0", " ").split())


@pytest.mark.parametrize("form", ["terminal", "html", "markdown"])
def test_each_report_says_what_shown_means_for_a_hidden_finding(form: str) -> None:
    told = plain(
        RENDERERS.create(form, **({"full": True} if form == "terminal" else {})).render(read(RECORD), EVIDENCE)
    )
    assert words.text("hidden_finding") in told
    assert sum(f["verdict"] == "shown" for f in HIDDEN) <= told.count("shown for its text")


def test_the_count_of_findings_tells_single_texts_apart() -> None:
    n = sum(f["verdict"] == "shown" for f in HIDDEN)
    assert n
    assert f"({n} of the shown about one text, not about a rate" in claimed.summary(read(RECORD))
    claims = RECORD | {"findings": [f for f in RECORD["findings"] if f["kind"] == "claim"]}
    assert "about one text" not in claimed.summary(read(claims))
