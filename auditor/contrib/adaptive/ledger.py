"""What a directed search counts: answers by phase, and arms behind findings on seeds that it has not used."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from auditor.contrib.adaptive.features import Arm
from auditor.contrib.adaptive.search_seeds import FITS, Pool, fit
from auditor.core.types import Verdict

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
        self.hits: Counter[Arm] = Counter()
        self.used: set[str] = set()  # cases on whose seeds an arm was tried
        self._tried: dict[Arm, dict[str, list[int]]] = {}  # what is the same → hidden, judged
        self.waiting: dict[str, tuple[Arm, str]] = {}  # joint variant → arm, what is the same

    def next(self, pools: Sequence[tuple[int, Pool]]) -> list[tuple[Arm, int, tuple[int, ...], int, Pool]]:
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

    def expect(self, variant_id: str, arm: Arm, rank: int, case_id: str) -> None:
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
    def _row(arm: Arm, hits: int, cells: Mapping[str, Sequence[int]]) -> dict[str, object]:
        from auditor.measure.intervals import clopper_pearson

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
