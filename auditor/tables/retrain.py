"""Aequitas, Algorithm 5: add portions of the discriminatory cases to the training data and fit again.

Portion ``i = 2, 3, …`` is drawn between ``2^(i−2)`` and ``2^(i−1)`` per cent of the training data, until one does
not lower the share of discriminatory cases or exceeds 100 %.

The caller's estimator is never changed: every model is a fresh `sklearn.base.clone`, fitted on the training
rows only. Whether a portion helps is decided on one uniform sample; the shares reported before and after
come from another, and the accuracies from rows that no model was fitted on.

The paper leaves labels to a vote of classifiers. Here the model before votes, once per combination of
protected values; a tie goes to a model of the same kind that was fitted with all protected columns held at
one value, so the label depends on nobody's group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from auditor.core.counting import plural
from auditor.core.errors import ConfigError
from auditor.core.types import Estimate
from auditor.measure.intervals import clopper_pearson
from auditor.tables.aequitas import run
from auditor.tables.column import Codes
from auditor.tables.evaluate import Evaluator, Judged
from auditor.tables.given import Rows, binned, joined, within
from auditor.tables.result import plain
from auditor.tables.schema import Asked, Schema, cross, uniform

SEARCH: Mapping[str, object] = {"mode": "fully", "local_n": 200, "generated": 12_000}
LIMIT = 100.0  # per cent of the training data
HELD_OUT = 0.25  # share of the rows kept for the accuracies


class _Fitted(Protocol):
    """A fitted scikit-learn estimator."""

    def predict(self, rows: Asked, /) -> NDArray[np.generic]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Portion:
    """One round of Algorithm 5."""

    percent: float  # the portion that was drawn, in per cent of the training rows
    cases: int  # discriminatory cases taken, and rows added for them
    rows: int
    ties: int  # cases among them whose answers had no majority
    share: float  # discriminatory share of the new model on the sample that decides
    kept: bool  # whether it was below that of the model before


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrained:
    """The outcome of retraining."""

    model: _Fitted  # the fitted model after the last portion that was kept; the one before if none was
    before_model: _Fitted  # the fitted model before
    # share of discriminatory cases among uniform ones, on the same held-out sample for both models
    before: Estimate
    after: Estimate
    accuracy_before: Estimate  # share of held-out rows whose label is predicted
    accuracy_after: Estimate
    portions: tuple[Portion, ...]  # what was tried, in order
    available: int  # discriminatory cases there were to add
    stopped: str  # why it ended
    notes: tuple[str, ...] = ()  # what a reader has to know

    def to_record(self) -> dict[str, object]:
        """Everything but the models, as plain data."""
        names = (n for n in self.__slots__ if not n.endswith("model"))
        return {name: plain(getattr(self, name)) for name in names}


def retrain(
    estimator: object,
    schema: Schema,
    given: Rows,
    labels: NDArray[np.generic],
    rng: np.random.Generator,
    *,
    search: Mapping[str, object] | None = None,
    patience: int = 1,
    sample: int = 50_000,
    frame: bool = False,
) -> Retrained:
    """Fit, search for discriminatory cases, add portions of them, fit again (section 4.4, Algorithm 5).

    Parameters
    ----------
    estimator : scikit-learn estimator
        Anything that `sklearn.base.clone` takes; whether it is fitted does not matter.
    given : Given, or array of int32, shape (n, d)
        Rows of the data; trained on as they are (codes: as `Schema.decode` gives them).
    search : mapping, optional
        Options of `auditor.tables.aequitas.run`; default: ``fully`` with ``local_n=200`` and 12,000 generated cases.
        Its finds come from uniform rows, as the share does; ``population`` finds more, but of fewer kinds.
    patience : int
        How many portions in a row may fail to lower the share before it ends; the paper's 1.
    sample : int
        Uniform cases in each of the two samples.
    """
    from sklearn.base import clone
    from sklearn.model_selection import train_test_split

    labels = np.asarray(labels)
    _check(schema, len(given), labels)
    seed = int(rng.integers(2**31))
    at, at_test, y, y_test = train_test_split(
        np.arange(len(given)), labels, test_size=HELD_OUT, stratify=_strata(labels), random_state=seed
    )
    train, test = given[at], given[at_test]
    study = _Study(schema, train, y, frame, clone(estimator), rng, sample)
    before = study.fit(train, y)
    options = dict(SEARCH if search is None else search)
    evaluator = study.evaluator(before)
    found = run(evaluator, schema, {"trials": 0, "data": binned(train), **options}, rng).found
    cases = np.empty((0, schema.d), dtype=np.int32) if found is None else found
    portions, model, stopped = _rounds(study, before, cases, patience)
    fresh = uniform(schema, sample, rng)
    shares = [study.share(m, fresh) for m in (before, model)]
    accuracy = [_accuracy(m, study.decode(test), y_test) for m in (before, model)]
    notes = []
    if model is before:
        notes.append("no portion lowered the share on the sample that decides; the model is the one before")
    if accuracy[1].value < accuracy[0].low:
        notes.append("the accuracy on held-out rows fell below the interval of the model before")
    return Retrained(
        model=model,
        before_model=before,
        before=shares[0],
        after=shares[1],
        accuracy_before=accuracy[0],
        accuracy_after=accuracy[1],
        portions=tuple(portions),
        available=len(cases),
        stopped=stopped,
        notes=tuple(notes),
    )


class _Study:
    """What all rounds share: the training data, the sample that decides, how to fit and how to ask."""

    def __init__(
        self,
        schema: Schema,
        train: Rows,
        labels: NDArray[np.generic],
        frame: bool,
        blank: object,
        rng: np.random.Generator,
        sample: int,
    ) -> None:
        self.schema, self.train, self.labels = schema, train, labels
        self.frame, self.blank, self.rng = frame, blank, rng
        self.classes = np.unique(labels)
        self.sample = uniform(schema, sample, rng)
        self._blind: _Fitted | None = None

    def decode(self, rows: Rows) -> Asked:
        schema, codes = within(self.schema, rows)
        return schema.frame(codes) if self.frame else schema.decode(codes)

    def fit(self, rows: Rows, labels: NDArray[np.generic]) -> _Fitted:
        from sklearn.base import clone

        fitted: _Fitted = clone(self.blank).fit(self.decode(rows), labels)
        return fitted

    def evaluator(self, model: _Fitted) -> Evaluator:
        """Labels are positions within ``classes``, so that all models speak the same codes."""

        def predict(x: Asked) -> NDArray[np.intp]:
            return np.asarray(np.searchsorted(self.classes, model.predict(x)))

        return Evaluator(predict, self.schema, frame=self.frame)

    def vote(self, model: _Fitted, cases: Codes) -> tuple[NDArray[np.generic], int]:
        """Labels for cases: the model's majority; ties go to a model that cannot see protected columns."""

        def blind(tied: NDArray[np.intp]) -> NDArray[np.intp]:
            if self._blind is None:
                self._blind = self.fit(self._without(binned(self.train)), self.labels)
            said = self._blind.predict(self.decode(self._without(cases[tied])))
            return np.asarray(np.searchsorted(self.classes, said))

        votes, ties = majority(self.evaluator(model).judge(cases), len(self.classes), blind)
        return self.classes[votes], ties

    def _without(self, codes: Codes) -> Codes:
        result = codes.copy()
        result[:, self.schema.protected_index] = 0
        return result

    def share(self, model: _Fitted, cases: Codes) -> Estimate:
        hits = int(self.evaluator(model).discriminatory(cases).sum())
        return clopper_pearson(hits, len(cases))


def majority(
    judged: Judged, classes: int, tie_break: Callable[[NDArray[np.intp]], NDArray[np.intp]]
) -> tuple[NDArray[np.intp], int]:
    """A label for each case: the model's most frequent answer over all possible protected combinations.

    With two combinations a discriminatory case is always a tie.
    """
    votes = np.stack([((judged.labels == c) & judged.possible).sum(axis=1) for c in range(classes)], axis=1)
    result = votes.argmax(axis=1)
    tied = np.flatnonzero((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1)
    if len(tied):
        result[tied] = tie_break(tied)
    return result, len(tied)


def _rounds(study: _Study, before: _Fitted, cases: Codes, patience: int) -> tuple[list[Portion], _Fitted, str]:
    portions: list[Portion] = []
    current, lowest = before, study.share(before, study.sample).value
    failed, i = 0, 2
    if not len(cases):
        return portions, current, "no discriminatory case was found"
    while True:
        percent = float(study.rng.uniform(2.0 ** (i - 2), 2.0 ** (i - 1)))
        if percent > LIMIT:
            return portions, current, "the next portion exceeds 100 % of the training data"
        wanted = max(1, round(percent / 100 * len(study.train)))
        taken = study.rng.permutation(len(cases))[:wanted]
        votes, ties = study.vote(before, cases[taken])
        added, labels = _rows_of(study.schema, cases[taken], votes)
        model = study.fit(joined([study.train, added]), np.concatenate([study.labels, labels]))
        share = study.share(model, study.sample).value
        better = share < lowest
        portions.append(
            Portion(percent=percent, cases=len(taken), rows=len(added), ties=ties, share=share, kept=better)
        )
        if better:
            current, lowest, failed = model, share, 0
        else:
            failed += 1
        if failed >= patience:
            return portions, current, "a portion did not lower the share"
        if wanted > len(cases):
            return portions, current, "all discriminatory cases were added"
        i += 1


def _rows_of(schema: Schema, cases: Codes, labels: NDArray[np.generic]) -> tuple[Codes, NDArray[np.generic]]:
    """A row for every possible combination of protected values of each case, with the label of the case."""
    full = cross(cases, schema.protected_index, schema.combos)
    many = np.tile(labels, len(schema.combos))
    real = schema.on_manifold(full)
    return full[real], many[real]


def _accuracy(model: _Fitted, rows: Asked, labels: NDArray[np.generic]) -> Estimate:
    return clopper_pearson(int((model.predict(rows) == labels).sum()), len(labels))


def _strata(labels: NDArray[np.generic]) -> NDArray[np.generic] | None:
    return labels if np.unique(labels, return_counts=True)[1].min() > 1 else None


def _check(schema: Schema, n: int, labels: NDArray[np.generic]) -> None:
    if not len(schema.protected_index):
        raise ConfigError("retraining needs at least one protected column")
    if n != len(labels) or n < 4:
        raise ConfigError(f"retraining needs four rows or more with a label each; got {plural(n, 'row')}")
    if len(np.unique(labels)) < 2:
        raise ConfigError("retraining: all rows have the same label, so there is nothing to learn")
