"""Words on the screen say what was found, and nothing that was not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.cli.main import run

Capture = pytest.CaptureFixture[str]
COUNTS = """sex,race,n,selected
Male,White,200,90
Female,White,180,80
Male,Black,100,35
Female,Black,42,6
Male,Two or more,7,5
Female,Asian,90,40
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUDIT_CACHE", str(tmp_path / "cache.sqlite"))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    return tmp_path


def said(capsys: Capture, *argv: object) -> tuple[int, str]:
    """Exit code of a command, and what it prints, as one line."""
    code, out = lines(capsys, *argv)
    return code, " ".join(" ".join(out).split())


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
