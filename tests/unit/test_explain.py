"""Every code that a record can hold has a page in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from commands import Capture, said

from auditor import audit
from auditor.core import errors, explain, types
from auditor.core.errors import CallError
from auditor.core.protocols import CHECKS
from auditor.measure import comparison, findings
from auditor.store.folder import RunFolder

LITERALS = {
    *get_args(types.ClaimVerdict),
    *get_args(types.Outcome),
    *get_args(types.AnswerStatus),
    *get_args(types.EditKind),
    *get_args(types.Sampling),
    *get_args(comparison.Change),
    *get_args(comparison.Fate),
    "claim", "hidden", "violation", "complete", "partial", "mixed", "active", "expired", "unmatched",
}  # fmt: skip
CODES = {
    findings.ATOMIC, findings.JOINT, findings.HIDDEN, *findings.CODES.values(), findings.SCORE, "tabular-finds",
}  # fmt: skip
SCORES = {"causal", "group", "apparent_causal", "apparent_group", "discriminatory_share"}
CALLS = {c.code for c in vars(errors).values() if isinstance(c, type) and issubclass(c, CallError)}
OWN = {vars(CHECKS.load(name))["name"] for name in CHECKS.names() if CHECKS.is_own(name)}


def test_every_code_has_a_page_of_its_own() -> None:
    codes = sorted(LITERALS | CODES | SCORES | CALLS | OWN)
    assert [page and page.code for page in map(explain.find, codes)] == codes


def codes_of(record: dict[str, Any], verdicts: Any, cases: Any) -> set[str]:
    out = {record["status"]} | {e["name"] for e in record["estimates"]}
    out |= {e["kind"] for e in record["estimates"] if e["kind"]}
    for finding in record["findings"]:
        out |= {finding["code"], finding["kind"], finding["verdict"]}
    for verdict in verdicts:
        out |= {verdict.outcome, verdict.reason}
    for case, checks in cases:
        out |= {case.sampling} | {e.kind for v in case.variants for e in v.edits}
        out |= {c.reason for c in checks.values()} | {c.check for c in checks.values()}
    return out - {""}


def test_every_code_of_a_real_run_has_a_page(tmp_path: Path) -> None:
    def wobbly(text: str) -> str:
        return ["positive", "negative", "I cannot say", ""][sum(map(ord, text)) % 4]

    result = audit("sentiment", model=wobbly, limit=8, out=tmp_path)
    assert result.path is not None
    found = codes_of(result.record, result.verdicts, RunFolder.open(result.path).cases())
    assert len(found) > 25
    assert {code for code in found if explain.find(code) is None} == set()
    assert {name for name in result.record["controls"] if explain.find(name) is None} == set()


def test_the_command(capsys: Capture) -> None:
    assert said(capsys, "show hid201")[1].startswith("HID201 — ")
    for name, code in (("codes", 0), ("MUT110", 2)):
        ended, told = said(capsys, f"show {name}")
        assert (ended, "MUT101" in told) == (code, True)
