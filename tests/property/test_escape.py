"""No text from a model, a file or a waiver leaves its place in a report, an exchange format or a legal page."""

from __future__ import annotations

import copy
import csv
import dataclasses
import datetime
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import specimen as SPECIMEN
import test_compliance_golden as GOLDEN
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from auditor.core import waivers
from auditor.core.protocols import RENDERERS
from auditor.core.record import RunRecord, read
from auditor.core.shown import cell
from auditor.core.types import Message, Prompt
from auditor.core.waivers import Waiver
from auditor.report import words
from auditor.report.exchange import JsonReport, workflow_commands
from auditor.report.html import HtmlReport
from auditor.report.markdown import escape
from auditor.report.terminal import TerminalReport, render_finding
from tests.asking import controls

PAYLOADS = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "' onmouseover='x",
    "</pre></details></article><h1>", "</style><style>*{display:none}", "--><!--", "<![CDATA[ ]]>", "&lt;b&gt; &amp;",
    "{{ 7*7 }}{% raw %}", "[bold red]x[/] [link=https://example.org]y[/link]",
    "\x1b]8;;http://example.org\x1b\\x\x1b[2J\x07", "\u202egnp.exe\u2066", "a\rb\x00c\x9bd\u2028e", "\ud800",
]  # fmt: skip


def hostile(payloads: list[str]) -> st.SearchStrategy[str]:
    """Payloads, any texts, and payloads behind each other."""
    return st.one_of(
        st.sampled_from(payloads),
        st.text(alphabet=st.characters(), max_size=30),
        st.lists(st.sampled_from([*payloads, "x", " ", "\n"]), min_size=1, max_size=3).map("".join),
    )


HOSTILE = hostile(PAYLOADS)
Test = Callable[..., None]


def attacked(texts: st.SearchStrategy[str], *always: str, most: int = 15) -> Callable[[Test], Test]:
    """Run a test with ``most`` drawn texts, and with those that are always tried."""

    def decorate(test: Test) -> Test:
        for text in always:
            test = example(text=text)(test)
        few = settings(max_examples=most, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        return few(given(text=texts)(test))

    return decorate


def poisoned(text: str) -> tuple[dict[str, Any], Any]:
    """The specimen with ``text`` in every place that comes from outside; its shape stays the same."""
    model, group = f"m{text}", f"g{text}"
    record = copy.deepcopy(SPECIMEN.record())
    rename = {"reviews": model, "vader": "vader"}
    record["id"] = f"r{text}"
    record["models"] = {rename[k]: v | {"fingerprint": text, "reported": [text]} for k, v in record["models"].items()}
    record["spec"] |= {"data": text, "task": f"t{text}", "kind": "classification", "models": list(record["models"])}
    record["provenance"]["python"] = text
    record["provenance"]["started"] = f"s{text}"
    record |= {"status": "partial", "status_reason": text}
    for entry in record["estimates"]:
        entry["model"] = rename.get(entry["model"], entry["model"])
        if entry["directions"]:
            entry["directions"] = [[a, f"{s}{group}", t] for a, s, t in entry["directions"]]
    for finding in record["findings"]:
        finding["model"] = rename[finding["model"]]
        finding["text"], finding["notes"] = f"f{text}", [text]
        finding["directions"] = [[a, s, f"{t}{group}"] for a, s, t in finding["directions"]]
    record["controls"]["noise_floor"] = {model: {"declared": True}, "vader": record["controls"]["noise_floor"]["vader"]}
    record["controls"]["placebo"] = {"status": "not_tested", "reason": text}
    for row in record["controls"]["answers_by_group"]:
        row["group"] = group
    for diagnosis in record["diagnoses"]:
        diagnosis["cause"] = diagnosis["evidence"] = text
    return record, _evidence(text, model)


def _evidence(text: str, model: str) -> Any:
    evidence = SPECIMEN.evidence()
    for key, case in list(evidence.cases.items()):
        change = {v.id: _poison(v, text) for v in (case.original, *case.variants)}
        new = dataclasses.replace(
            case, original=change[case.original.id], variants=tuple(change[v.id] for v in case.variants)
        )
        evidence.cases[key] = new
        evidence.owner |= dict.fromkeys(change, new)
    for variant_id, found in evidence.answers.items():
        evidence.answers[variant_id] = [
            dataclasses.replace(r, model=model if r.model == "reviews" else r.model, output=f"{r.output}{text}")
            for r in found
        ]
        messages = (Message(role="user", content=text),)
        evidence.asked[variant_id] = [Prompt(format="bare", messages=messages, sha256="0" * 64)]
    return evidence


def _poison(variant: Any, text: str) -> Any:
    """Put ``text`` behind the input and into every target word."""
    edits = tuple(dataclasses.replace(e, target=f"{e.target}{text}") for e in variant.edits)
    original = next(c for c in SPECIMEN.cases() if variant.id.startswith(c.id)).original.input
    return dataclasses.replace(variant, input=SPECIMEN.apply(original, edits) + text, edits=edits)


class Shape(HTMLParser):
    """The elements and attribute names of a page, in order, without its texts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.shape: list[tuple[str, ...]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape.append(("<", tag, *(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.shape.append((">", tag))

    def handle_comment(self, data: str) -> None:
        self.shape.append(("comment", data))

    def unknown_decl(self, data: str) -> None:
        self.shape.append(("declaration", data))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def shape(page: str) -> Shape:
    parser = Shape()
    parser.feed(page)
    parser.close()
    return parser


def shown(text: str) -> tuple[RunRecord, Any]:
    record, evidence = poisoned(text)
    return read(record), evidence


HARMLESS = shape(HtmlReport().render(*shown("x"))).shape


@attacked(HOSTILE, PAYLOADS[0], PAYLOADS[1], PAYLOADS[3], PAYLOADS[4], "\ud800\u202e")
def test_html_keeps_its_structure(text: str) -> None:
    page = HtmlReport().render(*shown(text))
    page.encode("utf-8")
    assert shape(page).shape == HARMLESS
    assert controls(page) == []


@attacked(HOSTILE, PAYLOADS[10], "\x85\u2029\x0b\x0c\x1c")
def test_terminal_holds_no_control_but_line_breaks(text: str) -> None:
    record, evidence = shown(text)
    told = TerminalReport(width=100, full=True).render(record, evidence)
    one = render_finding(record, evidence, "H001")
    assert controls(told) == []
    assert controls(one) == []
    (told + one).encode("utf-8")


@attacked(HOSTILE)
def test_ascii_terminal_and_json_are_ascii(text: str) -> None:
    record, evidence = shown(text)
    assert TerminalReport(width=72, encoding="ascii", full=True).render(record, evidence).isascii()
    made = JsonReport().render(record, evidence)
    assert made.isascii()
    assert controls(made) == []


def test_markup_of_the_terminal_library_stays_text() -> None:
    record, evidence = shown("[bold red]x[/] :smile:")
    assert "[bold red]x[/] :smile:" in TerminalReport(width=160, full=True).render(record, evidence)


def test_payload_is_still_readable_in_the_page() -> None:
    page = shape(HtmlReport().render(*shown(PAYLOADS[0])))
    assert any(PAYLOADS[0] in text for text in page.text)


# -- exchange formats ----

MARKUP = [
    *PAYLOADS,
    "=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", " =1", "a;=1", "＝1",
    "[x](https://example.org)", "![x](https://example.org/y.png)", "<https://example.org>", "https://example.org",
    "www.example.org", "a@example.org", "@someone", "#12", "`code`", "``` \n", "**b** _i_ ~~s~~ $x$", "| a | b |",
    "# h\n- l\n> q\n1. n\n---", "<!-- x", "--> <script>", "\\[x](y)", "&#91;x&#93;(y)", "[x]: https://example.org",
    "::error::x", "a\n::error::x", "%0A::error::x", "]]>", "<![CDATA[", "&#0;", "\x00\x0b\ufffe\uffff", "{0}",
]  # fmt: skip
HOSTILE_MARKUP = hostile(MARKUP)
LINK = re.compile(r"[a-z]://|www\.|@\w", re.IGNORECASE)


def waived(text: str) -> tuple[RunRecord, Any]:
    record, evidence = poisoned(text)
    waiver = Waiver.model_construct(finding="*/gender", reason=text, owner=text, expires=datetime.date(2030, 1, 1))
    return waivers.apply(read(record), [waiver], datetime.date(2026, 1, 1)), evidence


@cache
def exchanged(name: str, text: str) -> str:
    out = RENDERERS.create(name).render(*waived(text))
    assert isinstance(out, str)
    out.encode("utf-8")
    assert controls(out) == []
    return out


PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def markdown_shape(page: str) -> list[str]:
    """The elements of a Markdown page, without its texts."""
    out = []
    for block in PARSER.parse(page):
        out.append(block.type)
        for child in block.children or ():
            if child.type == "html_inline" and child.content == "<!-- -->":
                continue
            if child.type not in ("text", "text_special", "softbreak"):
                out.append(f"{child.type} {child.content if child.type == 'html_inline' else ''}")
    return out


HARMLESS_MARKDOWN = {name: markdown_shape(exchanged(name, "x")) for name in ("markdown", "github")}


# An empty note is left out, and Python takes U+001F for white space.
SEEN = HOSTILE_MARKUP.filter(lambda t: t.strip() and words.visible(t, newlines=False).strip())


@attacked(
    SEEN, "- l", "1. l", "---", "\tcode", "[x](https://example.org)", "# h\n- l\n> q\n1. n\n---", "| a | b |",
    "&#91;x&#93;(y)",
)  # fmt: skip
def test_markdown_keeps_its_elements(text: str) -> None:
    for name, harmless in HARMLESS_MARKDOWN.items():
        page = exchanged(name, text)
        assert markdown_shape(page) == harmless
        # GitHub links addresses by itself, outside code.
        assert not LINK.search(re.sub(r"`[^`]*`", "", page))


@attacked(HOSTILE_MARKUP)
def test_markdown_shows_the_text(text: str) -> None:
    inline = PARSER.parseInline(f"a {escape(text)}")[0].children or []
    shown = "".join(c.content for c in inline if c.type != "html_inline")
    assert shown.rstrip() == f"a {words.visible(text, newlines=False)}".rstrip()


@attacked(HOSTILE_MARKUP, "=1+1", "a;=1", "\t=1", '"\n=1')
def test_csv_has_no_formula_and_no_further_cell(text: str) -> None:
    page = exchanged("csv", text)
    rows = list(csv.reader(io.StringIO(page)))
    harmless = list(csv.reader(io.StringIO(exchanged("csv", "x"))))
    assert [len(r) for r in rows] == [len(r) for r in harmless]
    for row in rows[1:]:
        for text in row:
            for part in re.split("[;|]", text):
                if re.fullmatch(r"-?[\d.e-]+", part.strip()):
                    continue  # a number of ours
                assert not part.lstrip().startswith(tuple("=+-@＝＋－＠")), text


def test_numbers_stay_numbers() -> None:
    assert cell(-0.5) == -0.5
    assert cell("-0.5") == "-0.5"
    assert cell("-0.5+1") == "'-0.5+1"


def elements(page: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(e.tag, tuple(e.attrib)) for e in ET.fromstring(page).iter()]


@attacked(HOSTILE_MARKUP, "\x00\x0b\ufffe\uffff", '"/><failure message="', "]]>")
def test_junit_keeps_its_elements(text: str) -> None:
    assert elements(exchanged("junit", text)) == elements(exchanged("junit", "x"))


def keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: keys(v) for k, v in value.items()}
    return [keys(v) for v in value] if isinstance(value, list) else type(value).__name__


@attacked(HOSTILE_MARKUP, "[x](https://example.org)", "{0}")
def test_sarif_keeps_its_form_and_makes_no_link(text: str) -> None:
    page = exchanged("sarif", text)
    assert page.isascii()
    log = json.loads(page)
    assert keys(log) == keys(json.loads(exchanged("sarif", "x")))
    for result in log["runs"][0]["results"]:
        told = result["message"]["text"].replace("\\\\", "")
        assert not re.search(r"(?<!\\)\[", told)
        assert not re.search(r"(?<!\{)(\{\{)*\{(?!\{)", told)


@attacked(HOSTILE_MARKUP, "a\n::error::x", "a,b:c%0A")
def test_workflow_commands_stay_one_each(text: str) -> None:
    lines = workflow_commands(waived(text)[0])
    assert len(lines) == len(workflow_commands(waived("x")[0]))
    for line in lines:
        assert "\n" not in line
        assert "\r" not in line
        head = re.match(r"::(error|warning) title=([^:,\n]*)::", line)
        assert head, line
        assert not re.search(r"%(?!25|0D|0A|3A|2C)", line)


# -- legal pages ----


def frozen(text: str) -> tuple[dict[str, Any], Any]:
    """The poisoned specimen with a frozen plan, hashes and deviations of the same text."""
    record, evidence = poisoned(text)
    told = f"p{text}"
    record["spec"]["data"] = told  # an empty setting has no line
    record["frozen"] = {
        "file": told, "sha256": told, "frozen_at": told, "frozen_by": told, "reason": told,
        "deviations": [{"what": told, "planned": told, "actual": told}],
    }  # fmt: skip
    record["provenance"] |= {
        "platform": told, "packages": {f"k{text}": told}, "code": {"sha256": told},
        "dictionaries": [{"attribute": told, "name": told, "sha256": told}],
    }  # fmt: skip
    record["journal"] = {f"f{text}": {"records": 1, "hash": told}}
    return record, evidence


def people(text: str) -> dict[str, Any]:
    record: dict[str, Any] = copy.deepcopy(GOLDEN.people_record())
    told = f"p{text}"
    record["data"] |= {"file": told, "source": told, "sha256": told}
    record["warnings"] = [told]
    record["ll144"]["audit_date"] = told
    for rows in record["ll144"]["tables"].values():
        for row in rows:
            row["category"] = f"{row['category']}{text}"
            row["justification"] = told if row["excluded"] else row["justification"]
    return record


def rows(text: str) -> dict[str, Any]:
    record = copy.deepcopy(GOLDEN.rows())
    told, section = f"p{text}", record["tabular"]
    section["schema"] |= {"name": told, "protected": [told], "sha256": told}
    section["scores"][0] |= {"columns": [told], "population": told}
    section["lattice"][0]["columns"] = [told]
    section["pairs"][0] = {
        "changed": [told], "row": {told: text, "a": told}, "other": {told: told, "a": told},
        "label": told, "other_label": told,
    }  # fmt: skip
    record["findings"][0] |= {"text": told, "attributes": [told], "model": told, "notes": [told]}
    record["models"] = {told: {"fingerprint": told, "reported": [told]}}
    record["spec"]["model"] = told
    return dict(record)


def legal(name: str, record: dict[str, Any], evidence: Any = None) -> str:
    return str(RENDERERS.create(name).render(read(record), evidence))


MAKE = {
    "eu-ai-act": lambda text: legal("eu-ai-act", *frozen(text)),
    "rows": lambda text: legal("nist-ai-rmf", rows(text)),
    "ll144": lambda text: legal("ll144", people(text)),
}
HARMLESS_PAGES = {kind: shape(make("x")).shape for kind, make in MAKE.items()}


@pytest.mark.parametrize("kind", MAKE)
# An empty entry has no line, and a variant without an id no example.
@attacked(HOSTILE.filter(bool), PAYLOADS[0], PAYLOADS[1], PAYLOADS[4], PAYLOADS[11], "\ud800\u202e", most=8)
def test_the_page_keeps_its_structure(kind: str, text: str) -> None:
    page = MAKE[kind](text)
    page.encode("utf-8")
    assert shape(page).shape == HARMLESS_PAGES[kind]
    assert controls(page) == []


@attacked(HOSTILE, most=8)
def test_the_data_are_ascii_json(text: str) -> None:
    page = legal("eu-ai-act-json", *frozen(text))
    assert page.isascii()
    assert controls(page) == []
    assert json.loads(page)["framework"]


def test_outcomes_beside_a_run_are_escaped_too(tmp_path: Path) -> None:
    (tmp_path / "ll144.json").write_text(json.dumps(people(PAYLOADS[0])), encoding="utf-8")
    record, evidence = frozen("x")
    evidence.path = tmp_path
    page = legal("eu-ai-act", record, evidence)
    assert "<script" not in page
    assert any(PAYLOADS[0] in text for text in shape(page).text)
