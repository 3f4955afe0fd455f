"""What a counterpart of a generated sentence changes, and the edits that say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from auditor.grammar.shape import Structure
from auditor.types import Edit, EditKind


class Swap(NamedTuple):
    """One attribute becomes one group: the new entry of each cell concerned."""

    attribute: str
    group: str
    cells: tuple[tuple[int, int], ...]


def products(offers: Sequence[Sequence[Swap]], limit: int | None, rng: Random) -> Iterator[tuple[Swap, ...]]:
    """Up to ``limit`` different combinations, one swap of each."""
    total = 1
    for one in offers:
        total *= len(one)
    numbers = range(total) if limit is None or total <= limit else rng.sample(range(total), limit)
    for number in numbers:
        picked = []
        for one in reversed(offers):
            number, i = divmod(number, len(one))
            picked.append(one[i])
        yield tuple(reversed(picked))


def edits_of(
    structure: Structure, before: Sequence[int], after: Sequence[int], *, placebo: bool = False
) -> Iterator[Edit]:
    """The edits that turn one derivation's sentence into another's of the same structure, in order.

    Offsets are characters of the first sentence. Forms that follow from a terminal are of kind
    ``agreement``.
    """
    for column, (start, end) in zip(structure.columns, structure.spans(before), strict=True):
        if column.cell < 0:
            continue
        source, target = column.table[before[column.cell]], column.table[after[column.cell]]
        if source == target:
            continue
        cell = structure.cells[column.cell]
        old, new = (cell.entries[i[column.cell]].terminal for i in (before, after))
        kind: EditKind = "swap"
        if column.tied:
            kind = "agreement"
        elif placebo:
            kind = "placebo"
        elif old.group == "unmarked":
            kind = "marking"
        yield Edit(
            attribute=cell.attribute or cell.rule,
            kind=kind,
            source_group=old.group or "",
            target_group=new.group or "",
            source=source,
            target=target,
            where=(start, end),
        )
