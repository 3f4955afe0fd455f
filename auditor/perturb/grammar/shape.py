"""From rules to flat structures: what generation, counting and recognition work on.

A finite grammar is a union of *structures*: sequences of columns, each fixed text, a free choice among
terminals, or tied to a free choice by agreement. A derivation is a structure and one index for each of
its free cells, so millions of them are arrays of small integers, and strings are put together only where
somebody reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from auditor.perturb.grammar.model import Terminal

Ints: TypeAlias = npt.NDArray[np.int64]
Choice: TypeAlias = tuple[str, int]  # a rule, and which of its alternatives
Derivation: TypeAlias = tuple[int, tuple[int, ...]]  # a structure, and an index for each free cell


class Entry(NamedTuple):
    """One way to fill a cell: its text, the terminal, and the alternatives that lead to it."""

    text: str
    path: tuple[Choice, ...]
    terminal: Terminal


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One free choice of a structure."""

    rule: str
    entries: tuple[Entry, ...]
    attribute: str | None = None
    aligned: bool = False

    @property
    def terminals(self) -> list[Terminal]:
        """The terminal of each entry."""
        return [e.terminal for e in self.entries]

    def by_group(self) -> dict[str, list[int]]:
        """The entries of each group, in order."""
        out: dict[str, list[int]] = {}
        for i, entry in enumerate(self.entries):
            out.setdefault(entry.terminal.group or "", []).append(i)
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One stretch of text: ``table[i]`` where ``i`` is the index of cell ``cell``; fixed where cell is -1."""

    cell: int
    table: tuple[str, ...]
    tied: bool = False


class Structure:
    """A sequence of columns over free cells.

    Parameters
    ----------
    columns : sequence of Column
        In the order of the text.
    cells : sequence of Cell
        The free choices.
    choices : sequence of (rule, alternative)
        The alternatives that lead to this structure.
    """

    def __init__(self, columns: Sequence[Column], cells: Sequence[Cell], choices: Sequence[Choice]) -> None:
        self.columns, self.cells, self.choices = tuple(columns), tuple(cells), tuple(choices)
        self.sizes = tuple(len(c.entries) for c in cells)
        self.size = prod(self.sizes)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of its sensitive cells, sorted."""
        return tuple(sorted({c.attribute for c in self.cells if c.attribute is not None}))

    @cached_property
    def tables(self) -> tuple[npt.NDArray[np.object_], ...]:
        """The strings of each column as an object array."""
        out = []
        for column in self.columns:
            array = np.empty(len(column.table), dtype=object)
            array[:] = column.table
            out.append(array)
        return tuple(out)

    @cached_property
    def lengths(self) -> tuple[Ints, ...]:
        """The number of characters of each string of each column."""
        return tuple(np.array([len(t) for t in c.table], dtype=np.int64) for c in self.columns)

    @cached_property
    def codes(self) -> tuple[Ints, ...]:
        """A number for each string of each column, equal where the strings are."""
        return tuple(np.unique(np.array(c.table), return_inverse=True)[1].astype(np.int64) for c in self.columns)

    @cached_property
    def template(self) -> str:
        """A ``%`` template: the fixed text, and a place for every other column."""
        return "".join(c.table[0].replace("%", "%%") if c.cell < 0 else "%s" for c in self.columns)

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """The fixed texts."""
        return tuple(c.table[0] for c in self.columns if c.cell < 0)

    def text(self, index: Sequence[int]) -> str:
        """The sentence of one derivation."""
        return "".join(c.table[0] if c.cell < 0 else c.table[index[c.cell]] for c in self.columns)

    def spans(self, index: Sequence[int]) -> list[tuple[int, int]]:
        """``[start, end)`` of every column in the sentence of one derivation."""
        out, at = [], 0
        for column in self.columns:
            end = at + len(column.table[0 if column.cell < 0 else index[column.cell]])
            out.append((at, end))
            at = end
        return out

    def path(self, index: Sequence[int]) -> list[Choice]:
        """Every (rule, alternative) of one derivation."""
        out = list(self.choices)
        for cell, i in zip(self.cells, index, strict=True):
            out += cell.entries[i].path
        return out

    def label(self, index: Sequence[int]) -> str | None:
        """The right label that ground-truth terminals fix; None where none does, or they disagree."""
        cells = zip(self.cells, index, strict=True)
        labels = {c.entries[i].terminal.label for c, i in cells if c.entries[i].terminal.label is not None}
        return labels.pop() if len(labels) == 1 else None

    def read(self, text: str) -> Iterator[tuple[int, ...]]:
        """Every derivation of this structure whose sentence is ``text``."""
        if not all(piece in text for piece in self.pieces):
            return
        todo: list[tuple[int, int, dict[int, int]]] = [(0, 0, {})]
        while todo:
            number, at, chosen = todo.pop()
            if number == len(self.columns):
                if at == len(text):
                    yield tuple(chosen[i] for i in range(len(self.cells)))
                continue
            column = self.columns[number]
            if column.cell < 0:
                if text.startswith(column.table[0], at):
                    todo.append((number + 1, at + len(column.table[0]), chosen))
            elif column.cell in chosen:
                form = column.table[chosen[column.cell]]
                if text.startswith(form, at):
                    todo.append((number + 1, at + len(form), chosen))
            else:
                todo += self._choose(number, text, at, chosen)

    def _choose(
        self, number: int, text: str, at: int, chosen: dict[int, int]
    ) -> Iterator[tuple[int, int, dict[int, int]]]:
        """The terminals that fit a column whose cell is open yet, the last first."""
        column = self.columns[number]
        for i in range(len(column.table) - 1, -1, -1):
            if text.startswith(column.table[i], at):
                yield number + 1, at + len(column.table[i]), {**chosen, column.cell: i}
