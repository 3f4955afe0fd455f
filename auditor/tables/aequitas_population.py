"""Mode ``population``, which is not in the paper: discriminatory rows that breed more of them.

Start rows (given data, uniform draws, rows near a boundary) are judged until some are discriminatory.
From then on, batches of children are made from rows already found: one or two columns are moved, near (one
step) or wide (any value). What worked is repeated more often, per move and per line of descent; lines are
drawn so that no one crowds out the others, because a count of rows says nothing about how many faults they
show. Children that were judged before are dropped before the model is asked.

A boundary lies between two judged rows with different labels: one is turned into the other column by column; halving
finds the column at which the label changes, halving again the value. Rows there are far more often discriminatory than
rows drawn at random, because a protected column has little to outweigh.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.tables.aequitas_walk import Finds
from auditor.tables.coded import case_keys, first_of_each
from auditor.tables.columns import Codes, Mask
from auditor.tables.evaluate import NOT_JUDGED, Judged
from auditor.tables.row_schema import uniform

FIRST, LARGEST = 16, 16384  # cases per batch
BOUNDARY_LINES = 3  # lines of descent after which no boundary is looked for
WANTED_LINES = 5  # lines of descent before most of the budget goes into breeding
GREED = 3.0  # power to which success rates are raised when moves and lines are drawn
EXPLORE = 0.04  # share of a batch that stays with new start rows
KEPT = 512  # rows that a boundary is looked for between
CASES_PER_PAIR = 10
Keep = Callable[[Codes, Judged, Mask], None]


class Boundary:
    """Remembers judged rows with the label of their first combination, and looks between them."""

    def __init__(self, d: int) -> None:
        self._rows = np.empty((0, d), dtype=np.int32)
        self._labels = np.empty(0, dtype=np.int64)

    def remember(self, rows: Codes, judged: Judged) -> None:
        """Keep rows; where one label has more than half of the places, its oldest rows give way."""
        self._rows = np.concatenate([self._rows, rows])
        self._labels = np.concatenate([self._labels, judged.labels[:, 0]])
        if len(self._rows) > KEPT:
            names, inverse, count = np.unique(self._labels, return_inverse=True, return_counts=True)
            common = np.flatnonzero(inverse == count.argmax())
            drop = common[: len(self._rows) - KEPT] if len(names) > 1 else np.arange(len(self._rows) - KEPT)
            self._rows = np.delete(self._rows, drop, axis=0)
            self._labels = np.delete(self._labels, drop)

    @property
    def ready(self) -> bool:
        """Whether two labels were seen."""
        return len(self._labels) > 1 and bool((self._labels != self._labels[0]).any())

    def pairs(self, n: int, rng: np.random.Generator) -> tuple[Codes, Codes, NDArray[np.int64]]:
        """``n`` pairs of rows with different labels, and the label of the first of each."""
        names = np.unique(self._labels)
        first = rng.choice(names, n)
        second = names[(np.searchsorted(names, first) + 1 + rng.integers(0, len(names) - 1, n)) % len(names)]
        a, b = (np.array([rng.choice(np.flatnonzero(self._labels == v)) for v in side]) for side in (first, second))
        return self._rows[a], self._rows[b], first

    def search(self, finds: Finds, cases: int, rng: np.random.Generator, keep: Keep) -> None:
        """Halve the way between pairs, at a cost of about ``cases`` cases.

        ``keep(rows, judged, new)`` gets every batch that was judged; ``new`` says which are new finds.
        """
        columns = finds.schema.movable_index
        a, b, label = self.pairs(finds.allowed(max(1, cases // CASES_PER_PAIR)), rng)
        n = len(a)
        every = np.arange(n)
        rank = rng.permuted(np.tile(np.arange(len(columns)), (n, 1)), axis=1)  # when a column is taken over

        def same(rows: Codes) -> Mask | None:
            room = finds.allowed(n)
            judged, new = finds.judge(rows[:room], "boundary")
            keep(rows[:room], judged, new)
            return None if room < n else judged.labels[:, 0] == label

        def between(middle: NDArray[np.int64]) -> Codes:
            rows = a.copy()
            rows[:, columns] = np.where(rank < middle[:, None], b[:, columns], a[:, columns])
            return rows

        low, high = np.zeros(n, dtype=np.int64), np.full(n, len(columns))
        while (high - low > 1).any():
            middle = (low + high) // 2
            if (answer := same(between(middle))) is None:
                return
            low, high = np.where(answer, middle, low), np.where(answer, high, np.maximum(middle, low + 1))
        rows = between(low)
        column = columns[(rank == low[:, None]).argmax(axis=1)]
        near, far = rows[every, column].astype(np.int64), b[every, column].astype(np.int64)
        while (np.abs(far - near) > 1).any():
            rows = rows.copy()
            rows[every, column] = middle = (near + far) // 2
            if (answer := same(rows)) is None:
                return
            near, far = np.where(answer, middle, near), np.where(answer, far, middle)


class Moves:
    """How often each move kept a row discriminatory: near and wide moves of each column."""

    def __init__(self, columns: int, near: Mask, wide: Mask) -> None:
        self.columns = columns
        self._open = np.concatenate([near, wide])
        self.tries = np.zeros(2 * columns)
        self.hits = np.zeros(2 * columns)

    def weights(self) -> NDArray[np.float64]:
        """Probability of each move, shape (2 * columns,): near ones first."""
        rate = (self.hits + 1.0) / (self.tries + 1.5)
        weight = np.where(self._open, np.minimum(rate, 1.0) ** (2 * GREED) + 0.003, 0.0)
        return np.asarray(weight / weight.sum())

    def learn(self, moves: NDArray[np.intp], hit: Mask) -> None:
        """Credit single moves; ``moves`` and ``hit`` have shape (n,)."""
        self.tries += np.bincount(moves, minlength=2 * self.columns)
        self.hits += np.bincount(moves[hit], minlength=2 * self.columns)


class Population:
    """The rows found so far, their lines of descent and how well each line breeds."""

    def __init__(self, d: int) -> None:
        self.rows = np.empty((1024, d), dtype=np.int32)
        self.line = np.empty(1024, dtype=np.intp)
        self.pair = np.empty((1024, 2), dtype=np.int32)
        self.size = 0
        self.tries = np.zeros(0)
        self.hits = np.zeros(0)
        self._order: NDArray[np.intp] | None = None

    def add(self, rows: Codes, line: NDArray[np.intp], pair: NDArray[np.int32]) -> None:
        """Take in new finds; a ``line`` of -1 begins a new one."""
        line, fresh = line.copy(), np.flatnonzero(line < 0)
        line[fresh] = len(self.tries) + np.arange(len(fresh))
        self.tries, self.hits = (np.concatenate([n, np.zeros(len(fresh))]) for n in (self.tries, self.hits))
        end = self.size + len(rows)
        while end > len(self.rows):
            self.rows, self.line, self.pair = (
                np.concatenate([kept, np.empty_like(kept)]) for kept in (self.rows, self.line, self.pair)
            )
        for kept, new in ((self.rows, rows), (self.line, line), (self.pair, pair)):
            kept[self.size : end] = new
        self.size, self._order = end, None

    def parents(self, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Positions of ``n`` parents: a line by its success, then a row of it uniformly."""
        if self._order is None:
            self._order = np.argsort(self.line[: self.size], kind="stable")
        count = np.bincount(self.line[: self.size], minlength=len(self.tries))
        begin = np.concatenate([[0], np.cumsum(count)[:-1]])
        rate = (self.hits + 1.5) / (self.tries + 2.0)
        cumulative = np.cumsum(np.minimum(rate, 1.0) ** (2 * GREED) + 1e-4)
        lines = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
        lines = np.minimum(lines, len(count) - 1)
        return np.asarray(self._order[begin[lines] + rng.integers(0, count[lines])])

    def learn(self, line: NDArray[np.intp], hit: Mask) -> None:
        """Credit lines; both shape (n,)."""
        self.tries += np.bincount(line, minlength=len(self.tries))
        self.hits += np.bincount(line[hit], minlength=len(self.tries))


class Starts:
    """New start rows from three sources; the one with more finds per case is used more.

    Given data in random order, uniform draws, and the way between two rows with different labels.
    """

    def __init__(self, finds: Finds, pool: Population, data: Codes | None, rng: np.random.Generator) -> None:
        self._finds, self._pool, self._rng = finds, pool, rng
        self._data = np.empty((0, finds.schema.d), dtype=np.int32)
        if data is not None and len(data):
            distinct = data[first_of_each(case_keys(finds.schema, data))]
            self._data = distinct[rng.permutation(len(distinct))]
        self._boundary = Boundary(finds.schema.d)
        self._at = 0
        self._hits, self._tries = np.zeros(3), np.zeros(3)

    def ask(self, n: int) -> None:
        """Judge about ``n`` start rows; finds begin lines of their own."""
        belief = self._rng.beta(1 + self._hits, 19 + self._tries - self._hits)
        belief[0] = belief[0] if self._at < len(self._data) else 0.0
        movable = len(self._finds.schema.movable_index) > 0
        looked = len(self._pool.tries) >= BOUNDARY_LINES  # boundary lines are narrow: only to get going
        belief[2] = belief[2] if self._boundary.ready and movable and not looked else 0.0
        source = int(belief.argmax())
        if source == 2:
            self._boundary.search(self._finds, n, self._rng, lambda *batch: self._keep(2, *batch))
            return
        if source == 0:
            rows = self._data[self._at : self._at + n]
            self._at += len(rows)
        else:
            rows = uniform(self._finds.schema, n, self._rng)
        rows = rows[self._finds.fresh(rows)]
        if not len(rows):
            return
        rows = rows[: self._finds.allowed(len(rows))]
        self._keep(source, rows, *self._finds.judge(rows, "start"))

    def _keep(self, source: int, rows: Codes, judged: Judged, new: Mask) -> None:
        self._tries[source] += len(rows)
        self._hits[source] += new.sum()
        if source != 2:
            self._boundary.remember(rows, judged)
        pairs = witness(judged.labels, judged.possible)
        self._pool.add(rows[new], np.full(int(new.sum()), -1, dtype=np.intp), pairs[new])


def population_search(finds: Finds, data: Codes | None, rng: np.random.Generator) -> None:
    """Search until a termination rule of `Finds` is met (raises `Stop`) or no new row can be made."""
    schema, options = finds.schema, finds.options
    columns = schema.movable_index
    cards = schema.cards[columns]
    ordered = np.array([schema.columns[int(j)].ordered for j in columns], dtype=bool)
    moves = Moves(len(columns), near=ordered & (cards > 2), wide=np.ones(len(columns), dtype=bool))
    pool = Population(schema.d)
    starts = Starts(finds, pool, data, rng)
    dry = 0
    while dry < 40:
        first = FIRST // 2 if options.ask == "witness" else FIRST
        batch = options.batch or min(LARGEST, max(first, finds.generated // 8))
        n = finds.allowed(batch, 2 if options.ask == "witness" else None)
        wanted = 2 if options.ask == "witness" else WANTED_LINES  # a start row costs every combination
        fresh_n = n
        if pool.size and len(columns):
            fresh_n = int(rng.binomial(n, EXPLORE if len(pool.tries) >= wanted else 0.3))
        before = finds.generated
        if fresh_n:
            starts.ask(fresh_n)
        if n > fresh_n:
            _breed(finds, pool, moves, n - fresh_n, rng)
        dry = 0 if finds.generated > before else dry + 1


class Brood(NamedTuple):
    """Children, the positions of their parents, and the moves that made them (-1: no second one)."""

    parents: NDArray[np.intp]
    children: Codes
    first: NDArray[np.intp]
    second: NDArray[np.intp]

    def take(self, part: slice | NDArray[np.generic]) -> Brood:
        """Some of them."""
        return Brood(self.parents[part], self.children[part], self.first[part], self.second[part])


def _breed(finds: Finds, pool: Population, moves: Moves, n: int, rng: np.random.Generator) -> None:
    """Make, filter and judge about ``n`` children."""
    schema, parents = finds.schema, pool.parents(2 * n, rng)
    brood = Brood(parents, *mutate(pool.rows[parents], schema.movable_index, schema.cards, moves, rng))
    brood = brood.take(np.flatnonzero(finds.fresh(brood.children))[:n])
    if not len(brood.parents):
        return
    if finds.options.ask == "witness":
        _ask_pairs(finds, pool, moves, brood)
        return
    brood = brood.take(slice(finds.allowed(len(brood.parents))))
    judged, new = finds.judge(brood.children, "population")
    _credit(pool, moves, brood, judged.discriminatory)
    pairs = witness(judged.labels, judged.possible)
    pool.add(brood.children[new], pool.line[brood.parents[new]], pairs[new])


def _ask_pairs(finds: Finds, pool: Population, moves: Moves, brood: Brood) -> None:
    """Ask each child with the pair of combinations that told its parent apart."""
    schema, evaluator = finds.schema, finds.evaluator
    brood = brood.take(slice(finds.allowed(len(brood.parents), 2)))
    every = np.arange(len(brood.parents))[:, None]
    possible = evaluator.possible(brood.children)[every, pool.pair[brood.parents]]
    brood = brood.take(np.flatnonzero(possible.all(axis=1)))
    n, pair = len(brood.parents), pool.pair[brood.parents]
    if not n:
        return
    rows = np.repeat(brood.children, 2, axis=0)
    rows[:, schema.protected_index] = schema.combos[pair.reshape(-1)]
    labels = evaluator.labels(rows).reshape(n, 2)
    hit = evaluator.differ(labels)
    new = finds.count(brood.children, hit, np.zeros(n, dtype=bool), "population")
    silent = (labels == NOT_JUDGED).any(axis=1)
    finds.undecided += int((~hit & (silent | (len(schema.combos) > 2))).sum())
    _credit(pool, moves, brood, hit)
    pool.add(brood.children[new], pool.line[brood.parents[new]], pair[new])


def _credit(pool: Population, moves: Moves, brood: Brood, hit: Mask) -> None:
    single = brood.second < 0
    moves.learn(brood.first[single], hit[single])
    pool.learn(pool.line[brood.parents], hit)


def mutate(
    rows: Codes,
    columns: NDArray[np.intp],
    cards: NDArray[np.int64],
    moves: Moves,
    rng: np.random.Generator,
    twice: float = 0.3,
) -> tuple[Codes, NDArray[np.intp], NDArray[np.intp]]:
    """Children of ``rows``: one move each, a second one with probability ``twice``."""
    n, children = len(rows), rows.copy()
    cumulative = np.cumsum(moves.weights())
    picked = []
    for active in (np.arange(n), np.flatnonzero(rng.random(n) < twice)):
        draw = rng.random(len(active)) * cumulative[-1]
        move = np.minimum(np.searchsorted(cumulative, draw, side="right"), len(cumulative) - 1)
        column = columns[move % len(columns)]
        card = cards[column]
        at = children[active, column].astype(np.int64)
        near = move < len(columns)
        sign = np.where(rng.random(len(active)) < 0.5, -1, 1)
        sign = np.where((at + sign < 0) | (at + sign >= card), -sign, sign)
        wide = (at + 1 + (rng.random(len(active)) * (card - 1)).astype(np.int64)) % card
        children[active, column] = np.where(near, at + sign, wide)
        moved = np.full(n, -1, dtype=np.intp)
        moved[active] = move
        picked.append(moved)
    return children, picked[0], picked[1]


def witness(labels: NDArray[np.int64], possible: Mask) -> NDArray[np.int32]:
    """A pair of possible combinations with the lowest and the highest label of each case, shape (n, 2)."""
    limits = np.iinfo(np.int64)
    low = np.where(possible, labels, limits.max).argmin(axis=1)
    high = np.where(possible, labels, limits.min).argmax(axis=1)
    return np.stack([low, high], axis=1).astype(np.int32)
