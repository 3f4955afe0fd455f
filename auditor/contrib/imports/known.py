"""Files of other tools that hold answers: what is a row of them, and which of its fields say what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import jsonpath

from auditor.core.errors import ConfigError

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
TRACES = "$.resourceSpans[*].scopeSpans[*].spans[*]"  # OpenTelemetry
SAMPLES = "samples/"  # in an .eval file of inspect_ai; beside them stand summaries of the same
LONG = ("messages", "events", "store", "attachments", "model_usage", "testCase", "logprobs")  # no columns of answers


def rows(document: Json, path: str) -> list[dict[str, Json]]:
    """The objects at a JSON path.

    Raises
    ------
    ConfigError
        It is no path, or nothing is there.

    Examples
    --------
    >>> rows({"runs": [{"a": 1}, {"a": 2}]}, "$.runs[*]")
    [{'a': 1}, {'a': 2}]
    """
    try:
        matches = jsonpath.findall(path, document)
    except jsonpath.JSONPathError as error:
        raise ConfigError(f"--rows {path!r} is no JSON path: {error}") from None
    objects = [one for one in matches if isinstance(one, dict)]
    if not objects:
        raise ConfigError(f"--rows {path!r}: no objects there")
    return objects


def slim(row: Mapping[str, Json]) -> dict[str, Json]:
    """A row without whole conversations, with attributes of traces by their names.

    Examples
    --------
    >>> slim({"id": 1, "messages": [1], "attributes": [{"key": "gen_ai.system", "value": {"stringValue": "x"}}]})
    {'id': 1, 'attributes': {'gen_ai.system': 'x'}}
    """
    return {name: _named(value) for name, value in row.items() if name not in LONG} | said_last(row)


def said_last(row: Mapping[str, Json]) -> dict[str, Json]:
    """What the model said last in a whole conversation, as a column.

    Examples
    --------
    >>> said_last({"messages": [{"role": "user", "content": "Hire?"}, {"role": "assistant", "content": "No"}]})
    {'last_message': 'No'}
    """
    messages = row.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if isinstance(last, dict) and last.get("role") == "assistant" and isinstance(last.get("content"), str):
        return {"last_message": last["content"]}
    return {}


def _named(value: Json) -> Json:
    """A list of ``{"key", "value"}`` as an object; anything else as it is."""
    if not isinstance(value, list) or not value:
        return value
    pairs = dict(_pairs(value))
    return pairs if len(pairs) == len(value) else value


def _pairs(values: list[Json]) -> Iterator[tuple[str, Json]]:
    for one in values:
        if isinstance(one, dict) and one.keys() == {"key", "value"} and isinstance(one["key"], str):
            inner = one["value"]
            yield one["key"], next(iter(inner.values()), None) if isinstance(inner, dict) else inner
