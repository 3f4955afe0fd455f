"""``run.json`` as a report of its own, in one canonical form, and its JSON Schema (``docs/schema/run.schema.json``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from auditor.core.protocols import Renderer
from auditor.core.record import Controls, RunRecord
from auditor.core.types import FORMAT_VERSION

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
    >>> print(JsonReport().render({"b": 1, "a": "é"}), end="")
    {
      "a": "\u00e9",
      "b": 1
    }
    """

    name = "json.v1"
    suffix = ".json"

    def render(self, record: Mapping[str, object], evidence: Any = None) -> str:
        """Write the record as JSON text that ends in a line break.

        Raises
        ------
        ValueError
            A number is not finite: missing values are null with a reason.
        """
        return json.dumps(record, sort_keys=True, allow_nan=False, indent=2, default=_plain) + "\n"


def _plain(value: object) -> dict[object, object]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not plain data")


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
