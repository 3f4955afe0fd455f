"""The published figures of a study in which gpt-3.5-turbo ranked eight résumés that differ in the name only.

Published with the study: first places by race and sex in 1,000 rankings a job, selection rates, impact ratios.
"""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import pytest

from auditor.cli import main
from auditor.contrib.ll144 import draft, rankings
from auditor.contrib.ll144.rankings import RACE_CODES, SEX_CODES

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT.parent / "shared" / "data" / "hiring_recorded"
FILE = FOLDER / "gpt-3.5-turbo-0613_rankings.jsonl.gz"
pytestmark = [
    pytest.mark.paper,
    pytest.mark.skipif(not FILE.is_file(), reason="the recorded rankings are not in ../shared/data"),
]


def test_all_published_figures(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["ll144", "--rankings", str(FILE), "--leave-out", "/oversampled/", "--format", "json"])
    assert code == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "ranking"
    assert found["ll144"]["data_kind"] == "test"
    assert found["data"]["rankings"] == 3000
    assert found["data"]["left_out"] == 115
    with (FOLDER / "published_figures.csv").open(encoding="utf-8", newline="") as file:
        published = list(csv.DictReader(file))
    assert len(published) == 24
    groups = {g["group"]: g["tables"]["intersectional"] for g in found["ll144"]["groups"]}
    for line in published:
        race, sex = line["demo"].split("_")
        name = f"{RACE_CODES[race]} / {SEX_CODES[sex]}"
        row = next(r for r in groups[line["job"]] if r["category"] == name)
        assert (row["x"], row["n"]) == (int(line["top"]), 1000)
        assert row["rate"] == pytest.approx(float(line["selection_rate"]), abs=1e-12)
        assert row["impact_ratio"] == pytest.approx(float(line["disparate_impact_ratio"]), abs=1e-12)


def test_the_exhibit_of_the_museum_is_this_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = (ROOT / "examples" / "museum" / "rankings.sh").read_text(encoding="utf-8")
    command = shlex.split(line.replace("$DATA", str(FOLDER.parent)))
    assert command[0] == "audit"
    assert main.run(command[1:]) == 0
    told = capsys.readouterr().out
    for job, ratio in (("HR", "0.53"), ("retail", "0.74")):
        assert ratio in told, job


def test_every_group_was_shown_first_equally_often() -> None:
    file = rankings.read(FILE, leave_out="/oversampled/")
    for found in file.rankings.values():
        first = [r.groups[0] for r in found]
        assert {first.count(group) for group in set(first)} == {125}


def test_answers_that_misspell_a_name_are_counted() -> None:
    found = draft.from_rankings(rankings.read(FILE, leave_out="/oversampled/"), draft.Settings())
    assert found["data"]["unread"] == 0
    assert 20 <= found["data"]["unlisted"] <= 30
    assert any("misspelt" in w for w in found["warnings"])


def test_without_leaving_out_the_figures_are_others() -> None:
    file = rankings.read(FILE)
    assert {job: len(found) for (_, job), found in file.rankings.items()} == {
        "HR specialist": 1036,
        "retail": 1044,
        "software engineer": 1035,
    }
