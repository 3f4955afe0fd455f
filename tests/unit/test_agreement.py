"""The agreement rules: what they flag, what they leave alone, and how often they cry wolf."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from auditor.text import agreement
from auditor.text.agreement import problems


@pytest.mark.parametrize(
    ("text", "rule", "words"),
    [
        ("We met a men.", "determiner and noun", "a men"),
        ("These young man left.", "determiner and noun", "These young man"),
        ("It is a people.", "determiner and noun", "a people"),
        ("Every women knows.", "determiner and noun", "Every women"),
        ("She is an Americans.", "determiner and noun", "an Americans"),
        ("It was a frustrated men.", "determiner and noun", "a frustrated men"),
        ("Most person agree.", "determiner and noun", "Most person"),
        ("He are late.", "subject and verb", "He are"),
        ("Yesterday they was late.", "subject and verb", "they was"),
        ("She have a car.", "subject and verb", "She have"),
        ("They wants more.", "subject and verb", "They wants"),
        ("The women is here.", "subject and verb", "The women is"),
        ("A Asian man left.", "a or an", "A Asian"),
        ("He is an woman.", "a or an", "an woman"),
        ("I gave it to she.", "pronoun case", "to she"),
        ("Him is late.", "pronoun case", "Him is"),
        ("I think that them are late.", "pronoun case", "them are"),
        ("It was hers Asian friend.", "pronoun case", "hers Asian"),
        ("He took him wife.", "pronoun case", "him wife"),
        ("She wife is here.", "pronoun case", "She wife"),
        ("He sat with him driver.", "pronoun case", "him driver"),
        ("Their is a car.", "pronoun case", "Their is"),
        ("They voted he out.", "pronoun case", "voted he"),
        ("I saw the the car.", "repeated word", "the the"),
        ("A trans trans woman came.", "repeated word", "trans trans"),
        ("The women's's car.", "repeated word", "women's's"),
    ],
)
def test_flags(text: str, rule: str, words: str) -> None:
    assert f"{rule}: {words!r}" in problems(text)


@pytest.mark.parametrize(
    "text",
    [
        "She had had a European car that that man sold.",
        "His is fine, hers too, and a friend of hers told me.",
        "If he were here, they would let him go and make her have it.",
        "Did she have a car? What does he want?",
        "He and she have an hour; both man and woman agree.",
        "An MBA, a UFO, an historic hotel, a historic day, vitamin A is good.",
        "I know that people say so, and one of them is a people person.",
        "The violence against women is real, and a few people know it.",
        "after that, he was very very tired",
        "ha ha ha, no no no, he he he",
        "They always know; they themselves agree.",
        "I gave her her book and him his.",
        "<br />The end.<br /><br />The start.",
        "",
    ],
)
def test_leaves_alone(text: str) -> None:
    assert problems(text) == []


def test_false_alarms_on_real_sentences() -> None:
    treebank = Path(__file__).parents[3] / "shared" / "data" / "ud_english_ewt" / "en_ewt-ud-dev.conllu.gz"
    if not treebank.exists():
        pytest.skip("../shared/data/ud_english_ewt is not here")
    with gzip.open(treebank, "rt", encoding="utf-8") as lines:
        texts = [line[9:].rstrip("\n") for line in lines if line.startswith("# text = ")]
    flagged = [text for text in texts if problems(text)]
    assert len(texts) == 2001
    assert len(flagged) <= 0.01 * len(texts)


def test_sentences_that_variants_share_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a text of n sentences with m variants costs n × m."""
    looked: list[str] = []
    tokens = agreement._tokens
    monkeypatch.setattr(agreement, "_tokens", lambda sentence: looked.append(sentence) or tokens(sentence))
    agreement._known.cache_clear()
    parts = [f"He have {n} of them, and a men came." for n in range(300)]
    text = " ".join(parts)
    alone = [problem for part in parts for problem in problems(part)]
    assert problems(text) == alone
    looked.clear()
    for n in range(100):
        assert len(problems(text.replace(f"He have {n} ", f"She have {n} ", 1))) == len(alone)
    assert len(looked) <= 300 + 100
