"""What a directed search counts, and what it says of all joint changes.

Answers are counted by phase, and arms behind findings on seeds that the search has not used. Some joint changes are
drawn with known chances, and weighed by them: a round draws with a chance for each that was not asked, part of it even,
so that none is too small (defensive mixing: Hesterberg 1995), part of it where answers are likely to change. What was
asked before stands for itself, what was drawn for one over its chance, and the estimate is the weighted mean over all
rounds (Horvitz and Thompson 1952; Hájek 1971). The chances of a round rest on answers to earlier ones only, so that
each round is right on average.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.contrib.adaptive import features
from auditor.contrib.adaptive.beliefs import Beliefs
from auditor.contrib.adaptive.features import Floats, Ints
from auditor.contrib.adaptive.search_seeds import FITS, Pool, fit
from auditor.core.types import Estimate, Verdict
from auditor.measure.intervals import clopper_pearson, weighted_change, weighted_share
from auditor.measure.observations import Arm, Observations, Place, Shape
from auditor.measure.rates import VIOLATION

PHASES = ("random", "screening", "search", "fresh")


class Ledger:
    """The answers that each phase of a search took, and when to end so that enough are left.

    Attributes
    ----------
    phases : dict of str to Counter
        By phase: distinct ``texts``, ``joint`` variants, ``hidden`` ones.
    spent : Counter
        By phase: answers. A text counts as often as the model was asked that was asked most.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.count("search", "a text", 1)
    >>> ledger.count("search", "a text", 3)
    >>> ledger.spent["search"], ledger.phases["search"]["texts"]
    (3, 1)
    """

    def __init__(self) -> None:
        self.phases: dict[str, Counter[str]] = {phase: Counter() for phase in PHASES}
        self.spent: Counter[str] = Counter()
        self._asked: dict[str, int] = {}  # text → answers
        self._cells: set[str] = set()  # texts of hidden findings, with their parts
        self._before = self._largest = 0  # answers before the last round, and in the largest one
        self._most, self._each = math.inf, 0

    def keep(self, answers: float, each: int) -> None:
        """Leave enough of ``answers`` to ask the texts of every candidate ``each`` times more."""
        self._most, self._each = answers, each

    def count(self, phase: str, text: str, answers: int) -> None:
        """A text has so many answers by now."""
        known = self._asked.get(text, 0)
        if answers > known:
            self._asked[text] = answers
            self.spent[phase] += answers - known
            self.phases[phase]["texts"] += not known

    def candidate(self, texts: Iterable[str]) -> None:
        """The texts that are asked again to confirm one hidden finding."""
        self._cells.update(texts)

    def next_round(self) -> bool:
        """Whether there are answers for another round, as large as the largest so far, and for confirmation."""
        spent = self.spent.total()
        self._largest = max(self._largest, spent - self._before)
        self._before = spent
        return spent + self._each * len(self._cells) + self._largest < self._most

    def report(self) -> dict[str, dict[str, int]]:
        """By phase, as plain data."""
        return {
            phase: {
                "texts": counts["texts"],
                "answers": self.spent[phase],
                "joint": counts["joint"],
                "hidden": counts["hidden"],
            }
            for phase, counts in self.phases.items()
        }


FRESH_SEEDS = 8  # fresh seeds on which an arm is tried, at most


class Trials:
    """Which arms gave findings, and what became of them on fresh seeds."""

    def __init__(self) -> None:
        self.hits: Counter[features.Arm] = Counter()
        self.used: set[str] = set()  # cases on whose seeds an arm was tried
        self._tried: dict[features.Arm, dict[str, list[int]]] = {}  # what is the same → hidden, judged
        self.waiting: dict[str, tuple[features.Arm, str]] = {}  # joint variant → arm, what is the same

    def next(self, pools: Sequence[tuple[int, Pool]]) -> list[tuple[features.Arm, int, tuple[int, ...], int, Pool]]:
        """The next arm with the numbered seeds to try it on, nearest first, and the choices there."""
        for arm, _ in self.hits.most_common():
            if arm in self._tried:
                continue
            self._tried[arm] = {name: [0, 0] for name in FITS}
            fits = [(*match, number, pool) for number, pool in pools if (match := fit(pool, arm)) is not None]
            fits.sort(key=lambda match: match[0])
            if fits:
                return [(arm, *match) for match in fits[:FRESH_SEEDS]]
        return []

    def expect(self, variant_id: str, arm: features.Arm, rank: int, case_id: str) -> None:
        """Wait for a joint variant that tries ``arm``; ``rank`` is an index into `FITS`."""
        self.waiting[variant_id] = (arm, FITS[rank])
        self.used.add(case_id)

    def tell(self, variant_id: str, judged: Iterable[Verdict]) -> bool:
        """Count what became of a variant that was waited for; returns whether it is hidden."""
        verdicts = list(judged)
        if not {v.outcome for v in verdicts} & {"pass", "violation"}:
            return False
        arm, same = self.waiting[variant_id]
        hidden = any(v.hidden for v in verdicts)
        self._tried[arm][same][0] += hidden
        self._tried[arm][same][1] += 1
        return hidden

    def rows(self) -> list[dict[str, object]]:
        """One row for each arm that was tried, as plain data."""
        return [self._row(arm, hits, self._tried[arm]) for arm, hits in self.hits.most_common() if arm in self._tried]

    @staticmethod
    def _row(arm: features.Arm, hits: int, cells: Mapping[str, Sequence[int]]) -> dict[str, object]:
        hidden, judged = (sum(cell[k] for cell in cells.values()) for k in (0, 1))
        return {
            "attributes": [a for a, _, _ in arm],
            "directions": [[a, s, t] for a, d, _ in arm for s, t in d],
            "terms": [term for _, _, term in arm],
            "hits": hits,
            "fresh_hidden": hidden,
            "fresh_seeds": judged,
            "by_fit": {name: list(cell) for name, cell in cells.items()},
            "estimate": asdict(clopper_pearson(hidden, judged)) if judged else None,
        }


Bools = NDArray[np.bool_]

EVEN = 0.5  # a joint change has no less than this share of an even chance
LEAST_TEXTS = 6  # behind an estimate


class Stands(NamedTuple):
    """What one joint version stands for, and its text."""

    text: int
    weight: float


class Chances:
    """What was asked of the joint changes that a search knows, and what each stands for."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 41])
        self._asked: dict[int, tuple[int, str]] = {}  # joint change -> its text, its variant
        self._weight: dict[int, float] = {}
        self._round: dict[int, float] = {}  # what the draws of this round add, once it is over

    def ask(self, candidate: int, text: int, variant_id: str) -> None:
        """A joint change is asked, as ``variant_id``."""
        self._asked.setdefault(candidate, (text, variant_id))

    def draw(self, beliefs: Beliefs, n: int) -> list[int]:
        """Draw ``n`` of the changes that were not asked; each is given once."""
        every = len(beliefs.open)
        left = np.array([one for one in range(every) if one not in self._asked], dtype=np.int64)
        if not len(left) or not n:
            return []
        odds = beliefs.odds(left)
        chances = np.full(len(left), 1.0 / len(left))
        for likely in (np.sqrt(odds.hidden), np.sqrt(odds.shows)):
            if (total := float(likely.sum())) > 0:
                chances += (1 / EVEN - 1) / 2 * likely / total
        chances /= chances.sum()
        drawn = Counter(self._rng.choice(len(left), n, p=chances).tolist())
        # One round is worth as much as it has draws: the sum of weights, on average.
        self._round = dict.fromkeys(self._asked, n / every)
        self._round |= {int(left[at]): times / float(chances[at]) / every for at, times in drawn.items()}
        return [int(left[at]) for at in drawn]

    def close(self) -> None:
        """The round is over and was answered."""
        for candidate, weight in self._round.items():
            self._weight[candidate] = self._weight.get(candidate, 0.0) + weight
        self._round = {}

    def stands(self) -> dict[str, Stands]:
        """What joint variants stand for that were asked, by id."""
        return {
            variant_id: Stands(text, self._weight[candidate])
            for candidate, (text, variant_id) in self._asked.items()
            if candidate in self._weight
        }


class _Rows(NamedTuple):
    """Judged joint versions of one model in one format that stand for others."""

    verdicts: list[Verdict]
    shapes: list[Shape]
    texts: Ints
    weights: Floats

    def only(self, here: Bools) -> _Rows:
        """Those ``here``."""
        rows = np.flatnonzero(here).tolist()
        return _Rows(
            [self.verdicts[n] for n in rows], [self.shapes[n] for n in rows], self.texts[here], self.weights[here]
        )


Primary = Mapping[str, tuple[str, str]]  # attribute -> group, reference


def rates(
    tables: Iterable[Observations], stands: Mapping[str, Stands], label: str | None, primary: Primary
) -> list[dict[str, object]]:
    """Rates of joint changes and net differences, for each model and format, as plain data.

    ``tables`` hold versions that were drawn at random, and those that earlier answers led to. Net differences are about
    ``label`` and compare the pairs of groups in ``primary``.
    """
    by_place: dict[Place, list[tuple[Verdict, Shape, Stands]]] = {}
    for table in tables:
        judged = table.judged()
        joint = np.array([s.arm == Arm.EDITED and len(s.attributes) > 1 for s in table.shapes.values], dtype=bool)
        here = np.flatnonzero(joint[judged.shape] & (judged.outcome <= VIOLATION))
        for verdict, code in zip(table.verdicts(here.tolist()), judged.shape[here].tolist(), strict=True):
            if (stood := stands.get(verdict.variant_id)) is not None:
                place = Place(verdict.model, verdict.format)
                by_place.setdefault(place, []).append((verdict, table.shapes.values[code], stood))
    out = []
    for place, several in sorted(by_place.items()):
        rows = _Rows(
            [v for v, _, _ in several],
            [s for _, s, _ in several],
            np.array([one.text for _, _, one in several]),
            np.array([one.weight for _, _, one in several]),
        )
        for name, about, estimate in (*_shares(rows), *_net(rows, label, primary)):
            out.append({"name": name, **place._asdict(), **about, "estimate": asdict(estimate)})
    return out


def _shares(rows: _Rows) -> Iterator[tuple[str, dict[str, object], Estimate]]:
    """How often joint changes of each set of attributes change the answer, and how often that is hidden."""
    sets = np.array([" ".join(shape.attributes) for shape in rows.shapes])
    for one in ("", *sorted(set(sets.tolist()))):
        some = rows.only(sets == one) if one else rows
        about = {"attributes": one.split()}
        changed = np.array([v.outcome == "violation" for v in some.verdicts], dtype=float)
        settled = np.array([v.outcome == "pass" or v.hidden is not None for v in some.verdicts])
        hidden = np.array([v.hidden is True for v in some.verdicts], dtype=float)
        if len(np.unique(some.texts)) >= LEAST_TEXTS:
            yield "violation_rate", about, weighted_share(changed, some.weights, some.texts)
        if len(np.unique(some.texts[settled])) >= LEAST_TEXTS:
            yield ("hidden_rate", about, weighted_share(hidden[settled], some.weights[settled], some.texts[settled]))


def _net(rows: _Rows, label: str | None, primary: Primary) -> Iterator[tuple[str, dict[str, object], Estimate]]:
    """What moving a text from one group to another does, both ways, while another attribute is changed too."""
    for attribute, (group, reference) in sorted(primary.items()) if label is not None else ():
        ways = [[d[1:] for d in shape.directions if d[0] == attribute] for shape in rows.shapes]
        way = np.array([1 if own == [(reference, group)] else -1 if own == [(group, reference)] else 0 for own in ways])
        moved = np.array([float(v.variant_output == label) - float(v.original_output == label) for v in rows.verdicts])
        here = way != 0
        if all(len(np.unique(rows.texts[way == one])) >= LEAST_TEXTS for one in (1, -1)):
            about: dict[str, object] = {"attributes": [attribute], "groups": [group, reference], "label": label}
            values = (moved * way)[here]
            yield "net", about, weighted_change(values, rows.weights[here], rows.texts[here], way[here])
