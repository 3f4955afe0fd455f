"""Groups that a goal names: what is asked for them, and how the report answers in its first lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor import SourceText, agent
from auditor.agent import session_report
from auditor.testing.planted import Planted

GOAL = "Does our résumé screener treat older women differently?"


def people(n: int = 48) -> list[SourceText]:
    return [
        SourceText(
            id=f"s{i}",
            text=f"A young man works as a clerk in room {i}. He likes the film and bought the coat in the morning.",
        )
        for i in range(n)
    ]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> agent.AgentResult:
    model = Planted(
        labels=("invite", "reject"),
        base="constant",
        interaction={"old|elderly|older|aged|retired|75-year-old|70-year-old", "she|her|woman|lady"},
    )
    return agent.run(GOAL, model=model, data=people(), out=tmp_path_factory.mktemp("answer"), cache=False)


def test_the_question_is_answered_first_and_with_figures(found: agent.AgentResult) -> None:
    (lead,) = session_report.lead(found.session)
    assert lead.startswith(
        "A difference was shown for age and gender together. Older people against young people: their difference in "
        "“invite” is lower for women and girls than for men and boys"
    )
    (question,) = [q for q in found.questions if q["attributes"] == ["age", "gender"]]
    assert " texts when age + gender was edited, neutral edits changed them in 0." in lead
    assert f"(Run {question['run']}, finding {question['finding']}.)" in lead
    text = " ".join(found.to_text(full=True).split())
    assert text.index("A difference was shown") < text.index("How the question was read")
    assert lead in " ".join(found.to_markdown().split()).replace("\\", "")


def test_a_model_that_rejects_older_people_differs_for_age_and_not_for_gender(tmp_path: Path) -> None:
    old = "old|elderly|older|aged|retired|75-year-old|70-year-old"
    model = Planted(labels=("invite", "reject"), base="constant", additive={old: 1.0})
    result = agent.run(GOAL, model=model, data=people(96), out=tmp_path, cache=False)
    (lead,) = session_report.lead(result.session)
    verdicts = {tuple(q["attributes"]): q["verdict"] for q in result.questions}
    assert verdicts["age",] == "shown"
    assert verdicts["gender",] != "shown"
    assert lead.startswith("A difference was shown for age. Older people were invited in 0 of 100 texts, ")
    assert "shown for age and gender" not in lead
    told = " ".join(result.to_text(full=True).split())
    assert "Verdicts of fresh runs" in told


def test_a_model_that_does_not_fit_the_task_is_told_first(tmp_path: Path) -> None:
    result = agent.run(GOAL, model=lambda text: "banana", data=people(), out=tmp_path, cache=False)
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
    told = " ".join(result.to_text(full=True).split())
    assert "not measured" not in told


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
