from __future__ import annotations

import pytest

from auditor.text.english import article_for, case_of, match_case, plural_verb, stands_alone, starts_sentence, words


@pytest.mark.parametrize(
    ("word", "article"),
    [
        ("hour", "an"),
        ("honest man", "an"),
        ("heir", "an"),
        ("heroine", "a"),
        ("university", "a"),
        ("unimportant", "an"),
        ("unidentified", "an"),
        ("union", "a"),
        ("uncle", "an"),
        ("European", "a"),
        ("one-time", "a"),
        ("MBA", "an"),
        ("FBI", "an"),
        ("UFO", "a"),
        ("US", "a"),
        ("NASA", "a"),
        ("Ukrainian", "a"),
        ("Ugandan", "a"),
        ("Uzbek", "an"),
        ("Asian", "an"),
        ("élite", "an"),
        ("8-year-old", "an"),
        ("18", "an"),
        ("11", "an"),
        ("110", "a"),
        ("180", "a"),
        ("80", "an"),
        ("...", "a"),
    ],
)
def test_article_by_sound(word: str, article: str) -> None:
    assert article_for(word) == article


@pytest.mark.parametrize(
    ("model", "word", "written"),
    [
        ("woman", "man", "man"),
        ("Woman", "man", "Man"),
        ("WOMAN", "trans man", "TRANS MAN"),
        ("woman", "American", "American"),
        ("Trans Woman", "trans man", "Trans man"),
        ("iPhone", "man", "man"),
        ("A", "an", "An"),
        ("she", "Mx.", "Mx."),
    ],
)
def test_case_transfer(model: str, word: str, written: str) -> None:
    assert match_case(model, word) == written


def test_case_of_accented_letters() -> None:
    assert [case_of(w) for w in ("fiancé", "Fiancé", "FIANCÉ", "wOman", "42")] == [
        "lower",
        "title",
        "upper",
        "mixed",
        "lower",
    ]


def test_words_leave_markup_and_addresses_out() -> None:
    text = "A <b class='man'>man</b> at www.man.com or he@man.org, 3 < 4 > 2."
    assert [w.key for w in words(text)] == ["a", "man", "at", "or", ",", "3", "<", "4", ">", "2", "."]
    for word in words(text):
        assert text[word.start : word.end].lower() == word.key


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("[man]", True),
        ("xman", False),
        ("man1", False),
        ("man_", False),
        ("man-made", False),
        ("he-man", False),
        ("x--man--y", True),
        ("#man", False),
        ("@man", False),
        ("man\u0301", False),
        ("man's", True),
        ("man/woman", True),
        ("man-", True),
    ],
)
def test_stands_alone(text: str, alone: bool) -> None:
    at = text.index("man")
    assert stands_alone(text, at, at + 3) is alone


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("Man", True),
        ("Stop. Man", True),
        ("Mr. Man", False),
        ("the Man", False),
        ('He said: "Man', True),
        ("line\nMan", True),
        ("<br />Man", True),
        ("so, Man", False),
    ],
)
def test_starts_sentence(text: str, starts: bool) -> None:
    assert starts_sentence(text, text.index("Man")) is starts


@pytest.mark.parametrize(
    ("verb", "plural"),
    [
        ("is", "are"),
        ("was", "were"),
        ("has", "have"),
        ("does", "do"),
        ("goes", "go"),
        ("watches", "watch"),
        ("fixes", "fix"),
        ("tries", "try"),
        ("dies", "die"),
        ("uses", "use"),
        ("loses", "lose"),
        ("plays", "play"),
        ("misses", "miss"),
        ("always", None),
        ("this", None),
        ("serious", None),
        ("ran", None),
        ("kiss", None),
    ],
)
def test_plural_verb(verb: str, plural: str | None) -> None:
    assert plural_verb(verb) == plural
