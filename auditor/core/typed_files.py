"""Files that a person writes, read into a pydantic model: TOML, YAML, JSON lines.

What is wrong is one `DataFileError`, which names file, line and field, and offers the nearest name.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from auditor.core import reading
from auditor.core.errors import DataFileError
from auditor.core.reading import SETTINGS, Where, from_json, from_toml, toml_line
from auditor.core.shown import plural

M = TypeVar("M", bound=BaseModel)
_ARMS = frozenset({"str", "int", "float", "constrained-str"})  # of unions, and all with a bracket


def checked(
    model: type[M], values: object, where: object, lines: Mapping[Where, int] | None = None, help: str = ""
) -> M:
    """Return ``values`` as ``model``; ``where`` names the file, ``help`` ends the message about a mistake.

    Examples
    --------
    >>> class Pair(BaseModel):
    ...     text: str
    >>> checked(Pair, {"txt": "a"}, "pairs.jsonl, line 2")
    Traceback (most recent call last):
    auditor.core.errors.DataFileError: pairs.jsonl, line 2: field text: this field is missing.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise DataFileError(_complaint(model, error, str(where), lines or {}, help)) from None


def place(path: object, lines: Mapping[Where, int], field: Where) -> str:
    """Return the file and the line of ``field``, or of the nearest field that holds it."""
    line = next((lines[field[:n]] for n in range(len(field), 0, -1) if field[:n] in lines), None)
    return f"{path}, line {line}" if line else str(path)


def load_toml(path: Path, model: type[M], help: str = "") -> tuple[M, dict[Where, int]]:
    """Return the content of a TOML file as ``model``, and the lines of its keys and of its ``[[tables]]``."""
    text = reading.read_text(path)
    try:
        values = from_toml(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+)", str(error))
        line = at.group(1) if at else len(text.splitlines()) or 1
        raise DataFileError(f"{path}, line {line}: no valid TOML: {error}.") from error
    lines: dict[Where, int] = {(name,): toml_line(text, name) or 1 for name in values}
    for name in values:
        head = re.compile(rf"\s*\[\[\s*{re.escape(name)}\s*\]\]")
        heads = [number for number, line in enumerate(text.splitlines(), 1) if head.match(line)]
        lines |= {(name, n): number for n, number in enumerate(heads)}
    return checked(model, values, path, lines, help), lines


def load_lines(
    path: Path, model: type[M], help: str = "", *, largest: int = SETTINGS, missing: str = ""
) -> Iterator[tuple[int, M]]:
    """Yield each object of a file of JSON lines with its line; ``missing`` is said where there is no such file."""
    for number, line in enumerate(reading.read_text(path, largest, missing=missing).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            values = from_json(line)
        except json.JSONDecodeError as error:
            raise DataFileError(f"{where}: no JSON ({error}). {help}".rstrip()) from None
        if not isinstance(values, dict):
            raise DataFileError(f"{where}: not an object. {help}".rstrip())
        yield number, checked(model, values, where, help=help)


def load_yaml(
    path: Path, *, largest: int = SETTINGS, missing: str = "", empty: str = "", plain: bool = False
) -> tuple[dict[str, Any], dict[Where, int]]:
    """Return the fields of a YAML file and their lines; ``missing`` and ``empty`` say what to do about such a file.

    With ``plain`` every value is text: ``no`` and ``1`` are words.
    """
    lines: dict[Where, int] = {}
    raw = reading.load_yaml(path, reading.read_text(path, largest, missing=missing), lines=lines, plain=plain)
    if raw is None:
        raise DataFileError(f"{path}: the file is empty{empty}")
    if not isinstance(raw, dict):
        raise DataFileError(f"{path}: this file must be a mapping of fields")
    return raw, lines


def _complaint(
    model: type[BaseModel], error: ValidationError, where: str, lines: Mapping[Where, int], help: str
) -> str:
    """Say what is wrong with the first field that is, and how many more there are."""
    details = error.errors(include_url=False, include_context=False)
    # Unknown fields first: a misspelled name explains the "missing" one behind it.
    first = next((d for d in details if d["type"] == "extra_forbidden"), details[0])
    known = model.model_fields
    loc = tuple(part for part in first["loc"] if not (isinstance(part, str) and (part in _ARMS or "[" in part)))
    message = first["msg"].removeprefix("Value error, ")
    field = ".".join(map(str, loc))
    text = "string" in message.casefold()
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(loc[-1]), sorted(known), n=1) if len(loc) == 1 else []
        message = "no such field" + (f"; did you mean {near[0]}?" if near else "")
    elif first["type"] == "missing":
        message = "this field is missing"
    elif isinstance(first["input"], bool) and text:
        message += "; YAML reads yes, no, on and off as true and false: put the word in quotes"
    elif isinstance(first["input"], int | float) and text:
        message += f'; put it in quotes: "{first["input"]}"'
    if not field and ": " in message and message.partition(":")[0] in known:
        field, _, message = message.partition(": ")
        loc = (field,)
    name = f"field {field}: " if field else ""
    more = f" ({plural(len(details) - 1, 'more problem')} in this file)" if len(details) > 1 else ""
    message = message.rstrip(".")
    end = "" if message.endswith("?") and not more else "."
    return f"{place(where, lines, loc)}: {name}{message}{more}{end} {help}".rstrip()
