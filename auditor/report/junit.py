"""Findings as JUnit XML, for what shows test results in a build."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from auditor.core import waivers
from auditor.core.protocols import Renderer
from auditor.core.record import Plain, RunRecord, read
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

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> str:
        """Write the document."""
        record = read(record)
        rows = exchange.rows(record)
        partial = exchange.partial(record)
        states = [*map(_state, rows), *(["error"] if partial else [])]
        top = Element("testsuites", _counted(exchange.title(record), len(rows) + 1, states))
        run = SubElement(top, "testsuite", _counted("run", 1, ["error"] if partial else []))
        properties = SubElement(run, "properties")
        for name, value in (
            ("run", str(record.id)),
            ("tool_version", str(record.tool_version)),
            *_frozen(record),
            *((f"waiver {i}", line) for i, line in enumerate(waivers.lines(record), 1)),
        ):
            SubElement(properties, "property", _safe(name=name, value=value))
        complete = SubElement(run, "testcase", _safe(classname="run", name="complete", time="0"))
        if partial:
            SubElement(complete, "error", _safe(message=partial))
        for model in dict.fromkeys(row.model for row in rows):
            mine = sorted((row for row in rows if row.model == model), key=lambda row: (row.key, row.id))
            suite = SubElement(top, "testsuite", _counted(model, len(mine), [_state(row) for row in mine]))
            for row in mine:
                case = SubElement(suite, "testcase", _safe(classname=row.code, name=row.key, time="0"))
                _result(case, row, record)
        indent(top)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(top, encoding="unicode")}\n'


def _frozen(record: RunRecord) -> list[tuple[str, str]]:
    """The frozen plan and what was done otherwise, as properties."""
    frozen = record.frozen
    if not frozen:
        return []
    told = (f"{what}: {planned} planned, {actual} run" for what, planned, actual in deviations(record))
    return [
        ("frozen plan", f"{frozen.frozen_at}, SHA-256 {frozen.sha256}"),
        *((f"deviation {i}", line) for i, line in enumerate(told, 1)),
    ]


def _counted(name: str, tests: int, states: Iterable[str]) -> dict[str, str]:
    found = list(states)
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return _safe(name=name, tests=str(tests), **{key: str(found.count(kind)) for key, kind in kinds.items()})


def _state(row: exchange.Row) -> str:
    if row.counts:
        return "failure"
    return "" if row.verdict == "bounded" else "skipped"


def _result(case: Element, row: exchange.Row, record: RunRecord) -> None:
    detail = "\n".join(
        [
            row.sentence,
            *(words.sentence(note) for note in row.finding.notes),
            f"Look at it: audit show {words.run_name(record)} {row.id}",
        ]
    )
    state = _state(row)
    if state == "failure":
        SubElement(case, state, _safe(message=row.sentence, type=row.code)).text = visible(detail)
    elif not state:
        SubElement(case, "system-out").text = visible(detail)
    else:
        why = words.verdict(row.verdict, symbol=False)
        if row.waiver is not None:
            why = f"waived until {row.waiver.expires} by {row.waiver.owner}: {row.waiver.reason}"
        SubElement(case, state, _safe(message=f"{words.sentence(why)} {row.sentence}"))


def _safe(**values: str) -> dict[str, str]:
    return {name: visible(value, newlines=False) for name, value in values.items()}


def visible(text: str, *, newlines: bool = True) -> str:
    r"""Text that XML can hold.

    Examples
    --------
    >>> visible("a\x00")
    'a⟨U+0000⟩'
    """
    return _FORBIDDEN.sub(lambda m: f"⟨U+{ord(m.group()):04X}⟩", words.visible(text, newlines=newlines))
