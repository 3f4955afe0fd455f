"""Which inputs SG tries: seeds, the queue with the three ranks of Algorithm 2, and LIME's neighbourhoods.

A higher priority leaves the queue first (the paper's signs only make sense that way: local search prefers predicates
of low confidence, ``rank_local - r``, global search those of high confidence, ``rank_global + r``).
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import MissingDependency
from auditor.tables.columns import Codes
from auditor.tables.row_schema import Schema, uniform

CLUSTERS = 4  # of given rows, for K-means
POOLED = 10.0  # tries at most that the other lines' experience with a kind of step counts for
Phase = Literal["seed", "local", "global"]
PACKAGES = {"lime": "lime", "sklearn": "scikit-learn"}


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A test input in the queue."""

    row: Codes  # the input
    phase: Phase  # what made it
    arm: int = -1  # for local inputs: the kind of step that led to it; -1 otherwise
    to_explain: bool = False  # the input was judged already; its explanation is due now
    origin: int = -1  # the seed it descends from, by number


_Item = tuple[float, int, Entry]


class _Line:
    """The descendants of one seed: those that wait, by kind of step, and how those judged turned out."""

    def __init__(self) -> None:
        self.waiting: dict[int, list[_Item]] = {}
        self.tries, self.hits = Counter[int](), Counter[int]()
        self.all_tries = self.all_hits = 0


class Frontier:
    """A max-priority queue of test inputs, first in, first out among equals.

    With ``arms``, the number of kinds of local steps, Thompson sampling of success so far chooses the seed of the next
    local input, then the kind of step (what all lines of descent saw is the prior), then the rank.
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
        hits = weight * self._hits[arms] + np.array([line.hits[arm] for arm in arms])
        tries = weight * self._tries[arms] + np.array([line.tries[arm] for arm in arms])
        arm = arms[self._likeliest(hits, tries)]
        entry = heapq.heappop(line.waiting[arm])[2]
        if not line.waiting[arm]:
            del line.waiting[arm]
        self._local_size -= 1
        return entry

    def _likeliest(self, hits: NDArray[np.float64], tries: NDArray[np.float64]) -> int:
        """One draw of Thompson sampling: the position with the highest success rate drawn."""
        return int(np.argmax(self._rng.beta(hits, tries - hits)))

    def learn(self, entry: Entry, hit: bool) -> None:
        """Say whether an input turned out to be discriminatory."""
        if entry.arm >= 0 and self._arms:
            line = self._lines.setdefault(entry.origin, _Line())
            for tries, hits in ((self._tries, self._hits), (line.tries, line.hits)):
                tries[entry.arm] += 1
                hits[entry.arm] += hit
            line.all_tries += 1
            line.all_hits += hit


def round_robin(clusters: NDArray[np.integer], limit: int) -> NDArray[np.intp]:
    """Positions of rows, one from each cluster in turn, each cluster in row order; at most ``limit``."""
    turn = np.empty(len(clusters), dtype=np.int64)
    for cluster in np.unique(clusters):
        members = np.flatnonzero(clusters == cluster)
        turn[members] = np.arange(len(members))
    return np.lexsort((clusters, turn))[:limit]


def seeds(schema: Schema, data: Codes | None, limit: int, rng: np.random.Generator) -> Codes:
    """At most ``limit`` seeds in their order: given rows, one of each cluster in turn; without any, uniform rows."""
    if data is None or not len(data):
        rows = uniform(schema, 4 * limit if schema.constraints else limit, rng)
        return rows[schema.on_manifold(rows)][:limit]
    distinct = min(CLUSTERS, len(np.unique(data, axis=0)))
    kmeans = optional("sklearn.cluster").KMeans(n_clusters=distinct, n_init=1, random_state=int(rng.integers(2**31)))
    return data[round_robin(kmeans.fit_predict(data.astype(np.float64)), limit)]


def optional(module: str) -> ModuleType:
    """A module of the extra ``tabular``; raises `MissingDependency`."""
    try:
        return import_module(module)
    except ImportError as error:
        package = PACKAGES.get(module.split(".")[0], module)
        raise MissingDependency("--method sg", package, "tabular") from error


class Neighbourhood:
    """Draws rows as LIME does, around a row where neighbouring codes are neighbouring values."""

    def __init__(self, schema: Schema, data: Codes, *, around: bool, rng: np.random.Generator) -> None:
        tabular = optional("lime.lime_tabular")
        ordered = [j for j, c in enumerate(schema.columns) if c.ordered and c.codes > 2 and around]
        self._numeric = numeric = np.array([j for j in ordered if np.ptp(data[:, j]) > 0], dtype=np.intp)
        self._nominal = np.setdiff1d(np.arange(schema.d), numeric)
        self.explainer: object = tabular.LimeTabularExplainer(
            data.astype(np.float64),
            feature_names=list(schema.names),
            categorical_features=self._nominal.tolist(),
            discretize_continuous=False,
            sample_around_instance=True,
            random_state=int(rng.integers(2**31)),
        )
        self._scale = np.asarray(self.explainer.scaler.scale_, dtype=np.float32)[numeric]
        self._high = (schema.cards - 1)[numeric]
        self._columns = np.ascontiguousarray(data[:, self._nominal].T).reshape(-1)
        self._starts = np.arange(len(self._nominal)) * len(data)
        self._n, self._d, self._rng = len(data), schema.d, rng

    def draw(self, row: Codes, samples: int) -> Codes:
        """The neighbourhood of ``row``, shape (samples, d); its first row is ``row`` itself."""
        rows = np.empty((samples, self._d), dtype=np.int32)
        kind = np.uint16 if self._n <= 2**16 else np.uint32
        picks = self._rng.integers(0, self._n, (samples, len(self._nominal)), dtype=kind)
        rows[:, self._nominal] = self._columns[picks + self._starts]
        if len(self._numeric):
            normal = self._rng.standard_normal((samples, len(self._numeric)), dtype=np.float32)
            values = np.rint(normal * self._scale + row[self._numeric])
            rows[:, self._numeric] = np.clip(values, 0, self._high)
        rows[0] = row
        return rows
