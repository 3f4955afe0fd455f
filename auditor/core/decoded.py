"""JSON and TOML that others wrote: what cannot be read is one kind of error, also where it is nested without end."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import chain
from typing import Any

DEEP = "fields too deep inside each other"


def from_json(text: str | bytes, *, deepest: int | None = None) -> Any:
    """The value that a JSON text holds; at most ``deepest`` lists and objects inside each other, where that is said.

    Raises
    ------
    json.JSONDecodeError
        It is not JSON, is nested too deeply, or holds a number of thousands of digits.
    UnicodeDecodeError
        Bytes that are not UTF-8. It is a ValueError too.
    """
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise json.JSONDecodeError(DEEP, "", 0) from None
    except ValueError as error:
        raise json.JSONDecodeError(str(error).partition(";")[0], "", 0) from None
    if deepest is not None and _deeper(value, deepest):
        raise json.JSONDecodeError(DEEP, "", 0)
    return value


def _deeper(value: object, most: int) -> bool:
    level: list[Any] = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        inside = chain.from_iterable(one.values() if isinstance(one, dict) else one for one in level)
        level = [item for item in inside if isinstance(item, dict | list)]
    return bool(level)


def from_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text; `tomllib.TOMLDecodeError` also where it is nested too deeply, or a number too long."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError(DEEP) from None
    except ValueError as error:
        raise tomllib.TOMLDecodeError(str(error).partition(";")[0]) from None


def toml_line(text: str, key: str) -> int | None:
    """The line of a TOML text, from 1, in which ``key``, or the table of that name, begins; None where none is seen."""
    written = re.compile(rf"^\s*\[*\s*([\"']?){re.escape(key)}\1\s*[=.\]]")
    return next((n for n, line in enumerate(text.splitlines(), 1) if written.match(line)), None)
