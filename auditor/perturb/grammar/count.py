"""How many sentences a grammar has, and sampling them uniformly without replacement.

Two derivations may give one sentence, so counting derivations is not enough. `distinct` determinises the
union of all structures as an automaton over characters and counts its accepted strings: exact, with
Python's integers.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from auditor.perturb.grammar.shape import Derivation, Space, Structure

MOST_STATES = 1_500_000
MOST_PLACES = 20_000_000  # characters of all columns, and positions of all states
MOST_PRODUCTS = 100_000  # ways in which the forms of all structures can agree
_Position: TypeAlias = tuple[int, int]  # a suffix of columns, and a node of its first column's trie
_State: TypeAlias = frozenset[_Position]


class Automaton:
    """Deterministic automaton of the sentences of a grammar, with the number of endings of every state.

    Parameters
    ----------
    space : Space
        What to count.

    Raises
    ------
    OverflowError
        It would have more than 1.5 million states, or take too long.
    """

    def __init__(self, space: Space) -> None:
        self._left = MOST_PLACES
        self._nodes: list[dict[str, int]] = []  # trie nodes of all columns
        self._last: set[int] = set()  # nodes where a string of the column ends
        self._roots: dict[tuple[str, ...], int] = {}
        self._suffixes: dict[tuple[int, int], int] = {}  # (root, next suffix) -> number
        self._next: list[tuple[int, int]] = [(-1, -1)]  # suffix 0 is the end
        starts: set[_Position] = set()
        if sum(agreements(structure) for structure in space.structures) > MOST_PRODUCTS:
            raise OverflowError
        for structure in space.structures:
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


def distinct(space: Space) -> int | None:
    """The exact number of distinct sentences of ``space``; None if the automaton grows too large."""
    try:
        return Automaton(space).size
    except OverflowError:
        return None


class Ranks:
    """Sentences by rank, uniformly over *sentences*: each has one rank, however many derivations it has.

    Where derivations and sentences are as many, a rank is the number of a derivation; elsewhere the
    sentence is found in the automaton and its first derivation is taken.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.automaton: Automaton | None = None
        if space.sentences is None:
            from auditor.core.errors import ConfigError

            raise ConfigError(
                f"The grammar {space.grammar.full_name} is too large to count its distinct sentences, so it cannot be "
                "sampled uniformly. Take one view of it, or --generation rand."
            )
        self.size: int = space.sentences
        if self.size != space.derivations:
            self.automaton = Automaton(space)

    def derivation(self, rank: int) -> Derivation:
        """The derivation of sentence ``rank``."""
        if self.automaton is None:
            return self.space.nth(rank)
        return next(self.space.read(self.automaton.nth(rank)))


_ROUNDS = 6
_MASK = (1 << 64) - 1


class Shuffle:
    """A seeded permutation of ``range(size)`` that remembers nothing.

    A balanced Feistel network permutes the smallest even number of bits that holds ``size``; what falls
    outside is permuted again until it falls inside (cycle walking), which keeps it a permutation. Reading
    it from 0 on is sampling without replacement, at any place, in any order, with constant memory.

    Examples
    --------
    >>> sorted(Shuffle(10, seed=7)[i] for i in range(10)) == list(range(10))
    True
    """

    def __init__(self, size: int, *, seed: int) -> None:
        if size < 1:
            raise ValueError(f"nothing to permute: {size}")
        self.size = size
        self._half = max(1, ((size - 1).bit_length() + 1) // 2)
        self._low = (1 << self._half) - 1
        keys = hashlib.sha512(f"{seed}:{size}".encode()).digest()
        self._keys = [int.from_bytes(keys[8 * i : 8 * i + 8], "big") for i in range(_ROUNDS)]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, place: int) -> int:
        if not 0 <= place < self.size:
            raise IndexError(f"place {place} of {self.size}")
        value = place
        while True:
            left, right = value >> self._half, value & self._low
            for key in self._keys:
                left, right = right, left ^ (self._mix(right, key) & self._low)
            value = (left << self._half) | right
            if value < self.size:
                return value

    def _mix(self, value: int, key: int) -> int:
        if self._half > 64:  # more bits than one word: as many words as it takes
            digest = hashlib.shake_128(f"{key}:{value}".encode()).digest((self._half + 7) // 8)
            return int.from_bytes(digest, "big")
        x = (value + key) & _MASK
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
        return x ^ (x >> 31)

    def many(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """`__getitem__` of many places at once; ``size`` is at most 2**62."""
        if self.size > 1 << 62:
            raise OverflowError(f"{self.size} is more than 64 bits hold")
        value = places.astype(np.uint64)
        open_ = np.arange(len(value))
        half, low = np.uint64(self._half), np.uint64(self._low)
        while len(open_):
            left, right = value[open_] >> half, value[open_] & low
            for key in self._keys:
                x = right + np.uint64(key)
                x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                left, right = right, left ^ ((x ^ (x >> np.uint64(31))) & low)
            value[open_] = (left << half) | right
            open_ = open_[value[open_] >= np.uint64(self.size)]
        return value.astype(np.int64)


def finite_bound(population: int, drawn: int, found: int, *, level: float = 0.95) -> float:
    """The largest share of a finite population that ``found`` of ``drawn`` without replacement leaves possible.

    The exact one-sided bound: the largest ``M / population`` with ``P(X <= found) >= 1 - level`` where X is
    hypergeometric (ASTRAEA has none; Konijn 1973 gives the construction).

    Parameters
    ----------
    population : int
        The number of cases there are.
    drawn, found : int
        Cases drawn without replacement, and how many of them show what is counted.
    level : float
        Confidence, in (0, 1).

    Returns
    -------
    float
        In [0, 1]; ``found / population`` where everything was drawn.

    Examples
    --------
    >>> finite_bound(100, 100, 3)
    0.03
    >>> round(finite_bound(1000, 59, 0), 3)
    0.048
    """
    if not 0 <= found <= drawn <= population or population < 1:
        raise ValueError(f"{found} of {drawn} of {population}")
    from scipy import stats

    tail = 1 - level
    if population > 10**9:  # floats no longer tell the numbers apart; the binomial bound is not smaller
        return 1.0 if found == drawn else float(stats.beta.ppf(level, found + 1, drawn - found))

    def possible(marked: int) -> bool:
        return bool(stats.hypergeom.cdf(found, population, marked, drawn) >= tail)

    low, high = found, population - (drawn - found)
    while low < high:
        middle = (low + high + 1) // 2
        if possible(middle):
            low = middle
        else:
            high = middle - 1
    return low / population


def summary(space: Space) -> dict[str, Any]:
    """The size of a grammar as plain data: rules, terminals, structures, derivations, sentences."""
    grammar = space.grammar
    reached = grammar.reachable()
    return {
        "rules": len(reached),
        "alternatives": sum(len(grammar.rules[r].alternatives) for r in reached),
        "terminals": sum(1 for _ in grammar.terminals()),
        "structures": len(space.structures),
        "derivations": space.derivations,
        "sentences": space.sentences,
    }
