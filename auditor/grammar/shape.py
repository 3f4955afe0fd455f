"""From rules to flat structures: what generation, counting and recognition work on.

A finite grammar is a union of *structures*: sequences of columns, each fixed text, a free choice among
terminals, or tied to a free choice by agreement. A derivation is a structure and one index for each of
its free cells, so millions of them are arrays of small integers, and strings are put together only where
somebody reads them.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from auditor.errors import DataFileError
from auditor.grammar import agree
from auditor.grammar.model import Agree, Alternative, Article, Grammar, Ref, Rule, Terminal, Text

MOST_STRUCTURES = 20_000
MOST_ENTRIES = 4_096  # of a cell that takes the place of several rules

Ints: TypeAlias = npt.NDArray[np.int64]
Choice: TypeAlias = tuple[str, int]  # a rule, and which of its alternatives
Derivation: TypeAlias = tuple[int, tuple[int, ...]]  # a structure, and an index for each free cell


class Entry(NamedTuple):
    """One way to fill a cell: its text, the terminal, and the alternatives that lead to it."""

    text: str
    path: tuple[Choice, ...]
    terminal: Terminal


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """One free choice of a structure."""

    rule: str
    entries: tuple[Entry, ...]
    attribute: str | None = None
    aligned: bool = False

    @property
    def terminals(self) -> list[Terminal]:
        """The terminal of each entry."""
        return [e.terminal for e in self.entries]

    def by_group(self) -> dict[str, list[int]]:
        """The entries of each group, in order."""
        out: dict[str, list[int]] = {}
        for i, entry in enumerate(self.entries):
            out.setdefault(entry.terminal.group or "", []).append(i)
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One stretch of text: ``table[i]`` where ``i`` is the index of cell ``cell``; fixed where cell is -1."""

    cell: int
    table: tuple[str, ...]
    tied: bool = False


class _Tied(NamedTuple):
    part: Agree
    target: int | None  # position in the sequence, of a cell


class _Article(NamedTuple):
    pass


_Item: TypeAlias = str | Cell | _Tied | _Article
_Sequence: TypeAlias = tuple[tuple[_Item, ...], tuple[Choice, ...]]


class Structure:
    """A sequence of columns over free cells.

    Parameters
    ----------
    columns : sequence of Column
        In the order of the text.
    cells : sequence of Cell
        The free choices.
    choices : sequence of (rule, alternative)
        The alternatives that lead to this structure.
    """

    def __init__(self, columns: Sequence[Column], cells: Sequence[Cell], choices: Sequence[Choice]) -> None:
        self.columns, self.cells, self.choices = tuple(columns), tuple(cells), tuple(choices)
        self.sizes = tuple(len(c.entries) for c in cells)
        self.size = prod(self.sizes)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of its sensitive cells, sorted."""
        return tuple(sorted({c.attribute for c in self.cells if c.attribute is not None}))

    @cached_property
    def tables(self) -> tuple[npt.NDArray[np.object_], ...]:
        """The strings of each column as an object array."""
        out = []
        for column in self.columns:
            array = np.empty(len(column.table), dtype=object)
            array[:] = column.table
            out.append(array)
        return tuple(out)

    @cached_property
    def lengths(self) -> tuple[Ints, ...]:
        """The number of characters of each string of each column."""
        return tuple(np.array([len(t) for t in c.table], dtype=np.int64) for c in self.columns)

    @cached_property
    def codes(self) -> tuple[Ints, ...]:
        """A number for each string of each column, equal where the strings are."""
        return tuple(np.unique(np.array(c.table), return_inverse=True)[1].astype(np.int64) for c in self.columns)

    @cached_property
    def template(self) -> str:
        """A ``%`` template: the fixed text, and a place for every other column."""
        return "".join(c.table[0].replace("%", "%%") if c.cell < 0 else "%s" for c in self.columns)

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """The fixed texts."""
        return tuple(c.table[0] for c in self.columns if c.cell < 0)

    def text(self, index: Sequence[int]) -> str:
        """The sentence of one derivation."""
        return "".join(c.table[0] if c.cell < 0 else c.table[index[c.cell]] for c in self.columns)

    def spans(self, index: Sequence[int]) -> list[tuple[int, int]]:
        """``[start, end)`` of every column in the sentence of one derivation."""
        out, at = [], 0
        for column in self.columns:
            end = at + len(column.table[0 if column.cell < 0 else index[column.cell]])
            out.append((at, end))
            at = end
        return out

    def path(self, index: Sequence[int]) -> list[Choice]:
        """Every (rule, alternative) of one derivation."""
        out = list(self.choices)
        for cell, i in zip(self.cells, index, strict=True):
            out += cell.entries[i].path
        return out

    def label(self, index: Sequence[int]) -> str | None:
        """The right label that ground-truth terminals fix; None where none does, or they disagree."""
        cells = zip(self.cells, index, strict=True)
        labels = {c.entries[i].terminal.label for c, i in cells if c.entries[i].terminal.label is not None}
        return labels.pop() if len(labels) == 1 else None

    def read(self, text: str) -> Iterator[tuple[int, ...]]:
        """Every derivation of this structure whose sentence is ``text``."""
        if not all(piece in text for piece in self.pieces):
            return
        todo: list[tuple[int, int, dict[int, int]]] = [(0, 0, {})]
        while todo:
            number, at, chosen = todo.pop()
            if number == len(self.columns):
                if at == len(text):
                    yield tuple(chosen[i] for i in range(len(self.cells)))
                continue
            column = self.columns[number]
            if column.cell < 0:
                if text.startswith(column.table[0], at):
                    todo.append((number + 1, at + len(column.table[0]), chosen))
            elif column.cell in chosen:
                form = column.table[chosen[column.cell]]
                if text.startswith(form, at):
                    todo.append((number + 1, at + len(form), chosen))
            else:
                todo += self._choose(number, text, at, chosen)

    def _choose(
        self, number: int, text: str, at: int, chosen: dict[int, int]
    ) -> Iterator[tuple[int, int, dict[int, int]]]:
        """The terminals that fit a column whose cell is open yet, the last first."""
        column = self.columns[number]
        for i in range(len(column.table) - 1, -1, -1):
            if text.startswith(column.table[i], at):
                yield number + 1, at + len(column.table[i]), {**chosen, column.cell: i}


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
        self.structures = tuple(_structures(grammar))
        self.ends: list[int] = list(itertools.accumulate(s.size for s in self.structures))
        self.derivations = self.ends[-1]

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The sensitive attributes of all structures, sorted."""
        return tuple(sorted({a for s in self.structures for a in s.attributes}))

    @cached_property
    def sentences(self) -> int | None:
        """The exact number of distinct sentences; None where the grammar is too large to tell."""
        from auditor.grammar.count import distinct

        return distinct(self)

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

        >>> from auditor import grammar
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


# -- compilation ------------------------------------------------------------


def _structures(grammar: Grammar) -> Iterator[Structure]:
    cells: dict[str, Cell | None] = {}
    sequences: dict[str, list[_Sequence]] = {}
    for name in _inner_first(grammar):
        rule = grammar.rules[name]
        cells[name] = _cell(rule, cells)
        found = cells[name]
        sequences[name] = [((found,), ())] if found is not None else list(_expand(grammar, rule, sequences))
        if len(sequences[name]) > MOST_STRUCTURES:
            raise DataFileError(
                f"{grammar.where(rule.line)}: the rule {name} unfolds to more than {MOST_STRUCTURES:,} sentence "
                "structures. Gather rules whose alternatives are plain terms into one rule."
            )
    for items, choices in sequences[grammar.start]:
        yield _finish(grammar, items, choices)


def _inner_first(grammar: Grammar) -> list[str]:
    """The reachable rules, each after those that it refers to."""
    done: dict[str, None] = {}
    todo = [(grammar.start, False)]
    while todo:
        name, ready = todo.pop()
        if ready:
            done[name] = None
        elif name not in done:
            todo.append((name, True))
            for alternative in grammar.rules[name].alternatives:
                if isinstance(alternative, Alternative):
                    todo += [(ref.rule, False) for ref in alternative.refs if ref.rule not in done]
    return list(done)


def _cell(rule: Rule, cells: Mapping[str, Cell | None]) -> Cell | None:
    """One cell in the place of ``rule``, if its alternatives are terms with fixed text around them."""
    if rule.attribute is not None:
        return None if len(rule.terminals) != len(rule.alternatives) else _terms(rule)
    entries: list[Entry] = []
    for number, alternative in enumerate(rule.alternatives):
        if isinstance(alternative, Terminal):
            entries.append(Entry(alternative.text, ((rule.name, number),), alternative))
            continue
        refs = alternative.refs
        inner = cells[refs[0].rule] if len(refs) == 1 else None
        plain = all(isinstance(p, Text | Ref) for p in alternative.parts)
        if inner is None or inner.attribute is not None or not plain:
            return None
        before, after = _around(alternative)
        entries += (
            Entry(before + e.text + after, ((rule.name, number), *e.path), e.terminal) for e in inner.entries
        )
        if len(entries) > MOST_ENTRIES:
            return None
    return Cell(rule.name, tuple(entries))


def _around(alternative: Alternative) -> tuple[str, str]:
    at = next(i for i, p in enumerate(alternative.parts) if isinstance(p, Ref))
    texts = [p.text if isinstance(p, Text) else "" for p in alternative.parts]
    return "".join(texts[:at]), "".join(texts[at + 1 :])


def _terms(rule: Rule) -> Cell:
    """The terminals of ``rule`` as one cell."""
    entries = tuple(
        Entry(a.text, ((rule.name, i),), a) for i, a in enumerate(rule.alternatives) if isinstance(a, Terminal)
    )
    return Cell(rule.name, entries, rule.attribute, rule.aligned)


def _expand(
    grammar: Grammar, rule: Rule, sequences: Mapping[str, list[_Sequence]]
) -> Iterator[_Sequence]:
    if rule.terminals:
        yield (_terms(rule),), ()
    for number, alternative in enumerate(rule.alternatives):
        if not isinstance(alternative, Alternative):
            continue
        refs = alternative.refs
        if prod(len(sequences[r.rule]) for r in refs) > MOST_STRUCTURES:
            raise DataFileError(
                f"{grammar.where(alternative.line)}: this alternative unfolds to more than {MOST_STRUCTURES:,} "
                "sentence structures. Gather rules whose alternatives are plain terms into one rule."
            )
        for picked in itertools.product(*(sequences[r.rule] for r in refs)):
            items, spans = _place(alternative, dict(zip((r.name for r in refs), picked, strict=True)))
            choices = ((rule.name, number), *itertools.chain.from_iterable(p[1] for p in picked))
            yield tuple(_resolve(items, spans)), choices


def _place(
    alternative: Alternative, picked: Mapping[str, _Sequence]
) -> tuple[list[_Item], dict[str, tuple[int, int]]]:
    """The items of one alternative, and where each reference stands among them."""
    items: list[_Item] = []
    spans: dict[str, tuple[int, int]] = {}
    for part in alternative.parts:
        if isinstance(part, Text):
            items.append(part.text)
        elif isinstance(part, Article):
            items.append(_Article())
        elif isinstance(part, Agree):
            items.append(_Tied(part, None))
        else:
            base = len(items)
            for item in picked[part.name][0]:
                moved = isinstance(item, _Tied) and item.target is not None
                items.append(item._replace(target=item.target + base) if moved else item)  # type: ignore[union-attr,operator]
            spans[part.name] = (base, len(items))
    return items, spans


def _resolve(items: Sequence[_Item], spans: Mapping[str, tuple[int, int]]) -> Iterator[_Item]:
    """Tie each form that names a reference of this alternative to the cell that decides it."""
    for item in items:
        if isinstance(item, _Tied) and item.target is None and item.part.name in spans:
            start, end = spans[item.part.name]
            inside = [(i, c) for i, c in enumerate(items[start:end], start) if isinstance(c, Cell)]
            sensitive = [i for i, c in inside if c.attribute is not None]
            having = [i for i, c in inside if any(item.part.feature in t.features for t in c.terminals)]
            target = next(iter([*(i for i in having if i in sensitive), *having, *sensitive]), None)
            yield item._replace(target=target) if target is not None else item.part.forms[0]
        else:
            yield item


def _finish(grammar: Grammar, items: Sequence[_Item], choices: Sequence[Choice]) -> Structure:
    """Number the cells, make the tables, set articles and capitals."""
    cells: list[Cell] = []
    place: dict[int, int] = {}
    for i, item in enumerate(items):
        if isinstance(item, Cell):
            place[i] = len(cells)
            cells.append(item)
    columns: list[Column] = []
    for item_number, item in enumerate(items):
        if isinstance(item, str):
            columns.append(Column(-1, (item,)))
        elif isinstance(item, Cell):
            columns.append(Column(place[item_number], tuple(e.text for e in item.entries)))
        elif isinstance(item, _Tied):
            assert item.target is not None
            cell = place[item.target]
            part = item.part
            values = grammar.features[part.feature]
            table = agree.form_table(cells[cell].terminals, part.forms, part.feature, values)
            columns.append(Column(cell, table, True) if len(set(table)) > 1 else Column(-1, table[:1]))
        else:
            columns.append(Column(-2, ()))
    _articles(columns)
    return Structure(_capitals(_joined(columns)), cells, choices)


def _articles(columns: list[Column]) -> None:
    """Set every article by what stands behind it."""
    for i in range(len(columns) - 1, -1, -1):
        if columns[i].cell != -2:
            continue
        following = next((c for c in columns[i + 1 :] if c.cell >= 0 or c.table[0].strip()), None)
        if following is None:
            columns[i] = Column(-1, ("a",))
            continue
        table = agree.article_table(following.table)
        varies = following.cell >= 0 and len(set(table)) > 1
        columns[i] = Column(following.cell, table, True) if varies else Column(-1, table[:1])


def _joined(columns: Sequence[Column]) -> list[Column]:
    """``columns`` with neighbouring fixed texts made one."""
    out: list[Column] = []
    for column in columns:
        if column.cell < 0 and out and out[-1].cell < 0:
            out[-1] = Column(-1, (out[-1].table[0] + column.table[0],))
        else:
            out.append(column)
    return out


def _capitals(columns: Sequence[Column]) -> list[Column]:
    """``columns`` with a capital where a sentence begins."""
    out: list[Column] = []
    before = ""
    for column in columns:
        if agree.opens_sentence(before):
            column = Column(column.cell, agree.capitals(column.table), column.tied)
        out.append(column)
        before = before + column.table[0] if column.cell < 0 else "x"
    return out
