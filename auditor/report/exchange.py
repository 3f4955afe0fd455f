"""A run for other programs: JUnit XML, SARIF, workflow commands, and its record as JSON in one canonical form."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import msgspec

from auditor.core import explain, waivers
from auditor.core.protocols import Renderer
from auditor.core.record import RunRecord
from auditor.report import run_checks, words
from auditor.report.cards import Card
from auditor.report.claimed import rows, title
from auditor.report.run_checks import deviations

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
                case = SubElement(suite, "testcase", _safe(classname=row.finding.code, name=row.key, time="0"))
                look = f"Look at it: audit show {words.run_name(record)} {row.finding.id}"
                detail = _legal("\n".join([row.sentence, *map(words.sentence, row.notes), look]))
                if (state := _state(row)) == "failure":
                    SubElement(case, state, _safe(message=row.sentence, type=row.finding.code)).text = detail
                elif not state:
                    SubElement(case, "system-out").text = detail
                else:
                    w, why = row.waiver, words.verdict(row.finding.verdict, symbol=False)
                    why = f"waived until {w.expires} by {w.owner}: {w.reason}" if w is not None else why
                    SubElement(case, state, _safe(message=f"{words.sentence(why)} {row.sentence}"))
        indent(top)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(top, encoding="unicode")}\n'


def _counted(name: str, states: list[str], tests: int) -> dict[str, str]:
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return _safe(name=name, tests=str(tests), **{key: str(states.count(kind)) for key, kind in kinds.items()})


def _state(row: Card) -> str:
    return "failure" if row.counts else "" if row.finding.verdict == "bounded" else "skipped"


def _safe(**values: str) -> dict[str, str]:
    return {name: _legal(value, newlines=False) for name, value in values.items()}


def _legal(text: str, *, newlines: bool = True) -> str:
    return _FORBIDDEN.sub(lambda m: f"⟨U+{ord(m.group()):04X}⟩", words.visible(text, newlines=newlines))


# -- SARIF ------------------------------------------------------------------------------------------------

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
KINDS = {"shown": "fail", "bounded": "pass", "not_determined": "open", "not_tested": "notApplicable"}


class SarifReport(Renderer):
    """One result for each finding, one rule for each code."""

    name = "sarif"
    suffix = ".sarif"

    def render(self, record: RunRecord, evidence: Any = None) -> str:
        """Write the log; ASCII only."""
        every, undecided = rows(record), run_checks.undecided(record)
        codes = list(dict.fromkeys(row.finding.code for row in every))
        seen: Counter[str] = Counter()
        version, rules = _plain(record.tool_version or "0"), []
        for code in codes:
            rule: dict[str, object] = {"id": _plain(code), "defaultConfiguration": {"level": "warning"}}
            if (known := explain.find(code)) is not None:
                help = {"text": f"{known.text}\n\nSee also: audit show {code}"}
                rule |= {
                    "shortDescription": {"text": known.title},
                    "fullDescription": {"text": known.text},
                    "help": help,
                }
            rules.append(rule)
        notes = [{"level": "error", "message": _message(undecided)}] if undecided else []
        notified = {"toolExecutionNotifications": notes} if notes else {}
        plan: dict[str, object] = {}
        if (frozen := record.frozen) is not None:
            names, done = ("what", "planned", "actual"), deviations(record)
            otherwise = [dict(zip(names, map(_plain, one), strict=True)) for one in done]
            plan = {"sha256": _plain(frozen.sha256), "frozenAt": _plain(frozen.frozen_at), "deviations": otherwise}
        waived = [msgspec.structs.asdict(item) for item in record.waivers.items]
        run = {
            "tool": {"driver": {"name": "llm-bias-auditor", "version": version, "rules": rules}},
            "invocations": [{"executionSuccessful": not undecided, **notified}],
            "automationDetails": {"id": f"llm-bias-audit/{_plain(record.id or 'run')}"},
            "columnKind": "unicodeCodePoints",
            "results": [_sarif(row, codes, seen) for row in every],
            "properties": {
                "task": _plain(record.spec.task or ""),
                **({"frozenPlan": plan} if plan else {}),
                "waivers": [{k: _plain(v) for k, v in item.items() if isinstance(v, str)} for item in waived],
            },
        }
        return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _sarif(row: Card, codes: list[str], seen: Counter[str]) -> dict[str, object]:
    f, rate = row.finding, row.finding.rate
    seen[row.key] += 1
    digest = hashlib.sha256(f"{row.key}\n{seen[row.key]}".encode("utf-8", "backslashreplace")).hexdigest()
    place = {"name": _plain(f.model), "fullyQualifiedName": _plain(row.key), "kind": "module"}
    # Code scanning wants a file: the record that the finding stands in.
    file = {"artifactLocation": {"uri": "run.json"}, "region": {"startLine": 1}}
    result: dict[str, object] = {
        "ruleId": _plain(f.code),
        "ruleIndex": codes.index(f.code),
        "kind": KINDS.get(f.verdict, "review"),
        "level": "warning" if f.verdict == "shown" else "none",
        "message": _message(" ".join([row.sentence, *map(words.sentence, row.notes)])),
        "locations": [{"physicalLocation": file, "logicalLocations": [place]}],
        "partialFingerprints": {"findingKey/v1": digest},
        "properties": {
            "finding": _plain(f.id),
            "verdict": f.verdict,
            "rate": rate and {name: getattr(rate, name) for name in ("value", "low", "high", "level", "n")},
            "p_adjusted": f.p_adjusted,
            "variants": [_plain(v) for v in f.exemplars],
        },
    }
    if row.waiver is not None:
        why = f"{row.waiver.reason} ({row.waiver.owner}, until {row.waiver.expires})"
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": _plain(why)}]
    return result


def _message(text: str) -> dict[str, str]:
    # Viewers read [text](link) and {0} in messages; §3.11.5 escapes both with a backslash or doubling.
    text = _plain(text).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return {"text": text.replace("{", "{{").replace("}", "}}")}


def _plain(text: object) -> str:
    return words.visible(str(text), newlines=False)


# -- GitHub Actions ---------------------------------------------------------------------------------------

MAX_ANNOTATIONS = 10  # GitHub shows no more of one kind for one step


def workflow_commands(record: RunRecord) -> list[str]:
    """Workflow commands: a warning for each finding that is shown and not waived, an error for an undecided run."""
    undecided = run_checks.undecided(record)
    lines = [_command("error", "Audit undecided", undecided)] if undecided else []
    shown = [row for row in rows(record) if row.counts]
    kept = shown if len(shown) <= MAX_ANNOTATIONS else shown[: MAX_ANNOTATIONS - 1]
    for row in kept:
        lines.append(_command("warning", f"{row.finding.code} {row.place}", f"{row.finding.id}: {row.sentence}"))
    if len(kept) < len(shown):
        left = words.plural(len(shown) - len(kept), "further finding")
        lines.append(_command("warning", "Further findings", f"{left}: see the job summary."))
    return lines


def _command(kind: str, title: str, message: str) -> str:
    """One workflow command, on one line whatever the texts hold."""
    title, message = (
        _plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A") for text in (title, message)
    )
    return f"::{kind} title={title.replace(':', '%3A').replace(',', '%2C')}::{message}"


# -- the record itself -------------------------------------------------------------------------------------


class JsonReport(Renderer):
    """The record on stdout: sorted keys, two spaces, ASCII only."""

    name = "json"
    suffix = ".json"

    def render(self, record: RunRecord, evidence: Any = None) -> str:
        """Write the record as JSON text that ends in a line break."""
        return to_json(record.raw)


def to_json(value: object) -> str:
    """Write data as JSON, as `JsonReport` does."""
    return json.dumps(value, sort_keys=True, allow_nan=False, indent=2) + "\n"
