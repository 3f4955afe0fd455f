"""The parts of a report that are notes and tables of words: one shape for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from auditor.stats.models_compared import MIN_SEEDS

Lines = tuple[tuple[str, ...], ...]
FEW = f"of fewer than {MIN_SEEDS} seeds"


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Rows of ``columns``; those in ``right`` hold counts.

    ``more`` are lines that long reports fold away and short ones leave out; ``left`` says what they are, for one
    and for several.
    """

    caption: str
    columns: tuple[str, ...]
    lines: Lines
    right: frozenset[str] = frozenset()
    more: Lines = ()
    left: tuple[str, str] = (f"line {FEW}", f"lines {FEW}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """One section: id and title, a short name for the table of contents, notes, tables."""

    id: str
    title: str
    short: str
    notes: tuple[str, ...]
    tables: tuple[Table, ...] = ()


def filled(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Those that have a line."""
    return tuple(table for table in tables if table.lines)
