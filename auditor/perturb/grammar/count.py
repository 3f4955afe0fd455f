"""How many sentences a grammar has.

Two derivations may give one sentence, so counting derivations is not enough. `distinct` determinises the
union of all structures as an automaton over characters and counts its accepted strings: exact, with
Python's integers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeAlias

from auditor.perturb.grammar.shape import Structure

MOST_STATES = 1_500_000
MOST_PLACES = 20_000_000  # characters of all columns, and positions of all states
MOST_PRODUCTS = 100_000  # ways in which the forms of all structures can agree
_Position: TypeAlias = tuple[int, int]  # a suffix of columns, and a node of its first column's trie
_State: TypeAlias = frozenset[_Position]


class Automaton:
    """Deterministic automaton of the sentences of a grammar, with the number of endings of every state.

    Parameters
    ----------
    structures : sequence of Structure
        What to count.

    Raises
    ------
    OverflowError
        It would have more than 1.5 million states, or take too long.
    """

    def __init__(self, structures: Sequence[Structure]) -> None:
        self._left = MOST_PLACES
        self._nodes: list[dict[str, int]] = []  # trie nodes of all columns
        self._last: set[int] = set()  # nodes where a string of the column ends
        self._roots: dict[tuple[str, ...], int] = {}
        self._suffixes: dict[tuple[int, int], int] = {}  # (root, next suffix) -> number
        self._next: list[tuple[int, int]] = [(-1, -1)]  # suffix 0 is the end
        starts: set[_Position] = set()
        if sum(agreements(structure) for structure in structures) > MOST_PRODUCTS:
            raise OverflowError
        for structure in structures:
            for columns in products(structure):
                suffix = 0
                for column in reversed(columns):
                    key = (self._root(column), suffix)
                    if key not in self._suffixes:
                        self._suffixes[key] = len(self._next)
                        self._next.append(key)
                    suffix = self._suffixes[key]
                starts |= self._enter(suffix)
        self.start: _State = frozenset(starts)
        self.steps: dict[_State, list[tuple[str, _State]]] = {}
        self.count: dict[_State, int] = {}
        self._fill()

    def _root(self, column: tuple[str, ...]) -> int:
        if column not in self._roots:
            root = len(self._nodes)
            self._nodes.append({})
            for text in column:
                at = root
                self._take(len(text))
                for char in text:
                    if char not in self._nodes[at]:
                        self._nodes[at][char] = len(self._nodes)
                        self._nodes.append({})
                    at = self._nodes[at][char]
                self._last.add(at)
            self._roots[column] = root
        return self._roots[column]

    def _take(self, places: int) -> None:
        self._left -= places
        if self._left < 0:
            raise OverflowError

    def _enter(self, suffix: int) -> set[_Position]:
        """The positions at the beginning of ``suffix``."""
        return {(0, -1)} if suffix == 0 else self._close({(suffix, self._next[suffix][0])})

    def _close(self, positions: set[_Position]) -> set[_Position]:
        """``positions`` and, where a column's string ends there, the beginnings of what follows."""
        out = set()
        for suffix, node in positions:
            out.add((suffix, node))
            if node in self._last:
                out |= self._enter(self._next[suffix][1])
        return out

    def _step(self, state: _State) -> list[tuple[str, _State]]:
        self._take(len(state))
        reached: dict[str, set[_Position]] = {}
        for suffix, node in state:
            if node < 0:
                continue
            for char, child in self._nodes[node].items():
                reached.setdefault(char, set()).add((suffix, child))
        return [(char, frozenset(self._close(reached[char]))) for char in sorted(reached)]

    def _fill(self) -> None:
        todo = [self.start]
        while todo:
            state = todo[-1]
            if state in self.count:
                todo.pop()
                continue
            if state not in self.steps:
                if len(self.steps) >= MOST_STATES:
                    raise OverflowError
                self.steps[state] = self._step(state)
                todo += [s for _, s in self.steps[state] if s not in self.count]
                continue
            todo.pop()
            ends = (0, -1) in state
            self.count[state] = ends + sum(self.count[s] for _, s in self.steps[state])

    @property
    def size(self) -> int:
        """The number of distinct sentences."""
        return self.count[self.start]

    def nth(self, rank: int) -> str:
        """Sentence ``rank`` in [0, size), in the order of characters."""
        if not 0 <= rank < self.size:
            raise IndexError(f"sentence {rank} of {self.size}")
        state = self.start
        out: list[str] = []
        while True:
            if (0, -1) in state:
                if rank == 0:
                    return "".join(out)
                rank -= 1
            for char, following in self.steps[state]:
                if rank < self.count[following]:
                    out.append(char)
                    state = following
                    break
                rank -= self.count[following]


def _classes(structure: Structure) -> list[list[list[int]]]:
    """The terminals of each cell in classes that agree in all forms that the cell decides."""
    classes: list[list[list[int]]] = []
    for number, cell in enumerate(structure.cells):
        tied = [c for c in structure.columns if c.tied and c.cell == number]
        split: dict[tuple[str, ...], list[int]] = {}
        for i in range(len(cell.entries)):
            split.setdefault(tuple(c.table[i] for c in tied), []).append(i)
        classes.append(list(split.values()))
    return classes


def agreements(structure: Structure) -> int:
    """How many sequences `products` gives."""
    return prod(len(split) for split in _classes(structure))


def products(structure: Structure) -> Iterator[list[tuple[str, ...]]]:
    """``structure`` as a union of sequences of columns that are independent of each other.

    A cell that decides the form of other columns is split into the classes of its terminals that agree in
    all those forms.
    """
    for picked in itertools.product(*_classes(structure)):
        columns = []
        for column in structure.columns:
            if column.cell < 0:
                columns.append(column.table)
            elif column.tied:
                columns.append((column.table[picked[column.cell][0]],))
            else:
                columns.append(tuple(sorted({column.table[i] for i in picked[column.cell]})))
        yield columns


def distinct(structures: Sequence[Structure]) -> int | None:
    """The exact number of distinct sentences; None if the automaton grows too large."""
    try:
        return Automaton(structures).size
    except OverflowError:
        return None
