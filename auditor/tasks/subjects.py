"""Reads where a text speaks of the person whom it is about."""

from __future__ import annotations

import operator

from auditor.core.counting import plural
from auditor.core.decoded import from_json
from auditor.core.errors import DataFileError
from auditor.core.types import Span

SUBJECT = "subject"  # the column of `SourceText.subject`


def subject_of(where: str, text: str, value: object) -> tuple[Span, ...] | None:
    """Return the spans that the field ``subject`` holds, as lists or as JSON (in tables).

    A column of that name that holds words or numbers ("Re: your order") is something else, and nothing is read from it.

    Raises
    ------
    DataFileError
        A span is no pair of numbers, is empty, lies outside the text, or begins before the one before it has ended.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = from_json(value)
        except ValueError:
            return None
    if not isinstance(value, list | tuple) or (value and all(isinstance(item, str) for item in value)):
        return None
    spans: list[Span] = []
    for item in value:
        try:
            start, end = map(operator.index, item)
        except (TypeError, ValueError):
            raise DataFileError(f"{where}: the column {SUBJECT!r} takes a list of [start, end], got {item!r}") from None
        if not 0 <= start < end <= len(text):
            raise DataFileError(
                f"{where}: [{start}, {end}] in the column {SUBJECT!r} is no part of the text, which has "
                f"{plural(len(text), 'character')}"
            )
        if spans and start < spans[-1][1]:
            raise DataFileError(
                f"{where}: [{start}, {end}] in the column {SUBJECT!r} begins before {list(spans[-1])} has ended; "
                "list the spans in the order of the text"
            )
        spans.append((start, end))
    return tuple(spans)
