"""From rules to flat structures: what generation and counting work on.

A finite grammar is a union of *structures*: sequences of columns, each fixed text, a free choice among terminals, or
tied to a free choice by agreement. A derivation is a structure and one index for each of its free cells, so millions
of them are arrays of small integers, and strings are put together only where somebody reads them.

Every dependent word of a sentence is a function of one terminal choice, so it is a table: the form for each terminal.
Replacing a terminal then changes its dependents with it ("feel/feels", a/an, "she/he"), and the edit that does so is of
kind ``agreement``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from math import prod
from typing import NamedTuple, TypeAlias

from auditor.core.errors import DataFileError
from auditor.perturb.grammar.model import Agree, Alternative, Article, Grammar, Ref, Rule, Terminal
from auditor.text.english import article_for, capitalise

Choice: TypeAlias = tuple[str, int]  # a rule, and which of its alternatives
Derivation: TypeAlias = tuple[int, tuple[int, ...]]  # a structure, and an index for each free cell

MOST_STRUCTURES = 20_000
MOST_ENTRIES = 4_096  # of a cell that takes the place of several rules
MOST_PARTS = 300  # of one sentence structure
MOST_WORK = 50_000_000  # parts, alternatives and characters that all structures together hold
_GATHER = "sentence structures. Gather rules whose alternatives are plain terms into one rule."
_STOP = re.compile(r"(?:[.!?]['\"”’)]*\s+|\n\s*)\Z")


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


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One stretch of text: ``table[i]`` where ``i`` is the index of cell ``cell``; fixed where cell is -1."""

    cell: int
    table: tuple[str, ...]
    tied: bool = False


class Structure:
    """A sequence of columns, in the order of the text, over free cells; ``choices`` lead to it."""

    def __init__(self, columns: Sequence[Column], cells: Sequence[Cell], choices: Sequence[Choice]) -> None:
        self.columns, self.cells, self.choices = tuple(columns), tuple(cells), tuple(choices)
        self.sizes = tuple(len(c.entries) for c in cells)
        self.size = prod(self.sizes)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of its sensitive cells, sorted."""
        return tuple(sorted({c.attribute for c in self.cells if c.attribute is not None}))

    def text(self, index: Sequence[int]) -> str:
        """The sentence of one derivation."""
        return "".join(c.table[0] if c.cell < 0 else c.table[index[c.cell]] for c in self.columns)

    def spans(self, index: Sequence[int]) -> list[tuple[int, int]]:
        """``[start, end)`` of every column in the sentence of one derivation."""
        sizes = (len(c.table[0 if c.cell < 0 else index[c.cell]]) for c in self.columns)
        return list(itertools.pairwise(itertools.accumulate(sizes, initial=0)))

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


class _Tied(NamedTuple):
    part: Agree
    target: int | None  # position in the sequence, of a cell


_Item: TypeAlias = str | Cell | _Tied | Article
_Sequence: TypeAlias = tuple[tuple[_Item, ...], tuple[Choice, ...]]


def structures_of(grammar: Grammar) -> Iterator[Structure]:
    """Unfold the start symbol; raises `DataFileError` above 20,000 structures, or where they are too large."""
    unfold = _Unfolding(grammar)
    inner_first = TopologicalSorter({name: grammar.rules[name].refers for name in grammar.reachable()})
    for name in inner_first.static_order():
        unfold.take_rule(grammar.rules[name])
    for items, choices in unfold.sequences[grammar.start]:
        entries = sum(len(item.entries) for item in items if isinstance(item, Cell))
        unfold.pay(entries, grammar.rules[grammar.start].line)
        yield _finish(grammar, items, choices)


class Space:
    """Everything that a grammar can generate; ``derivations`` are at least as many as distinct sentences."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.structures = tuple(structures_of(grammar))
        self.derivations = sum(s.size for s in self.structures)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The sensitive attributes of all structures, sorted."""
        return tuple(sorted({a for s in self.structures for a in s.attributes}))

    def text(self, derivation: Derivation) -> str:
        """The sentence of one derivation."""
        return self.structures[derivation[0]].text(derivation[1])


class _Unfolding:
    """The rules unfolded so far, and what that may still cost: taken before it is paid."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar, self.left = grammar, MOST_WORK
        self.cells: dict[str, Cell | None] = {}
        self.sequences: dict[str, list[_Sequence]] = {}

    def fail(self, line: int, why: str) -> DataFileError:
        return DataFileError(f"{self.grammar.where(line)}: {why}")

    def pay(self, cost: int, line: int) -> None:
        self.left -= cost
        if self.left < 0:
            held = f"the sentence structures up to here hold more than {MOST_WORK:,} parts and characters"
            raise self.fail(line, f"{held}. Take rules out, or make several grammars.")

    def take_rule(self, rule: Rule) -> None:
        cell = self.cells[rule.name] = self.cell(rule)
        rows: list[_Sequence] = [((cell,), ())] if cell is not None else list(self.expand(rule))
        if len(rows) > MOST_STRUCTURES:
            raise self.fail(rule.line, f"the rule {rule.name} unfolds to more than {MOST_STRUCTURES:,} {_GATHER}")
        self.sequences[rule.name] = rows

    def cell(self, rule: Rule) -> Cell | None:
        """One cell in the place of ``rule``, if its alternatives are terms with fixed text around them."""
        if rule.attribute is not None:
            return None if len(rule.terminals) != len(rule.alternatives) else _terms(rule)
        entries: list[Entry] = []
        for number, alternative in enumerate(rule.alternatives):
            if isinstance(alternative, Terminal):
                entries.append(Entry(alternative.text, ((rule.name, number),), alternative))
                continue
            refs = alternative.refs
            inner = self.cells[refs[0].rule] if len(refs) == 1 else None
            texts = [p if isinstance(p, str) else None for p in alternative.parts]
            if inner is None or inner.attribute is not None or texts.count(None) > 1:
                return None
            at = texts.index(None)
            before, after = "".join(filter(None, texts[:at])), "".join(filter(None, texts[at + 1 :]))
            around = len(before) + len(after)
            self.pay(sum(around + len(e.text) + len(e.path) for e in inner.entries), alternative.line)
            own = (rule.name, number)
            entries += (Entry(before + e.text + after, (own, *e.path), e.terminal) for e in inner.entries)
            if len(entries) > MOST_ENTRIES:
                return None
        return Cell(rule.name, tuple(entries))

    def expand(self, rule: Rule) -> Iterator[_Sequence]:
        sequences = self.sequences
        if rule.terminals:
            yield (_terms(rule),), ()
        for number, alternative in enumerate(rule.alternatives):
            if not isinstance(alternative, Alternative):
                continue
            refs = alternative.refs
            many = prod(len(sequences[r.rule]) for r in refs)
            if many > MOST_STRUCTURES:
                raise self.fail(
                    alternative.line, f"this alternative unfolds to more than {MOST_STRUCTURES:,} {_GATHER}"
                )
            longest = sum(max(len(items) for items, _ in sequences[r.rule]) for r in refs)
            if longest + len(alternative.parts) - len(refs) > MOST_PARTS:
                why = f"this alternative unfolds to a sentence of more than {MOST_PARTS} parts."
                raise self.fail(alternative.line, why)
            held = {r.rule: sum(len(items) + len(made) for items, made in sequences[r.rule]) for r in refs}
            cost = sum(held[r.rule] * many // len(sequences[r.rule]) for r in refs)
            self.pay(cost + many * len(alternative.parts), alternative.line)
            for picked in itertools.product(*(sequences[r.rule] for r in refs)):
                items, spans = _place(alternative, dict(zip((r.name for r in refs), picked, strict=True)))
                choices = ((rule.name, number), *itertools.chain.from_iterable(p[1] for p in picked))
                yield tuple(_resolve(items, spans)), choices


def _terms(rule: Rule) -> Cell:
    """The terminals of ``rule`` as one cell."""
    entries = (Entry(a.text, ((rule.name, i),), a) for i, a in enumerate(rule.alternatives) if isinstance(a, Terminal))
    return Cell(rule.name, tuple(entries), rule.attribute, rule.aligned)


def _place(alternative: Alternative, picked: Mapping[str, _Sequence]) -> tuple[list[_Item], dict[str, tuple[int, int]]]:
    """The items of one alternative, and where each reference stands among them."""
    items: list[_Item] = []
    spans: dict[str, tuple[int, int]] = {}
    for part in alternative.parts:
        if isinstance(part, Ref):
            base = len(items)
            for item in picked[part.name][0]:
                if isinstance(item, _Tied) and item.target is not None:
                    item = item._replace(target=item.target + base)
                items.append(item)
            spans[part.name] = (base, len(items))
        else:
            items.append(_Tied(part, None) if isinstance(part, Agree) else part)
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
    place = {i: number for number, i in enumerate(i for i, item in enumerate(items) if isinstance(item, Cell))}
    cells = [item for item in items if isinstance(item, Cell)]
    columns: list[Column] = []
    for i in range(len(items) - 1, -1, -1):  # an article goes by what stands behind it
        item = items[i]
        if isinstance(item, str):
            column = Column(-1, (item,))
        elif isinstance(item, Cell):
            column = Column(place[i], tuple(e.text for e in item.entries))
        elif isinstance(item, _Tied):
            assert item.target is not None
            part, cell = item.part, place[item.target]
            forms = dict(zip(grammar.features[part.feature], part.forms, strict=True))
            first = part.forms[0]  # of a terminal without the feature
            table = (
                forms[t.features[part.feature]] if part.feature in t.features else first for t in cells[cell].terminals
            )
            column = _tied(cell, tuple(table))
        else:
            following = next((c for c in reversed(columns) if c.cell >= 0 or c.table[0].strip()), None)
            articles = ("a",) if following is None else tuple(map(article_for, following.table))
            column = _tied(-1 if following is None else following.cell, articles)
        columns.append(column)
    return Structure(_capitals(_joined(columns[::-1])), cells, choices)


def _tied(cell: int, table: tuple[str, ...]) -> Column:
    """A column that follows from a cell; fixed text where all its forms are one."""
    return Column(cell, table, True) if cell >= 0 and len(set(table)) > 1 else Column(-1, table[:1])


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
        if not before or _STOP.search(before):
            column = Column(column.cell, tuple(map(capitalise, column.table)), column.tied)
        out.append(column)
        before = before + column.table[0] if column.cell < 0 else "x"
    return out
