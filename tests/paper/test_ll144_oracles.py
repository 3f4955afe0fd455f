"""The worked examples that 6 RCNY 5-301 prints, and the one of the UGESP questions and answers, to the digit.

The rule rounds with mixed digits; each printed figure is compared at its own. One printed rate (64.2 % for
18 of 28) is a truncation and is compared within 0.1 percentage points.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from auditor.contrib.ll144 import applicants, categories, draft
from auditor.measure.impact import Count, below_four_fifths, round_half_up, table

pytestmark = pytest.mark.paper

RACES = {
    "Hispanic": "Hispanic or Latino", "White": "White", "Black": "Black or African American",
    "NHPI": "Native Hawaiian or Pacific Islander", "Asian": "Asian", "Native": "Native American or Alaska Native",
    "Two": "Two or More Races",
}  # fmt: skip
# table, category (race, sex for the third), n, x, printed rate in percent, printed ratio
A = [
    ("sex", "Male", 1390, 667, "48", "1.00"), ("sex", "Female", 1181, 555, "47", "0.979"),
    ("race", "Hispanic", 408, 204, "50", "0.97"), ("race", "White", 797, 412, "52", "1.00"),
    ("race", "Black", 390, 170, "44", "0.84"), ("race", "NHPI", 119, 52, "44", "0.85"),
    ("race", "Asian", 616, 302, "49", "0.95"), ("race", "Native", 41, 18, "44", "0.85"),
    ("race", "Two", 213, 96, "45", "0.87"), ("both", "Hispanic Male", 205, 90, "43.9", "0.841"),
    ("both", "Hispanic Female", 190, 82, "43.2", "0.827"), ("both", "White Male", 412, 215, "52.2", "1.000"),
    ("both", "Black Male", 226, 95, "42.0", "0.806"), ("both", "NHPI Male", 87, 37, "42.5", "0.815"),
    ("both", "Asian Male", 321, 167, "52.0", "0.997"), ("both", "Native Male", 24, 11, "45.8", "0.878"),
    ("both", "Two Male", 115, 52, "45.2", "0.866"), ("both", "White Female", 385, 197, "51.2", "0.981"),
    ("both", "Black Female", 164, 75, "45.7", "0.876"), ("both", "NHPI Female", 32, 15, "46.9", "0.898"),
    ("both", "Asian Female", 295, 135, "45.8", "0.877"), ("both", "Native Female", 17, 7, "41.2", "0.789"),
    ("both", "Two Female", 98, 44, "44.9", "0.860"),
]  # fmt: skip
B = [
    ("sex", "Male", 92, 50, "54.3", "1.00"), ("sex", "Female", 76, 34, "44.7", "0.82"),
    ("race", "Hispanic", 28, 18, "64.2", "1.00"), ("race", "White", 40, 15, "37.5", "0.58"),
    ("race", "Black", 32, 16, "50.0", "0.78"), ("race", "NHPI", 8, 5, "62.5", "0.97"),
    ("race", "Asian", 24, 10, "41.7", "0.65"), ("race", "Native", 16, 10, "62.5", "0.97"),
    ("race", "Two", 20, 10, "50.0", "0.78"), ("both", "Hispanic Male", 16, 12, "75", "1.00"),
    ("both", "Hispanic Female", 12, 6, "50", "0.67"), ("both", "White Male", 20, 7, "35", "0.47"),
    ("both", "White Female", 20, 8, "40", "0.53"), ("both", "Black Male", 20, 10, "50", "0.67"),
    ("both", "Black Female", 12, 6, "50", "0.67"), ("both", "NHPI Male", 4, 3, "75", "1.00"),
    ("both", "NHPI Female", 4, 2, "50", "0.67"), ("both", "Asian Male", 12, 7, "58.3", "0.78"),
    ("both", "Asian Female", 12, 3, "25", "0.33"), ("both", "Native Male", 8, 5, "62.5", "0.83"),
    ("both", "Native Female", 8, 5, "62.5", "0.83"), ("both", "Two Male", 12, 6, "50", "0.67"),
    ("both", "Two Female", 8, 4, "50", "0.67"),
]  # fmt: skip
TABLES = {"sex": "sex", "race": "race_ethnicity", "both": "intersectional"}


def csv(rows: list[tuple[str, str, int, int, str, str]], column: str, unknown: str) -> str:
    lines = [f"sex,race,n,{column}"]
    for kind, name, n, x, *_ in rows:
        race, _, sex = (
            name if kind == "both" else f"{name if kind == 'race' else ''} {name if kind == 'sex' else ''}"
        ).partition(" ")
        lines.append(f"{sex.strip() or '*'},{RACES.get(race, '*')},{n},{x}")
    return "\n".join([*lines, unknown, ""])


def computed(path: Path, text: str) -> dict[str, Any]:
    path.write_text(text, encoding="utf-8")
    cells, mode, source = applicants.read_counts(path, categories.load())
    return draft.from_counts(cells, source, draft.Settings(source="the rule"), mode=mode)


def named(kind: str, name: str) -> str:
    if kind == "both":
        race, _, sex = name.partition(" ")
        return f"{RACES[race]} / {sex}"
    return RACES.get(name, name)


def compare(found: dict[str, Any], rows: list[tuple[str, str, int, int, str, str]]) -> None:
    for kind, name, n, x, rate, ratio in rows:
        row = next(r for r in found["ll144"]["tables"][TABLES[kind]] if r["category"] == named(kind, name))
        assert (row["n"], row["x"]) == (n, x)
        exact = Fraction(row["impact_ratio_exact"])
        assert round_half_up(exact, len(ratio) - 2) == ratio, (name, row)
        percent = Fraction(100 * x, n)
        if (name, rate) == ("Hispanic", "64.2"):
            assert abs(percent - Fraction(rate)) < Fraction(1, 10)
        else:
            assert round_half_up(percent, len(rate.partition(".")[2])) == rate, (name, row)


@pytest.fixture(scope="module")
def selection(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return computed(tmp_path_factory.mktemp("rule") / "a.csv", csv(A, "selected", ",,250,118"))


def test_selection_example(selection: dict[str, Any]) -> None:
    compare(selection, A)
    found = selection["ll144"]
    assert (found["unknown_count"], found["mode"]) == (250, "selection")
    facts = {name: (table["n"], table["x"]) for name, table in found["table_facts"].items()}
    assert facts == {"sex": (2571, 1222), "race_ethnicity": (2584, 1254), "intersectional": (2571, 1222)}
    (disagreement,) = [w for w in selection["warnings"] if "do not add up" in w]
    assert "Hispanic or Latino 204/408 against 172/395" in disagreement
    bound = next(b for b in found["unknown_bounds"] if b["table"] == "sex")
    assert (bound["category"], bound["low_text"], bound["high_text"]) == ("Female", "0.81", "1.18")


def test_selection_example_small_categories_and_significance(selection: dict[str, Any]) -> None:
    found = selection["ll144"]["tables"]
    small = [r["category"] for rows in found.values() for r in rows if r["below_two_percent"]]
    assert small == [
        "Native American or Alaska Native",
        "Native Hawaiian or Pacific Islander / Female",
        "Native American or Alaska Native / Male",
        "Native American or Alaska Native / Female",
    ]
    assert not any(r["excluded"] for rows in found.values() for r in rows)
    assert not any(r["below_four_fifths"] for rows in found.values() for r in rows)
    (flagged,) = [r for rows in found.values() for r in rows if r["impact_ratio"] < 0.8]
    assert flagged["category"] == "Native American or Alaska Native / Female"
    assert flagged["fisher_p"] == pytest.approx(0.46, abs=0.005)
    assert flagged["ir_ci95"] == pytest.approx([0.35, 1.50], abs=0.005)  # 0.41 to 1.24 if the best were known
    assert flagged["one_person_flip"] is True
    black = next(r for r in found["intersectional"] if r["category"] == "Black or African American / Male")
    assert black["z"] == pytest.approx(-2.45, abs=0.005)
    assert black["fisher_p"] == pytest.approx(0.016, abs=0.0005)
    assert black["fisher_p_holm"] == pytest.approx(0.21, abs=0.005)
    race = next(r for r in found["race_ethnicity"] if r["category"] == "Black or African American")
    assert race["fisher_p_holm"] == pytest.approx(0.057, abs=0.0005)


def test_scoring_example(tmp_path: Path) -> None:
    found = computed(tmp_path / "b.csv", csv(B, "above_median", ",,15,"))
    compare(found, B)
    block = found["ll144"]
    assert (block["mode"], block["unknown_count"], block["unknown_bounds"]) == ("scoring", 15, [])
    assert block["unknown_bounds_reason"] == "the outcomes of people of unknown category are not given"
    assert {(f["x"], f["n"]) for f in block["table_facts"].values()} == {(84, 168)}
    assert not any("add up" in w for w in found["warnings"])


def test_scoring_example_from_applicants(tmp_path: Path) -> None:
    """The same figures from 168 + 15 single applicants with scores around one median."""
    lines = ["sex,race,score"]
    for kind, name, n, x, *_ in B:
        if kind == "both":
            race, _, sex = name.partition(" ")
            lines += [f"{sex},{RACES[race]},{60 if i < x else 40}" for i in range(n)]
    lines += [f"Male,prefer not to say,{90}"] * 15
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    read, source = applicants.read_people(path, categories.load(), {name: name for name in ("sex", "race", "score")})
    found = draft.from_people(read, source, draft.Settings(source="made up"), mode="scoring")
    compare(found, B)
    block = found["ll144"]
    assert (block["median"], block["median_n"], block["overall_count"], block["tie_share"]) == (50, 168, "84/168", 0)
    assert block["unknown_count"] == 15
    # With the unknown people the median is another one: nobody is above it but they.
    settings = draft.Settings(source="made up", unknown_in_median=True)
    other = draft.from_people(read, source, settings, mode="scoring")["ll144"]
    assert (other["median"], other["median_n"], other["overall_count"]) == (60, 183, "15/183")


def test_questions_and_answers_example() -> None:
    """60, 45, 48 and 51 percent: below four-fifths for American Indians, not for Hispanics at exactly 80 %."""
    people = {"White": 60, "American Indian": 45, "Hispanic": 48, "Black": 51}
    counts = [Count(category=name, n=100, x=x) for name, x in people.items()]
    found = table(counts)
    assert [r.ratio for r in found.rows] == [1, Fraction(3, 4), Fraction(4, 5), Fraction(17, 20)]
    assert not any(r.below_four_fifths for r in found.rows)  # a hundred people each are too few to say so
    assert below_four_fifths(counts[1], counts[0])
    assert not below_four_fifths(counts[2], counts[0])
