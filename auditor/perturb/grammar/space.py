"""Everything that a grammar can generate: derivations by number, and sentences by rank without replacement."""

from __future__ import annotations

import hashlib
import itertools
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from auditor.perturb.grammar.compile import structures_of
from auditor.perturb.grammar.count import Automaton, distinct
from auditor.perturb.grammar.model import Grammar
from auditor.perturb.grammar.shape import Derivation


class Space:
    """Everything that a grammar can generate.

    Attributes
    ----------
    structures : tuple of Structure
    derivations : int
        Exact; at least the number of distinct sentences.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.structures = tuple(structures_of(grammar))
        self.ends: list[int] = list(itertools.accumulate(s.size for s in self.structures))
        self.derivations = self.ends[-1]

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The sensitive attributes of all structures, sorted."""
        return tuple(sorted({a for s in self.structures for a in s.attributes}))

    @cached_property
    def sentences(self) -> int | None:
        """The exact number of distinct sentences; None where the grammar is too large to tell."""
        return distinct(self.structures)

    def text(self, derivation: Derivation) -> str:
        """The sentence of one derivation."""
        return self.structures[derivation[0]].text(derivation[1])

    def nth(self, number: int) -> Derivation:
        """Derivation ``number`` in [0, derivations): mixed radix, the last cell fastest."""
        if not 0 <= number < self.derivations:
            raise IndexError(f"derivation {number} of {self.derivations}")
        which = bisect_right(self.ends, number)
        rest = number - (self.ends[which - 1] if which else 0)
        index = []
        for size in reversed(self.structures[which].sizes):
            rest, i = divmod(rest, size)
            index.append(i)
        return which, tuple(reversed(index))

    def number(self, derivation: Derivation) -> int:
        """The inverse of `nth`."""
        which, index = derivation
        value = 0
        for size, i in zip(self.structures[which].sizes, index, strict=True):
            value = value * size + i
        return value + (self.ends[which - 1] if which else 0)

    def read(self, text: str) -> Iterator[Derivation]:
        """Every derivation of ``text``; none where it is no sentence of the grammar.

        >>> from auditor.perturb import grammar
        >>> s = grammar.space(grammar.load("sentiment"))
        >>> s.text(next(s.read(s.text(s.nth(0))))) == s.text(s.nth(0))
        True
        """
        for which, structure in enumerate(self.structures):
            for index in structure.read(text):
                yield which, index


def space(grammar: Grammar) -> Space:
    """Make ``grammar`` ready to draw from.

    Raises
    ------
    DataFileError
        It has more than 20,000 sentence structures.
    """
    return Space(grammar)


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
            self.automaton = Automaton(space.structures)

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """The size of a grammar; ``sentences`` None: too many to count."""

    rules: int
    alternatives: int
    terminals: int
    structures: int
    derivations: int
    sentences: int | None


def summary(space: Space) -> Size:
    """Count the rules, terminals, structures, derivations and sentences of a grammar."""
    grammar = space.grammar
    reached = grammar.reachable()
    return Size(
        rules=len(reached),
        alternatives=sum(len(grammar.rules[r].alternatives) for r in reached),
        terminals=sum(1 for _ in grammar.terminals()),
        structures=len(space.structures),
        derivations=space.derivations,
        sentences=space.sentences,
    )
