"""Models of rows, the command line and the reports of tabular search."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest

from auditor.cli.main import run as audit
from auditor.core.errors import BudgetExceeded, ConfigError, DataFileError, UnknownPlugin, UserError
from auditor.core.types import Progress
from auditor.models.row_models import load_table_model
from auditor.tables import TabularPlan, audit_table, infer_schema

sklearn = pytest.importorskip("sklearn", reason="the extra `tabular` is not installed")
sio = pytest.importorskip("skops.io", reason="the extra `tabular` is not installed")

MODULE = """
import numpy as np
def by_sex(rows):
    return (rows[:, 0] + 2 * rows[:, 1] >= 4).astype(int)
def never(rows):
    return np.zeros(len(rows), int)
"""
PROGRAM = """
import json, sys
for line in sys.stdin:
    v = json.loads(line)
    print(json.dumps({"id": v["id"], "output": "yes" if v["row"]["x"] + 2 * v["row"]["sex"] >= 4 else "no"}), flush=True)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    rows = np.stack([rng.integers(0, 6, 120), rng.integers(0, 2, 120), rng.integers(0, 9, 120)], axis=1)
    y = (rows[:, 0] + 2 * rows[:, 1] >= 4).astype(int)
    lines = ["x,sex,z,y", *(",".join(map(str, [*r, v])) for r, v in zip(rows.tolist(), y.tolist(), strict=True))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "rows_model.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(random_state=0).fit(rows, y)
    sio.dump(tree, tmp_path / "tree.skops")
    sio.dump(DecisionTreeClassifier(random_state=0).fit(rows[:, :2], y), tmp_path / "narrow.skops")
    import joblib

    joblib.dump(tree, tmp_path / "tree.joblib")
    yield tmp_path
    sys.modules.pop("rows_model", None)
    if str(tmp_path) in sys.path:
        sys.path.remove(str(tmp_path))


MODELS = ["sklearn:tree.skops", "python:rows_model:by_sex", f"exec:{sys.executable} program.py"]


@pytest.mark.parametrize("model", MODELS)
def test_every_kind_of_model_gives_the_same_scores(place: Path, model: str) -> None:
    run = audit_table(
        TabularPlan(data="data.csv", target="y", model=model, protected=("sex",), options={"max_samples": 200})
    )
    causal = next(s for s in run.result.scores if s.name == "causal")
    assert causal.estimate.low <= 2 / 6 <= causal.estimate.high
    assert run.result.pairs[0].changed == ("sex",)
    assert run.path is not None
    record = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    assert record["tabular"]["method"] == "themis"
    assert json.loads((run.path / "plan.json").read_text(encoding="utf-8"))["kind"] == "tabular"
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"<script[^>]+src=|<link[^>]+href=", page)  # one file, nothing fetched
    assert "Causal score" in page
    assert len((run.path / "finds.csv").read_text(encoding="utf-8").splitlines()) > 1


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("sklearn:tree.joblib", ConfigError, "runs the code inside it.*--trust-pickle"),
        ("sklearn:none.skops", DataFileError, "cannot read the model file"),
        ("sklearn:data.csv", DataFileError, "not a readable .skops"),
        ("sklearn:narrow.skops", ConfigError, "reads 2 columns, but the schema has 3"),
        ("python:rows_model:nothing", ConfigError, "nothing"),
        ("openai:gpt", UnknownPlugin, "table model"),
        ("exec:no-such-program-here", ConfigError, "no-such-program-here"),
    ],
)
def test_models_that_cannot_be_opened(place: Path, spec: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_table_model(spec, ["x", "sex", "z"])


def test_a_model_file_that_unpacks_to_far_more_than_it_is_is_not_opened(place: Path) -> None:
    with ZipFile(place / "bomb.skops", "w", ZIP_DEFLATED) as archive, archive.open("schema.json", "w") as entry:
        for _ in range(300):
            entry.write(bytes(2**20))
    with pytest.raises(DataFileError, match="times its size"):
        load_table_model("sklearn:bomb.skops", ["a"])


SLOW = """
import json, sys, time
for n, line in enumerate(sys.stdin):
    if n >= int(sys.argv[1]):
        time.sleep(600)
    print(json.dumps({"id": json.loads(line)["id"], "output": "yes"}), flush=True)
"""


@pytest.mark.parametrize(("answers", "error"), [(0, UserError), (2, BudgetExceeded)])
def test_a_program_that_hangs_is_not_waited_for(place: Path, answers: int, error: type[Exception]) -> None:
    (place / "slow.py").write_text(SLOW)
    model = load_table_model(f"exec:{sys.executable} slow.py {answers}", ["a"], max_seconds=0.3)
    if answers:
        assert model.predict(np.zeros((2, 1))) == ["yes"] * 2
    with pytest.raises(error, match=r"no answer in 0\.3 s"):
        model.predict(np.zeros((4, 1)))
    model.close()


def command(*extra: str) -> int:
    return audit(["tabular", "--data", "data.csv", "--target", "y", "--protected", "sex", "--full", *extra])


def test_the_command_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--model", "sklearn:tree.skops", "--format", "json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["status"] == "complete"
    assert record["tabular"]["schema"]["rows_in_domain"] == "108"
    assert [e["population"] for e in record["estimates"]] == ["given rows"] * 2 + ["domain (all rows)"] * 2
    assert record["estimates"][2]["estimate"]["value"] == pytest.approx(2 / 6)
    assert [f["verdict"] for f in record["findings"]][2:4] == ["shown", "shown"]
    assert command("--model", "sklearn:tree.skops") == 0
    assert re.search(r"Label \S+ goes to \S+ % of the \d+ .* with sex = \w", capsys.readouterr().out.replace("\n", " "))
    assert command("--model", "sklearn:tree.skops") == 0
    text = capsys.readouterr().out
    assert "33.33 % (exact)" in text
    assert "Sets of protected columns" in text


@pytest.mark.parametrize("method", ["themis", "aequitas", "sg"])
def test_rows_and_seconds_are_those_of_the_whole_run(place: Path, method: Any) -> None:
    """Share, search and the pairs that are written: every row that the model saw, and all its time."""
    (place / "rows_model.py").write_text(
        "seen = []\ndef f(rows):\n    seen.append(len(rows))\n    return (rows[:, 0] + 2 * rows[:, 1] >= 4).astype(int)\n",
        encoding="utf-8",
    )
    events: list[Progress] = []
    options = {"aequitas": {"global_n": 20, "local_n": 20}, "sg": {"limit": 20}}.get(method, {})
    run = audit_table(
        TabularPlan(
            data="data.csv", target="y", model="python:rows_model:f", protected=("sex",), method=method, options=options
        ),
        observe=events.append,
    )
    asked = sum(sys.modules["rows_model"].seen)
    assert run.path is not None
    record = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    assert record["counts"]["evaluations_in_all"] == record["tabular"]["counts"]["evaluations_in_all"] == asked
    assert f"asked about {asked:,} rows" in (run.path / "report.html").read_text(encoding="utf-8")
    assert record["models"]["python:rows_model:f"]["counts"]["calls"] == asked
    assert record["counts"]["seconds"] == record["provenance"]["seconds"]
    told = [event.done for event in events if event.phase == "rows asked"]
    assert told == sorted(told)
    assert told[-1] == asked


def test_hidden_rows_are_counted_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of three columns with a majority rule two rows of eight change with each pair of columns and with none alone."""
    (place / "rows_model.py").write_text(
        "def two(rows):\n    return (rows.sum(axis=1) >= 2).astype(int)\n", encoding="utf-8"
    )
    (place / "three.csv").write_text("a,b,c,y\n0,0,0,0\n1,1,1,1\n", encoding="utf-8")
    argv = ["tabular", "--data", "three.csv", "--target", "y", "--protected", "a,b,c"]
    argv += ["--model", "python:rows_model:two"]
    assert audit([*argv, "--fail-on", "hidden > 2"]) == 0
    assert "In 2 of 8 rows of the domain that were looked at" in " ".join(capsys.readouterr().out.split())
    assert audit([*argv, "--fail-on", "hidden > 1", "--format", "json"]) == 1
    lattice = json.loads(capsys.readouterr().out)["tabular"]["lattice"]
    assert sum(s["minimal"] for s in lattice if len(s["columns"]) > 1) == 6
    assert [s["hidden"] for s in lattice] == [0, 0, 0, 2, 2, 2, 2]


def test_no_label_is_called_favourable_by_a_guess(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--model", "python:rows_model:by_sex"]
    assert command(*argv) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "label 1: most often for sex = 1" in text
    assert "Nothing was said about which label is good (--favourable LABEL)" in text
    assert "favourable:" not in infer_schema("data.csv", None, ("sex",)).partition("columns:")[0]
    assert command(*argv, "--favourable", "0") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "label 0, called favourable: most often for sex = 0" in text
    assert "Nothing was said" not in text
    assert command(*argv, "--favourable", "yes") == 2
    assert "'yes': no such label. There are: '0', '1'." in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "sklearn:tree.skops", "--target", "nope"], "--target 'nope': no such column of data.csv"),
        (["--model", "sklearn:tree.skops", "--protected", "nope"], "--protected 'nope': no such column of data.csv"),
        (["--model", "sklearn:tree.skops", "--set", "nope"], "NAME=VALUE"),
        (["--model", "sklearn:tree.skops", "--mode", "fully"], "--mode was removed in 0.3; use --theta"),
        (
            ["--model", "sklearn:tree.skops", "--set", "mode=search"],
            "mode of --method themis was removed in 0.3; use --theta",
        ),
        ([], "needs --data FILE and --model"),
    ],
)
def test_what_cannot_run(place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert command(*arguments) == 2
    captured = capsys.readouterr()
    assert message in " ".join(captured.err.split())
    assert "Traceback" not in captured.err


def test_a_schema_is_written_and_read(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit(["tabular", "schema", "data.csv", "--protected", "sex", "--out", "s.yaml"]) == 0
    text = (place / "s.yaml").read_text(encoding="utf-8")
    assert text == infer_schema("data.csv", None, ("sex",))
    (place / "s.yaml").write_text(
        text.replace("constraints: []", "constraints: [x == 5 implies sex == 1]"), encoding="utf-8"
    )
    capsys.readouterr()
    argv = ["tabular", "--data", "data.csv", "--schema", "s.yaml", "--model", "python:rows_model:by_sex"]
    assert audit([*argv, "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["tabular"]["counts"]["impossible_rows"] == 9
    (place / "s.yaml").write_text(text.replace("constraints: []", "constraints: [x == 5, x == 4]"), encoding="utf-8")
    pytest.importorskip("z3", reason="the extra `tabular` is not installed")
    assert audit(argv) == 2
    assert "These clash: (1) x == 5; (2) x == 4" in " ".join(capsys.readouterr().err.split())


def test_a_failing_model_is_one_paragraph_and_missing_values_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from auditor.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "rows_with_gaps.py").write_text(
        "def takes(rows):\n    return (rows['pay'].fillna(0) > 4).astype(int)\n"
        "def refuses(rows):\n    if rows['pay'].isna().any():\n        raise ZeroDivisionError('no NaN')\n    return takes(rows)\n"
        "takes.frame = refuses.frame = True\n",
        encoding="utf-8",
    )
    lines = ["pay;sex;y"] + [f"{'n/a' if i % 9 == 0 else i % 7};{'mf'[i % 2]};{i % 2}" for i in range(90)]
    (tmp_path / "rows.csv").write_text("\n".join(lines), encoding="utf-8")
    call = ["tabular", "--data", "rows.csv", "--target", "y", "--protected", "sex", "--max-samples", "50"]
    assert main.run([*call, "--model", "python:rows_with_gaps:takes", "--out", "runs"]) == 0
    screen = capsys.readouterr().out
    assert len(screen.splitlines()) <= 40
    assert [
        main.run(shlex.split(line[line.index("audit ") :])[1:]) for line in screen.splitlines() if "  audit " in line
    ] == [0, 0, 0]
    assert "'n/a' (10 rows)" in " ".join(capsys.readouterr().out.split())
    (record,) = (tmp_path / "runs").glob("2*/run.json")
    assert "NaN" not in record.read_text("utf-8")
    assert main.run([*call, "--model", "python:rows_with_gaps:refuses", "--out", "runs"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "the model raised ZeroDivisionError: no NaN (rows_with_gaps.py, line 5), asked about 1 row" in told
    assert "the first: pay=nan, sex='m'. Values are missing (NaN) in pay" in told
    assert "Traceback" not in told


SETTINGS = """format = 1
limit = 3
[tabular]
data = "data.csv"
target = "y"
model = "python:rows_model:by_sex"
protected = ["sex"]
max_samples = 300
out = "mine"
"""


def test_settings_of_a_file_are_those_of_flags(place: Path) -> None:
    """Rows have a table of their own; flags beat it; a run of texts takes no note of it."""
    from auditor.cli.tabular import plan_of
    from auditor.core.plan import resolve

    (place / "audit.toml").write_text(SETTINGS, encoding="utf-8")
    typed = {"data": "data.csv", "target": "y", "model": "python:rows_model:by_sex", "protected": "sex"}
    assert plan_of({}) == plan_of({**typed, "max_samples": 300, "out": "mine"}, place / "audit.toml")
    assert plan_of({}).options == {"max_samples": 300}
    assert plan_of({"max_samples": 200, "out": "b"}).out == "b"
    assert plan_of({"max_samples": 200}).options == {"max_samples": 200}
    assert resolve({}).limit == 3
    assert audit(["tabular", "--dry-run"]) == 0
    for line, told in (
        ("slices = 3", r"line 10: slices was removed in 0\.3"),
        ("seed = -1", r"--seed must be at least 0; got -1"),
        ('mode = "search"', r"line 10: mode was removed in 0\.3; use --theta"),
    ):
        (place / "audit.toml").write_text(f"{SETTINGS}{line}\n", encoding="utf-8")
        with pytest.raises(DataFileError, match=told):
            plan_of({})
    (place / "audit.toml").write_text("tabular = 3\n", encoding="utf-8")
    with pytest.raises(DataFileError, match="must be a table"):
        plan_of(typed)
