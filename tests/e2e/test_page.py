"""The HTML reports in a real browser: no request, no error, usable on a phone, by keyboard and on paper.

`axe-core` checks what can be checked of WCAG 2.2 by rule: ``make`` installs it below ``.venv/node`` (AXE names another
place); without it those tests are skipped.
"""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import specimen as SPECIMEN
from commands import AXE

from auditor import agent, audit
from auditor.core.record import read
from auditor.core.registry import RENDERERS
from auditor.report.build import MAX_CARDS
from auditor.report.html import CHUNK, HtmlReport

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).parents[2]
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
EXAMPLES = sorted((ROOT / "reports/examples").rglob("*.html"))
WIDTHS = {"desktop": (1280, 900), "phone": (360, 740)}


def many(n: int) -> str:
    """A page of ``n`` findings, two verdicts among them."""
    record = SPECIMEN.record()
    model = next(f for f in record["findings"] if f["kind"] == "hidden")
    verdicts = ("shown", "not_determined")
    record["findings"] = [
        model | {"id": f"X{i:05}", "verdict": verdicts[i == n - 1], "text": "", "notes": []} for i in range(n)
    ]
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


def impact() -> str:
    return (ROOT / "tests/golden/files/ll144.html").read_text(encoding="utf-8")


def pack() -> str:
    return (ROOT / "tests/golden/files/compliance-eu-ai-act.html").read_text(encoding="utf-8")


def rows(folder: Path) -> str:
    """A table of five rows, decided by one column."""
    (folder / "rows_model.py").write_text("def by_sex(rows):\n    return (rows[:, 0] == 'm').astype(int)\n")
    body = "".join(f"{'fm'[i % 2]},{20 + i % 7},{i % 2}\n" for i in range(40))
    (folder / "rows.csv").write_text("sex,age,y\n" + body)
    command = [
        str(Path(sys.executable).with_name("audit")), "tabular", "--data", "rows.csv", "--target", "y",
        "--protected", "sex", "--model", "python:rows_model:by_sex", "--max-samples", "200", "--out", "out",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    pages = sorted((folder / "out").rglob("*.html"))
    assert pages, done.stderr
    return pages[0].read_text(encoding="utf-8")


MADE: dict[str, Callable[[Path], str]] = {
    "audit": real,
    "specimen": lambda _: str(HtmlReport().render(read(SPECIMEN.record()), SPECIMEN.evidence())),
    "failing": lambda _: str(HtmlReport().render(read(SPECIMEN.failing()[0]), SPECIMEN.failing()[1])),
    "many": lambda _: many(MAX_CARDS + 2 * CHUNK),
    "tabular": rows,
    "agent": session,
    "compare": lambda _: (ROOT / "tests/golden/files/compare.html").read_text(encoding="utf-8"),
    "impact": lambda _: impact(),
    "compliance": lambda _: pack(),
}
KINDS = [*MADE, *(f"example {p.relative_to(ROOT)}" for p in EXAMPLES)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Files by kind, each made once."""
    folder = tmp_path_factory.mktemp("pages")
    made: dict[str, Path] = {}

    def get(kind: str) -> Path:
        if kind.startswith("example "):
            return ROOT / kind.removeprefix("example ")
        if kind not in made:
            work = folder / kind
            work.mkdir(exist_ok=True)
            (work / "page.html").write_text(MADE[kind](work), encoding="utf-8")
            made[kind] = work / "page.html"
        return made[kind]

    return get


@contextmanager
def shown(browser: Any, page: Path, size: str = "desktop", **options: Any) -> Iterator[Any]:
    """The page in a window of its own; fails on what the console says and on every request but the page's."""
    width, height = WIDTHS[size]
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", WIDTHS)
def test_the_page_opens_alone_and_fits_its_window(
    browser: Any, pages: Callable[[str], Path], kind: str, size: str
) -> None:
    with shown(browser, pages(kind), size) as tab:
        assert tab.title()
        assert tab.locator("h1").count() == 1
        assert tab.evaluate("document.documentElement.scrollWidth") <= WIDTHS[size][0]


SCREENS, SHEETS = 12, 12  # of 1,000 pixels at 1,280; of A4


def test_the_default_run_is_short(browser: Any, tmp_path: Path) -> None:
    page, legal = tmp_path / "page.html", tmp_path / "legal.html"
    for path, text in zip((page, legal), whole(tmp_path), strict=True):
        path.write_text(text, encoding="utf-8")
    with shown(browser, legal) as tab:
        assert len(sheets_of(tab, tmp_path / "legal.pdf")) <= SHEETS
    with shown(browser, page) as tab:
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


def test_a_link_opens_its_finding_and_sorting_moves_cards(browser: Any, pages: Callable[[str], Path]) -> None:
    with shown(browser, pages("specimen")) as tab:
        cards = tab.locator("article.card")
        ids = [cards.nth(i).get_attribute("id") for i in range(cards.count())]
        tab.get_by_label("Sort by").select_option("id")
        assert [cards.nth(i).get_attribute("id") for i in range(cards.count())] == sorted(map(str, ids))
        tab.locator(f"#{ids[0]} h3 a").click()
        tab.wait_for_function("id => document.getElementById(id).querySelector('details').open", arg=ids[0])


def test_the_watch_sees_requests_and_errors(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<h1>x</h1><img src='nowhere.png' alt=''><script>throw new Error('seen')</script>")
    with pytest.raises(AssertionError, match="seen"), shown(browser, page):
        pass


def test_the_policy_stops_every_other_script(browser: Any, pages: Callable[[str], Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = pages("many").read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", "<script>document.title = 'ran'</script></body>"))
    with pytest.raises(AssertionError, match="Content Security Policy"), shown(browser, page) as tab:
        assert tab.title() != "ran"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("scheme", "size"), [("light", "phone"), ("dark", "desktop")])
def test_axe_finds_no_serious_violation(
    browser: Any, pages: Callable[[str], Path], kind: str, scheme: str, size: str
) -> None:
    if not AXE.is_file():
        pytest.skip(f"axe-core is not installed ({AXE})")
    with shown(browser, pages(kind), size, color_scheme=scheme) as tab:
        tab.evaluate("document.querySelectorAll('details:not(.raw)').forEach(d => { d.open = true })")
        # Cards are laid out when they are scrolled to: places measured before and after that would overlap.
        tab.evaluate(
            "document.styleSheets[0].insertRule("
            "'.chunk, .card { content-visibility: visible !important }', document.styleSheets[0].cssRules.length)"
        )
        tab.evaluate(AXE.read_text(encoding="utf-8"))
        found = tab.evaluate(
            "tags => axe.run(document, {runOnly: {type: 'tag', values: tags}, resultTypes: ['violations']})", TAGS
        )
    assert len(found["passes"]) > 15
    bad = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
    assert [(v["id"], v["nodes"][0]["html"], v["nodes"][0]["failureSummary"]) for v in bad] == []


def test_the_filter_finds_and_lets_go(browser: Any, pages: Callable[[str], Path]) -> None:
    from playwright.sync_api import expect

    n = MAX_CARDS + 2 * CHUNK
    with shown(browser, pages("many")) as tab:
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


def test_nothing_depends_on_the_script(browser: Any, pages: Callable[[str], Path]) -> None:
    with shown(browser, pages("many"), java_script_enabled=False) as tab:
        assert not tab.locator("#filter").is_visible()
        assert tab.locator("article.card:visible").count() == MAX_CARDS
        tab.locator("details.rest > summary").click()
        assert tab.locator("[data-finding]:visible").count() == MAX_CARDS + 2 * CHUNK


def test_the_keyboard_reaches_what_can_be_used(browser: Any, pages: Callable[[str], Path]) -> None:
    with shown(browser, pages("many")) as tab:
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"
        assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        assert tab.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
        small = tab.evaluate(
            "[...document.querySelectorAll('summary, button, select, input, nav a')].filter(e => e.offsetParent)"
            ".map(e => [e.getBoundingClientRect().height, e.outerHTML.slice(0, 80)]).filter(x => x[0] < 24)"
        )
        assert small == []


def test_the_filter_reaches_claims(browser: Any, pages: Callable[[str], Path]) -> None:
    from playwright.sync_api import expect

    with shown(browser, pages("specimen")) as tab:
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


def sheets_of(tab: Any, target: Path) -> list[str]:
    """The text of each sheet of the page, printed."""
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed (extra test)")
    tab.emulate_media(media="print")
    tab.pdf(path=target, prefer_css_page_size=True)
    return [sheet.extract_text() for sheet in pypdf.PdfReader(target).pages]


@pytest.mark.parametrize("kind", PRINTED)
def test_the_page_prints(browser: Any, pages: Callable[[str], Path], tmp_path: Path, kind: str) -> None:
    with shown(browser, pages(kind)) as tab:
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


def test_the_check_of_print_can_fail(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<title>x</title><h1>x</h1><style>@page { size: A4; margin: 18mm } div { height: 215mm }"
        "section { break-before: page }</style><div>a</div><h2>Left alone</h2><section>b</section>"
    )
    with shown(browser, page) as tab:
        sheets = sheets_of(tab, tmp_path / "page.pdf")
    assert len(sheets) == 2
    assert alone(sheets, ["x", "Left alone"]) == ["Leftalone"]
    assert alone(sheets, ["x"]) == []
