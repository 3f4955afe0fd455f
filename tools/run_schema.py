"""JSON Schema of the run record: ``python tools/run_schema.py > docs/reference/schema/run.schema.json``."""

from __future__ import annotations

import json

import msgspec

from auditor.core.record import Controls, RunRecord
from auditor.core.types import FORMAT_VERSION

ID = "urn:llm-bias-auditor:run:{version}"
ALWAYS = (
    "id", "format_version", "tool_version", "status", "status_reason", "spec", "provenance", "counts", "estimates",
    "controls", "findings", "diagnoses", "models",
)  # fmt: skip


def run_schema() -> dict[str, object]:
    """JSON Schema (draft 2020-12) of the run record."""
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


if __name__ == "__main__":
    print(schema_text(), end="")
