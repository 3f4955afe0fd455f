"""Grammar coverage: terminals, and pairs of sensitive terminals (ASTRAEA, §7.1 and Table 8)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from auditor.perturb.grammar.model import Grammar, Terminal
from auditor.perturb.grammar.space import Space
from auditor.perturb.grammar.structures import Choice, Derivation


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """What a set of cases reached.

    ``pairs`` are unordered pairs of terminals of one sensitive rule; a case covers a pair if its original
    holds one of them and a variant the other in the same place.
    """

    terminals: int
    terminals_covered: int
    pairs: int
    pairs_covered: int
    unseen: tuple[str, ...]

    def as_record(self) -> dict[str, object]:
        """Plain data, with the shares."""
        return {
            "terminals": self.terminals,
            "terminals_covered": self.terminals_covered,
            "terminal_share": self.terminals_covered / self.terminals if self.terminals else None,
            "pairs": self.pairs,
            "pairs_covered": self.pairs_covered,
            "pair_share": self.pairs_covered / self.pairs if self.pairs else None,
            "unseen": list(self.unseen),
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
