"""The joint choices that a directed search may ask, what it believes of them, and which come next.

An arm is an attribute set × a direction for each attribute × a lead term for each attribute; a candidate is an arm in
one text.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from auditor.contrib.adaptive.by_label import ByLabel
from auditor.contrib.adaptive.by_score import ByScore
from auditor.contrib.adaptive.states import Arm, Node, Odds, Part, States
from auditor.contrib.adaptive.weights import Floats, Ints

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
