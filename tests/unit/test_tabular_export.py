"""What leaves a tabular run: pairs side by side, retraining rows, and messages about bad input."""

from __future__ import annotations

import csv
import json
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.cli.main import run as audit
from auditor.core.shown import cell, csv_text
from auditor.tables.columns import Column
from auditor.tables.evaluate import Evaluator, Limit
from auditor.tables.finds import Answers, answers_of, pairs_csv, witnesses
from auditor.tables.retraining import augment_rows
from auditor.tables.row_schema import Schema

MODULE = """
import numpy as np
def planted(rows):
    job, size, group, sex = rows.T
    return np.where((size.astype(int) >= 3) & (sex == "f") & (job == "=x"), "no", "yes")
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    lines = ["job,size,group,sex,ok"]
    for _ in range(600):
        job, size = rng.choice(["=x", "plain"]), int(rng.integers(0, 6))
        group, sex = rng.choice(["a", "b"]), rng.choice(["f", "m"])
        bad = size >= 3 and sex == "f" and job == "=x"
        lines.append(f"{job},{size},{group},{sex},{'no' if bad else 'yes'}")
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "planted_rows.py").write_text(MODULE, encoding="utf-8")
    yield tmp_path
    sys.modules.pop("planted_rows", None)
    if str(tmp_path) in sys.path:
        sys.path.remove(str(tmp_path))


CALL = ["tabular", "--data", "data.csv", "--target", "ok", "--model", "python:planted_rows:planted", "--out", "runs"]


def folder_of(place: Path) -> Path:
    return max(p for p in (place / "runs").iterdir() if p.is_dir())


def test_pairs_stand_side_by_side(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit([*CALL, "--protected", "sex,group", "--method", "aequitas", "--full"]) == 0
    with (folder_of(place) / "pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3
    for row in rows:
        assert row["changed"] == "sex"  # never the other protected column
        assert {row["sex A"], row["sex B"]} == {"f", "m"}
        assert row["group A"] == row["group B"]
        assert {row["label A"], row["label B"]} == {"no", "yes"}
        assert row["job"] == "'=x"  # no spreadsheet computes it
    assert "'=x" in (folder_of(place) / "finds.csv").read_text(encoding="utf-8")


def test_a_limited_run_still_has_its_pairs(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = [*CALL, "--protected", "sex,group", "--method", "aequitas", "--format", "json"]
    assert audit([*call, "--set", "trials=0", "--max-evaluations", "30"]) == 3
    record = json.loads(capsys.readouterr().out)
    assert record["counts"]["evaluations"] <= 30
    assert record["tabular"]["pairs"]
    assert {tuple(s["columns"]): s["changes"] > 0 for s in record["tabular"]["lattice"]} == {
        ("group",): False,
        ("sex",): True,
        ("group", "sex"): True,
    }
    assert (folder_of(place) / "pairs.csv").read_text(encoding="utf-8").count("\n") > 1


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_retraining_rows_have_one_label_a_case(place: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    pytest.importorskip("sklearn", reason="the extra `tabular` is not installed")
    assert audit([*CALL, "--protected", "sex,group", "--method", "aequitas"]) == 0
    assert audit(["augment", str(folder_of(place)), "--out", name]) == 0
    said = capsys.readouterr().out
    assert "vote of three classifiers" in said
    if name.endswith("csv"):
        with (place / name).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = [json.loads(line) for line in (place / name).read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 3 * 4
    for size in (3, 4, 5):
        same = [row for row in rows if int(row["size"]) == size]
        assert len({(row["sex"], row["group"]) for row in same}) == 4
        assert len({row["ok"] for row in same}) == 1


def test_a_majority_needs_no_vote(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "import numpy as np\ndef planted(rows):\n    return ((rows[:, 2] == 'a') & (rows[:, 3] == 'f')).astype(int)\n"
    )
    (place / "planted_rows.py").write_text(text, encoding="utf-8")
    assert audit([*CALL, "--protected", "sex,group", "--method", "aequitas"]) == 0
    found = augment_rows(folder_of(place), share=1.0)
    assert found.sources == {"model": 6, "classifiers": 0}
    assert {row[-1] for row in found.rows} == {0}
    assert (found.cases, found.available) == (6, 12)


def test_a_broken_file_of_answers_is_said(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit([*CALL, "--protected", "sex,group", "--method", "aequitas"]) == 0
    (folder_of(place) / "votes.npz").write_bytes(b"PK\x03\x04 broken")
    assert audit(["augment", str(folder_of(place)), "--out", "rows.csv"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "votes.npz" in said
    assert "audit verify" in said


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=6))
def test_no_cell_is_a_formula(text: str) -> None:
    value = str(cell(text))
    assert not {c for c in value if unicodedata.category(c) in ("Cc", "Cs")} - {"\n"}
    try:
        float(text)
    except ValueError:
        assert not value.lstrip().startswith(("=", "+", "-", "@"))
    (read,) = csv.reader([csv_text([[value]])]) if "\n" not in value and "\r" not in value else ([value],)
    assert read == ([value] if value else read)


def test_witnesses_change_as_few_columns_as_possible() -> None:
    schema = Schema(columns=tuple(Column(name=n, kind="integer", codes=3, protected=n != "x") for n in ("x", "a", "b")))
    model = Evaluator(lambda r: ((r[:, 1] + r[:, 2] >= 4) | (r[:, 0] == 1)).astype(int), schema)
    codes = np.array([[0, 0, 0], [1, 0, 0]], dtype=np.int32)
    answers = answers_of(model, codes)
    assert answers is not None
    chosen = witnesses(model, answers.judged)
    one, other = schema.combos[chosen[0]]
    assert (one != other).sum() == 1
    assert chosen[1].tolist() == [-1, -1]
    assert pairs_csv(model, answers).count("\n") == 2


def test_recall_asks_nothing() -> None:
    schema = Schema(
        columns=(Column(name="x", kind="integer", codes=3), Column(name="g", kind="integer", codes=2, protected=True))
    )
    model = Evaluator(lambda r: (r[:, 1] > 0).astype(int), schema, budget=Limit(evaluations=3), keep=True)
    model.labels(np.array([[0, 0], [0, 1], [1, 0]], dtype=np.int32))
    known = answers_of(model, np.array([[0, 0], [1, 0], [2, 0]], dtype=np.int32))
    assert isinstance(known, Answers)
    assert model.evaluations == 3
    assert known.judged.discriminatory.tolist() == [True, False, False]
    assert known.judged.possible.tolist() == [[True, True], [True, False], [False, False]]


BAD = {
    "missing target": (["--target", "nothing", "--protected", "sex"], "--target 'nothing': no such column"),
    "constant protected": (["--data", "one.csv", "--target", "ok", "--protected", "sex"], "sex.* one value only"),
    "unseen category": (["--schema", "short.yaml", "--data", "data.csv"], "row .*'job' is plain"),
    "missing number": (["--data", "nan2.csv", "--target", "ok", "--protected", "sex"], r"ValueError: cannot convert float NaN.* missing \(NaN\) in size"),
    "clash": (["--schema", "clash.yaml"], r"These clash: .*size >= 4.*size < 2"),
    "wrong width": (["--target", "ok", "--protected", "sex", "--model", "sklearn:narrow.skops"], "reads 2 columns.* has 4"),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_input_gives_one_clear_error(place: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    lines = (place / "data.csv").read_text(encoding="utf-8").splitlines()
    (place / "one.csv").write_text("\n".join([lines[0], "=x,1,a,f,no", "=x,2,a,f,yes"]), encoding="utf-8")
    (place / "nan2.csv").write_text("\n".join([lines[0], "=x,1.5,a,f,no", "=x,,a,m,yes"]), encoding="utf-8")
    head = (
        "target: ok\ncolumns:\n  job: {kind: category, values: ['=x'VALUE]}\n  size: {kind: integer, low: 0, high: 5}\n"
    )
    head += "  group: {kind: category, values: [a, b]}\n  sex: {kind: category, values: [f, m], protected: true}\n"
    (place / "short.yaml").write_text(head.replace("VALUE", ""), encoding="utf-8")
    rules = "constraints: ['size >= 4', 'group == a implies sex == f', 'size < 2']\n"
    (place / "clash.yaml").write_text(head.replace("VALUE", ", plain") + rules, encoding="utf-8")
    if name == "clash":
        pytest.importorskip("z3", reason="the extra `tabular` is not installed")
    if name == "wrong width":
        sio = pytest.importorskip("skops.io", reason="the extra `tabular` is not installed")
        from sklearn.tree import DecisionTreeClassifier

        sio.dump(DecisionTreeClassifier().fit([[0, 1], [1, 0]], [0, 1]), place / "narrow.skops")
    given_, message = BAD[name]
    assert audit([*CALL, *given_]) == 2
    error = " ".join(capsys.readouterr().err.split())
    import re

    assert re.search(message, error), error
    assert "Traceback" not in error
    assert error.count("audit:") == 1
