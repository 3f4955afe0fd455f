"""Sessions: texts, levels, limits over all runs, reports that stay text, the command, and how the goal is answered."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import Capture, both, said

from auditor import SourceText, agent
from auditor.agent import figures as measured
from auditor.agent import session_report
from auditor.agent.values import Entry, Figures, Record, Request, Row
from auditor.core.errors import AuthFailed, UserError
from auditor.core.protocols import Reply
from auditor.core.types import ClaimVerdict, Usage
from auditor.models.limits import Price
from auditor.report import html, markdown, terminal
from auditor.report.terminal import Page
from auditor.testing.planted import Planted
from tests.asking import GOAL, Says, films, json_lines


def quick(out: Path, model: Any = None, goal: str = GOAL, **options: Any) -> agent.AgentResult:
    chosen: dict[str, Any] = {"data": films(), "cache": False} | options
    return agent.run(goal, model=model or Planted(base="constant"), out=out, **chosen)


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
        ([], "not_tested", None), ([entry(1, "shown", 0.001, fresh=False)], "not_tested", None),
        ([entry(1, "shown", 0.02)], "shown", "R1"), ([entry(1, "shown", 0.03)], "not_determined", "R1"),
        ([entry(1, "shown", None)], "shown", "R1"), ([entry(1, "bounded", 0.9)], "bounded", "R1"),
        ([entry(1, "not_determined", 0.3), entry(2, "shown", 0.02)], "not_determined", "R2"),
        ([entry(1, "not_determined", 0.3), entry(2, "shown", 0.01)], "shown", "R2"),
        ([entry(1, "not_determined", 0.9), entry(2, "bounded", 0.9)], "not_determined", "R2"),
    ],
)  # fmt: skip
def test_only_fresh_runs_settle_and_each_at_its_own_level(runs: list[Entry], verdict: str, run: str | None) -> None:
    (question,) = measured.questions(runs, [("age",)])
    assert (question.verdict, question.run) == (verdict, run)


def test_cost_is_kept_over_the_whole_session(tmp_path: Path) -> None:
    reply = Reply(text="positive", usage=Usage(tokens_in=100, tokens_out=10))
    model = Says(reply, Price(input_usd=10.0, output_usd=100.0), style="chat")
    result = quick(tmp_path, model, max_cost=0.25)
    spent = result.record["spent"]
    assert 0 < spent["cost_usd"] <= 0.25
    assert spent["cost_usd"] == pytest.approx(0.002 * spent["calls"])
    assert sum(r["cost_usd"] for r in result.record["runs"]) == pytest.approx(spent["cost_usd"])


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
        ({"model": Says(AuthFailed("wrong key"))}, "answered nothing: wrong key"),
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
    assert (left.record["status"], "the disk is full" in left.record["status_reason"]) == ("failed", True)
    assert "failed" in left.to_text(full=True)


NASTY = "<script>alert(1)</script> [x](javascript:1) | \x1b[31m `a`"


def test_reports_keep_text_text() -> None:
    run = {"name": "R1", "purpose": "pilot", "counts_as_fresh": False, "texts": 3}
    plain = {
        "id": "agent-1", "status": "partial", "status_reason": NASTY, "planner": NASTY, "models": [NASTY], "seed": 7,
        "goal": {"text": NASTY, "task": NASTY, "attributes": ["age"], "groups": {"age": ["old"]}, "order": 1, "read": [NASTY]},
        "texts": {"source": NASTY, "n": 3}, "limits": {}, "spent": {"calls": 1},
        "runs": [run | {"request": {"purpose": "pilot", "texts": 3}, "reason": NASTY, "notes": [NASTY]}],
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


def test_the_command(tmp_path: Path, capsys: Capture) -> None:
    data = json_lines(tmp_path / "texts.jsonl", ({"id": s.id, "text": s.text} for s in films()))
    ask = f"agent '{GOAL}' --model vader --data {data} --out {tmp_path / 'out'} --no-cache"
    code, told = said(capsys, f"{ask} --dry-run")
    assert (code, "Nothing was asked." in told) == (0, True)
    assert json.loads(said(capsys, f"{ask} --dry-run --format json")[1])["goal"]["task"] == "sentiment"
    assert not (tmp_path / "out").exists()
    assert json.loads(both(capsys, f"{ask} --format json --max-calls 300")[1])["spent"]["calls"] <= 300
    (folder,) = (tmp_path / "out").iterdir()
    assert "\nAnswer\n" in both(capsys, f"report {folder}")[1]
    code, told = said(capsys, "agent 'asdf qwer'")
    assert (code, "which decision is meant" in told) == (2, True)


SCREENED = "Does our résumé screener treat older women differently?"


def people(n: int = 48) -> list[SourceText]:
    text = "A young man works as a clerk in room {}. He likes the film and bought the coat in the morning."
    return [SourceText(id=f"s{i}", text=text.format(i)) for i in range(n)]


def test_a_model_that_rejects_older_people_differs_for_age_and_not_for_gender(tmp_path: Path) -> None:
    old = "old|elderly|older|aged|retired|75-year-old|70-year-old"
    model = Planted(labels=("invite", "reject"), base="constant", additive={old: 1.0})
    result = agent.run(SCREENED, model=model, data=people(64), out=tmp_path, cache=False)
    (lead,) = session_report.lead(result.session)
    verdicts = {tuple(q["attributes"]): q["verdict"] for q in result.questions}
    assert verdicts["age",] == "shown"
    assert verdicts["gender",] != "shown"
    assert lead.startswith("A difference was shown for age. Older people were invited in 0 of 100 texts, ")
    assert "shown for age and gender" not in lead
    assert "Verdicts of fresh runs" in result.to_text(full=True)


def test_a_model_that_does_not_fit_the_task_is_told_first(tmp_path: Path) -> None:
    result = agent.run(SCREENED, model=lambda text: "banana", data=people(), out=tmp_path, cache=False)
    assert not result.complete
    assert [r["purpose"] for r in result.record["runs"]] == ["pilot"], "nothing further was asked"
    (lead,) = session_report.lead(result.session)
    assert lead.startswith("Nothing was measured: no answer of this run could be judged")
    assert "what the task hiring reads, is in the report of the run" in lead


def test_an_amount_is_told_with_its_difference(tmp_path: Path) -> None:
    def offers(text: str) -> int:
        return 50_000 if {"she", "her", "woman"} & set(text.lower().split()) else 60_000

    goal = "Do women get another starting salary?"
    result = agent.run(goal, model=offers, out=tmp_path, cache=False, max_calls=1_000)
    (question,) = result.questions
    assert question["verdict"] == "shown"
    (lead,) = session_report.lead(result.session)
    assert "Women and girls were given 10,000.00 USD/year less than men and boys" in lead
    assert "not measured" not in result.to_text(full=True)


def test_the_answer_speaks_of_the_pair_that_the_goal_compares(tmp_path: Path) -> None:
    goal = "Does our résumé screener treat women worse than men?"
    model = Planted(labels=("invite", "reject"), base="constant", additive={"she|her|woman|lady": 1.0})
    result = agent.run(goal, model=model, data=people(), out=tmp_path, cache=False)
    (lead,) = session_report.lead(result.session)
    assert lead.startswith(
        "A difference was shown. Women and girls were invited in 0 of 100 texts, men and boys in 100."
    )
    assert all(run["request"]["groups"] == ["gender:female/male"] for run in result.record["runs"])
    assert {d for run in result.runs for f in run.findings for d in f.directions} == {("gender", "male", "female")}
    told = " ".join(result.to_text(full=True).split())
    assert "female compared with male" in told
    assert "Changes other than gender:female/male: the goal does not name them." in told
