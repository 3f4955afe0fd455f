"""A legal page as data."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from auditor.report.compliance_page import Page

FORMAT = "legal-page.v1"


def to_json(page: Page) -> str:
    """The page as data, ASCII only; what nobody filled in is null."""
    return json.dumps(plain(page), indent=2, sort_keys=True, allow_nan=False, default=str) + "\n"


def plain(page: Page) -> dict[str, Any]:
    """The page as plain data."""
    framework = page.framework
    return {
        "format": FORMAT,
        "framework": {
            key: value
            for key, value in asdict(framework).items()
            if key not in ("clauses", "grounds", "fields")
        },
        "report": page.report,
        "kind": page.kind,
        "record_sha256": page.record_sha256,
        "status": dict(page.status),
        "fields": {e.key: e.value for e in page.form.fields},
        "measures": [
            {e.key: e.value for e in line} for line in page.form.measures if any(e.value for e in line)
        ],
        "signature": {e.key: e.value for e in page.form.signature},
        "to_be_filled_in": list(page.form.missing),
        "not_tested": list(page.untested),
        "claims": [asdict(c) for c in (*page.claims, *page.more_claims)],
        "delta": page.delta,
        "plan": dict(page.plan),
        "deviations": [dict(zip(("what", "planned", "actual"), d, strict=True)) for d in page.deviations],
        "materials": dict(page.materials),
        "words": [asdict(w) for w in page.written],
        "accuracy": [asdict(a) for a in page.accuracy],
        "grounds": [asdict(g) for g in page.grounds],
        "controls": [asdict(g) for g in page.gates],
        "impact": page.outcomes.raw["ll144"] if page.outcomes is not None else None,
        "clauses": [
            {
                "ref": c.clause.ref,
                "asks": c.clause.asks,
                "level": c.level,
                "gives": c.clause.gives,
                "lacking": list(c.lacking),
                "sections": list(c.sections),
                "read": c.clause.read,
                "source": c.source,
                "consulted": c.consulted,
            }
            for c in page.crossings
        ],
        "says": list(page.says),
        "limits": list(page.limits),
        "hashes": dict(page.hashes),
    }
