"""``audit ll144`` through its command line."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import run_schema
from commands import Capture, both

from auditor.cli import main
from auditor.contrib.ll144 import categories
from auditor.core.errors import DataFileError
from auditor.core.record import read
from auditor.report import outcome_report, terminal
from auditor.report.page import Page

PEOPLE = """id;sex;race;ok;score;team
1;F;White;yes;70;a
2;F;Asian;no;50;a
3;M;White;yes;90;b
4;M;Asian;yes;50;b
5;M;Black;no;30;a
6;f;Black or African American;1;80;b
7;X;White;no;20;a
8;M;;yes;95;b
9;F;Martian;no;10;a
10;M;White;;;a
"""
BASE = ("--sex", "sex", "--race", "race")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE, encoding="utf-8")
    return path


def call(capsys: Capture, *args: object) -> tuple[int, str, str]:
    """Exit code of a command, what it prints, and what it says beside that as one line."""
    code, out, err = both(capsys, *args)
    return code, out, " ".join(err.split())


def run(capsys: Capture, *args: object) -> tuple[int, str, str]:
    return call(capsys, "ll144", *args)


def computed(capsys: Capture, *args: object) -> dict[str, Any]:
    code, out, err = run(capsys, *args, "--format", "json")
    assert code == 0, err
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def rows(found: dict[str, Any], table: str = "sex") -> dict[str, tuple[int, int]]:
    return {r["category"]: (r["x"], r["n"]) for r in found["ll144"]["tables"][table] if r["n"]}


def test_selection(capsys: Capture, people: Path) -> None:
    found = computed(capsys, "--data", people, *BASE, "--selected", "ok")
    assert rows(found) == {"Male": (2, 3), "Female": (2, 3)}
    assert rows(found, "race_ethnicity") == {"White": (2, 2), "Black or African American": (1, 2), "Asian": (1, 2)}
    assert len(found["ll144"]["tables"]["intersectional"]) == 14
    block = found["ll144"]
    assert (block["unknown_count"], block["unknown_sex"], block["unknown_race_ethnicity"]) == (3, 1, 2)
    assert found["data"]["without_outcome"] == 1
    assert found["data"]["unmapped"] == [
        {"column": "race", "value": "Martian", "n": 1},
        {"column": "sex", "value": "X", "n": 1},
    ]
    assert any("'Martian'" in w for w in found["warnings"])
    assert re.fullmatch("[0-9a-f]{64}", found["data"]["sha256"])
    assert any("--source" in w for w in found["warnings"])


def test_partly_known(capsys: Capture, people: Path) -> None:
    found = computed(capsys, "--data", people, *BASE, "--selected", "ok", "--partly-known")
    assert rows(found) == {"Male": (3, 4), "Female": (2, 4)}
    assert found["ll144"]["unknown_count"] == 3
    assert any("add up" in w for w in found["warnings"])


def test_scores_have_one_median(capsys: Capture, people: Path) -> None:
    block = computed(capsys, "--data", people, *BASE, "--score", "score", "--group", "team")["ll144"]
    # known: 70 50 90 50 30 80 -> 60
    assert block["median"] == 60
    assert block["overall_count"] == "3/6"
    assert [(g["group"], g["tables"]["sex"][1]["x"]) for g in block["groups"]] == [("a", 1), ("b", 1)]
    assert block["median_population"] == "known"


def test_groups_of_a_selection_have_tables_of_their_own(capsys: Capture, people: Path) -> None:
    found = computed(capsys, "--data", people, *BASE, "--selected", "ok", "--group", "team")
    groups = {
        g["group"]: {r["category"]: (r["x"], r["n"]) for r in g["tables"]["sex"]} for g in found["ll144"]["groups"]
    }
    assert groups == {"a": {"Male": (0, 1), "Female": (1, 2)}, "b": {"Male": (2, 2), "Female": (1, 1)}}
    assert rows(found)


def test_classification_alone_counts_who_is_put_into_a_group(capsys: Capture, people: Path) -> None:
    found = computed(capsys, "--data", people, *BASE, "--group", "team")
    assert found["ll144"]["tables"] is None
    assert found["ll144"]["unknown_count"] == 3
    groups = {
        g["group"]: {r["category"]: (r["x"], r["n"]) for r in g["tables"]["sex"]} for g in found["ll144"]["groups"]
    }
    assert groups == {"a": {"Male": (2, 4), "Female": (2, 3)}, "b": {"Male": (2, 4), "Female": (1, 3)}}


def test_exclusion_is_a_recorded_decision(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("sex,race,n,selected\nM,White,300,150\nF,Asian,200,80\nF,NHPI,4,4\n", encoding="utf-8")
    option = "Native Hawaiian or Pacific Islander=four people"
    found = computed(capsys, "--counts", path, "--exclude-below-2-percent", option)
    table = {r["category"]: r for r in found["ll144"]["tables"]["race_ethnicity"]}
    left = table["Native Hawaiian or Pacific Islander"]
    assert (left["excluded"], left["justification"], left["n"], left["rate"]) == (True, "four people", 4, 1.0)
    assert left["impact_ratio"] is None
    assert table["White"]["impact_ratio"] == 1.0
    assert table["White"]["ratio_to_excluded_text"] == "0.500"
    facts = found["ll144"]["table_facts"]["race_ethnicity"]
    assert facts["excluded_reference"] == "Native Hawaiian or Pacific Islander"
    _, text, _ = run(capsys, "--counts", path, "--exclude-below-2-percent", option, "--full")
    assert "has a higher rate than White and was left out" in " ".join(text.split())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--selected", "okay"), "--selected 'okay': no such column. Did you mean 'ok'"),
        (("--selected", "score"), "line 2, column score: '70' is neither yes nor no"),
        (("--score", "race"), "line 2, column race: 'White' is not a score"),
        (("--selected", "ok", "--score", "score"), "give one of them"),
        ((), "needs --selected COLUMN or --score COLUMN"),
        (("--selected", "ok", "--data-kind", "test"), "test data need --test-data-reason"),
        (("--selected", "ok", "--data-kind", "test", "--test-data-reason", "none yet"),
         "test data need --test-data-generation"),
        (("--selected", "ok", "--data-kind", "real"), "historical or test"),
        (("--selected", "ok", "--audit-date", "1/2/2026"), "--audit-date must be a date"),
        (("--selected", "ok", "--exclude-below-2-percent", "Asian"), "CATEGORY=JUSTIFICATION"),
        (("--selected", "ok", "--exclude-below-2-percent", "Asian=few"), "is 33.33 % of the known records"),
        (("--selected", "ok", "--exclude-below-2-percent", "Elves=few"), "unknown category 'Elves'"),
        (("--selected", "ok", "--out", "x.pdf"), ".html or a .json"),
        (("--selected", "ok", "--map", "nowhere.yaml"), "nowhere.yaml: there is no such file"),
    ],
)  # fmt: skip
def test_mistakes_are_told(capsys: Capture, people: Path, args: tuple[str, ...], message: str) -> None:
    code, out, err = run(capsys, "--data", people, *BASE, *args)
    assert code == 2
    assert out == ""
    assert message in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"sex,race,ok\nF,Caf\xe9,1\n", "line 2: byte 17 is not UTF-8 (0xe9, byte 6 of the line)"),
        (b"sex,race,ok\nF,White\n", "line 2: 2 fields where the header has 3"),
        (b'sex,race,ok\nF,"White,1\n', "line 2: a quotation mark in the record that begins here is never closed"),
        (b"sex,race,ok\nF,Elf,1\n", "no person has both a known sex and a known race/ethnicity"),
        (b"sex,race,ok\nF,White,\n", "nobody in the data has an outcome"),
    ],
)
def test_files_that_cannot_be_used(capsys: Capture, tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    code, _, err = run(capsys, "--data", path, *BASE, "--selected", "ok")
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("M,White,5,6", "selected is 6, more than n = 5"),
        ("M,White,five,1", "'five' is not a whole number"),
        ("M,White,5,", "only unknown cells may lack it"),
        ("*,*,5,1", "is not a category"),
    ],
)
def test_bad_counts(capsys: Capture, tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(f"sex,race,n,selected\n{line}\n", encoding="utf-8")
    code, _, err = run(capsys, "--counts", path)
    assert code == 2
    assert message in err


def test_page_loads_nothing_and_escapes(capsys: Capture, tmp_path: Path) -> None:
    path, out = tmp_path / "people.csv", tmp_path / "page.html"
    path.write_text(
        "sex,race,ok,g\nF,<script>alert(1)</script>,1,<b>\nF,White,1,<b>\nM,White,0,<b>\n", encoding="utf-8"
    )
    code, _, _ = run(capsys, "--data", path, *BASE, "--selected", "ok", "--group", "g", "--out", out)
    assert code == 0
    page = out.read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "&lt;b&gt;" in page
    assert not re.search(r'(src|href)="(?!#)', page)
    assert "url(" not in page
    assert "default-src 'none'" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_own_map(capsys: Capture, people: Path) -> None:
    own = people.with_name("map.yaml")
    assert run(capsys, "--write-map", own)[0] == 0
    assert run(capsys, "--write-map", own)[0] == 2
    own.write_text("race_ethnicity:\n  Asian: [martian]\n", encoding="utf-8")
    found = computed(capsys, "--data", people, *BASE, "--selected", "ok", "--map", own)
    assert rows(found, "race_ethnicity")["Asian"] == (1, 3)
    assert not any("Martian" in w for w in found["warnings"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("races: {}", "unknown field `races`"),
        ("sex: {Men: [m]}", "unknown category 'Men'"),
        ("sex: {Male: [m], Female: [m]}", "is under 'Male' and under 'Female'"),
        ("sex: {Male: m}", "Expected `array`, got `str` - at `$.sex[...]`"),
        ("unknown: [no]", "quotation marks"),
        ("- a", "A map has the fields sex"),
        ("a: [", "not valid YAML"),
    ],
)
def test_bad_maps(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataFileError, match=re.escape(message)):
        categories.load(path)


@pytest.mark.parametrize(
    ("value", "category", "unmapped"),
    [
        ("  BLACK  or African-American ", "Black or African American", False),
        ("Hispanic/Latino", "Hispanic or Latino", False), ("White; Asian", "Two or More Races", False),
        ("White|white", "White", False), ("White, Latina", "Hispanic or Latino", False), ("White; Elf", None, True),
        ("Asian/Pacific Islander", None, True), ("prefer not to say", None, False), ("N/A", None, False),
        ("", None, False), ("other", None, True),
        ("Two or more races (Not Hispanic or Latino)", "Two or More Races", False),
    ],
)  # fmt: skip
def test_categories(value: str, category: str | None, unmapped: bool) -> None:
    found = categories.load().find_race(value)
    assert (found.category, found.unmapped) == (category, unmapped)


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_number_of_a_table_breaks_in_its_digits(capsys: Capture, tmp_path: Path, width: int) -> None:
    path = tmp_path / "counts.csv"
    path.write_text("sex,race,n,selected\nM,White,13900,6670\nF,NHPI,11810,5550\n*,Asian,1,1\n", encoding="utf-8")
    found = computed(capsys, "--counts", path)
    page = Page(width=width, encoding="ascii", color=False)
    text = terminal.write(page, outcome_report.build(read(found)))
    words = {part for word in text.split() for part in re.split(r"[/()-]", word)}
    for table in found["ll144"]["tables"].values():
        for row in table:
            assert {f"{row['n']:,}", f"{row['x']:,}"} <= words
            assert {outcome_report.limit(limit) for limit in row["ir_ci95"] or ()} <= words
            assert {row["impact_ratio_text"] or "n"} <= words | {"n"}


HEAD = "sex,race,n,selected\n"
BEFORE = HEAD + "Male,White,100,50\nFemale,White,90,36\nMale,Asian,40,20\nFemale,Asian,30,15\n"
AFTER = HEAD + "Male,White,100,50\nFemale,White,90,18\nMale,Asian,40,20\nFemale,Asian,30,15\n"
FORMATS = ("html", "json", "csv", "ll144", "eu-ai-act", "nist-ai-rmf", "ai-verify")


@pytest.fixture
def folder(place: Path, capsys: Capture) -> Path:
    Path("before.csv").write_text(BEFORE)
    Path("after.csv").write_text(AFTER)
    return make(capsys, "before.csv")


def make(capsys: Capture, file: str, *more: str) -> Path:
    known = set(Path("runs").glob("2*"))
    code, out, err = call(capsys, "ll144", "--counts", file, "--source", "Tool 3", "--out", "runs", *more)
    assert code == 0, err
    assert out.startswith("Rates and impact ratios")
    (made,) = set(Path("runs").glob("2*")) - known
    assert err.startswith(f"Report: {made}/report.html Head: ")
    return made


def test_the_record_is_of_the_family_of_all_runs(folder: Path) -> None:
    record = json.loads((folder / "run.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(run_schema.run_schema()).validate(record)
    assert (record["id"], record["status"], record["kind"]) == (folder.name, "complete", "ll144")
    told = record["provenance"]["outcomes"]
    assert told["sha256"] == hashlib.sha256(BEFORE.encode()).hexdigest() == record["data"]["sha256"]
    assert record["provenance"]["code"]["sha256"]
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    assert plan["plan"]["settings"]["source"] == "Tool 3" == record["spec"]["settings"]["source"]
    assert plan["inputs"]["outcomes"] == told
    assert (folder / "report.html").read_text("utf-8").startswith("<!doctype html>")


def test_verify_sees_what_was_changed(folder: Path, capsys: Capture) -> None:
    code, out, _ = call(capsys, "verify", folder)
    assert code == 0
    assert "before.csv is the file of outcomes that was read." in out.splitlines()
    assert "every line" not in out
    assert "nothing to check: cases.jsonl, prompts.jsonl, responses.jsonl, verdicts.jsonl." in out
    assert "run.json: the SHA-256 is that in runs.jsonl." in out
    register = Path("runs/runs.jsonl").read_bytes()
    Path("runs/runs.jsonl").unlink()
    out = call(capsys, "verify", folder)[1]
    assert "run.json: not checked: nothing names its SHA-256" in out
    assert "plan.json: the SHA-256 is that in run.json." in out
    Path("runs/runs.jsonl").write_bytes(register)
    Path("before.csv").write_text(AFTER)
    assert "before.csv is NOT the file" in call(capsys, "verify", folder)[1]
    Path("before.csv").unlink()
    assert "is missing here" in call(capsys, "verify", folder)[1]
    text = (folder / "run.json").read_text("utf-8")
    (folder / "run.json").write_text(text.replace('"x": 50', '"x": 60'), encoding="utf-8")
    code, out, _ = call(capsys, "verify", folder)
    assert code == 1
    assert "run.json" in out
    (folder / "run.json").write_text(text, encoding="utf-8")
    plan = (folder / "plan.json").read_text("utf-8")
    (folder / "plan.json").write_text(plan.replace("Tool 3", "Tool 4"), encoding="utf-8")
    assert call(capsys, "verify", folder)[0] == 1


def test_every_format_that_makes_sense(folder: Path, capsys: Capture) -> None:
    code, out, err = call(capsys, "report", folder, "--format", ",".join(FORMATS))
    assert code == 0, err
    assert len(out.splitlines()) == len(FORMATS)
    for line in out.splitlines():
        assert Path(line).stat().st_size > 500
    page = (folder / "report.ll144.html").read_text("utf-8")
    assert folder.name in page
    code, out, _ = call(capsys, "report", folder)
    assert (code, out.splitlines()[0]) == (0, "Rates and impact ratios by category")


@pytest.mark.parametrize(
    "words", [["show", "F1"], ["show", "F1", "--again"], ["resume"], ["augment", "--out", "x"]], ids=" ".join
)
def test_what_needs_a_model_is_refused(folder: Path, capsys: Capture, words: list[str]) -> None:
    code, _, err = call(capsys, words[0], folder, *words[1:])
    assert code == 2
    assert "no model was asked anything" in err


def test_tables_of_outcomes_are_not_compared(folder: Path, capsys: Capture) -> None:
    code, _, err = call(capsys, "compare", folder, make(capsys, "after.csv"))
    assert code == 2
    assert "audit compare is for runs of a model" in err


def test_outcomes_of_people_beside_a_run_over_rows(folder: Path, capsys: Capture) -> None:
    rows = [f"{'fm'[i % 2]},{20 + i % 40},{('good', 'bad')[i % 2]}" for i in range(120)]
    Path("rows.csv").write_text("\n".join(["sex,age,credit", *rows, ""]))
    Path("by_sex.py").write_text("def decide(rows):\n    return ['good' if r[0] == 'f' else 'bad' for r in rows]\n")
    people = [f"{('Female', 'Male')[i % 2]},{('White', 'Asian')[i % 3 % 2]},{i % 5 % 2}" for i in range(300)]
    Path("people.csv").write_text("\n".join(["sex,race,advanced", *people, ""]))
    assert (
        main.run(["tabular", "schema", "rows.csv", "--target", "credit", "--protected", "sex", "--out", "s.yaml"]) == 0
    )
    asked = ["--data", "rows.csv", "--schema", "s.yaml", "--model", "python:by_sex:decide", "--yes", "--out", "rows"]
    assert main.run(["tabular", *asked]) == 0
    path = next(p.parent for p in Path("rows").glob("*/run.json"))
    table = ["--data", "people.csv", "--sex", "sex", "--race", "race", "--selected", "advanced", "--source", "x"]
    assert main.run(["ll144", *table, "--out", str(path / "ll144.json")]) == 0
    capsys.readouterr()
    for name in ("ll144", "eu-ai-act"):
        assert main.run(["report", str(path), "--format", name]) == 0, capsys.readouterr().err
        assert "Female" in (path / f"report.{name}.html").read_text(encoding="utf-8")


def test_the_csv_holds_the_tables(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "report", folder, "--format", "csv", "--out", "-")
    rows = list(csv.DictReader(io.StringIO(out)))
    female = next(r for r in rows if (r["table"], r["category"]) == ("sex", "Female"))
    assert (int(female["n"]), int(female["x"]), female["impact_ratio_exact"]) == (120, 51, "17/20")
    assert float(female["rate"]) == 51 / 120
    assert len(rows) == 2 + 7 + 14


def test_dates_and_test_data_go_into_the_draft(capsys: pytest.CaptureFixture[str], people: Path) -> None:
    _, text, _ = run(
        capsys, "--data", people, *BASE, "--selected", "ok", "--audit-date", "2026-10-01", "--data-kind", "test",
        "--test-data-reason", "new tool", "--test-data-generation", "volunteers", "--source", "tool 3",
        "--format", "json",
    )  # fmt: skip
    fields = {e.label: e.value for e in outcome_report.items(read(json.loads(text)))}
    assert fields["Date of the bias audit"] == "2026-10-01"
    assert fields["Distribution date"] is None
    assert fields["Why no historical data were used"] == "new tool"
    assert fields["Source and explanation of the data"] == "tool 3"
