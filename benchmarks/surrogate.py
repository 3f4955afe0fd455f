"""A decision tree in place of the model: paths that cases take, and distinct faults (the SG paper, section 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from auditor.tables.row_schema import Schema

FOLDS = 5


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A tree fitted to codes and the model's labels."""

    tree: Any
    fidelity: float  # share of held-out rows where tree and model agree, mean over `FOLDS` folds

    @classmethod
    def of(cls, rows: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> Surrogate:
        """Fit to these rows and labels."""
        seed = int(rng.integers(2**31))
        fold = rng.permutation(len(rows)) % FOLDS
        agree = []
        for out in (fold == f for f in range(FOLDS)):
            fitted = DecisionTreeClassifier(random_state=seed).fit(rows[~out], labels[~out])
            agree.append(float((fitted.predict(rows[out]) == labels[out]).mean()))
        return cls(DecisionTreeClassifier(random_state=seed).fit(rows, labels), float(np.mean(agree)))

    def paths(self, codes: np.ndarray) -> int:
        """Count the paths that some rows take."""
        return len(np.unique(self.tree.apply(codes.astype(np.float32)))) if len(codes) else 0


def fault_count(surrogate: Surrogate, schema: Schema, cases: np.ndarray, labels: np.ndarray) -> int:
    """Count distinct faults: leaves taken over all combinations of protected values, with the model's labels."""
    if not len(cases):
        return 0
    rows = schema.crossed(cases, schema.protected_index, schema.combos)
    leaves = surrogate.tree.apply(rows.astype(np.float32)).reshape(len(schema.combos), len(cases)).T
    return len(np.unique(np.concatenate([leaves, labels], axis=1), axis=0))
