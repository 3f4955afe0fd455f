"""What a directed search hears of answers, and what it counts of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

PHASES = ("random", "screening", "search", "fresh")


class Ledger:
    """The answers that each phase of a search took, and when to end so that enough are left.

    Attributes
    ----------
    phases : dict of str to Counter
        By phase: distinct ``texts``, ``joint`` variants, ``hidden`` ones.
    spent : Counter
        By phase: answers. A text counts as often as the model was asked that was asked most.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.count("search", "a text", 1)
    >>> ledger.count("search", "a text", 3)
    >>> ledger.spent["search"], ledger.phases["search"]["texts"]
    (3, 1)
    """

    def __init__(self) -> None:
        self.phases: dict[str, Counter[str]] = {phase: Counter() for phase in PHASES}
        self.spent: Counter[str] = Counter()
        self._asked: dict[str, int] = {}  # text → answers
        self._cells: set[str] = set()  # texts of hidden findings, with their parts
        self._before = self._largest = 0  # answers before the last round, and in the largest one
        self._most, self._each = math.inf, 0

    def keep(self, answers: float, each: int) -> None:
        """Leave enough of ``answers`` to ask the texts of every candidate ``each`` times more."""
        self._most, self._each = answers, each

    def count(self, phase: str, text: str, answers: int) -> None:
        """A text has so many answers by now."""
        known = self._asked.get(text, 0)
        if answers > known:
            self._asked[text] = answers
            self.spent[phase] += answers - known
            self.phases[phase]["texts"] += not known

    def candidate(self, texts: Iterable[str]) -> None:
        """The texts that are asked again to confirm one hidden finding."""
        self._cells.update(texts)

    def next_round(self) -> bool:
        """Whether there are answers for another round, as large as the largest so far, and for confirmation."""
        spent = self.spent.total()
        self._largest = max(self._largest, spent - self._before)
        self._before = spent
        return spent + self._each * len(self._cells) + self._largest < self._most

    def report(self) -> dict[str, dict[str, int]]:
        """By phase, as plain data."""
        return {
            phase: {
                "texts": counts["texts"],
                "answers": self.spent[phase],
                "joint": counts["joint"],
                "hidden": counts["hidden"],
            }
            for phase, counts in self.phases.items()
        }
