"""Tables: what the user names exists, resumed runs count everything, and models and numbers are read or refused."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from commands import Capture, both, only, tells
from nursery import Server

pytest.importorskip("sklearn", reason="the extra `tabular` is not installed")
sio = pytest.importorskip("skops.io", reason="the extra `tabular` is not installed")

MODELS = """
import numpy as np
asked = []
def words(rows):
    asked.append(len(rows))
    return np.where(rows[:, 2] == "male", "Yes", "No")
def numbers(rows):
    return (rows[:, 2] == "male").astype(int)
def three(rows):
    return np.where(rows[:, 2] == "male", "Yes", np.where(rows[:, 1] > 9, "Perhaps", "No"))
def always(rows):
    return np.full(len(rows), "No")
def truth(rows):
    return rows[:, 2] == "male"
"""
SCHEMA = """target: loan
{more}columns:
  income: {income}
  years: {{kind: integer, low: 0, high: 19}}
  sex: {{kind: category, values: [female, male], protected: true}}
  job: {{kind: category, values: [clerk, cook]}}
"""
INCOME = "{kind: binned, edges: [40], values: [20, 60]}"


@pytest.fixture
def place(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with 80 rows about loans, the same rows with true and false, and functions that decide on them."""
    monkeypatch.syspath_prepend(str(place))
    rng = np.random.default_rng(3)
    lines = ["income,years,sex,job,loan"]
    for i in range(80):
        sex, income = ("female", "male")[i % 2], int(rng.integers(10, 90))
        shown = "" if i == 7 else f"{income}.5"
        loan = "Yes" if income + 20 * (i % 2) > 55 else "No"
        lines.append(f"{shown},{rng.integers(0, 20)},{sex},{('clerk', 'cook')[int(rng.integers(0, 2))]},{loan}")
    text = "\n".join(lines) + "\n"
    (place / "loans.csv").write_text(text)
    (place / "truth.csv").write_text(text.replace(",Yes\n", ",true\n").replace(",No\n", ",false\n"))
    (place / "deciders.py").write_text(MODELS)
    (place / "s.yaml").write_text(SCHEMA.format(more="", income=INCOME))
    yield place
    sys.modules.pop("deciders", None)


ROWS = "tabular --target loan --protected sex --data loans.csv --max-samples 50 "


def pipeline() -> Any:
    """An ordinary pipeline, not fitted: imputers, scaler, one column per category."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    words = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    columns = [("numbers", numbers, ["income", "years"]), ("words", words, ["sex", "job"])]
    return make_pipeline(ColumnTransformer(columns), LogisticRegression())


def saved(model: Any, path: str = "model.skops") -> Any:
    """Fit a model to the rows and save it."""
    import pandas as pd

    table = pd.read_csv("loans.csv")
    fitted = model.fit(table.drop(columns="loan"), table["loan"])
    sio.dump(fitted, path)
    return fitted


# -- values that a user names ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "option", "told"),
    [
        ("python:deciders:words", "--favourable Yess", "'Yess': no such label. Did you mean 'Yes'? There are: 'No'"),
        ("python:deciders:words", "--favourable Yess --max-evaluations 60", "Did you mean 'Yes'?"),
        ("python:deciders:words", "--schema typo.yaml", "--favourable 'Yess'"),
        ("python:deciders:numbers", "--favourable Yes", "'Yes': no such label. There are: '0', '1'."),
        ("sklearn:model.skops", "--favourable yes", "Did you mean 'Yes'? There are: 'No', 'Yes'."),
        ("sklearn:model.skops", "--favourable yes --dry-run", "Did you mean 'Yes'?"),
        ("python:deciders:truth", "--data truth.csv --favourable tru", "'tru': no such label. There are: '0', '1'."),
        ("python:deciders:words", "--target lon", "--target 'lon': no such column of loans.csv. Did you mean 'loan'?"),
        ("python:deciders:words", "--protected sexx", "--protected 'sexx': no such column of loans.csv. Did you mean"),
        ("python:deciders:words", "--schema s.yaml --protected sexx", "--protected 'sexx': no such column of the sch"),
    ],
)
def test_what_the_data_lack_is_refused(place: Path, capsys: Capture, model: str, option: str, told: str) -> None:
    saved(pipeline())
    unknown = INCOME.replace("60]", "60, .nan]")
    (place / "typo.yaml").write_text(SCHEMA.format(more="favourable: Yess\n", income=unknown))
    tells(capsys, f"{ROWS} --model {model} {option}", told, code=2)
    assert not list(place.glob("reports/2*/run.json"))


@pytest.mark.parametrize("option", ["--favourable aprove", "--favourable yes"])
def test_a_task_knows_its_labels(place: Path, capsys: Capture, option: str) -> None:
    argv = f"tabular --task lending --model openai:one --base-url http://127.0.0.1:9/v1 --max-calls 9 {option}"
    tells(capsys, argv, "no such label", "There are: 'approve', 'deny'.", code=2)


@pytest.mark.parametrize(
    ("rest", "shown"),
    [
        ("--model python:deciders:words --favourable Yes", "Label Yes goes to 0 %"),
        ("--model python:deciders:numbers --favourable 1", "Label 1 goes to 0 %"),
        ("--model sklearn:model.skops --favourable Yes", "Label Yes goes to"),
        ("--model python:deciders:truth --data truth.csv --favourable TRUE", "Label True goes to 0 %"),
        ("--model python:deciders:three --favourable Perhaps", "Label Perhaps goes to"),  # no label of the data
        ("--model python:deciders:always --favourable Yes", "findings: 4 not determined"),  # a label of the data
    ],
)
def test_what_there_is_is_counted(place: Path, capsys: Capture, rest: str, shown: str) -> None:
    saved(pipeline())
    tells(capsys, ROWS + rest, shown)


def test_the_first_screen_says_why_there_is_no_group_score(place: Path, capsys: Capture) -> None:
    told = "No group score: the model returned 3 labels (No, Perhaps, Yes); say which one is good"
    tells(capsys, ROWS + "--model python:deciders:three", told)


# -- numbers that are none ---------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e999"])
@pytest.mark.parametrize("option", ["--data beyond.csv", "schema"])
def test_an_infinite_number_is_refused_before_any_call(place: Path, capsys: Capture, value: str, option: str) -> None:
    lines = (place / "loans.csv").read_text().splitlines()
    lines[5] = value + lines[5][lines[5].index(",") :]
    (place / "beyond.csv").write_text("\n".join(lines) + "\n")
    schema = "tabular schema beyond.csv --target loan --protected sex"
    told = f"beyond.csv, row 5: column 'income' is {value}, not a finite number (1 such row)"
    argv = schema if option == "schema" else f"{ROWS} --model python:deciders:words {option}"
    tells(capsys, argv, told, code=2)
    import deciders

    assert deciders.asked == []


@pytest.mark.parametrize(
    ("income", "told"),
    [
        ("{kind: category, values: [1.5, .inf]}", "field columns.income: inf is not a finite number"),
        ("{kind: category, values: [.nan, 1]}", "field columns.income: nan is not a finite number"),
        ("{kind: binned, edges: [.nan], values: [1, 2]}", "field columns.income: nan is not a finite number"),
        ("{kind: binned, edges: [.inf], values: [1, 2]}", "field columns.income: inf is not a finite number"),
        ("{kind: integer, low: 0, high: 99999999999999999999999999}", "are too many values"),
    ],
)
def test_a_schema_has_finite_numbers(place: Path, capsys: Capture, income: str, told: str) -> None:
    (place / "s.yaml").write_text(SCHEMA.format(more="", income=income))
    tells(capsys, "tabular --schema s.yaml --model python:deciders:words --max-samples 50", told, code=2)


@pytest.mark.parametrize("option", ["epsilon=.inf", "epsilon=.nan", "theta=.inf"])
def test_options_are_finite_numbers(place: Path, capsys: Capture, option: str) -> None:
    argv = f"tabular --target loan --protected sex --data loans.csv --model python:deciders:words --set {option}"
    tells(capsys, argv, "must be a finite number", code=2)


# -- skops files -------------------------------------------------------------------------------------------


def further(name: str) -> Any:
    """A pipeline with parts that skops asks about."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, VotingClassifier
    from sklearn.feature_selection import SelectKBest, f_classif
    from sklearn.impute import KNNImputer, SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    plain, line = pipeline(), LogisticRegression()
    last: dict[str, Any] = {
        "neighbours": KNeighborsClassifier(3),
        "forest": RandomForestClassifier(3, random_state=0),
        "boosting": HistGradientBoostingClassifier(max_iter=3),
        "calibrated": CalibratedClassifierCV(line, cv=2),
        "voting": VotingClassifier([("line", line), ("again", LogisticRegression(C=0.1))]),
        "grid": GridSearchCV(line, {"C": [0.1, 1.0]}, cv=2),
    }
    if name in last:
        return make_pipeline(plain[0], last[name])
    if name == "selected":
        numbers, others = make_column_selector(dtype_include=np.number), make_column_selector(dtype_exclude=np.number)
        chosen = make_column_transformer((KNNImputer(), numbers), (OrdinalEncoder(), others))
        return make_pipeline(chosen, SelectKBest(f_classif, k=2), line)
    rest = make_column_transformer((OneHotEncoder(), ["sex", "job"]), remainder=SimpleImputer())
    return make_pipeline(rest, line)


@pytest.mark.parametrize(
    "name", ["plain", "neighbours", "forest", "boosting", "calibrated", "voting", "grid", "selected", "remainder"]
)
def test_ordinary_pipelines_load(place: Path, capsys: Capture, name: str) -> None:
    fitted = saved(pipeline() if name == "plain" else further(name))
    (place / "own.py").write_text(
        "import skops.io as sio\n"
        "model = sio.load('model.skops', trusted=sio.get_untrusted_types(file='model.skops'))\n"
        "def decide(rows):\n    return model.predict(rows)\n"
        "decide.frame = True\n"
    )
    scores = []
    for model in ("sklearn:model.skops", "python:own:decide"):
        code, out, err = both(capsys, f"{ROWS} --favourable Yes --format json --max-samples 1000 --model {model}")
        assert code == 0, err
        scores.append(json.loads(out)["tabular"]["scores"])
    sys.modules.pop("own", None)
    assert scores[0] == scores[1]
    assert hasattr(fitted, "predict")


Edit = Callable[[dict[str, Any]], Any]


def without(key: str) -> Edit:
    """Make an edit that takes ``key`` from the object at the top."""
    return lambda top: {k: v for k, v in top.items() if k != key}


@pytest.mark.parametrize(
    "edit",
    [
        without("__class__"), without("__module__"), without("__loader__"), without("content"),
        lambda top: top | {"__class__": "NoSuchClass"}, lambda top: top | {"__module__": "sklearn.no_such_module"},
        lambda top: top | {"__module__": 7}, lambda top: top | {"__loader__": "NoSuchNode"},
        lambda top: top | {"content": []}, lambda top: top | {"content": 3}, lambda top: [top], lambda top: [],
        lambda top: {}, lambda top: "text", lambda top: None,
    ],
)  # fmt: skip
def test_a_skops_file_that_is_none_is_refused(place: Path, capsys: Capture, edit: Edit) -> None:
    saved(pipeline())
    with ZipFile("model.skops") as whole, ZipFile("broken.skops", "w") as broken:
        for entry in whole.infolist():
            data = whole.read(entry)
            if entry.filename == "schema.json":
                data = json.dumps(edit(json.loads(data))).encode()
            broken.writestr(entry.filename, data)
    assert "Traceback" not in tells(capsys, f"{ROWS} --model sklearn:broken.skops", "broken.skops", code=2)


def test_a_function_inside_a_skops_file_is_still_refused(place: Path, capsys: Capture) -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    sio.dump(make_pipeline(FunctionTransformer(shlex.quote), pipeline()), "model.skops")
    tells(capsys, f"{ROWS} --model sklearn:model.skops", "not known to be harmless: shlex.quote", code=2)


# -- a run that is resumed ---------------------------------------------------------------------------------


@pytest.mark.e2e
@pytest.mark.slow
def test_a_resumed_run_counts_the_tokens_and_cost_of_all_its_parts(place: Path, capsys: Capture) -> None:
    with Server(lambda model, text: "deny" if "female" in text else "approve", delay_s=0) as server:
        base = f"tabular --task lending --protected sex --model openai:one --base-url {server.url} --concurrency 2"
        tells(capsys, f"{base} --no-cache --out runs --max-samples 30 --price 2000,4000 --max-calls 20", code=3)
        path = only("runs/2*/run.json")
        tells(capsys, f"resume {path.parent} --max-calls 40 --yes", code=3)
        tells(capsys, f"resume {path.parent} --max-calls 1000 --yes")
    texts = [json.loads(asked.removeprefix("one"))[-1]["content"] for asked in server.asked.elements()]
    calls, tokens = len(texts), sum(len(text) // 4 for text in texts)  # as the server counts
    record = json.loads(path.read_text())
    counts = record["models"]["openai:one"]["counts"]
    assert (counts["calls"], counts["tokens_in"], counts["tokens_out"]) == (calls, tokens, calls)
    assert calls > 60
    costs = [where["cost_usd"] for where in (record["counts"], counts) if where.get("cost_usd") is not None]
    assert costs == [pytest.approx((2 * tokens + 4 * calls) / 1000)]
