"""Findings as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from auditor.core import explain
from auditor.core.protocols import Renderer
from auditor.core.record import Plain, RunRecord, read
from auditor.core.types import Estimate
from auditor.report import exchange, words
from auditor.report.planned import deviations

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
KINDS = {
    "shown": "fail",
    "shown_for_words": "review",
    "bounded": "pass",
    "not_determined": "open",
    "not_tested": "notApplicable",
}


class SarifReport(Renderer):
    """One result for each finding, one rule for each code.

    ``kind`` follows the verdict: shown is ``fail`` (level ``warning``), shown for these words
    ``review``, bounded ``pass``, not determined
    ``open``, not tested ``notApplicable``. A waiver is an accepted suppression. Results are told apart across
    runs by the finding's key (``partialFingerprints``).

    References
    ----------
    Static Analysis Results Interchange Format (SARIF) Version 2.1.0, OASIS Standard, 2020, §3.27.
    """

    name = "sarif.v1"
    suffix = ".sarif"

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> str:
        """Write the log; ASCII only."""
        record = read(record)
        rows = exchange.rows(record)
        codes = list(dict.fromkeys(row.code for row in rows))
        seen: dict[str, int] = {}
        results = [_result(row, codes, seen) for row in rows]
        partial = exchange.partial(record)
        run = {
            "tool": {
                "driver": {
                    "name": "llm-bias-auditor",
                    "version": _plain(record.tool_version or "0"),
                    "rules": [_rule(code) for code in codes],
                }
            },
            "invocations": [
                {
                    "executionSuccessful": not partial,
                    **(
                        {"toolExecutionNotifications": [{"level": "error", "message": _message(partial)}]}
                        if partial
                        else {}
                    ),
                }
            ],
            "automationDetails": {"id": f"llm-bias-audit/{_plain(record.id or 'run')}"},
            "columnKind": "unicodeCodePoints",
            "results": results,
            "properties": {
                "task": _plain(record.spec.task or ""),
                **_frozen(record),
                "waivers": [
                    {k: _plain(v) for k, v in msgspec.structs.asdict(item).items() if isinstance(v, str)}
                    for item in record.waivers.items
                ],
            },
        }
        return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _frozen(record: RunRecord) -> dict[str, object]:
    """The frozen plan and what was done otherwise."""
    frozen = record.frozen
    if not frozen:
        return {}
    told = [
        {"what": _plain(what), "planned": _plain(planned), "actual": _plain(actual)}
        for what, planned, actual in deviations(record)
    ]
    return {"frozenPlan": {"sha256": _plain(frozen.sha256), "frozenAt": _plain(frozen.frozen_at), "deviations": told}}


def _rule(code: str) -> dict[str, object]:
    told = explain.find(code)
    out: dict[str, object] = {"id": _plain(code), "defaultConfiguration": {"level": "warning"}}
    if told is not None:
        out |= {
            "shortDescription": {"text": told.title},
            "fullDescription": {"text": told.text},
            "help": {"text": f"{told.text}\n\nSee also: audit explain {code}"},
        }
    return out


def _result(row: exchange.Row, codes: list[str], seen: dict[str, int]) -> dict[str, object]:
    seen[row.key] = seen.get(row.key, 0) + 1
    digest = hashlib.sha256(f"{row.key}\n{seen[row.key]}".encode("utf-8", "backslashreplace")).hexdigest()
    f = row.finding
    result: dict[str, object] = {
        "ruleId": _plain(row.code),
        "ruleIndex": codes.index(row.code),
        "kind": KINDS.get(row.verdict, "review"),
        "level": "warning" if row.verdict == "shown" else "none",
        "message": _message(" ".join([row.sentence, *(words.sentence(n) for n in f.notes)])),
        "locations": [
            {
                # Code scanning wants a file: the record that the finding stands in.
                "physicalLocation": {"artifactLocation": {"uri": "run.json"}, "region": {"startLine": 1}},
                "logicalLocations": [
                    {"name": _plain(row.model), "fullyQualifiedName": _plain(row.key), "kind": "module"}
                ],
            }
        ],
        "partialFingerprints": {"findingKey/v1": digest},
        "properties": {
            "finding": _plain(row.id),
            "verdict": row.verdict,
            "rate": _figures(f.rate),
            "p_adjusted": f.p_adjusted,
            "variants": [_plain(v) for v in f.exemplars],
        },
    }
    if row.waiver is not None:
        why = f"{row.waiver.reason} ({row.waiver.owner}, until {row.waiver.expires})"
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": _plain(why)}]
    return result


def _figures(rate: Estimate | None) -> dict[str, float] | None:
    if rate is None:
        return None
    return {"value": rate.value, "low": rate.low, "high": rate.high, "level": rate.level, "n": rate.n}


def _message(text: str) -> dict[str, str]:
    # Viewers read [text](link) and {0} in messages; §3.11.5 escapes both with a backslash or doubling.
    text = _plain(text).replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return {"text": text.replace("{", "{{").replace("}", "}}")}


def _plain(text: object) -> str:
    return words.visible(str(text), newlines=False)
