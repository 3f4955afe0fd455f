"""Everything that a grammar can generate: derivations by number, how many sentences, and what cases reached of it.

Two derivations may give one sentence, so counting derivations is not enough: the union of all structures is made a
deterministic automaton over characters, whose accepted strings are counted exactly, with Python's integers.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import prod
from typing import TypeAlias

from auditor.perturb.combine import numbered
from auditor.perturb.grammar.model import Grammar, Terminal
from auditor.perturb.grammar.structures import Choice, Derivation, Structure, structures_of

MOST_PLACES = 20_000_000  # characters of all columns; positions of all states, and steps between them
MOST_PRODUCTS = 100_000  # ways in which the forms of all structures can agree
_Position: TypeAlias = tuple[int, int]  # a suffix of columns, and a node of its first column's trie
_State: TypeAlias = frozenset[_Position]


class _Trie:
    """The strings of all columns as tries, and what follows on each column."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, int]] = []
        self.last: set[int] = set()  # nodes where a string of the column ends
        self._roots: dict[tuple[str, ...], int] = {}
        self.suffixes: dict[tuple[int, int], int] = {(-1, -1): 0}  # (root, next suffix) -> number; 0 is the end
        self.rows: list[tuple[int, int]] = [(-1, -1)]  # the same by number

    def suffix(self, columns: Sequence[tuple[str, ...]]) -> int:
        """The number of a sequence of columns."""
        number = 0
        for column in reversed(columns):
            key = (self._root(column), number)
            number = self.suffixes.setdefault(key, len(self.rows))
            if number == len(self.rows):
                self.rows.append(key)
        return number

    def _root(self, column: tuple[str, ...]) -> int:
        if column not in self._roots:
            root = self._roots[column] = len(self.nodes)
            self.nodes.append({})
            for text in column:
                at = root
                for char in text:
                    following = self.nodes[at].setdefault(char, len(self.nodes))
                    if following == len(self.nodes):
                        self.nodes.append({})
                    at = following
                self.last.add(at)
        return self._roots[column]

    def enter(self, suffix: int) -> Iterator[_Position]:
        """The positions at the beginning of a suffix."""
        return self.reach(suffix, self.rows[suffix][0])

    def reach(self, suffix: int, node: int) -> Iterator[_Position]:
        """A position and, where a string of its column ends there, the beginnings of what follows."""
        yield suffix, node
        if node in self.last:
            yield from self.enter(self.rows[suffix][1])


def distinct(structures: Sequence[Structure]) -> int:
    """Count the distinct sentences: the strings that a deterministic automaton over characters accepts."""
    classes = [_classes(structure) for structure in structures]
    if sum(prod(map(len, own)) for own in classes) > MOST_PRODUCTS:
        raise OverflowError
    trie, starts = _Trie(), set[_Position]()
    for structure, own in zip(structures, classes, strict=True):
        for columns in _products(structure, own):
            starts |= set(trie.enter(trie.suffix(columns)))
            if len(trie.nodes) > MOST_PLACES:
                raise OverflowError
    steps: dict[_State, list[_State]] = {}
    layer: dict[_State, int] = {frozenset(starts): 1}  # states after some characters, and the strings that lead there
    total = work = 0
    while layer:
        following: dict[_State, int] = {}
        for state, ways in layer.items():
            total += ways * ((0, -1) in state)
            if state not in steps:
                reached: dict[str, set[_Position]] = {}
                for suffix, node in state:
                    for char, child in trie.nodes[node].items() if node >= 0 else ():
                        reached.setdefault(char, set()).update(trie.reach(suffix, child))
                steps[state] = list(map(frozenset, reached.values()))
                work += len(state)
            work += len(steps[state])
            if work > MOST_PLACES:
                raise OverflowError
            for other in steps[state]:
                following[other] = following.get(other, 0) + ways
        layer = following
    return total


def _classes(structure: Structure) -> list[list[list[int]]]:
    """The terminals of each cell in classes that agree in all forms that the cell decides."""
    classes: list[list[list[int]]] = []
    for number, cell in enumerate(structure.cells):
        tied = [c for c in structure.columns if c.tied and c.cell == number]
        split: dict[tuple[str, ...], list[int]] = {}
        for i in range(len(cell.entries)):
            split.setdefault(tuple(c.table[i] for c in tied), []).append(i)
        classes.append(list(split.values()))
    return classes


def _products(structure: Structure, classes: list[list[list[int]]]) -> Iterator[list[tuple[str, ...]]]:
    """``structure`` as a union of sequences of columns that are independent of each other, one for each agreement."""
    for picked in itertools.product(*classes):
        columns = []
        for column in structure.columns:
            if column.cell < 0:
                columns.append(column.table)
            elif column.tied:
                columns.append((column.table[picked[column.cell][0]],))
            else:
                columns.append(tuple(sorted({column.table[i] for i in picked[column.cell]})))
        yield columns


class Space:
    """Everything that a grammar can generate; ``derivations`` are at least as many as distinct sentences."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.structures = tuple(structures_of(grammar))
        self.ends: list[int] = list(itertools.accumulate(s.size for s in self.structures))
        self.derivations = self.ends[-1]

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The sensitive attributes of all structures, sorted."""
        return tuple(sorted({a for s in self.structures for a in s.attributes}))

    @cached_property
    def sentences(self) -> int | None:
        """The exact number of distinct sentences; None where the grammar is too large to tell."""
        try:
            return distinct(self.structures)
        except OverflowError:
            return None

    def text(self, derivation: Derivation) -> str:
        """The sentence of one derivation."""
        return self.structures[derivation[0]].text(derivation[1])

    def nth(self, number: int) -> Derivation:
        """Derivation ``number`` in [0, derivations): mixed radix, the last cell fastest."""
        if not 0 <= number < self.derivations:
            raise IndexError(f"derivation {number} of {self.derivations}")
        which = bisect_right(self.ends, number)
        rest = number - (self.ends[which - 1] if which else 0)
        index = numbered(rest, [range(size) for size in reversed(self.structures[which].sizes)])
        return which, index[::-1]


def space(grammar: Grammar) -> Space:
    """Make ``grammar`` ready to draw from."""
    return Space(grammar)


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """The size of a grammar; ``sentences`` None: too many to count."""

    rules: int
    alternatives: int
    terminals: int
    structures: int
    derivations: int
    sentences: int | None


def summary(space: Space) -> Size:
    """Count the rules, terminals, structures, derivations and sentences of a grammar."""
    grammar = space.grammar
    reached = grammar.reachable()
    return Size(
        rules=len(reached),
        alternatives=sum(len(grammar.rules[r].alternatives) for r in reached),
        terminals=sum(1 for _ in grammar.terminals()),
        structures=len(space.structures),
        derivations=space.derivations,
        sentences=space.sentences,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """What a set of cases reached."""

    terminals: int
    terminals_covered: int
    pairs: int
    pairs_covered: int
    unseen: tuple[str, ...]

    def as_record(self) -> dict[str, object]:
        """Plain data, with the shares."""
        return asdict(self) | {
            "unseen": list(self.unseen),
            "terminal_share": self.terminals_covered / self.terminals if self.terminals else None,
            "pair_share": self.pairs_covered / self.pairs if self.pairs else None,
        }


class Meter:
    """Takes cases one by one; constant memory in their number."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.terminals, self.pairs = universe(space.grammar)
        self.seen: set[Choice] = set()
        self.met: set[frozenset[Choice]] = set()

    def add(self, original: Derivation, variants: Iterable[Derivation]) -> None:
        """Count one case."""
        which, index = original
        structure = self.space.structures[which]
        self.seen |= self.terminals & set(structure.path(index))
        for other, changed in variants:
            self.seen |= self.terminals & set(self.space.structures[other].path(changed))
            if other != which:
                continue
            for cell, i, j in zip(structure.cells, index, changed, strict=True):
                if cell.attribute is not None and i != j:
                    self.met.add(frozenset((cell.entries[i].path[-1], cell.entries[j].path[-1])))

    def result(self) -> Coverage:
        """What was reached so far."""
        rules = self.space.grammar.rules
        unseen = [
            f"{r}: {getattr(rules[r].alternatives[i], 'text', '')}" for r, i in sorted(self.terminals - self.seen)
        ]
        return Coverage(
            terminals=len(self.terminals),
            terminals_covered=len(self.seen),
            pairs=len(self.pairs),
            pairs_covered=len(self.met & self.pairs),
            unseen=tuple(unseen),
        )


def universe(grammar: Grammar) -> tuple[set[Choice], set[frozenset[Choice]]]:
    """All terminals, and all pairs of sensitive terminals that may replace each other."""
    terminals: set[Choice] = set()
    pairs: set[frozenset[Choice]] = set()
    for name in grammar.reachable():
        rule = grammar.rules[name]
        own = [(i, a) for i, a in enumerate(rule.alternatives) if isinstance(a, Terminal)]
        terminals |= {(name, i) for i, _ in own}
        if rule.attribute is None:
            continue
        groups = [a.group or "" for _, a in own]
        place = {i: groups[:n].count(groups[n]) for n, (i, _) in enumerate(own)} if rule.aligned else {}
        for (i, a), (j, b) in itertools.combinations(own, 2):
            if a.group != b.group and (not rule.aligned or place[i] == place[j]):
                pairs.add(frozenset(((name, i), (name, j))))
    return terminals, pairs
