"""Drawing sentences: RAND, PROB (ASTRAEA, Algorithms 1 and 2), a bandit that goes on learning, and uniformly.

RAND chooses among the alternatives of every rule by their weights (published: equal ones). PROB weights the
alternatives by their error rates after the RAND phase, ``G_err / G_count``. The bandit draws the error rate of each
alternative from its posterior before every few cases, and each verdict enters the next draw (Thompson 1933; Russo et
al. 2018).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from auditor.core.errors import ConfigError
from auditor.perturb.grammar.model import Grammar, Rule
from auditor.perturb.grammar.space import Automaton, Space
from auditor.perturb.grammar.structures import Cell, Choice, Derivation, Ints

Floats: TypeAlias = npt.NDArray[np.float64]
Weights: TypeAlias = Mapping[str, Floats]  # rule -> the probability of each of its alternatives
Tally: TypeAlias = Mapping[Choice, int]

_ROUNDS = 6
_MASK = (1 << 64) - 1


def base_weights(grammar: Grammar) -> dict[str, Floats]:
    """The probabilities of RAND: the weights of the file, each rule summing to one."""
    out = {}
    for name in grammar.reachable():
        weights = np.array([a.weight for a in grammar.rules[name].alternatives], dtype=np.float64)
        out[name] = weights / weights.sum()
    return out


def error_weights(
    grammar: Grammar, counts: Tally, errors: Tally, *, mix: float = 0.0, power: float = 1.0
) -> dict[str, Floats]:
    """The probabilities of PROB: proportional to the error rate of each alternative (Algorithm 2).

    Rules that ``grammar.directed`` does not name, and those none of whose alternatives erred, keep the weights of RAND.

    Parameters
    ----------
    counts, errors : mapping of (rule, alternative) to int
        Cases that hold the alternative, and those among them that violate.
    mix : float
        In [0, 1]: the share of RAND that is mixed in, for when the directed language is used up.
    power : float
        Of the error rates; 1 as published, more aims more narrowly.
    """

    def rates(rule: Rule, seen: Floats, erred: Floats) -> Floats:
        share: Floats = np.divide(erred, seen, out=np.zeros(len(seen)), where=seen > 0)
        return share**power

    return _directed(grammar, counts, errors, mix, rates)


def bandit_weights(
    grammar: Grammar, counts: Tally, errors: Tally, rng: np.random.Generator, *, mix: float = 0.0
) -> dict[str, Floats]:
    """Probabilities of the alternatives for the next few cases; arguments as of `error_weights`, of both phases.

    Every rate is drawn from its Beta(1 + errors, 1 + cases without) posterior. In a sensitive rule the highest one
    gets all the weight; in other rules the squares of the rates are the weights, so that sentences differ.
    """

    def rates(rule: Rule, seen: Floats, erred: Floats) -> Floats:
        offered = np.array([a.weight > 0 for a in rule.alternatives])
        drawn = rng.beta(1 + erred, 1 + seen - erred) * offered
        best: Floats = (drawn == drawn.max()).astype(np.float64)
        return best if rule.attribute is not None else drawn**2

    return _directed(grammar, counts, errors, mix, rates)


def _directed(
    grammar: Grammar, counts: Tally, errors: Tally, mix: float, rates: Callable[[Rule, Floats, Floats], Floats]
) -> dict[str, Floats]:
    """The weights of RAND, in rules that may be directed those of ``rates`` (of cases, and of cases that erred)."""
    out = base_weights(grammar)
    for name, weights in out.items():
        if grammar.directed is not None and name not in grammar.directed:
            continue
        seen, erred = (
            np.array([tally.get((name, i), 0) for i in range(len(weights))], dtype=np.float64)
            for tally in (counts, errors)
        )
        # A zero weight in the file leaves an alternative out on purpose.
        aim = rates(grammar.rules[name], seen, erred) * (weights > 0)
        if aim.sum() > 0:
            out[name] = (1 - mix) * aim / aim.sum() + mix * weights
    return out


class Sampler:
    """Draws derivations of ``space`` with given probabilities of the alternatives.

    >>> from auditor.perturb import grammar
    >>> s = grammar.space(grammar.load("sentiment"))
    >>> rng = np.random.default_rng(7)
    >>> all(s.text(d) for d in Sampler(s).draw(3, rng))
    True
    """

    def __init__(self, space: Space, weights: Weights | None = None) -> None:
        self.space = space
        self.weights = base_weights(space.grammar) if weights is None else weights
        cells: dict[int, tuple[float, Floats]] = {}
        self._cells: list[list[Floats]] = []
        shares = []
        for structure in space.structures:
            share = float(np.prod([self.weights[rule][i] for rule, i in structure.choices]))
            cumulated = []
            for cell in structure.cells:
                if id(cell) not in cells:
                    cells[id(cell)] = self._cell(cell)
                mass, cdf = cells[id(cell)]
                share *= mass
                cumulated.append(cdf)
            shares.append(share)
            self._cells.append(cumulated)
        total = float(np.sum(shares))
        self.shares = np.array(shares) / total
        self._cdf = np.cumsum(self.shares)
        self._cdf[-1] = 1.0

    def _cell(self, cell: Cell) -> tuple[float, Floats]:
        chances = np.array([np.prod([self.weights[r][i] for r, i in e.path]) for e in cell.entries])
        mass = float(chances.sum())
        cdf = np.cumsum(chances / mass) if mass > 0 else np.ones(len(chances))
        if mass > 0:  # rounding must not select what has no weight
            cdf[np.flatnonzero(chances)[-1] :] = 1.0
        return mass, cdf

    def block(self, n: int, rng: np.random.Generator) -> Iterator[tuple[int, Ints, Ints]]:
        """``n`` derivations by structure: (structure, places in the order of drawing, (k, cells) indices)."""
        which = np.searchsorted(self._cdf, rng.random(n), side="right")
        order = np.argsort(which, kind="stable")
        used, starts = np.unique(which[order], return_index=True)
        for structure, (start, end) in zip(used, pairwise([*starts, n]), strict=True):
            places = order[start:end]
            cells = self._cells[structure]
            index = np.empty((len(places), len(cells)), dtype=np.int64)
            for j, cdf in enumerate(cells):
                index[:, j] = np.searchsorted(cdf, rng.random(len(places)), side="right")
            yield int(structure), places, index

    def draw(self, n: int, rng: np.random.Generator) -> list[Derivation]:
        """``n`` independent derivations, in the order of drawing."""
        out: list[Derivation] = [(0, ())] * n
        for structure, places, index in self.block(n, rng):
            for place, row in zip(places.tolist(), index.tolist(), strict=True):
                out[place] = (structure, tuple(row))
        return out


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

    The exact one-sided bound at confidence ``level``: the largest ``M / population`` with ``P(X <= hits) >= 1 - level``
    where X is hypergeometric (ASTRAEA has none; Konijn 1973 gives the construction).

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
