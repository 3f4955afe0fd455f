"""Arms behind findings, tried on seeds that the search has not used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from auditor.contrib.adaptive.pools import FITS, Pool, fit
from auditor.contrib.adaptive.states import Arm
from auditor.core.types import Verdict

FRESH_SEEDS = 8  # fresh seeds on which an arm is tried, at most


class Trials:
    """Which arms gave findings, and what became of them on fresh seeds."""

    def __init__(self) -> None:
        self.hits: dict[Arm, int] = {}
        self.used: set[str] = set()  # cases on whose seeds an arm was tried
        self._tried: dict[Arm, dict[str, list[int]]] = {}  # what is the same → hidden, judged
        self._waiting: dict[str, tuple[Arm, str]] = {}  # joint variant → arm, what is the same

    def __len__(self) -> int:
        return len(self._tried)

    def __contains__(self, variant_id: str) -> bool:
        return variant_id in self._waiting

    def hit(self, arm: Arm) -> None:
        """Count a hidden finding of the search."""
        self.hits[arm] = self.hits.get(arm, 0) + 1

    def next(self, pools: Sequence[tuple[int, Pool]]) -> list[tuple[Arm, int, tuple[int, ...], int, Pool]]:
        """The next arm with the numbered seeds to try it on, nearest first, and the choices there."""
        for arm, _ in self._ranked():
            if arm in self._tried:
                continue
            self._tried[arm] = {name: [0, 0] for name in FITS}
            fits = [(*found, number, pool) for number, pool in pools if (found := fit(pool, arm)) is not None]
            fits.sort(key=lambda found: found[0])
            if fits:
                return [(arm, *found) for found in fits[:FRESH_SEEDS]]
        return []

    def begin(self) -> None:
        """Forget what was waited for."""
        self._waiting.clear()

    def expect(self, variant_id: str, arm: Arm, rank: int, case_id: str) -> None:
        """Wait for a joint variant that tries ``arm``; ``rank`` is an index into `FITS`."""
        self._waiting[variant_id] = (arm, FITS[rank])
        self.used.add(case_id)

    def tell(self, variant_id: str, given: Iterable[Verdict]) -> bool:
        """Count what became of a variant that was waited for; returns whether it is hidden."""
        verdicts = list(given)
        if not {v.outcome for v in verdicts} & {"pass", "violation"}:
            return False
        arm, same = self._waiting[variant_id]
        hidden = any(v.hidden for v in verdicts)
        self._tried[arm][same][0] += hidden
        self._tried[arm][same][1] += 1
        return hidden

    def rows(self) -> list[dict[str, object]]:
        """One row for each arm that was tried, as plain data."""
        return [self._row(arm, hits, self._tried[arm]) for arm, hits in self._ranked() if arm in self._tried]

    def _ranked(self) -> list[tuple[Arm, int]]:
        """Arms with findings, those with most first, and of these the earliest."""
        return sorted(self.hits.items(), key=lambda item: -item[1])

    @staticmethod
    def _row(arm: Arm, hits: int, cells: Mapping[str, Sequence[int]]) -> dict[str, object]:
        from auditor.measure.intervals import clopper_pearson

        found, judged = (sum(cell[k] for cell in cells.values()) for k in (0, 1))
        return {
            "attributes": [a for a, _, _ in arm],
            "directions": [[a, s, t] for a, d, _ in arm for s, t in d],
            "terms": [term for _, _, term in arm],
            "hits": hits,
            "fresh_hidden": found,
            "fresh_seeds": judged,
            "by_fit": {name: list(cell) for name, cell in cells.items()},
            "estimate": asdict(clopper_pearson(found, judged)) if judged else None,
        }
