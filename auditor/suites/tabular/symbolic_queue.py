"""Which test input comes next: the three ranks of SG's Algorithm 2, and a learned order of local ones.

A higher priority leaves first (the paper's signs only make sense that way: local search prefers predicates
of low confidence, ``rank_local - r``, global search those of high confidence, ``rank_global + r``).
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from dataclasses import dataclass
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
    origin : int
        The seed it descends from, by number.
    """

    row: Codes
    phase: Phase
    arm: int = -1
    to_explain: bool = False
    origin: int = -1


_Item = tuple[float, int, Entry]


class Frontier:
    """A max-priority queue of test inputs, first in, first out among equals.

    Parameters
    ----------
    rng : numpy.random.Generator
        For the learned order.
    arms : int
        Kinds of local steps. With 0, local inputs are ordered by their rank alone, as in the paper.
        Otherwise the seed whose descendants were tried least comes first, then the kind of step by Thompson
        sampling of its success so far, then the rank.
    """

    def __init__(self, rng: np.random.Generator, arms: int = 0) -> None:
        self._rng, self._arms = rng, arms
        self._heap: list[_Item] = []
        self._seeds: deque[Entry] = deque()
        self._seed_priority = 0.0
        self._local: dict[int, dict[int, list[_Item]]] = {}
        self._tried: Counter[int] = Counter()
        self._hits, self._misses = np.ones(arms), np.ones(arms)
        self._local_priority = float("-inf")
        self._count = self._local_size = 0

    def __len__(self) -> int:
        return len(self._heap) + len(self._seeds) + self._local_size

    def push_seeds(self, rows: Codes, priority: float) -> None:
        """Queue the seeds, in order."""
        self._seeds.extend(Entry(row, "seed", origin=i) for i, row in enumerate(rows))
        self._seed_priority = priority

    def push(self, entry: Entry, priority: float) -> None:
        """Queue an input."""
        self._count += 1
        item = (-priority, self._count, entry)
        if entry.arm >= 0 and self._arms:
            heap = self._local.setdefault(entry.origin, {}).setdefault(entry.arm, [])
            heapq.heappush(heap, item)
            self._local_size += 1
            self._local_priority = max(self._local_priority, priority)
        else:
            heapq.heappush(self._heap, item)

    def pop(self, *, seed_first: bool = False) -> Entry:
        """Take the input of highest priority, or the next seed if there is one and ``seed_first`` is set."""
        if self._seeds and seed_first:
            return self._seeds.popleft()
        top = -self._heap[0][0] if self._heap else float("-inf")
        local = self._local_priority if self._local_size else float("-inf")
        seed = self._seed_priority if self._seeds else float("-inf")
        if self._local_size and local >= max(top, seed):
            return self._pop_local()
        if self._seeds and seed >= top:
            return self._seeds.popleft()
        return heapq.heappop(self._heap)[2]

    def _pop_local(self) -> Entry:
        origin = min(self._local, key=lambda o: (self._tried[o], o))
        arms = self._local[origin]
        chosen = list(arms)
        odds = self._rng.beta(self._hits[chosen], self._misses[chosen])
        arm = chosen[int(np.argmax(odds))]
        entry = heapq.heappop(arms[arm])[2]
        self._tried[origin] += 1
        self._local_size -= 1
        if not arms[arm]:
            del arms[arm]
        if not arms:
            del self._local[origin]
        return entry

    def learn(self, entry: Entry, found: bool) -> None:
        """Say whether an input turned out to be discriminatory."""
        if entry.arm >= 0 and self._arms:
            (self._hits if found else self._misses)[entry.arm] += 1
