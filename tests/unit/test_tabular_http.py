"""``http:FILE.yaml``: rows decided by a server on the loopback interface."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from auditor.cli.main import run as audit
from auditor.core.errors import DataFileError, UserError
from auditor.models.http_file import read
from auditor.tables import TabularPlan, audit_table

SCHEMA = """
columns:
  income: {kind: integer, low: 0, high: 29}
  debt: {kind: integer, low: 0, high: 9}
  sex: {kind: category, values: [female, male], protected: true}
"""


def approves(row: dict[str, Any]) -> bool:
    return bool(row["income"] - row["debt"] >= (12 if row["sex"] == "female" else 10))


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.rows: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.requests = 0
        self.lock = threading.Lock()
        self.status = 200


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        many = body.get("instances")
        rows = many if many is not None else [body["applicant"]["values"]]
        with self.server.lock:
            self.server.rows += rows
            self.server.requests += 1
            self.server.keys.add(str(self.headers.get("X-Key")))
        said = [{"label": "yes" if approves(row) else "no", "flag": approves(row)} for row in rows]
        data = json.dumps({"predictions": said} if many is not None else {"result": said[0]}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Server]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLANTED_KEY", "k-123")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = Server()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    (tmp_path / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    one = (
        f"format: 1\nurl: {url}\nheaders: {{X-Key: '${{PLANTED_KEY}}'}}\n"
        "request: {applicant: {values: '{{row}}'}}\n"
    )
    (tmp_path / "one.yaml").write_text(one + "answer: result.label\n", encoding="utf-8")
    (tmp_path / "flag.yaml").write_text(one + "answer: result.flag\n", encoding="utf-8")
    (tmp_path / "wrong.yaml").write_text(one + "answer: result.labels\n", encoding="utf-8")
    many = f"format: 1\nurl: {url}\nrequest: {{instances: '{{{{rows}}}}'}}\nanswer: 'predictions[*].label'\nbatch: 25\n"
    (tmp_path / "many.yaml").write_text(many, encoding="utf-8")
    yield tmp_path, server
    server.shutdown()
    thread.join()
    server.server_close()


def plan(model: str, **more: Any) -> TabularPlan:
    return TabularPlan(data="", schema="schema.yaml", model=f"http:{model}.yaml", cache=False, out="", **more)


@pytest.mark.parametrize("model", ["one", "flag", "many"])
def test_a_server_decides_on_rows(place: tuple[Path, Server], model: str) -> None:
    server = place[1]
    run = audit_table(plan(model, method="aequitas", options={"trials": 0, "generated": 60}))
    assert run.result.finds is not None
    assert len(run.result.finds)
    for income, debt, _ in run.result.finds.tolist():
        assert 10 <= income - debt < 12
    asked = {tuple(row.values()) for row in server.rows}
    assert len(server.rows) == len(asked) == run.record["counts"]["calls"]
    assert server.rows[0].keys() == {"income", "debt", "sex"}
    if model == "many":
        assert server.requests < len(server.rows) / 4
    else:
        assert server.keys == {"k-123"}
    assert "k-123" not in json.dumps(run.record)


def test_a_server_repeats_itself_only_if_its_file_says_so(place: tuple[Path, Server]) -> None:
    folder, server = place
    once = audit_table(plan("one", method="themis", options={"max_samples": 60}))
    assert once.record["models"]["http:one.yaml"]["deterministic"] is False
    assert "shown" not in {f["verdict"] for f in once.record["findings"]}
    calls = len(server.rows)
    thrice = audit_table(plan("one", method="themis", options={"max_samples": 60}, replicates=3))
    assert len(server.rows) - calls == 3 * calls == thrice.record["counts"]["calls"]
    (folder / "sure.yaml").write_text((folder / "one.yaml").read_text() + "deterministic: true\n")
    sure = audit_table(plan("sure", method="themis", options={"max_samples": 60}))
    assert sure.record["models"]["http:sure.yaml"]["deterministic"] is True


def test_calls_are_limited_and_a_run_goes_on(place: tuple[Path, Server], capsys: pytest.CaptureFixture[str]) -> None:
    folder, server = place
    call = ["tabular", "--schema", "schema.yaml", "--model", "http:one.yaml", "--method", "aequitas", "--no-cache"]
    call += ["--set", "trials=0", "--set", "generated=80"]
    assert audit([*call, "--max-calls", "40", "--out", "runs"]) == 3
    assert "audit resume" in capsys.readouterr().err.replace("\n", " ")
    assert len(server.rows) == 40
    run = next(p for p in (folder / "runs").iterdir() if p.is_dir())
    again = ["resume", str(run), "--max-calls", "1000"]
    assert audit(again) == 2  # the folder names where rows would be sent
    assert "--model http:one.yaml" in " ".join(capsys.readouterr().err.split())
    assert len(server.rows) == 40
    assert audit([*again, "--model", "http:one.yaml"]) == 0
    said = capsys.readouterr().out
    assert "rows were asked" in said
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert record["status"] == "complete"
    assert len({tuple(row.values()) for row in server.rows}) == len(server.rows) == record["counts"]["calls"]


def test_a_decision_that_is_not_where_it_should_be(place: tuple[Path, Server]) -> None:
    with pytest.raises(UserError, match=r"nothing at \$\['result'\]\['labels'\]; there: label, flag"):
        audit_table(plan("wrong", options={"max_samples": 4}, max_calls=12))
    assert len(place[1].rows) <= 12


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
