"""The embedded review classifier: what it computes, and that its figures are what the script measured."""

from __future__ import annotations

import gzip
import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from auditor.core import reading
from auditor.core.errors import BadRequest, DataFileError
from auditor.models.sentiment import Reviews, terms
from tests.asking import ask, bare, chat

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "data" / "movie_reviews" / "sentence_polarity.zip"
WEIGHTS = reading.shipped("embedded", "reviews", "weights.tsv.gz")
FIGURES: dict[str, Any] = json.loads(reading.shipped("embedded", "reviews", "figures.json").read_text(encoding="utf-8"))


def training() -> ModuleType:
    """The training script as a module; it needs scikit-learn, which only the training extra brings."""
    pytest.importorskip("sklearn", reason="scikit-learn (extra: train) is the reference of this test")
    return importlib.import_module("train_reviews")


def test_terms() -> None:
    assert terms("It DOESN\u2019T work: 2 caf\u00e9s, 'quoted' rock_n_roll -- ") == [
        *("it", "doesn't", "work", "2", "caf\u00e9s", "quoted", "rock", "n", "roll"),
        *("it doesn't", "doesn't work", "work 2", "2 caf\u00e9s", "caf\u00e9s quoted"),
        *("quoted rock", "rock n", "n roll"),
    ]
    assert terms("...") == []


def test_the_embedded_weights_reproduce_the_recorded_scores() -> None:
    model = Reviews()
    assert len(FIGURES["probes"]) >= 5
    for probe in FIGURES["probes"]:
        assert model.probability(probe["text"]) == pytest.approx(probe["positive"], abs=1e-6)


def test_figures_meet_the_bar() -> None:
    assert FIGURES["held_out"]["accuracy"] >= 0.77
    assert FIGURES["held_out"]["n"] == 1066
    assert FIGURES["other_splits"]["mean"] >= 0.77
    assert FIGURES["weights_bytes"] == WEIGHTS.stat().st_size <= 1_000_000


def test_a_small_model_equals_scikit_learn(tmp_path: Path) -> None:
    script = training()
    good = [f"a good warm film {w}" for w in ("she loved", "he loved", "it's fine", "caf\u00e9 fine", "fine fine")]
    bad = [f"a bad dull film {w}" for w in ("she hated", "he hated", "it's poor", "caf\u00e9 poor", "poor poor")]
    for sublinear in (False, True):
        model = script.pipeline(min_df=1, sublinear_tf=sublinear, C=3.0).fit(good + bad, [1] * 5 + [0] * 5)
        path = tmp_path / "small.tsv.gz"
        script.export(model, good + bad, path)
        ours = Reviews(weights=path)
        texts = [*good, *bad, "", "nothing known", "good " * 50 + "she hated it's", "GOOD\u2014caf\u00c9!"]
        for text, expected in zip(texts, model.predict_proba(texts)[:, 1], strict=True):
            assert ours.probability(text) == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.exists(), reason="the sentence polarity corpus (../shared/data) is not here")
def test_the_embedded_weights_are_the_scripts_and_equal_scikit_learn(tmp_path: Path) -> None:
    script = training()
    train, labels, held, expected = script.split(*script.read_corpus(CORPUS))
    assert (len(train), len(held)) == (FIGURES["train"], FIGURES["held_out"]["n"])
    assert not set(train) & set(held)
    model = script.pipeline(**FIGURES["settings"]).fit(train, labels)
    ours = Reviews()
    probabilities = [ours.probability(text) for text in held]
    for p, reference in zip(probabilities, model.predict_proba(held)[:, 1], strict=True):
        assert p == pytest.approx(reference, abs=1e-6)
    right = sum((p >= 0.5) == bool(label) for p, label in zip(probabilities, expected, strict=True))
    assert round(right / len(held), 4) == FIGURES["held_out"]["accuracy"]


def test_generate() -> None:
    model = Reviews()
    good, bad, wrong = ask(model, bare("A warm, funny film with a wonderful cast."), bare("Dull. " * 1600), chat("x"))
    assert isinstance(wrong, BadRequest)
    assert (good.text, bad.text) == ("positive", "negative")
    assert sum(good.scores.values()) == pytest.approx(1)
    assert (model.name, model.style, model.deterministic, model.cacheable) == ("reviews", "text", True, False)


@pytest.mark.parametrize(
    "lines",
    [
        "",
        '{"format": "other"}',
        '{"format": "auditor-reviews-1", "documents": 3, "intercept": "x", "sublinear_tf": true}',
        '{"format": "auditor-reviews-1", "documents": 3, "intercept": 0, "sublinear_tf": true}\ngood\t1',
    ],
)
def test_bad_weights_are_refused(tmp_path: Path, lines: str) -> None:
    path = tmp_path / "w.tsv.gz"
    path.write_bytes(gzip.compress(lines.encode()))
    with pytest.raises(DataFileError, match="not the weights"):
        Reviews(weights=path)
