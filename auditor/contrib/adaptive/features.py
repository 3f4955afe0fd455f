"""Texts and choices as named features, and Gaussian beliefs about what each feature does to an answer.

Answers are explained by what stands in a text, not by what was changed in it. So a change that shows alone tells
something about other texts: a text about a woman that changes its answer when *white* becomes *Black* makes the same
pair likely where a man is named and both must be changed.

The updates are assumed-density filtering with independent weights: for signs that of Graepel, Candela, Borchert and
Herbrich (ICML 2010, the click model "adPredictor"), for values a Kalman filter of which the diagonal is kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LABELS = 8  # labels that have weights of their own; answers with others share the common ones
AGAIN = 1.25  # everything is learnt anew when there are so many times as many observations as the last time
_ROOT = float(np.sqrt(2.0 * np.pi))


def cdf(x: Floats | float) -> Floats:
    """Standard normal distribution function, one per value.

    Examples
    --------
    >>> [round(float(cdf(x)), 3) for x in (-1.96, 0.0, 1.0)]
    [0.025, 0.5, 0.841]
    """
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


class Features:
    """Numbers for features, whose key begins with its kind; 0 stands for none.

    Examples
    --------
    >>> features = Features()
    >>> features.number(("word", "woman")), features.number(("word", "man")), features.number(("word", "woman"))
    (1, 2, 1)
    """

    def __init__(self) -> None:
        self._ids: dict[Hashable, int] = {}
        self.kinds: list[str] = [""]

    def __len__(self) -> int:
        return len(self.kinds)

    def number(self, key: tuple[Hashable, ...]) -> int:
        """The number of ``key``."""
        number = self._ids.setdefault(key, len(self._ids) + 1)
        if number == len(self.kinds):
            self.kinds.append(str(key[0]))
        return number


class Rows:
    """The features of numbered things, also as one array that ends in zeros."""

    def __init__(self) -> None:
        self._rows: list[Ints] = []
        self._table: Ints = np.zeros((0, 1), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: int) -> Ints:
        return self._rows[number]

    def add(self, row: Sequence[int]) -> int:
        """Add a row; returns its number."""
        self._rows.append(np.asarray(row, dtype=np.int64))
        return len(self._rows) - 1

    @property
    def table(self) -> Ints:
        """All rows, shape (rows, longest row)."""
        old = self._table
        if len(old) < len(self._rows):
            fresh = self._rows[len(old) :]
            width = max(old.shape[1], *(len(row) for row in fresh))
            table = np.zeros((len(self._rows), width), dtype=np.int64)
            table[: len(old), : old.shape[1]] = old
            for i, row in enumerate(fresh, start=len(old)):
                table[i, : len(row)] = row
            self._table = table
        return self._table


class Weights:
    """A Gaussian weight for each feature, and beside these common ones a set for each of `LABELS` labels.

    Parameters
    ----------
    features : Features
        New ones get a weight when they are first needed.
    sd : mapping of str to float
        Standard deviation before any observation, by kind of feature; other kinds weigh nothing.
    start : mapping of str to float
        Mean before any observation, by kind; 0 for others.
    special : float
        The share of ``sd`` that the weights of a label have.
    """

    def __init__(
        self,
        features: Features,
        sd: Mapping[str, float],
        *,
        start: Mapping[str, float] | None = None,
        special: float = 0.7,
    ) -> None:
        self._features, self._sd, self._begin, self._special = features, sd, start or {}, special
        self._known = 0
        self.mean: Floats = np.zeros((LABELS + 1, 64))
        self.var: Floats = np.zeros((LABELS + 1, 64))

    def forget(self) -> None:
        """Return to what was believed before any observation."""
        self._known = 0
        self.grow()

    def grow(self) -> None:
        """Give every new feature its weights."""
        n = len(self._features)
        if n > self.mean.shape[1]:
            more = np.zeros((LABELS + 1, max(n, 2 * self.mean.shape[1]) - self.mean.shape[1]))
            self.mean, self.var = (np.concatenate([a, more], axis=1) for a in (self.mean, self.var))
        at = slice(self._known, n)
        kinds = self._features.kinds[at]
        sd = np.array([self._sd.get(kind, 0.0) for kind in kinds])
        self.mean[:, at] = 0.0
        self.mean[0, at] = [self._begin.get(kind, 0.0) for kind in kinds]
        self.var[:, at] = (self._special * sd) ** 2
        self.var[0, at] = sd**2
        self._known = n

    def learn_sign(self, row: Ints, label: int, above: bool) -> None:
        """One observation: whether the sum over ``row``, with noise of variance 1, was above 0."""
        at = np.concatenate([row, row + label * self.mean.shape[1]]) if label else row
        mean, var = self.mean.reshape(-1), self.var.reshape(-1)
        own = var[at]
        variance = 1.0 + float(own.sum())
        root, y = variance**0.5, 1.0 if above else -1.0
        t = y * float(mean[at].sum()) / root
        # The mean of a normal variable that is cut off at 0, and what it takes from the variance.
        v = -t if t < -6.0 else float(np.exp(-0.5 * t * t) / _ROOT / cdf(t))
        share = own / variance
        mean[at] += y * root * v * share
        var[at] = own * np.maximum(1.0 - share * v * (v + t), 0.01)

    def learn_value(self, plus: Ints, minus: Ints, label: int, value: float, noise: float) -> None:
        """One observation: the sum over ``plus`` less that over ``minus``, with noise of this standard deviation."""
        at = np.concatenate([plus, minus]) + label * self.mean.shape[1]
        x = np.concatenate([np.ones(len(plus)), -np.ones(len(minus))])
        mean, var = self.mean.reshape(-1), self.var.reshape(-1)
        own = var[at]
        share = own / (noise * noise + float(own.sum()))
        mean[at] += x * share * (value - float((x * mean[at]).sum()))
        var[at] = own * np.maximum(1.0 - share, 0.01)

    def draw(self, rng: np.random.Generator, spread: float) -> Floats:
        """One draw of all weights, shape (labels + 1, features), with ``spread`` times their standard deviations."""
        self.grow()
        n = len(self._features)
        mean, sd = self.mean[:, :n], np.sqrt(self.var[:, :n])
        return np.asarray(mean + spread * sd * rng.standard_normal(mean.shape))


Part = tuple[str, Any, str]  # attribute, direction, lead term ("man → woman")
Arm = tuple[Part, ...]  # one part for each attribute that is changed
Kind = Literal["text", "single", "joint"]
Node = tuple[Kind, int]  # of one text: the original, or the number of a choice
ARROW = " → "


class States:
    """Texts, single choices and joint choices (candidates), each with a row of features.

    A row has a feature for the text, one for each single choice in it, and for every attribute that the text names then
    its group and lead word, singly and in pairs.
    """

    def __init__(self) -> None:
        self.features = Features()
        self.rows: dict[Kind, Rows] = {"text": Rows(), "single": Rows(), "joint": Rows()}
        self.text_of: dict[Kind, list[int]] = {"single": [], "joint": []}
        self.arm_of: list[Arm] = []  # of joint choices
        self.shown: list[float] = []  # per single choice: whether it shows by itself; -1 where that is not known
        self._words: list[dict[str, str]] = []
        self._parts = Rows()  # single choices of a joint one, plus 1

    def add_text(self, groups: Mapping[str, str], words: Mapping[str, str]) -> int:
        """The number of a new text; ``groups`` and lead ``words`` by attribute."""
        self._words.append(dict(words))
        return self.rows["text"].add(self._row(len(self.rows["text"]), (), (), groups))

    def add_single(self, text: int, part: Part, groups: Mapping[str, str]) -> int:
        """The number of a new single choice, after which ``text`` names ``groups``."""
        self.text_of["single"].append(text)
        self.shown.append(-1.0)
        return self.rows["single"].add(self._row(text, (part,), (len(self.rows["single"]),), groups))

    def add_joint(self, text: int, arm: Arm, singles: Sequence[int], groups: Mapping[str, str]) -> int:
        """The number of a new joint choice, made of ``singles``."""
        self.text_of["joint"].append(text)
        self.arm_of.append(arm)
        self._parts.add([single + 1 for single in singles])
        return self.rows["joint"].add(self._row(text, arm, singles, groups))

    def home(self, kind: Kind) -> Ints:
        """The text of each choice."""
        return np.asarray(self.text_of[kind], dtype=np.int64)

    def parts(self, live: Ints) -> Ints:
        """The single choices of each of ``live``, plus 1; 0 where there is none."""
        return self._parts.table[live]

    def sums(self, weights: Floats, label: Ints, kind: Kind, at: Ints | slice) -> tuple[Floats, Ints]:
        """The sum of the weights of each choice, those of its text's ``label``; and the text of each."""
        text = self.home(kind)[at]
        return weights[label[text][:, None], self.rows[kind].table[at]].sum(axis=1), text

    def _row(self, text: int, arm: Arm, singles: Sequence[int], groups: Mapping[str, str]) -> list[int]:
        words = self._words[text] | {attribute: term.partition(ARROW)[2] for attribute, _, term in arm}
        keys: list[tuple[Hashable, ...]] = [("start",), ("text", text), *(("single", one) for one in singles)]
        named = sorted(groups)
        for a in named:
            keys += [("group", a, group) for group in groups[a].split("+")]
            if a in words:
                keys.append(("word", a, words[a]))
        for a, b in itertools.combinations(named, 2):
            pairs = itertools.product(groups[a].split("+"), groups[b].split("+"))
            keys += [("groups", a, one, b, other) for one, other in pairs]
            if a in words and b in words:
                keys.append(("words", a, words[a], b, words[b]))
        return [self.features.number(key) for key in keys]


class Odds(NamedTuple):
    """How likely joint choices are, under one draw of the weights, to show; and that no single choice in them does."""

    shows: Floats
    hidden: Floats

    @classmethod
    def of(cls, shows: Floats, single: Floats, states: States, live: Ints) -> Odds:
        """From the probabilities of the joint choices ``live`` and of all single ones; what was asked is known."""
        known = np.asarray(states.shown)
        silent = np.append(1.0, 1.0 - np.where(known < 0.0, single, known))
        return cls(shows, shows * silent[states.parts(live)].prod(axis=1))
