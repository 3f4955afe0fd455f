"""What a counterpart of a generated sentence changes, and the edits that say so."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from auditor.core.types import Edit, EditKind, Variant
from auditor.perturb.grammar.structures import Structure
from auditor.perturb.mutation import by_turns, numbered, with_parts


class Mutator:
    """Replaces the terminals of one attribute by those of another group (Algorithm 1, Mutate_Input)."""

    def __init__(self, structure: Structure, attributes: tuple[str, ...]) -> None:
        self.structure = structure
        self.attributes = tuple(a for a in structure.attributes if a in attributes)
        self.cells = {a: [j for j, c in enumerate(structure.cells) if c.attribute == a] for a in self.attributes}
        self._entries: dict[int, dict[str, list[int]]] = {}  # cell -> group -> its entries
        for cells in self.cells.values():
            groups = dict.fromkeys(t.group or "" for j in cells for t in structure.cells[j].terminals)
            for j in cells:
                own = self._entries[j] = {group: [] for group in groups}
                for i, terminal in enumerate(structure.cells[j].terminals):
                    own[terminal.group or ""].append(i)

    def _group(self, cell: int, entry: int) -> str:
        return self.structure.cells[cell].entries[entry].terminal.group or ""

    def source(self, index: tuple[int, ...], attribute: str) -> str:
        """The group, or groups, of ``attribute`` that a derivation names."""
        return "+".join(sorted({self._group(j, index[j]) for j in self.cells[attribute]}))

    def swaps(self, index: tuple[int, ...], attribute: str, rng: Random, limit: int | None, *, one: bool) -> list[Swap]:
        """Swaps of one attribute, spread over the groups; at most ``limit``."""
        first, queues = self.cells[attribute][0], []
        for group, entries in self._entries[first].items():
            if group != self._group(first, index[first]):
                picks = list(range(max(1, len(entries))))
                rng.shuffle(picks)
                cells = dict.fromkeys(
                    self._toward(index, attribute, group, pick) for pick in (picks[:1] if one else picks)
                )
                queues.append([Swap(attribute, group, own) for own in cells if own])
        rng.shuffle(queues)
        return list(itertools.islice(by_turns(queues), limit or sum(map(len, queues))))

    def _toward(self, index: tuple[int, ...], attribute: str, group: str, pick: int) -> tuple[tuple[int, int], ...]:
        """Each cell with its new entry when all of ``attribute`` becomes ``group``."""
        out = []
        for j in self.cells[attribute]:
            entries, own = self._entries[j][group], self._group(j, index[j])
            if entries and own != group:
                place = self._entries[j][own].index(index[j]) if self.structure.cells[j].aligned else pick
                out.append((j, entries[place % len(entries)]))
        return tuple(out)

    def same_groups(self, index: tuple[int, ...], variants: Sequence[Variant]) -> dict[str, tuple[int, ...]]:
        """Sentences and derivations that change the places which ``variants`` change, and no group."""
        derivations: dict[str, tuple[int, ...]] = {}
        structure = self.structure
        columns = [(c, span) for c, span in zip(structure.columns, structure.spans(index), strict=True) if c.cell >= 0]
        places = ({edit.where for edit in variant.edits if edit.kind != "agreement"} for variant in variants)
        changed = (sorted({c.cell for c, span in columns if span in own and not c.tied}) for own in places)
        for cells in dict.fromkeys(map(tuple, changed)):
            same = {cell: self._entries[cell][self._group(cell, index[cell])] for cell in cells}
            others = {cell: [entry for entry in own if entry != index[cell]] for cell, own in same.items()}
            for pick in range(max(map(len, others.values()), default=0)):
                after = list(index)
                for cell, entries in others.items():
                    after[cell] = entries[pick % len(entries)] if entries else index[cell]
                derivations.setdefault(structure.text(after), tuple(after))
        return derivations


class Swap(NamedTuple):
    """One attribute becomes one group: the new entry of each cell concerned."""

    attribute: str
    group: str
    cells: tuple[tuple[int, int], ...]


def edits_of(
    structure: Structure, before: Sequence[int], after: Sequence[int], *, placebo: bool = False
) -> Iterator[Edit]:
    """The edits that turn one derivation's sentence into another's of the same structure, in order."""
    for column, (start, end) in zip(structure.columns, structure.spans(before), strict=True):
        if column.cell < 0:
            continue
        source, target = column.table[before[column.cell]], column.table[after[column.cell]]
        if source == target:
            continue
        cell = structure.cells[column.cell]
        old, new = (cell.entries[i[column.cell]].terminal for i in (before, after))
        kind: EditKind = "placebo" if placebo else "marking" if old.group == "unmarked" else "swap"
        yield Edit(
            attribute=cell.attribute or cell.rule,
            kind="agreement" if column.tied else kind,
            source_group=old.group or "",
            target_group=new.group or "",
            source=source,
            target=target,
            where=(start, end),
        )


def chosen_swaps(
    mutator: Mutator, index: tuple[int, ...], rng: Random, *, order: int, limit: int | None, one: bool
) -> list[tuple[Swap, ...]]:
    """What to change in one derivation: single swaps first, then joint ones with all their parts."""
    every = {a: mutator.swaps(index, a, rng, limit, one=one) for a in mutator.attributes}
    offers = {attribute: own for attribute, own in every.items() if own}
    if not offers:
        return []
    if one:
        attribute = rng.choice(sorted(offers))
        return [(rng.choice(offers[attribute]),)]
    return with_parts(offers, order, lambda attributes: _products([offers[a] for a in attributes], limit, rng))


def _products(offers: Sequence[Sequence[Swap]], limit: int | None, rng: Random) -> Iterable[tuple[Swap, ...]]:
    """Up to ``limit`` different combinations, one swap of each."""
    total = math.prod(map(len, offers))
    if limit is None or total <= limit:
        return itertools.product(*offers)
    return (numbered(number, offers[::-1])[::-1] for number in rng.sample(range(total), limit))
