"""A run as a test result of AI Verify: the fields that its published schema names, our figures inside ``output``."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from auditor.core.errors import ConfigError
from auditor.core.protocols import Renderer
from auditor.core.record import Plain, RunRecord, read
from auditor.core.types import Estimate
from auditor.report import compliance_facts as facts
from auditor.report import compliance_frameworks as frameworks
from auditor.report import compliance_view as work

HOSTED = ("openai", "langchain", "http")


class AiVerifyJson(Renderer):
    """``--format ai-verify-json``.

    The schema (`common/schemas/aiverify.testresult.schema.json` in the foundation's repository) asks for ``gid``,
    ``cid``, ``start_time``, ``time_taken``, ``test_arguments`` and ``output``, and leaves ``output`` to each test.
    It has no place for intervals or for what was not tested: both stand in ``output``.
    """

    name = "ai-verify-json.v1"
    suffix = ".ai-verify.json"

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> str:
        """Write the test result as JSON, ASCII only.

        Raises
        ------
        ConfigError
            The record is of ``audit ll144``: no model was tested.
        """
        record = read(record)
        if facts.kind_of(record) == "outcomes":
            raise ConfigError("--format ai-verify-json needs a run of a model; outcomes of people are no test of one")
        return json.dumps(result(record), indent=2, sort_keys=True, allow_nan=False) + "\n"


def result(record: RunRecord) -> dict[str, object]:
    """The test result as plain data."""
    spec, provenance = record.spec, record.provenance
    kind = facts.kind_of(record)
    claims = facts.claims(record, "label")
    by_id = {f.id: f for f in record.findings}
    crossings = frameworks.cross(frameworks.load("ai-verify"), work.facts(record, None), work.absent(record, None))
    models = list(record.models or spec.models)
    return {
        "gid": "llm-bias-auditor",
        "cid": "counterfactual-rows" if kind == "rows" else "counterfactual-texts",
        "version": record.tool_version or "0",
        "start_time": provenance.started or "",
        "time_taken": provenance.seconds or 0.0,
        "test_arguments": {
            "testDataset": _dataset(record),
            "mode": "api" if any(m.split(":")[0] in HOSTED for m in models) else "upload",
            "modelType": "regression" if spec.kind == "score" else "classification",
            "algorithmArgs": record.raw.get("spec") or {},
        },
        "output": {
            "run": record.id,
            "status": record.status,
            "models": models,
            "claims": [
                {
                    "id": c.id,
                    "model": c.model,
                    "attributes": list(by_id[c.id].attributes),
                    "directions": [list(d) for d in by_id[c.id].directions],
                    "verdict": c.verdict,
                    "rate": _rate(by_id[c.id].rate),
                    "p_adjusted": by_id[c.id].p_adjusted,
                }
                for c in claims
            ],
            "hidden": [
                {"id": f.id, "model": f.model, "attributes": list(f.attributes), "verdict": f.verdict}
                for f in record.findings
                if f.kind == "hidden"
            ],
            "gates": [{"name": g.name, "state": g.state, "result": g.result} for g in facts.gates(record)],
            "deviations": [dict(zip(("what", "planned", "actual"), d, strict=True)) for d in work.deviations(record)],
            "not_tested": list(work.untested(record, None)),
            "checklist": [{"item": c.clause.ref, "level": c.level, "lacking": list(c.lacking)} for c in crossings],
            "hashes": dict(work.hashes(record)),
        },
        "artifacts": ["report.ai-verify.html"],
    }


def _rate(rate: Estimate | None) -> dict[str, object] | None:
    return None if rate is None else dataclasses.asdict(rate)


def _dataset(record: RunRecord) -> str:
    """The texts or rows as a URI: by hash where it is known."""
    seeds = record.provenance.seeds
    if seeds.sha256:
        return f"urn:sha256:{seeds.sha256}"
    if facts.kind_of(record) == "rows":
        return f"urn:sha256:{record.rows.schema.sha256}"
    return f"urn:llm-bias-auditor:run:{record.id or 'unknown'}"
