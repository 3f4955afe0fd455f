"""The task of full résumés: its texts, its answers with a score, and edits that have no bearing on it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from auditor.core import reading
from auditor.core.errors import DataFileError
from auditor.core.types import SourceText
from auditor.perturb.neutral_edits import irrelevant
from auditor.tasks import load
from auditor.tasks.seeds import crossed

TASK = load("resume")
RESUMES = reading.shipped("embedded", "seeds", "resume.jsonl")
POSTS = reading.shipped("embedded", "seeds", "resume_posts.jsonl")


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_resume_is_asked_for_every_post_and_those_of_its_field_come_first() -> None:
    texts = TASK.seeds()
    assert (len(rows(RESUMES)), len(rows(POSTS)), len(texts)) == (24, 12, 288)
    assert len({text.text for text in texts}) == 288
    for text in texts[:48]:
        resume, post = text.id.split(".")
        assert resume.partition("-")[0] == post.partition("-")[0]
    assert Counter(text.label for text in texts[:48]) == {"invite": 24, "hold": 18, "reject": 6}
    assert {text.label for text in texts[48:]} == {"reject"}


def test_a_word_within_another_is_left_alone() -> None:
    assert irrelevant("Chessboards", {"hobby": [["Chess", "Hiking"]]}, "age", 3, Random(0)) == []


@pytest.mark.parametrize("form", ["json", "lines", "reasoned"])
def test_an_answer_holds_a_decision_and_a_score(form: str) -> None:
    said = {"json": '```json\n{"score": 41, "decision": "hold"}\n```'}.get(
        form, "A fair fit.\nScore: 41/100\nDecision: Hold."
    )
    answer = TASK.read(said, "chat", form)
    assert (answer.value, answer.number) == ("hold", 41.0)
    for half in ("Decision: hold", "Score: 41", "Score: 141\nDecision: hold"):
        assert TASK.read(half, "chat", form).status == "unparsed"
    assert TASK.read("invite", "chat", "word").value == "invite"
    assert TASK.read("invite", "chat", "word").number is None


def test_posts_of_ones_own(tmp_path: Path) -> None:
    posts = tmp_path / "posts.jsonl"
    posts.write_text(
        '{"id": "a", "text": "A post."}\n{"id": "b", "text": "Another.", "label": "hold", "labels": {"2": "invite"}}\n'
    )
    texts = [SourceText(id="1", text="One."), SourceText(id="2", text="Two.", subject=((0, 3),))]
    pairs = crossed(texts, posts)
    assert [(p.id, p.label) for p in pairs] == [("2.b", "invite"), ("1.a", None), ("1.b", "hold"), ("2.a", None)]
    assert (pairs[0].text, pairs[0].subject) == ("Two.\n\nAnother.", ((0, 3),))
    assert crossed(texts, posts, 1) == pairs[:1]
    posts.write_text('{"id": "a"}\n')
    with pytest.raises(DataFileError, match=r"posts.jsonl, line 1: field text"):
        crossed(texts, posts)
