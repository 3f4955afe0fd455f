"""Whether labels change by more than answers to one and the same row do."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.core.shown import plural
from auditor.core.types import Estimate, Finding
from auditor.measure.intervals import korn_graubard
from auditor.tables.row_schema import Schema

LEVEL = 0.05
CASES = 1_000  # that the test looks at
PERMUTATIONS = 999
ONCE = (
    "each row was asked once, and the model is not declared deterministic. A label may have changed by chance, so "
    "nothing is called shown. --replicates 3 asks each row three times and tests against that noise; the file of a "
    "deterministic server says deterministic: true"
)
INCOMPLETE = "no case had all its rows answered, so nothing was tested against the noise of repeated answers"
STOPPED = (
    "a search for sets asks about a row only until its label changes, so complete cases are cases without a change. "
    "Nothing was tested against the noise of repeated answers; without --theta all rows are asked"
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """What repeated answers say: how often those to one row differ, and whether those within a case differ more."""

    same_row: Estimate | None  # share of rows of which not all answers were the same; its interval is by case
    note: str  # how changes were tested, or why not
    p_value: float | None = None
    cases: int = 0

    def beside(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings with the noise of repeats, by which one may no longer be shown."""
        drowned = self.p_value is None or self.p_value >= LEVEL
        return [
            dataclasses.replace(
                finding,
                noise=self.same_row,
                p_value=self.p_value,
                p_adjusted=self.p_value,
                notes=(*finding.notes, self.note),
                verdict="not_determined" if drowned and finding.verdict == "shown" else finding.verdict,
            )
            for finding in findings
        ]


def measure(
    read: Sequence[tuple[Mapping[str, object], Sequence[str | None]]],
    schema: Schema,
    seed: int,
    *,
    replicates: int,
    complete: bool = True,
) -> Noise:
    """Return the noise of repeated answers, and the test of changes with the protected columns against it.

    ``read`` are rows with the label of each replicate, which are dealt anew within each case all rows of which were
    asked. Nothing is tested unless the search was ``complete``: asked about all rows, whatever the answers were.
    """
    cases: dict[tuple[object, ...], list[Sequence[str | None]]] = defaultdict(list)
    for row, labels in read:
        cases[tuple(value for name, value in row.items() if name not in schema.protected)].append(labels)
    unlike = [[len(set(labels)) > 1 for labels in rows if None not in labels] for rows in cases.values()]
    known = [rows for rows in unlike if rows]
    same_row = korn_graubard([sum(rows) for rows in known], [len(rows) for rows in known]) if known else None
    size = len(schema.combos)
    whole = [rows for rows in cases.values() if len(rows) == size][:CASES]
    if replicates < 2 or not complete or not whole:
        return Noise(same_row=same_row, note=ONCE if replicates < 2 else INCOMPLETE if complete else STOPPED)
    names = sorted({label for _, labels in read for label in labels if label is not None})
    codes = {label: code for code, label in enumerate(names)} | {None: -1}
    answers = np.array([[codes[label] for labels in rows for label in labels] for rows in whole])
    p = permuted(answers, size, len(names), np.random.default_rng([seed, 2]))
    note = (
        f"tested against the noise of {plural(replicates, 'answer')} to each row, dealt anew within "
        f"{plural(len(whole), 'case')}: p = {p:.2g}"
    )
    return Noise(same_row=same_row, note=note, p_value=p, cases=len(whole))


def permuted(answers: NDArray[np.int_], combos: int, labels: int, rng: np.random.Generator) -> float:
    """P value of how much more alike the answers to one row are than those to the different rows of its case.

    ``answers`` are label codes, -1 for none, shape (cases, combos * replicates), row after row. The statistic is the
    sum of squared counts of each label in each row. Under the null hypothesis the answers of a case are exchangeable
    over its rows, so they are dealt anew within each case. (The number of changed majorities would not do: three
    answers against three change it however they are dealt.)
    """

    def alike(grid: NDArray[np.int_]) -> int:
        shaped = grid.reshape(len(grid), combos, -1)
        return sum(int(((shaped == label).sum(axis=2) ** 2).sum()) for label in range(labels))

    seen = alike(answers)
    at_least = sum(alike(rng.permuted(answers, axis=1)) >= seen for _ in range(PERMUTATIONS))
    return (1 + at_least) / (1 + PERMUTATIONS)
