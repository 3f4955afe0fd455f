"""Sessions: texts, levels, limits over all runs, reports that stay text, the command."""

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
from auditor.agent.values import Entry, Figures, Record, Request, Row
from auditor.cli.main import run as cli
from auditor.core.errors import AuthFailed, CallError, UserError
from auditor.core.protocols import Reply
from auditor.core.types import ClaimVerdict, Usage
from auditor.core.types import Request as Question
from auditor.models.budget import Price
from auditor.report import html, markdown, terminal
from auditor.report.page import Page
from auditor.testing.planted import Planted
from tests.asking import GOAL, films


def quick(out: Path, model: Any = None, goal: str = GOAL, **options: Any) -> agent.AgentResult:
    chosen: dict[str, Any] = {"data": films(), "cache": False} | options
    return agent.run(goal, model=model or Planted(base="constant"), out=out, **chosen)


# -- texts and levels ----------------------------------------------------------------------------------


def test_groups_that_few_texts_name_together_come_from_the_grammar() -> None:
    def look(goal: str, **options: Any) -> str:
        return str(agent.outline(goal, model=Planted(base="constant"), **options).steps[0]["reason"])

    older_women = "Does the hiring model treat older women worse?"
    assert look(older_women) == "too few texts name the attributes together: cases come from the grammar"
    # The user's texts are the ones that are meant; a grammar has not all words.
    assert look(older_women, data=films()).endswith("their words are exchanged")
    assert look("Does the hiring model treat old gay people worse?").endswith("their words are exchanged")


def test_few_texts_about_a_joint_group_are_told(tmp_path: Path) -> None:
    both = [SourceText(id=f"b{i}", text=f"The old man in row {i} liked the good film.") for i in range(8)]
    plain = [SourceText(id=f"w{i}", text=f"She sat in row {i} and liked the good film.") for i in range(40)]
    goal = "Do film reviews about old women get another sentiment?"
    told = quick(tmp_path, goal=goal, data=[*both, *plain]).to_text()
    assert re.search(r"\d of 48 texts name age and gender together, and others that do", " ".join(told.split()))


def entry(number: int, verdict: ClaimVerdict, p: float | None, fresh: bool = True) -> Entry:
    request = Request(purpose="fresh" if fresh else "pilot", texts=9)
    row = Row(finding="F001", model="M1", attributes=("age",), verdict=verdict, p_adjusted=p, seeds=9, seeds_changed=3)
    return Entry(
        name=f"R{number}", purpose=request.purpose, request=request, reason="", texts=9, counts_as_fresh=fresh,
        level=measured.level(number) if fresh else None, figures=Figures(complete=True, counts={}, sets=(row,)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("runs", "verdict", "run"),
    [
        ([entry(1, "shown", 0.001, fresh=False)], "not_tested", None),
        ([entry(1, "shown", 0.02)], "shown", "R1"),
        ([entry(1, "shown", 0.03)], "not_determined", "R1"),
        ([entry(1, "not_determined", 0.3), entry(2, "shown", 0.02)], "not_determined", "R2"),
        ([entry(1, "not_determined", 0.3), entry(2, "shown", 0.01)], "shown", "R2"),
        ([entry(1, "bounded", 0.9)], "bounded", "R1"),
        ([entry(1, "not_determined", 0.9), entry(2, "bounded", 0.9)], "not_determined", "R2"),
        ([entry(1, "shown", None)], "shown", "R1"),
        ([], "not_tested", None),
    ],
)
def test_only_fresh_runs_settle_and_each_at_its_own_level(runs: list[Entry], verdict: str, run: str | None) -> None:
    (question,) = measured.questions(runs, [("age",)])
    assert (question.verdict, question.run) == (verdict, run)


# -- limits --------------------------------------------------------------------------------------------


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


# -- errors --------------------------------------------------------------------------------------------


class Locked(Planted):
    async def generate(self, batch: Sequence[Question]) -> Sequence[Reply | CallError]:
        return [AuthFailed("wrong key") for _ in batch]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"planner_max_calls": 4}, "use audit mcp"),
        ({"dictionaries": ("x",)}, "no option 'dictionaries'"),
        ({"max_calls": -1}, "--max-calls must be at least 0"),
        ({"delta": 300.0}, "--delta is a number of percentage points"),
        ({"task": "nosuch"}, "nosuch"),
        ({"data": ["The sea is cold.", "It rains."]}, "None of the 2 texts names people by gender"),
        ({"max_seconds": 0}, "no room for a first run"),
        ({"data": "credit.csv"}, "audit tabular --data"),
        ({"model": Locked(base="constant")}, "answered nothing: wrong key"),
    ],
)
def test_a_start_that_fails_says_why_and_leaves_no_folder(place: Path, options: dict[str, Any], told: str) -> None:
    Path("credit.csv").write_text("sex,amount\nmale,100\nfemale,200\n", encoding="utf-8")
    with pytest.raises(UserError, match=told):
        quick(place / "out", **options)
    assert not list(place.glob("out/*"))


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


# -- reports -------------------------------------------------------------------------------------------

NASTY = "<script>alert(1)</script> [x](javascript:1) | \x1b[31m `a`"


def test_reports_keep_text_text() -> None:
    run: dict[str, object] = {
        "name": "R1",
        "purpose": "pilot",
        "counts_as_fresh": False,
        "texts": 3,
        "request": {"purpose": "pilot", "texts": 3},
    }
    plain = {
        "id": "agent-1", "status": "partial", "status_reason": NASTY, "planner": NASTY, "models": [NASTY], "seed": 7,
        "goal": {"text": NASTY, "task": NASTY, "attributes": ["age"], "groups": {"age": ["old"]}, "order": 1, "read": [NASTY]},
        "texts": {"source": NASTY, "n": 3}, "limits": {}, "spent": {"calls": 1},
        "runs": [run | {"reason": NASTY, "notes": [NASTY]}],
    }  # fmt: skip
    record = msgspec.convert(plain, Record)
    record.questions = measured.questions([], [("age",)])
    steps = [{"kind": "plan", "reason": NASTY, "run": "R1", "figures": {"planner_note": NASTY}}]
    made = session_report.build(record, steps)
    page, marked = html.write(made), markdown.write(made)
    text, bare = (terminal.write(Page(width=100, encoding=e, color=False), made) for e in ("utf-8", "ascii"))
    assert "javascript:1)" in page  # as text, in no link
    assert not [one for one in ("<script", 'href="javascript') if one in page + marked]
    assert "\x1b" not in page + marked + text
    assert not re.search(r"(?<!\\)\]\(javascript", marked)
    assert "the planner's own words, no result" in " ".join(text.split())
    assert bare.isascii()


# -- the command ---------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "texts.jsonl"
    data.write_text("".join(json.dumps({"id": s.id, "text": s.text}) + "\n" for s in films()), encoding="utf-8")
    common = ["--model", "vader", "--data", str(data), "--out", str(tmp_path / "out"), "--no-cache"]
    assert cli(["agent", GOAL, *common, "--dry-run"]) == 0
    assert "Nothing was asked." in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    assert cli(["agent", GOAL, *common, "--dry-run", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["goal"]["task"] == "sentiment"
    assert cli(["agent", GOAL, *common, "--format", "json", "--max-calls", "300"]) == 0
    assert json.loads(capsys.readouterr().out)["spent"]["calls"] <= 300
    (folder,) = (tmp_path / "out").iterdir()
    assert cli(["report", str(folder)]) == 0
    assert "\nAnswer\n" in capsys.readouterr().out
    assert cli(["agent", "asdf qwer"]) == 2
    assert "which decision is meant" in " ".join(capsys.readouterr().err.split())
