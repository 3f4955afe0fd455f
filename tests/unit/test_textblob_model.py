"""``textblob``: labels by the sign of the package's polarity; a clear line where it is not installed."""

from __future__ import annotations

import asyncio
import sys

import pytest

from auditor import models
from auditor.errors import ConfigError, MissingDependency
from auditor.models.textblob import TextBlobModel
from auditor.protocols import Reply
from auditor.types import Message, Prompt, Request


def ask(model: TextBlobModel, *texts: str) -> list[Reply]:
    requests = [Request(prompt=Prompt(format="bare", text=t), replicate=0, variant_id="v") for t in texts]
    return [r for r in asyncio.run(model.generate(requests)) if isinstance(r, Reply)]


def test_labels_follow_the_polarity() -> None:
    textblob = pytest.importorskip("textblob", reason="the extra textblob is not installed")
    texts = ["A wonderful film.", "A terrible, boring film.", "The train leaves at noon."]
    told = ask(TextBlobModel(), *texts)
    assert [r.text for r in told] == ["positive", "negative", "positive"]
    for text, reply in zip(texts, told, strict=True):
        polarity = textblob.TextBlob(text).sentiment.polarity
        assert reply.scores == pytest.approx({"positive": (polarity + 1) / 2, "negative": (1 - polarity) / 2})
    assert [r.text for r in ask(TextBlobModel(neutral=True), *texts)] == ["positive", "negative", "neutral"]


def test_the_spec() -> None:
    pytest.importorskip("textblob", reason="the extra textblob is not installed")
    assert models.make("textblob").fingerprint.startswith("textblob:")
    assert models.make("textblob").fingerprint != TextBlobModel(neutral=True).fingerprint
    with pytest.raises(ConfigError, match="takes nothing"):
        models.make("textblob:large")
    chat = Request(
        prompt=Prompt(format="plain", messages=(Message(role="user", content="x"),)),
        replicate=0,
        variant_id="v",
    )
    assert not isinstance(asyncio.run(TextBlobModel().generate([chat]))[0], Reply)


@pytest.mark.parametrize(
    ("spec", "package", "extra"), [("textblob", "textblob", "textblob"), ("hf:x", "torch", "local")]
)
def test_without_the_package_the_line_to_install_it(
    spec: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"\[{extra}\]"):
        models.make(spec)
