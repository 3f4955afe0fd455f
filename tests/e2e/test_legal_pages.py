"""Legal pages in a real browser: the summary to publish is one sheet, and what somebody types is printed."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import AXE

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests/golden/files"
PAGES = (
    "compliance-ll144-summary.html",
    "compliance-ll144.html",
    "compliance-eu-ai-act.html",
    "compliance-co-admt.html",
)
A4 = (595, 842)  # points


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


def printed(tab: Any, target: Path) -> tuple[Any, str]:
    """The sheets, and their text without ligatures."""
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed (extra test)")
    tab.emulate_media(media="print")
    tab.pdf(path=target, prefer_css_page_size=True)
    sheets = pypdf.PdfReader(target).pages
    return sheets, " ".join(unicodedata.normalize("NFKC", " ".join(s.extract_text() for s in sheets)).split())


def test_the_summary_is_one_sheet_and_holds_what_is_typed(tab: Any, tmp_path: Path) -> None:
    tab.goto((FILES / PAGES[0]).as_uri())
    tab.get_by_label("Distribution date").fill("2026-03-01, as in the register of tools")
    (sheet,), text = printed(tab, tmp_path / "page.pdf")
    assert (round(float(sheet.mediabox.width)), round(float(sheet.mediabox.height))) == A4
    assert "2026-03-01, as in the register of tools" in text
    for told in ("1,390", "0.979", "Two or More Races / Female", "250 people", "historical data"):
        assert told in text


def test_fields_of_a_page_are_printed(tab: Any, tmp_path: Path) -> None:
    tab.goto((FILES / "compliance-eu-ai-act.html").as_uri())
    long = "Sorting reviews of films by their tone, so that editors read the angry ones first. " * 6
    tab.get_by_label("Purpose, and the decision it serves").fill(long)
    tab.get_by_label("Owner, line 1").fill("B. Person")
    _, text = printed(tab, tmp_path / "page.pdf")
    assert text.count("Sorting reviews of films by their tone") == 6
    assert "B. Person" in text
    assert "to be filled in" in text


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut_off_and_every_field_has_a_name(tab: Any, name: str, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto((FILES / name).as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert (
        tab.evaluate("[...document.querySelectorAll('textarea')].filter(e => !e.labels.length && !e.ariaLabel).length")
        == 0
    )
    if not AXE.is_file():
        pytest.skip(f"axe-core is not installed ({AXE})")
    tab.evaluate(AXE.read_text(encoding="utf-8"))
    found = tab.evaluate(
        "axe.run(document, {runOnly: {type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']}})"
    )
    assert [(v["id"], [n["html"] for n in v["nodes"][:3]]) for v in found["violations"]] == []
