"""What a directed search knows of texts: every original, single and joint choice by the words and groups it ends with.

Answers are explained by what stands in a text, not by what was changed in it. So a change that shows alone tells
something about other texts: a text about a woman that changes its answer when *white* becomes *Black* makes the same
pair likely where a man is named and both must be changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from auditor.contrib.adaptive.weights import Features, Floats, Ints, Rows

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
        self._named: list[tuple[dict[str, str], dict[str, str]]] = []
        self._home: dict[Kind, list[int]] = {"single": [], "joint": []}
        self._parts = Rows()  # single choices of a joint one, plus 1

    def add_text(self, groups: Mapping[str, str], words: Mapping[str, str]) -> int:
        """The number of a new text; ``groups`` and lead ``words`` by attribute."""
        self._named.append((dict(groups), dict(words)))
        text = len(self._named) - 1
        self.rows["text"].add(self._row(text, (), (), groups))
        return text

    def add_single(self, text: int, part: Part, groups: Mapping[str, str]) -> int:
        """The number of a new single choice, after which ``text`` names ``groups``."""
        self._home["single"].append(text)
        return self.rows["single"].add(self._row(text, (part,), (len(self.rows["single"]),), groups))

    def add_joint(self, text: int, arm: Arm, singles: Sequence[int], groups: Mapping[str, str]) -> int:
        """The number of a new joint choice, made of ``singles``."""
        self._home["joint"].append(text)
        self._parts.add([single + 1 for single in singles])
        return self.rows["joint"].add(self._row(text, arm, singles, groups))

    def home(self, kind: Kind) -> Ints:
        """The text of each choice."""
        return np.asarray(self._home[kind], dtype=np.int64)

    def parts(self, live: Ints) -> Ints:
        """The single choices of each of ``live``, plus 1; 0 where there is none."""
        return self._parts.table[live]

    def _row(self, text: int, arm: Arm, singles: Sequence[int], groups: Mapping[str, str]) -> list[int]:
        _, words = self._named[text]
        words = words | {attribute: term.partition(ARROW)[2] for attribute, _, term in arm}
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


class Odds:
    """How likely joint choices are to show and to be hidden, under one draw of the weights.

    Parameters
    ----------
    shows : array of float
        One per candidate: probability that the joint answer differs from the original's.
    hidden : array of float
        The same, and that no single choice in it does.
    """

    def __init__(self, shows: Floats, hidden: Floats) -> None:
        self.shows, self.hidden = shows, hidden

    @classmethod
    def of(cls, shows: Floats, single: Floats, told: Floats, parts: Ints) -> Odds:
        """From the probabilities of joint and single choices; ``told`` is 0 or 1 for those that were asked, else -1."""
        silent = np.append(1.0, 1.0 - np.where(told < 0.0, single, told))
        return cls(shows, shows * silent[parts].prod(axis=1))
