"""Whether labels change by more than answers to one and the same row do."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from auditor.counting import plural
from auditor.types import Estimate, Prompt, Response, Variant

if TYPE_CHECKING:
    from auditor.models.rows import RowClient
    from auditor.suites.tabular.result import TabularResult
    from auditor.suites.tabular.schema import Schema

LEVEL = 0.05
CASES = 1_000  # that the test looks at
PERMUTATIONS = 999
ONCE = (
    "each row was asked once, and the model is not declared to repeat itself: a label may have changed for that reason "
    "alone, so nothing is called shown (--replicates 3 asks each row three times and tests against that; the file of a "
    "server that always repeats itself says so: deterministic: true)"
)
INCOMPLETE = "no case had all its rows answered, so nothing was tested against the noise of repeated answers"
STOPPED = (
    "a search for sets asks about a row only until its label changes: the cases that are left whole are those without "
    "a change, so nothing was tested against the noise of repeated answers (--mode score asks about all rows of a case)"
)


class Book:
    """Every row that was asked, and every answer to it."""

    def __init__(self) -> None:
        self.rows: dict[str, Mapping[str, Any]] = {}
        self.answers: dict[str, dict[int, Response]] = defaultdict(dict)

    def row(self, variant: Variant, prompt: Prompt) -> None:
        """Take note of a row that is asked."""
        assert not isinstance(variant.input, str)
        self.rows[prompt.sha256] = variant.input

    def response(self, response: Response) -> None:
        """Take note of an answer."""
        self.answers[response.prompt_sha256][response.replicate] = response


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """What repeated answers say.

    Attributes
    ----------
    same_row : Estimate or None
        Share of rows of which not all answers were the same; its interval is by case, whose rows are alike.
    p_value : float or None
        Of "the answers of a case do not depend on the protected columns", from dealing the answers of each case anew.
    cases : int
        Cases that were tested.
    reason : str
        Why nothing was tested.
    """

    same_row: Estimate | None
    p_value: float | None
    cases: int
    reason: str = ""


def whole(result: TabularResult, schema: Schema) -> bool:
    """Whether all rows of a case were asked about, whatever the answers were."""
    if result.mode != "search" or not any("decided_by" in test for test in result.details["tests"]):
        return True  # scores are of whole cases, and a walk through the domain asks about every row
    # The first two combinations are tried on every row.
    return len(schema.combos) <= 2 and tuple(result.options["columns"]) == tuple(schema.protected)


def measure(
    book: Book, asked: RowClient, protected: Sequence[str], combos: int, seed: int, *, complete: bool = True
) -> Noise:
    """The noise of repeated answers, and the test of labels against it; nothing with one answer a row.

    Parameters
    ----------
    protected : sequence of str
        The protected columns; the other columns of a row are its case.
    combos : int
        Rows of a case; only cases of which every row was asked are tested.
    seed : int
        Of the permutations.
    complete : bool
        Whether all rows of a case were asked about, whatever the answers were (`whole`); else nothing is tested.
    """
    import numpy as np

    from auditor.stats.intervals import korn_graubard

    k = asked.replicates
    if k < 2:
        return Noise(same_row=None, p_value=None, cases=0)
    names: dict[str, int] = {}
    cases: dict[tuple[Any, ...], list[list[int]]] = defaultdict(list)
    unlike: dict[tuple[Any, ...], list[bool]] = defaultdict(list)
    for sha, row in book.rows.items():
        labels = [_label(book.answers[sha].get(i), asked, names) for i in range(k)]
        case = tuple(v for c, v in row.items() if c not in protected)
        if min(labels) >= 0:
            unlike[case].append(len(set(labels)) > 1)
        cases[case].append(labels)
    same_row = (
        korn_graubard([sum(rows) for rows in unlike.values()], [len(rows) for rows in unlike.values()])
        if unlike
        else None
    )
    if not complete:
        return Noise(same_row=same_row, p_value=None, cases=0, reason=STOPPED)
    grids = [labels for labels in cases.values() if len(labels) == combos][:CASES]
    if not grids:
        return Noise(same_row=same_row, p_value=None, cases=0, reason=INCOMPLETE)
    array = np.array(grids)
    p = permuted(array.reshape(len(array), -1), combos, len(names), np.random.default_rng([seed, 2]))
    return Noise(same_row=same_row, p_value=p, cases=len(array))


def _label(response: Response | None, asked: RowClient, names: dict[str, int]) -> int:
    if response is None or response.output is None:
        return -1
    answer = asked.task.read(response.output, asked.model.style)
    if answer.status != "ok" or not isinstance(answer.value, str):
        return -1
    return names.setdefault(answer.value, len(names))


def permuted(answers: Any, combos: int, labels: int, rng: Any) -> float:
    """P value of how much more alike the answers to one row are than those to the different rows of its case.

    The statistic is the sum of squared counts of each label in each row. Under the null hypothesis the answers of a
    case are exchangeable over its rows, so they are dealt anew within each case. (The number of changed majorities
    would not do: three answers against three change it however they are dealt.)

    Parameters
    ----------
    answers : array of int, shape (cases, combos * replicates)
        Label codes from 0, row after row; -1 for none.
    labels : int
        Codes that there are.
    """

    def alike(grid: Any) -> int:
        shaped = grid.reshape(len(grid), combos, -1)
        return sum(int(((shaped == label).sum(axis=2) ** 2).sum()) for label in range(labels))

    if not labels:
        return 1.0
    seen = alike(answers)
    at_least = sum(alike(rng.permuted(answers, axis=1)) >= seen for _ in range(PERMUTATIONS))
    return (1 + at_least) / (1 + PERMUTATIONS)


def apply(record: dict[str, Any], noise: Noise, replicates: int) -> None:
    """Write the noise into the record; what it does not rise above is not called shown.

    Only for models that are not declared to repeat themselves.
    """
    section = record["tabular"]
    shown = noise.p_value is not None and noise.p_value < LEVEL
    note = ONCE
    if noise.p_value is not None:
        note = (
            f"tested against the noise of {plural(replicates, 'answer')} to each row, dealt anew within "
            f"{plural(noise.cases, 'case')}: "
            f"p = {noise.p_value:.2g}"
        )
    elif replicates > 1:
        note = noise.reason
    section["noise"] = {
        "same_row": None if noise.same_row is None else dataclasses.asdict(noise.same_row),
        "p_value": noise.p_value,
        "cases": noise.cases,
    }
    section["notes"].append(note)
    for finding in record["findings"]:
        finding["noise"] = section["noise"]["same_row"]
        finding["p_value"] = noise.p_value
        finding["notes"] = [*finding["notes"], note]
        if finding["verdict"] == "shown" and not shown:
            finding["verdict"] = "not_determined"
