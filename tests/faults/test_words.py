"""Words on the screen say what was found, and nothing that was not."""

from __future__ import annotations

import json
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, Patch, both, only, tells
from nursery import Server

pytestmark = pytest.mark.usefixtures("place")

COUNTS = """sex,race,n,selected
Male,White,200,90
Female,White,180,80
Male,Black,100,35
Female,Black,42,6
Male,Two or more,7,5
Female,Asian,90,40
"""
RACES = ("White", "Black", "Asian", "Hispanic", "NHPI", "AIAN", "Two or more")


# -- Local Law 144 --------------------------------------------------------------------------------------


def ll144(capsys: Capture, counts: str, *parts: str, more: str = "") -> str:
    Path("counts.csv").write_text(counts, encoding="utf-8")
    return tells(capsys, f"ll144 --counts counts.csv {more}", *parts)


def test_ll144_begins_with_people_and_prints_its_tables(capsys: Capture) -> None:
    first = (
        "6 of 42 Black women (14 %) were selected, about a fifth of the rate of the best-placed group, which is very"
    )
    text = ll144(capsys, COUNTS, first)
    for other in ("126 of 312 women (40 %)", "Best placed: men of two or more races, 5 of 7 (71 %)"):
        assert text.index(first) < text.index(other)
    assert text.index(first) < text.index("not a bias audit under Local Law 144")
    for row in ("Male 42.3 % (130/307) 1.000", "White 44.7 % (170/380) 0.626", "Asian / Female 44.4 % (40/90) 0.622"):
        assert row in text  # the rate next to the ratio, in every table


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ("F,*,400,60\nM,*,400,200", "0.300, 95 % interval 0.23 to 0.39: below four-fifths."),
        ("F,*,10,3\nM,*,10,6", "too few people to tell on which side of 0.80 it lies"),
        ("F,*,4000,1990\nM,*,4000,2000", "four-fifths or more"),
    ],
)
def test_ll144_says_on_which_side_of_four_fifths_the_interval_lies(counts: str, words: str, capsys: Capture) -> None:
    text = ll144(capsys, f"sex,race,n,selected\n{counts}\n", words)
    assert ("below four-fifths" in text or "below 4/5" in text) == ("below" in words)


def test_ll144_marks_a_category_where_the_printed_upper_limit_is_below_four_fifths(capsys: Capture) -> None:
    """From far below four-fifths to even: mark and limit agree in every format, also at the border."""
    for low in range(0, 46, 3):
        body = "".join(f"*,{race},150,{low if race == 'Black' else 60}\n" for race in RACES)
        text = ll144(capsys, "sex,race,n,selected\n" + body, more="--format json")
        rows = json.loads(text)["ll144"]["tables"]["race_ethnicity"]
        row = next(r for r in rows if r["category"].startswith("Black"))
        assert row["below_four_fifths"] == (row["ir_ci95"][1] < 0.8)
        screen = ll144(capsys, "sex,race,n,selected\n" + body)
        assert ("▲ below 4/5" in screen) == row["below_four_fifths"]


def test_ll144_marks_few_tables_of_equal_rates(capsys: Capture) -> None:
    """Twenty tables in which every true rate is 30 %; an earlier version marked six of them."""
    import numpy as np

    rng = np.random.default_rng(3)
    marked = 0
    for _ in range(20):
        cells = "".join(f"{s},{r},214,{rng.binomial(214, 0.3)}\n" for r in RACES for s in "MF")
        marked += "▲" in ll144(capsys, "sex,race,n,selected\n" + cells)
    assert marked <= 1


# -- legal pages ----------------------------------------------------------------------------------------


def page(capsys: Capture, format: str) -> str:
    """A legal page of the one run, as Markdown."""
    tells(capsys, f"report runs/latest --format {format}-md")
    return only(f"runs/*/report.{format}.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_legal_page_begins_with_the_finding_and_tells_apart_what_was_and_was_not_tested(capsys: Capture) -> None:
    tells(capsys, "run --task sentiment --model vader --limit 40 --out runs")
    text = page(capsys, "eu-ai-act")
    title, first, *_ = [line for line in text.splitlines() if line.startswith("#")]
    assert (title, first) == ("# Bias test report, mapped to the EU AI Act", "## Finding")
    assert text.index("No difference between groups was shown") < text.index("draft, unsigned")
    other = next(line for line in text.splitlines() if "Attributes other than" in line)
    tested = re.split(r", | and ", other.partition("other than ")[2].partition(", other groups")[0])
    untested = re.split(r", | and ", next(line for line in text.splitlines() if "Grounds that were not tested" in line))
    assert "gender" in tested
    assert "age" in [name.strip(" .") for name in untested]  # two texts name one
    assert "age" not in tested


def test_the_page_of_local_law_144_begins_with_the_people(capsys: Capture) -> None:
    ll144(capsys, COUNTS, more="--out runs")
    text = page(capsys, "ll144")
    found = text.index("6 of 42 Black women (14 %) were selected")
    assert found < text.index("not a bias audit under Local Law 144")
    assert found < text.index("## Status")
    assert text[:found].count("\n") < 8


# -- the first screen -----------------------------------------------------------------------------------


def reviews(n: int = 60) -> None:
    """A table of distinct reviews about men."""
    nouns, words = ("film", "story", "play", "series", "novel", "show"), ("good", "bad", "dull", "fine", "warm", "slow")
    made = [f"The man in this {noun} was {a}, and his voice was {b}." for noun in nouns for a in words for b in words]
    Path("texts.csv").write_text("\n".join(["text", *(f'"{text}"' for text in made[:n])]) + "\n", encoding="utf-8")


@pytest.mark.e2e
@pytest.mark.slow
def test_shares_of_refusals_do_not_stand_under_a_label(capsys: Capture) -> None:
    """Women are refused; the share of refusals is no share of "positive"."""
    women = re.compile(r"\b(she|her|hers|herself|woman|women|girl|lady|female)\b", re.IGNORECASE)

    def reply(model: str, text: str) -> str:
        number = zlib.crc32(text.encode())
        refuses = number % 20 if women.search(text) else not number % 5
        return "I'm sorry, but I can't help with that." if refuses else ("positive", "negative")[number % 2]

    reviews()
    with Server(reply, delay_s=0) as server:
        options = f"--full-plan --model openai:one --base-url {server.url} --max-calls 4000 --no-cache"
        code, out, err = both(capsys, f"run --task sentiment --data texts.csv --attributes gender {options}")
    screen = (out + err).splitlines()
    assert code == 0, screen
    at = next(i for i, line in enumerate(screen) if "gender (refused)" in line)
    title = next(line for line in screen if "net difference" in line)
    assert "“positive”" not in title, screen
    assert re.search(r"male \d+ % · female \d+ %", screen[at] + screen[at + 1])


def test_groups_that_are_numbers_are_named_with_their_column(capsys: Capture) -> None:
    rows = [f"q{i},{age},{50 + i % 7 - 9 * (age == 3)}" for i in range(40) for age in (3, 5)]
    Path("a.csv").write_text("\n".join(["question,age,score", *rows]) + "\n", encoding="utf-8")
    tells(capsys, "import a.csv", "Texts with age 3 were given 9.00 points less than texts with age 5")


@pytest.mark.parametrize("argv", ["--dry-run", "--limit 1"])
def test_one_text_is_no_texts(argv: str, capsys: Capture) -> None:
    reviews(1)
    text = tells(capsys, f"run --task sentiment --data texts.csv --model vader {argv}", "1 text")
    assert not re.search(r"\b1 (texts|calls|answers|cases|variants|prompts)\b", text)


@pytest.fixture
def module(place: Path, monkeypatch: Patch) -> Callable[[str], object]:
    """Write a module of models, of which each test has its own."""
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, "models_of_a_test", raising=False)
    return (place / "models_of_a_test.py").write_text


def test_an_attribute_whose_answers_could_not_be_read_is_not_short_of_texts(module: Any, capsys: Capture) -> None:
    module("def vague(text):\n    return 'it depends'\n")
    argv = "run --task sentiment --model python:models_of_a_test:vague --attributes gender"
    tells(capsys, argv, "NOT TESTED gender (no answer could be read)", code=3)


# -- other commands -------------------------------------------------------------------------------------


def test_doctor_does_not_call_a_model_fit_of_which_some_answers_were_not_read(module: Any, capsys: Capture) -> None:
    often = "seen.append(text)\n    return 'positive' if len(seen) < 4 else 'maybe so'\n"
    module(f"seen = []\ndef often(text):\n    {often}")
    argv = "doctor --model python:models_of_a_test:often"
    assert "can be audited" not in tells(capsys, argv, "3 of 10 answers could be read", code=3)


@pytest.mark.parametrize("command", ["ll144", "run", "tabular"])
def test_a_file_without_an_option_is_offered_one(command: str, capsys: Capture) -> None:
    tells(capsys, f"{command} outcomes.csv", "--data outcomes.csv", code=2)


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 130])
def test_a_pipe_is_as_wide_as_columns_says(width: int, capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    Path("counts.csv").write_text(COUNTS, encoding="utf-8")
    plan = "run --task sentiment --model vader --limit 20 --attributes gender"
    longest = []
    for argv in (plan, f"{plan} --dry-run", "doctor --model vader", "ll144 --counts counts.csv"):
        code, out, _ = both(capsys, argv)
        assert code == 0
        longest.append(max(len(line) for line in out.splitlines() if "audit " not in line))
    assert width - 20 < max(longest) <= width


def test_rows_of_which_none_was_read_did_not_get_a_label(module: Any, capsys: Capture) -> None:
    module("def vague(text):\n    return 'it depends'\n")
    argv = "tabular --task lending --model python:models_of_a_test:vague --protected sex --out runs"
    text = tells(capsys, argv, code=3)
    assert "Every row got a label" not in text
    assert f"audit resume {only('runs/2*')}" in text
    assert "max-calls N" not in text
