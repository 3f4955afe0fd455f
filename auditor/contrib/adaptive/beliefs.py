"""Which words and groups make an answer the odd one out among those to the variants of one text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from auditor.contrib.adaptive.features import (
    AGAIN,
    LABELS,
    Arm,
    Floats,
    Ints,
    Kind,
    Node,
    Odds,
    Part,
    States,
    Weights,
    cdf,
)

SD_LABEL = {"start": 0.5, "text": 0.7, "single": 0.3, "group": 0.5, "word": 0.4, "groups": 0.7, "words": 0.4}
START = {"start": -1.6}  # before any answer: about one in eighteen is odd
SPREAD = 0.5  # of a draw, in standard deviations: with all of it the best of many draws is mostly luck


class ByLabel:
    """Learns from labels alone: whether an answer is another one than most answers about its text."""

    def __init__(self, states: States) -> None:
        self._states = states
        self._weights = Weights(states.features, SD_LABEL, start=START)
        self._told: dict[tuple[int, Hashable], dict[Node, str]] = {}  # text, model and format → answers
        self._usual: dict[tuple[int, Hashable], str] = {}
        self._new: list[tuple[tuple[int, Hashable], Node]] = []
        self._labels: dict[str, int] = {}
        self._n = self._learnt = 0

    def note(self, text: int, channel: Hashable, node: Node, label: str) -> None:
        """Take note of an answer; ``channel`` tells models and formats apart."""
        told = self._told.setdefault((text, channel), {})
        if node not in told:
            told[node] = label
            self._new.append(((text, channel), node))
            self._n += 1

    def learn(self) -> None:
        """Learn from what is new, or from everything where much is: what is usual for a text shows only with time."""
        todo = self._new
        self._weights.grow()
        if self._n > AGAIN * self._learnt:
            self._weights.forget()
            self._learnt = self._n
            todo = [(key, node) for key, told in self._told.items() for node in told]
        for key in dict.fromkeys(key for key, _ in todo):
            self._usual[key] = self._most(key)
        for key, (kind, number) in todo:
            usual = self._usual[key]
            odd = self._told[key][kind, number] != usual
            self._weights.learn_sign(self._states.rows[kind][number], self._labels.get(usual, 0), odd)
        self._new = []

    def odds(self, live: Ints, told: Floats, rng: np.random.Generator) -> Odds:
        """For the candidates ``live``; ``told`` is 0 or 1 for single choices that were asked, else -1."""
        weights = self._weights.draw(rng, SPREAD)
        weights[1:] += weights[0]
        n = len(self._states.rows["text"])
        label, odd = np.zeros(n, dtype=np.int64), np.zeros(n)
        for (text, channel), usual in self._usual.items():
            label[text] = self._labels.get(usual, 0)
            odd[text] = float(self._told[text, channel].get(("text", text), usual) != usual)

        def differs(kind: Kind, at: Ints | slice) -> Floats:
            text = self._states.home(kind)[at]
            sums = weights[label[text][:, None], self._states.rows[kind].table[at]].sum(axis=1)
            return np.asarray(np.abs(cdf(sums) - odd[text]))

        return Odds.of(differs("joint", live), differs("single", slice(None)), told, self._states.parts(live))

    def _most(self, key: tuple[int, Hashable]) -> str:
        told = self._told[key]
        counts = Counter(told.values())
        own = told.get(("text", key[0]))
        usual = own if own is not None and counts[own] == max(counts.values()) else None
        if usual is None:
            usual = min(label for label, n in counts.items() if n == max(counts.values()))
        if len(self._labels) < LABELS:
            self._labels.setdefault(usual, len(self._labels) + 1)
        return usual


SD_SCORE = {"single": 0.15, "group": 0.15, "word": 0.25, "groups": 0.05, "words": 0.05}  # log odds
NOISE = 0.15  # log odds that the features leave unexplained
FAR = 4.0  # a single choice that moves an answer further is taken to move it so far
SPREAD = 0.5
ENOUGH = 10  # originals with scores from which on this is used
FIRST = (2, -1.5, 2.0)  # before any score: weight in texts, log odds to the next label, their variance


class ByScore:
    """Learns from the scores of labels: the log odds of the next best label against the original's own."""

    def __init__(self, states: States) -> None:
        self._states = states
        self._weights = Weights(states.features, SD_SCORE, special=1.0)
        self._gaps: dict[int, dict[Node, float]] = {}  # text → log odds of another label; above 0 it is given
        self._own: dict[int, str] = {}  # the original's label
        self._labels: dict[str, int] = {}
        self._new: list[tuple[int, Node]] = []
        self._n = self._learnt = 0

    @property
    def ready(self) -> bool:
        """Whether there are scores to go by."""
        return len(self._own) >= ENOUGH

    def note(self, text: int, node: Node, scores: Mapping[str, float]) -> None:
        """Take note of the log scores of labels; the original's come first, others are left out."""
        told = self._gaps.get(text, {})
        if node in told or (node[0] != "text" and not told):
            return
        own = self._own.get(text) or max(sorted(scores), key=lambda label: scores[label], default="")
        others = [score for label, score in scores.items() if label != own]
        if own not in scores or not others:
            return
        self._own[text] = own
        self._labels.setdefault(own, len(self._labels))
        self._gaps[text] = told | {node: max(others) - scores[own]}
        if node[0] != "text":
            self._new.append((text, node))
            self._n += 1

    def learn(self) -> None:
        """Learn from what is new, or from everything where much is."""
        todo = self._new
        self._weights.grow()
        if self._n > AGAIN * self._learnt:
            self._weights.forget()
            self._learnt = self._n
            todo = [(text, node) for text, told in self._gaps.items() for node in told if node[0] != "text"]
        for text, (kind, number) in todo:
            label, sign = self._side(text)
            new, old = self._states.rows[kind][number], self._states.rows["text"][text]
            told = self._gaps[text]
            moved = min(max(told[kind, number] - told["text", text], -FAR), FAR)
            plus, minus = new[~np.isin(new, old)], old[~np.isin(old, new)]
            self._weights.learn_value(plus, minus, label, sign * moved, NOISE)
        self._new = []

    def odds(self, live: Ints, told: Floats, rng: np.random.Generator) -> Odds:
        """For the candidates ``live``; ``told`` is 0 or 1 for single choices that were asked, else -1."""
        weights = self._weights.draw(rng, SPREAD)
        n = len(self._states.rows["text"])
        label, sign, gap = np.zeros(n, dtype=np.int64), np.ones(n), np.full(n, np.nan)
        for one in self._own:
            label[one], sign[one] = self._side(one)
            gap[one] = self._gaps[one]["text", one]
        base = weights[label[:, None], self._states.rows["text"].table].sum(axis=1)

        def moved(kind: Kind, at: Ints | slice) -> Floats:
            text = self._states.home(kind)[at]
            sums = weights[label[text][:, None], self._states.rows[kind].table[at]].sum(axis=1)
            return np.asarray(sign[text] * (sums - base[text]))

        joint, single = moved("joint", live), moved("single", slice(None))
        text, parts = self._states.home("joint")[live], self._states.parts(live)
        asked = cdf((np.nan_to_num(gap)[self._states.home("single")] + single) / NOISE)
        seen = Odds.of(cdf((np.nan_to_num(gap)[text] + joint) / NOISE), asked, told, parts)
        unseen = self._unasked(gap[~np.isnan(gap)], joint, single, parts)
        here = ~np.isnan(gap)[text]
        return Odds(np.where(here, seen.shows, unseen.shows), np.where(here, seen.hidden, unseen.hidden))

    def _unasked(self, gaps: Floats, joint: Floats, single: Floats, parts: Ints) -> Odds:
        """Where the original was not asked: over the gaps of the others, and over both directions."""
        weight, first, variance = FIRST
        mean = (gaps.sum() + weight * first) / (len(gaps) + weight)
        sd = np.sqrt((((gaps - mean) ** 2).sum() + weight * variance) / (len(gaps) + weight))
        shows, hidden = np.zeros(len(joint)), np.zeros(len(joint))
        for side in (1.0, -1.0):
            top = cdf((mean + side * joint) / sd)
            alone = np.append(0.0, cdf((mean + side * single) / sd))[parts].max(axis=1)
            shows += 0.5 * top
            hidden += 0.5 * np.maximum(top - alone, 0.0)
        return Odds(shows, hidden)

    def _side(self, text: int) -> tuple[int, float]:
        """The set of weights for a text, and the sign: of two labels one moves away where the other comes nearer."""
        number = self._labels[self._own[text]]
        if len(self._labels) <= 2:
            return 1, 1.0 - 2.0 * number
        return min(number, LABELS - 1) + 1, 1.0


DRAWS = 3  # of the weights, for the candidates of one round
ORIGINAL = 0.5  # calls that an original counts which was not asked: several candidates will share it
SCOUTS = 8  # candidates of a round in texts that were not asked, where the model gives scores


class Beliefs:
    """All candidates, what was seen of them, and the next ones by Thompson sampling.

    Parameters
    ----------
    seed : int
        Of every draw.

    Attributes
    ----------
    open : list of bool
        Per candidate: not asked, and may still be hidden.
    tried : set of Arm
        Arms of candidates that were answered.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 40])
        self._states = States()
        self._labels, self._scores = ByLabel(self._states), ByScore(self._states)
        self._text_of: list[int] = []
        self._arm_of: list[Arm] = []
        self._shown: list[float] = []  # per single choice: whether it shows by itself; -1 where that is not known
        self.open: list[bool] = []
        self.tried: set[Arm] = set()

    @property
    def arms(self) -> int:
        """Number of arms."""
        return len(set(self._arm_of))

    def add_text(self, groups: Mapping[str, str], words: Mapping[str, str]) -> int:
        """The number of a new text; ``groups`` and lead ``words`` by attribute."""
        return self._states.add_text(groups, words)

    def add_single(self, text: int, part: Part, groups: Mapping[str, str]) -> int:
        """The number of a new single choice, after which ``text`` names ``groups``."""
        self._shown.append(-1.0)
        return self._states.add_single(text, part, groups)

    def add(self, text: int, arm: Arm, singles: Sequence[int], groups: Mapping[str, str]) -> int:
        """The number of a new candidate: ``arm`` in ``text``, made of ``singles``."""
        self._text_of.append(text)
        self._arm_of.append(arm)
        self.open.append(True)
        return self._states.add_joint(text, arm, singles, groups)

    def arm_of(self, candidate: int) -> Arm:
        """The arm of a candidate."""
        return self._arm_of[candidate]

    # -- what was seen --------------------------------------------------------

    def heard(self, text: int, channel: Hashable, node: Node, labels: tuple[str, str]) -> None:
        """Take note of what was answered to the original and to ``node``; ``channel`` is a model in a format."""
        self._labels.note(text, channel, ("text", text), labels[0])
        self._labels.note(text, channel, node, labels[1])
        if node[0] == "single":
            self._shown[node[1]] = max(self._shown[node[1]], float(labels[0] != labels[1]))
        elif node[0] == "joint":
            self.tried.add(self._arm_of[node[1]])

    def scored(self, text: int, node: Node, scores: tuple[Mapping[str, float], Mapping[str, float]]) -> None:
        """Take note of the log scores of labels, for the original and for ``node``; of one model in one format only."""
        self._scores.note(text, ("text", text), scores[0])
        self._scores.note(text, node, scores[1])

    def learn(self) -> None:
        """Learn from what was noted since the last time."""
        self._labels.learn()
        self._scores.learn()

    # -- what comes next ------------------------------------------------------

    def best(self, n: int, per_text: int, unasked: Sequence[bool]) -> list[int]:
        """Up to ``n`` open candidates with the largest drawn value, at most ``per_text`` in one text.

        Parameters
        ----------
        unasked : sequence of bool
            Per text: whether its original has not been asked.
        """
        live = np.flatnonzero(np.array(self.open, dtype=bool))
        taken: dict[int, None] = {}
        used: dict[int, int] = {}

        def take(upto: int, most: int, only: Sequence[bool] | None = None) -> None:
            value = self._values(live, unasked)
            for at in np.argsort(-value, kind="stable"):
                if len(taken) >= upto:
                    return
                candidate = int(live[at])
                text = self._text_of[candidate]
                if candidate not in taken and used.get(text, 0) < most and (only is None or only[text]):
                    used[text] = used.get(text, 0) + 1
                    taken[candidate] = None

        if len(live):
            if self._scores.ready:
                take(min(SCOUTS, n), 1, unasked)
            for k in range(1, DRAWS + 1):
                take(n * k // DRAWS, per_text)
        return list(taken)

    def odds(self, live: Ints) -> Odds:
        """How likely ``live`` are to show and to be hidden, under one draw of the weights."""
        told = np.asarray(self._shown)
        return (self._scores if self._scores.ready else self._labels).odds(live, told, self._rng)

    def _values(self, live: Ints, unasked: Sequence[bool]) -> Floats:
        """Hidden findings per call, for each of ``live``, under one draw of the weights."""
        told = np.asarray(self._shown)
        odds = self.odds(live)
        open_parts = np.append(0.0, (told < 0.0).astype(np.float64))[self._states.parts(live)].sum(axis=1)
        first = np.asarray(unasked, dtype=np.float64)[np.asarray(self._text_of, dtype=np.int64)[live]]
        # The parts are asked only where the joint answer changes.
        return np.asarray(odds.hidden / (1.0 + ORIGINAL * first + odds.shows * open_parts))

    def spread(self, n: int, unasked: Sequence[bool]) -> list[int]:
        """Up to ``n`` open candidates, each in another text, drawn evenly over attribute sets, directions and arms.

        Texts whose original was not asked come first.
        """
        live = [i for i, is_open in enumerate(self.open) if is_open]
        tree: dict[Hashable, Any] = {}
        for i in [i for i in live if unasked[self._text_of[i]]] or live:
            arm = self._arm_of[i]
            names, directions = tuple(a for a, _, _ in arm), tuple(d for _, d, _ in arm)
            tree.setdefault(names, {}).setdefault(directions, {}).setdefault(arm, []).append(i)
        taken: dict[int, int] = {}
        for _ in range(4 * n):
            if len(taken) == n or not tree:
                break
            place: Any = tree
            while isinstance(place, dict):
                keys = list(place)
                place = place[keys[int(self._rng.integers(len(keys)))]]
            candidate = place[int(self._rng.integers(len(place)))]
            taken.setdefault(self._text_of[candidate], candidate)
        return list(taken.values())
