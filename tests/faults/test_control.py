"""The positive control is asked first: a model that reacts to nothing is not asked on, and `audit doctor` agrees."""

from __future__ import annotations

import json
import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, Patch, only, tells
from nursery import Server

import auditor
from tests.asking import json_lines

pytestmark = pytest.mark.usefixtures("place")

MOST = 60  # calls of a run that stops
FEMALE = re.compile(r"\b(she|her|woman|women|girl|mother|wife|sister|daughter|aunt|actress)\b", re.IGNORECASE)
PRAISE = re.compile(r"\b(wonderful|best|superb|loved|delight|brilliant|great|excellent|beautiful)\w*", re.IGNORECASE)


def calls(server: Server) -> int:
    """How often the server was asked."""
    return sum(server.asked.values())


# -- the run that stops ---------------------------------------------------------------------------------

HOSTED = "--model openai:m --no-cache --out runs --base-url"


@pytest.mark.parametrize(
    ("task", "answer", "more", "tries"),
    [
        ("sentiment", "positive", "", ["--formats json", "--formats reasoned", "a larger model"]),
        ("hiring", "reject", "", ["--formats json", "--formats reasoned", "--formats graded", "a larger model"]),
        ("sentiment", "positive", "--limit 5", ["--formats json"]),
        ("sentiment", "positive", "--until-decided", ["--formats json"]),
        ("sentiment", "positive", "--replicates 5", ["--formats json"]),
        ("hiring", '{"answer": "invite", "decision": "invite"}', "--formats plain,json", ["--formats reasoned"]),
        ("salary", "50000", "", ["--formats json"]),
    ],
)
def test_a_model_that_answers_everything_alike_is_asked_sixty_times_at_most(
    task: str, answer: str, more: str, tries: list[str], serve: Callable[..., Server], capsys: Capture
) -> None:
    server = serve(lambda model, text: answer)
    argv = f"run --task {task} --limit 30 --attributes gender {more} {HOSTED} {server.url} --yes"
    told = "openai:m cannot be judged: all its ", "must get different answers", *tries
    text = tells(capsys, argv, *told, code=3)
    assert "--formats plain" not in text.partition("cannot be judged")[2]
    assert re.search(r"Go on with: audit resume \S+ .*--anyway", text)
    assert "A higher limit" not in text
    assert 20 <= calls(server) <= MOST


def test_a_stopped_run_is_a_run_that_resume_finishes_without_paying_twice(serve: Any, capsys: Capture) -> None:
    plan = f"run --task sentiment --limit 24 --attributes gender {HOSTED}"
    whole = serve(lambda model, text: "positive")
    tells(capsys, f"{plan} {whole.url} --yes --anyway --out whole")
    server = serve(lambda model, text: "positive")
    tells(capsys, f"{plan} {server.url} --yes", code=3)
    spent = calls(server)
    folder = only("runs/2*")
    assert (folder / "report.html").is_file()
    tells(capsys, f"verify {folder}")
    tells(capsys, f"resume {folder} --yes", "--anyway", code=3)
    assert calls(server) == spent
    tells(capsys, f"resume {folder} --yes --anyway")
    assert json.loads((folder / "run.json").read_text())["status"] == "complete"
    assert server.asked == whole.asked
    tells(capsys, f"verify {folder}")


def test_one_of_several_models_that_reacts_to_nothing_stops_the_run() -> None:
    result = auditor.audit("sentiment", model=["vader", lambda text: "positive"], limit=30)
    assert result.record["stopped_by"] == "control"
    assert result.record["counts"]["calls"] <= 2 * MOST


def test_recorded_answers_cost_nothing_and_are_all_judged(capsys: Capture) -> None:
    tells(capsys, "generate --task sentiment --limit 4 --out g")
    folder = only("g/2*")
    hashes = {json.loads(line)["prompt_sha256"] for line in (folder / "prompts.jsonl").read_text().splitlines()}
    answers = [{"prompt_sha256": one, "replicate": k, "output": "positive"} for one in hashes for k in range(3)]
    json_lines(Path("a.jsonl"), answers)
    tells(capsys, f"import --generated {folder} a.jsonl")


# -- control seen or not, answers alike or not ------------------------------------------------------------


def reads(text: str) -> str:
    return "positive" if PRAISE.search(text) else "negative"


def leans(text: str) -> dict[str, float]:
    return {"positive": 0.9 if PRAISE.search(text) else 0.6 + len(text) % 7 / 100, "negative": 0.1}


def minds_women(text: str) -> str:
    return "negative" if FEMALE.search(text) else "positive"


def drifts(text: str) -> dict[str, float]:
    return {"positive": 0.9 - 0.05 * bool(FEMALE.search(text)), "negative": 0.1}


def refuses_women(text: str) -> str:
    return "I cannot help with that." if FEMALE.search(text) else "positive"


def constant(text: str) -> str:
    return "positive"


def sure(text: str) -> dict[str, float]:
    return {"positive": 0.9, "negative": 0.1}


FIT = "The model can be audited."
# function -> (control seen, all labels alike, cautions, whether the run goes on, exit code of doctor, whether it is fit)
COMBINED: dict[Callable[[str], Any], tuple[bool, bool, set[str], bool, int, bool]] = {
    reads: (True, False, set(), True, 0, True),
    leans: (True, True, {"scores_alone"}, True, 0, False),
    minds_women: (False, False, {"control_not_seen"}, True, 3, False),
    refuses_women: (False, True, {"control_not_seen", "constant_answers"}, True, 3, False),
    drifts: (False, True, {"control_not_seen", "constant_answers"}, True, 3, False),
    constant: (False, True, {"control_not_seen", "constant_answers"}, False, 3, False),
    sure: (False, True, {"control_not_seen", "constant_answers"}, False, 3, False),
}


@pytest.mark.parametrize("function", COMBINED, ids=lambda f: f.__name__)
def test_what_a_run_does_and_doctor_says_for_each_combination(
    function: Any, capsys: Capture, monkeypatch: Patch
) -> None:
    seen, alike, cautions, goes_on, code, fit = COMBINED[function]
    asked = 0

    def model(text: str) -> Any:
        nonlocal asked
        asked += 1
        return function(text)

    result = auditor.audit("sentiment", model=model, limit=30, attributes=["gender"], order=1, cache=False)
    control = next(iter(result.record["controls"]["positive_control"].values()))
    assert control["seen"] is seen
    (answers,) = (one["answers"] for one in result.record["models"].values())
    assert (len(answers) == 1) is alike
    ignored = {"one_label", "unreadable_answers"}
    assert {one["code"] for one in result.record["cautions"]} - ignored == cautions
    assert result.complete is goes_on
    assert (asked <= MOST) is not goes_on
    assert "the positive control was not seen" not in str(result) or goes_on
    name = f"subject_{function.__name__}"
    monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(model=function))
    text = tells(capsys, f"doctor --model python:{name}:model", code=code)
    assert (FIT in text) is fit
    assert ("can be audited" in text) is fit
    assert ("--formats" in text or "larger model" in text) is (code == 3)


def test_the_page_about_controls_has_the_combinations() -> None:
    page = (Path(__file__).parents[2] / "docs" / "method" / "concepts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (seen|not seen) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert [(seen, "stops" in does) for seen, _, does, _ in rows] == [
        ("seen", False), ("seen", False), ("not seen", False), ("not seen", True),
    ]  # fmt: skip
    assert ["can be audited" in doctor for *_, doctor in rows] == [True, False, False, False]
