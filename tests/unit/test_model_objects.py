"""Objects of other libraries are taken as models as they are."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType
from typing import Any

import pytest

from auditor import audit
from auditor.core.types import Prompt, Request
from auditor.models import wrap
from auditor.models.python import as_function


def answers(model: object, texts: list[str]) -> list[Any]:
    requests = [
        Request(prompt=Prompt(format="bare", text=t), replicate=0, variant_id=str(n)) for n, t in enumerate(texts)
    ]
    return list(asyncio.run(wrap(model).generate(requests)))


def test_text_classifiers_of_scikit_learn() -> None:
    sklearn = pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    assert sklearn
    texts, labels = (["he is good", "she is bad", "it was good", "they were bad"] * 3, ["positive", "negative"] * 6)
    for last, scored in ((LogisticRegression(), True), (LinearSVC(), False)):
        model = make_pipeline(CountVectorizer(), last).fit(texts, labels)
        good, bad = answers(model, ["a good one", "a bad one"])
        assert (good.text, bad.text) == ("positive", "negative")
        assert (good.scores is not None) == scored
        result = audit(model=model, limit=4, attributes="gender")
        assert list(result.record["models"]) == ["sklearn:Pipeline"]
        assert result.complete


def test_pipelines_of_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pipeline:
        def __init__(self, *told: Any) -> None:
            self.told = list(told)

        def __call__(self, texts: list[str]) -> list[Any]:
            return self.told[: len(texts)]

    stand_in = ModuleType("transformers")
    stand_in.Pipeline = Pipeline  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", stand_in)
    one, other = answers(
        Pipeline({"label": "POSITIVE", "score": 0.9}, [{"label": "a", "score": 0.3}, {"label": "b", "score": 0.7}]),
        ["x", "y"],
    )
    assert one.text == "POSITIVE"
    assert (other.text, dict(other.scores)) == ("b", {"a": 0.3, "b": 0.7})
    assert answers(Pipeline([{"generated_text": "Yes, invite."}]), ["x"])[0].text == "Yes, invite."


def test_functions_are_no_such_objects() -> None:
    assert as_function(len) is None
