"""``audit ll144`` through its command line."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import run_schema
from commands import Capture, both

from auditor.contrib.ll144 import categories
from auditor.core.record import read
from auditor.report import outcome_report, terminal
from auditor.report.terminal import Page

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
    return json.loads(out)  # type: ignore[no-any-return]


def rows(found: dict[str, Any], table: str = "sex") -> dict[str, tuple[int, int]]:
    return {r["category"]: (r["x"], r["n"]) for r in found["ll144"]["tables"][table] if r["n"]}


def test_selection(capsys: Capture, people: Path) -> None:
    found = computed(capsys, "--data", people, *BASE, "--selected", "ok")
    assert rows(found) == {"Male": (2, 3), "Female": (2, 3)}
    assert rows(found, "race_ethnicity") == {"White": (2, 2), "Black or African American": (1, 2), "Asian": (1, 2)}
    assert len(found["ll144"]["tables"]["intersectional"]) == 14
    assert [found["ll144"][f"unknown_{what}"] for what in ("count", "sex", "race_ethnicity")] == [3, 1, 2]
    assert found["data"]["without_outcome"] == 1
    told = [(one["column"], one["value"], one["n"]) for one in found["data"]["unmapped"]]
    assert told == [("race", "Martian", 1), ("sex", "X", 1)]
    assert re.fullmatch("[0-9a-f]{64}", found["data"]["sha256"])
    for words in ("'Martian'", "--source"):
        assert any(words in warning for warning in found["warnings"])
    partly = computed(capsys, "--data", people, *BASE, "--selected", "ok", "--partly-known")
    assert rows(partly) == {"Male": (3, 4), "Female": (2, 4)}
    assert partly["ll144"]["unknown_count"] == 3
    assert any("add up" in warning for warning in partly["warnings"])


def test_scores_have_one_median(capsys: Capture, people: Path) -> None:
    block = computed(capsys, "--data", people, *BASE, "--score", "score", "--group", "team")["ll144"]
    # known: 70 50 90 50 30 80 -> 60
    assert (block["median"], block["overall_count"], block["median_population"]) == (60, "3/6", "known")
    assert [(g["group"], g["tables"]["sex"][1]["x"]) for g in block["groups"]] == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("selected", "teams"),
    [
        (("--selected", "ok"), {"a": {"Male": (0, 1), "Female": (1, 2)}, "b": {"Male": (2, 2), "Female": (1, 1)}}),
        # classification alone counts who is put into a group
        ((), {"a": {"Male": (2, 4), "Female": (2, 3)}, "b": {"Male": (2, 4), "Female": (1, 3)}}),
    ],
)
def test_groups_have_tables_of_their_own(
    capsys: Capture, people: Path, selected: tuple[str, ...], teams: dict[str, Any]
) -> None:
    block = computed(capsys, "--data", people, *BASE, *selected, "--group", "team")["ll144"]
    assert {g["group"]: {r["category"]: (r["x"], r["n"]) for r in g["tables"]["sex"]} for g in block["groups"]} == teams
    assert (block["tables"] is None) is (not selected)
    assert block["unknown_count"] == 3


HEAD = "sex,race,n,selected\n"


def test_exclusion_is_a_recorded_decision(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(f"{HEAD}M,White,300,150\nF,Asian,200,80\nF,NHPI,4,4\n", encoding="utf-8")
    option = "Native Hawaiian or Pacific Islander=four people"
    found = computed(capsys, "--counts", path, "--exclude-below-2-percent", option)
    table = {r["category"]: r for r in found["ll144"]["tables"]["race_ethnicity"]}
    left = table["Native Hawaiian or Pacific Islander"]
    assert (left["excluded"], left["justification"], left["n"], left["rate"]) == (True, "four people", 4, 1.0)
    assert left["impact_ratio"] is None
    assert (table["White"]["impact_ratio"], table["White"]["ratio_to_excluded_text"]) == (1.0, "0.500")
    assert found["ll144"]["table_facts"]["race_ethnicity"]["excluded_reference"] == left["category"]
    _, text, _ = run(capsys, "--counts", path, "--exclude-below-2-percent", option, "--full")
    assert "has a higher rate than White and was left out" in " ".join(text.split())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "needs --selected COLUMN or --score COLUMN"), (("--selected", "ok", "--score", "score"), "give one of them"),
        (("--selected", "okay"), "--selected 'okay': no such column. Did you mean 'ok'"),
        (("--selected", "score"), "line 2, column score: '70' is neither yes nor no"),
        (("--score", "race"), "line 2, column race: 'White' is not a score"),
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
    ("option", "content", "message"),
    [
        ("--data", b"", "the file is empty"),
        ("--data", b"sex,race,ok\nF,Caf\xe9,1\n", "line 2: byte 17 is not UTF-8 (0xe9, byte 6 of the line)"),
        ("--data", b"sex,race,ok\nF,White\n", "line 2: 2 fields where the header has 3"),
        (
            "--data",
            b'sex,race,ok\nF,"White,1\n',
            "line 2: a quotation mark in the record that begins here is never closed",
        ),
        ("--data", b"sex,race,ok\nF,Elf,1\n", "no person has both a known sex and a known race/ethnicity"),
        ("--data", b"sex,race,ok\nF,White,\n", "nobody in the data has an outcome"),
        ("--counts", HEAD + "M,White,5,6\n", "selected is 6, more than n = 5"),
        ("--counts", HEAD + "M,White,five,1\n", "'five' is not a whole number"),
        ("--counts", HEAD + "M,White,5,\n", "only unknown cells may lack it"),
        ("--counts", HEAD + "*,*,5,1\n", "is not a category"),
        ("--map", "races: {}", "unknown field `races`"),
        ("--map", "sex: {Men: [m]}", "unknown category 'Men'"),
        ("--map", "sex: {Male: [m], Female: [m]}", "is under 'Male' and under 'Female'"),
        ("--map", "sex: {Male: m}", "Expected `array`, got `str` - at `$.sex[...]`"),
        ("--map", "unknown: [no]", "quotation marks"),
        ("--map", "- a", "A map has the fields sex"),
        ("--map", "a: [", "not valid YAML"),
    ],
)
def test_files_that_cannot_be_used(
    capsys: Capture, people: Path, option: str, content: str | bytes, message: str
) -> None:
    path = people.with_name("given")
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    beside = {"--counts": (), "--data": (*BASE, "--selected", "ok")}
    code, out, err = run(capsys, option, path, *beside.get(option, ("--data", people, *beside["--data"])))
    assert (code, out) == (2, "")
    assert message in err


def test_page_loads_nothing_and_escapes(capsys: Capture, tmp_path: Path) -> None:
    path, out = tmp_path / "people.csv", tmp_path / "page.html"
    path.write_text("sex,race,ok,g\nF,<script>alert(1)</script>,1,<b>\nF,White,1,<b>\nM,White,0,<b>\n")
    assert run(capsys, "--data", path, *BASE, "--selected", "ok", "--group", "g", "--out", out)[0] == 0
    page = out.read_text(encoding="utf-8")
    assert not re.search(r'<script|url\(|(src|href)="(?!#)', page)
    for told in ("&lt;script&gt;", "&lt;b&gt;", "default-src 'none'"):
        assert told in page
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


def test_no_number_of_a_table_breaks_in_its_digits(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    path.write_text(f"{HEAD}M,White,13900,6670\nF,NHPI,11810,5550\n*,Asian,1,1\n", encoding="utf-8")
    found = computed(capsys, "--counts", path)
    numbers = {"-"}
    for row in itertools.chain(*found["ll144"]["tables"].values()):
        numbers |= {f"{row['n']:,}", f"{row['x']:,}", row["impact_ratio_text"] or "-"}
        numbers |= {outcome_report.limit(limit) for limit in row["ir_ci95"] or ()}
    for width in (40, 60, 80, 100):
        page = Page(width=width, encoding="ascii", color=False)
        text = terminal.write(page, outcome_report.build(read(found)))
        assert numbers <= {"-"} | {part for word in text.split() for part in re.split(r"[/()-]", word)}


BEFORE = HEAD + "Male,White,100,50\nFemale,White,90,36\nMale,Asian,40,20\nFemale,Asian,30,15\n"
AFTER = HEAD + "Male,White,100,50\nFemale,White,90,18\nMale,Asian,40,20\nFemale,Asian,30,15\n"


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
    def verify(expected: int, *told: str) -> None:
        code, out, _ = call(capsys, "verify", folder)
        assert code == expected
        assert [words for words in told if words not in out] == []
        assert "every line" not in out

    nothing = "nothing to check: cases.jsonl, prompts.jsonl, responses.jsonl, verdicts.jsonl."
    known = "run.json: the SHA-256 is that in runs.jsonl."
    verify(0, "before.csv is the file of outcomes that was read.\n", nothing, known)
    register = Path("runs/runs.jsonl").rename("register")
    verify(0, "run.json: not checked: nothing names its SHA-256", "plan.json: the SHA-256 is that in run.json.")
    register.rename("runs/runs.jsonl")
    Path("before.csv").write_text(AFTER)
    verify(0, "before.csv is NOT the file")
    Path("before.csv").unlink()
    verify(0, "is missing here")
    for file, old, new in (("run.json", '"x": 50', '"x": 60'), ("plan.json", "Tool 3", "Tool 4")):
        text = (folder / file).read_text("utf-8")
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")
        verify(1, file)
        (folder / file).write_text(text, encoding="utf-8")


def test_every_format_that_makes_sense_and_no_command_that_needs_a_model(folder: Path, capsys: Capture) -> None:
    formats = ("html", "json", "csv", "ll144", "eu-ai-act", "nist-ai-rmf", "ai-verify")
    code, out, err = call(capsys, "report", folder, "--format", ",".join(formats))
    assert code == 0, err
    assert len(out.splitlines()) == len(formats)
    for line in out.splitlines():
        assert Path(line).stat().st_size > 500
    assert folder.name in (folder / "report.ll144.html").read_text("utf-8")
    code, out, _ = call(capsys, "report", folder)
    assert (code, out.splitlines()[0]) == (0, "Rates and impact ratios by category")
    _, out, _ = call(capsys, "report", folder, "--format", "csv", "--out", "-")
    rows = list(csv.DictReader(io.StringIO(out)))
    female = next(r for r in rows if (r["table"], r["category"]) == ("sex", "Female"))
    assert (int(female["n"]), int(female["x"]), female["impact_ratio_exact"]) == (120, 51, "17/20")
    assert float(female["rate"]) == 51 / 120
    assert len(rows) == 2 + 7 + 14
    for name, *words in (("show", "F1"), ("show", "F1", "--again"), ("resume",), ("augment", "--out", "x")):
        code, _, err = call(capsys, name, folder, *words)
        assert code == 2, name
        assert "no model was asked anything" in err, name
    code, _, err = call(capsys, "compare", folder, make(capsys, "after.csv"))
    assert code == 2
    assert "audit compare is for runs of a model" in err


def test_outcomes_of_people_beside_a_run_over_rows(folder: Path, capsys: Capture) -> None:
    rows = [f"{'fm'[i % 2]},{20 + i % 40},{('good', 'bad')[i % 2]}" for i in range(120)]
    Path("rows.csv").write_text("\n".join(["sex,age,credit", *rows, ""]))
    Path("by_sex.py").write_text("def decide(rows):\n    return ['good' if r[0] == 'f' else 'bad' for r in rows]\n")
    asked = "tabular --data rows.csv --target credit --protected sex --model python:by_sex:decide --yes --out rows"
    assert call(capsys, asked)[0] == 0
    (record,) = Path("rows").glob("*/run.json")
    assert call(capsys, f"ll144 --counts before.csv --source x --out {record.with_name('ll144.json')}")[0] == 0
    for name in ("ll144", "eu-ai-act"):
        code, _, err = call(capsys, "report", record.parent, "--format", name)
        assert code == 0, err
        assert "Female" in record.with_name(f"report.{name}.html").read_text(encoding="utf-8")


def test_dates_and_test_data_go_into_the_draft(capsys: Capture, people: Path) -> None:
    _, text, _ = run(
        capsys, "--data", people, *BASE, "--selected", "ok", "--audit-date", "2026-10-01", "--data-kind", "test",
        "--test-data-reason", "new tool", "--test-data-generation", "volunteers", "--source", "tool 3",
        "--format", "json",
    )  # fmt: skip
    told = {
        "Date of the bias audit": "2026-10-01", "Distribution date": None,
        "Why no historical data were used": "new tool", "Source and explanation of the data": "tool 3",
    }  # fmt: skip
    fields = {e.label: e.value for e in outcome_report.items(read(json.loads(text)))}
    assert {name: fields[name] for name in told} == told
