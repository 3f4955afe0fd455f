"""Goals in plain words: what they are read as, and what is asked back."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor import tasks
from auditor.agent.goal import EXAMPLE, MAX_CHARS, known_words, parse, read
from auditor.core.errors import ConfigError, DataFileError
from auditor.perturb import dictionaries

READ = [
    ("Does our résumé screener treat older women differently?", "hiring", "age+gender", "old female"),
    ("Is our loan model biased against Black applicants?", "lending", "race", "black"),
    ("Do film reviews by Muslim women get another sentiment?", "sentiment", "gender+religion", "female muslim"),
    ("Does the moderator remove posts by gay people more often?", "moderation", "sexual_orientation", "gay"),
    ("Are disabled patients triaged as less urgent?", "triage", "disability", "disabled"),
    ("Does the hiring model discriminate by gender and race?", "hiring", "gender+race", ""),
    ("Are women with disabilities rejected by the hiring model?", "hiring", "disability+gender", "disabled female"),
    ("Are women of colour rejected by the hiring model?", "hiring", "gender+race", "female"),
    ("Are women with the same qualifications rejected by the hiring model?", "hiring", "gender", "female"),
    ("Are Nigerian and Polish applicants denied a mortgage?", "lending", "nationality", "nigerian polish"),
    ("Does the contract clause classifier depend on nationality?", "ledgar", "nationality", ""),
    ("Do Black-sounding first names change hiring decisions?", "hiring", "names", ""),
    ("Do wheelchair users get invited to interviews?", "hiring", "disability", "mobility"),
    ("Does our emergency triage treat homeless men worse?", "triage", "gender+socioeconomic", "male homeless"),
    ("Compare recruiting for men, women and non-binary people", "hiring", "gender", "female male nonbinary"),
    ("Do seniors get another starting salary?", "salary", "age", "old"),
    ("Does the hiring model treat all people the same?", "hiring", "", ""),
]


@pytest.mark.parametrize(("text", "task", "attributes", "groups"), READ, ids=[r[0][:40] for r in READ])
def test_a_goal_is_read(text: str, task: str, attributes: str, groups: str) -> None:
    goal = parse(text)
    assert goal.task == task
    assert goal.attributes == (tuple(attributes.split("+")) if attributes else None)
    assert sorted(g for found in goal.groups.values() for g in found) == sorted(groups.split())
    assert goal.order == (min(3, len(goal.attributes)) if goal.attributes else 2)


ASKED_BACK = [
    ("asdf qwer zxcv", "which decision is meant"),
    ("?!", "says nothing that can be read"),
    ("", "says nothing that can be read"),
    ("loan", "does not say whom it is about"),
    ("Does it treat women differently?", "Known tasks: "),
    ("Does our lending and hiring tool treat women differently?", "several tasks: hiring (hiring); lending (lending)"),
    ("women " * 500, "characters"),
    ("Do left-handed applicants get rejected by the hiring model?", "No attribute covers 'left-handed'"),
    ("Are lefties hired less often?", "No attribute covers 'lefties'"),
]


@pytest.mark.parametrize(("text", "told"), ASKED_BACK, ids=[r[0][:40] for r in ASKED_BACK])
def test_what_cannot_be_read_is_asked_back(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert told in str(caught.value)
    assert "audit " in str(caught.value) or "--task" in str(caught.value)


def test_every_name_in_the_tables_exists() -> None:
    known = known_words()
    assert set(known.tasks) <= set(tasks.available())
    assert set(known.attributes) == set(dictionaries.builtin()) - {"origin"}  # of texts in other languages
    for attribute, _, group in (place.partition(":") for place in known.groups.values()):
        assert not group or group in dictionaries.load(attribute).groups
    assert len(EXAMPLE) < MAX_CHARS


def test_what_was_not_read_and_what_was_given_is_told() -> None:
    assert "nothing was read from: left-handed" in parse("Do women and left-handed applicants get hired?").assumed
    assert parse("Check our credit scoring for bias", task="triage").assumed == (
        "no attribute is named: those that the texts name are asked",
        "the task was given",
    )


PAIRS = [
    ("Does it treat women worse than men?", "gender:female/male"),
    ("older women vs younger men", "age:old/young gender:female/male"),
    ("older women vs. men", "age:old gender:female/male"),  # nothing is said of the age of the men
    ("Are people over 50 treated worse than young people?", "age:old/young"),
    ("women and non-binary people compared with men", "gender:female/male gender:nonbinary/male"),
    ("Does it treat women worse?", "gender:female"),
    ("Does it treat disabled people worse than women?", "disability:disabled gender:female"),
]


@pytest.mark.parametrize(("text", "changes"), PAIRS, ids=[r[0][:40] for r in PAIRS])
def test_a_goal_says_which_groups_are_compared(text: str, changes: str) -> None:
    goal = parse(text, task="hiring")
    assert " ".join(goal.changes) == changes
    assert ("compared with" in " ".join(goal.read)) is ("/" in changes)


def test_a_goal_in_a_file_says_all_of_it(tmp_path: Path) -> None:
    file = tmp_path / "goal.yaml"
    file.write_text(
        "question: Are older women invited less often than younger men?\ntask: hiring\n"
        "groups: [age:old/young, gender:female/male]\norder: 2\n",
        encoding="utf-8",
    )
    goal = read(str(file))
    assert (goal.task, goal.attributes, goal.order) == ("hiring", ("age", "gender"), 2)
    assert goal.changes == ("age:old/young", "gender:female/male")
    file.write_text("question: What?\ntask: hiring\nattributs: [age]\n", encoding="utf-8")
    with pytest.raises(DataFileError, match="attributs"):
        read(str(file))
