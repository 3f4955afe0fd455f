"""SG: individual discrimination by symbolic execution of local explanations (Aggarwal et al., ESEC/FSE 2019).

Algorithm 2 of the paper. A test input is judged with every combination of protected values. If it is
discriminatory, each decision on its path through a tree of its LIME neighbourhood is negated on its own
(local search); for every input each prefix of the path is negated at its end (global search). Solutions
of these constraints are the next inputs. What differs from the paper, and why, is in
``docs/decisions/0012-sg.md``.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded
from auditor.core.shown import plural
from auditor.tables.columns import Codes, Mask
from auditor.tables.evaluate import NOT_JUDGED, Evaluator, Labels
from auditor.tables.finds import TabularResult
from auditor.tables.row_schema import Schema, uniform
from auditor.tables.sg_paths import Box, Path, PathGrower, PathSolver, Predicate, average_confidence, optional
from auditor.tables.tabular_plan import SgOptions

BACKGROUND = 5000  # rows for LIME's statistics where no data are given
STEPS = 3  # kinds of local steps per column: one code, up to a tenth of the range, further
RANK_SEED, RANK_LOCAL, RANK_GLOBAL = 5.0, 10.0, 1.0  # Rank1 to Rank3; higher leaves the queue first
THRESHOLD = 0.3  # T1: global search stops at a predicate of lower confidence
BATCH, SEED_SHARE = 8, 0.1  # inputs judged at once; share of them that are seeds while others wait
PHASES = frozenset(("local", "global"))  # the searches that are made; the paper's Tables 8, 10 and 11 leave some out
CLUSTERS = 4  # of given rows, for K-means
POOLED = 10.0  # tries at most that the other lines' experience with a kind of step counts for
Phase = Literal["seed", "local", "global"]


def run(evaluator: Evaluator, options: SgOptions, rng: Generator, data: Codes | None = None) -> TabularResult:
    """Search for discriminatory cases with SG, from clusters of the ``data``."""
    optional("sklearn.cluster")  # told before anything is asked
    search = Search(evaluator, options, data, rng)
    search.go()
    return search.result()


class Tried(NamedTuple):
    """An input that was judged, and what the model said."""

    entry: Entry
    labels: Labels
    hit: bool


class Search:
    """One run of Algorithm 2; `go` searches, `result` reports."""

    def __init__(
        self,
        evaluator: Evaluator,
        options: SgOptions,
        data: Codes | None,
        rng: Generator,
        phases: Collection[str] = PHASES,
    ) -> None:
        self.evaluator, self.options, self.rng, self._made = evaluator, options, rng, phases
        printed = options.protocol == "sg"
        self._batch, self._seed_share = (1, 0.0) if printed else (BATCH, SEED_SHARE)
        self.schema = schema = evaluator.schema
        self.data = data if data is not None and len(data) else None
        self.solver = PathSolver(schema, rng)
        # LIME around the input; every column nominal, as in released code; or, of slow models and where the limit does
        # not allow one neighbourhood per 50 cases, the rows asked so far, at no further cost.
        left, wanted = evaluator.remaining, options.samples * max(1, options.limit // 50)
        few = evaluator.slow or (left is not None and left < wanted)
        self.mode = "marginal" if printed else "asked" if few else "around"
        self.frontier = Frontier(rng, 0 if printed else schema.d * STEPS)
        self._grower = PathGrower(schema.cards, rng)
        self._cards = schema.cards.tolist()
        self._movable = frozenset(schema.movable_index.tolist())
        self._protected = frozenset(schema.protected_index.tolist())
        self._free = schema.free_index
        self._lime: Neighbourhood | None = None
        self._seen: set[bytes] = set()
        self._visited: set[tuple[Box, bytes | None]] = set()
        self._tried: list[Tried] = []
        self.off_manifold = self.undecided = 0
        self._seeds_tried = 0
        self.explained = self.neighbours = 0
        self.stopped = ""

    @property
    def cases(self) -> Codes:
        """The inputs that were judged, shape (n, d)."""
        return np.array([one.entry.row for one in self._tried], dtype=np.int32).reshape(-1, self.schema.d)

    @property
    def hits(self) -> Mask:
        """Which of them are discriminatory."""
        return np.array([one.hit for one in self._tried], dtype=bool)

    def go(self) -> None:
        """Search until the limit, the end of the queue, or a budget."""
        limit = self.options.limit
        try:
            self.frontier.push_seeds(seeds(self.schema, self.data, limit, self.rng))
            while len(self._tried) < limit and len(self.frontier):
                self._step()
        except BudgetExceeded as stop:
            self.stopped = str(stop)

    def _step(self) -> None:
        """Judge the next inputs and queue what follows from them."""
        entries: list[Entry] = []
        room = min(self._batch, self.options.limit - len(self._tried))
        while len(self.frontier) and len(entries) < room:
            turn = self._seeds_tried < self._seed_share * (len(self._tried) + len(entries))
            entry = self.frontier.pop(seed_first=turn)
            if entry.to_explain:
                self._queue_global(entry, self._explain([entry])[0])
                continue
            key = entry.row[self._free].tobytes()
            if key in self._seen:
                continue
            self._seeds_tried += entry.phase == "seed"
            self._seen.add(key)
            entries.append(entry)
        if not entries:
            return
        entries = entries[: max(1, self.evaluator.affordable(len(entries)))]
        judged = self.evaluator.judge(np.array([e.row for e in entries]))
        self.off_manifold += int(judged.off_manifold.sum())
        self.undecided += int(judged.undecided.sum())
        hits: list[Entry] = []
        for i, entry in enumerate(entries):
            hit = bool(judged.discriminatory[i])
            self._tried.append(Tried(entry, judged.labels[i], hit))
            self.frontier.learn(entry, hit)
            if hit and "local" in self._made:
                hits.append(entry)
            elif "global" in self._made:
                # Its path is needed when global inputs are next, and no sooner: r is at most 1.
                due = RANK_GLOBAL + 1.0
                self.frontier.push(Entry(entry.row, entry.phase, to_explain=True, origin=entry.origin), due)
        if hits and len(self._tried) < self.options.limit:
            for entry, path in zip(hits, self._explain(hits), strict=True):
                self._queue_local(entry, path)
                if "global" in self._made:
                    self._queue_global(entry, path)

    def _explain(self, entries: list[Entry]) -> list[Path]:
        """The paths of inputs through trees of their neighbourhoods (`get_path`)."""
        self.explained += len(entries)
        if self.mode == "asked":
            rows, labels = self._asked()
            return [self._grower.grow(e.row, rows, labels) if len(rows) else () for e in entries]
        if self._lime is None:
            background = self.data if self.data is not None else uniform(self.schema, BACKGROUND, self.rng)
            around = self.mode == "around"
            self._lime = Neighbourhood(self.schema, background, around=around, rng=self.rng)
        n = self.options.samples
        parts = [self._lime.draw(e.row, n) for e in entries]
        labels = self.evaluator.labels(np.concatenate(parts))
        self.neighbours += len(labels)
        paths: list[Path] = []
        for i, (entry, part) in enumerate(zip(entries, parts, strict=True)):
            said = labels[i * n : (i + 1) * n]
            known = said != NOT_JUDGED
            paths.append(self._grower.grow(entry.row, part[known], said[known]) if known.any() else ())
        return paths

    def _asked(self) -> tuple[Codes, Labels]:
        """Every row asked so far that got a label, and the label."""
        combos, cases = self.schema.combos, self.cases
        rows = np.repeat(cases, len(combos), axis=0)
        rows[:, self.schema.protected_index] = np.tile(combos, (len(cases), 1))
        labels = np.array([one.labels for one in self._tried], dtype=np.int64).reshape(-1)
        known = labels != NOT_JUDGED
        return rows[known], labels[known]

    def _queue_local(self, parent: Entry, path: Path) -> None:
        """Lines 10–20: each decision negated on its own, the others kept, the nearest solution."""
        row = parent.row
        kept = [p for p in path if p.column not in self._protected]
        r = average_confidence(path)
        for i, p in enumerate(kept):
            if p.column not in self._movable:
                continue
            box = Box.of([*kept[:i], p.toggled(), *kept[i + 1 :]], self._cards)
            if not self._first_visit(box, row):
                continue
            solution = self.solver.sticky(row, box)
            if solution is not None:
                step = abs(int(solution[p.column]) - int(row[p.column]))
                arm = p.column * STEPS + (0 if step <= 1 else 1 if step <= 0.1 * self._cards[p.column] else 2)
                self.frontier.push(Entry(solution, "local", arm, origin=parent.origin), RANK_LOCAL - r)

    def _queue_global(self, parent: Entry, path: Path) -> None:
        """Lines 23–35: each prefix with its last decision negated, nothing said about the rest."""
        row, prefix = parent.row, list[Predicate]()
        for p in path:
            if p.column in self._protected:
                continue
            if p.confidence < THRESHOLD:
                break
            if p.column in self._movable:
                constraint = [*prefix, p.toggled()]
                box = Box.of(constraint, self._cards)
                if self._first_visit(box, None):
                    solution = self.solver.free(row, box)
                    if solution is not None:
                        r = average_confidence(constraint)
                        self.frontier.push(Entry(solution, "global", origin=parent.origin), RANK_GLOBAL + r)
            prefix.append(p)

    def _first_visit(self, box: Box, row: Codes | None) -> bool:
        """Whether a constraint is new; a local one also by the input whose solution it keeps close to."""
        key = (box, None if row is None else row[self._free].tobytes())
        if key in self._visited:
            return False
        self._visited.add(key)
        return True

    def result(self) -> TabularResult:
        """What came of it."""
        cases = self.cases
        finds = cases[self.hits]
        notes = ["Inputs were searched for, not drawn: their share says nothing about how often a label changes."]
        done = len(cases) >= self.options.limit
        generated = Counter(one.entry.phase for one in self._tried)
        discriminatory = Counter(one.entry.phase for one in self._tried if one.hit)
        if not done and not self.stopped:
            notes.append(f"The queue was empty after {plural(len(cases), 'case')}.")
        return TabularResult(
            method="sg",
            mode="symbolic",
            sampling="directed",
            options={**self.options.model_dump(), "neighbourhood": self.mode},
            counts={
                "generated": len(cases),
                "discriminatory": len(finds),
                "off_manifold": self.off_manifold,
                "undecided": self.undecided,
                "evaluations": self.evaluator.evaluations,
                "neighbourhood_evaluations": self.neighbours,
                "explained": self.explained,
            },
            details={
                "phases": {
                    name: {"generated": generated[name], "discriminatory": discriminatory[name]}
                    for name in ("seed", "local", "global")
                },
                "solver": dict(self.solver.counts),
            },
            finds=finds,
            status_reason=self.stopped if not done else "",
            notes=tuple(notes),
        )


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

    def __init__(self, rng: Generator, arms: int = 0) -> None:
        self._rng, self._arms = rng, arms
        self._heap: list[_Item] = []
        self._seeds: deque[Entry] = deque()
        self._lines: dict[int, _Line] = {}
        self._hits, self._tries = np.ones(arms), np.full(arms, 2.0)
        self._count = self._local_size = 0

    def __len__(self) -> int:
        return len(self._heap) + len(self._seeds) + self._local_size

    def push_seeds(self, rows: Codes) -> None:
        """Queue the seeds, in order; their priority is `RANK_SEED`."""
        self._seeds.extend(Entry(row, "seed", origin=i) for i, row in enumerate(rows))

    def push(self, entry: Entry, priority: float) -> None:
        """Queue an input."""
        self._count += 1
        item = (-priority, self._count, entry)
        if entry.arm >= 0 and self._arms:
            line = self._lines.setdefault(entry.origin, _Line())
            heapq.heappush(line.waiting.setdefault(entry.arm, []), item)
            self._local_size += 1
        else:
            heapq.heappush(self._heap, item)

    def pop(self, *, seed_first: bool = False) -> Entry:
        """Take the input of highest priority, or the next seed if there is one and ``seed_first`` is set."""
        if self._seeds and seed_first:
            return self._seeds.popleft()
        if self._local_size:  # their priority is above that of all others
            return self._pop_local()
        if self._seeds and (not self._heap or -self._heap[0][0] <= RANK_SEED):
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


def seeds(schema: Schema, data: Codes | None, limit: int, rng: Generator) -> Codes:
    """At most ``limit`` seeds in their order: given rows, one of each cluster in turn; without any, uniform rows."""
    if data is None or not len(data):
        rows = uniform(schema, 4 * limit if schema.constraints else limit, rng)
        return rows[schema.on_manifold(rows)][:limit]
    distinct = min(CLUSTERS, len(np.unique(data, axis=0)))
    kmeans = optional("sklearn.cluster").KMeans(n_clusters=distinct, n_init=1, random_state=int(rng.integers(2**31)))
    clusters = kmeans.fit_predict(data.astype(np.float64))
    turn = np.empty(len(data), dtype=np.int64)  # of each row in its cluster
    for cluster in range(distinct):
        turn[clusters == cluster] = np.arange(np.count_nonzero(clusters == cluster))
    return data[np.lexsort((clusters, turn))[:limit]]


class Neighbourhood:
    """Draws rows as LIME does, around a row where neighbouring codes are neighbouring values."""

    def __init__(self, schema: Schema, data: Codes, *, around: bool, rng: Generator) -> None:
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
