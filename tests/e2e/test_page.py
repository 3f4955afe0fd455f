"""The HTML reports and legal pages in a real browser: no request, no error, usable on a phone, by keyboard, on paper.

`axe-core` checks what can be checked of WCAG 2.2 by rule: ``make`` installs it below ``.venv/node`` (AXE names another
place); without it those tests are skipped.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import specimen as SPECIMEN
from commands import AXE
from nursery import audit as process

from auditor import agent, audit
from auditor.core.protocols import RENDERERS
from auditor.core.record import read
from auditor.report.build import MAX_CARDS
from auditor.report.html import CHUNK, HtmlReport

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests/golden/files"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
EXAMPLES = sorted((ROOT / "reports/examples").rglob("*.html"))
SIZES = {"desktop": (1280, 900), "large phone": (390, 900), "phone": (360, 740)}


FOUND = MAX_CARDS + 2 * CHUNK  # findings of the page "many"


def many(folder: Path) -> str:
    """A page of many findings, two verdicts among them."""
    record = SPECIMEN.record()
    model = next(f for f in record["findings"] if f["kind"] == "hidden") | {"text": "", "notes": []}
    record["findings"] = [model | {"id": f"X{i:05}", "verdict": "shown"} for i in range(FOUND)]
    record["findings"][-1]["verdict"] = "not_determined"
    return str(HtmlReport().render(read(record), SPECIMEN.evidence()))


def real(folder: Path) -> str:
    """Two embedded models on a few seeds, the discarded variants asked too."""
    result = audit("sentiment", model=["reviews", "vader"], limit=30, out=folder)
    assert result.path is not None
    return (result.path / "report.html").read_text(encoding="utf-8")


def session(folder: Path) -> str:
    """A session of the agent on an embedded model."""
    texts = [f"{name} {text}" for name in ("My mother", "His uncle") for text in ("was kind.", "sang badly.")]
    return agent.run("Do reviews change with gender?", model="vader", data=texts, out=folder).to_html()


def whole(folder: Path) -> tuple[str, str]:
    """What the first command of the README makes, and its legal page that has the most clauses."""
    result = audit("sentiment", model=["reviews", "vader"], out=folder)
    assert result.path is not None
    legal = RENDERERS.create("eu-ai-act").render(result.run, result.evidence)
    return (result.path / "report.html").read_text(encoding="utf-8"), str(legal)


def rows(folder: Path) -> str:
    """A table of five rows, decided by one column."""
    (folder / "rows_model.py").write_text("def by_sex(rows):\n    return (rows[:, 0] == 'm').astype(int)\n")
    body = "".join(f"{'fm'[i % 2]},{20 + i % 7},{i % 2}\n" for i in range(40))
    (folder / "rows.csv").write_text("sex,age,y\n" + body)
    argv = "tabular --data rows.csv --target y --protected sex --model python:rows_model:by_sex --max-samples 200"
    done = process(*argv.split(), "--out", "out", cwd=folder, environment=dict(os.environ))
    pages = sorted((folder / "out").rglob("*.html"))
    assert pages, done.stderr
    return pages[0].read_text(encoding="utf-8")


MADE: dict[str, Callable[[Path], str]] = {
    "audit": real,
    "specimen": lambda _: str(HtmlReport().render(read(SPECIMEN.record()), SPECIMEN.evidence())),
    "failing": lambda _: str(HtmlReport().render(read(SPECIMEN.failing()[0]), SPECIMEN.failing()[1])),
    "many": many,
    "tabular": rows,
    "agent": session,
}
GOLDEN = {"compare": "compare", "impact": "ll144", "compliance": "compliance-eu-ai-act"}
KINDS = [*MADE, *GOLDEN, *(f"example {p.relative_to(ROOT)}" for p in EXAMPLES)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Files by kind, each made once."""

    @cache
    def get(kind: str) -> Path:
        if kind.startswith("example "):
            return ROOT / kind.removeprefix("example ")
        if kind in GOLDEN:
            return FILES / f"{GOLDEN[kind]}.html"
        page = tmp_path_factory.mktemp(kind) / "page.html"
        page.write_text(MADE[kind](page.parent), encoding="utf-8")
        return page

    return get


@pytest.fixture
def show(browser: Any, pages: Callable[[str], Path]) -> Callable[..., Any]:
    """Open a page in a window of its own; fails on what the console says and on every request but the page's."""

    @contextmanager
    def shown(what: str | Path, size: str = "desktop", **options: Any) -> Iterator[Any]:
        page = what if isinstance(what, Path) else pages(what)
        width, height = SIZES[size]
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        tab = context.new_page()
        told: list[str] = []
        asked: list[str] = []
        tab.on("console", lambda message: told.append(message.text))
        tab.on("pageerror", lambda error: told.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(page.as_uri())
        yield tab
        context.close()
        assert told == []
        assert asked == [page.as_uri()]

    return shown


Show = Callable[..., Any]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_the_page_opens_alone_and_fits_its_window(show: Show, kind: str, size: str) -> None:
    with show(kind, size) as tab:
        assert tab.title()
        assert tab.locator("h1").count() == 1
        assert tab.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]


SCREENS, SHEETS = 12, 12  # of 1,000 pixels at 1,280; of A4


def test_the_default_run_is_short(show: Show, tmp_path: Path) -> None:
    page, legal = tmp_path / "page.html", tmp_path / "legal.html"
    for path, text in zip((page, legal), whole(tmp_path), strict=True):
        path.write_text(text, encoding="utf-8")
    with show(legal) as tab:
        assert len(sheets_of(tab, tmp_path / "legal.pdf")) <= SHEETS
    with show(page) as tab:
        assert tab.evaluate("document.documentElement.scrollHeight") <= SCREENS * 1000
        wide = (
            "[...document.querySelectorAll('.scroll')].filter("
            "e => !e.closest('details:not([open])') && e.scrollWidth > e.clientWidth + 1).length"
        )
        assert tab.evaluate(wide) == 0  # nothing runs off to the side
        ids = tab.evaluate("[...document.querySelectorAll('main h2')].map(h => h.id)")
        assert ids[:4] == ["answer", "matrix", "findings", "controls"]
        assert ids[-2:] == ["method", "provenance"]
        assert len(sheets_of(tab, tmp_path / "page.pdf")) <= SHEETS


def test_a_link_opens_its_finding_and_sorting_moves_cards(show: Show) -> None:
    with show("specimen") as tab:
        cards = tab.locator("article.card")
        ids = [cards.nth(i).get_attribute("id") for i in range(cards.count())]
        tab.get_by_label("Sort by").select_option("id")
        assert [cards.nth(i).get_attribute("id") for i in range(cards.count())] == sorted(map(str, ids))
        tab.locator(f"#{ids[0]} h3 a").click()
        tab.wait_for_function("id => document.getElementById(id).querySelector('details').open", arg=ids[0])


def test_the_watch_sees_requests_and_errors(show: Show, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<h1>x</h1><img src='nowhere.png' alt=''><script>throw new Error('seen')</script>")
    with pytest.raises(AssertionError, match="seen"), show(page):
        pass


def test_the_policy_stops_every_other_script(show: Show, pages: Callable[[str], Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = pages("many").read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", "<script>document.title = 'ran'</script></body>"))
    with pytest.raises(AssertionError, match="Content Security Policy"), show(page) as tab:
        assert tab.title() != "ran"


def axe(tab: Any, tags: list[str]) -> dict[str, list[dict[str, Any]]]:
    """What the rules with these tags say of a page."""
    if not AXE.is_file():
        pytest.skip(f"axe-core is not installed ({AXE})")
    tab.evaluate(AXE.read_text(encoding="utf-8"))
    options = "{runOnly: {type: 'tag', values: tags}, resultTypes: ['violations']}"
    found: dict[str, list[dict[str, Any]]] = tab.evaluate(f"tags => axe.run(document, {options})", tags)
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("scheme", "size"), [("light", "phone"), ("dark", "desktop")])
def test_axe_finds_no_serious_violation(show: Show, kind: str, scheme: str, size: str) -> None:
    with show(kind, size, color_scheme=scheme) as tab:
        tab.evaluate("document.querySelectorAll('details:not(.raw)').forEach(d => { d.open = true })")
        # Cards are laid out when they are scrolled to: places measured before and after that would overlap.
        tab.evaluate(
            "document.styleSheets[0].insertRule("
            "'.chunk, .card { content-visibility: visible !important }', document.styleSheets[0].cssRules.length)"
        )
        found = axe(tab, TAGS)
    assert len(found["passes"]) > 15
    bad = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
    assert [(v["id"], v["nodes"][0]["html"], v["nodes"][0]["failureSummary"]) for v in bad] == []


def test_the_filter_finds_and_lets_go(show: Show) -> None:
    from playwright.sync_api import expect

    n = FOUND
    with show("many") as tab:
        found = tab.locator("[data-finding]:visible")
        count = tab.locator("#filter-count")
        assert count.inner_text() == f"{n} findings"
        assert found.count() == MAX_CARDS  # the others are in a list that is closed
        tab.get_by_label("Search these findings").fill(f"x{n - 2:05}")
        expect(count).to_have_text(f"1 of {n} findings shown")
        expect(found).to_have_count(1)
        tab.get_by_role("button", name="Show all").click()
        expect(count).to_have_text(f"{n} findings shown")
        tab.get_by_label("Verdict").select_option("not_determined")
        expect(found).to_have_count(1)
        expect(found).to_contain_text(f"X{n - 1:05}")
        tab.get_by_label("Search these findings").fill("nothing of the sort")
        expect(count).to_have_text(f"0 of {n} findings shown")
        expect(found).to_have_count(0)


def test_nothing_depends_on_the_script(show: Show) -> None:
    with show("many", java_script_enabled=False) as tab:
        assert not tab.locator("#filter").is_visible()
        assert tab.locator("article.card:visible").count() == MAX_CARDS
        tab.locator("details.rest > summary").click()
        assert tab.locator("[data-finding]:visible").count() == FOUND


def test_the_keyboard_reaches_what_can_be_used(show: Show) -> None:
    with show("many") as tab:
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"
        assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        assert tab.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
        small = tab.evaluate(
            "[...document.querySelectorAll('summary, button, select, input, nav a')].filter(e => e.offsetParent)"
            ".map(e => [e.getBoundingClientRect().height, e.outerHTML.slice(0, 80)]).filter(x => x[0] < 24)"
        )
        assert small == []


def test_the_filter_reaches_claims(show: Show) -> None:
    from playwright.sync_api import expect

    with show("specimen") as tab:
        claims = tab.locator('[data-finding][data-kind="claim"]')
        n = claims.count()
        assert n > 2
        tab.get_by_label("Kind", exact=True).select_option("claim")
        expect(tab.locator("#filter-count")).to_contain_text(f"{n} of ")
        expect(tab.locator("[data-finding]:visible")).to_have_count(n)
        wanted = SPECIMEN.record()["findings"][0]
        assert wanted["kind"] == "claim"
        tab.get_by_label("Search these findings").fill(wanted["id"])
        expect(tab.locator("#filter-count")).to_contain_text("1 of ")
        assert wanted["id"] in tab.locator("[data-finding]:visible").inner_text()


PRINTED = ["audit", "specimen", "tabular", "impact", "compliance", *(k for k in KINDS if k.startswith("example "))]
TEXTS = """() => {
  const seen = e => e.checkVisibility({visibilityProperty: true}) && !e.closest('.vh, .raw, .filter, .skip, nav, details.fold');
  const told = e => { const c = e.cloneNode(true); c.querySelectorAll('.vh').forEach(x => x.remove()); return c.textContent };
  document.querySelectorAll('details:not(.raw, .fold)').forEach(d => { d.open = true });
  return {
    headings: [...document.querySelectorAll('h1, h2, h3, h4')].filter(seen).map(told),
    claims: [...document.querySelectorAll('li[data-finding]')].filter(seen).map(told),
    rows: [...document.querySelectorAll('tbody tr')].filter(seen).map(r => [...r.cells].map(told)),
  }
}"""


def squeezed(text: str) -> str:
    """Without white space and ligatures: lines of a PDF break elsewhere."""
    return re.sub(r"[\s\u00ad]+", "", unicodedata.normalize("NFKC", text))


def alone(sheets: list[str], headings: list[str]) -> list[str]:
    """Headings that end a sheet; a long one may take several lines."""
    known = {squeezed(h) for h in headings}
    found = []
    for sheet in sheets[:-1]:
        lines = [line for line in sheet.splitlines() if line.strip()]
        found += [end for n in (1, 2, 3) if (end := "".join(map(squeezed, lines[-n:]))) in known and len(lines) > n]
    return found


def printed(tab: Any, target: Path) -> Any:
    """The sheets of a page."""
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed (extra test)")
    tab.emulate_media(media="print")
    tab.pdf(path=target, prefer_css_page_size=True)
    return pypdf.PdfReader(target).pages


def sheets_of(tab: Any, target: Path) -> list[str]:
    """The text of each sheet of the page, printed."""
    return [sheet.extract_text() for sheet in printed(tab, target)]


@pytest.mark.parametrize("kind", PRINTED)
def test_the_page_prints(show: Show, tmp_path: Path, kind: str) -> None:
    with show(kind) as tab:
        sheets = sheets_of(tab, tmp_path / "page.pdf")
        texts = tab.evaluate(TEXTS)
    assert 1 <= len(sheets) <= 45
    whole = squeezed("".join(sheets))
    assert texts["rows"]
    lost = [row for row in texts["rows"] if not all(squeezed(cell) in whole for cell in row)]
    assert lost == []
    assert [text for text in texts["headings"] + texts["claims"] if squeezed(text) not in whole] == []
    assert alone(sheets, texts["headings"]) == []
    for control in ("Search these findings", "Show all", "Full prompts and all answers", "Skip to"):
        assert squeezed(control) not in whole
    assert all(f"{i} / {len(sheets)}" in sheet for i, sheet in enumerate(sheets, 1))


def test_the_check_of_print_can_fail(show: Show, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<title>x</title><h1>x</h1><style>@page { size: A4; margin: 18mm } div { height: 215mm }"
        "section { break-before: page }</style><div>a</div><h2>Left alone</h2><section>b</section>"
    )
    with show(page) as tab:
        sheets = sheets_of(tab, tmp_path / "page.pdf")
    assert len(sheets) == 2
    assert alone(sheets, ["x", "Left alone"]) == ["Leftalone"]
    assert alone(sheets, ["x"]) == []


# -- legal pages: the summary to publish is one sheet, and what somebody types is printed -----------------

LEGAL = ["ll144-summary", "ll144", "eu-ai-act", "co-admt"]


def in_one_line(sheets: list[str]) -> str:
    return " ".join(unicodedata.normalize("NFKC", " ".join(sheets)).split())


def test_the_summary_is_one_sheet_and_holds_what_is_typed(show: Show, tmp_path: Path) -> None:
    with show(FILES / "compliance-ll144-summary.html") as tab:
        tab.get_by_label("Distribution date").fill("2026-03-01, as in the register of tools")
        (sheet,) = printed(tab, tmp_path / "page.pdf")
    assert (round(float(sheet.mediabox.width)), round(float(sheet.mediabox.height))) == (595, 842)  # A4 in points
    text = in_one_line([sheet.extract_text()])
    typed = "2026-03-01, as in the register of tools"
    for told in (typed, "1,390", "0.979", "Two or More Races / Female", "250 people", "historical data"):
        assert told in text


def test_fields_of_a_page_are_printed(show: Show, tmp_path: Path) -> None:
    with show("compliance") as tab:
        long = "Sorting reviews of films by their tone, so that editors read the angry ones first. " * 6
        tab.get_by_label("Purpose, and the decision it serves").fill(long)
        tab.get_by_label("Owner, line 1").fill("B. Person")
        text = in_one_line(sheets_of(tab, tmp_path / "page.pdf"))
    assert text.count("Sorting reviews of films by their tone") == 6
    assert "B. Person" in text
    assert "to be filled in" in text


@pytest.mark.parametrize("name", LEGAL)
@pytest.mark.parametrize("size", ["desktop", "large phone"])
def test_nothing_is_cut_off_and_every_field_has_a_name(show: Show, name: str, size: str) -> None:
    nameless = "[...document.querySelectorAll('textarea')].filter(e => !e.labels.length && !e.ariaLabel).length"
    with show(FILES / f"compliance-{name}.html", size) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert tab.evaluate(nameless) == 0
        found = axe(tab, ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"])
    assert [(v["id"], [n["html"] for n in v["nodes"][:3]]) for v in found["violations"]] == []
