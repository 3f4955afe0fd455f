"""What the tabular methods share; import from here.

A method module offers ``run(evaluator, schema, options, rng) -> TabularResult`` and asks the model through
the `Evaluator` only::

    def run(evaluator: Evaluator, schema: Schema, options: Mapping[str, Any],
            rng: np.random.Generator) -> TabularResult: ...

``options["data"]`` holds the codes of the given rows, shape (n, d), or None; the other entries are the
method's own, by name. `BudgetExceeded` from the evaluator ends a search with what it has found
(``status="partial"``); `Evaluator.affordable` tells beforehand what may still be asked.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from auditor.tables.distance import EXACT, Distance
from auditor.tables.evaluate import NOT_JUDGED, Evaluator, Judged, Limit, cross, enumerate_rows, uniform
from auditor.tables.given import Rows, crossed, within
from auditor.tables.keys import Keys, Seen, first_of_each, row_keys
from auditor.tables.result import Pair, Score, Subset, TabularResult, plain
from auditor.tables.schema import ENUMERABLE, Codes, Column, Schema

__all__ = [
    "ENUMERABLE",
    "EXACT",
    "NOT_JUDGED",
    "Codes",
    "Column",
    "Distance",
    "Evaluator",
    "Judged",
    "Keys",
    "Limit",
    "Pair",
    "Schema",
    "Score",
    "Seen",
    "Subset",
    "TabularResult",
    "case_keys",
    "cross",
    "enumerate_rows",
    "first_of_each",
    "lattice",
    "minimal_pairs",
    "plain",
    "row_keys",
    "subset_flips",
    "uniform",
]
LATTICE_COLUMNS = 6  # sets double with each further protected column


def case_keys(schema: Schema, codes: Codes) -> Keys:
    """Exact keys of the cases that rows belong to, shape (n,): the columns that are not protected."""
    index = schema.free_index
    return row_keys(codes[:, index], schema.cards[index])


def subset_flips(
    schema: Schema, evaluator: Evaluator, judged: Judged
) -> dict[tuple[int, ...], NDArray[np.bool_]]:
    """For each set of protected columns: which rows change their label when the set is varied.

    Returns
    -------
    dict
        Positions within `Schema.protected_index` → array of bool, shape (n, m): row (case, combination)
        has a possible row that differs from it in these columns only and has another label.
        Sets in order of size. Rows that are not possible are False.
    """
    combos, p = schema.combos, len(schema.protected_index)
    labels, possible = judged.labels, judged.possible
    result: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    for size in range(1, p + 1):
        for chosen in combinations(range(p), size):
            rest = [j for j in range(p) if j not in chosen]
            flips = np.zeros(labels.shape, dtype=bool)
            groups = row_keys(
                combos[:, rest], [schema.columns[schema.protected_index[j]].codes for j in rest]
            )
            for group in np.unique(groups):
                cells = np.flatnonzero(groups == group)
                flips[:, cells] = evaluator.each(labels[:, cells], possible[:, cells])
            result[chosen] = flips & possible
    return result


def lattice(schema: Schema, evaluator: Evaluator, judged: Judged) -> tuple[Subset, ...]:
    """How often each set of protected columns changes a label, and how often no smaller set does.

    Parameters
    ----------
    judged : Judged
        Cases with their labels; counts are over their possible rows.
    """
    p = len(schema.protected_index)
    if p > LATTICE_COLUMNS:
        return ()
    flips = subset_flips(schema, evaluator, judged)
    rows = int(judged.possible.sum())
    return tuple(
        Subset(
            columns=tuple(schema.protected[j] for j in chosen),
            rows=rows,
            changes=int(changed.sum()),
            minimal=int(_minimal(flips, chosen).sum()),
            hidden=int(_hidden(flips, chosen).sum()),
        )
        for chosen, changed in flips.items()
    )


def _minimal(flips: dict[tuple[int, ...], NDArray[np.bool_]], chosen: tuple[int, ...]) -> NDArray[np.bool_]:
    result = flips[chosen].copy()
    for size in range(1, len(chosen)):
        for part in combinations(chosen, size):
            result &= ~flips[part]
    return result


def _hidden(flips: dict[tuple[int, ...], NDArray[np.bool_]], chosen: tuple[int, ...]) -> NDArray[np.bool_]:
    result = flips[chosen].copy()
    for column in chosen:
        result &= ~flips[column,] if len(chosen) > 1 else False
    return result


def minimal_pairs(schema: Schema, evaluator: Evaluator, codes: Rows, *, limit: int = 20) -> tuple[Pair, ...]:
    """One minimal counterfactual pair for each of the first ``limit`` discriminatory cases among ``codes``.

    The pair changes as few protected columns as any pair of that case; cases are asked again (at most
    ``4 * limit`` of them) where the limits allow it; else the combinations that were asked before count.
    """
    codes = codes[: 4 * limit]
    if not len(codes):
        return ()
    within = evaluator.affordable(len(codes)) == len(codes)
    judged = evaluator.judge(codes) if within else evaluator.recall(codes)
    combos = schema.combos
    apart = (combos[:, None, :] != combos[None, :, :]).sum(axis=2)
    pairs = []
    for i in np.flatnonzero(judged.discriminatory)[:limit].tolist():
        labels, cells = judged.labels[i], np.flatnonzero(judged.possible[i])
        best: tuple[int, int, int] | None = None
        for a, b in combinations(cells.tolist(), 2):
            if (best is None or apart[a, b] < best[0]) and evaluator.differ(labels[None, [a, b]])[0]:
                best = (int(apart[a, b]), a, b)
        if best is not None:
            pairs.append(_pair(schema, evaluator, codes[i : i + 1], labels, best[1], best[2]))
    return tuple(pairs)


def _pair(
    schema: Schema, evaluator: Evaluator, case: Rows, labels: NDArray[np.int64], a: int, b: int
) -> Pair:
    holds, rows = within(schema, crossed(case, schema.protected_index, schema.combos[[a, b]]))
    one, other = holds.row(rows[0]), holds.row(rows[1])
    return Pair(
        row=one,
        other=other,
        changed=tuple(name for name in schema.protected if one[name] != other[name]),
        label=evaluator.label_name(int(labels[a])),
        other_label=evaluator.label_name(int(labels[b])),
    )
