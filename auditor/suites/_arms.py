"""What a directed search believes about its arms: Beta posteriors, pooled from the finest level upwards.

An arm is an attribute set × a direction for each attribute × a lead term for each attribute. A candidate is an
arm in one seed text. Levels lend their mean to the level below as its prior: all → attribute set → directions →
arm, and beside it direction → term. A seed has a posterior of its own, and so has each atomic choice in a seed.
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
POOLED = 8.0  # weight of the level above, in trials
ARM = 4.0  # the same for an arm, which is drawn and not averaged
SEED = 2.0  # seeds differ much, so a seed's own answers soon count more than the others'
EDGES = (0.2, 0.4, 0.7, 1.1, 1.6, 2.2, 3.0)  # of the log odds between a seed's two best labels
FIRST = (1.0, 19.0)  # before any answer: one joint change in twenty is hidden


class Level:
    """Trials and successes of numbered things; ``add`` numbers a new one.

    Examples
    --------
    >>> level = Level()
    >>> level.add("a"), level.add("b"), level.add("a")
    (0, 1, 0)
    """

    def __init__(self) -> None:
        self.ids: dict[Hashable, int] = {}
        self._n = np.zeros(64)
        self._hits = np.zeros(64)

    def add(self, key: Hashable) -> int:
        """The number of ``key``."""
        number = self.ids.setdefault(key, len(self.ids))
        if number >= len(self._n):
            self._n, self._hits = (np.concatenate([a, np.zeros(len(a))]) for a in (self._n, self._hits))
        return number

    def count(self, number: int, reward: float) -> None:
        """One trial with a reward in [0, 1]."""
        self._n[number] += 1
        self._hits[number] += reward

    @property
    def n(self) -> Floats:
        """Trials, one per thing."""
        return self._n[: len(self.ids)]

    @property
    def hits(self) -> Floats:
        """Summed rewards, one per thing."""
        return self._hits[: len(self.ids)]

    def mean(self, prior: float | Floats, weight: float = POOLED) -> Floats:
        """Posterior means with ``prior`` (mean, one or one per thing) at ``weight`` trials."""
        return (self.hits + weight * np.asarray(prior)) / (self.n + weight)

    def draw(self, prior: float | Floats, weight: float, rng: np.random.Generator) -> Floats:
        """One draw from each thing's Beta posterior."""
        a = self.hits + weight * np.asarray(prior)
        b = np.maximum(self.n - self.hits, 0.0) + weight * (1.0 - np.asarray(prior))
        return np.asarray(rng.beta(np.maximum(a, 1e-6), np.maximum(b, 1e-6)), dtype=np.float64)


def logit(p: Floats | float) -> Floats:
    """Log odds, cut at about ±9."""
    q = np.clip(np.asarray(p, dtype=np.float64), 1e-4, 1.0 - 1e-4)
    return np.log(q) - np.log1p(-q)


class Beliefs:
    """All candidates, what was seen of them, and the next ones by Thompson sampling.

    Parameters
    ----------
    order : int
        The largest number of attributes in an arm.
    seed : int
        Of every draw.
    """

    def __init__(self, order: int, seed: int) -> None:
        self.order = order
        self._rng = np.random.default_rng([seed, 40])
        self.sets, self.directions, self.arms = Level(), Level(), Level()
        self.single, self.terms = Level(), Level()  # of one attribute
        self.seeds, self.spots = Level(), Level()
        self._arms: list[tuple[tuple[str, Any, str], ...]] = []
        self._arm_of: list[tuple[int, ...]] = []  # set, directions, terms (-1: none)
        self._term_of: list[int] = []  # the direction of each term
        self._direction_of: list[int] = []  # the set of each joint direction
        self._rows: list[tuple[int, ...]] = []  # seed, arm, spots (-1: none)
        self._table: NDArray[np.int64] = np.zeros((0, 2 + order), dtype=np.int64)
        self.open: list[bool] = []  # per candidate: not asked, and may still be hidden
        self._near: list[float] = [0.0, 0.0]
        self.margins = Level()
        for number in range(len(EDGES) + 1):
            self.margins.add(number)
        self.margin_of: dict[int, int] = {}  # seed → interval of its margin, where the model gives scores

    def add_arm(self, parts: Sequence[tuple[str, Any, str]]) -> int:
        """The number of the arm with these (attribute, direction, lead term), one per attribute."""
        number = self.arms.add(tuple(parts))
        if number == len(self._arm_of):
            self._arms.append(tuple(parts))
            group = self.sets.add(tuple(a for a, _, _ in parts))
            joint = self.directions.add(tuple((a, d) for a, d, _ in parts))
            if joint == len(self._direction_of):
                self._direction_of.append(group)
            terms = []
            for attribute, direction, term in parts:
                alone = self.single.add((attribute, direction))
                named = self.terms.add((attribute, direction, term))
                if named == len(self._term_of):
                    self._term_of.append(alone)
                terms.append(named)
            self._arm_of.append((group, joint, *terms, *[-1] * (self.order - len(terms))))
        return number

    def add(self, seed: int, arm: int, spots: Sequence[int]) -> int:
        """The number of a new candidate: an arm in a seed, with the atomic choices that it is made of."""
        self._rows.append((seed, arm, *spots, *[-1] * (self.order - len(spots))))
        self.open.append(True)
        return len(self._rows) - 1

    def count(self, candidate: int, *, hidden: bool, changed: bool) -> None:
        """Learn from one judged candidate."""
        seed, arm, *spots = self._rows[candidate]
        reward = 1.0 if hidden else 0.0
        group, joint, *terms = self._arm_of[arm]
        self.sets.count(group, reward)
        self.directions.count(joint, reward)
        self.arms.count(arm, reward)
        for term in terms:
            if term >= 0:
                self.terms.count(term, reward)
                self.single.count(self._term_of[term], reward)
        for spot in spots:
            if spot >= 0:
                self.spots.count(spot, reward)
        # A seed whose answer changes at all is near a boundary, where joint changes may be hidden.
        self._near_seed(seed, 1.0 if hidden else 0.5 if changed else 0.0)

    def _near_seed(self, seed: int, reward: float) -> None:
        self.seeds.count(seed, reward)
        if seed in self.margin_of:
            self.margins.count(self.margin_of[seed], reward)
        self._near[0] += 1
        self._near[1] += reward

    def margin(self, seed: int, gap: float) -> None:
        """Take note of a seed's log odds (at least 0) between its two best labels; the smallest one counts."""
        interval = bisect.bisect_right(EDGES, gap)
        self.margin_of[seed] = min(interval, self.margin_of.get(seed, interval))

    def _margin_gain(self, near: float) -> Floats:
        """Log odds that the margin adds, one per seed."""
        middle = np.array([low + 0.1 for low in (0.0, *EDGES)])
        # Before any answer: the further from the boundary, the less a few words can do.
        expected = 1.0 / (1.0 + np.exp(-(logit(near) + 1.0 - middle)))
        gain = logit(self.margins.mean(expected)) - logit(near)
        out = np.zeros(len(self.seeds.ids))
        for seed, interval in self.margin_of.items():
            out[seed] = gain[interval]
        return out

    def base(self) -> float:
        """Posterior mean share of joint changes that are hidden, among those asked."""
        n, hits = float(self.sets.n.sum()), float(self.sets.hits.sum())
        return (hits + FIRST[0]) / (n + sum(FIRST))

    def scores(self, known: Mapping[int, bool], unasked: Sequence[bool]) -> tuple[Any, Floats]:
        """Open candidates and for each the drawn number of hidden findings per call.

        Parameters
        ----------
        known : mapping
            Spots whose atomic variant was answered.
        unasked : sequence of bool
            Per seed: whether its original has not been asked.
        """
        if len(self._table) < len(self._rows):
            fresh = np.array(self._rows[len(self._table) :], dtype=np.int64)
            self._table = np.concatenate([self._table, fresh])
        live = np.flatnonzero(np.array(self.open, dtype=bool))
        if not len(live):
            return live, np.zeros(0)
        rows = self._table[live]
        seed, arm, spots = rows[:, 0], rows[:, 1], rows[:, 2:]
        near = (self._near[1] + FIRST[0]) / (self._near[0] + sum(FIRST))
        seed_mean = self.seeds.mean(near, SEED)
        drawn = logit(self.seeds.draw(near, SEED, self._rng))[seed] - logit(near)
        spot_gain = np.append(logit(self._spot_means(seed_mean)), 0.0)
        parent = np.append(logit(seed_mean), 0.0)[np.where(spots >= 0, seed[:, None], -1)]
        drawn += (spot_gain[spots] - parent).sum(axis=1) / 2.0
        drawn += logit(self._draw_arms())[arm] + self._margin_gain(near)[seed]
        p = 1.0 / (1.0 + np.exp(-drawn))
        told = np.zeros(len(self.spots.ids) + 1, dtype=bool)
        told[np.array(sorted(known), dtype=np.int64)] = True
        told[-1] = True
        cost = 1.0 + np.asarray(unasked, dtype=np.float64)[seed] + p * (~told[spots]).sum(axis=1)
        return live, p / cost

    def _spot_means(self, seed_mean: Floats) -> Floats:
        """Means of atomic choices, pooled to the seed that each stands in."""
        seeds = np.fromiter((key[0] for key in self.spots.ids), dtype=np.int64, count=len(self.spots.ids))  # type: ignore[index]
        return self.spots.mean(seed_mean[seeds], SEED)

    def _draw_arms(self) -> Floats:
        base = self.base()
        sets = self.sets.mean(base)
        joint = self.directions.mean(sets[np.array(self._direction_of, dtype=np.int64)])
        single = self.single.mean(base)
        parents = single[np.array(self._term_of, dtype=np.int64)]
        gain = np.append(logit(self.terms.mean(parents)) - logit(parents), 0.0)
        table = np.array(self._arm_of, dtype=np.int64)
        prior = logit(joint)[table[:, 1]] + gain[table[:, 2:]].sum(axis=1)
        return self.arms.draw(1.0 / (1.0 + np.exp(-prior)), ARM, self._rng)

    def best(self, n: int, per_seed: int, known: Mapping[int, bool], unasked: Sequence[bool]) -> list[int]:
        """Up to ``n`` open candidates with the largest drawn value, at most ``per_seed`` in one seed."""
        live, value = self.scores(known, unasked)
        taken: list[int] = []
        used: dict[int, int] = {}
        for at in np.argsort(-value, kind="stable"):
            candidate = int(live[at])
            seed = self._rows[candidate][0]
            if used.get(seed, 0) < per_seed:
                used[seed] = used.get(seed, 0) + 1
                taken.append(candidate)
                if len(taken) == n:
                    break
        return taken

    def spread(self, n: int) -> list[int]:
        """Up to ``n`` open candidates drawn evenly over attribute sets, then directions, then arms, then seeds."""
        live = [i for i, is_open in enumerate(self.open) if is_open]
        tree: dict[int, dict[int, dict[int, list[int]]]] = {}
        for i in live:
            arm = self._rows[i][1]
            group, joint, *_ = self._arm_of[arm]
            tree.setdefault(group, {}).setdefault(joint, {}).setdefault(arm, []).append(i)
        taken: list[int] = []
        chosen: set[int] = set()
        for _ in range(4 * n):
            if len(taken) == n or not tree:
                break
            place: Any = tree
            while isinstance(place, dict):
                keys = list(place)
                place = place[keys[int(self._rng.integers(len(keys)))]]
            candidate = place[int(self._rng.integers(len(place)))]
            if candidate not in chosen:
                chosen.add(candidate)
                taken.append(candidate)
        return taken

    def arm_of(self, candidate: int) -> tuple[tuple[str, Any, str], ...]:
        """The arm of a candidate, as it was given."""
        return self._arms[self._rows[candidate][1]]
