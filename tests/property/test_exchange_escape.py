"""No text from a model, a file or a waiver leaves its element in an exchange format."""

from __future__ import annotations

import csv
import datetime
import importlib.util
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from auditor.core import waivers
from auditor.core.record import RunRecord, read
from auditor.core.registry import RENDERERS
from auditor.core.shown import cell
from auditor.core.waivers import Waiver
from auditor.report import words
from auditor.report.exchange import workflow_commands
from auditor.report.markdown import escape


def load(name: str, *parts: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1].joinpath(*parts))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HTML = load("render_escape", "property", "test_render_escape.py")
PAYLOADS = [
    *HTML.PAYLOADS,
    "=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", " =1", "a;=1", "＝1",
    "[x](https://example.org)", "![x](https://example.org/y.png)", "<https://example.org>", "https://example.org",
    "www.example.org", "a@example.org", "@someone", "#12", "`code`", "``` \n", "**b** _i_ ~~s~~ $x$", "| a | b |",
    "# h\n- l\n> q\n1. n\n---", "<!-- x", "--> <script>", "\\[x](y)", "&#91;x&#93;(y)", "[x]: https://example.org",
    "::error::x", "a\n::error::x", "%0A::error::x", "]]>", "<![CDATA[", "&#0;", "\x00\x0b\ufffe\uffff", "{0}",
]  # fmt: skip
HOSTILE = st.one_of(
    st.sampled_from(PAYLOADS),
    st.text(alphabet=st.characters(), max_size=30),
    st.lists(st.sampled_from([*PAYLOADS, "x", " ", "\n"]), min_size=1, max_size=3).map("".join),
)
SETTINGS = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LINK = re.compile(r"[a-z]://|www\.|@\w", re.IGNORECASE)


def poisoned(text: str) -> tuple[RunRecord, Any]:
    record, evidence = HTML.poisoned(text)
    waiver = Waiver.model_construct(finding="*/gender", reason=text, owner=text, expires=datetime.date(2030, 1, 1))
    return waivers.apply(read(record), [waiver], datetime.date(2026, 1, 1)), evidence


def made(name: str, text: str) -> str:
    out = RENDERERS.create(name).render(*poisoned(text))
    assert isinstance(out, str)
    out.encode("utf-8")
    assert HTML.acting(out) == set()
    return out


PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def shape(page: str) -> list[str]:
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


HARMLESS = {name: shape(made(name, "x")) for name in ("markdown", "github")}


# An empty note is left out, and Python takes U+001F for white space.
SEEN = HOSTILE.filter(lambda t: t.strip() and words.visible(t, newlines=False).strip())


@SETTINGS
@given(text=SEEN)
@example(text="- l")
@example(text="1. l")
@example(text="---")
@example(text="\tcode")
@example(text="[x](https://example.org)")
@example(text="# h\n- l\n> q\n1. n\n---")
@example(text="| a | b |")
@example(text="&#91;x&#93;(y)")
def test_markdown_keeps_its_elements(text: str) -> None:
    for name, harmless in HARMLESS.items():
        page = made(name, text)
        assert shape(page) == harmless
        # GitHub links addresses by itself, outside code.
        assert not LINK.search(re.sub(r"`[^`]*`", "", page))


@SETTINGS
@given(text=HOSTILE)
def test_markdown_shows_the_text(text: str) -> None:
    inline = PARSER.parseInline(f"a {escape(text)}")[0].children or []
    shown = "".join(c.content for c in inline if c.type != "html_inline")
    assert shown.rstrip() == f"a {words.visible(text, newlines=False)}".rstrip()


@SETTINGS
@given(text=HOSTILE)
@example(text="=1+1")
@example(text="a;=1")
@example(text="\t=1")
@example(text='"\n=1')
def test_csv_has_no_formula_and_no_further_cell(text: str) -> None:
    page = made("csv", text)
    rows = list(csv.reader(io.StringIO(page)))
    harmless = list(csv.reader(io.StringIO(made("csv", "x"))))
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


@SETTINGS
@given(text=HOSTILE)
@example(text="\x00\x0b\ufffe\uffff")
@example(text='"/><failure message="')
@example(text="]]>")
def test_junit_keeps_its_elements(text: str) -> None:
    assert elements(made("junit", text)) == elements(made("junit", "x"))


def keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: keys(v) for k, v in value.items()}
    return [keys(v) for v in value] if isinstance(value, list) else type(value).__name__


@SETTINGS
@given(text=HOSTILE)
@example(text="[x](https://example.org)")
@example(text="{0}")
def test_sarif_keeps_its_form_and_makes_no_link(text: str) -> None:
    page = made("sarif", text)
    assert page.isascii()
    log = json.loads(page)
    assert keys(log) == keys(json.loads(made("sarif", "x")))
    for result in log["runs"][0]["results"]:
        told = result["message"]["text"].replace("\\\\", "")
        assert not re.search(r"(?<!\\)\[", told)
        assert not re.search(r"(?<!\{)(\{\{)*\{(?!\{)", told)


@SETTINGS
@given(text=HOSTILE)
@example(text="a\n::error::x")
@example(text="a,b:c%0A")
def test_workflow_commands_stay_one_each(text: str) -> None:
    lines = workflow_commands(poisoned(text)[0])
    assert len(lines) == len(workflow_commands(poisoned("x")[0]))
    for line in lines:
        assert "\n" not in line
        assert "\r" not in line
        head = re.match(r"::(error|warning) title=([^:,\n]*)::", line)
        assert head, line
        assert not re.search(r"%(?!25|0D|0A|3A|2C)", line)
