"""Sentences drawn uniformly without replacement, and what such a draw says about all of them."""

from __future__ import annotations

import hashlib
from bisect import bisect_left

from auditor.core.errors import ConfigError
from auditor.perturb.grammar.space import Automaton, Space
from auditor.perturb.grammar.structures import Derivation

_ROUNDS = 6
_MASK = (1 << 64) - 1


class Ranks:
    """Sentences by rank, uniformly over *sentences*: each has one rank, however many derivations it has.

    Where derivations and sentences are as many, a rank is the number of a derivation; elsewhere the
    sentence is found in the automaton and its first derivation is taken.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.automaton: Automaton | None = None
        if space.sentences is None:
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


def finite_bound(population: int, drawn: int, hits: int, *, level: float = 0.95) -> float:
    """The largest share of a finite population that ``hits`` of ``drawn`` without replacement leaves possible.

    The exact one-sided bound: the largest ``M / population`` with ``P(X <= hits) >= 1 - level`` where X is
    hypergeometric (ASTRAEA has none; Konijn 1973 gives the construction).

    Parameters
    ----------
    population : int
        The number of cases there are.
    drawn, hits : int
        Cases drawn without replacement, and how many of them show what is counted.
    level : float
        Confidence, in (0, 1).

    Returns
    -------
    float
        In [0, 1]; ``hits / population`` where everything was drawn.

    Examples
    --------
    >>> finite_bound(100, 100, 3)
    0.03
    >>> round(finite_bound(1000, 59, 0), 3)
    0.048
    """
    if not 0 <= hits <= drawn <= population or population < 1:
        raise ValueError(f"{hits} of {drawn} of {population}")
    from scipy import stats

    if population > 10**9:  # floats no longer tell the numbers apart; the binomial bound is not smaller
        return 1.0 if hits == drawn else float(stats.beta.ppf(level, hits + 1, drawn - hits))

    def impossible(marked: int) -> bool:
        return bool(stats.hypergeom.cdf(hits, population, marked, drawn) < 1 - level)

    return (hits - 1 + bisect_left(range(hits, population - drawn + hits + 1), True, key=impossible)) / population
