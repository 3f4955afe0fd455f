"""Files of other tools that hold answers: what is a row of them, and which of its fields say what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import jsonpath
import msgspec

from auditor.core import reading
from auditor.core.errors import ConfigError

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
PROMPTFOO = "$.results.results[*]"
TRACES = "$.resourceSpans[*].scopeSpans[*].spans[*]"  # OpenTelemetry
SAMPLES = "samples/"  # in an .eval file of inspect_ai; beside them stand summaries of the same
LONG = ("messages", "events", "store", "attachments", "model_usage", "testCase", "logprobs")  # no columns of answers


class Known(msgspec.Struct, frozen=True):
    """The names of ``embedded/import_columns.toml``, those that are looked for first in front."""

    roles: dict[str, tuple[str, ...]]
    attributes: tuple[str, ...]
    long: tuple[tuple[str, str], ...]
    original: tuple[str, ...]
    placebo: tuple[str, ...]
    favourable: tuple[str, ...]
    models: frozenset[str]
    true: frozenset[str]
    nobody: frozenset[str]


KNOWN = msgspec.toml.decode(reading.shipped("embedded", "import_columns.toml").read_bytes(), type=Known)


def rows(document: Json, path: str) -> list[dict[str, Json]]:
    """The objects at a JSON path."""
    try:
        matches = jsonpath.findall(path, document)
    except jsonpath.JSONPathError as error:
        raise ConfigError(f"--rows {path!r} is no JSON path: {error}") from None
    objects = [one for one in matches if isinstance(one, dict)]
    if not objects:
        raise ConfigError(f"--rows {path!r}: no objects there")
    return objects


def slim(row: Mapping[str, Json]) -> dict[str, Json]:
    """A row without whole conversations, with attributes of traces by their names."""
    return {name: _named(value) for name, value in row.items() if name not in LONG} | said_last(row) | output(row)


def path_of(document: Json) -> str:
    """Return the JSON path of the rows in a document of another tool; empty where it is not known."""
    if not isinstance(document, dict):
        return ""
    results = document.get("results")
    if isinstance(results, dict) and isinstance(results.get("results"), list) and results["results"]:
        return PROMPTFOO
    return TRACES if "resourceSpans" in document else ""


def output(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response of promptfoo with an output that is an object as JSON text, which is one answer."""
    response = row.get("response")
    output = response.get("output") if isinstance(response, dict) else None
    if not isinstance(response, dict) or not isinstance(output, dict | list):
        return {}
    return {"response": {**response, "output": json.dumps(output, ensure_ascii=False)}}


def said_last(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the model said last in a whole conversation, as a column."""
    messages = row.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if isinstance(last, dict) and last.get("role") == "assistant" and isinstance(last.get("content"), str):
        return {"last_message": last["content"]}
    return {}


def _named(value: Json) -> Json:
    """A list of ``{"key", "value"}`` as an object; anything else as it is."""
    pairs: dict[str, Json] = {}
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict) and one.keys() == {"key", "value"} and isinstance(one["key"], str):
            inner = one["value"]
            pairs[one["key"]] = next(iter(inner.values()), None) if isinstance(inner, dict) else inner
    return pairs if isinstance(value, list) and value and len(pairs) == len(value) else value
