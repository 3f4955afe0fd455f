"""The JSON Schema of ``run.json``, from the types that read it: ``docs/schema/run.schema.json``."""

from __future__ import annotations

import json

from auditor.core.record import Controls, RunRecord
from auditor.core.types import FORMAT_VERSION

ID = "urn:llm-bias-auditor:run:{version}"
ALWAYS = (
    "id", "format_version", "tool_version", "status", "status_reason", "spec", "provenance", "counts", "estimates",
    "controls", "findings", "diagnoses", "models",
)  # fmt: skip


def run_schema() -> dict[str, object]:
    """JSON Schema (draft 2020-12) of the run record.

    What a record holds beyond its types is allowed and not described: new entries come without a new
    ``format_version``.

    Examples
    --------
    >>> run_schema()["$defs"]["Estimate"]["required"]
    ['value', 'low', 'high', 'level', 'n', 'n_skipped', 'method']
    """
    import msgspec

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


def text() -> str:
    """The schema as the file holds it: a line for each definition and each entry of the record."""

    def lines(value: dict[str, object], *deep: str) -> str:
        told = (
            f"{json.dumps(k)}: {lines(v) if k in deep and isinstance(v, dict) else json.dumps(v, sort_keys=True)}"
            for k, v in sorted(value.items())
        )
        return "{\n" + ",\n".join(told) + "\n}"

    return lines(run_schema(), "$defs", "properties") + "\n"


def _control(kind: type) -> dict[str, object]:
    """Controls by name: figures, tests, declarations, reasons, or these by model."""
    if kind is Controls:
        return {"type": "object"}
    raise NotImplementedError
