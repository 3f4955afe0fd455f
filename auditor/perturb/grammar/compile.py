"""From the rules of a grammar to its structures: unfolding, agreement, articles, capitals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

from auditor.core.errors import DataFileError
from auditor.perturb.grammar import agree
from auditor.perturb.grammar.model import Agree, Alternative, Article, Grammar, Ref, Rule, Terminal, Text
from auditor.perturb.grammar.shape import Cell, Choice, Column, Entry, Structure

MOST_STRUCTURES = 20_000
MOST_ENTRIES = 4_096  # of a cell that takes the place of several rules
MOST_PARTS = 300  # of one sentence structure
MOST_WORK = 50_000_000  # parts, alternatives and characters that all structures together hold


class _Tied(NamedTuple):
    part: Agree
    target: int | None  # position in the sequence, of a cell


class _Article(NamedTuple):
    pass


_Item: TypeAlias = str | Cell | _Tied | _Article
_Sequence: TypeAlias = tuple[tuple[_Item, ...], tuple[Choice, ...]]


class _Work:
    """What unfolding a grammar costs, taken before it is paid."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar, self.left = grammar, MOST_WORK

    def take(self, cost: int, line: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise DataFileError(
                f"{self.grammar.where(line)}: the sentence structures up to here hold more than {MOST_WORK:,} "
                "parts and characters. Take rules out, or make several grammars."
            )


def structures_of(grammar: Grammar) -> Iterator[Structure]:
    """Unfold the start symbol; raises `DataFileError` above 20,000 structures, or where they are too large."""
    work = _Work(grammar)
    cells: dict[str, Cell | None] = {}
    sequences: dict[str, list[_Sequence]] = {}
    for name in _inner_first(grammar):
        rule = grammar.rules[name]
        cells[name] = _cell(rule, cells, work)
        found = cells[name]
        sequences[name] = [((found,), ())] if found is not None else list(_expand(grammar, rule, sequences, work))
        if len(sequences[name]) > MOST_STRUCTURES:
            raise DataFileError(
                f"{grammar.where(rule.line)}: the rule {name} unfolds to more than {MOST_STRUCTURES:,} sentence "
                "structures. Gather rules whose alternatives are plain terms into one rule."
            )
    start = grammar.rules[grammar.start]
    for items, choices in sequences[grammar.start]:
        work.take(sum(len(item.entries) for item in items if isinstance(item, Cell)), start.line)
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


def _cell(rule: Rule, cells: Mapping[str, Cell | None], work: _Work) -> Cell | None:
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
        around = len(before) + len(after)
        work.take(sum(around + len(e.text) + len(e.path) for e in inner.entries), alternative.line)
        entries += (Entry(before + e.text + after, ((rule.name, number), *e.path), e.terminal) for e in inner.entries)
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


def _expand(grammar: Grammar, rule: Rule, sequences: Mapping[str, list[_Sequence]], work: _Work) -> Iterator[_Sequence]:
    if rule.terminals:
        yield (_terms(rule),), ()
    for number, alternative in enumerate(rule.alternatives):
        if not isinstance(alternative, Alternative):
            continue
        refs = alternative.refs
        many = prod(len(sequences[r.rule]) for r in refs)
        if many > MOST_STRUCTURES:
            raise DataFileError(
                f"{grammar.where(alternative.line)}: this alternative unfolds to more than {MOST_STRUCTURES:,} "
                "sentence structures. Gather rules whose alternatives are plain terms into one rule."
            )
        longest = sum(max(len(items) for items, _ in sequences[r.rule]) for r in refs)
        if longest + len(alternative.parts) - len(refs) > MOST_PARTS:
            raise DataFileError(
                f"{grammar.where(alternative.line)}: this alternative unfolds to a sentence of more than {MOST_PARTS} "
                "parts."
            )
        held = {r.rule: sum(len(items) + len(made) for items, made in sequences[r.rule]) for r in refs}
        cost = sum(held[r.rule] * many // len(sequences[r.rule]) for r in refs)
        work.take(cost + many * len(alternative.parts), alternative.line)
        for picked in itertools.product(*(sequences[r.rule] for r in refs)):
            items, spans = _place(alternative, dict(zip((r.name for r in refs), picked, strict=True)))
            choices = ((rule.name, number), *itertools.chain.from_iterable(p[1] for p in picked))
            yield tuple(_resolve(items, spans)), choices


def _place(alternative: Alternative, picked: Mapping[str, _Sequence]) -> tuple[list[_Item], dict[str, tuple[int, int]]]:
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
                if isinstance(item, _Tied) and item.target is not None:
                    item = item._replace(target=item.target + base)
                items.append(item)
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
