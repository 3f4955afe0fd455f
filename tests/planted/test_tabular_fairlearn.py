"""A model trained with fairlearn's reductions beside its plain twin: the same data, the same kind of model."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from auditor.tables import aequitas, themis
from auditor.tables.evaluate import Evaluator
from auditor.tables.row_schema import Schema, uniform
from auditor.tables.tabular_plan import AequitasOptions, ThemisOptions
from tests.asking import column

pytest.importorskip("sklearn", reason="the extra `tabular` is not installed")
reductions = pytest.importorskip("fairlearn.reductions", reason="the test extra fairlearn is not installed")

FIGURES = (column(name, codes, ordered=True) for name, codes in (("income", 20), ("debt", 20), ("years", 10)))
SCHEMA = Schema(columns=(*FIGURES, column("sex", 2, protected=True)))


def twins() -> tuple[Any, Any]:
    """Logistic regression on decisions that were harder on one sex, plain and under demographic parity."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(7)
    codes = uniform(SCHEMA, 3000, rng)
    score = codes[:, 0] - codes[:, 1] + 0.5 * codes[:, 2] + 4.0 * codes[:, 3] + rng.normal(0, 3, len(codes))
    y = (score > 4).astype(int)
    rows = SCHEMA.decode(codes)
    plain = LogisticRegression(max_iter=1000).fit(rows, y)
    reduced = reductions.GridSearch(
        LogisticRegression(max_iter=1000), constraints=reductions.DemographicParity(), grid_size=15
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn's own use of pandas
        reduced.fit(rows, y, sensitive_features=codes[:, 3])
    return plain, reduced


def test_the_reduced_model_has_fewer_discriminatory_rows() -> None:
    causal, share = {}, {}
    for name, model in zip(("plain", "reduced"), twins(), strict=True):
        scored = themis.run(Evaluator(model.predict, SCHEMA), ThemisOptions(), np.random.default_rng(7))
        causal[name] = next(s.estimate for s in scored.scores if s.name == "causal")
        options = AequitasOptions(generated=300, trials=4)
        searched = aequitas.run(Evaluator(model.predict, SCHEMA), options, np.random.default_rng(7))
        share[name] = searched.scores[0].estimate
    assert causal["plain"].value > 0.1  # the decisions it learnt from were harder on one sex
    assert causal["reduced"].high < causal["plain"].low / 2  # the domain is walked through: both are exact
    assert share["reduced"].high < share["plain"].low
