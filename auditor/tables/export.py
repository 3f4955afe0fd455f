"""Finds for other programs: pairs side by side as CSV, and all answers about each find as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded
from auditor.core.shown import csv_text
from auditor.tables.core import NOT_JUDGED, Codes, Evaluator, Judged, Schema
from auditor.tables.given import Given, Rows, binned

PAIRS = 100_000  # finds of which a pair is written
LATE = 10_000  # the same after a limit was reached


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """What the model said about each find.

    Attributes
    ----------
    codes : array of int32, shape (k, d)
        The finds; what stands in protected columns does not matter.
    judged : Judged
        Labels with every combination, as far as they are known.
    """

    codes: Codes
    judged: Judged


def answers_of(evaluator: Evaluator, found: Codes) -> Answers | None:
    """The labels of finds, without asking a slow or limited model again; None where a limit leaves none."""
    late = evaluator.exhausted and not evaluator.slow
    codes = found[: LATE if late else PAIRS]
    try:
        return Answers(codes=codes, judged=evaluator.recall(codes))
    except BudgetExceeded:
        return None


def witnesses(evaluator: Evaluator, answers: Answers) -> NDArray[np.intp]:
    """Two combinations of each find with different labels, shape (k, 2), that differ in as few columns as possible.

    -1 where no two known answers differ.
    """
    combos, judged = evaluator.schema.combos, answers.judged
    result = np.full((len(answers.codes), 2), -1, dtype=np.intp)
    apart = (combos[:, None, :] != combos[None, :, :]).sum(axis=2)
    pairs = sorted(combinations(range(len(combos)), 2), key=lambda pair: int(apart[pair]))
    left = np.arange(len(answers.codes))
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
    rows: list[list[Any]] = [header]
    chosen = witnesses(evaluator, answers)
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
    arrays: dict[str, Any] = {}
    for place, (rows, changes) in judged.items():
        codes = binned(rows)
        if isinstance(rows, Given) and rows.stand:
            arrays[f"{place}_values"] = rows.values(range(schema.d))
        arrays[f"{place}_codes"] = codes[:, schema.free_index].astype(width)
        arrays[f"{place}_changes"] = changes
    np.savez_compressed(path, **arrays)


def save_votes(path: Path, evaluator: Evaluator, answers: Answers) -> None:
    """Write finds and how many combinations got which label: ``codes`` (k, d), ``votes`` (k, l), ``labels`` (l,)."""
    judged = answers.judged
    labels = [x for x in np.unique(judged.labels[judged.possible]).tolist() if x != NOT_JUDGED]
    votes = np.stack([((judged.labels == x) & judged.possible).sum(axis=1) for x in labels], axis=1)
    names = np.array([evaluator.label_name(x) for x in labels], dtype=np.str_)
    np.savez_compressed(path, codes=answers.codes, votes=votes.astype(np.int32), labels=names)
