"""Reports of a made-up run: widths, structure, lists that are cut, and sections; none of their words are markup."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import specimen as SPECIMEN
from rich.cells import cell_len

from auditor import audit
from auditor.core.errors import RunFolderError, UnknownPlugin
from auditor.core.record import RunRecord, read
from auditor.measure.claims import MIN_TEXTS
from auditor.report import build, first_screen, sections
from auditor.report.build import MAX_CARDS
from auditor.report.html import CHUNK, MIN_FILTER, HtmlReport
from auditor.report.terminal import MAX_CARDS as FEW
from auditor.report.terminal import TerminalReport, render_finding

RUNS: dict[str, Any] = {
    "full": (SPECIMEN.record(), SPECIMEN.evidence()),
    "partial": (SPECIMEN.partial(), SPECIMEN.evidence()),
    "quiet": (SPECIMEN.quiet(), SPECIMEN.evidence()),
    "failing": SPECIMEN.failing(),
    "claims": (SPECIMEN.claimed(), SPECIMEN.evidence()),
    "bare": ({"id": "r", "status": "partial", "status_reason": "interrupted"}, SPECIMEN.FakeEvidence()),
}


class Outline(HTMLParser):
    """Elements, attributes and text; complains about what does not nest."""

    VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.stack or self.stack.pop() != tag:
            self.problems.append(tag)


def outline(text: str) -> Outline:
    parser = Outline()
    parser.feed(text)
    parser.close()
    assert parser.problems == []
    assert parser.stack == []
    return parser


def every(name: str, renderer: Any) -> str:
    return str(renderer.render(read(RUNS[name][0]), RUNS[name][1]))


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("width", [40, 72, 100, 160])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_terminal_fits_its_width_and_its_encoding(run: str, width: int, encoding: str) -> None:
    text = every(run, TerminalReport(width=width, encoding=encoding))
    text.encode(encoding)
    commands = tuple(command for command, _ in first_screen.following(read(RUNS[run][0]), None))
    for line in text.splitlines():
        assert cell_len(line) <= width or line.lstrip().startswith(commands)
        assert line == line.rstrip(" ")


def test_colour_adds_nothing_but_styles() -> None:
    styled, plain = (every("full", TerminalReport(color=color, full=True)) for color in (True, False))
    assert "\x1b[" in styled
    bare = re.sub(r"\x1b\[[0-9;]*m", "", styled)
    assert [line.split() for line in bare.splitlines()] == [line.split() for line in plain.splitlines()]


class Damaged(SPECIMEN.FakeEvidence):  # type: ignore[misc, name-defined]
    def case_of(self, variant_id: str) -> Any:
        raise RunFolderError("cases.jsonl, line 7: not JSON")


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [(Damaged(), "cases.jsonl, line 7: not JSON"), (SPECIMEN.FakeEvidence(), "the run holds no variant c1f0a2b3c4.v2")],
)
@pytest.mark.parametrize("renderer", [TerminalReport(full=True), HtmlReport()])
def test_missing_evidence_costs_no_report(renderer: Any, evidence: Any, reason: str) -> None:
    assert reason in renderer.render(read(SPECIMEN.record()), evidence)


def test_below_an_answer_the_terminal_tells_what_is_read_and_names_the_rest() -> None:
    record = SPECIMEN.claimed()
    one = next(f for f in record["findings"] if f["kind"] == "claim")
    record["findings"] += [{**one, "id": f"X{i:03}"} for i in range(400)]
    text = TerminalReport(width=80, full=True).render(read(record), SPECIMEN.evidence())
    assert len(text.splitlines()) <= 400
    assert re.search(r"\d{3} further findings: see the CSV", text)
    assert "\nProvenance\n" not in text
    assert "\nProvenance\n" in TerminalReport(width=80, full=True).render(read(SPECIMEN.record()), SPECIMEN.evidence())


def test_show_gives_full_prompts_and_all_answers() -> None:
    def shown(name: str, id: str) -> str:
        record, evidence = RUNS[name]
        return render_finding(read(record), evidence, id)

    text = shown("failing", "V001")
    assert "You label reviews. Answer with one word." in text
    assert "Let me think about it.\nThe tone is mixed" in text
    assert text.count("failed (timeout): no answer within 60 s") == 3
    assert "I cannot help with that." in text
    assert "as vader answered it" in shown("full", "c1f0a2b3c4.v0")
    with pytest.raises(UnknownPlugin, match=r"unknown finding 'H01'\. Did you mean H001"):
        shown("full", "H01")


def many(n: int) -> RunRecord:
    record = SPECIMEN.record()
    model = next(f for f in record["findings"] if f["kind"] == "hidden")
    record["findings"] = [model | {"id": f"X{i:05}"} for i in range(n)]
    return read(record)


def test_long_lists_are_cut_and_said_to_be() -> None:
    record = many(MAX_CARDS + 7)
    page = HtmlReport().render(record, SPECIMEN.evidence())
    assert page.count('<article class="card"') == MAX_CARDS
    assert "7 further findings" in page
    assert f"X{MAX_CARDS + 6:05}" in page
    text = TerminalReport(full=True).render(record, SPECIMEN.evidence())
    assert f"{MAX_CARDS - FEW} further examples: see the HTML report" in text
    assert "7 further findings, in a sentence each" in text


FILTER = Path(sections.__file__).parent / "templates" / "filter.js"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{}'"


def test_the_filter_hides_nothing_without_its_script() -> None:
    page = outline(HtmlReport().render(many(MAX_CARDS + CHUNK + 3), SPECIMEN.evidence()))
    hidden = {(t, a.get("id") or a.get("class")) for t, a in page.elements if "hidden" in a}
    assert hidden == {("div", "filter"), ("button", "copy")}
    marked = [a for _, a in page.elements if "data-finding" in a]
    assert len(marked) == MAX_CARDS + CHUNK + 3
    assert {a["data-set"] for a in marked} == {"gender + race"}
    assert [a.get("class") for t, a in page.elements if t == "ul"].count("plain chunk") == 2
    few = HtmlReport().render(many(MIN_FILTER - 1), SPECIMEN.evidence())
    assert 'id="filter"' not in few


def test_attribute_sets_on_few_seeds_stand_apart() -> None:
    record = SPECIMEN.record()
    entry = next(
        e for e in record["estimates"] if e["name"] == "violation_rate" and not e["directions"] and not e["kind"]
    )
    few = entry["estimate"] | {"n": MIN_TEXTS - 1, "high": 0.99}
    sets = (("age",), ("age", "race"))
    record["estimates"] += [entry | {"attributes": list(names), "estimate": few} for names in sets]
    rows = sections.Rates(read(record)).rows
    assert {r.attributes for r in rows} - {r.attributes for r in sections.enough(rows)} == set(sets)
    assert sections.enough(rows) == sections.Rates(read(SPECIMEN.record())).rows
    told = "2 attribute sets on fewer than six texts: see report.csv."
    text = " ".join(TerminalReport(full=True).render(read(record), SPECIMEN.evidence()).split())
    assert told in text
    assert "age + race" not in text
    assert told in HtmlReport().render(read(record), SPECIMEN.evidence())


DISCARDED = {
    "model": "vader", "format": "bare", "attributes": ["race"], "changes": 6, "changes_valid": 2,
    "estimate": SPECIMEN.estimate(0.2, 0.1, 0.3, 44), "estimate_valid": None, "share_of_all_changes": 0.75,
}  # fmt: skip
WAIVER = {
    "finding": "HID201/*", "run": None, "reason": "known <b>", "owner": "A. Person", "expires": "2027-01-01",
    "status": "expired", "findings": ["H001"],
}  # fmt: skip
MORE = {
    "discarded": {"rows": [DISCARDED], "exemplars": ["c1.v9"]},
    "waivers": {"source": "waivers.toml", "date": "2026-01-02", "items": [WAIVER]},
}


def test_sections_stand_in_page_and_terminal() -> None:
    assert not list(build.conditional(read(SPECIMEN.record())))
    record = SPECIMEN.record() | MORE
    text = HtmlReport().render(read(record), SPECIMEN.evidence())
    outline(text)
    assert "known &lt;b&gt;" in text
    for name in MORE:
        assert f'<a href="#{name}">' in text
        assert f'<h2 id="{name}">' in text
    told = TerminalReport(full=True).render(read(record), SPECIMEN.evidence())
    for part in ("75.0 % (6 of 8)", "audit show 20260102-sentiment-7f3a c1.v9"):
        assert part in told, part
    assert "known <b>" not in told  # the command that reads waivers tells them


@pytest.mark.parametrize("run", RUNS)
def test_page_is_well_formed_accessible_in_structure_and_closed_to_the_outside(run: str) -> None:
    text = every(run, HtmlReport())
    page = outline(text)
    elements = page.elements
    names = [tag for tag, _ in elements]
    told = sum("data-finding" in attributes for _, attributes in elements)
    assert names.count("script") <= 1  # where there is something to filter or to copy
    assert ('id="filter"' in text) == (told >= MIN_FILTER)  # a few findings need none
    assert not {"iframe", "object", "embed", "link", "form", "img", "base"} & set(names)
    forbidden = r"innerHTML|outerHTML|eval|insertAdjacent|document\.write|fetch|location"
    assert not any(re.search(forbidden, script) for script in re.findall(r"<script>(.*?)</script>", text, flags=re.S))
    csp = [a["content"] for t, a in elements if t == "meta" and "http-equiv" in a]
    assert csp == [POLICY.format(base64.b64encode(hashlib.sha256(FILTER.read_bytes()).digest()).decode())]
    assert not re.search(r"url\(|@import|https?://", text)
    assert ("html", {"lang": "en"}) in elements
    assert names.count("h1") == 1
    levels = [int(tag[1]) for tag in names if re.fullmatch(r"h[1-6]", tag)]
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert names.count("table") == names.count("caption")
    ids = [a["id"] for _, a in elements if "id" in a]
    assert len(ids) == len(set(ids))
    for tag, attributes in elements:
        assert not [name for name in attributes if name.startswith("on")]
        assert "src" not in attributes
        assert set((attributes.get("aria-labelledby") or "").split()) <= set(ids)
        if (href := attributes.get("href")) is not None:
            assert href.startswith("#")
            assert href[1:] in ids
        assert tag != "th" or attributes.get("scope") in ("row", "col")
        if tag == "svg" and (attributes.get("class") or "").startswith("chart"):
            assert attributes["role"] == "img"
    assert names.count("title") == 1 + sum(a.get("role") == "img" for _, a in elements)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05


def test_colours_keep_their_contrast_in_both_schemes() -> None:
    css = (Path(sections.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    blocks = [b for b in re.findall(r":root \{(.*?)\}", css, flags=re.S) if "--paper" in b]
    assert len(blocks) == 3  # light, dark, print
    for block in blocks:
        colour = dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6})\b", block))
        colour = {k: v if len(v) == 7 else "#" + "".join(2 * c for c in v[1:]) for k, v in colour.items()}
        pairs = [*itertools.product(("ink", "soft", "blue", "orange"), ("paper", "sheet"))]
        for text, ground in [*pairs, *(("ink", f"t{i}") for i in range(7))]:
            low, high = sorted(luminance(colour[name]) for name in (text, ground))
            assert high / low >= 4.5, (text, ground)


EVIL = "<script>alert(1)</script>"


def test_both_reports_show_phases_coverage_and_bound_and_escape_them() -> None:
    result = audit(
        "sentiment", model=lambda text: "negative" if "aunt" in text else "positive", suite="grammar",
        suite_options=["generation=rand"], limit=40, order=1, anyway=True, out=None,
    )  # fmt: skip
    bound = {"population": 900, "drawn": 40, "found": 3, "level": 0.95, "share_at_most": 0.18}
    told = result.record["generation"] | {"generation": "uniform", "bound": {"m": bound}}  # a run of version 0.2
    record = read(result.record | {"generation": told})
    (section,) = sections.generated(record, {})
    notes, (made, reached) = section.blocks[:-2], section.blocks[-2:]
    [phase] = made.lines
    assert phase[1:4] == ("drawn uniformly from the sentences", "40", str(told["phases"][0]["violating_cases"]))
    covered = told["coverage"]["rand"]
    assert str(reached.lines[0][1]).startswith(f"{covered['terminals_covered']} of ")
    assert "900 sentences" in str(notes[1])
    for report in (HtmlReport(), TerminalReport(width=120, full=True)):
        page = " ".join(report.render(record, result.evidence).split()).replace("\u00a0", " ")
        assert "Generated cases" in page
        assert "drawn without replacement" in page
    hostile: dict[str, Any] = told | {
        "grammar": EVIL,
        "phases": [row | {"model": EVIL, "sampling": EVIL, "phase": EVIL} for row in told["phases"]],
        "coverage": {EVIL: covered},
        "bound": {EVIL: bound},
    }
    score = {"model": EVIL, "format": "bare", "epsilon": 0.1, "cases": 0, "violating_cases": 0}
    probability = {"label": EVIL, "reference": "equal", "rows": [score]}
    evil = read(result.record | {"generation": hostile, "probability": probability})
    html = HtmlReport().render(evil, result.evidence)
    assert EVIL not in html
    assert html.count("&lt;script&gt;") >= 6
