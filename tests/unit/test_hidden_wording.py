"""A hidden finding is about one text, and reports say so: "shown for its text" beside "shown for none" of the rates."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import specimen as SPECIMEN

from auditor.core.record import read
from auditor.core.registry import RENDERERS
from auditor.report import claimed, words
from auditor.report.finding import render_finding

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


def test_a_report_without_a_hidden_finding_needs_no_such_sentence() -> None:
    record = RECORD | {"findings": [f for f in RECORD["findings"] if f["kind"] != "hidden"]}
    for form in ("terminal", "html", "markdown"):
        assert "shown for its text" not in plain(
            RENDERERS.create(form, **({"full": True} if form == "terminal" else {})).render(read(record), EVIDENCE)
        )


def test_the_page_of_one_finding_says_it_too() -> None:
    shown = next(f["id"] for f in HIDDEN if f["verdict"] == "shown")
    assert "▲ shown for its text" in plain(render_finding(read(RECORD), EVIDENCE, shown, width=100))


def test_a_claim_and_what_is_not_shown_keep_their_word() -> None:
    told = words.finding_verdict
    found = read(RECORD).findings
    claim = next(f for f in found if f.kind == "claim" and f.verdict == "shown")
    hidden = next(f for f in found if f.kind == "hidden" and f.verdict == "shown")
    assert told(claim) == "▲ shown"
    assert told(replace(hidden, verdict="not_determined")) == "? not determined"
    assert told(hidden, symbol=False) == "shown for its text"


def test_the_count_of_findings_tells_single_texts_apart() -> None:
    n = sum(f["verdict"] == "shown" for f in HIDDEN)
    assert n
    assert f"({n} of the shown about one text, not about a rate" in claimed.summary(read(RECORD))
    claims = RECORD | {"findings": [f for f in RECORD["findings"] if f["kind"] == "claim"]}
    assert "about one text" not in claimed.summary(read(claims))
