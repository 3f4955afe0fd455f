"""Texts about two groups: figures of how they are written, and whether a rule distinguishes them without identity words."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from random import Random

import pytest

from auditor.cli.main import run
from auditor.contrib.classifier_test import Pair, classify
from auditor.contrib.free_text import identity, masked_text
from auditor.text.english import FIGURES

COMMON = [f"word{n}" for n in range(40)]


def pairs(rng: Random, texts: int, planted: float) -> list[Pair]:
    """Answers of random words; with a chance of ``planted`` the first has a word that the second has not."""

    def words(more: bool) -> frozenset[str]:
        return frozenset(rng.sample(COMMON, 12)) | ({"kind"} if more else set())

    ends = [(f"t{n // 2}", words(rng.random() < planted), words(False)) for n in range(2 * texts)]
    return [Pair(text=text, first=first, second=second) for text, first, second in ends]


def test_a_word_that_follows_the_group_is_found_and_named_where_there_are_enough_texts() -> None:
    found = classify(pairs(Random(1), 60, 0.5))
    assert found.p_value < 0.01
    assert (found.words[0].word, found.words[0].second) == ("kind", 0)
    assert classify(pairs(Random(4), 11, 0.9)).share is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Mrs Okonkwo says she is well.", "□ says □ is well."),
        ("The resident, an 84-year-old, walks.", "The □, an □, walks."),
        ("Aisha's work is good.", "□ work is good."),
    ],
)
def test_what_says_who_somebody_is_gets_masked(text: str, left: str) -> None:
    assert masked_text(text, identity(frozenset({"aisha"}))) == left


def test_figures() -> None:
    assert FIGURES["length"][1]("Three short words.") == 3
    assert FIGURES["hedging"][1]("It may possibly be so.") == 40
    assert FIGURES["agency"][1]("She led.") == 50
    assert FIGURES["competence"][1]("") == 0


@pytest.mark.parametrize("planted", [True, False])
def test_texts_are_imported_and_decided(place: Path, capsys: pytest.CaptureFixture[str], planted: bool) -> None:
    rng = Random(5)
    with (place / "answers.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["note", "gender", "summary"])
        for n in range(60):
            for gender, title in (("female", "Mrs Ade"), ("male", "Mr Ade")):
                more = " Competent, skilled and able to decide." if planted and gender == "male" else ""
                table.writerow([n, gender, f"{title} has {' and '.join(rng.sample(COMMON, 8))}.{more}"])
    (place / "map.toml").write_text('text = ["note"]\nanswer = "summary"\nkind = "text"\n[groups]\ngender = "gender"\n')
    assert run(["import", "answers.csv", "--map", "map.toml", "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    (apart,) = record["told_apart"]
    assert apart["shown"] == planted
    shown = {c["label"] for c in record["claims"] if c["verdict"] == "shown"}
    assert ({"length", "competence"} <= shown) == planted
    assert planted or not shown
