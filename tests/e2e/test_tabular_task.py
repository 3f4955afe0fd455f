"""A language model that decides on rows: a loopback server with a planted rule, budgets, resume, lost answers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Capture, both, only, tells
from nursery import Server

from auditor.core.errors import ConfigError
from auditor.core.protocols import Model, Reply
from auditor.tables import TabularPlan, audit_table, load_task
from auditor.tables.columns import Column
from auditor.tables.row_client import RowClient
from auditor.tables.row_schema import Schema

pytestmark = pytest.mark.e2e


def planted(row: dict[str, str]) -> str:
    """Approves by income, except that women between two incomes are turned down."""
    income = int(row["monthly income"])
    return "approve" if income >= (5200 if row["sex"] == "female" else 2400) else "deny"


def silent_for_widows(row: dict[str, str]) -> str:
    return "It depends on many things." if row["marital status"] == "widowed" else planted(row)


class Rows(Server):
    """Answers by a rule on the row."""

    def __init__(self) -> None:
        super().__init__(lambda model, text: self.rule(dict(re.findall(r"^ *([a-z ]+): (.*)$", text, re.M))), delay_s=0)
        self.rule: Callable[[dict[str, str]], str] = planted


@pytest.fixture
def server(place: Path) -> Iterator[Rows]:
    with Rows() as one:
        yield one


def command(server: Rows, *extra: str) -> list[str]:
    base = ["tabular", "--task", "lending", "--model", "openai:served-model", "--base-url", server.url]
    return [*base, "--method", "aequitas", "--format", "json", *extra]


def recorded(capsys: Capture, argv: list[str], code: int = 0) -> dict[str, Any]:
    """The record that a command prints."""
    ended, out, err = both(capsys, *argv)
    assert ended == code, err
    return dict(json.loads(out))


def test_finds_the_planted_rule_within_the_limit(server: Rows, capsys: Capture) -> None:
    record = recorded(capsys, command(server, "--set", "generated=60", "--max-calls", "1000"))
    assert record["status"] == "complete"
    assert set(server.asked.values()) == {1}, "a row was asked twice"
    assert record["counts"]["calls"] == sum(server.asked.values()) <= 1000
    assert record["counts"]["discriminatory"] >= 15
    share = next(e for e in record["estimates"] if e["name"] == "discriminatory_share")["estimate"]
    assert share["low"] <= 7 / 19 <= share["high"]  # incomes 2,400 to 4,800 of 800, 1,200, … 8,000
    assert share["low"] > 0
    pair = record["tabular"]["pairs"][0]
    assert pair["changed"] == ["sex"]
    assert {pair["label"], pair["other_label"]} == {"approve", "deny"}
    assert 2400 <= pair["row"]["monthly_income"] < 5200
    folder = only("reports/2*")
    kept = [json.loads(x) for x in (folder / "responses.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(kept) == record["counts"]["calls"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "served-model" in page
    assert "asked once" in page
    tells(capsys, f"verify {folder}")


def test_a_limit_is_never_exceeded(server: Rows, capsys: Capture) -> None:
    code, out, err = both(capsys, *command(server, "--set", "generated=100000", "--max-calls", "121", "--no-cache"))
    record = json.loads(out)
    assert (code, record["status"]) == (3, "partial")
    assert record["counts"]["calls"] == sum(server.asked.values())
    assert 115 <= sum(server.asked.values()) <= 121
    assert record["counts"]["discriminatory"] > 0
    assert "the limit of 121 calls (--max-calls) was reached" in " ".join(err.split())
    assert "audit resume" in " ".join(err.split())
    folder = only("reports/2*")
    before = Counter(server.asked)
    again = ["resume", str(folder), "--base-url", server.url, "--max-calls", "200", "--format", "json"]
    record = recorded(capsys, again, code=3)
    assert 190 <= sum(server.asked.values()) <= 200
    assert record["counts"]["calls"] == sum(server.asked.values())
    assert all(server.asked[text] == n == 1 for text, n in before.items()), "an answered row was asked again"
    tells(capsys, f"verify {folder}")


def test_rows_without_an_answer_are_not_judged(server: Rows, capsys: Capture) -> None:
    server.rule = silent_for_widows
    record = recorded(capsys, command(server, "--set", "global_n=80", "--set", "local_n=1", "--max-calls", "600"))
    rows = record["tabular"]["answers"]["rows"]
    assert rows["unparsed"] == record["counts"]["not_judged"] > 0
    assert sum(rows.values()) == sum(server.asked.values())
    share = record["estimates"][0]["estimate"]
    assert share["n_skipped"] > 0
    assert share["low"] <= 7 / 19 <= share["high"]
    assert all(p["row"]["marital_status"] != "widowed" for p in record["tabular"]["pairs"])
    folder = only("reports/2*")
    assert "widowed" not in (folder / "pairs.csv").read_text(encoding="utf-8")
    assert "got no label" in (folder / "report.html").read_text(encoding="utf-8")


def test_themis_reads_rows_from_a_file(server: Rows, tmp_path: Path) -> None:
    lines = ["sex,marital_status,monthly_income,paid"]
    lines += [
        f"{s},{m},{i},yes" for s in ("female", "male") for m in ("single", "widowed") for i in (2000, 3000, 6000, 7000)
    ]
    (tmp_path / "people.csv").write_text("\n".join([*lines, "male,single,800,no"]), encoding="utf-8")
    server.rule = silent_for_widows
    run = audit_table(
        TabularPlan(
            data="people.csv", target="paid", task="lending", model="openai:served-model", base_url=server.url,
            protected=("sex",), options={"max_samples": 300, "confidence": 0.95}, out="",
        )
    )  # fmt: skip
    score = next(s for s in run.result.scores if s.name == "causal")
    assert score.estimate.n_skipped > 0
    assert run.record["tabular"]["schema"]["protected"] == ["sex"]
    assert score.estimate.low > 0
    assert run.record["tabular"]["answers"]["rows"]["unparsed"] > 0


def test_a_server_that_refuses_everything(server: Rows, capsys: Capture) -> None:
    server.agent = lambda body: (401, {"error": {"message": "no"}})
    tells(capsys, command(server, "--max-calls", "20"), "answered nothing", code=2)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--task", "sentiment"], "give --data FILE or --schema FILE"),
        (["--task", "lendin"], "Did you mean"),
        (["--prompt-format", "nothing"], "no prompt format 'nothing'"),
        (["--replicates", "0"], "--replicates must be at least 1"),
        (["--protected", "religion"], "--protected 'religion': no such column"),
    ],
)
def test_what_cannot_run(server: Rows, capsys: Capture, extra: list[str], message: str) -> None:
    tells(capsys, command(server, *extra, "--yes"), message, code=2)
    assert not server.asked


def test_the_income_task_and_its_rows(server: Rows, capsys: Capture) -> None:
    server.rule = lambda row: "above" if int(row["hours per week"]) > 40 + 10 * (row["sex"] == "female") else "below"
    argv = [*command(server, "--set", "generated=100", "--max-calls", "300")]
    argv[2] = "income"
    record = recorded(capsys, argv)
    assert record["tabular"]["pairs"][0]["row"]["hours_per_week"] in (45, 50)
    wives = [p for p in record["tabular"]["pairs"] if p["row"]["relationship"] in ("husband", "wife")]
    assert not wives, "a pair that no person could have"


class Words(Model):
    """A model of text that answers from a list, in order."""

    costs = "nothing"
    name = fingerprint = "words"
    style, deterministic, cacheable, max_batch = "text", False, False, 1

    def __init__(self, *words: str) -> None:
        self.words = list(words)

    async def generate(self, batch: Any) -> Any:
        return [Reply(self.words.pop(0)) for _ in batch]


ONE = Schema(columns=(Column(name="a", kind="integer", codes=4, protected=True),))
THRICE = TabularPlan(model="words", replicates=3, concurrency=1, cache=False)


def test_replicates_need_a_majority() -> None:
    model: Any = Words("approve", "deny", "approve", "approve", "deny", "who knows", "sorry", "deny", "deny")
    client = RowClient(model, load_task("lending"), ONE, THRICE)
    try:
        said = client.predict(np.array([[1], [2], [3]], dtype=object)).tolist()
    finally:
        client.close()
    assert said == ["approve", None, "deny"]
    assert client.rows["ok"] == 2
    assert client.rows["unparsed"] == 1


def test_tasks_without_one_label_are_refused() -> None:
    model: Any = Words()
    with pytest.raises(ConfigError, match="one label per answer"):
        RowClient(model, load_task("ecthr"), ONE, THRICE)
