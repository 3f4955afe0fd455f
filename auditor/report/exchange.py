"""A run for other programs: JUnit XML, workflow commands, and its record as JSON in one canonical form."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import msgspec

from auditor.core import waivers
from auditor.core.protocols import Renderer
from auditor.core.record import Controls, RunRecord
from auditor.core.types import FORMAT_VERSION
from auditor.report import run_checks, words
from auditor.report.claimed import Row, rows, title
from auditor.report.planned import deviations

# -- JUnit ------------------------------------------------------------------------------------------------

# XML 1.0 has no way to write these; `words.visible` leaves the noncharacters.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JunitReport(Renderer):
    """One test suite for each model, one test case for each finding.

    A finding that is shown is a failure, unless it is waived (skipped, with the waiver). What is not determined or was
    not tested is skipped, with the reason: neither good nor bad. What is bounded is a case without failure. A run that
    is partial or cannot be judged (`auditor.core.verdict`) is an error of its own.
    """

    name = "junit"
    suffix = ".xml"

    def render(self, record: RunRecord, evidence: Any = None) -> str:
        """Write the document."""
        every, undecided = rows(record), run_checks.undecided(record)
        ended = ["error"] if undecided else []
        top = Element("testsuites", _counted(title(record), [*map(_state, every), *ended], len(every) + 1))
        run = SubElement(top, "testsuite", _counted("run", ended, 1))
        properties = SubElement(run, "properties")
        for name, value in (
            ("run", str(record.id)),
            ("tool_version", str(record.tool_version)),
            *([("frozen plan", f"{p.frozen_at}, SHA-256 {p.sha256}")] if (p := record.frozen) else []),
            *((f"deviation {i}", f"{d[0]}: {d[1]} planned, {d[2]} run") for i, d in enumerate(deviations(record), 1)),
            *((f"waiver {i}", line) for i, line in enumerate(waivers.lines(record), 1)),
        ):
            SubElement(properties, "property", _safe(name=name, value=value))
        judged = SubElement(run, "testcase", _safe(classname="run", name="judged", time="0"))
        if undecided:
            SubElement(judged, "error", _safe(message=undecided))
        for model in dict.fromkeys(row.finding.model for row in every):
            mine = sorted((r for r in every if r.finding.model == model), key=lambda r: (r.key, r.finding.id))
            suite = SubElement(top, "testsuite", _counted(model, [_state(row) for row in mine], len(mine)))
            for row in mine:
                _result(
                    SubElement(suite, "testcase", _safe(classname=row.finding.code, name=row.key, time="0")),
                    row,
                    record,
                )
        indent(top)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(top, encoding="unicode")}\n'


def _counted(name: str, states: list[str], tests: int) -> dict[str, str]:
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return _safe(name=name, tests=str(tests), **{key: str(states.count(kind)) for key, kind in kinds.items()})


def _state(row: Row) -> str:
    if row.finding.verdict == "shown" and row.waiver is None:
        return "failure"
    return "" if row.finding.verdict == "bounded" else "skipped"


def _result(case: Element, row: Row, record: RunRecord) -> None:
    f, state = row.finding, _state(row)
    look = f"Look at it: audit show {words.run_name(record)} {f.id}"
    detail = _legal("\n".join([row.sentence, *map(words.sentence, row.notes), look]))
    if state == "failure":
        SubElement(case, state, _safe(message=row.sentence, type=f.code)).text = detail
    elif not state:
        SubElement(case, "system-out").text = detail
    else:
        why = f"waived {row.waived}" if row.waiver is not None else words.verdict(f.verdict, symbol=False)
        SubElement(case, state, _safe(message=f"{words.sentence(why)} {row.sentence}"))


def _safe(**values: str) -> dict[str, str]:
    return {name: _legal(value, newlines=False) for name, value in values.items()}


def _legal(text: str, *, newlines: bool = True) -> str:
    """Text that XML can hold."""
    return _FORBIDDEN.sub(lambda m: f"⟨U+{ord(m.group()):04X}⟩", words.visible(text, newlines=newlines))


# -- GitHub Actions ---------------------------------------------------------------------------------------

MAX_ANNOTATIONS = 10  # GitHub shows no more of one kind for one step


def workflow_commands(record: RunRecord) -> list[str]:
    """Workflow commands: a warning for each finding that is shown and not waived, an error for an undecided run.

    Examples
    --------
    >>> workflow_commands(RunRecord(status="partial", status_reason="Interrupted."))
    ['::error title=Audit undecided::Partial run: Interrupted. The figures cover what was answered until then.']
    """
    undecided = run_checks.undecided(record)
    lines = [_command("error", "Audit undecided", undecided)] if undecided else []
    shown = [row for row in rows(record) if row.finding.verdict == "shown" and row.waiver is None]
    kept = shown if len(shown) <= MAX_ANNOTATIONS else shown[: MAX_ANNOTATIONS - 1]
    for row in kept:
        lines.append(_command("warning", f"{row.finding.code} {row.place}", f"{row.finding.id}: {row.sentence}"))
    if len(kept) < len(shown):
        left = words.plural(len(shown) - len(kept), "further finding")
        lines.append(_command("warning", "Further findings", f"{left}: see the job summary."))
    return lines


def _plain(text: object) -> str:
    return words.visible(str(text), newlines=False)


def _command(kind: str, title: str, message: str) -> str:
    """One workflow command, on one line whatever the texts hold."""
    title, message = (
        _plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A") for text in (title, message)
    )
    return f"::{kind} title={title.replace(':', '%3A').replace(',', '%2C')}::{message}"


# -- the record itself, and its schema (docs/reference/schema/run.schema.json) ---------------------------------------

ID = "urn:llm-bias-auditor:run:{version}"
ALWAYS = (
    "id", "format_version", "tool_version", "status", "status_reason", "spec", "provenance", "counts", "estimates",
    "controls", "findings", "diagnoses", "models",
)  # fmt: skip


class JsonReport(Renderer):
    r"""The record on stdout: sorted keys, two spaces, ASCII only.

    Non-ASCII characters and controls are escaped, so that no text from a model acts on a terminal.

    Examples
    --------
    >>> print(JsonReport().render(RunRecord(raw={"b": 1, "a": "é"})), end="")
    {
      "a": "\u00e9",
      "b": 1
    }
    """

    name = "json"
    suffix = ".json"

    def render(self, record: RunRecord, evidence: Any = None) -> str:
        """Write the record as JSON text that ends in a line break.

        Raises
        ------
        ValueError
            A number is not finite: missing values are null with a reason.
        """
        return to_json(record.raw)


def to_json(value: object) -> str:
    """Write data as JSON, as `JsonReport` does."""
    return json.dumps(value, sort_keys=True, allow_nan=False, indent=2) + "\n"


def run_schema() -> dict[str, object]:
    """JSON Schema (draft 2020-12) of the run record.

    What a record holds beyond its types is allowed and not described: new entries come without a new
    ``format_version``.

    Examples
    --------
    >>> run_schema()["$defs"]["Estimate"]["required"]
    ['value', 'low', 'high', 'level', 'n', 'n_skipped', 'method']
    """
    _, defs = msgspec.json.schema_components([RunRecord], schema_hook=_control, ref_template="#/$defs/{name}")
    record = defs.pop("RunRecord")
    del record["properties"]["raw"]
    record["properties"]["format_version"] = {"const": FORMAT_VERSION}
    record["required"] = sorted(ALWAYS)
    defs["Estimate"]["properties"]["level"] |= {"exclusiveMinimum": 0, "exclusiveMaximum": 1}
    for name in ("n", "n_skipped"):
        defs["Estimate"]["properties"][name] |= {"minimum": 0}
    made: dict[str, object] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID.format(version=FORMAT_VERSION),
        **record,
        "$defs": defs,
        "title": "Run record of the LLM bias auditor",
    }
    return made


def schema_text() -> str:
    """The schema as the file holds it: a line for each definition and each entry of the record."""

    def lines(value: dict[str, object], *deep: str) -> str:
        entries = (
            f"{json.dumps(k)}: {lines(v) if k in deep and isinstance(v, dict) else json.dumps(v, sort_keys=True)}"
            for k, v in sorted(value.items())
        )
        return "{\n" + ",\n".join(entries) + "\n}"

    return lines(run_schema(), "$defs", "properties") + "\n"


def _control(kind: type) -> dict[str, object]:
    """Controls by name: figures, tests, declarations, reasons, or these by model."""
    if kind is Controls:
        return {"type": "object"}
    raise NotImplementedError
