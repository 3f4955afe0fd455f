"""How far each text is from another answer, and how far words and groups move it: for models that give scores."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from auditor.contrib.adaptive.states import Kind, Node, Odds, States
from auditor.contrib.adaptive.weights import AGAIN, LABELS, Floats, Ints, Weights, cdf

SD = {"single": 0.15, "group": 0.15, "word": 0.25, "groups": 0.05, "words": 0.05}  # log odds
NOISE = 0.15  # log odds that the features leave unexplained
FAR = 4.0  # a single choice that moves an answer further is taken to move it so far
SPREAD = 0.5
ENOUGH = 10  # originals with scores from which on this is used
FIRST = (2, -1.5, 2.0)  # before any score: weight in texts, log odds to the next label, their variance


class ByScore:
    """Learns from the scores of labels: the log odds of the next best label against the original's own."""

    def __init__(self, states: States) -> None:
        self._states = states
        self._weights = Weights(states.features, SD, special=1.0)
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
