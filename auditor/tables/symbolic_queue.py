"""Which test input comes next: the three ranks of SG's Algorithm 2, and a learned order of local ones.

A higher priority leaves first (the paper's signs only make sense that way: local search prefers predicates
of low confidence, ``rank_local - r``, global search those of high confidence, ``rank_global + r``).
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auditor.tables.schema import Codes

POOLED = 10.0  # tries at most that the other lines' experience with a kind of step counts for

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


@dataclass(slots=True)
class _Line:
    """The descendants of one seed: those that wait, by kind of step, and how those judged turned out."""

    waiting: dict[int, list[_Item]] = field(default_factory=dict)
    tries: dict[int, int] = field(default_factory=dict)
    hits: dict[int, int] = field(default_factory=dict)
    all_tries: int = 0
    all_hits: int = 0

    def learn(self, arm: int, found: bool) -> None:
        self.all_tries += 1
        self.all_hits += found
        self.tries[arm] = self.tries.get(arm, 0) + 1
        self.hits[arm] = self.hits.get(arm, 0) + found


class Frontier:
    """A max-priority queue of test inputs, first in, first out among equals.

    Parameters
    ----------
    rng : numpy.random.Generator
        For the learned order.
    arms : int
        Kinds of local steps. With 0, local inputs are ordered by their rank alone, as in the paper.
        Otherwise Thompson sampling of their success so far chooses a seed whose descendants wait, then the
        kind of step (among the seed's own descendants, with what all lines saw of it as the prior), then
        the rank.
    """

    def __init__(self, rng: np.random.Generator, arms: int = 0) -> None:
        self._rng, self._arms = rng, arms
        self._heap: list[_Item] = []
        self._seeds: deque[Entry] = deque()
        self._seed_priority = 0.0
        self._lines: dict[int, _Line] = {}
        self._hits, self._tries = np.ones(arms), np.full(arms, 2.0)
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
            line = self._lines.setdefault(entry.origin, _Line())
            heapq.heappush(line.waiting.setdefault(entry.arm, []), item)
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
        lines = [line for line in self._lines.values() if line.waiting]
        hits = np.array([1.0 + line.all_hits for line in lines])
        tries = np.array([2.0 + line.all_tries for line in lines])
        line = lines[self._likeliest(hits, tries)]
        arms = list(line.waiting)
        weight = np.minimum(1.0, POOLED / self._tries[arms])
        hits = weight * self._hits[arms] + np.array([line.hits.get(arm, 0) for arm in arms])
        tries = weight * self._tries[arms] + np.array([line.tries.get(arm, 0) for arm in arms])
        arm = arms[self._likeliest(hits, tries)]
        entry = heapq.heappop(line.waiting[arm])[2]
        if not line.waiting[arm]:
            del line.waiting[arm]
        self._local_size -= 1
        return entry

    def _likeliest(self, hits: NDArray[np.float64], tries: NDArray[np.float64]) -> int:
        """One draw of Thompson sampling: the position with the highest success rate drawn."""
        return int(np.argmax(self._rng.beta(hits, tries - hits)))

    def learn(self, entry: Entry, found: bool) -> None:
        """Say whether an input turned out to be discriminatory."""
        if entry.arm >= 0 and self._arms:
            self._tries[entry.arm] += 1
            self._hits[entry.arm] += found
            self._lines.setdefault(entry.origin, _Line()).learn(entry.arm, found)
