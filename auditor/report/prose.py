"""Sentences that hang on no figure, from ``auditor/embedded/report.yaml``: on method, limits, what is not said."""

from __future__ import annotations

from functools import cache

import msgspec

from auditor.core import data, yamlfile


@cache
def _file() -> dict[str, object]:
    found = yamlfile.load(data.path("embedded", "report.yaml"))
    assert isinstance(found, dict)
    return found


def text(name: str) -> str:
    """One paragraph."""
    return str(_file()[name])


def lines(name: str) -> tuple[str, ...]:
    """A list."""
    return msgspec.convert(_file()[name], tuple[str, ...])


def named(name: str) -> dict[str, str]:
    """Texts by what they are about."""
    return msgspec.convert(_file()[name], dict[str, str])


def rows(name: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a table."""
    return msgspec.convert(_file()[name], tuple[tuple[str, ...], ...])
