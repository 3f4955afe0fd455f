"""Earlier runs in a report: the same task, texts and model in the same folder, by date."""

from __future__ import annotations

import copy
import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from auditor.core.record import read
from auditor.report import first_screen, matrix
from auditor.report.document import Cell, Section, Table

SPEC = importlib.util.spec_from_file_location("specimen", Path(__file__).parents[1] / "golden" / "specimen.py")
assert SPEC is not None
assert SPEC.loader is not None
SPECIMEN = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(SPECIMEN)


def put(folder: Path, name: str, date: str, **spec: Any) -> Path:
    """A run of the specimen under another name and date."""
    record = copy.deepcopy(SPECIMEN.claimed()) | {"id": name}
    record["provenance"] = dict(record["provenance"]) | {"started": date}
    plan = {"plan": {**record["spec"], **spec}}
    (folder / name).mkdir()
    (folder / name / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    (folder / name / "run.json").write_text(json.dumps(record), encoding="utf-8")
    return folder / name


def made(path: Path) -> list[Section]:
    record = json.loads((path / "run.json").read_text(encoding="utf-8"))
    return list(
        matrix.history(read(record), SimpleNamespace(path=path), first_screen.build(read(record), SPECIMEN.evidence()))
    )


def test_each_date_has_its_figure_with_interval_and_verdict(tmp_path: Path) -> None:
    put(tmp_path, "20260101-a", "2026-01-01T09:00:00Z")
    last = put(tmp_path, "20260202-b", "2026-02-02T09:00:00Z")
    put(tmp_path, "20260303-c", "2026-03-03T09:00:00Z")  # later than the run of the report
    (section,) = made(last)
    tables = [block for block in section.blocks if isinstance(block, Table)]
    assert tables
    for table in tables:
        assert [line[0] for line in table.lines] == ["2026-01-01 09:00", "2026-02-02 09:00"]
        cells = [cell for line in table.lines for cell in line[2:] if isinstance(cell, Cell)]
        assert cells
        assert all(cell.text and cell.mark for cell in cells)


@pytest.mark.parametrize("other", [{"task": "hiring?"}, {"data": "others.csv"}, {"suite": "grammar"}])
def test_runs_of_other_things_are_no_history(tmp_path: Path, other: dict[str, str]) -> None:
    put(tmp_path, "20260101-a", "2026-01-01T09:00:00Z", **other)
    assert made(put(tmp_path, "20260202-b", "2026-02-02T09:00:00Z")) == []


def test_what_is_no_whole_run_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "20260101-cut-off").mkdir()
    (tmp_path / "20260102-notes.txt").write_text("x", encoding="utf-8")
    broken = put(tmp_path, "20260103-c", "2026-01-03T09:00:00Z")
    (broken / "run.json").write_text("{", encoding="utf-8")
    assert made(put(tmp_path, "20260202-b", "2026-02-02T09:00:00Z")) == []
