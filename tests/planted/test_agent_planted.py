"""The agent on a planted model: it finds what was planted, says it once, and takes the same steps again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor import agent
from auditor.agent import session_report
from auditor.core.types import digest
from auditor.store.integrity import verify
from auditor.store.journal import genesis, read
from auditor.testing.planted import Planted
from tests.asking import workers

GOAL = "Does our résumé screener treat older women differently?"
OLD, WOMAN = "old|elderly|older|aged|retired|pensioner|75-year-old|70-year-old", "she|her|woman|lady"
TEXT = "A young man works as a {role} {place}. He likes the film and bought the book and the coat in the morning."


def planted(**options: Any) -> Planted:
    return Planted(labels=("invite", "reject"), base="constant", **options)


def run(out: Path, model: Any, **options: Any) -> agent.AgentResult:
    return agent.run(GOAL, model=model, data=workers(48, TEXT), out=out, **options)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> agent.AgentResult:
    return run(tmp_path_factory.mktemp("found"), planted(interaction={OLD, WOMAN}))


def test_a_hidden_effect_of_age_and_gender_is_shown_on_fresh_texts(found: agent.AgentResult) -> None:
    questions = {tuple(q["attributes"]): q for q in found.questions}
    together = questions["age", "gender"]
    assert together["verdict"] == "shown"
    assert "shown" not in (questions["age",]["verdict"], questions["gender",]["verdict"])
    assert together["row"]["hidden"] > 0
    assert next(r for r in found.record["runs"] if r["name"] == together["run"])["purpose"] == "fresh"
    assert found.complete


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


def test_it_looked_and_then_tested_other_texts_and_searched_no_further(found: agent.AgentResult) -> None:
    assert [r["purpose"] for r in found.record["runs"]] == ["pilot", "fresh"]
    asked: set[str] = set()
    for number, _ in enumerate(found.record["runs"], 1):
        lines = (found.path / f"texts-{number:02d}.jsonl").read_text(encoding="utf-8").splitlines()
        texts = {json.loads(line)["text"] for line in lines}
        assert not texts & asked
        asked |= texts


def test_each_plan_is_in_its_run_and_each_step_has_a_reason(found: agent.AgentResult) -> None:
    for entry in found.record["runs"]:
        plan = json.loads((found.path / entry["folder"] / "plan.json").read_text(encoding="utf-8"))["plan"]
        assert plan["attributes"] == entry["request"]["attributes"]
        assert Path(plan["data"]).name == f"texts-{entry['name'][1:]:0>2}.jsonl"
        assert entry["reason"]
    assert all(step["reason"] for step in found.steps)
    first, second, *_, last = [step["kind"] for step in found.steps]
    assert (first, second, last) == ("goal", "look", "end")


def test_the_chain_of_steps_holds_and_breaks_where_it_is_changed(found: agent.AgentResult) -> None:
    record = found.record
    fixed = {k: record[k] for k in ("goal", "models", "planner", "seed", "limits", "texts")}
    path, start = found.path / "steps.jsonl", genesis("steps.jsonl", digest(fixed))
    assert verify(path, start) == []
    changed = found.path / "steps-changed.jsonl"
    changed.write_bytes(path.read_bytes().replace(b"a pilot on", b"A pilot on"))
    assert verify(changed, start)
    changed.unlink()


def test_the_same_goal_takes_the_same_steps(found: agent.AgentResult, tmp_path: Path) -> None:
    again = run(tmp_path, planted(interaction={OLD, WOMAN}))
    assert list(read(again.path / "steps.jsonl")) == list(found.steps)
    assert (again.path / "steps.jsonl").read_bytes() == (found.path / "steps.jsonl").read_bytes()


def test_nothing_planted_nothing_shown(tmp_path: Path) -> None:
    result = run(tmp_path, planted())
    assert {q["verdict"] for q in result.questions} == {"not_determined"}
    assert [r["purpose"] for r in result.record["runs"]] == ["pilot", "fresh"]


def test_a_wobbling_model_is_not_taken_for_a_difference(tmp_path: Path) -> None:
    result = run(tmp_path, planted(wobble=0.1, seed=5))
    assert "shown" not in {q["verdict"] for q in result.questions}
    asked = [r["request"]["replicates"] for r in result.record["runs"] if r["purpose"] == "fresh"]
    assert asked
    assert set(asked) == {5}, "a noise floor of some 18 % asks for more replicates"


@pytest.mark.parametrize("most", [30, 90, 200])
def test_the_budget_holds_over_all_runs(tmp_path: Path, most: int) -> None:
    calls = 0

    def screener(text: str) -> str:
        nonlocal calls
        calls += 1
        return "reject" if "old" in text.split() and "woman" in text.split() else "invite"

    result = run(tmp_path, screener, max_calls=most, cache=False)
    assert calls <= most
    assert result.record["spent"]["calls"] == calls
    assert sum(r["calls"] for r in result.record["runs"]) == calls


def test_a_report_of_each_form_says_what_was_done(found: agent.AgentResult) -> None:
    for text in (found.to_text(full=True), found.to_markdown(), found.to_html()):
        assert "R2" in text
        assert "exploratory" in text
        assert "What was not looked at" in text
    assert (found.path / "agent.html").read_text(encoding="utf-8") == found.to_html()
    assert json.loads(found.to_json())["steps"]
    assert agent.load(found.path).record == json.loads(json.dumps(found.record))
