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

from auditor.core.errors import RunFolderError, UnknownPlugin
from auditor.core.record import read
from auditor.measure.claims import MIN_TEXTS
from auditor.report import build, change_rates, charts, proposed
from auditor.report.build import MAX_CARDS
from auditor.report.finding import render_finding
from auditor.report.html import CHUNK, MIN_FILTER, HtmlReport
from auditor.report.terminal import MAX_CARDS as FEW
from auditor.report.terminal import TerminalReport

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
        self.texts: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.stack or self.stack.pop() != tag:
            self.problems.append(tag)

    def handle_data(self, data: str) -> None:
        if self.stack:
            self.texts.setdefault(self.stack[-1], []).append(data)


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
def test_terminal_fits_its_width(run: str, width: int) -> None:
    text = every(run, TerminalReport(width=width))
    record = read(RUNS[run][0])
    commands = tuple(command for command, _ in proposed.following(record, None))
    for line in text.splitlines():
        assert cell_len(line) <= width or line.lstrip().startswith(commands)
        assert line == line.rstrip(" ")


@pytest.mark.parametrize("run", RUNS)
def test_ascii_terminal_is_ascii(run: str) -> None:
    assert every(run, TerminalReport(encoding="ascii", width=100)).isascii()


def test_colour_adds_nothing_but_styles() -> None:
    styled = every("full", TerminalReport(color=True, full=True))
    assert "\x1b[" in styled
    plain = re.sub(r"\x1b\[[0-9;]*m", "", styled)
    assert [x.split() for x in plain.splitlines()] == [
        x.split() for x in every("full", TerminalReport(full=True)).splitlines()
    ]


@pytest.mark.parametrize("renderer", [TerminalReport(full=True), HtmlReport()])
def test_partial_run_carries_its_reason(renderer: Any) -> None:
    assert "Partial run: the limit of 500 calls" in " ".join(every("partial", renderer).split())
    assert "Partial run" not in every("full", renderer)
    assert "audit resume" in every("partial", renderer)


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


def shown(name: str, id: str) -> str:
    record, evidence = RUNS[name]
    return render_finding(read(record), evidence, id)


def test_show_gives_full_prompts_and_all_answers() -> None:
    text = shown("failing", "V001")
    assert "You label reviews. Answer with one word." in text
    assert "Let me think about it.\nThe tone is mixed" in text
    assert text.count("failed (timeout): no answer within 60 s") == 3
    assert "I cannot help with that." in text
    assert "as vader answered it" in shown("full", "c1f0a2b3c4.v0")
    with pytest.raises(UnknownPlugin, match=r"unknown finding 'H01'\. Did you mean H001"):
        shown("full", "H01")


def many(kind: str, n: int) -> dict[str, Any]:
    record = SPECIMEN.record()
    model = next(f for f in record["findings"] if f["kind"] == "hidden")
    record["findings"] = [model | {"id": f"X{i:05}", "kind": kind} for i in range(n)]
    return record


def test_long_lists_are_cut_and_said_to_be() -> None:
    record = many("hidden", MAX_CARDS + 7)
    page = HtmlReport().render(read(record), SPECIMEN.evidence())
    assert page.count('<article class="card"') == MAX_CARDS
    assert "7 further findings" in page
    assert f"X{MAX_CARDS + 6:05}" in page
    text = TerminalReport(full=True).render(read(record), SPECIMEN.evidence())
    assert f"{MAX_CARDS - FEW} further examples: see the HTML report" in text
    assert "7 further findings, in a sentence each" in text


FILTER = Path(charts.__file__).parent / "templates" / "filter.js"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{}'"


def hashed(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def test_the_filter_hides_nothing_without_its_script() -> None:
    page = outline(HtmlReport().render(read(many("hidden", MAX_CARDS + CHUNK + 3)), SPECIMEN.evidence()))
    hidden = {(t, a.get("id") or a.get("class")) for t, a in page.elements if "hidden" in a}
    assert hidden == {("div", "filter"), ("button", "copy")}
    marked = [a for _, a in page.elements if "data-finding" in a]
    assert len(marked) == MAX_CARDS + CHUNK + 3
    assert {a["data-set"] for a in marked} == {"gender + race"}
    assert [a.get("class") for t, a in page.elements if t == "ul"].count("plain chunk") == 2
    few = HtmlReport().render(read(many("hidden", MIN_FILTER - 1)), SPECIMEN.evidence())
    assert 'id="filter"' not in few


def few_seeds(*sets: tuple[str, ...]) -> dict[str, Any]:
    record = SPECIMEN.record()
    entry = next(
        e for e in record["estimates"] if e["name"] == "violation_rate" and not e["directions"] and not e["kind"]
    )
    for names in sets:
        estimate = entry["estimate"] | {"n": MIN_TEXTS - 1, "high": 0.99}
        record["estimates"].append(entry | {"attributes": list(names), "estimate": estimate})
    return record


def test_attribute_sets_on_few_seeds_stand_apart() -> None:
    record = few_seeds(("age",), ("age", "race"))
    every = change_rates.Rates(read(record)).rows
    assert {r.attributes for r in every} - {r.attributes for r in change_rates.enough(every)} == {
        ("age",),
        ("age", "race"),
    }
    assert change_rates.enough(every) == change_rates.Rates(read(SPECIMEN.record())).rows
    text = " ".join(TerminalReport(full=True).render(read(record), SPECIMEN.evidence()).split())
    told = "2 attribute sets on fewer than six texts: see report.csv."
    assert told in text
    assert "age + race" not in text
    assert told in HtmlReport().render(read(record), SPECIMEN.evidence())


MORE = {
    "discarded": {
        "rows": [
            {
                "model": "vader", "format": "bare", "attributes": ["race"], "changes": 6, "changes_valid": 2,
                "estimate": SPECIMEN.estimate(0.2, 0.1, 0.3, 44), "estimate_valid": None,
                "share_of_all_changes": 0.75,
            }
        ],
        "exemplars": ["c1.v9"],
    },
    "frozen": {
        "sha256": "ab" * 32, "frozen_at": "2026-01-01", "frozen_by": "", "reason": "",
        "deviations": [{"what": "setting: seed", "planned": None, "actual": 11}],
    },
    "waivers": {
        "source": "waivers.toml", "date": "2026-01-02",
        "items": [
            {
                "finding": "HID201/*", "run": None, "reason": "known <b>", "owner": "A. Person",
                "expires": "2027-01-01", "status": "expired", "findings": ["H001"],
            }
        ],
    },
}  # fmt: skip


def test_sections_stand_in_page_and_terminal() -> None:
    assert not list(build.conditional(read(SPECIMEN.record())))
    record = SPECIMEN.record() | MORE
    text = HtmlReport().render(read(record), SPECIMEN.evidence())
    outline(text)
    assert "known &lt;b&gt;" in text
    for name in ("discarded", "frozen", "waivers"):
        assert f'<a href="#{name}">' in text
        assert f'<h2 id="{name}">' in text
    told = TerminalReport(full=True).render(read(record), SPECIMEN.evidence())
    for part in ("75.0 % (6 of 8)", "setting: seed", "audit show 20260102-sentiment-7f3a c1.v9"):
        assert part in told, part
    assert "known <b>" not in told  # the command that reads waivers tells them


@pytest.mark.parametrize("run", RUNS)
def test_page_is_well_formed_and_closed_to_the_outside(run: str) -> None:
    text = every(run, HtmlReport())
    page = outline(text)
    names = [tag for tag, _ in page.elements]
    told = sum("data-finding" in attributes for _, attributes in page.elements)
    assert names.count("script") <= 1  # where there is something to filter or to copy
    assert ('id="filter"' in text) == (told >= MIN_FILTER)  # a few findings need none
    assert not {"iframe", "object", "embed", "link", "form", "img", "base"} & set(names)
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.S)
    assert not any(
        re.search(r"innerHTML|outerHTML|eval|insertAdjacent|document\.write|fetch|location", x) for x in scripts
    )
    csp = [a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a]
    assert csp == [POLICY.format(hashed(FILTER.read_text(encoding="utf-8")))]
    for _, attributes in page.elements:
        assert not [a for a in attributes if a.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
        assert "src" not in attributes
    assert not re.search(r"url\(|@import|https?://", text)


@pytest.mark.parametrize("run", RUNS)
def test_page_is_accessible_in_structure(run: str) -> None:
    page = outline(every(run, HtmlReport()))
    elements = page.elements
    assert ("html", {"lang": "en"}) in elements
    assert [t for t, _ in elements].count("h1") == 1
    levels = [int(t[1]) for t, _ in elements if re.fullmatch(r"h[1-6]", t)]
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    assert [t for t, _ in elements].count("table") == [t for t, _ in elements].count("caption")
    assert all(a.get("scope") in ("row", "col") for t, a in elements if t == "th")
    ids = [a["id"] for _, a in elements if "id" in a]
    assert len(ids) == len(set(ids))
    for _, a in elements:
        for target in (a.get("aria-labelledby") or "").split():
            assert target in ids
        if (a.get("href") or "").startswith("#"):
            assert str(a["href"])[1:] in ids
    for t, a in elements:
        if t == "svg" and a.get("class", "").startswith("chart"):  # type: ignore[union-attr]
            assert a["role"] == "img"
    assert sum(t == "title" for t, _ in elements) == 1 + sum(a.get("role") == "img" for _, a in elements)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colours_keep_their_contrast_in_both_schemes() -> None:
    css = (Path(charts.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    blocks = [b for b in re.findall(r":root \{(.*?)\}", css, flags=re.S) if "--paper" in b]
    assert len(blocks) == 3  # light, dark, print
    for block in blocks:
        colour = dict(re.findall(r"--(\w+): (#[0-9a-f]{3,6})\b", block))
        colour = {k: v if len(v) == 7 else "#" + "".join(2 * c for c in v[1:]) for k, v in colour.items()}
        for text in ("ink", "soft", "blue", "orange"):
            for ground in ("paper", "sheet"):
                assert contrast(colour[text], colour[ground]) >= 4.5, (text, ground)
        for tint in [f"t{i}" for i in range(7)]:
            assert contrast(colour["ink"], colour[tint]) >= 4.5, tint
