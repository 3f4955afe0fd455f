"""``textblob``: labels by the sign of the package's polarity; a clear line where it is not installed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from auditor import audit, models
from auditor.core.errors import ConfigError, MissingDependency
from auditor.core.protocols import Reply
from auditor.models.sentiment import TextBlobModel
from tests.asking import ask, bare, chat


def test_labels_follow_the_polarity() -> None:
    textblob = pytest.importorskip("textblob", reason="the extra textblob is not installed")
    texts = ["A wonderful film.", "A terrible, boring film.", "The train leaves at noon."]
    told, neutral = models.make("textblob"), TextBlobModel(task=SimpleNamespace(labels=("neutral",)))
    *replies, refused = ask(told, *map(bare, texts), chat("x"))
    assert [r.text for r in replies] == ["positive", "negative", "positive"]
    assert not isinstance(refused, Reply)
    for text, reply in zip(texts, replies, strict=True):
        polarity = textblob.TextBlob(text).sentiment.polarity
        assert reply.scores == pytest.approx({"positive": (polarity + 1) / 2, "negative": (1 - polarity) / 2})
    assert [r.text for r in ask(neutral, *map(bare, texts))] == ["positive", "negative", "neutral"]
    assert told.fingerprint != neutral.fingerprint
    with pytest.raises(ConfigError, match="takes nothing"):
        models.make("textblob:large")


@pytest.mark.parametrize(
    ("spec", "package", "extra"), [("textblob", "textblob", "textblob"), ("hf:x", "torch", "local")]
)
def test_without_the_package_the_line_to_install_it(
    spec: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"\[{extra}\]"):
        models.make(spec)


THREE = """\
format: 1
name: mood
kind: classification
labels: [negative, neutral, positive]
question: Is the text negative, neutral or positive?
formats:
  plain: {instruction: One word.}
  json: {instruction: JSON., answer: '{"label": {json}}'}
"""


def test_neutral_is_a_label_where_the_task_has_it(tmp_path: Path) -> None:
    """Folded into positive, a score of nothing hid changes to and from it: on 600 cases 11 were seen instead of 48."""
    task = tmp_path / "mood.yaml"
    task.write_text(THREE, encoding="utf-8")
    options: dict[str, Any] = {"suite": "grammar", "suite_options": ["grammar=sentiment", "generation=rand"]}
    found = [
        audit(which, model="vader", limit=100, order=1, cache=False, **options) for which in (str(task), "sentiment")
    ]
    three, two = (
        {v.variant_id: (v.original_output, v.variant_output) for v in one.verdicts if v.outcome != "skipped"}
        for one in found
    )
    assert set(three) == set(two)
    assert {label for pair in three.values() for label in pair} == {"negative", "neutral", "positive"}
    assert "neutral" not in {label for pair in two.values() for label in pair}
    changed = {i for i, (a, b) in three.items() if a != b}
    seen = {i for i, (a, b) in two.items() if a != b}
    assert len(changed) > len(seen)
    assert all("neutral" in three[i] for i in changed - seen)
