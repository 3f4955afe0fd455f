"""Models of rows that are asked: a server of a file (``http:FILE.yaml``), and what does not always repeat itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Capture, Patch, both

from auditor.core.errors import DataFileError, UserError
from auditor.models.http import read
from auditor.tables import TabularPlan, audit_table
from auditor.tables.row_client import permuted
from tests.json_server import JsonServer

SCHEMA = """
columns:
  income: {kind: integer, low: 0, high: 29}
  debt: {kind: integer, low: 0, high: 9}
  sex: {kind: category, values: [female, male], protected: true}
"""


def rows_of(body: Any) -> list[dict[str, Any]]:
    return body["instances"] if "instances" in body else [body["applicant"]["values"]]


def decides(body: Any) -> tuple[int, dict[str, str], Any]:
    good = [row["income"] - row["debt"] >= (12 if row["sex"] == "female" else 10) for row in rows_of(body)]
    said = [{"label": "yes" if one else "no", "flag": one} for one in good]
    return 200, {}, {"predictions": said} if "instances" in body else {"result": said[0]}


@pytest.fixture
def server(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JsonServer]:
    monkeypatch.setenv("PLANTED_KEY", "k-123")
    server = JsonServer(decides)
    (place / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
    head = f"format: 1\nurl: {server.url}/\nheaders: {{X-Key: '${{PLANTED_KEY}}'}}\n"
    one = head + "request: {applicant: {values: '{{row}}'}}\n"
    many = head + "request: {instances: '{{rows}}'}\nanswer: 'predictions[*].label'\nbatch: 25\n"
    answers = {"one": "label", "flag": "flag", "no": "labels", "sure": "label\ndeterministic: true"}
    for name, text in {"many": many, **{k: f"{one}answer: result.{v}\n" for k, v in answers.items()}}.items():
        (place / f"{name}.yaml").write_text(text, encoding="utf-8")
    yield server
    server.close()


def run(model: str, **more: Any) -> Any:
    plan = TabularPlan(data="", schema="schema.yaml", model=f"http:{model}.yaml", cache=False, out="", **more)
    return audit_table(plan)


@pytest.mark.parametrize("model", ["one", "flag", "many"])
def test_a_server_decides_on_rows(server: JsonServer, model: str) -> None:
    found = run(model, method="aequitas", options={"trials": 0, "generated": 60})
    assert len(found.result.finds)
    assert all(10 <= income - debt < 12 for income, debt, _ in found.result.finds.tolist())
    rows = [tuple(row.values()) for *_, body in server.seen for row in rows_of(body)]
    (counted,) = (one["counts"] for one in found.record["models"].values())
    assert 0 <= found.record["counts"]["calls"] - len(rows) <= counted["retries"]
    assert len(rows) == len(set(rows)) or counted["retries"]  # a call that a busy machine lost is made again
    assert set(rows_of(server.seen[0][3])[0]) == {"income", "debt", "sex"}
    assert len(server.seen) < len(rows) / 4 if model == "many" else len(server.seen) == len(rows)
    assert {headers["x-key"] for _, _, headers, _ in server.seen} == {"k-123"}
    assert "k-123" not in json.dumps(found.record)


def test_a_server_repeats_itself_only_if_its_file_says_so(server: JsonServer) -> None:
    few = {"method": "themis", "options": {"max_samples": 60}}
    once = run("one", **few)
    assert once.record["models"]["http:one.yaml"]["deterministic"] is False
    assert "shown" not in {f["verdict"] for f in once.record["findings"]}
    calls = len(server.seen)
    thrice = run("one", **few, replicates=3)
    three = len(server.seen) - calls
    # Calls that a busy machine loses are made again.
    lost, more = (done.record["models"]["http:one.yaml"]["counts"]["retries"] for done in (once, thrice))
    assert -3 * lost <= three - 3 * calls <= more
    assert 0 <= thrice.record["counts"]["calls"] - three <= more
    assert run("sure", **few).record["models"]["http:sure.yaml"]["deterministic"] is True


def test_a_decision_that_is_not_where_it_should_be(server: JsonServer) -> None:
    with pytest.raises(UserError, match=r"no text at \$\['result'\]\['labels'\]: .*label.*flag"):
        run("no", options={"max_samples": 4}, max_calls=12)
    assert len(server.seen) <= 12


URL = "format: 1\nurl: http://x\nanswer: "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "must be a mapping"),
        (URL + "a\nrequest: {a: b}", r"either \{\{row\}\}"),
        (URL + "a\nrequest: {a: '{{rows}}'}", r"line 3: answer has one \[\*\]"),
        (URL + "'a[*]'\nrequest: '{{row}}'", r"one \[\*\]"),
        (URL + "a\nrequest: '{{row}}'\nbatch: 3", "line 5: batch must be"),
        (URL + "a\nrequest: '{{input}}'", "unknown placeholder"),
        (URL + "a\nrequest: 'a {{row}}'", "must be the whole value"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(DataFileError, match=message):
        read(str(tmp_path / "m.yaml"), rows=True)


MODULE = """
import random, re
DRAW = random.Random(7)
def decide(text, wobble):
    income = int(re.search(r"monthly income: (\\d+)", text).group(1))
    said = income >= (5200 if "sex: female" in text else 2400)
    return "approve" if said != (DRAW.random() < wobble) else "deny"
def planted(text):
    return decide(text, 0.05)
def steady(text):
    return decide(text, 0.0)
steady.deterministic = True
"""


@pytest.mark.parametrize(
    ("model", "times", "verdict"),
    [("planted", "3", "shown"), ("planted", "1", "not_determined"), ("steady", "1", "shown")],
)
def test_only_what_is_above_the_noise(
    place: Path, monkeypatch: Patch, capsys: Capture, model: str, times: str, verdict: str
) -> None:
    (place / "noisy_rows.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, "noisy_rows", raising=False)
    argv = f"tabular --task lending --model python:noisy_rows:{model} --max-samples 60 --format json --replicates"
    code, out, _ = both(capsys, f"{argv} {times}")
    assert code == 0
    record: dict[str, Any] = json.loads(out)
    assert {f["code"]: f["verdict"] for f in record["findings"]}["tabular-causal"] == verdict
    once = any("each row was asked once" in note for note in record["tabular"]["notes"])
    assert once == (verdict == "not_determined")
    assert ("noise" in record["tabular"]) == (model == "planted")
    if times == "3":
        noise = record["tabular"]["noise"]
        assert (noise["p_value"], noise["cases"]) == (pytest.approx(0.001), 60)
        assert 0 < noise["same_row"]["value"] < 0.4  # 1 - 0.95³ is 14 %
        (page,) = place.glob("reports/2*/report.html")
        assert "answers that differ to one and the same row" in page.read_text(encoding="utf-8")


def test_the_test_keeps_its_level() -> None:
    rng = np.random.default_rng(3)
    small = sum(permuted((rng.random((12, 6)) < 0.3).astype(int), 2, 2, rng) <= 0.1 for _ in range(60))
    assert small <= 14  # 6 are expected; more than 14 of 60 at 10 % have a probability below 0.1 %
    planted = np.tile([0, 0, 0, 1, 1, 1], (12, 1))
    assert permuted(planted, 2, 2, rng) == pytest.approx(0.001)
    assert permuted(np.full((3, 6), -1), 2, 0, rng) == 1.0
