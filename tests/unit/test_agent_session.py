"""Sessions: what planners may ask for, limits, levels, reports that stay text, sessions that were cut off."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from auditor import SourceText, agent
from auditor.agent import figures as measured
from auditor.agent import session_report
from auditor.agent.texts import Pool
from auditor.agent.texts import scan as scan_texts
from auditor.agent.tools import DryRun, asked
from auditor.agent.values import Entry, Figures, Record, Request, Row
from auditor.cli.main import run as cli
from auditor.core.errors import AuthFailed, CallError, ConfigError, RunFolderError, UserError
from auditor.core.plan import Plan
from auditor.core.protocols import Reply
from auditor.core.types import ClaimVerdict, Usage
from auditor.core.types import Request as Question
from auditor.models.budget import Price
from auditor.report import html, markdown, terminal
from auditor.report.page import Page
from auditor.testing.planted import Planted

GOAL = "Do film reviews by women get another sentiment?"


def texts(n: int = 16) -> list[SourceText]:
    return [
        SourceText(id=f"s{i}", text=f"A man in row {i} liked the film. He bought the book and the coat in the morning.")
        for i in range(n)
    ]


def quick(out: Path, model: Any = None, goal: str = GOAL, **options: Any) -> agent.AgentResult:
    chosen: dict[str, Any] = {"data": texts(), "cache": False} | options
    return agent.run(goal, model=model or Planted(base="constant"), out=out, **chosen)


# -- what a planner may ask for ------------------------------------------------------------------------


def checked(values: dict[str, Any]) -> Request:
    return asked(DryRun, "dry_run", values).checked()


@pytest.mark.parametrize(
    "values",
    [
        {"purpose": "pilot", "texts": 10, "model": "python:os:system"},
        {"purpose": "pilot", "texts": 10, "data": "/etc/hosts"},
        {"purpose": "pilot", "texts": 10, "out": "elsewhere"},
        {"purpose": "pilot", "texts": 10, "grammar": "../x.yaml"},
        {"purpose": "pilot", "texts": 10, "parser": "x"},
        {"purpose": "pilot", "texts": 10, "delta": 0.5},
        {"purpose": "pilot", "texts": 10, "max_calls": 10**9},
        {"purpose": "pilot", "texts": "10"},
        {"purpose": "pilot", "texts": True},
        {"purpose": "pilot", "texts": 0},
        {"purpose": "pilot", "texts": 10**9},
        {"purpose": "pilot", "texts": 1.5},
        {"purpose": "other", "texts": 10},
        {"purpose": ["pilot"], "texts": 10},
        {"purpose": "pilot"},
        {"texts": 10},
        {"purpose": "pilot", "texts": 10, "attributes": "gender"},
        {"purpose": "pilot", "texts": 10, "attributes": []},
        {"purpose": "pilot", "texts": 10, "attributes": ["../gender"]},
        {"purpose": "pilot", "texts": 10, "attributes": [["gender"]]},
        {"purpose": "pilot", "texts": 10, "order": 9},
        {"purpose": "pilot", "texts": 10, "insertions": True},
        {"purpose": "pilot", "texts": 10, "groups": ["gender:female"], "suite": "grammar"},
        {"purpose": "pilot", "texts": 10, "suite": "hinter"},
    ],
    ids=str,
)
def test_only_whitelisted_fields_in_their_ranges(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        checked(values)


def test_a_proper_request_is_taken() -> None:
    values = {"purpose": "fresh", "texts": 10, "attributes": ["gender", "age", "gender"], "replicates": None}
    request = checked(values)
    assert request == Request(purpose="fresh", texts=10, attributes=("age", "gender"))
    assert checked(request.as_dict()) == request


def test_a_session_of_version_0_2_can_still_be_read(tmp_path: Path) -> None:
    model = Planted(additive={"she|woman": 1.0}, base="constant")
    result = quick(tmp_path, model, data=texts(60), max_calls=900)
    told, record = result.to_text(full=True), json.loads((result.path / "session.json").read_text(encoding="utf-8"))
    for run in record["runs"]:
        run["request"] |= {"insertions": False, "scope": "text"}
        run |= {"reasons": {}, "said": {}}
        for row in run["figures"]["sets"]:
            run["reasons"][row["finding"]] = [row["why"]]
            run["said"][row["finding"]] = "a sentence"
    del record["options"]
    for row in (r for run in record["runs"] for r in run["figures"]["sets"]):
        earlier(row)
    for question in record["questions"]:
        earlier(question["row"])
    (result.path / "session.json").write_text(json.dumps(record), encoding="utf-8")
    again = agent.load(result.path).to_text(full=True)
    assert " ".join(again.split()).startswith(" ".join(told.split())[:200].partition("Women")[0].strip())
    assert "of the variants changed the answer, on" in again.partition("Verdicts of fresh runs")[0]
    assert again.partition("Verdicts of fresh runs")[2] == told.partition("Verdicts of fresh runs")[2]


def earlier(row: dict[str, Any]) -> None:
    """Make a row of a record one of version 0.2."""
    row["intervals"] = {name: row[name] for name in ("placebo", "noise")}
    row |= {name: row[name] and row[name]["value"] for name in ("placebo", "noise")}
    for name in ("why", "said"):
        del row[name]


# -- texts and levels ----------------------------------------------------------------------------------


def test_the_order_of_texts_is_by_seed_and_equal_texts_count_once() -> None:
    given = [*texts(20), *texts(3)]
    first, again, other = Pool.of(given, 7), Pool.of(list(reversed(given)), 7), Pool.of(given, 8)
    assert len(first.seeds) == 20
    assert [s.text for s in first.seeds] == [s.text for s in again.seeds] != [s.text for s in other.seeds]
    taken = [s.text for _ in range(3) for s in first.fresh(8)]
    assert len(taken) == len(set(taken)) == 20
    assert first.left == 0


def test_texts_are_looked_through_once_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def scan(plan: Plan, of: Pool) -> Any:
        looked.append(len(of.seeds))
        return scan_texts(plan, of)

    monkeypatch.setattr("auditor.agent.session.texts.scan", scan)
    cold = [SourceText(id=f"c{i}", text=f"The weather in row {i} was cold.") for i in range(20)]
    both = "Do film reviews about old women get another sentiment?"
    told = agent.outline(both, model=Planted(base="constant"), data=[*texts(), *cold])
    assert looked == [36]
    assert told["texts"]["usable"] == 16


def test_groups_that_few_texts_name_together_come_from_the_grammar() -> None:
    def suite(goal: str, **options: Any) -> tuple[str, str]:
        told = agent.outline(goal, model=Planted(base="constant"), **options)
        return told["pilot"]["request"]["suite"], told["steps"][0]["reason"]

    older_women = "Does the hiring model treat older women worse?"
    assert suite(older_women) == ("grammar", "too few texts name the attributes together: cases come from the grammar")
    # Side by side they are asked alone; the user's texts are the ones that are meant; a grammar has not all words.
    assert suite("Does the hiring model treat women and older applicants worse?")[0] == "mutation"
    assert suite(older_women, data=texts())[0] == "mutation"
    assert suite("Does the hiring model treat old gay people worse?")[0] == "mutation"


def test_few_texts_about_a_joint_group_are_told(tmp_path: Path) -> None:
    both = [SourceText(id=f"b{i}", text=f"The old man in row {i} liked the good film.") for i in range(8)]
    plain = [SourceText(id=f"w{i}", text=f"She sat in row {i} and liked the good film.") for i in range(40)]
    goal = "Do film reviews about old women get another sentiment?"
    found = quick(tmp_path, goal=goal, data=[*both, *plain])
    told = found.to_text()
    assert re.search(r"\d of 48 texts name age and gender together, and others that do", " ".join(told.split()))


def test_of_few_texts_about_a_named_group_the_first_test_has_most() -> None:
    """Two groups side by side, of which one stands in few texts."""
    women = [SourceText(id=f"w{i}", text=f"The woman in row {i} liked it.") for i in range(200)]
    old = [SourceText(id=f"o{i}", text=f"The old man in row {i} liked it.") for i in range(40)]
    pool = Pool.of([*women, *old], 7)
    before = [s.text for s in pool.seeds]
    pool.keep({s.text: "old" in s.text for s in pool.seeds}, pilot=lambda n: 40)
    assert [s.text for s in pool.fresh(40)] == before[:40]  # the pilot has its share, no more
    asked = sum("old" in s.text for s in pool.fresh(60))
    assert asked == sum("old" in text for text in before[40:])
    many = Pool.of([*women[:30], *old], 7)
    kept = [s.text for s in many.seeds]
    many.keep({s.text: "old" in s.text for s in many.seeds}, pilot=lambda n: 12)
    assert [s.text for s in many.seeds] == kept


def row(verdict: ClaimVerdict, p: float | None) -> Row:
    return Row(finding="F001", model="M1", attributes=("age",), verdict=verdict, p_adjusted=p, seeds=9, seeds_changed=3)


def entry(name: str, fresh: bool, number: int, one: Row) -> Entry:
    request = Request(purpose="fresh" if fresh else "pilot", texts=9)
    return Entry(
        name=name, purpose=request.purpose, request=request, reason="", texts=9, counts_as_fresh=fresh,
        level=measured.level(number) if fresh else None, figures=Figures(complete=True, counts={}, sets=(one,)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("runs", "verdict", "run"),
    [
        ([entry("R1", False, 0, row("shown", 0.001))], "not_tested", None),
        ([entry("R1", True, 1, row("shown", 0.02))], "shown", "R1"),
        ([entry("R1", True, 1, row("shown", 0.03))], "not_determined", "R1"),
        ([entry("R1", True, 1, row("not_determined", 0.3)), entry("R2", True, 2, row("shown", 0.02))], "not_determined", "R2"),
        ([entry("R1", True, 1, row("not_determined", 0.3)), entry("R2", True, 2, row("shown", 0.01))], "shown", "R2"),
        ([entry("R1", True, 1, row("bounded", 0.9))], "bounded", "R1"),
        ([entry("R1", True, 1, row("not_determined", 0.9)), entry("R2", True, 2, row("bounded", 0.9))], "not_determined", "R2"),
        ([entry("R1", True, 1, row("shown", None))], "shown", "R1"),
        ([], "not_tested", None),
    ],
)  # fmt: skip
def test_only_fresh_runs_settle_and_each_at_its_own_level(runs: list[Entry], verdict: str, run: str | None) -> None:
    (question,) = measured.questions(runs, [("age",)])
    assert (question.verdict, question.run) == (verdict, run)


def test_levels_of_all_fresh_runs_together_keep_five_percent() -> None:
    assert sum(measured.level(j) for j in range(1, 60)) <= measured.ALPHA
    assert measured.level(1) > measured.level(2) > measured.level(3)


# -- budgets -------------------------------------------------------------------------------------------


class Priced(Planted):
    """A planted model that costs money: 100 tokens in and 10 out for each call."""

    costs = "tokens"
    price = Price(input_usd=10.0, output_usd=100.0)

    def max_tokens(self, format: str) -> int:
        return 10

    async def generate(self, batch: Sequence[Question]) -> Sequence[Reply | CallError]:
        usage = Usage(tokens_in=100, tokens_out=10)
        return [Reply(text="positive", usage=usage) for _ in batch]


def test_cost_is_kept_over_the_whole_session(tmp_path: Path) -> None:
    result = quick(tmp_path, Priced(base="constant", style="chat"), max_cost=0.25)
    spent = result.record["spent"]
    assert 0 < spent["cost_usd"] <= 0.25
    assert spent["cost_usd"] == pytest.approx(0.002 * spent["calls"])
    assert sum(r["cost_usd"] for r in result.record["runs"]) == pytest.approx(spent["cost_usd"])


def test_no_time_no_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no room for a first run"):
        quick(tmp_path, max_seconds=0)
    with pytest.raises(ConfigError, match="no room for a first run"):
        quick(tmp_path, max_calls=0)
    assert not list(tmp_path.iterdir()), "a start that failed leaves no folder"


# -- errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"planner": "gpt"}, "unknown planner"),
        ({"planner": object()}, "a planner is rules"),
        ({"planner_base_url": "http://127.0.0.1:1"}, "belongs to --planner openai"),
        ({"dictionaries": ("x",)}, "no option 'dictionaries'"),
        ({"max_calls": -1}, "--max-calls must be at least 0"),
        ({"delta": 300.0}, "--delta is a number of percentage points"),
        ({"task": "nosuch"}, "nosuch"),
        ({"data": ["The sea is cold.", "It rains."]}, "None of the 2 texts names people by gender"),
    ],
)
def test_slips_are_told(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        quick(tmp_path, **options)


class Locked(Planted):
    async def generate(self, batch: Sequence[Question]) -> Sequence[Reply | CallError]:
        return [AuthFailed("wrong key") for _ in batch]


def test_a_model_that_answers_nothing_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="answered nothing: wrong key"):
        quick(tmp_path, Locked(base="constant"))
    assert not list(tmp_path.iterdir())


def test_a_session_that_fails_after_an_answer_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(session: Any, why: str) -> None:
        raise UserError("the disk is full")

    monkeypatch.setattr(agent, "_outcome", broken)
    with pytest.raises(UserError, match="the disk is full"):
        quick(tmp_path)
    (folder,) = tmp_path.iterdir()
    left = agent.load(folder)
    assert left.record["status"] == "failed"
    assert "the disk is full" in left.record["status_reason"]
    assert "failed" in left.to_text(full=True)


def test_a_folder_that_is_no_session(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="holds no session"):
        agent.load(tmp_path)


def test_a_table_is_sent_to_the_command_for_tables(tmp_path: Path) -> None:
    file = tmp_path / "credit.csv"
    file.write_text("sex,amount\nmale,100\nfemale,200\n", encoding="utf-8")
    with pytest.raises(UserError, match="audit tabular --data"):
        quick(tmp_path / "out", data=str(file))


def test_attributes_that_neither_texts_nor_grammar_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"None of the .* texts names people by names"):
        quick(tmp_path, goal="Do applicants called Emily get more interviews?", data=None)


# -- reports -------------------------------------------------------------------------------------------

NASTY = "<script>alert(1)</script> [x](javascript:1) | \x1b[31m `a`"


def test_reports_keep_text_text() -> None:
    plain = {
        "id": "agent-1", "status": "partial", "status_reason": NASTY, "planner": NASTY, "models": [NASTY], "texts_left": 0,
        "goal": {"text": NASTY, "task": NASTY, "attributes": ["age"], "groups": {"age": ["old"]}, "order": 1, "read": [NASTY],
                 "assumed": []},
        "texts": {"source": NASTY, "n": 3, "sha256": ""}, "seed": 7, "resumed": 0, "labels": [],
        "limits": {"max_calls": None, "max_cost": None, "max_seconds": None, "planner_max_calls": 4},
        "spent": {"calls": 1, "cost_usd": 0.0, "planner_calls": 1},
        "runs": [{"name": "R1", "purpose": "pilot", "counts_as_fresh": False, "texts": 3, "calls": 1, "cost_usd": 0.0,
                  "request": Request(purpose="pilot", texts=3).as_dict(), "reason": NASTY, "folder": None, "figures": None, "notes": [NASTY]}],
        "questions": [],
    }  # fmt: skip
    record = msgspec.convert(plain, Record)
    record.questions = measured.questions([], [("age",)])
    steps = [{"kind": "plan", "reason": NASTY, "run": "R1", "figures": {"planner_note": NASTY}}]
    made = session_report.build(record, steps)
    page, marked = html.write(made), markdown.write(made)
    text, bare = (terminal.write(Page(width=100, encoding=e, color=False), made) for e in ("utf-8", "ascii"))
    assert "<script" not in page
    assert "javascript:1)" in page  # as text, in no link
    assert 'href="javascript' not in page
    assert "\x1b" not in page + marked + text
    assert "<script" not in marked
    assert not re.search(r"(?<!\\)\]\(javascript", marked)
    assert "the planner's own words, no result" in " ".join(text.split())
    assert bare.isascii()


# -- the command ---------------------------------------------------------------------------------------


def data_file(folder: Path) -> Path:
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps({"id": s.id, "text": s.text}) + "\n" for s in texts()), encoding="utf-8")
    return path


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = str(data_file(tmp_path))
    common = ["--model", "vader", "--data", data, "--out", str(tmp_path / "out"), "--no-cache"]
    assert cli(["agent", GOAL, *common, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "Nothing was asked." in told
    assert not (tmp_path / "out").exists()
    assert cli(["agent", GOAL, *common, "--dry-run", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["goal"]["task"] == "sentiment"
    assert cli(["agent", GOAL, *common, "--format", "json", "--max-calls", "300"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["spent"]["calls"] <= 300
    (folder,) = (tmp_path / "out").iterdir()
    assert cli(["report", str(folder)]) == 0
    assert "\nAnswer\n" in capsys.readouterr().out
    assert cli(["agent", "asdf qwer"]) == 2
    assert "which decision is meant" in " ".join(capsys.readouterr().err.split())


# -- cut off -------------------------------------------------------------------------------------------


def test_a_killed_session_leaves_what_it_did(tmp_path: Path) -> None:
    (tmp_path / "slow_one.py").write_text(
        textwrap.dedent(
            """
            import time
            def classify(text):
                time.sleep(0.05)
                return "positive"
            """
        ),
        encoding="utf-8",
    )
    out = tmp_path / "out"
    command = ["agent", GOAL, "--model", "python:slow_one:classify", "--data", str(data_file(tmp_path)), "--no-cache"]
    code = "import sys; from auditor.cli.main import run; sys.exit(run(sys.argv[1:]))"
    child = subprocess.Popen(
        [sys.executable, "-c", code, *command, "--out", str(out)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while not list(out.glob("agent-*/runs/*/responses.jsonl")):
            assert child.poll() is None, "it ended before it asked anything"
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    (folder,) = out.iterdir()
    left = agent.load(folder)
    assert left.record["status"] == "interrupted"
    assert not left.complete
    assert [s["kind"] for s in left.steps][-1] == "plan"
    assert (folder / "texts-01.jsonl").is_file()
    assert left.record["runs"][0]["folder"]
    for text in (left.to_text(full=True), left.to_markdown(), left.to_html()):
        assert "interrupted" in text
        assert "not finished" in " ".join(text.split())


def test_what_a_planner_may_ask_for_is_among_what_a_plan_takes() -> None:
    for field in msgspec.inspect.type_info(Request).fields:  # type: ignore[attr-defined]
        if field.name in ("purpose", "texts"):
            continue
        assert field.name in Plan.settings()
        kinds = field.type.types if isinstance(field.type, msgspec.inspect.UnionType) else (field.type,)
        for kind in kinds:
            if isinstance(kind, msgspec.inspect.IntType):
                values: tuple[object, ...] = (kind.ge, kind.le)
            elif isinstance(kind, msgspec.inspect.LiteralType):
                values = kind.values
            else:
                values = (field.default,)
            for value in values:
                assert getattr(Plan.model_validate({field.name: value}), field.name) == value
