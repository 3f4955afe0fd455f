"""Path coverage on a surrogate tree (SG §4.4, Table 7) and distinct faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import BudgetExceeded
from auditor.tables.column import Codes
from auditor.tables.evaluate import Evaluator
from auditor.tables.schema import Schema, cross
from auditor.tables.sg_inputs import optional
from auditor.tables.sg_path import MAX_CLASSES

ROWS = 10_000
FOLDS = 5


class _Tree(Protocol):
    """A fitted decision tree of scikit-learn, as far as it is used."""

    def apply(self, rows: NDArray[np.float32], /) -> object: ...
    def get_n_leaves(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A decision tree that stands for the model, and how well it does."""

    tree: _Tree  # fitted to codes and the model's labels
    fidelity: float  # share of held-out rows where tree and model agree, mean over ``FOLDS`` folds, in [0, 1]
    rows: int  # rows it was fitted to

    @classmethod
    def fit(
        cls,
        evaluator: Evaluator,
        data: Codes | None,
        asked: Callable[[], tuple[Codes, NDArray[np.int64]]],
        rng: np.random.Generator,
    ) -> Surrogate | None:
        """Fit to at most ``ROWS`` of the given rows, or to the rows asked so far if calls are limited.

        None where there are too few rows, one label only, or scores instead of labels.
        """
        rows, labels = None, None
        if data is not None and evaluator.remaining is None:
            rows = data if len(data) <= ROWS else data[np.sort(rng.choice(len(data), ROWS, replace=False))]
            try:
                labels = evaluator.labels(rows)
            except BudgetExceeded:
                rows = None
        if rows is None or labels is None:
            rows, labels = asked()
        if len(rows) < 4 * FOLDS or not 2 <= len(np.unique(labels)) <= MAX_CLASSES:
            return None
        return cls.of(rows, labels, rng)

    @classmethod
    def of(cls, rows: Codes, labels: NDArray[np.int64], rng: np.random.Generator) -> Surrogate:
        """Fit to these rows and labels."""
        make = optional("sklearn.tree").DecisionTreeClassifier
        seed = int(rng.integers(2**31))
        fold = rng.permutation(len(rows)) % FOLDS
        agree = [
            float(
                (
                    make(random_state=seed).fit(rows[fold != f], labels[fold != f]).predict(rows[fold == f])
                    == labels[fold == f]
                ).mean()
            )
            for f in range(FOLDS)
        ]
        return cls(make(random_state=seed).fit(rows, labels), float(np.mean(agree)), len(rows))

    def leaves(self, codes: Codes) -> NDArray[np.int64]:
        """The leaf of each row, shape (n,)."""
        if not len(codes):
            return np.zeros(0, dtype=np.int64)
        return np.asarray(self.tree.apply(codes.astype(np.float32)), dtype=np.int64)

    def coverage(self, codes: Codes) -> dict[str, object]:
        """How many of the tree's paths some rows take."""
        return {
            "paths": len(np.unique(self.leaves(codes))),
            "of": int(self.tree.get_n_leaves()),
            "fidelity": self.fidelity,
            "fitted_rows": self.rows,
        }


def fault_count(surrogate: Surrogate, schema: Schema, cases: Codes, labels: NDArray[np.int64]) -> int:
    """Distinct faults: leaves taken over all combinations of protected values, with the model's labels."""
    if not len(cases):
        return 0
    rows = cross(cases, schema.protected_index, schema.combos)
    leaves = surrogate.leaves(rows).reshape(len(schema.combos), len(cases)).T
    return len(np.unique(np.concatenate([leaves, labels], axis=1), axis=0))
