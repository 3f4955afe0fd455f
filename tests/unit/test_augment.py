"""Retraining data: the right texts with the right labels, and how many."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, said

from auditor import audit
from auditor.run.augment import augment
from auditor.store.folder import RunFolder
from auditor.tasks import load
from auditor.testing.planted import Planted


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("runs")
    options = ["grammar=sentiment:gendered-occupation", "generation=rand"]
    against_the_nurse = Planted(base="constant", additive={"registered nurse": 1.0})
    result = audit(
        "sentiment", model=against_the_nurse, suite="grammar", suite_options=options, per_seed=None, limit=15, out=out,
        order=1,
    )  # fmt: skip
    assert result.path is not None
    with RunFolder.open(result.path) as opened:
        yield opened


def test_rows_are_both_sides_of_the_violations_with_the_grammar_s_label(folder: Any) -> None:
    found = augment(folder)
    cases = {case.id: case for case, _ in folder.cases()}
    assert found.available == len(found.rows) == len({row.text for row in found.rows}) > 4
    for row in found.rows:
        case = cases[row.case]
        assert {v.id: v.input for v in (case.original, *case.variants)}[row.variant] == row.text
        assert (row.label_source, row.label) == ("data", load("sentiment").read(case.label or "", "text").value)
        # A variant is there only if it violated: it or the original names the nurse.
        assert row.variant.endswith(".o") or "registered nurse" in f"{row.text} {case.original.input}".lower()
    few = augment(folder, top=1)
    assert len(few.tokens) == 1
    assert all(row.tokens == few.tokens for row in few.rows)


def test_a_share_is_of_the_training_rows_and_drawn_by_seed(folder: Any) -> None:
    one = augment(folder, share=0.5, train_rows=1000, seed=1)
    assert len(one.rows) == 5
    assert one == augment(folder, share=0.5, train_rows=1000, seed=1)
    assert one.rows != augment(folder, share=0.5, train_rows=1000, seed=2).rows
    many = augment(folder, share=10, train_rows=100_000)
    assert (many.wanted, len(many.rows)) == (10_000, many.available)


def test_without_labels_the_model_s_answer_to_the_original_is_taken(tmp_path: Path) -> None:
    by_pronoun = Planted(base="constant", additive={"she": 1.0})
    texts = ["He said he loved it.", "She thinks she will go."]
    result = audit("sentiment", model=by_pronoun, data=texts, attributes=("gender",), out=tmp_path)
    assert result.path is not None
    with RunFolder.open(result.path) as folder:
        rows = augment(folder).rows
    labels = {row.text: (row.label, row.label_source) for row in rows}
    assert labels["He said he loved it."] == ("positive", "model")
    assert labels["She thinks she will go."] == ("negative", "model")


def test_the_command_writes_json_lines_and_csv(folder: Any, tmp_path: Path, capsys: Capture) -> None:
    for name in ("rows.jsonl", "rows.csv"):
        code, told = said(capsys, f"augment {folder.path} --out {tmp_path / name} --top 5")
        assert (code, "from the violations of" in told) == (0, True)
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["text"] for row in table] == [row["text"] for row in lines]
    assert set(lines[0]) == {"text", "label", "label_source", "case", "variant", "tokens"}
    assert said(capsys, f"augment {folder.path} --out {tmp_path / 'no' / 'x.csv'}")[0] == 2
