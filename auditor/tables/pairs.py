"""What finds say: which sets of protected columns change a label, minimal pairs, and finds for other programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded
from auditor.core.shown import csv_text
from auditor.tables.column import Codes
from auditor.tables.evaluate import NOT_JUDGED, Evaluator, Judged
from auditor.tables.given import Given, Rows, binned, crossed, within
from auditor.tables.keys import row_keys
from auditor.tables.result import Pair, Subset
from auditor.tables.schema import Schema

LATTICE_COLUMNS = 6  # sets double with each further protected column
PAIRS = 100_000  # finds of which a pair is written
LATE = 10_000  # the same after a limit was reached


def subset_flips(schema: Schema, evaluator: Evaluator, judged: Judged) -> dict[tuple[int, ...], NDArray[np.bool_]]:
    """For each set of protected columns: which rows change their label when the set is varied."""
    combos, p = schema.combos, len(schema.protected_index)
    labels, possible = judged.labels, judged.possible
    result: dict[tuple[int, ...], NDArray[np.bool_]] = {}
    for size in range(1, p + 1):
        for chosen in combinations(range(p), size):
            rest = [j for j in range(p) if j not in chosen]
            flips = np.zeros(labels.shape, dtype=bool)
            groups = row_keys(combos[:, rest], [schema.columns[schema.protected_index[j]].codes for j in rest])
            for group in np.unique(groups):
                cells = np.flatnonzero(groups == group)
                flips[:, cells] = evaluator.each(labels[:, cells], possible[:, cells])
            result[chosen] = flips & possible
    return result


def lattice(schema: Schema, evaluator: Evaluator, judged: Judged) -> tuple[Subset, ...]:
    """How often each set of protected columns changes a label, and how often no smaller set does."""
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
            minimal=_beyond(flips, chosen, range(1, len(chosen))),
            hidden=_beyond(flips, chosen, [1]) if len(chosen) > 1 else 0,
        )
        for chosen, changed in flips.items()
    )


def _beyond(flips: dict[tuple[int, ...], NDArray[np.bool_]], chosen: tuple[int, ...], sizes: Iterable[int]) -> int:
    """Rows that a set changes and none of its parts of some sizes does."""
    result = flips[chosen].copy()
    for size in sizes:
        for part in combinations(chosen, size):
            result &= ~flips[part]
    return int(result.sum())


def minimal_pairs(evaluator: Evaluator, codes: Rows, *, limit: int = 20) -> tuple[Pair, ...]:
    """One minimal counterfactual pair for each of the first ``limit`` discriminatory cases among ``codes``.

    Cases are asked again (at most ``4 * limit`` of them) where the limits allow it; else the combinations that were
    asked before count.
    """
    codes = codes[: 4 * limit]
    if not len(codes):
        return ()
    room = evaluator.affordable(len(codes)) == len(codes)
    return pairs_of(evaluator, codes, evaluator.judge(codes) if room else evaluator.recall(codes), limit=limit)


def pairs_of(evaluator: Evaluator, codes: Rows, judged: Judged, *, limit: int) -> tuple[Pair, ...]:
    """As `minimal_pairs`, of cases whose answers are known."""
    schema = evaluator.schema
    first = np.flatnonzero(judged.discriminatory)[:limit]
    part = Judged(
        labels=judged.labels[first],
        possible=judged.possible[first],
        discriminatory=judged.discriminatory[first],
        off_manifold=judged.off_manifold[first],
    )
    pairs = []
    for i, (a, b), labels in zip(first.tolist(), witnesses(evaluator, part).tolist(), part.labels, strict=True):
        if a < 0:
            continue
        holds, rows = within(schema, crossed(codes[i : i + 1], schema.protected_index, schema.combos[[a, b]]))
        one, other = holds.row(rows[0]), holds.row(rows[1])
        pairs.append(
            Pair(
                row=one,
                other=other,
                changed=tuple(name for name in schema.protected if one[name] != other[name]),
                label=evaluator.label_name(int(labels[a])),
                other_label=evaluator.label_name(int(labels[b])),
            )
        )
    return tuple(pairs)


class Answers(NamedTuple):
    """Finds, shape (k, d), and what the model said about them as far as it is known."""

    codes: Codes
    judged: Judged


def answers_of(evaluator: Evaluator, found: Codes) -> Answers | None:
    """The labels of finds, without asking a slow or limited model again; None where a limit leaves none."""
    late = evaluator.exhausted and not evaluator.slow
    codes = found[: LATE if late else PAIRS]
    try:
        return Answers(codes, evaluator.recall(codes))
    except BudgetExceeded:
        return None


def witnesses(evaluator: Evaluator, judged: Judged) -> NDArray[np.intp]:
    """Two possible combinations of each case with different labels that differ in as few columns as possible.

    Shape (k, 2); -1 where no two known answers differ.
    """
    combos = evaluator.schema.combos
    result = np.full((len(judged.labels), 2), -1, dtype=np.intp)
    apart = (combos[:, None, :] != combos[None, :, :]).sum(axis=2)
    pairs = sorted(combinations(range(len(combos)), 2), key=lambda pair: int(apart[pair]))
    left = np.arange(len(result))
    for a, b in pairs:
        if not len(left):
            break
        both = judged.possible[left][:, [a, b]]
        hit = evaluator.differ(judged.labels[left][:, [a, b]], both) & both.all(axis=1)
        result[left[hit]] = a, b
        left = left[~hit]
    return result


def pairs_csv(evaluator: Evaluator, answers: Answers) -> str:
    """One pair of rows per find: both labels, both values of each protected column, then what they share."""
    schema = evaluator.schema
    guarded = [schema.columns[i] for i in schema.protected_index.tolist()]
    shared = [schema.columns[i] for i in schema.free_index.tolist()]
    header = ["pair", "changed", "label A", "label B"]
    header += [f"{c.name} {side}" for c in guarded for side in "AB"] + [c.name for c in shared]
    rows: list[Sequence[object]] = [header]
    chosen = witnesses(evaluator, answers.judged)
    free = answers.codes[:, schema.free_index].tolist()
    names: dict[int, str] = {}
    for i in np.flatnonzero(chosen[:, 0] >= 0).tolist():
        a, b = chosen[i].tolist()
        one, other = schema.combos[a].tolist(), schema.combos[b].tolist()
        changed = [c.name for c, x, y in zip(guarded, one, other, strict=True) if x != y]
        labels = [int(answers.judged.labels[i, k]) for k in (a, b)]
        said = [names.setdefault(label, evaluator.label_name(label)) for label in labels]
        values = [c.raw(code) for c, *two in zip(guarded, one, other, strict=True) for code in two]
        same = [c.raw(code) for c, code in zip(shared, free[i], strict=True)]
        rows.append([len(rows), " + ".join(changed), *said, *values, *same])
    return csv_text(rows)


def save_judged(path: Path, schema: Schema, judged: Mapping[str, tuple[Rows, NDArray[np.bool_]]]) -> None:
    """Write draws and their verdicts, by place: ``<place>_codes`` (n, k), ``<place>_changes`` (n,).

    The codes are of the columns that are not protected. Given rows have their own values of binned columns beside them,
    ``<place>_values``.
    """
    width = np.uint16 if int(schema.cards.max(initial=0)) <= 1 << 16 else np.int32
    arrays: dict[str, NDArray[np.generic]] = {}
    for place, (rows, changes) in judged.items():
        codes = binned(rows)
        if isinstance(rows, Given) and rows.stand:
            arrays[f"{place}_values"] = rows.values(range(schema.d))
        arrays[f"{place}_codes"] = codes[:, schema.free_index].astype(width)
        arrays[f"{place}_changes"] = changes
    np.savez_compressed(path, allow_pickle=False, **arrays)


def save_votes(path: Path, evaluator: Evaluator, answers: Answers) -> None:
    """Write finds and how many combinations got which label: ``codes`` (k, d), ``votes`` (k, l), ``labels`` (l,)."""
    judged = answers.judged
    labels = [x for x in np.unique(judged.labels[judged.possible]).tolist() if x != NOT_JUDGED]
    votes = np.stack([((judged.labels == x) & judged.possible).sum(axis=1) for x in labels], axis=1)
    names = np.array([evaluator.label_name(x) for x in labels], dtype=np.str_)
    np.savez_compressed(path, codes=answers.codes, votes=votes.astype(np.int32), labels=names)
