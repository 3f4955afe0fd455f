"""``http:FILE.yaml``: rows decided by a server on the loopback interface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.core.errors import DataFileError, UserError
from auditor.models.http_file import read
from auditor.tables import TabularPlan, audit_table
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
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JsonServer]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLANTED_KEY", "k-123")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = JsonServer(decides)
    (tmp_path / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
    head = f"format: 1\nurl: {server.url}/\nheaders: {{X-Key: '${{PLANTED_KEY}}'}}\n"
    one = head + "request: {applicant: {values: '{{row}}'}}\n"
    many = head + "request: {instances: '{{rows}}'}\nanswer: 'predictions[*].label'\nbatch: 25\n"
    files = {"many": many, "sure": one + "answer: result.label\ndeterministic: true\n"}
    files |= {
        name: f"{one}answer: result.{key}\n" for name, key in (("one", "label"), ("flag", "flag"), ("no", "labels"))
    }
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    yield server
    server.close()


def asked(server: JsonServer) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for *_, body in server.seen for row in rows_of(body)]


def run(model: str, **more: Any) -> Any:
    return audit_table(
        TabularPlan(data="", schema="schema.yaml", model=f"http:{model}.yaml", cache=False, out="", **more)
    )


@pytest.mark.parametrize("model", ["one", "flag", "many"])
def test_a_server_decides_on_rows(server: JsonServer, model: str) -> None:
    found = run(model, method="aequitas", options={"trials": 0, "generated": 60})
    assert len(found.result.finds)
    assert all(10 <= income - debt < 12 for income, debt, _ in found.result.finds.tolist())
    rows = asked(server)
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


URL = "format: 1\nurl: http://x\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "must be a mapping"),
        (URL + "answer: a\nrequest: {a: b}", r"either \{\{row\}\}"),
        (URL + "answer: a\nrequest: {a: '{{rows}}'}", r"line 3: answer has one \[\*\]"),
        (URL + "answer: 'a[*]'\nrequest: '{{row}}'", r"one \[\*\]"),
        (URL + "answer: a\nrequest: '{{row}}'\nbatch: 3", "line 5: batch must be"),
        (URL + "answer: a\nrequest: '{{input}}'", "unknown placeholder"),
        (URL + "answer: a\nrequest: 'a {{row}}'", "must be the whole value"),
    ],
)
def test_files_that_are_wrong(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(DataFileError, match=message):
        read(str(tmp_path / "m.yaml"), rows=True)
