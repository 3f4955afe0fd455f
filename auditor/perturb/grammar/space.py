"""Everything that a grammar can generate: derivations by number, and what cases reached of it."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property

from auditor.perturb.combine import numbered
from auditor.perturb.grammar.model import Grammar, Terminal
from auditor.perturb.grammar.structures import Choice, Derivation, structures_of


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
    """The size of a grammar."""

    rules: int
    alternatives: int
    terminals: int
    structures: int
    derivations: int


def summary(space: Space) -> Size:
    """Count the rules, terminals, structures and derivations of a grammar."""
    grammar = space.grammar
    reached = grammar.reachable()
    return Size(
        rules=len(reached),
        alternatives=sum(len(grammar.rules[r].alternatives) for r in reached),
        terminals=sum(1 for _ in grammar.terminals()),
        structures=len(space.structures),
        derivations=space.derivations,
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
