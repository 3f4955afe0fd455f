"""Everything that a grammar can generate: derivations by number, and what cases reached of it."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable
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


class Meter:
    """Takes cases one by one, and says which terminals they reached."""

    def __init__(self, space: Space) -> None:
        self.space = space
        rules = {name: space.grammar.rules[name].alternatives for name in space.grammar.reachable()}
        self.terminals: dict[Choice, str] = {
            (name, i): one.text for name, own in rules.items() for i, one in enumerate(own) if isinstance(one, Terminal)
        }
        self.seen: set[Choice] = set()

    def add(self, derivations: Iterable[Derivation]) -> None:
        """Count the sentences of one case."""
        for which, index in derivations:
            self.seen |= self.terminals.keys() & self.space.structures[which].path(index)

    def as_record(self) -> dict[str, object]:
        """Return how many terminals were reached, and which were not."""
        covered, of = len(self.seen), len(self.terminals)
        unseen = [f"{rule}: {self.terminals[rule, i]}" for rule, i in sorted(self.terminals.keys() - self.seen)]
        return {"terminals": of, "terminals_covered": covered, "terminal_share": covered / of, "unseen": unseen}
