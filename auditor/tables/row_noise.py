"""Whether labels change by more than answers to one and the same row do."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.core.shown import plural
from auditor.core.types import Estimate, Finding
from auditor.measure.intervals import korn_graubard
from auditor.measure.p_values import holm
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
    """What repeated answers say."""

    same_row: Estimate | None  # share of rows of which not all answers were the same; its interval is by case
    # By set of protected columns, all of them together too; a set without rows to test is not in it.
    tests: Mapping[tuple[str, ...], Dealt] = dataclasses.field(default_factory=dict)
    reason: str = ""  # why nothing was tested

    def to_record(self, protected: Sequence[str]) -> dict[str, object]:
        """The noise as plain data, with the test of all protected columns together."""
        together = self.tests.get(tuple(protected))
        return {
            "same_row": None if self.same_row is None else dataclasses.asdict(self.same_row),
            "p_value": None if together is None else together.p_value,
            "cases": 0 if together is None else together.blocks,
        }

    def note(self, columns: Sequence[str], replicates: int, protected: Sequence[str]) -> str:
        """How a set of columns was tested, or why it was not."""
        test = self.tests.get(tuple(columns))
        if test is None:
            return (self.reason or INCOMPLETE) if replicates > 1 else ONCE
        within = plural(test.blocks, "case")
        if tuple(columns) != tuple(protected):
            within = f"{plural(test.blocks, 'set')} of rows that differ in {', '.join(columns)} alone"
        answers = plural(replicates, "answer")
        how = f"tested against the noise of {answers} to each row, dealt anew within {within}"
        adjusted = f", adjusted {test.p_adjusted:.2g}" if len(self.tests) > 1 else ""
        return f"{how}: p = {test.p_value:.2g}{adjusted}"


class Dealt(NamedTuple):
    """Whether answers depend on some columns: they are dealt anew among rows that differ in these columns alone."""

    p_value: float
    p_adjusted: float  # Holm, over the sets of columns
    blocks: int  # of such rows; with all protected columns a block is a case


def measure(
    read: Sequence[tuple[Mapping[str, object], Sequence[str | None]]],
    schema: Schema,
    sets: Iterable[tuple[str, ...]],
    seed: int,
    *,
    complete: bool = True,
) -> Noise:
    """Return the noise of repeated answers, and the test of each set of protected columns against it.

    ``read`` are rows with the label of each replicate. Blocks of rows that differ in the columns of a set alone are
    dealt anew, where every row of a block was asked. Nothing is tested unless the search was ``complete``: asked about
    all rows of a case, whatever the answers were.
    """
    unlike: dict[tuple[object, ...], list[bool]] = defaultdict(list)
    for row, labels in read:
        if None not in labels:
            unlike[_without(row, schema.protected)].append(len(set(labels)) > 1)
    rows_of = unlike.values()
    same_row = korn_graubard([sum(rows) for rows in rows_of], [len(rows) for rows in rows_of]) if rows_of else None
    if not complete:
        return Noise(same_row=same_row, reason=STOPPED)
    names = sorted({label for _, labels in read for label in labels if label is not None})
    codes = {label: code for code, label in enumerate(names)} | {None: -1}
    p_values: dict[tuple[str, ...], tuple[float, int]] = {}
    for number, columns in enumerate(dict.fromkeys([tuple(schema.protected), *sets])):
        blocks: dict[tuple[object, ...], list[list[int]]] = defaultdict(list)
        for row, labels in read:
            blocks[_without(row, columns)].append([codes[label] for label in labels])
        size = len(schema.combos_of([schema.index_of(name) for name in columns]))
        if grids := [block for block in blocks.values() if len(block) == size][:CASES]:
            array = np.array(grids).reshape(len(grids), -1)
            rng = np.random.default_rng([seed, 2, number] if number else [seed, 2])
            p_values[columns] = permuted(array, size, len(names), rng), len(grids)
    adjusted = holm([p for p, _ in p_values.values()])
    tests = {
        columns: Dealt(p, q, n)
        for (columns, (p, n)), q in zip(p_values.items(), adjusted, strict=True)
        if q is not None
    }
    return Noise(same_row=same_row, tests=tests, reason="" if tests else INCOMPLETE)


def _without(row: Mapping[str, object], columns: Collection[str]) -> tuple[object, ...]:
    return tuple(value for name, value in row.items() if name not in columns)


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

    if not labels:
        return 1.0
    seen = alike(answers)
    at_least = sum(alike(rng.permuted(answers, axis=1)) >= seen for _ in range(PERMUTATIONS))
    return (1 + at_least) / (1 + PERMUTATIONS)


def columns_of(finding: Finding, protected: Sequence[str]) -> tuple[str, ...]:
    """The protected columns that a finding is about, in the schema's order; all where it names none."""
    return tuple(name for name in protected if name in finding.attributes) or tuple(protected)


def against_noise(
    findings: Iterable[Finding], noise: Noise, replicates: int, protected: Sequence[str]
) -> list[Finding]:
    """The findings with the noise of repeats; by the test of its own columns a finding may no longer be shown."""
    beside = []
    for finding in findings:
        columns = columns_of(finding, protected)
        test = noise.tests.get(columns)
        drowned = finding.verdict == "shown" and (test is None or test.p_adjusted >= LEVEL)
        beside.append(
            dataclasses.replace(
                finding,
                noise=noise.same_row,
                p_value=None if test is None else test.p_value,
                p_adjusted=None if test is None else test.p_adjusted,
                notes=(*finding.notes, noise.note(columns, replicates, protected)),
                verdict="not_determined" if drowned else finding.verdict,
            )
        )
    return beside
