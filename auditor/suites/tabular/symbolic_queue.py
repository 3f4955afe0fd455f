"""Which test input comes next: the three ranks of SG's Algorithm 2, and a learned order of local ones.

A higher priority leaves first (the paper's signs only make sense that way: local search prefers predicates
of low confidence, ``rank_local - r``, global search those of high confidence, ``rank_global + r``).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from auditor.suites.tabular.schema import Codes

Phase = Literal["seed", "local", "global"]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A test input in the queue.

    Attributes
    ----------
    row : array of int32, shape (d,)
        The input.
    phase : {"seed", "local", "global"}
        What made it.
    arm : int
        For local inputs: the kind of step that led to it; -1 otherwise.
    to_explain : bool
        The input was judged already; its explanation is due now.
    """

    row: Codes
    phase: Phase
    arm: int = -1
    to_explain: bool = False


@dataclass(slots=True)
class Frontier:
    """A max-priority queue of test inputs, first in, first out among equals.

    Parameters
    ----------
    rng : numpy.random.Generator
        For the learned order.
    arms : int
        Kinds of local steps. With 0 local inputs are ordered by their rank alone, as in the paper;
        otherwise the kind is chosen by Thompson sampling of its success so far, the rank decides within.
    """

    rng: np.random.Generator
    arms: int = 0
    _heap: list[tuple[float, int, Entry]] = field(default_factory=list)
    _local: list[list[tuple[float, int, Entry]]] = field(default_factory=list)
    _count: int = 0
    _local_size: int = 0
    _hits: np.ndarray = field(default_factory=lambda: np.zeros(0))  # type: ignore[type-arg]
    _misses: np.ndarray = field(default_factory=lambda: np.zeros(0))  # type: ignore[type-arg]

    def __post_init__(self) -> None:
        self._local = [[] for _ in range(self.arms)]
        self._hits, self._misses = np.ones(self.arms), np.ones(self.arms)

    def __len__(self) -> int:
        return len(self._heap) + self._local_size

    def push(self, entry: Entry, priority: float) -> None:
        """Add an input."""
        self._count += 1
        item = (-priority, self._count, entry)
        if entry.arm >= 0 and self.arms:
            heapq.heappush(self._local[entry.arm], item)
            self._local_size += 1
        else:
            heapq.heappush(self._heap, item)

    def pop(self) -> Entry:
        """Take the input of highest priority."""
        if self._local_size:
            top = min((heap[0] for heap in self._local if heap), key=lambda item: item[:2])
            if not self._heap or top[0] <= self._heap[0][0]:
                chosen = [a for a, heap in enumerate(self._local) if heap]
                odds = self.rng.beta(self._hits[chosen], self._misses[chosen])
                self._local_size -= 1
                return heapq.heappop(self._local[chosen[int(np.argmax(odds))]])[2]
        return heapq.heappop(self._heap)[2]

    def learn(self, entry: Entry, found: bool) -> None:
        """Say whether an input turned out to be discriminatory."""
        if entry.arm >= 0 and self.arms:
            (self._hits if found else self._misses)[entry.arm] += 1
