"""Searches over rows through the command: models, records, reports, plans, comparisons, exports, and what is refused."""

from __future__ import annotations

import csv
import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from commands import Capture, Patch, both, said

from auditor import audit as audit_texts
from auditor.cli.main import run as audit
from auditor.cli.tabular import plan_of
from auditor.core.errors import BudgetExceeded, ConfigError, DataFileError, UnknownPlugin, UserError
from auditor.core.record import code_sha256
from auditor.core.types import Progress
from auditor.models.row_models import load_table_model
from auditor.report.run_checks import expectations
from auditor.run import freeze
from auditor.tables import TabularPlan, audit_table, infer_schema
from auditor.tables.retraining import augment_rows
from auditor.tables.tabular_run import load_frozen

MODULE = """
import numpy as np
seen = []
def by_sex(rows):
    seen.append(len(rows))
    return (rows[:, 0] + 2 * rows[:, 1] >= 4).astype(int)
def more(rows):
    return (rows[:, 0] + 3 * rows[:, 1] >= 4).astype(int)
def never(rows):
    return np.zeros(len(rows), int)
def asked(rows):
    raise AssertionError("the model was asked")
def two(rows):
    return (rows.sum(axis=1) >= 2).astype(int)
def jobs(rows):
    job, size, group, sex = rows.T
    return np.where((size.astype(int) >= 3) & (sex == "f") & (job == "=x"), "no", "yes")
def a_women(rows):
    return ((rows[:, 2] == "a") & (rows[:, 3] == "f")).astype(int)
def takes(rows):
    return (rows["pay"].fillna(0) > 4).astype(int)
def refuses(rows):
    if rows["pay"].isna().any():
        raise ZeroDivisionError("no NaN")
    return takes(rows)
takes.frame = refuses.frame = True
"""
PROGRAM = """
import json, sys, time
for n, line in enumerate(sys.stdin):
    v = json.loads(line)
    if len(sys.argv) > 1 and n >= int(sys.argv[1]):
        time.sleep(600)
    said = "yes" if v["row"].get("x", 9) + 2 * v["row"].get("sex", 0) >= 4 else "no"
    print(json.dumps({"id": v["id"], "output": said}), flush=True)
"""
BASE = ["--data", "data.csv", "--target", "y", "--protected", "sex"]
BY_SEX = [*BASE, "--model", "python:rows_model:by_sex"]
JOBS = ["tabular", "--data", "jobs.csv", "--target", "ok", "--model", "python:rows_model:jobs"]
AEQUITAS = ["--protected", "sex,group", "--method", "aequitas"]


@pytest.fixture(autouse=True)
def place(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A table of 6 x 2 x 9 possible rows with a label by x and sex, one with names, and models of both."""
    monkeypatch.syspath_prepend(str(place))
    rng = np.random.default_rng(7)
    rows = np.stack([rng.integers(0, codes, 120) for codes in (6, 2, 9)], axis=1).tolist()
    lines = [f"{x},{sex},{z},{int(x + 2 * sex >= 4)}\n" for x, sex, z in rows]
    (place / "data.csv").write_text("".join(["x,sex,z,y\n", *lines]), encoding="utf-8")
    lines = ["job,size,group,sex,ok\n"]
    for _ in range(300):
        job, size = rng.choice(["=x", "plain"]), int(rng.integers(0, 6))
        group, sex = rng.choice(["a", "b"]), rng.choice(["f", "m"])
        lines.append(f"{job},{size},{group},{sex},{'no' if size >= 3 and sex == 'f' and job == '=x' else 'yes'}\n")
    (place / "jobs.csv").write_text("".join(lines), encoding="utf-8")
    (place / "rows_model.py").write_text(MODULE, encoding="utf-8")
    (place / "program.py").write_text(PROGRAM, encoding="utf-8")
    yield place
    sys.modules.pop("rows_model", None)


@pytest.fixture
def trees(place: Path) -> None:
    sio = pytest.importorskip("skops.io", reason="the extra `tabular` is not installed")
    import joblib
    from sklearn.tree import DecisionTreeClassifier

    data = np.loadtxt("data.csv", delimiter=",", skiprows=1, dtype=int)
    tree = DecisionTreeClassifier(random_state=0).fit(data[:, :3], data[:, 3])
    sio.dump(tree, "tree.skops")
    joblib.dump(tree, "tree.joblib")
    sio.dump(DecisionTreeClassifier(random_state=0).fit(data[:, :2], data[:, 3]), "narrow.skops")


def folder() -> Path:
    return max(Path("reports").glob("2*"), key=lambda path: (path / "plan.json").stat().st_mtime_ns)


def record() -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder() / "run.json").read_text(encoding="utf-8"))
    return value


def json_of(capsys: Capture, *argv: str, ends: int = 0) -> Any:
    """What a command prints as JSON; its exit code is ``ends``."""
    code, out, err = both(capsys, *argv, "--format", "json")
    assert code == ends, err
    return json.loads(out)


# -- models -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["sklearn:tree.skops", BY_SEX[-1], f"exec:{sys.executable} program.py"])
def test_every_kind_of_model_gives_the_same_scores(trees: None, model: str) -> None:
    options: dict[str, object] = {"max_samples": 200}
    run = audit_table(TabularPlan(data="data.csv", target="y", model=model, protected=("sex",), options=options))
    causal = next(s for s in run.result.scores if s.name == "causal")
    assert causal.estimate.low <= 2 / 6 <= causal.estimate.high
    assert run.result.pairs[0].changed == ("sex",)
    page = (folder() / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"<script[^>]+src=|<link[^>]+href=", page)  # one file, nothing fetched
    assert "Causal score" in page


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("sklearn:tree.joblib", ConfigError, "runs the code inside it.*--trust-pickle"),
        ("sklearn:none.skops", DataFileError, "cannot read the model file"),
        ("sklearn:data.csv", DataFileError, "not a readable .skops"),
        ("sklearn:narrow.skops", ConfigError, "reads 2 columns, but the schema has 3"),
        ("sklearn:bomb.skops", DataFileError, "times its size"),
        ("python:rows_model:nothing", ConfigError, "nothing"),
        ("openai:gpt", UnknownPlugin, "table model"),
        ("exec:no-such-program-here", ConfigError, "no-such-program-here"),
    ],
)
def test_models_that_do_not_open(
    trees: None, monkeypatch: Patch, spec: str, error: type[Exception], message: str
) -> None:
    if "bomb" in spec:
        monkeypatch.setattr("auditor.models.row_models.LEAST_UNPACKED", 2**20)
        with ZipFile("bomb.skops", "w", ZIP_DEFLATED) as archive, archive.open("schema.json", "w") as entry:
            for _ in range(20):
                entry.write(bytes(2**20))
    with pytest.raises(error, match=message):
        load_table_model(spec, ["x", "sex", "z"])


@pytest.mark.parametrize(("answers", "error"), [(0, UserError), (2, BudgetExceeded)])
def test_a_program_that_hangs_is_not_waited_for(answers: int, error: type[Exception]) -> None:
    model = load_table_model(f"exec:{sys.executable} program.py {answers}", ["a"], max_seconds=0.3)
    if answers:
        assert model.predict(np.zeros((2, 1))) == ["yes"] * 2
    with pytest.raises(error, match=r"no answer in 0\.3 s"):
        model.predict(np.zeros((4, 1)))
    model.close()


# -- the record and the screen ------------------------------------------------------------------------------


def test_the_record_and_the_screen(capsys: Capture) -> None:
    told = json_of(capsys, "tabular", *BY_SEX)
    assert told["status"] == "complete"
    assert told["tabular"]["schema"]["rows_in_domain"] == "108"
    assert [e["population"] for e in told["estimates"]] == ["given rows"] * 2 + ["domain (all rows)"] * 2
    assert told["estimates"][2]["estimate"]["value"] == pytest.approx(2 / 6)
    assert [f["verdict"] for f in told["findings"]][2:4] == ["shown", "shown"]
    _, text = said(capsys, "tabular", *BY_SEX, "--full")
    assert re.search(r"Label \S+ goes to \S+ % of the \d+ .* with sex = \w", text)
    assert "33.33 % (exact)" in text
    assert "Sets of protected columns" in text
    run = str(folder())
    for words, ends, why in (
        (["T3"], 0, "sex: 0 → 1"),
        (["T99"], 2, "unknown finding 'T99'"),
        (["T1", "--again"], 2, "is a search over rows of a table"),
    ):
        code, shown = said(capsys, "show", run, *words)
        assert (code, why in shown) == (ends, True)
    # No label is called favourable by a guess.
    assert "label 1: most often for sex = 1" in text
    assert "Nothing was said about which label is good (--favourable LABEL)" in text
    assert "favourable:" not in infer_schema("data.csv", None, ("sex",)).partition("columns:")[0]
    _, text = said(capsys, "tabular", *BY_SEX, "--full", "--favourable", "0")
    assert "label 0, called favourable: most often for sex = 0" in text
    assert "Nothing was said" not in text


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("themis", {}),
        ("aequitas", {"global_n": 20, "local_n": 20}),
        ("sg", {"limit": 20, "samples": 200, "protocol": "sg"}),
    ],
)
def test_rows_and_seconds_are_those_of_the_whole_run(method: Any, options: dict[str, Any]) -> None:
    """Share, search and the pairs that are written: every row that the model saw, and all its time."""
    if method == "sg":
        pytest.importorskip("lime", reason="the extra `tabular` is not installed")
    events: list[Progress] = []
    plan = TabularPlan(
        data="data.csv", target="y", model=BY_SEX[-1], protected=("sex",), method=method, options=options
    )
    run = audit_table(plan, observe=events.append)
    asked = sum(sys.modules["rows_model"].seen)
    told = record()
    page = (folder() / "report.html").read_text(encoding="utf-8")
    assert told["counts"]["evaluations_in_all"] == told["tabular"]["counts"]["evaluations_in_all"] == asked
    assert f"asked about {asked:,} rows" in page
    assert told["models"][plan.model]["counts"]["calls"] == asked
    assert told["counts"]["seconds"] == told["provenance"]["seconds"]
    seen = [event.done for event in events if event.phase == "rows asked"]
    assert seen == sorted(seen)
    assert seen[-1] == asked
    if method == "sg":
        assert run.result.options["neighbourhood"] == "marginal"
        assert told["tabular"]["details"]["phases"]["seed"]["generated"] > 0
        assert "their number is not a rate" in page


def test_hidden_rows_are_counted_once(place: Path, capsys: Capture) -> None:
    """Of three columns with a majority rule two rows of eight change with each pair of columns and with none alone."""
    (place / "three.csv").write_text("a,b,c,y\n0,0,0,0\n1,1,1,1\n", encoding="utf-8")
    argv = ["tabular", "--data", "three.csv", "--target", "y", "--protected", "a,b,c"]
    argv += ["--model", "python:rows_model:two", "--fail-on"]
    code, text = said(capsys, *argv, "hidden > 2")
    assert (code, "In 2 of 8 rows of the domain that were looked at" in text) == (0, True)
    lattice = json_of(capsys, *argv, "hidden > 1", ends=1)["tabular"]["lattice"]
    assert [s["hidden"] for s in lattice] == [0, 0, 0, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("rule", "code"), [("shown", 1), ("net(sex) > 30%", 1), ("net(sex) > 90%, excess(sex) > 90%", 0)]
)
def test_rules_set_the_exit_code(rule: str, code: int, capsys: Capture) -> None:
    assert audit(["tabular", *BY_SEX, "--fail-on", rule]) == code
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("--fail-on:")]
    assert line.startswith(f"--fail-on: {'holds' if code else 'does not hold'}: {rule.partition(',')[0]}")
    assert audit(["report", str(folder()), "--fail-on", rule]) == code


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ([], "needs --data FILE and --model"),
        (["--delta", "150"], "--delta is a number of percentage points (2), or a share"),
        (["--set", "nope"], "NAME=VALUE"),
        (["--set", "nope=1"], "themis has no option 'nope'"),
        (["--set", "max_samples=many"], "must be a valid integer"),
        (["--method", "aequitas", "--protocol", "directed"], "protocol must be"),
        (["--method", "aequitas", "--set", "ask=witness"], "was removed in 0.3; use --method sg"),
        (["--method", "aequitas", "--set", "level=1.0"], "no option 'level'; options: generated, global_n"),
        (["--method", "sg", "--set", "limit=true"], "limit must be a valid integer"),
        (["--method", "sg", "--set", "threshold=1.5"], "no option 'threshold'; options: limit, protocol, samples"),
        (["--method", "sg", "--set", "seed_share=0.1"], "was removed in 0.3; use --protocol sg"),
        (["--set", "mode=search"], "mode of --method themis was removed in 0.3; use --theta"),
        (["--set", "profile=x.csv"], "The option profile of --method themis was removed in 0.3; give rows with --data"),
        (["--mode", "fully"], "--mode was removed in 0.3; use --theta"),
        (["--slices", "3"], "--slices was removed in 0.3; run audit tabular on the rows"),
        (["--retrain"], "--retrain was removed in 0.3; use audit augment RUN"),
        (["--method", "sg", "--seed-source", "data"], "--seed-source was removed in 0.3; sg starts from clusters"),
        (["--max-calls", "5"], "--max-calls goes with --task"),
        (["--fail-on", "net(sx) > 2%"], "'sx': no such attribute in this run. Did you mean 'sex'?"),
        (["--method", "sg", "--fail-on", "shown, excess(sex) > 2%"], "does not go with --method sg"),
        (["--method", "aequitas", "--fail-on", "net(sex) > 2%"], "does not go with --method aequitas"),
    ],
)
def test_what_cannot_run_is_one_message(capsys: Capture, extra: list[str], message: str) -> None:
    code, error = said(capsys, "tabular", *(BY_SEX if extra else BASE), *extra)
    assert (code, message in error) == (2, True), error
    assert "Traceback" not in error
    if "--fail-on" not in extra:
        assert not Path("reports").exists()


# -- schemas and data ---------------------------------------------------------------------------------------

HEAD = """target: ok
columns:
  job: {kind: category, values: ['=x', plain]}
  size: {kind: integer, low: 0, high: 5}
  group: {kind: category, values: [a, b]}
  sex: {kind: category, values: [f, m], protected: true}
"""


def test_a_schema_is_written_and_read(place: Path, capsys: Capture) -> None:
    assert audit(["tabular", "schema", "data.csv", "--protected", "sex", "--out", "s.yaml"]) == 0
    text = (place / "s.yaml").read_text(encoding="utf-8")
    assert text == infer_schema("data.csv", None, ("sex",))
    text = text.replace("constraints: []", "constraints: [x == 5 implies sex == 1]")
    (place / "s.yaml").write_text(text, encoding="utf-8")
    told = json_of(capsys, "tabular", "--data", "data.csv", "--schema", "s.yaml", "--model", BY_SEX[-1])
    assert told["tabular"]["counts"]["impossible_rows"] == 9
    pytest.importorskip("z3", reason="the extra `tabular` is not installed")
    rules = "constraints: ['size >= 4', 'group == a implies sex == f', 'size < 2']\n"
    (place / "clash.yaml").write_text(HEAD + rules, encoding="utf-8")
    code, error = said(capsys, *JOBS, "--schema", "clash.yaml")
    assert (code, "These clash: (1) size >= 4; (2) size < 2" in error) == (2, True)


def test_a_failing_model_is_one_paragraph_and_missing_values_are_asked(place: Path, capsys: Capture) -> None:
    gaps = ["pay;sex;y"] + [f"{'n/a' if i % 9 == 0 else i % 7};{'mf'[i % 2]};{i % 2}" for i in range(90)]
    (place / "rows.csv").write_text("\n".join(gaps), encoding="utf-8")
    call = ["tabular", "--data", "rows.csv", "--target", "y", "--protected", "sex", "--max-samples", "50"]
    code, screen, _ = both(capsys, *call, "--model", "python:rows_model:takes")
    assert code == 0
    assert len(screen.splitlines()) <= 40
    commands = (line[line.index("audit ") :] for line in screen.splitlines() if "  audit " in line)
    further = [said(capsys, *shlex.split(command)[1:]) for command in commands]
    assert [code for code, _ in further] == [0, 0, 0]
    assert any("'n/a' (10 rows)" in text for _, text in further)
    assert "NaN" not in (folder() / "run.json").read_text("utf-8")
    (place / "jobs.csv").write_text("job,size,group,sex,ok\n=x,1.5,a,f,no\n=x,,a,m,yes", encoding="utf-8")
    for command, message, missing in (
        ([*call, "--model", "python:rows_model:refuses"], r"ZeroDivisionError: no NaN \(.*, line \d+\)", "pay"),
        ([*JOBS, "--protected", "sex"], "ValueError: cannot convert", "size"),
    ):
        code, told = said(capsys, *command)
        assert code == 2
        assert re.search(f"the model raised {message}.*, asked about", told), told
        assert f"missing (NaN) in {missing}" in told
        assert "Traceback" not in told
        assert told.count("audit:") == 1


def test_settings_of_a_file_are_those_of_flags(place: Path) -> None:
    """Rows have a table of their own; flags beat it."""
    typed = {"data": "data.csv", "target": "y", "model": "python:rows_model:by_sex", "protected": "sex"}
    settings = "".join(f'{name} = "{value}"\n' for name, value in typed.items())
    (place / "audit.toml").write_text(f"format = 1\nlimit = 3\n[tabular]\n{settings}max_samples = 300\n")
    assert plan_of({}).as_dict() == plan_of({**typed, "max_samples": 300}).as_dict()
    assert plan_of({"max_samples": 200}).options == {"max_samples": 200}
    (place / "audit.toml").write_text("format = 1\n[tabular]\nslices = 3\n")
    with pytest.raises(DataFileError, match=r"line 3: slices was removed in 0\.3"):
        plan_of(typed)


# -- frozen plans -------------------------------------------------------------------------------------------


def frozen(*extra: str) -> None:
    Path("plan.json").unlink(missing_ok=True)
    assert audit(["plan", "freeze", "tabular", *BY_SEX, *extra, "--output", "plan.json"]) == 0


def test_a_plan_of_rows_is_frozen_and_run(capsys: Capture) -> None:
    frozen("--delta", "0.1", "--by", "A. Person", "--reason", "one in ten")
    text = capsys.readouterr().out
    assert "audit tabular --plan plan.json" in text
    assert "54 cases" in text  # 6 * 9 rests of rows
    found = load_frozen(Path("plan.json"))
    assert found.inputs["rows"]["n"] == 120
    assert found.expected["evaluations"] == {"at_most": 348}  # 54 * 2 and 120 * 2
    assert "one in ten" in said(capsys, "plan", "show", "plan.json")[1]
    code, text = said(capsys, "tabular", "--plan", "plan.json", "--full")
    assert code == 0
    assert (record()["frozen"]["deviations"], record()["frozen"]["sha256"]) == ([], found.sha256)
    assert record()["counts"]["evaluations"] == 348
    for part in ("The frozen plan", "No deviation was recorded", "348 rows"):
        assert part in text


def test_what_deviates_is_in_every_report(capsys: Capture) -> None:
    frozen("--max-samples", "300")
    with Path("data.csv").open("a", encoding="utf-8") as file:
        file.write("5,1,8,1\n")
    assert audit(["tabular", "--plan", "plan.json", "--seed", "8", "--max-samples", "200"]) == 0
    found = {row["what"]: (row["planned"], row["actual"]) for row in record()["frozen"]["deviations"]}
    assert found.pop("input: rows.sha256")
    assert found == {"setting: seed": (7, 8), "setting: options.max_samples": (300, 200), "input: rows.n": (120, 121)}
    assert "deviation from the frozen plan: setting: seed" in capsys.readouterr().err
    assert json.loads((folder() / "plan.json").read_text(encoding="utf-8"))["frozen"] == record()["frozen"]
    assert audit(["report", str(folder()), "--format", "md,html,junit,eu-ai-act,github"]) == 0
    for file in ("report.md", "report.html", "report.xml", "report.eu-ai-act.html", "summary.md"):
        shown = (folder() / file).read_text(encoding="utf-8").replace("\\_", "_")
        assert "setting: options.max_samples" in shown, file
        assert record()["frozen"]["sha256"] in shown, file


def test_freezing_and_the_dry_run_ask_nothing(capsys: Capture) -> None:
    base = [*BASE, "--model", "python:rows_model:asked"]
    code, text = said(capsys, "tabular", *base, "--dry-run")
    assert (code, "Nothing was asked." in text) == (0, True)
    assert json_of(capsys, "tabular", *base, "--dry-run")["combinations"] == 2
    assert audit(["plan", "freeze", "tabular", *base, "--output", "plan.json"]) == 0
    assert audit(["tabular", "--plan", "plan.json", "--dry-run"]) == 0
    assert not Path("reports").exists()


def test_plans_of_the_other_kind_and_changed_ones_are_refused(capsys: Capture) -> None:
    frozen()
    for command, told in (
        (["plan", "freeze", "tabular", *BY_SEX, "--output", "plan.json"], "exists already"),
        (["run", "--plan", "plan.json"], "audit tabular --plan plan.json"),
    ):
        code, text = said(capsys, *command)
        assert (code, told in text) == (2, True)
    for plan, error, message in (
        ({"task": "sentiment"}, ConfigError, r"audit run --plan other\.json"),
        ({"kind": "tabular", "colour": "red"}, DataFileError, "unknown setting 'colour'"),
    ):
        body = freeze.freeze({"plan": plan, "inputs": {}, "fingerprints": {}})
        Path("other.json").write_text(freeze.dumps(body), encoding="utf-8")
        with pytest.raises(error, match=message):
            load_frozen(Path("other.json"))
    text = Path("plan.json").read_text(encoding="utf-8")
    Path("plan.json").write_text(text.replace('"seed": 7', '"seed": 8'), encoding="utf-8")
    with pytest.raises(DataFileError, match="changed after it was frozen"):
        load_frozen(Path("plan.json"))


def test_limits_and_directed_searches_say_what_is_known() -> None:
    def expected(*extra: str) -> dict[str, Any]:
        frozen(*extra)
        return dict(load_frozen(Path("plan.json")).expected)

    told = expected("--max-evaluations", "40", "--max-samples", "10000")
    assert (told["cases"], told["evaluations"]["at_most"]) == ({"at_least": 20, "at_most": 20}, 40)
    shown = expectations({**expected("--method", "sg"), "limits": {"max_calls": 2_000_000, "max_cost": 2.5}})
    assert "not known beforehand (how many rows its neighbourhoods ask about" in " ".join(shown)
    assert "Limits: max calls 2,000,000, max cost 2.5." in shown
    told = expected("--theta", "0.75")
    assert told["cases"]["at_most"] * told["combinations"] == told["evaluations"]["at_most"]
    told = expected("--method", "aequitas", "--set", "generated=30", "--set", "trials=0")
    assert told["cases"] == {"at_least": 1, "at_most": 30}


def test_hashes_of_code_and_files_are_recorded_and_checked(capsys: Capture) -> None:
    assert audit(["tabular", *BY_SEX, "--max-samples", "10000"]) == 0
    told = record()["provenance"]
    assert told["code"] == code_sha256()
    assert set(told["files"]) == {"schema.yaml", "pairs.csv", "votes.npz"}
    run, path = str(folder()), folder() / "pairs.csv"
    code, text = said(capsys, "verify", run)
    assert (code, "is the same as installed here" in text) == (0, True)
    path.write_bytes(path.read_bytes() + b"\n")
    code, text = said(capsys, "verify", run)
    assert (code, "pairs.csv" in text) == (1, True)
    path.unlink()
    assert audit(["verify", run]) == 1


# -- two runs -----------------------------------------------------------------------------------------------


def made(model: str, *extra: str) -> str:
    assert audit(["tabular", *BASE, "--model", f"python:rows_model:{model}", *extra]) == 0
    return str(folder())


def compared(a: str, b: str, capsys: Capture) -> tuple[dict[str, Any], dict[str, Any]]:
    """The comparison, and the row of its causal score."""
    value = json_of(capsys, "compare", a, b)
    return value, next((r for r in value["rates"] if r["format"].startswith("causal")), {})


def test_exact_scores_need_no_test_and_sets_are_matched(capsys: Capture) -> None:
    _, causal = compared(made("by_sex"), made("more"), capsys)
    assert (causal["test"], causal["change"]) == ("both exact", "worse")
    assert causal["difference"] == pytest.approx(1 / 6)
    search = ("--protected", "x,sex,z", "--theta", "0.3")
    value, _ = compared(made("by_sex", *search), made("never", *search), capsys)
    assert {gone["fate"] for gone in value["findings"]} == {"gone"}
    assert {gone["key"].rpartition("/")[2] for gone in value["findings"]} == {"x", "sex"}


def test_scores_without_an_interval_and_directed_finds_enter_no_test(capsys: Capture) -> None:
    extra = ("--protocol", "themis", "--max-samples", "400")
    a, b = made("never", *extra), made("more", *extra)
    _, causal = compared(a, b, capsys)
    assert causal["before"] == 0 < causal["after"]
    assert (causal["change"], causal["test"]) == ("untested", "")
    assert causal["reason"]
    assert audit(["compare", a, b, "--fail-on", "worse"]) == 0
    extra = ("--method", "aequitas", "--set", "generated=60", "--set", "trials=0")
    value, _ = compared(made("by_sex", *extra), made("more", *extra), capsys)
    assert sum("were searched for" in note for note in value["notes"]) == 2
    assert not [r for r in value["rates"] if r["p_value"] is not None]


def test_intervals_that_do_not_overlap_differ_and_reports_name_every_part(capsys: Capture) -> None:
    a, b = (made(model, "--max-samples", "10000") for model in ("by_sex", "more"))
    value, causal = compared(a, b, capsys)
    assert {r["test"] for r in value["rates"]} == {"intervals that do not overlap"}
    assert causal["change"] == "worse"
    assert compared(b, a, capsys)[1]["change"] == "better"
    assert compared(a, a, capsys)[1]["change"] == "unclear"
    assert audit(["compare", a, b, "--fail-on", "worse"]) == 1
    assert audit(["compare", b, a, "--fail-on", "worse,new"]) == 0
    for form in ("terminal", "md"):
        _, text = said(capsys, "compare", a, b, "--format", form, "--full")
        assert [part for part in ("Plans", "Scores", "Findings shown", "▲ worse") if part not in text] == []
    text_run = audit_texts("sentiment", model="vader", limit=2, out="reports").path
    code, text = said(capsys, "compare", a, str(text_run))
    assert (code, "is a search over rows of a table" in text) == (2, True)


# -- what leaves a run --------------------------------------------------------------------------------------


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_pairs_and_retraining_rows(place: Path, capsys: Capture) -> None:
    pytest.importorskip("sklearn", reason="the extra `tabular` is not installed")
    assert audit([*JOBS, *AEQUITAS]) == 0
    pairs = read_csv(folder() / "pairs.csv")
    assert len(pairs) == 3
    for row in pairs:
        assert row["changed"] == "sex"  # never the other protected column
        assert {row["sex A"], row["sex B"]} == {"f", "m"}
        assert row["group A"] == row["group B"]
        assert {row["label A"], row["label B"]} == {"no", "yes"}
        assert row["job"] == "'=x"  # no spreadsheet computes it
    for name in ("rows.csv", "rows.jsonl"):
        code, text = said(capsys, "augment", str(folder()), "--out", name)
        assert (code, "vote of three classifiers" in text) == (0, True)
    rows = [json.loads(line) for line in (place / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    for made in (rows, read_csv(place / "rows.csv")):
        assert len(made) == 3 * 4
        for size in (3, 4, 5):
            same = [row for row in made if int(row["size"]) == size]
            assert len({(row["sex"], row["group"]) for row in same}) == 4
            assert len({row["ok"] for row in same}) == 1  # one label a case
    (folder() / "votes.npz").write_bytes(b"PK\x03\x04 broken")
    code, text = said(capsys, "augment", str(folder()), "--out", "more.csv")
    assert (code, "audit verify" in text) == (2, True)


def test_a_majority_needs_no_vote() -> None:
    assert audit([*JOBS, *AEQUITAS, "--model", "python:rows_model:a_women"]) == 0
    found = augment_rows(folder(), share=2.0)
    assert (found.voted, found.left_out) == (0, 0)
    assert {row[-1] for row in found.rows} == {0}
    assert (found.cases, found.available) == (6, 12)
