"""Words on the screen say what was found, and nothing that was not."""

from __future__ import annotations

import json
import re
import sys
import zlib
from pathlib import Path

import pytest
from commands import Capture, Patch, said
from nursery import Server

from auditor.cli.main import run

pytestmark = pytest.mark.usefixtures("place")

COUNTS = """sex,race,n,selected
Male,White,200,90
Female,White,180,80
Male,Black,100,35
Female,Black,42,6
Male,Two or more,7,5
Female,Asian,90,40
"""


def lines(capsys: Capture, *argv: object) -> tuple[int, list[str]]:
    """Exit code of a command, and the lines that it prints."""
    capsys.readouterr()
    code = run(list(map(str, argv)))
    captured = capsys.readouterr()
    return code, (captured.out + captured.err).splitlines()


# -- Local Law 144 --------------------------------------------------------------------------------------


def ll144(capsys: Capture, counts: str, *argv: str) -> tuple[int, str]:
    Path("counts.csv").write_text(counts, encoding="utf-8")
    return said(capsys, "ll144", "--counts", "counts.csv", *argv)


def test_ll144_begins_with_people_and_prints_its_tables(capsys: Capture) -> None:
    code, text = ll144(capsys, COUNTS)
    assert code == 0
    first = (
        "6 of 42 Black women (14 %) were selected, about a fifth of the rate of the best-placed group, which is very"
    )
    assert first in text
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
def test_ll144_says_on_which_side_of_four_fifths_the_whole_interval_lies(
    counts: str, words: str, capsys: Capture
) -> None:
    code, text = ll144(capsys, f"sex,race,n,selected\n{counts}\n")
    assert code == 0
    assert words in text
    assert ("below four-fifths" in text or "below 4/5" in text) == ("below" in words)


def test_ll144_marks_a_category_where_the_printed_upper_limit_is_below_four_fifths(capsys: Capture) -> None:
    """From far below four-fifths to even: mark and limit agree in every format, also at the border."""
    races = ("White", "Black", "Asian", "Hispanic", "NHPI", "AIAN", "Two or more")
    for low in range(0, 46, 3):
        body = "".join(f"*,{race},150,{low if race == 'Black' else 60}\n" for race in races)
        code, text = ll144(capsys, "sex,race,n,selected\n" + body, "--format", "json")
        assert code == 0
        rows = json.loads(text)["ll144"]["tables"]["race_ethnicity"]
        row = next(r for r in rows if r["category"].startswith("Black"))
        assert row["below_four_fifths"] == (row["ir_ci95"][1] < 0.8)
        _, screen = ll144(capsys, "sex,race,n,selected\n" + body)
        assert ("▲ below 4/5" in screen) == row["below_four_fifths"]


def test_ll144_marks_few_tables_of_equal_rates(capsys: Capture) -> None:
    """Twenty tables in which every true rate is 30 %; an earlier version marked six of them."""
    import numpy as np

    rng = np.random.default_rng(3)
    races = ("White", "Black", "Asian", "Hispanic", "NHPI", "AIAN", "Two or more")
    marked = 0
    for _ in range(20):
        cells = "".join(f"{s},{r},214,{rng.binomial(214, 0.3)}\n" for r in races for s in "MF")
        marked += "▲" in ll144(capsys, "sex,race,n,selected\n" + cells)[1]
    assert marked <= 1


# -- legal pages ----------------------------------------------------------------------------------------


def latest(folder: str = "runs") -> Path:
    """The newest run folder."""
    return max((p.parent for p in Path(folder).glob("*/plan.json")), key=lambda p: (p / "plan.json").stat().st_mtime_ns)


def page(capsys: Capture, format: str) -> str:
    """A legal page of the newest run, as Markdown."""
    code, _ = said(capsys, "report", latest(), "--format", f"{format}-md")
    assert code == 0
    return (latest() / f"report.{format}.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_legal_page_begins_with_the_finding_and_says_of_no_attribute_that_it_was_and_was_not_tested(
    capsys: Capture,
) -> None:
    assert run(["run", "--task", "sentiment", "--model", "vader", "--limit", "40", "--out", "runs"]) == 0
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
    assert ll144(capsys, COUNTS, "--out", "runs")[0] == 0
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
        options = [
            "--full-plan", "--model", "openai:one", "--base-url", server.url, "--max-calls", "4000", "--no-cache",
        ]  # fmt: skip
        code, screen = lines(
            capsys, "run", "--task", "sentiment", "--data", "texts.csv", "--attributes", "gender", *options
        )
    assert code == 0, screen
    at = next(i for i, line in enumerate(screen) if "gender (refused)" in line)
    title = next(line for line in screen if "net difference" in line)
    assert "“positive”" not in title, screen
    assert re.search(r"male \d+ % · female \d+ %", screen[at] + screen[at + 1])


def test_groups_that_are_numbers_are_named_with_their_column(capsys: Capture) -> None:
    rows = [f"q{i},{age},{50 + i % 7 - 9 * (age == 3)}" for i in range(40) for age in (3, 5)]
    Path("a.csv").write_text("\n".join(["question,age,score", *rows]) + "\n", encoding="utf-8")
    code, text = said(capsys, "import", "a.csv")
    assert code == 0
    assert "Texts with age 3 were given 9.00 points less than texts with age 5" in text


@pytest.mark.parametrize("argv", ["--dry-run", "--limit 1"])
def test_one_text_is_no_texts(argv: str, capsys: Capture) -> None:
    reviews(1)
    code, text = said(capsys, "run", "--task", "sentiment", "--data", "texts.csv", "--model", "vader", *argv.split())
    assert code == 0
    assert "1 text" in text
    assert not re.search(r"\b1 (texts|calls|answers|cases|variants|prompts)\b", text)


def functions(monkeypatch: Patch, place: Path, body: str) -> None:
    """A module of models, of which each test has its own."""
    (place / "models_of_a_test.py").write_text(body, encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, "models_of_a_test", raising=False)


def test_an_attribute_whose_answers_could_not_be_read_is_not_short_of_texts(
    place: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    functions(monkeypatch, place, "def vague(text):\n    return 'it depends'\n")
    code, text = said(
        capsys, "run", "--task", "sentiment", "--model", "python:models_of_a_test:vague", "--attributes", "gender"
    )
    assert code == 3
    assert "NOT TESTED gender (no answer could be read)" in text


# -- other commands -------------------------------------------------------------------------------------


def test_doctor_does_not_call_a_model_fit_of_which_some_answers_were_not_read(
    place: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    body = (
        "seen = []\ndef often(text):\n    seen.append(text)\n    return 'positive' if len(seen) < 4 else 'maybe so'\n"
    )
    functions(monkeypatch, place, body)
    code, text = said(capsys, "doctor", "--model", "python:models_of_a_test:often")
    assert code == 3
    assert "3 of 10 answers could be read" in text
    assert "can be audited" not in text


@pytest.mark.parametrize("command", ["ll144", "run", "tabular"])
def test_a_file_without_an_option_is_offered_one(command: str, capsys: Capture) -> None:
    code, text = said(capsys, command, "outcomes.csv")
    assert code == 2
    assert "--data outcomes.csv" in text


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 130])
def test_a_pipe_is_as_wide_as_columns_says(width: int, capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    Path("counts.csv").write_text(COUNTS, encoding="utf-8")
    plan = ("run", "--task", "sentiment", "--model", "vader", "--limit", "20", "--attributes", "gender")
    longest = []
    for argv in (plan, (*plan, "--dry-run"), ("doctor", "--model", "vader"), ("ll144", "--counts", "counts.csv")):
        capsys.readouterr()
        assert run(list(argv)) == 0
        printed = [line for line in capsys.readouterr().out.splitlines() if "audit " not in line]
        longest.append(max(map(len, printed)))
    assert max(longest) <= width
    assert max(longest) > width - 20


def test_rows_of_which_none_was_read_did_not_get_a_label(place: Path, capsys: Capture, monkeypatch: Patch) -> None:
    functions(monkeypatch, place, "def vague(text):\n    return 'it depends'\n")
    model = "python:models_of_a_test:vague"
    code, text = said(capsys, "tabular", "--task", "lending", "--model", model, "--protected", "sex", "--out", "runs")
    assert code == 3
    assert "Every row got a label" not in text
    assert f"audit resume runs/{latest().name}" in text
    assert "max-calls N" not in text
