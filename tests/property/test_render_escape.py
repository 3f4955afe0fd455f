"""No text from a model or a file leaves its place in a report."""

from __future__ import annotations

import copy
import dataclasses
import unicodedata
from html.parser import HTMLParser
from typing import Any

import specimen as SPECIMEN
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from auditor.core.record import RunRecord, read
from auditor.core.shown import BIDI_SAFE
from auditor.core.types import Message, Prompt
from auditor.report.exchange import JsonReport
from auditor.report.finding import render_finding
from auditor.report.html import HtmlReport
from auditor.report.terminal import TerminalReport

PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='x",
    "</pre></details></article><h1>",
    "</style><style>*{display:none}",
    "--><!--",
    "<![CDATA[ ]]>",
    "&lt;b&gt; &amp;",
    "{{ 7*7 }}{% raw %}",
    "[bold red]x[/] [link=https://example.org]y[/link]",
    "\x1b]8;;http://example.org\x1b\\x\x1b[2J\x07",
    "\u202egnp.exe\u2066",
    "a\rb\x00c\x9bd\u2028e",
    "\ud800",
]
HOSTILE = st.one_of(
    st.sampled_from(PAYLOADS),
    st.text(alphabet=st.characters(), max_size=30),
    st.lists(st.sampled_from([*PAYLOADS, "x", " ", "\n"]), min_size=1, max_size=3).map("".join),
)
SETTINGS = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


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
    record["status"], record["status_reason"] = "partial", text
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


def acting(text: str, allowed: str = "\n") -> set[str]:
    found = {c for c in set(text) if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    return found - set(allowed) - BIDI_SAFE


def shown(text: str) -> tuple[RunRecord, Any]:
    record, evidence = poisoned(text)
    return read(record), evidence


HARMLESS = shape(HtmlReport().render(*shown("x"))).shape


@SETTINGS
@given(text=HOSTILE)
@example(text=PAYLOADS[0])
@example(text=PAYLOADS[1])
@example(text=PAYLOADS[3])
@example(text=PAYLOADS[4])
@example(text="\ud800\u202e")
def test_html_keeps_its_structure(text: str) -> None:
    page = HtmlReport().render(*shown(text))
    page.encode("utf-8")
    assert shape(page).shape == HARMLESS
    assert acting(page) == set()


@SETTINGS
@given(text=HOSTILE)
@example(text=PAYLOADS[10])
@example(text="\x85\u2029\x0b\x0c\x1c")
def test_terminal_holds_no_control_but_line_breaks(text: str) -> None:
    record, evidence = shown(text)
    told = TerminalReport(width=100, full=True).render(record, evidence)
    one = render_finding(record, evidence, "H001")
    assert acting(told) == set()
    assert acting(one) == set()
    (told + one).encode("utf-8")


@SETTINGS
@given(text=HOSTILE)
def test_ascii_terminal_and_json_are_ascii(text: str) -> None:
    record, evidence = shown(text)
    assert TerminalReport(width=72, encoding="ascii", full=True).render(record, evidence).isascii()
    made = JsonReport().render(record, evidence)
    assert made.isascii()
    assert acting(made) == set()


def test_markup_of_the_terminal_library_stays_text() -> None:
    record, evidence = shown("[bold red]x[/] :smile:")
    assert "[bold red]x[/] :smile:" in TerminalReport(width=160, full=True).render(record, evidence)


def test_payload_is_still_readable_in_the_page() -> None:
    page = shape(HtmlReport().render(*shown(PAYLOADS[0])))
    assert any(PAYLOADS[0] in text for text in page.text)
