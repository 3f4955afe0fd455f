"""The JSON Schema of ``run.json``, from the types themselves: ``docs/schema/run.schema.json``."""

from __future__ import annotations

import json
from typing import Any

from auditor.core.types import FORMAT_VERSION, Estimate, Run
from auditor.measure.cautions import Caution

ID = "urn:llm-bias-auditor:run:{version}"


def run_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the run record.

    Made from `auditor.core.types.Run`. What a record holds beyond it (``performance``, ``tokens``, ``tabular``,
    ``journal``, …) is allowed and not described: new entries come without a new ``format_version``.

    Examples
    --------
    >>> sorted(run_schema()["$defs"])
    ['Caution', 'Diagnosis', 'Estimate', 'Finding', 'NamedEstimate', 'Waiver']
    """
    from pydantic import TypeAdapter

    schema = TypeAdapter(Run).json_schema(ref_template="#/$defs/{model}")
    defs = schema.setdefault("$defs", {})
    defs["Estimate"] = _no_defs(TypeAdapter(Estimate).json_schema(ref_template="#/$defs/{model}"))
    defs["Caution"] = _no_defs(TypeAdapter(Caution).json_schema(ref_template="#/$defs/{model}"))
    defs["NamedEstimate"] = _named()
    defs["Waiver"] = _waiver()
    properties = schema["properties"]
    properties["estimates"] = {"type": "array", "items": {"$ref": "#/$defs/NamedEstimate"}}
    properties["cautions"] = {"type": "array", "items": {"$ref": "#/$defs/Caution"}}
    properties["format_version"] = {"const": FORMAT_VERSION}
    properties["waivers"] = {
        "type": "object",
        "required": ["source", "date", "items"],
        "properties": {
            "source": {"type": "string"},
            "date": {"type": "string", "format": "date"},
            "items": {"type": "array", "items": {"$ref": "#/$defs/Waiver"}},
        },
    }
    schema["required"] = sorted(
        {*schema["required"], "findings", "diagnoses", "models", "format_version", "tool_version"}
    )
    _shares(defs["Estimate"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID.format(version=FORMAT_VERSION),
        **_tidy(schema),
        "title": "Run record of the LLM bias auditor",
    }


def text() -> str:
    """The schema as the file holds it."""
    return json.dumps(run_schema(), indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def _no_defs(schema: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in schema.items() if k != "$defs"}


def _shares(estimate: dict[str, Any]) -> None:
    estimate["properties"]["level"] |= {"exclusiveMinimum": 0, "exclusiveMaximum": 1}
    for name in ("n", "n_skipped"):
        estimate["properties"][name] |= {"minimum": 0}


def _named() -> dict[str, Any]:
    step = {"type": "array", "prefixItems": [{"type": "string"}] * 3, "minItems": 3, "maxItems": 3}
    missing = {
        "type": "object",
        "required": ["status", "reason"],
        "properties": {"status": {"const": "not_tested"}, "reason": {"type": "string"}},
    }
    return {
        "type": "object",
        "description": "One estimate and what it is about; docs/architecture.md lists the names.",
        "required": ["name", "model", "format", "attributes", "directions", "kind", "estimate"],
        "properties": {
            "name": {"type": "string"},
            "arm": {"enum": ["edited", "placebo", "baseline"]},
            "model": {"type": "string"},
            "format": {"type": "string"},
            "attributes": {"type": "array", "items": {"type": "string"}},
            "directions": {"anyOf": [{"type": "array", "items": step}, {"type": "null"}]},
            "kind": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "estimate": {"anyOf": [{"$ref": "#/$defs/Estimate"}, missing]},
            "population": {"type": "string"},
        },
    }


def _waiver() -> dict[str, Any]:
    names = ("finding", "reason", "owner", "expires", "status")
    properties: dict[str, Any] = {name: {"type": "string"} for name in names}
    properties["status"] = {"enum": ["active", "expired", "unmatched"]}
    properties["expires"] = {"type": "string", "format": "date"}
    properties["run"] = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    properties["line"] = {"type": "integer", "minimum": 0}
    properties["findings"] = {"type": "array", "items": {"type": "string"}}
    return {"type": "object", "required": [*names, "findings"], "properties": properties}


def _tidy(value: Any) -> Any:
    """Without generated titles, with descriptions on one line."""
    if isinstance(value, dict):
        kept = {k: _tidy(v) for k, v in value.items() if not (k == "title" and isinstance(v, str))}
        if isinstance(kept.get("description"), str):
            kept["description"] = " ".join(kept["description"].replace("``", "").split())
        return kept
    return [_tidy(v) for v in value] if isinstance(value, list) else value
