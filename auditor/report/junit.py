"""Findings as JUnit XML, for what shows test results in a build."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from auditor.core import waivers
from auditor.core.protocols import Renderer
from auditor.report import exchange, words
from auditor.report.planned import deviations

# XML 1.0 has no way to write these; `words.visible` leaves the noncharacters.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JunitReport(Renderer):
    """One test suite for each model, one test case for each finding.

    A shown finding is a failure, unless it is waived (skipped, with the waiver). What is not determined or was
    not tested is skipped, with the reason: neither good nor bad. What is bounded stands as it is. A partial
    run is an error of its own.
    """

    name = "junit.v1"
    suffix = ".xml"

    def render(self, record: Mapping[str, Any], evidence: Any = None) -> str:
        """Write the document."""
        rows = exchange.rows(record)
        suites = [_suite(model, [r for r in rows if r.model == model], record) for model in _models(record)]
        run = [_case("run", "complete", [_element("error", exchange.partial(record))])]
        if not exchange.partial(record):
            run = [_case("run", "complete", [])]
        properties = [
            f"<property {_attributes(name=name, value=value)}/>"
            for name, value in (
                ("run", record.get("id", "")),
                ("tool_version", record.get("tool_version", "")),
                *_frozen(record),
                *((f"waiver {i}", line) for i, line in enumerate(waivers.lines(record), 1)),
            )
        ]
        errors = int(bool(exchange.partial(record)))
        head = _attributes(name="run", tests="1", failures="0", errors=str(errors), skipped="0")
        first = [
            f"  <testsuite {head}>",
            "    <properties>",
            *(f"      {p}" for p in properties),
            "    </properties>",
            *(f"    {c}" for c in run),
            "  </testsuite>",
        ]
        total = _totals(rows)
        top = _attributes(
            name=exchange.title(record),
            tests=str(len(rows) + 1),
            failures=str(total["failures"]),
            errors=str(errors),
            skipped=str(total["skipped"]),
        )
        lines = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f"<testsuites {top}>",
            *first,
            *(line for suite in suites for line in suite),
            "</testsuites>",
        ]
        return "\n".join(lines) + "\n"


def _frozen(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The frozen plan and what was done otherwise, as properties."""
    frozen = record.get("frozen")
    if not frozen:
        return []
    told = (f"{what}: {planned} planned, {actual} run" for what, planned, actual in deviations(record))
    return [
        ("frozen plan", f"{frozen['frozen_at']}, SHA-256 {frozen['sha256']}"),
        *((f"deviation {i}", line) for i, line in enumerate(told, 1)),
    ]


def _models(record: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(str(f["model"]) for f in record.get("findings", ())))


def _totals(rows: Iterable[exchange.Row]) -> dict[str, int]:
    kinds = [_state(row) for row in rows]
    return {"failures": kinds.count("failure"), "skipped": kinds.count("skipped")}


def _state(row: exchange.Row) -> str:
    if row.counts:
        return "failure"
    return "" if row.verdict == "bounded" else "skipped"


def _suite(model: str, rows: list[exchange.Row], record: Mapping[str, Any]) -> list[str]:
    total = _totals(rows)
    head = _attributes(
        name=model,
        tests=str(len(rows)),
        failures=str(total["failures"]),
        errors="0",
        skipped=str(total["skipped"]),
    )
    cases = (
        f"    {_case(row.code, row.key, _result(row, record))}"
        for row in sorted(rows, key=lambda row: (row.key, row.id))
    )
    return [f"  <testsuite {head}>", *cases, "  </testsuite>"]


def _result(row: exchange.Row, record: Mapping[str, Any]) -> list[str]:
    detail = "\n".join(
        [
            row.sentence,
            *(words.sentence(note) for note in row.finding.get("notes") or ()),
            f"Look at it: audit show {words.run_name(record)} {row.id}",
        ]
    )
    state = _state(row)
    if state == "failure":
        return [_element("failure", row.sentence, detail, type=row.code)]
    if not state:
        return [_element("system-out", None, detail)]
    why = words.verdict(row.verdict, symbol=False)
    if row.waiver is not None:
        why = f"waived until {row.waiver['expires']} by {row.waiver['owner']}: {row.waiver['reason']}"
    return [_element("skipped", f"{words.sentence(why)} {row.sentence}")]


def _case(code: str, name: str, inner: list[str]) -> str:
    head = f"<testcase {_attributes(classname=code, name=name, time='0')}"
    return f"{head}/>" if not inner else f"{head}>{''.join(inner)}</testcase>"


def _element(tag: str, message: str | None, text: str = "", **more: str) -> str:
    attributes = _attributes(**({"message": message} if message is not None else {}), **more)
    head = f"<{tag} {attributes}" if attributes else f"<{tag}"
    return f"{head}>{escape(text)}</{tag}>" if text else f"{head}/>"


def _attributes(**values: str) -> str:
    return " ".join(f'{name}="{escape(str(value), newlines=False)}"' for name, value in values.items())


def escape(text: str, *, newlines: bool = True) -> str:
    r"""Text for an element or a quoted attribute; what XML cannot hold is made visible.

    Examples
    --------
    >>> escape('<a b="c">\x00')
    '&lt;a b=&quot;c&quot;&gt;⟨U+0000⟩'
    """
    text = _FORBIDDEN.sub(lambda m: f"⟨U+{ord(m.group()):04X}⟩", words.visible(text, newlines=newlines))
    for plain, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;")):
        text = text.replace(plain, entity)
    return text
