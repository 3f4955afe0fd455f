"""Which words and groups make an answer the odd one out among those to the variants of one text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np

from auditor.contrib.adaptive.states import Kind, Node, Odds, States
from auditor.contrib.adaptive.weights import AGAIN, LABELS, Floats, Ints, Weights, cdf

SD = {"start": 0.5, "text": 0.7, "single": 0.3, "group": 0.5, "word": 0.4, "groups": 0.7, "words": 0.4}
START = {"start": -1.6}  # before any answer: about one in eighteen is odd
SPREAD = 0.5  # of a draw, in standard deviations: with all of it the best of many draws is mostly luck


class ByLabel:
    """Learns from labels alone: whether an answer is another one than most answers about its text."""

    def __init__(self, states: States) -> None:
        self._states = states
        self._weights = Weights(states.features, SD, start=START)
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
