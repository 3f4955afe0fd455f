"""What a counterpart of a generated sentence changes, and the edits that say so."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from auditor.core.types import Edit, EditKind, Variant
from auditor.perturb.grammar.generate import Mutator
from auditor.perturb.grammar.shape import Structure


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


def changed_cells(structure: Structure, before: Sequence[int], edits: Sequence[Edit]) -> tuple[int, ...]:
    """The cells whose terminals ``edits`` of a derivation's sentence replace, repairs left out."""
    places = {edit.where for edit in edits if edit.kind != "agreement"}
    spans = zip(structure.columns, structure.spans(before), strict=True)
    own = (column for column, span in spans if span in places)
    return tuple(sorted({column.cell for column in own if column.cell >= 0 and not column.tied}))


def same_groups(
    structure: Structure, mutator: Mutator, index: tuple[int, ...], variants: Sequence[Variant]
) -> dict[str, tuple[int, ...]]:
    """Sentences and derivations that change the places which ``variants`` change, and no group."""
    found: dict[str, tuple[int, ...]] = {}
    for cells in dict.fromkeys(changed_cells(structure, index, v.edits) for v in variants):
        others = {cell: mutator.same_group(cell, index[cell]) for cell in cells}
        for pick in range(max(map(len, others.values()), default=0)):
            after = list(index)
            for cell, entries in others.items():
                after[cell] = entries[pick % len(entries)] if entries else index[cell]
            found.setdefault(structure.text(after), tuple(after))
    return found


def chosen_swaps(
    mutator: Mutator, index: tuple[int, ...], rng: Random, *, order: int, limit: int | None, one: bool
) -> list[tuple[Swap, ...]]:
    """What to change in one derivation: single swaps first, then joint ones with all their parts.

    Parameters
    ----------
    mutator : Mutator
        Of the derivation's structure.
    index : tuple of int
        The derivation.
    rng : Random
        Draws.
    order : int
        The largest number of attributes changed together.
    limit : int or None
        Swaps for each set of attributes; None takes all.
    one : bool
        A single swap of one attribute, as published.
    """
    offers: dict[str, list[Swap]] = {}
    for attribute in mutator.attributes:
        found = _offers(mutator, index, attribute, rng, limit, one=one)
        if found:
            offers[attribute] = found
    if not offers:
        return []
    if one:
        attribute = rng.choice(sorted(offers))
        return [(rng.choice(offers[attribute]),)]
    chosen: dict[frozenset[Swap], tuple[Swap, ...]] = {}
    for attribute in sorted(offers):
        for swap in offers[attribute]:
            chosen[frozenset((swap,))] = (swap,)
    for k in range(2, min(order, len(offers)) + 1):
        for together in itertools.combinations(sorted(offers), k):
            for swaps in products([offers[a] for a in together], limit, rng):
                for size in range(2, k + 1):
                    for part in itertools.combinations(swaps, size):
                        chosen.setdefault(frozenset(part), part)
    return sorted(chosen.values(), key=len)


def _offers(
    mutator: Mutator, index: tuple[int, ...], attribute: str, rng: Random, limit: int | None, *, one: bool
) -> list[Swap]:
    """Swaps of one attribute, spread over the groups; at most ``limit``."""
    queues = []
    for group, entries in mutator.others(index, attribute):
        picks = list(range(max(1, len(entries))))
        rng.shuffle(picks)
        found = dict.fromkeys(
            tuple(sorted(mutator.toward(index, attribute, group, pick).items()))
            for pick in (picks[:1] if one else picks)
        )
        queues.append([Swap(attribute, group, cells) for cells in found if cells])
    rng.shuffle(queues)
    spread = (s for row in itertools.zip_longest(*queues) for s in row if s is not None)
    return list(itertools.islice(spread, limit or sum(map(len, queues))))
