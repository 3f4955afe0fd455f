from __future__ import annotations

import pytest

from auditor.text.english import article_for, plural_verb


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
