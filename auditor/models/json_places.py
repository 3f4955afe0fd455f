"""Places in JSON: placeholders that are filled, and paths that are followed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HOLE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_STEP = re.compile(r'\.?(?:([A-Za-z_][\w-]*)|\["([^"]+)"\]|\[(-?\d+|\*)\])')
EACH = "*"  # every item of a list

Steps = tuple[str | int, ...]


def place(value: object, values: Mapping[str, object]) -> Any:
    """``value`` with its placeholders replaced: a lone one by the value itself, one inside a text as text.

    Examples
    --------
    >>> place({"q": "{{prompt}}", "n": "{{max_tokens}}", "t": "Say: {{prompt}}"}, {"prompt": 'a"b', "max_tokens": 8})
    {'q': 'a"b', 'n': 8, 't': 'Say: a"b'}
    """
    if isinstance(value, str):
        if whole := HOLE.fullmatch(value.strip()):
            return values[whole.group(1)]
        return HOLE.sub(lambda match: str(values[match.group(1)]), value)
    if isinstance(value, Mapping):
        return {key: place(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [place(item, values) for item in value]
    return value


def parse_path(text: str) -> Steps:
    """The steps of a path into JSON; ``[*]`` is every item of a list.

    Raises
    ------
    ValueError
        Not of the form ``a.b[0]["c d"]``, with or without ``$`` in front.

    Examples
    --------
    >>> parse_path("choices[0].message.content")
    ('choices', 0, 'message', 'content')
    """
    rest = text.strip().removeprefix("$")
    steps: list[str | int] = []
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None:
            raise ValueError(f"{text!r} is no path; write for example choices[0].message.content")
        name, quoted, number = match.groups()
        steps.append(name or quoted or (EACH if number == EACH else int(number)))
        at = match.end()
    return tuple(steps)


def follow(value: object, steps: Steps | None) -> object:
    """What stands at ``steps``, with `EACH` a list; None where there is nothing.

    Examples
    --------
    >>> follow({"a": [{"b": 3}]}, ("a", 0, "b"))
    3
    """
    if steps is None:
        return None
    for at, step in enumerate(steps):
        if step == EACH and isinstance(value, list):
            return [follow(item, steps[at + 1 :]) for item in value]
        if isinstance(step, int):
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return None
            value = value[step]
        else:
            if not isinstance(value, Mapping) or step not in value:
                return None
            value = value[step]
    return value


def path_text(steps: Steps) -> str:
    """A path as it is written."""
    return "".join(f"[{s}]" if isinstance(s, int) or s == EACH else f".{s}" for s in steps).lstrip(".") or "$"


def lost(value: object, steps: Steps) -> str:
    """Where a path ends that leads to nothing, and what is there.

    Examples
    --------
    >>> lost({"result": {"label": 1, "flag": 0}}, ("result", "labels"))
    'nothing at result.labels; there: label, flag'
    """
    for at in range(len(steps)):
        here, step = follow(value, steps[:at]), steps[at]
        if step == EACH:
            return f"no list at {path_text(steps[:at])}"
        if follow(here, (step,)) is None:
            names = f"; there: {', '.join(list(map(str, here))[:8])}" if isinstance(here, Mapping) else ""
            return f"nothing at {path_text(steps[: at + 1])}{names}"
    return f"no text at {path_text(steps)}"
