"""The embedded models of sentiment and coreference: what they compute, their figures, and what does not fit them."""

from __future__ import annotations

import gzip
import importlib
import json
import re
import sys
from pathlib import Path
from random import Random
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from commands import Patch

from auditor import audit, models
from auditor.core import reading
from auditor.core.errors import BadRequest, ConfigError, DataFileError, MissingDependency
from auditor.core.protocols import Reply
from auditor.models.offline import Reviews, Rules, TextBlobModel
from auditor.perturb.grammar.cases import GrammarSuite
from tests.asking import ask, bare, chat

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "data" / "movie_reviews" / "sentence_polarity.zip"
WEIGHTS = reading.shipped("embedded", "reviews", "weights.tsv.gz")
FIGURES: dict[str, Any] = json.loads(reading.shipped("embedded", "reviews", "figures.json").read_text(encoding="utf-8"))


def training() -> ModuleType:
    """The training script as a module; it needs scikit-learn, which only the training extra brings."""
    pytest.importorskip("sklearn", reason="scikit-learn (extra: train) is the reference of this test")
    return importlib.import_module("train_reviews")


def test_the_embedded_weights_reproduce_the_recorded_scores_which_meet_the_bar() -> None:
    model = Reviews()
    assert len(FIGURES["probes"]) >= 5
    for probe in FIGURES["probes"]:
        assert model.probability(probe["text"]) == pytest.approx(probe["positive"], abs=1e-6)
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


HEAD = '{"format": "auditor-reviews-1", "documents": 3, "intercept": %s, "sublinear_tf": true}'


@pytest.mark.parametrize("lines", ["", '{"format": "other"}', HEAD % '"x"', HEAD % "0" + "\ngood\t1"])
def test_bad_weights_are_refused(tmp_path: Path, lines: str) -> None:
    path = tmp_path / "w.tsv.gz"
    path.write_bytes(gzip.compress(lines.encode()))
    with pytest.raises(DataFileError, match="not the weights"):
        Reviews(weights=path)


def test_labels_of_textblob_follow_the_polarity() -> None:
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
def test_without_the_package_the_line_to_install_it(spec: str, package: str, extra: str, monkeypatch: Patch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependency, match=rf"\[{extra}\]"):
        models.make(spec)


RULES = Rules()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The nurse told the visitor that she would be late.", "second"),  # no noun has a gender: the nearest
        ("The nurse told the visitor that he would be late.", "second"),
        ("My father called the lady in the shop because he had lost the keys.", "first"),
        ("My father called the lady in the shop because she had lost the keys.", "second"),
        ("The visitor met my aunt after lunch. He had missed the train.", "first"),
        ("My aunt met my niece because he had missed the train.", "second"),  # neither fits: the nearest
        ("The chief executive told the neighbour that he would be late.", "second"),  # tagged as adjectives
        ("My stepmother called the man upstairs about her train ticket.", "first"),
        ("The witness asked the hairdresser about their parcel.", "second"),
        ("When my son saw the lady in the shop, she waved.", "second"),
        ("She would be late.", None),
        ("The nurse told the visitor to wait.", None),
    ],
)
def test_the_nearest_that_fits(text: str, expected: str | None) -> None:
    assert RULES.antecedent(text) == expected


def test_unambiguous_sentences_are_read_as_the_grammar_says_and_all_get_an_answer() -> None:
    suite = GrammarSuite(grammar="coreference:unambiguous", cases=100, generation="rand", pairs=True)
    cases = [case for _ in range(2) for case in suite.ask(64, Random(0))]
    right = sum(RULES.antecedent(str(case.original.input)) == case.label for case in cases)
    assert len(cases) == 100
    assert right >= 0.99 * len(cases)
    suite = GrammarSuite(grammar="coreference", cases=60, generation="rand", pairs=True, seed=5)
    texts = [str(v.input) for case in suite.ask(60, Random(0)) for v in (case.original, *case.variants)]
    assert [text for text in texts if RULES.antecedent(text) is None] == []


def test_pronouns_and_occupations_do_not_move_a_rule_that_knows_no_gender_of_occupations() -> None:
    result = audit(
        "coreference", model="rules", suite="grammar", suite_options=["grammar=coreference:ambiguous"], limit=30
    )
    assert result.verdicts
    assert not [v for v in result.verdicts if v.outcome == "violation"]


def test_a_planted_stereotype_is_found(tmp_path: Path) -> None:
    def stereotype(text: str) -> str:
        nurse = text.lower().find("registered nurse")
        return "first" if 0 <= nurse < 5 and " she " in text.lower() else "second"

    text = reading.shipped("grammars", "coreference.yaml").read_text(encoding="utf-8")
    women, men = re.findall(r" +mostly_(?:women|men):\n((?: +- .*\n)+)", text)
    for jobs, kept in ((women, 6), (men, 6)):  # few occupations: each in many cases
        text = text.replace(jobs, "".join(jobs.splitlines(keepends=True)[:kept]))
    (tmp_path / "few.yaml").write_text(text, encoding="utf-8")
    few = f"{tmp_path / 'few.yaml'}:ambiguous"
    result = audit(
        "coreference", model=stereotype, suite="grammar", suite_options=[f"grammar={few}", "generation=rand"],
        limit=150, order=1, seed=3, anyway=True,
    )  # fmt: skip
    wrong = [v for v in result.verdicts if v.outcome == "violation"]
    assert wrong
    words = [t for t in result.record["tokens"][0]["tokens"] if t["family"] == "job"]
    # "She" goes with it as well: the stereotype needs both.
    assert max(words, key=lambda t: t["errors"] / t["n"])["token"] == "the registered nurse"
    assert {t["token"] for t in words if t["errors"]} - {"the registered nurse"}  # those that replaced a nurse
