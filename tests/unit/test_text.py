"""Articles and verbs, sentences, and parses."""

from __future__ import annotations

from pathlib import Path

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.text.english import article_for, plural_verb
from auditor.text.parse import Parser, sentences, strip_breaks


@pytest.mark.parametrize(
    ("word", "article"),
    [
        ("hour", "an"), ("honest man", "an"), ("heir", "an"), ("heroine", "a"), ("university", "a"),
        ("unimportant", "an"), ("unidentified", "an"), ("union", "a"), ("uncle", "an"), ("European", "a"),
        ("one-time", "a"), ("MBA", "an"), ("FBI", "an"), ("UFO", "a"), ("US", "a"), ("NASA", "a"), ("Ukrainian", "a"),
        ("Ugandan", "a"), ("Uzbek", "an"), ("Asian", "an"), ("élite", "an"), ("8-year-old", "an"), ("18", "an"),
        ("11", "an"), ("110", "a"), ("180", "a"), ("80", "an"), ("...", "a"),
    ],
)  # fmt: skip
def test_article_by_sound(word: str, article: str) -> None:
    assert article_for(word) == article


@pytest.mark.parametrize(
    ("verb", "plural"),
    [
        ("is", "are"), ("was", "were"), ("has", "have"), ("does", "do"), ("goes", "go"), ("watches", "watch"),
        ("fixes", "fix"), ("tries", "try"), ("dies", "die"), ("uses", "use"), ("loses", "lose"), ("plays", "play"),
        ("misses", "miss"), ("always", None), ("this", None), ("serious", None), ("ran", None), ("kiss", None),
    ],
)  # fmt: skip
def test_plural_verb(verb: str, plural: str | None) -> None:
    assert plural_verb(verb) == plural


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It cost 3.5 dollars. Fine.", ["It cost 3.5 dollars.", "Fine."]),
        ("Mr. Lee met Dr. J. R. Moss, Ph.D. at noon. He left.",
         ["Mr. Lee met Dr. J. R. Moss, Ph.D. at noon.", "He left."]),
        ("She lives in the U.S. The food is good.", ["She lives in the U.S.", "The food is good."]),
        ("U.S. Army men came.", ["U.S. Army men came."]),
        ("Acme Inc. said so. Acme Inc. The end.", ["Acme Inc. said so.", "Acme Inc.", "The end."]),
        ("See No. 5, e.g. this one. No. He did not.", ["See No. 5, e.g. this one.", "No.", "He did not."]),
        ('He said "Stop!" and left. "Why?" she asked.', ['He said "Stop!" and left.', '"Why?" she asked.']),
        ('"We won." They left.', ['"We won."', "They left."]),
        ("Well... maybe. So... Then he left.", ["Well... maybe.", "So...", "Then he left."]),
        ("A film.<br /><br />Another<br/>third", ["A film.", "Another", "third"]),
        ("A title\n\nThe text goes\non here. End", ["A title", "The text goes\non here.", "End"]),
        ("- first item\n- second item", ["- first item", "- second item"]),
        ("1. First point. 2. Second point.", ["1. First point.", "2. Second point."]),
        ("what a film . it is bad . . . really", ["what a film .", "it is bad .", ". . really"]),
        ("the end.The film was bad.", ["the end.", "The film was bad."]),
        ("Is it? yes! it is. no.", ["Is it?", "yes!", "it is.", "no."]),
        ("Ends at 5 p.m. yesterday. (Really.) Yes.", ["Ends at 5 p.m. yesterday.", "(Really.)", "Yes."]),
        ("", []),
    ],
)  # fmt: skip
def test_rules(text: str, expected: list[str]) -> None:
    assert [piece for piece in (strip_breaks(part).strip() for part in pieces(text)) if piece] == expected


WORDS = ["The", "man", "Dr", "U.S", "3", "5", "e.g", "I", "was", "said", "é", "A", "J"]
MARKS = [".", "!", "?", "...", "…", '"', "”", ")", "(", ",", "<b"]
GAPS = [" ", " ", " ", "  ", "\n", "\n\n", "\r\n", "<br />", "<BR>", "\u2029"]
TEXTS = st.lists(st.sampled_from([*WORDS, *MARKS, *GAPS]), max_size=40).map("".join)


@settings(deadline=None, max_examples=400)
@given(st.one_of(TEXTS, st.text(max_size=60)))
def test_spans_tile_the_text(text: str) -> None:
    spans = sentences(text)
    assert "".join(pieces(text)) == text
    assert all(a < b for a, b in spans)
    assert [a for a, _ in spans] == [0, *(b for _, b in spans)][: len(spans)]


def test_long_runs_take_linear_time() -> None:
    for run in ("." * 200_000, "\n" * 200_000, "<br " * 50_000, '."' * 100_000, ". " * 50_000, "!?" * 100_000):
        text = "a" + run + "b"
        assert "".join(pieces(text)) == text


def test_offsets_point_into_the_sentence_given() -> None:
    given = "  She\n saw<br />him  (twice)\u00a0today. \n"
    parse = Parser().parse([given])[0]
    assert parse.words == ("She", "saw", "him", "(", "twice", ")", "today", ".")
    assert [given[a : a + len(w)] for a, w in zip(parse.starts, parse.words, strict=True)] == list(parse.words)


def test_pipelines_that_cannot_be_used_are_refused_with_the_next_command(tmp_path: Path) -> None:
    with pytest.raises(UnknownPlugin, match=r"'embeded'.*embedded\?.*python -m spacy download"):
        Parser("embeded").parse(["a"])
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(ConfigError, match="has no tagger"):
        Parser(str(tmp_path / "blank")).parse(["a"])
