"""Objects of other libraries that are taken as they are: classifiers of scikit-learn, pipelines of transformers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from transformers import Pipeline

Answers = list[str | float | dict[str, float]]


def as_function(model: object) -> Callable[[list[str]], Answers] | None:
    """A function from texts to answers for ``model``; None where it is no such object.

    A library that was never imported made no object, so none is imported here.
    """
    estimators, pipelines = sys.modules.get("sklearn.base"), sys.modules.get("transformers")
    if estimators is not None and isinstance(model, estimators.BaseEstimator):
        return _of_estimator(model)
    if pipelines is not None and isinstance(model, pipelines.Pipeline):
        return _of_pipeline(model)
    return None


def _of_estimator(model: BaseEstimator) -> Callable[[list[str]], Answers]:
    # A pipeline has the method only where its last step has it.
    chances = getattr(model, "predict_proba", None)

    def predict(texts: list[str]) -> Answers:
        if chances is None:
            return [v if isinstance(v, str) else float(v) for v in model.predict(texts).tolist()]
        labels = [str(label) for label in model.classes_]
        return [dict(zip(labels, row, strict=True)) for row in chances(texts).tolist()]

    return predict


def _of_pipeline(model: Pipeline) -> Callable[[list[str]], Answers]:
    def ask(texts: list[str]) -> Answers:
        return [_read(one) for one in model(texts)]

    return ask


def _read(told: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str | dict[str, float]:
    """What one text got: its label, the scores of all labels, or the text that was written."""
    if isinstance(told, Mapping):
        return str(told.get("label", told.get("generated_text", told)))
    if told and "score" in told[0]:
        return {str(one["label"]): float(one["score"]) for one in told}
    return _read(told[0])
