"""Kinds of tasks: each is one class, and a package may offer more (entry points ``auditor.kinds``)."""

from __future__ import annotations

from functools import cache

from auditor.core.registry import Registry
from auditor.tasks.kinds.base import Kind

KINDS = Registry("kind", Kind)


@cache
def of(name: str) -> Kind:
    """The kind that task files call ``name``.

    Raises
    ------
    UnknownPlugin
        There is none.
    """
    return KINDS.create(name)


def plain_names() -> list[str]:
    """The names that task files may write."""
    return [name.rpartition(".v")[0] for name in KINDS.names()]
