"""The joint choices that a directed search may ask, what it believes of them, and which come next.

An arm is an attribute set × a direction for each attribute × a lead term for each attribute; a candidate is an arm in
one text. Beliefs come from labels alone (which words and groups make an answer the odd one out among those to the
variants of one text), or from the scores of labels where a model gives them (how far each text is from another answer,
and how far words and groups move it).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from auditor.contrib.adaptive.features import AGAIN, LABELS, Arm, Floats, Ints, Kind, Node, Odds, States, Weights, cdf

SD_LABEL = {"start": 0.5, "text": 0.7, "single": 0.3, "group": 0.5, "word": 0.4, "groups": 0.7, "words": 0.4}
START = {"start": -1.6}  # before any answer: about one in eighteen is odd
SD_SCORE = {"single": 0.15, "group": 0.15, "word": 0.25, "groups": 0.05, "words": 0.05}  # log odds
SPREAD = 0.5  # of a draw, in standard deviations: with all of it the best of many draws is mostly luck
NOISE = 0.15  # log odds that the features leave unexplained
FAR = 4.0  # a single choice that moves an answer further is taken to move it so far
ENOUGH = 10  # originals with scores from which on these are used
FIRST = (2, -1.5, 2.0)  # before any score: weight in texts, log odds to the next label, their variance
DRAWS = 3  # of the weights, for the candidates of one round
ORIGINAL = 0.5  # calls that an original counts which was not asked: several candidates will share it
SCOUTS = 8  # candidates of a round in texts that were not asked, where the model gives scores
Place = TypeVar("Place")  # where answers are compared: a text, or a text with a model and format


class _Learner(ABC, Generic[Place]):
    """Learns weights of features from what is new, or from everything where much is new."""

    def __init__(self, states: States, weights: Weights) -> None:
        self._states, self._weights = states, weights
        self._labels: dict[str, int] = {}
        self._new: list[tuple[Place, Node]] = []
        self._n = self._learnt = 0

    def _noted(self, place: Place, node: Node) -> None:
        self._new.append((place, node))
        self._n += 1

    def learn(self) -> None:
        """Learn from what was noted since the last time."""
        todo, self._new = self._new, []
        self._weights.grow()
        if self._n > AGAIN * self._learnt:
            self._weights.forget()
            self._learnt = self._n
            todo = list(self._every())
        self._take(todo)

    @abstractmethod
    def _every(self) -> Iterable[tuple[Place, Node]]:
        """All observations."""

    @abstractmethod
    def _take(self, todo: Sequence[tuple[Place, Node]]) -> None:
        """Learn from these observations."""


class ByLabel(_Learner[tuple[int, Hashable]]):
    """Learns from labels alone: whether an answer is another one than most answers about its text."""

    def __init__(self, states: States) -> None:
        super().__init__(states, Weights(states.features, SD_LABEL, start=START))
        self._answers: dict[tuple[int, Hashable], dict[Node, str]] = {}  # by text, model and format
        self._usual: dict[tuple[int, Hashable], str] = {}

    def note(self, text: int, channel: Hashable, node: Node, label: str) -> None:
        """Take note of an answer; ``channel`` tells models and formats apart."""
        answers = self._answers.setdefault((text, channel), {})
        if node not in answers:
            answers[node] = label
            self._noted((text, channel), node)

    def _every(self) -> Iterable[tuple[tuple[int, Hashable], Node]]:
        return ((place, node) for place, answers in self._answers.items() for node in answers)

    def _take(self, todo: Sequence[tuple[tuple[int, Hashable], Node]]) -> None:
        for place in dict.fromkeys(place for place, _ in todo):
            self._usual[place] = self._most(place)
        for place, (kind, number) in todo:
            usual = self._usual[place]
            odd = self._answers[place][kind, number] != usual
            self._weights.learn_sign(self._states.rows[kind][number], self._labels.get(usual, 0), odd)

    def odds(self, live: Ints, rng: np.random.Generator) -> Odds:
        """For the candidates ``live``."""
        weights = self._weights.draw(rng, SPREAD)
        weights[1:] += weights[0]
        n = len(self._states.rows["text"])
        label, odd = np.zeros(n, dtype=np.int64), np.zeros(n)
        for (text, channel), usual in self._usual.items():
            label[text] = self._labels.get(usual, 0)
            odd[text] = float(self._answers[text, channel].get(("text", text), usual) != usual)

        def differs(kind: Kind, at: Ints | slice) -> Floats:
            sums, text = self._states.sums(weights, label, kind, at)
            return np.asarray(np.abs(cdf(sums) - odd[text]))

        return Odds.of(differs("joint", live), differs("single", slice(None)), self._states, live)

    def _most(self, place: tuple[int, Hashable]) -> str:
        """The most frequent answer; of several the original's own, or the first by name."""
        answers = self._answers[place]
        counts = Counter(answers.values())
        most = [label for label, n in counts.items() if n == max(counts.values())]
        own = answers.get(("text", place[0]))
        usual = own if own is not None and own in most else min(most)
        if len(self._labels) < LABELS:
            self._labels.setdefault(usual, len(self._labels) + 1)
        return usual


class ByScore(_Learner[int]):
    """Learns from the scores of labels: the log odds of the next best label against the original's own."""

    def __init__(self, states: States) -> None:
        super().__init__(states, Weights(states.features, SD_SCORE, special=1.0))
        self._gaps: dict[int, dict[Node, float]] = {}  # text → log odds of another label; above 0 it is the answer
        self._own: dict[int, str] = {}  # the original's label

    @property
    def ready(self) -> bool:
        """Whether there are scores to go by."""
        return len(self._own) >= ENOUGH

    def note(self, text: int, node: Node, scores: Mapping[str, float]) -> None:
        """Take note of the log scores of labels; the original's come first, others are left out."""
        gaps = self._gaps.get(text, {})
        if node in gaps or (node[0] != "text" and not gaps):
            return
        own = self._own.get(text) or max(sorted(scores), key=lambda label: scores[label], default="")
        others = [score for label, score in scores.items() if label != own]
        if own not in scores or not others:
            return
        self._own[text] = own
        self._labels.setdefault(own, len(self._labels))
        self._gaps[text] = gaps | {node: max(others) - scores[own]}
        if node[0] != "text":
            self._noted(text, node)

    def _every(self) -> Iterable[tuple[int, Node]]:
        return ((text, node) for text, gaps in self._gaps.items() for node in gaps if node[0] != "text")

    def _take(self, todo: Sequence[tuple[int, Node]]) -> None:
        for text, (kind, number) in todo:
            label, sign = self._side(text)
            new, old = self._states.rows[kind][number], self._states.rows["text"][text]
            gaps = self._gaps[text]
            moved = min(max(gaps[kind, number] - gaps["text", text], -FAR), FAR)
            plus, minus = new[~np.isin(new, old)], old[~np.isin(old, new)]
            self._weights.learn_value(plus, minus, label, sign * moved, NOISE)

    def odds(self, live: Ints, rng: np.random.Generator) -> Odds:
        """For the candidates ``live``."""
        weights = self._weights.draw(rng, SPREAD)
        n = len(self._states.rows["text"])
        label, sign, gap = np.zeros(n, dtype=np.int64), np.ones(n), np.full(n, np.nan)
        for one in self._own:
            label[one], sign[one] = self._side(one)
            gap[one] = self._gaps[one]["text", one]
        base = weights[label[:, None], self._states.rows["text"].table].sum(axis=1)

        def moved(kind: Kind, at: Ints | slice) -> tuple[Floats, Ints]:
            sums, text = self._states.sums(weights, label, kind, at)
            return np.asarray(sign[text] * (sums - base[text])), text

        (joint, text), (single, home) = moved("joint", live), moved("single", slice(None))
        known = np.nan_to_num(gap)
        alone = cdf((known[home] + single) / NOISE)
        seen = Odds.of(cdf((known[text] + joint) / NOISE), alone, self._states, live)
        unseen = self._unasked(gap[~np.isnan(gap)], joint, single, self._states.parts(live))
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


class Beliefs(States):
    """All candidates, what was seen of them, and the next ones by Thompson sampling.

    ``open`` says of each candidate whether it was not asked and may still be hidden; ``tried`` are the arms of those
    that were answered.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._rng = np.random.default_rng([seed, 40])
        self._by_label, self._by_score = ByLabel(self), ByScore(self)
        self.open: list[bool] = []
        self.tried: set[Arm] = set()

    def add_joint(self, text: int, arm: Arm, singles: Sequence[int], groups: Mapping[str, str]) -> int:
        """The number of a new candidate: ``arm`` in ``text``, made of ``singles``."""
        self.open.append(True)
        return super().add_joint(text, arm, singles, groups)

    # -- what was seen --------------------------------------------------------

    def heard(self, text: int, channel: Hashable, node: Node, labels: tuple[str, str]) -> None:
        """Take note of what was answered to the original and to ``node``; ``channel`` is a model in a format."""
        self._by_label.note(text, channel, ("text", text), labels[0])
        self._by_label.note(text, channel, node, labels[1])
        if node[0] == "single":
            self.shown[node[1]] = max(self.shown[node[1]], float(labels[0] != labels[1]))
        elif node[0] == "joint":
            self.tried.add(self.arm_of[node[1]])

    def scored(self, text: int, node: Node, scores: tuple[Mapping[str, float], Mapping[str, float]]) -> None:
        """Take note of the log scores of labels, for the original and for ``node``; of one model in one format only."""
        self._by_score.note(text, ("text", text), scores[0])
        self._by_score.note(text, node, scores[1])

    def learn(self) -> None:
        """Learn from what was noted since the last time."""
        self._by_label.learn()
        self._by_score.learn()

    # -- what comes next ------------------------------------------------------

    def best(self, n: int, per_text: int, unasked: Sequence[bool]) -> list[int]:
        """Up to ``n`` open candidates with the largest drawn value, at most ``per_text`` in one text.

        ``unasked`` says of each text whether its original has not been asked.
        """
        live = np.flatnonzero(np.array(self.open, dtype=bool))
        taken: dict[int, None] = {}
        used: Counter[int] = Counter()

        def take(upto: int, most: int, only: Sequence[bool] | None = None) -> None:
            value = self._values(live, unasked)
            for at in np.argsort(-value, kind="stable"):
                if len(taken) >= upto:
                    return
                candidate = int(live[at])
                text = self.text_of["joint"][candidate]
                if candidate not in taken and used[text] < most and (only is None or only[text]):
                    used[text] += 1
                    taken[candidate] = None

        if len(live):
            if self._by_score.ready:
                take(min(SCOUTS, n), 1, unasked)
            for k in range(1, DRAWS + 1):
                take(n * k // DRAWS, per_text)
        return list(taken)

    def odds(self, live: Ints) -> Odds:
        """How likely ``live`` are to show and to be hidden, under one draw of the weights."""
        return (self._by_score if self._by_score.ready else self._by_label).odds(live, self._rng)

    def _values(self, live: Ints, unasked: Sequence[bool]) -> Floats:
        """Hidden findings per call, for each of ``live``, under one draw of the weights."""
        odds = self.odds(live)
        unknown = np.append(0.0, (np.asarray(self.shown) < 0.0).astype(np.float64))[self.parts(live)].sum(axis=1)
        first = np.asarray(unasked, dtype=np.float64)[self.home("joint")[live]]
        # The parts are asked only where the joint answer changes.
        return np.asarray(odds.hidden / (1.0 + ORIGINAL * first + odds.shows * unknown))

    def spread(self, n: int, unasked: Sequence[bool]) -> list[int]:
        """Up to ``n`` open candidates, each in another text, drawn evenly over attribute sets, directions and arms.

        Texts whose original was not asked come first.
        """
        text_of = self.text_of["joint"]
        live = [i for i, is_open in enumerate(self.open) if is_open]
        tree: dict[Hashable, Any] = {}
        for i in [i for i in live if unasked[text_of[i]]] or live:
            arm = self.arm_of[i]
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
            taken.setdefault(text_of[candidate], candidate)
        return list(taken.values())
