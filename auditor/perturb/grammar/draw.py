"""Drawing sentences: RAND and PROB (ASTRAEA, Algorithms 1 and 2).

RAND chooses among the alternatives of every rule by their weights (published: equal ones). PROB weights the
alternatives by their error rates after the RAND phase, ``G_err / G_count``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from auditor.perturb.grammar.model import Grammar
from auditor.perturb.grammar.structures import Cell, Choice, Derivation, Space

Floats: TypeAlias = npt.NDArray[np.float64]
Weights: TypeAlias = Mapping[str, Floats]  # rule -> the probability of each of its alternatives
Tally: TypeAlias = Mapping[Choice, int]


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
    """The probabilities of PROB: proportional to the error rate of each alternative (Algorithm 2)."""
    out = base_weights(grammar)
    for name, weights in out.items():
        if grammar.directed is not None and name not in grammar.directed:
            continue
        seen, erred = (
            np.array([tally.get((name, i), 0) for i in range(len(weights))], dtype=np.float64)
            for tally in (counts, errors)
        )
        share = np.divide(erred, seen, out=np.zeros(len(seen)), where=seen > 0)
        # A zero weight in the file leaves an alternative out on purpose.
        aim = share**power * (weights > 0)
        if aim.sum() > 0:
            out[name] = (1 - mix) * aim / aim.sum() + mix * weights
    return out


class Sampler:
    """Draws derivations of ``space`` with given probabilities of the alternatives."""

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

    def draw(self, n: int, rng: np.random.Generator) -> list[Derivation]:
        """``n`` independent derivations, in the order of drawing."""
        which = np.searchsorted(self._cdf, rng.random(n), side="right")
        out: list[Derivation] = [(0, ())] * n
        for structure in np.unique(which).tolist():
            places = np.flatnonzero(which == structure).tolist()
            cells = [np.searchsorted(cdf, rng.random(len(places)), side="right") for cdf in self._cells[structure]]
            for number, place in enumerate(places):
                out[place] = (structure, tuple(int(cell[number]) for cell in cells))
        return out
