"""The parser: one tree per sentence, one parse per distinct sentence, no influence of batch mates."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.text.parse import Parser

SENTENCES = [
    "The woman sold his car.",
    "I saw her yesterday, and she was fine.",
    "BBC mini-series like this one, published in 1981, were not available on DVD until the last few years!",
    "He isn't sure that they're here",
    "what a movie",
    "(Really.)",
    "A Nigerian doctor and two British women met the manager of the bank at 5 p.m. on Monday.",
    "Yes",
    'She said: "I don\'t know. He left. Why?" and went home to her mother, who had been waiting for him.',
]


@pytest.fixture(scope="module")
def parser() -> Parser:
    return Parser()


def test_tags_tell_possessive_from_object(parser: Parser) -> None:
    parse = parser.parse(["He saw him and his car."])[0]
    assert parse.words == ("He", "saw", "him", "and", "his", "car", ".")
    assert parse.tags[2] == "PRP"
    assert parse.tags[4] == "PRP$"


def test_each_sentence_is_one_tree(parser: Parser) -> None:
    rng = random.Random(3)
    words = ["the", "man", ".", "!", "she", "saw", "him", "?", "and", '"', "red", ",", "Who", "it's", "No"]
    odd = [" ".join(rng.choice(words) for _ in range(rng.randrange(1, 25))) for _ in range(60)]
    for parse in parser.parse(SENTENCES + odd):
        roots = [i for i, head in enumerate(parse.heads) if head == i]
        assert len(roots) == 1
        assert parse.deps[roots[0]] == "ROOT"
        for start in range(len(parse.heads)):
            at = start
            for _ in parse.heads:
                at = parse.heads[at]
            assert at == roots[0]


def test_the_batch_changes_nothing_on_real_texts(parser: Parser) -> None:
    reviews = Path(__file__).parents[3] / "shared" / "data" / "movie_reviews" / "imdb_sample.csv"
    if not reviews.exists():
        pytest.skip("../shared/data/movie_reviews is not here")
    import csv

    from auditor.text.split import sentences

    with reviews.open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)][:12]
    found = [text[a:b] for text in texts for a, b in sentences(text)]
    alone = Parser()
    assert [alone.parse([sentence])[0] for sentence in found] == parser.parse(found)


def test_offsets_point_into_the_sentence_given(parser: Parser) -> None:
    given = "  She\n saw<br />him  (twice)\u00a0today. \n"
    parse = parser.parse([given])[0]
    assert parse.words == ("She", "saw", "him", "(", "twice", ")", "today", ".")
    assert [given[a : a + len(w)] for a, w in zip(parse.starts, parse.words, strict=True)] == list(parse.words)


def test_unknown_names_offer_near_misses_and_the_next_command() -> None:
    with pytest.raises(UnknownPlugin, match=r"'embeded'.*embedded\?.*python -m spacy download"):
        Parser("embeded").parse(["a"])


def test_a_pipeline_without_a_parser_is_refused(tmp_path: Path) -> None:
    import spacy

    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(ConfigError, match="has no tagger"):
        Parser(str(tmp_path / "blank")).parse(["a"])
