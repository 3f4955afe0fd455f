"""Retraining rows from the discriminatory cases of a tabular run (Aequitas, section 4.4).

Each case that the run found adds one row for every combination of protected values that a person could have, all
with one label. The label is the model's most frequent answer over those combinations; with two combinations that
is always a tie. A tie goes to a vote of three classifiers that were fitted to the run's own data with every
protected column held at one value, so that they cannot see it. Whether training on the rows helps a given model
has to be measured again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.core.counting import plural
from auditor.core.errors import MissingDependency, RunFolderError, UserError
from auditor.run.augment import share_of
from auditor.store.folder import RunFolder
from auditor.tables.column import LACKING
from auditor.tables.compare import arrays
from auditor.tables.reading import read_table
from auditor.tables.schema import Schema
from auditor.tables.schemafile import load

MODEL, VOTE = "model", "classifiers"


@dataclass(frozen=True, kw_only=True, slots=True)
class RowAugmentation:
    """Rows to train on."""

    columns: tuple[str, ...]  # the input columns, then the target
    rows: tuple[tuple[object, ...], ...]  # raw values in that order
    cases: int  # cases that the rows stand for, and cases there were
    available: int
    sources: Mapping[str, int]  # cases by where their label comes from
    dropped: Mapping[str, int]  # cases left out, by reason


def augment_rows(
    path: Path, *, share: float | None = None, train_rows: int | None = None, seed: int = 7
) -> RowAugmentation:
    """Collect retraining rows from the folder of a tabular run.

    Parameters
    ----------
    path : Path
        The run folder.
    share : float or None
        Cases in percent of the training rows (the paper's portions lie in [2^(i-2), 2^(i-1)], i = 2, 3, …); None
        takes all there are.
    train_rows : int or None
        How many rows the training data have; default: the rows of the run's data.
    seed : int
        Fixes which cases a share draws, and the classifiers.

    Raises
    ------
    RunFolderError
        The run found nothing, or is not finished.
    UserError
        The data are not what they were, or a setting is out of range.
    """
    plan = RunFolder.open(path).plan
    if not (path / "votes.npz").is_file():
        raise RunFolderError(
            f"{path} holds no discriminatory case with its answers: the run found none, or did not finish"
        )
    schema = load(path / "schema.yaml")
    kept = arrays(path / "votes.npz")
    codes, votes, names = kept["codes"].astype(np.int32), kept["votes"], kept["labels"]
    table = read_table(plan["data"]) if plan.get("data") else None
    labels = None if table is None else table.get(schema.target)
    available, taken = len(codes), np.arange(len(codes))
    if (wanted := share_of(share, train_rows or (0 if labels is None else len(labels)))) is not None:
        taken = np.sort(np.random.default_rng(seed).permutation(len(codes))[:wanted])
    codes, votes = codes[taken], votes[taken]
    top = votes.max(axis=1, keepdims=True)
    tied = (votes == top).sum(axis=1) > 1
    said = [None if t else str(names[k]) for t, k in zip(tied, votes.argmax(axis=1), strict=True)]
    sources, dropped = {MODEL: int((~tied).sum()), VOTE: 0}, {}
    if tied.any():
        if table is None or labels is None:
            dropped["a tie, and the run has no data with labels to vote by"] = int(tied.sum())
        else:
            where = np.flatnonzero(tied)
            given = schema.encode(table, where=plan["data"])
            for at, label in zip(where, blind_vote(schema, given, labels, codes[where], seed), strict=True):
                said[at] = label
            sources[VOTE] = len(where)
    rows = _rows(schema, codes, said)
    if not rows:
        raise UserError(f"{path}: every case is a tie and there are no data to vote by, so nothing can be written")
    return RowAugmentation(
        columns=(*schema.names, schema.target or "label"),
        rows=tuple(rows),
        cases=len(said) - said.count(None),
        available=available,
        sources=sources,
        dropped=dropped,
    )


def blind_vote(
    schema: Schema, given: NDArray[np.int32], labels: NDArray[np.generic], cases: NDArray[np.int32], seed: int
) -> list[str]:
    """Labels by the majority of a logistic regression, a decision tree and five neighbours (three classifiers).

    All of them see protected columns held at one value, in the data and in the cases.
    """
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.tree import DecisionTreeClassifier
    except ImportError as error:
        raise MissingDependency("labels by a vote of classifiers", "scikit-learn", "tabular") from error

    inputs = [_design(schema, part) for part in (given, cases)]
    classes, y = np.unique(labels.astype(str), return_inverse=True)
    if len(classes) < 2:
        raise UserError("the data hold one label only, so there is nothing to vote by")
    members = (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, random_state=seed)),
        DecisionTreeClassifier(min_samples_leaf=5, random_state=seed),
        make_pipeline(StandardScaler(), KNeighborsClassifier(min(5, len(y)))),
    )
    answers = np.stack([m.fit(inputs[0], y).predict(inputs[1]) for m in members])
    counts = np.stack([(answers == k).sum(axis=0) for k in range(len(classes))])
    counts = counts * 2 + np.stack([answers[0] == k for k in range(len(classes))])  # three answers: the first
    return [str(classes[k]) for k in counts.argmax(axis=0)]


def _design(schema: Schema, codes: NDArray[np.int32]) -> NDArray[np.float64]:
    """One column per ordered column, one per value of the others; protected columns are left out."""
    parts = []
    for j in schema.free_index.tolist():
        column = schema.columns[j]
        if column.ordered or column.codes == 2:
            parts.append(codes[:, j : j + 1].astype(float))
        else:
            parts.append((codes[:, j : j + 1] == np.arange(column.codes)).astype(float))
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(codes), 1))


def _rows(schema: Schema, codes: NDArray[np.int32], said: Sequence[str | None]) -> list[tuple[object, ...]]:
    """Every possible combination of protected values of each case, with the case's label."""
    rows: list[tuple[object, ...]] = []
    for case, label in zip(codes, said, strict=True):
        if label is None:
            continue
        full = np.repeat(case[None], len(schema.combos), axis=0)
        full[:, schema.protected_index] = schema.combos
        for row in full[schema.on_manifold(full)].tolist():
            told = [c.raw(code) for c, code in zip(schema.columns, row, strict=True)]
            values = ["" if value == LACKING else value for value in told]
            rows.append((*values, _number(label)))
    return rows


def _number(label: str) -> int | str:
    return int(label) if label.removeprefix("-").isdigit() else label


def described(found: RowAugmentation, path: Path) -> Iterable[str]:
    """What the command says."""
    yield (
        f"{path}: {plural(len(found.rows), 'row')} for {found.cases:,} of "
        f"{plural(found.available, 'discriminatory case')}"
    )
    if found.sources[MODEL]:
        yield f"labels by the model's majority over the protected values: {plural(found.sources[MODEL], 'case')}"
    if found.sources[VOTE]:
        yield (
            f"labels by a vote of three classifiers that cannot see the protected columns: {found.sources[VOTE]:,} "
            f"cases (the model's answers were tied): look through them before training"
        )
    for why, n in found.dropped.items():
        yield f"left out, {why}: {n:,}"
