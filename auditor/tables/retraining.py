"""Retraining on discriminatory cases: Aequitas, Algorithm 5, and rows to train on from the folder of a run.

`retrain` adds portions of the cases to the training data and fits again. Portion ``i = 2, 3, …`` is drawn between
``2^(i−2)`` and ``2^(i−1)`` per cent of the training data, until one does not lower the share of discriminatory cases or
exceeds 100 %. Whether a portion helps is decided on one uniform sample; the shares reported before and after come from
another, and the accuracies from rows that no model was fitted on.

A case adds one row for every possible combination of protected values, all with one label: the majority of the model's
labels for these combinations. A tie (with two combinations always) goes to what cannot see the protected columns: in
`retrain` a model of the same kind, in `augment_rows` a vote of three classifiers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import ConfigError, MissingDependency, RunFolderError, UserError
from auditor.core.record.rows import Portion, Retraining
from auditor.core.shown import plural
from auditor.core.types import Estimate
from auditor.measure.intervals import clopper_pearson
from auditor.run.augment import share_of
from auditor.store.folder import RunFolder
from auditor.tables.aequitas import run
from auditor.tables.coded import uniform
from auditor.tables.columns import LACKING, Codes
from auditor.tables.csv_table import read_table
from auditor.tables.evaluate import Evaluator
from auditor.tables.finds import arrays
from auditor.tables.method_options import AequitasOptions
from auditor.tables.row_schema import Asked, Schema, cross, load_schema

SEARCH = AequitasOptions(trials=0, local_n=200, generated=12_000)
LIMIT = 100.0  # per cent of the training data
HELD_OUT = 0.25  # share of the rows kept for the accuracies
MODEL, VOTE = "model", "classifiers"  # where a label comes from


class _Fitted(Protocol):
    """A fitted scikit-learn estimator."""

    def predict(self, rows: Asked, /) -> NDArray[np.generic]: ...


class Retrained(NamedTuple):
    """The outcome of retraining; ``model`` is that after the last portion that was kept, or the one before."""

    figures: Retraining
    model: _Fitted


def retrain(
    estimator: object,
    schema: Schema,
    rows: Codes,
    labels: NDArray[np.generic],
    rng: np.random.Generator,
    *,
    search: AequitasOptions = SEARCH,
    patience: int = 1,
    sample: int = 50_000,
    frame: bool = False,
) -> Retrained:
    """Fit clones of an estimator, search for discriminatory cases, add portions of them, fit again.

    ``patience`` is how many portions in a row may fail to lower the share before it ends (the paper's 1), ``sample``
    the number of uniform cases in each of the two samples.
    """
    from sklearn.model_selection import train_test_split

    labels = np.asarray(labels)
    if not len(schema.protected_index):
        raise ConfigError("retraining needs at least one protected column")
    if len(rows) != len(labels) or len(rows) < 4:
        raise ConfigError(f"retraining needs four rows or more with a label each; got {plural(len(rows), 'row')}")
    sizes = np.unique(labels, return_counts=True)[1]
    if len(sizes) < 2:
        raise ConfigError("retraining: all rows have the same label, so there is nothing to learn")
    seed = int(rng.integers(2**31))
    strata = labels if sizes.min() > 1 else None
    at, at_test, y, y_test = train_test_split(
        np.arange(len(rows)), labels, test_size=HELD_OUT, stratify=strata, random_state=seed
    )
    train, test = rows[at], rows[at_test]
    study = _Study(schema, train, y, frame, estimator, rng, uniform(schema, sample, rng))
    before = study.fit(train, y)
    cases = run(study.evaluator(before), search, rng).finds
    assert cases is not None
    portions, model, stopped = _rounds(study, before, cases, patience)
    fresh = uniform(schema, sample, rng)
    shares = [study.share(m, fresh) for m in (before, model)]
    right = [int((m.predict(study.decode(test)) == y_test).sum()) for m in (before, model)]
    accuracy = [clopper_pearson(n, len(y_test)) for n in right]
    notes = []
    if model is before:
        notes.append("no portion lowered the share on the sample that decides; the model is the one before")
    if accuracy[1].value < accuracy[0].low:
        notes.append("the accuracy on held-out rows fell below the interval of the model before")
    figures = Retraining(
        before=shares[0],
        after=shares[1],
        accuracy_before=accuracy[0],
        accuracy_after=accuracy[1],
        portions=tuple(portions),
        available=len(cases),
        stopped=stopped,
        notes=tuple(notes),
    )
    return Retrained(figures, model)


@dataclass(slots=True)
class _Study:
    """The training data, the sample that decides, how to fit and how to ask."""

    schema: Schema
    train: Codes
    labels: NDArray[np.generic]
    frame: bool
    estimator: object
    rng: np.random.Generator
    sample: Codes
    blind: _Fitted | None = None  # sees no protected column

    @property
    def classes(self) -> NDArray[np.generic]:
        return np.unique(self.labels)

    def decode(self, rows: Codes) -> Asked:
        return self.schema.frame(rows) if self.frame else self.schema.decode(rows)

    def fit(self, rows: Codes, labels: NDArray[np.generic]) -> _Fitted:
        from sklearn.base import clone

        fitted: _Fitted = clone(self.estimator).fit(self.decode(rows), labels)
        return fitted

    def evaluator(self, model: _Fitted) -> Evaluator:
        """Labels are positions within ``classes``, so that all models have the same codes."""
        return Evaluator(lambda x: np.searchsorted(self.classes, model.predict(x)), self.schema, frame=self.frame)

    def vote(self, model: _Fitted, cases: Codes) -> tuple[NDArray[np.generic], int]:
        """Labels of cases, and how many of them the model's majority left open."""
        votes = self.evaluator(model).judge(cases).votes(range(len(self.classes)))
        labels, tied = self.classes[votes.argmax(axis=1)], tied_cases(votes)
        if len(tied):
            if self.blind is None:
                self.blind = self.fit(self._without(self.schema.binned(self.train)), self.labels)
            labels[tied] = self.blind.predict(self.decode(self._without(cases[tied])))
        return labels, len(tied)

    def _without(self, codes: Codes) -> Codes:
        result = codes.copy()
        result[:, self.schema.protected_index] = 0
        return result

    def share(self, model: _Fitted, cases: Codes) -> Estimate:
        hits = int(self.evaluator(model).judge(cases).discriminatory.sum())
        return clopper_pearson(hits, len(cases))


def tied_cases(votes: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return the cases, by position, of which two labels or more have the most votes."""
    return np.flatnonzero((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1)


def _rounds(study: _Study, before: _Fitted, cases: Codes, patience: int) -> tuple[list[Portion], _Fitted, str]:
    portions: list[Portion] = []
    current, lowest = before, study.share(before, study.sample).value
    failed = 0
    if not len(cases):
        return portions, current, "no discriminatory case was found"
    for i in count(2):
        percent = float(study.rng.uniform(2.0 ** (i - 2), 2.0 ** (i - 1)))
        if percent > LIMIT:
            return portions, current, "the next portion exceeds 100 % of the training data"
        wanted = max(1, round(percent / 100 * len(study.train)))
        taken = study.rng.permutation(len(cases))[:wanted]
        votes, ties = study.vote(before, cases[taken])
        added, labels = _rows_of(study.schema, cases[taken], votes)
        model = study.fit(np.concatenate([study.train, added]), np.concatenate([study.labels, labels]))
        share = study.share(model, study.sample).value
        kept, failed = share < lowest, failed + 1
        portions.append(Portion(percent=percent, cases=len(taken), rows=len(added), ties=ties, share=share, kept=kept))
        if kept:
            current, lowest, failed = model, share, 0
        if failed >= patience:
            return portions, current, "a portion did not lower the share"
        if wanted > len(cases):
            return portions, current, "all discriminatory cases were added"
    raise AssertionError("portions grow beyond the limit")


def _rows_of(schema: Schema, cases: Codes, labels: NDArray[np.generic]) -> tuple[Codes, NDArray[np.generic]]:
    """A row for every possible combination of protected values of each case, with the label of the case."""
    full = cross(cases, schema.protected_index, schema.combos)
    many = np.tile(labels, len(schema.combos))
    real = schema.on_manifold(full)
    return full[real], many[real]


class RowAugmentation(NamedTuple):
    """Rows to train on."""

    columns: tuple[str, ...]  # the input columns, then the target
    rows: list[tuple[object, ...]]  # raw values in that order
    cases: int  # cases that the rows stand for, and cases there were
    available: int
    sources: Mapping[str, int]  # cases by where their label comes from
    dropped: Mapping[str, int]  # cases left out, by reason


def augment_rows(
    path: Path, *, share: float | None = None, train_rows: int | None = None, seed: int = 7
) -> RowAugmentation:
    """Collect retraining rows from the folder of a tabular run.

    ``share`` is how many cases, in percent of ``train_rows`` (default: the rows of the run's data); None takes all.

    Raises
    ------
    RunFolderError, UserError
        The run found nothing or is not finished; the data are not what they were, or a setting is out of range.
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
    sources, dropped = {MODEL: len(codes) - len(tied), VOTE: 0}, {}
    chosen: Sequence[str | None] = [None] * len(tied)
    if len(tied) and table is not None and labels is not None:
        encoded = schema.encode(table, where=plan["data"])
        chosen, sources[VOTE] = blind_vote(schema, encoded, labels, codes[tied], seed), len(tied)
    elif len(tied):
        dropped["a tie, and the run has no data with labels to vote by"] = len(tied)
    for at, label in zip(tied.tolist(), chosen, strict=True):
        said[at] = label
    labelled = [(case, label) for case, label in zip(codes, said, strict=True) if label is not None]
    rows = [row for case, label in labelled for row in _rows(schema, case, label)]
    if not rows:
        raise UserError(f"{path}: every case is a tie and there are no data to vote by, so nothing can be written")
    columns = (*schema.names, schema.target or "label")
    return RowAugmentation(columns, rows, len(labelled), available, sources, dropped)


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
    rows, _ = _rows_of(schema, case[None], np.array([label]))
    for row in rows.tolist():
        values = (c.raw(code) for c, code in zip(schema.columns, row, strict=True))
        yield (*("" if value == LACKING else value for value in values), last)


def described(made: RowAugmentation, path: Path) -> Iterable[str]:
    """What the command says."""
    yield (
        f"{path}: {plural(len(made.rows), 'row')} for {made.cases:,} of {plural(made.available, 'discriminatory case')}"
    )
    if made.sources[MODEL]:
        yield f"labels by the model's majority over the protected values: {plural(made.sources[MODEL], 'case')}"
    if made.sources[VOTE]:
        yield (
            f"labels by a vote of three classifiers that cannot see the protected columns: {made.sources[VOTE]:,} "
            f"cases (the model's answers were tied): look through them before training"
        )
    for why, n in made.dropped.items():
        yield f"left out, {why}: {n:,}"
