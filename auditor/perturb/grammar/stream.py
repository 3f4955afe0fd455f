"""Pairs in bulk: drawn as arrays of small integers, in blocks of constant size; strings and edits come from tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from auditor.core.errors import ConfigError
from auditor.core.types import names
from auditor.perturb.grammar.counterparts import Mutator
from auditor.perturb.grammar.draw import Sampler, Weights
from auditor.perturb.grammar.space import Space
from auditor.perturb.grammar.structures import Ints, Structure

BLOCK = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class EditTable:
    """Edits of a batch as columns of one table; a row is one changed span."""

    case: Ints  # row of the batch
    column: Ints  # of the structure
    start: Ints  # [start, end) in characters of the original
    end: Ints
    source: Ints  # entries of the column's cell before and after
    target: Ints

    def __len__(self) -> int:
        return len(self.case)


class Batch:
    """Pairs of one structure: ``before`` and ``after`` are (n, cells) indices of terminals."""

    def __init__(self, structure: Structure, before: Ints, after: Ints) -> None:
        self.structure, self.before, self.after = structure, before, after

    def __len__(self) -> int:
        return len(self.before)

    def texts(self) -> list[str]:
        """The originals."""
        return self._texts(self.before)

    def variants(self) -> list[str]:
        """The counterparts."""
        return self._texts(self.after)

    def _texts(self, index: Ints) -> list[str]:
        arrays = self.structure.arrays
        tables, template = zip(self.structure.columns, arrays.strings, strict=True), arrays.template
        columns = [table[index[:, c.cell]].tolist() for c, table in tables if c.cell >= 0]
        return [template % row for row in zip(*columns, strict=True)]

    @cached_property
    def edits(self) -> EditTable:
        """What changes from the originals to the counterparts, and where."""
        at = np.zeros(len(self), dtype=np.int64)
        rows = [(np.empty(0, dtype=np.int64),) * 6]
        for number, column in enumerate(self.structure.columns):
            lengths, codes = self.structure.arrays.lengths[number], self.structure.arrays.codes[number]
            if column.cell < 0:
                at = at + lengths[0]
                continue
            before, after = self.before[:, column.cell], self.after[:, column.cell]
            end = at + lengths[before]
            case = np.flatnonzero(codes[before] != codes[after])
            if len(case):
                rows.append((case, np.full(len(case), number), at[case], end[case], before[case], after[case]))
            at = end
        return EditTable(*(np.concatenate(parts) for parts in zip(*rows, strict=True)))


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
                yield Batch(space.structures[number], index[rows], after)
