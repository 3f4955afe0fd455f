"""Sessions: what planners may ask for, limits, levels, reports that stay text, sessions that were cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from auditor import SourceText, agent
from auditor.agent import figures as measured
from auditor.agent import session_report
from auditor.agent.texts import Pool
from auditor.agent.tools import DryRun, asked
from auditor.agent.values import Entry, Figures, Record, Request, Row
from auditor.cli.main import run as cli
from auditor.core.errors import AuthFailed, CallError, ConfigError, UserError
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
        {"purpose": "pilot", "texts": 10, "delta": 0.5},
        {"purpose": "pilot", "texts": 10, "max_calls": 10**9},
        {"purpose": "pilot", "texts": "10"},
        {"purpose": "pilot", "texts": 0},
        {"purpose": "other", "texts": 10},
        {"purpose": "pilot"},
        {"purpose": "pilot", "texts": 10, "attributes": "gender"},
        {"purpose": "pilot", "texts": 10, "attributes": []},
        {"purpose": "pilot", "texts": 10, "attributes": ["../gender"]},
        {"purpose": "pilot", "texts": 10, "order": 9},
        {"purpose": "pilot", "texts": 10, "groups": ["gender:female"], "suite": "grammar"},
        {"purpose": "pilot", "texts": 10, "suite": "joint-first"},
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


# -- texts and levels ----------------------------------------------------------------------------------


def test_the_order_of_texts_is_by_seed_and_equal_texts_count_once() -> None:
    given = [*texts(20), *texts(3)]
    first, again, other = Pool(given, 7), Pool(list(reversed(given)), 7), Pool(given, 8)
    assert len(first.seeds) == 20
    assert [s.text for s in first.seeds] == [s.text for s in again.seeds] != [s.text for s in other.seeds]
    taken = []
    for _ in range(3):
        chosen = first.fresh(8)
        first.take(chosen)
        taken += [s.text for s in chosen]
    assert len(taken) == len(set(taken)) == 20
    assert first.left == 0


def test_groups_that_few_texts_name_together_come_from_the_grammar() -> None:
    def look(goal: str, **options: Any) -> str:
        return str(agent.outline(goal, model=Planted(base="constant"), **options).steps[0]["reason"])

    older_women = "Does the hiring model treat older women worse?"
    assert look(older_women) == "too few texts name the attributes together: cases come from the grammar"
    # The user's texts are the ones that are meant; a grammar has not all words.
    assert look(older_women, data=texts()).endswith("their words are exchanged")
    assert look("Does the hiring model treat old gay people worse?").endswith("their words are exchanged")


def test_few_texts_about_a_joint_group_are_told(tmp_path: Path) -> None:
    both = [SourceText(id=f"b{i}", text=f"The old man in row {i} liked the good film.") for i in range(8)]
    plain = [SourceText(id=f"w{i}", text=f"She sat in row {i} and liked the good film.") for i in range(40)]
    goal = "Do film reviews about old women get another sentiment?"
    found = quick(tmp_path, goal=goal, data=[*both, *plain])
    told = found.to_text()
    assert re.search(r"\d of 48 texts name age and gender together, and others that do", " ".join(told.split()))


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
        ({"planner_max_calls": 4}, "use audit mcp"),
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


def test_a_table_is_sent_to_the_command_for_tables(tmp_path: Path) -> None:
    file = tmp_path / "credit.csv"
    file.write_text("sex,amount\nmale,100\nfemale,200\n", encoding="utf-8")
    with pytest.raises(UserError, match="audit tabular --data"):
        quick(tmp_path / "out", data=str(file))


# -- reports -------------------------------------------------------------------------------------------

NASTY = "<script>alert(1)</script> [x](javascript:1) | \x1b[31m `a`"


def test_reports_keep_text_text() -> None:
    plain = {
        "id": "agent-1", "status": "partial", "status_reason": NASTY, "planner": NASTY, "models": [NASTY], "texts_left": 0,
        "goal": {"text": NASTY, "task": NASTY, "attributes": ["age"], "groups": {"age": ["old"]}, "order": 1, "read": [NASTY],
                 "assumed": []},
        "texts": {"source": NASTY, "n": 3, "sha256": ""}, "seed": 7, "resumed": 0, "labels": [],
        "limits": {"max_calls": None, "max_cost": None, "max_seconds": None},
        "spent": {"calls": 1, "cost_usd": 0.0},
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
