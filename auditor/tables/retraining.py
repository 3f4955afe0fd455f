"""Rows to train on from the finds of a tabular run (Aequitas, Algorithm 5; the fitting is left to the user).

A case adds one row for every possible combination of protected values, all with one label: the majority of the model's
labels for these combinations. A tie (with two combinations always) goes to a vote of three classifiers that cannot see
the protected columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import MissingDependency, RunFolderError, UserError
from auditor.core.shown import plural
from auditor.run.augment import share_of
from auditor.store.folder import RunFolder
from auditor.tables.columns import LACKING, Codes
from auditor.tables.finds import arrays
from auditor.tables.row_data import read_table
from auditor.tables.row_schema import Schema, load_schema


def tied_cases(votes: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return the cases, by position, of which two labels or more have the most votes."""
    return np.flatnonzero((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1)


class RowAugmentation(NamedTuple):
    """Rows to train on."""

    columns: tuple[str, ...]  # the input columns, then the target
    rows: list[tuple[object, ...]]  # raw values in that order
    cases: int  # cases that the rows represent, and cases there were
    available: int
    voted: int  # cases with a label by classifiers
    left_out: int  # ties without data to vote by


def augment_rows(
    path: Path, *, share: float | None = None, train_rows: int | None = None, seed: int = 7
) -> RowAugmentation:
    """Collect retraining rows from the folder of a tabular run.

    ``share`` is how many cases, in percent of ``train_rows`` (default: the rows of the run's data); None takes all.
    """
    plan = RunFolder.open(path).plan
    if not (path / "votes.npz").is_file():
        raise RunFolderError(
            f"{path} holds no discriminatory case with its answers: the run found none, or did not finish"
        )
    schema = load_schema(path / "schema.yaml")
    kept = arrays(path / "votes.npz")
    codes, votes, names = kept["codes"].astype(np.int32), kept["votes"], kept["labels"]
    table = read_table(plan["data"]) if plan.get("data") else None
    labels = None if table is None else table.get(schema.target)
    available, taken = len(codes), np.arange(len(codes))
    if (wanted := share_of(share, train_rows or (0 if labels is None else len(labels)))) is not None:
        taken = np.sort(np.random.default_rng(seed).permutation(len(codes))[:wanted])
    codes, votes = codes[taken], votes[taken]
    tied = tied_cases(votes)
    said: list[str | None] = [str(names[k]) for k in votes.argmax(axis=1)]
    chosen: Sequence[str | None] = [None] * len(tied)
    if vote := len(tied) > 0 and table is not None and labels is not None:
        chosen = blind_vote(schema, schema.encode(table, where=plan["data"]), labels, codes[tied], seed)
    for at, label in zip(tied.tolist(), chosen, strict=True):
        said[at] = label
    labelled = [(case, label) for case, label in zip(codes, said, strict=True) if label is not None]
    rows = [row for case, label in labelled for row in _rows(schema, case, label)]
    if not rows:
        raise UserError(f"{path}: every case is a tie and there are no data to vote by, so nothing can be written")
    columns = (*schema.names, schema.target or "label")
    return RowAugmentation(columns, rows, len(labelled), available, len(tied) * vote, len(tied) * (not vote))


def blind_vote(schema: Schema, rows: Codes, labels: NDArray[np.generic], cases: Codes, seed: int) -> list[str]:
    """Return labels by the majority of three classifiers without the protected columns."""
    try:
        from sklearn.ensemble import VotingClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.tree import DecisionTreeClassifier
    except ImportError as error:
        raise MissingDependency("labels by a vote of classifiers", "scikit-learn", "tabular") from error

    if len(np.unique(labels.astype(str))) < 2:
        raise UserError("the data hold one label only, so there is nothing to vote by")
    members = {
        "regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, random_state=seed)),
        "tree": DecisionTreeClassifier(min_samples_leaf=5, random_state=seed),
        "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(min(5, len(labels)))),
    }
    vote = VotingClassifier(list(members.items())).fit(_design(schema, rows), labels.astype(str))
    return list(map(str, vote.predict(_design(schema, cases))))


def _design(schema: Schema, codes: Codes) -> NDArray[np.float64]:
    """One column per ordered column, one per value of the others; protected columns are left out."""
    parts = []
    for j in schema.free_index.tolist():
        column = schema.columns[j]
        if column.ordered or column.codes == 2:
            parts.append(codes[:, j : j + 1].astype(float))
        else:
            parts.append((codes[:, j : j + 1] == np.arange(column.codes)).astype(float))
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(codes), 1))


def _rows(schema: Schema, case: Codes, label: str) -> Iterator[tuple[object, ...]]:
    """Every possible combination of protected values of a case, with its label."""
    last = int(label) if label.removeprefix("-").isdigit() else label
    rows = schema.crossed(case[None], schema.protected_index, schema.combos)
    for row in rows[schema.on_manifold(rows)]:
        yield (*("" if value == LACKING else value for value in schema.row(row).values()), last)


def described(made: RowAugmentation, path: Path) -> Iterable[str]:
    """What the command says."""
    yield (
        f"{path}: {plural(len(made.rows), 'row')} for {made.cases:,} of {plural(made.available, 'discriminatory case')}"
    )
    if by_model := made.cases - made.voted:
        yield f"labels by the model's majority over the protected values: {plural(by_model, 'case')}"
    if made.voted:
        yield (
            f"labels by a vote of three classifiers that cannot see the protected columns: {made.voted:,} "
            f"cases (the model's answers were tied): look through them before training"
        )
    if made.left_out:
        yield f"left out, a tie, and the run has no data with labels to vote by: {made.left_out:,}"
