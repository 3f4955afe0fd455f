"""Claims as records of Every Eval Ever, the exchange format of evaluation results (arXiv 2606.14516; schema 0.3.0)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from auditor.core.errors import ConfigError
from auditor.core.protocols import Renderer
from auditor.core.record import Asked, Claim, Plain, RunRecord, read

SCHEMA = "0.3.0"
MEASURED = {
    "net": "{scale} of {label}, {group} minus {reference}, in the same texts; 0: no difference.",
    "refusal": "{scale} of refusals, {group} minus {reference}, in the same texts; 0: no difference.",
    "instability": "{scale} of answers that change with the group, beyond placebo edits of the same texts.",
    "interaction": "What a joint change does to the {scale} of {label} beyond the sum of its parts; 0: nothing.",
}


class EveryEvalEver(Renderer):
    """JSON lines, a record for each model; every claim that has an estimate is a result in it.

    The format wants to know whether less is better. Of a difference, neither is: it says that less is, and the
    description that 0 means no difference.
    """

    name = "every-eval-ever.v1"
    suffix = ".every-eval-ever.jsonl"

    def render(self, record: Plain | RunRecord, evidence: Any = None) -> str:
        """Write the lines.

        Raises
        ------
        ConfigError
            A run of this kind makes no claims.
        """
        record = read(record)
        if record.claims is None:
            raise ConfigError("every-eval-ever holds claims, and this run makes no claims")
        return "".join(
            json.dumps(_one(record, name, asked), sort_keys=True, allow_nan=False) + "\n"
            for name, asked in record.models.items()
        )


def _one(record: RunRecord, model: str, asked: Asked) -> dict[str, object]:
    ended = record.provenance.ended or record.provenance.finished or record.provenance.started or ""
    stamp = str(int(datetime.fromisoformat(ended).timestamp())) if ended else "0"
    id = model.replace(":", "/")
    filled = record.responsible.fields if record.responsible else {}
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"auditor-{record.spec.task}/{id}/{stamp}",
        "evaluation_timestamp": record.provenance.started or ended,
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": "LLM bias auditor",
            "source_type": "evaluation_run",
            "source_organization_name": filled.get("organisation") or "not stated",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "llm-bias-auditor",
            "version": record.tool_version or "unknown",
            "additional_details": {"run": record.id or "", "status": record.status},
        },
        "model_info": {
            "name": model,
            "id": id,
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "fingerprint": asked.fingerprint or "",
                "reported": ", ".join(asked.reported),
            },
        },
        "evaluation_results": [
            _result(record, claim)
            for claim in record.claims or ()
            if claim.model == model and claim.estimate is not None
        ],
    }


def _result(record: RunRecord, claim: Claim) -> dict[str, object]:
    group, reference = (*claim.groups, "", "")[:2]
    between = f"{claim.attribute}: {group}/{reference}" if group else claim.attribute
    seeds = record.provenance.seeds
    bounded = claim.scale == "share" and claim.family != "interaction"
    interval = {"lower": claim.low, "upper": claim.high, "confidence_level": 0.95}
    told = MEASURED[claim.family].format(
        scale=claim.scale.replace("_", " "), label=claim.label or "the answer", group=group, reference=reference
    )
    return {
        "evaluation_name": " ".join(part for part in (claim.family, between, claim.label) if part),
        "source_data": {
            "dataset_name": seeds.source or f"embedded texts of {record.spec.task}",
            "source_type": "other",
            "additional_details": _strings({"sha256": seeds.sha256, "texts": seeds.n}),
        },
        "metric_config": {
            "evaluation_description": told[0].upper() + told[1:],
            "lower_is_better": True,
            "score_type": "continuous",
            "min_score": -1.0 if bounded else "-Infinity",
            "max_score": 1.0 if bounded else "Infinity",
        },
        "score_details": {
            "score": claim.estimate,
            "details": _strings(
                {
                    "verdict": claim.verdict,
                    "why": claim.why,
                    "words": claim.words,
                    "format": claim.format,
                    "estimate for these words": claim.words_estimate,
                    "low for these words": claim.words_low,
                    "high for these words": claim.words_high,
                    "p adjusted": claim.p_adjusted,
                }
            ),
            "uncertainty": {"num_samples": claim.texts}
            | ({} if claim.low is None or claim.high is None else {"confidence_interval": interval}),
        },
    }


def _strings(values: Mapping[str, object]) -> dict[str, str]:
    """What is known, as the format's further details must be: text."""
    return {name: str(value) for name, value in values.items() if value not in (None, "")}
