"""Drawing sentences and their counterparts: RAND, PROB (ASTRAEA, Algorithms 1 and 2), uniform, and in bulk.

RAND chooses among the alternatives of every rule by their weights (published: equal ones). PROB weights the
alternatives by their error rates after the RAND phase, ``G_err / G_count``. `stream` draws pairs as
arrays of small integers, in blocks of constant size; strings and edits are put together from tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from auditor.core.types import names
from auditor.perturb.grammar.model import Grammar
from auditor.perturb.grammar.shape import Cell, Choice, Derivation, Structure
from auditor.perturb.grammar.space import Ranks, Shuffle, Space

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Weights: TypeAlias = Mapping[str, Floats]  # rule -> the probability of each of its alternatives
BLOCK = 1 << 18


def base_weights(grammar: Grammar) -> dict[str, Floats]:
    """The probabilities of RAND: the weights of the file, each rule summing to one."""
    out = {}
    for name in grammar.reachable():
        weights = np.array([a.weight for a in grammar.rules[name].alternatives], dtype=np.float64)
        out[name] = weights / weights.sum()
    return out


def error_weights(
    grammar: Grammar,
    counts: Mapping[Choice, int],
    errors: Mapping[Choice, int],
    *,
    mix: float = 0.0,
    power: float = 1.0,
) -> dict[str, Floats]:
    """The probabilities of PROB: proportional to the error rate of each alternative (Algorithm 2).

    Parameters
    ----------
    grammar : Grammar
        Its ``directed`` names the rules that are weighted (G_prob); None weights all.
    counts, errors : mapping of (rule, alternative) to int
        Cases that hold the alternative, and those among them that violate.
    mix : float
        In [0, 1]: the share of RAND that is mixed in, for when the directed language is used up.
    power : float
        Of the error rates; 1 as published, more aims more narrowly.

    Returns
    -------
    dict of str to array
        A rule none of whose alternatives erred keeps the weights of RAND.
    """
    out = base_weights(grammar)
    for name in out:
        if grammar.directed is not None and name not in grammar.directed:
            continue
        size = len(out[name])
        seen = np.array([counts.get((name, i), 0) for i in range(size)], dtype=np.float64)
        erred = np.array([errors.get((name, i), 0) for i in range(size)], dtype=np.float64)
        rates = np.divide(erred, seen, out=np.zeros(size), where=seen > 0)
        # A zero weight in the file leaves an alternative out on purpose.
        rates = np.where(out[name] > 0, rates, 0.0)
        rates = rates**power
        if rates.sum() > 0:
            out[name] = (1 - mix) * rates / rates.sum() + mix * out[name]
    return out


class Sampler:
    """Draws derivations of ``space`` with given probabilities of the alternatives.

    Examples
    --------
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

    def chance(self, derivation: Derivation) -> float:
        """The probability of one derivation."""
        which, index = derivation
        value = float(self.shares[which])
        for cdf, i in zip(self._cells[which], index, strict=True):
            value *= float(cdf[i] - (cdf[i - 1] if i else 0.0))
        return value

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


@dataclass(frozen=True, slots=True, eq=False)
class EditTable:
    """Edits of a batch as columns of one table; a row is one changed span.

    Attributes
    ----------
    case : (m,) int array
        Row of the batch.
    column : (m,) int array
        Column of the structure.
    start, end : (m,) int array
        ``[start, end)`` in characters of the original.
    source, target : (m,) int array
        Entries of the column's cell before and after.
    """

    case: Ints
    column: Ints
    start: Ints
    end: Ints
    source: Ints
    target: Ints

    def __len__(self) -> int:
        return len(self.case)


class Batch:
    """Pairs of one structure: ``before`` and ``after`` are (n, cells) indices of terminals."""

    def __init__(self, structure: Structure, number: int, before: Ints, after: Ints) -> None:
        self.structure, self.number = structure, number
        self.before, self.after = before, after

    def __len__(self) -> int:
        return len(self.before)

    def texts(self) -> list[str]:
        """The originals."""
        return self._texts(self.before)

    def variants(self) -> list[str]:
        """The counterparts."""
        return self._texts(self.after)

    def _texts(self, index: Ints) -> list[str]:
        s = self.structure
        columns = [
            table[index[:, c.cell]].tolist() for c, table in zip(s.columns, s.tables, strict=True) if c.cell >= 0
        ]
        if not columns:
            return [s.text(())] * len(index)
        template = s.template
        return [template % row for row in zip(*columns, strict=True)]

    @cached_property
    def edits(self) -> EditTable:
        """What changes from the originals to the counterparts, and where."""
        s = self.structure
        n = len(self)
        at = np.zeros(n, dtype=np.int64)
        found: list[tuple[Ints, ...]] = []
        for number, column in enumerate(s.columns):
            if column.cell < 0:
                at = at + s.lengths[number][0]
                continue
            before, after = self.before[:, column.cell], self.after[:, column.cell]
            end = at + s.lengths[number][before]
            rows = np.flatnonzero(s.codes[number][before] != s.codes[number][after])
            if len(rows):
                found.append((rows, np.full(len(rows), number), at[rows], end[rows], before[rows], after[rows]))
            at = end
        if not found:
            none = np.empty(0, dtype=np.int64)
            return EditTable(none, none, none, none, none, none)
        return EditTable(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


class Mutator:
    """Replaces the terminals of one attribute by those of another group (Algorithm 1, Mutate_Input)."""

    def __init__(self, structure: Structure, attributes: tuple[str, ...] | None = None) -> None:
        self.structure = structure
        self.attributes = tuple(a for a in structure.attributes if attributes is None or a in attributes)
        self.cells = {a: [j for j, c in enumerate(structure.cells) if c.attribute == a] for a in self.attributes}
        self.groups: dict[str, list[str]] = {}
        self._group: dict[int, Ints] = {}  # cell -> group number of each entry
        self._rank: dict[int, Ints] = {}  # cell -> place of each entry in its group
        self._of: dict[int, list[Ints]] = {}  # cell -> entries of each group
        for attribute, cells in self.cells.items():
            names = list(dict.fromkeys(t.group or "" for j in cells for t in structure.cells[j].terminals))
            self.groups[attribute] = names
            for j in cells:
                by_group = structure.cells[j].by_group()
                self._of[j] = [np.array(by_group.get(g, []), dtype=np.int64) for g in names]
                size = len(structure.cells[j].entries)
                self._group[j] = np.empty(size, dtype=np.int64)
                self._rank[j] = np.empty(size, dtype=np.int64)
                for number, entries in enumerate(self._of[j]):
                    self._group[j][entries] = number
                    self._rank[j][entries] = np.arange(len(entries))

    def pairs(self, index: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """One counterpart for each row of ``index``: one attribute, one other group, one of its terminals.

        Returns
        -------
        rows : (k,) int array
            The rows that have a counterpart.
        after : (k, cells) int array
        """
        after = index.copy()
        if not self.attributes:
            return np.empty(0, dtype=np.int64), after[:0]
        chosen = rng.integers(len(self.attributes), size=len(index))
        for number, attribute in enumerate(self.attributes):
            rows = np.flatnonzero(chosen == number)
            cells = self.cells[attribute]
            if len(self.groups[attribute]) < 2:
                continue
            source = self._group[cells[0]][index[rows, cells[0]]]
            shift = rng.integers(1, len(self.groups[attribute]), size=len(rows))
            target = (source + shift) % len(self.groups[attribute])
            for j in cells:
                after[rows, j] = self._replace(j, index[rows, j], target, rng)
        changed = np.flatnonzero((after != index).any(axis=1))
        return changed, after[changed]

    def _replace(self, cell: int, index: Ints, target: Ints, rng: np.random.Generator) -> Ints:
        out = index.copy()
        for group, entries in enumerate(self._of[cell]):
            rows = np.flatnonzero((target == group) & (self._group[cell][index] != group))
            if not len(rows) or not len(entries):
                continue
            if self.structure.cells[cell].aligned:
                out[rows] = entries[self._rank[cell][index[rows]]]
            else:
                out[rows] = entries[rng.integers(len(entries), size=len(rows))]
        return out

    def others(self, index: tuple[int, ...], attribute: str) -> list[tuple[str, tuple[int, ...]]]:
        """(group, entries) for every other group of ``attribute``; the entries are those of its first cell."""
        cell = self.cells[attribute][0]
        own = int(self._group[cell][index[cell]])
        return [
            (name, tuple(int(e) for e in self._of[cell][number]))
            for number, name in enumerate(self.groups[attribute])
            if number != own
        ]

    def same_group(self, cell: int, entry: int) -> list[int]:
        """The other entries of a cell that name the same group."""
        of = self._of[cell][int(self._group[cell][entry])]
        return [int(e) for e in of if e != entry]

    def source(self, index: tuple[int, ...], attribute: str) -> str:
        """The group, or groups, of ``attribute`` that a derivation names."""
        names = {self.structure.cells[j].entries[index[j]].terminal.group or "" for j in self.cells[attribute]}
        return "+".join(sorted(names))

    def toward(self, index: tuple[int, ...], attribute: str, group: str, pick: int) -> dict[int, int]:
        """The new entry of each cell when all of ``attribute`` becomes ``group``.

        ``pick`` in [0, terminals of the group) chooses the terminal; further cells take it modulo their
        number of terminals. Aligned cells keep their place in the group.
        """
        number = self.groups[attribute].index(group)
        out = {}
        for j in self.cells[attribute]:
            entries = self._of[j][number]
            if not len(entries) or self._group[j][index[j]] == number:
                continue
            aligned = self.structure.cells[j].aligned
            out[j] = int(entries[self._rank[j][index[j]] if aligned else pick % len(entries)])
        return out


def stream(
    space: Space,
    n: int,
    rng: np.random.Generator,
    *,
    weights: Weights | None = None,
    attributes: str | Iterable[str] | None = None,
    block: int = BLOCK,
) -> Iterator[Batch]:
    """Draw ``n`` pairs (original, counterpart) in bulk, as RAND or with the ``weights`` of PROB.

    Memory does not depend on ``n``. Derivations without a sensitive terminal are drawn again.

    Parameters
    ----------
    space : Space
    n : int
        Number of pairs.
    rng : numpy.random.Generator
    weights : mapping, optional
        What `error_weights` returned; None draws as RAND.
    attributes : str or iterable of str, optional
        The attributes to change, as a list or with commas between; None takes all.
    block : int
        Derivations drawn together.

    Yields
    ------
    Batch
        Pairs of one structure; together ``n``.

    Raises
    ------
    ConfigError
        No sentence names a group of these attributes.
    """
    from auditor.core.errors import ConfigError

    sampler = Sampler(space, weights)
    chosen = None if attributes is None else names(attributes)
    mutators = [Mutator(s, chosen) for s in space.structures]
    useful = np.array([bool(m.attributes) for m in mutators])
    if not sampler.shares[useful].sum() > 0:
        raise ConfigError(f"No sentence of the grammar {space.grammar.full_name} names a group to be replaced.")
    left = n
    while left > 0:
        for number, _, index in sampler.block(min(block, left), rng):
            rows, after = mutators[number].pairs(index, rng)
            if len(rows):
                left -= len(rows)
                yield Batch(space.structures[number], number, index[rows], after)


class Uniform:
    """Derivations of distinct sentences, each sentence equally likely, none twice, nothing remembered.

    Parameters
    ----------
    space : Space
    seed : int
        Fixes the order.
    """

    def __init__(self, space: Space, *, seed: int) -> None:
        self.ranks = Ranks(space)
        self.order = Shuffle(self.ranks.size, seed=seed)
        self.size = self.ranks.size

    def at(self, place: int) -> Derivation:
        """The derivation at ``place`` in [0, size) of the random order."""
        return self.ranks.derivation(self.order[place])
