"""What a directed search has judged so far: distinct cases, finds, where they came from."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.core.counting import plural, verb
from auditor.tables.core import Codes, Evaluator, Judged, Schema, Seen, case_keys
from auditor.tables.directed_options import Options


class Stop(Exception):
    """A termination rule is met; ``args[0]`` says which, ``partial`` whether the search was cut short."""

    def __init__(self, reason: str, *, partial: bool) -> None:
        super().__init__(reason)
        self.partial = partial


class Finds:
    """Counts every case once, by the exact key of its columns that are not protected.

    Attributes
    ----------
    phases : dict
        Phase → {"judged", "hits", "generated", "discriminatory"}: cases asked, discriminatory ones among
        them, new cases, new finds; "not_judged": cases left undecided by rows without a label.
    undecided : int
        Distinct cases without a difference that were asked with some combinations only, or for which
        some row got no label.
    off_manifold : int
        Distinct cases whose label differs only on rows that nobody could be.
    patterns : set
        Distinct label vectors over all combinations among the finds.
    """

    def __init__(self, schema: Schema, evaluator: Evaluator, options: Options) -> None:
        self.schema, self.evaluator, self.options = schema, evaluator, options
        self._seen, self._found = Seen(), Seen()
        self._rows: list[Codes] = []
        self._began = time.monotonic()
        self._combos = len(schema.combos)
        self.phases: dict[str, dict[str, int]] = {}
        self.undecided = self.off_manifold = 0
        self.patterns: set[bytes] = set()

    @property
    def generated(self) -> int:
        """Distinct cases judged."""
        return len(self._seen)

    @property
    def discriminatory(self) -> int:
        """Distinct discriminatory cases."""
        return len(self._found)

    @property
    def seconds(self) -> float:
        """Wall time of the search."""
        return time.monotonic() - self._began

    def rows(self) -> Codes:
        """The discriminatory cases in the order in which they were found, shape (k, d)."""
        if not self._rows:
            return np.empty((0, self.schema.d), dtype=np.int32)
        return np.concatenate(self._rows)

    def fresh(self, codes: Codes) -> NDArray[np.bool_]:
        """Which cases were not judged yet, shape (n,); of equal ones the first."""
        keys = case_keys(self.schema, codes)
        new = np.zeros(len(codes), dtype=bool)
        new[np.unique(keys, return_index=True)[1]] = True
        return np.asarray(new & ~self._seen.has(keys))

    def check(self) -> None:
        """Raise `Stop` if a termination rule is met."""
        options = self.options
        if options.max_found is not None and self.discriminatory >= options.max_found:
            found = self.discriminatory
            raise Stop(
                f"{plural(found, 'discriminatory case')} {verb(found, 'was', 'were')} found", partial=False
            )
        if options.generated is not None and self.generated >= options.generated:
            made = self.generated
            raise Stop(f"{plural(made, 'case')} {verb(made, 'was', 'were')} generated", partial=False)
        if options.max_seconds is not None and self.seconds >= options.max_seconds:
            raise Stop(f"the time limit of {options.max_seconds:g} s was reached", partial=False)
        if self.evaluator.exhausted:
            raise Stop("the limit of the evaluator was reached", partial=True)

    def allowed(self, n: int, rows_per_case: int | None = None) -> int:
        """How many of ``n`` cases may be judged now; raises `Stop` if none."""
        self.check()
        room = min(n, self.evaluator.affordable(n, rows_per_case))
        if self.options.generated is not None:
            room = min(room, self.options.generated - self.generated)
        if n and room < 1:
            raise Stop("the limit of model evaluations was reached", partial=True)
        return room

    def judge(self, codes: Codes, phase: str) -> tuple[Judged, NDArray[np.bool_]]:
        """Ask all combinations of each case and count; also which cases were new finds, shape (n,)."""
        judged = self.evaluator.judge(codes)
        silent = judged.undecided
        self.undecided += int((silent & self.fresh(codes)).sum())
        new = self.count(codes, judged.discriminatory, judged.off_manifold, phase)
        self.phases[phase]["judged"] -= int(silent.sum())
        self.phases[phase]["not_judged"] = self.phases[phase].get("not_judged", 0) + int(silent.sum())
        if new.any() and len(self.patterns) < 10_000:
            self.patterns.update(row.tobytes() for row in judged.labels[new].astype(np.int32))
        return judged, new

    def count(
        self, codes: Codes, found: NDArray[np.bool_], off: NDArray[np.bool_], phase: str
    ) -> NDArray[np.bool_]:
        """Enter verdicts; which cases are finds that were not known, shape (n,)."""
        keys = case_keys(self.schema, codes)
        first = self._seen.add(keys)
        new = np.zeros(len(codes), dtype=bool)
        hits = np.flatnonzero(found)
        new[hits] = self._found.add(keys[hits])
        if new.any():
            self._rows.append(codes[new])
        self.off_manifold += int((off & first).sum())
        entry = self.phases.setdefault(phase, {"judged": 0, "hits": 0, "generated": 0, "discriminatory": 0})
        entry["judged"] += len(codes)
        entry["hits"] += len(hits)
        entry["generated"] += int(first.sum())
        entry["discriminatory"] += int(new.sum())
        return new

    def details(self) -> dict[str, Any]:
        """Contribution per phase and how different the finds are."""
        return {
            "phases": self.phases,
            "answer_patterns": len(self.patterns),
            "mean_distance": spread(self.rows()[:, self.schema.free_index]),
        }


def spread(rows: NDArray[np.int32], pairs: int = 4000) -> float | None:
    """Mean share of columns in which two rows differ, over evenly spaced pairs; None below two rows.

    Examples
    --------
    >>> spread(np.array([[0, 0], [0, 1]], dtype=np.int32))
    0.5
    """
    n = len(rows)
    if n < 2:
        return None
    rng = np.random.default_rng(n)
    a = rng.integers(0, n, pairs)
    b = (a + rng.integers(1, n, pairs)) % n
    return float((rows[a] != rows[b]).mean())
