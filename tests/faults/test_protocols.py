"""Protocols of papers: they do as much as the paper, or the output says what was left out and how to get it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, tells

TEXT = "The British boy said that his film was slow."
NAMES = ["Adam", "Bruno", "Carl", "Dylan", "Ethan", "Felix", "Anna", "Beth", "Clara", "Dora", "Emma", "Fiona"]
GRAMMAR = f"""format: 1
name: calls
task: sentiment
description: one rule of twelve names
start: s
rules:
  s: ["{{name}} called about the {{thing}} {{when}}."]
  name: {{attribute: gender, groups: {{male: [{", ".join(NAMES[:6])}], female: [{", ".join(NAMES[6:])}]}}}}
  thing: [%s]
  when: [today, yesterday, again, twice, at noon, at night, early, late, on Sunday]
"""
MANY = [
    "book", "film", "song", "play", "trip", "meal", "room", "car", "bike", "lamp", "chair", "table", "phone", "watch",
    "coat", "shoe", "ring", "desk", "door", "house",
]  # fmt: skip
MODEL = """
def longest(text):
    first, *rest = text.split()
    return "negative" if (len(first) + sum(map(ord, first)) * sum(map(ord, "".join(rest)))) % 7 < len(first) else "positive"
longest.deterministic = True
"""


@pytest.fixture(autouse=True)
def place(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(place))
    (place / "one.txt").write_text(TEXT + "\n", encoding="utf-8")
    (place / "by_name.py").write_text(MODEL, encoding="utf-8")
    return place


def audited(capsys: Capture, line: str) -> tuple[dict[str, Any], str, str]:
    """Run `audit`; return the record, what the screen says in full in one line, and the page."""
    before = set(Path("reports").glob("2*"))
    screen = tells(capsys, f"--task sentiment --full {line}")
    [made] = set(Path("reports").glob("2*")) - before
    page = " ".join((made / "report.html").read_text(encoding="utf-8").split())
    return json.loads((made / "run.json").read_text(encoding="utf-8")), screen, page


def mutants(record: dict[str, Any]) -> list[int]:
    return [pair["joint"]["generated"] for pair in record["hinter"]["reviews"]]


@pytest.mark.slow
def test_hinter_makes_all_mutants_unless_a_limit_is_set(capsys: Capture) -> None:
    common = "--data one.txt --model reviews --protocol hinter"
    record, screen, page = audited(capsys, common)
    every, *_ = audited(capsys, f"{common} --per-seed 0")
    assert mutants(record) == mutants(every)
    assert record["counts"]["variants"] == every["counts"]["variants"]
    some, sampled, sampled_page = audited(capsys, f"{common} --per-seed 8")
    assert sum(mutants(some)) < sum(mutants(every))
    assert "sample of the mutants" not in screen + page
    for shown in (sampled, sampled_page):
        assert "sample of the mutants: --per-seed 8" in " ".join(shown[: shown.index("HInter, Table 9")].split())


def grammar(things: list[str]) -> str:
    Path("calls.yaml").write_text(GRAMMAR % ", ".join(things), encoding="utf-8")
    return "--suite grammar --suite-option grammar=calls.yaml --protocol astraea --model python:by_name:longest"


def indices(record: dict[str, Any]) -> list[float]:
    return [token["index"] for token in record["tokens"][0]["tokens"] if token["index"] is not None]


@pytest.mark.slow
def test_astraea_names_the_limit_that_gives_an_index(capsys: Capture) -> None:
    record, screen, page = audited(capsys, f"{grammar(MANY)} --limit 60")
    assert indices(record) == []
    named = re.search(r"About --limit ([\d,]+) is enough for one rule", screen)
    assert named[0] in page
    enough, screen, _ = audited(capsys, f"{grammar(MANY)} --limit {named[1].replace(',', '')}")
    assert indices(enough)
    assert "is enough for one rule" not in screen


@pytest.mark.parametrize("why", ["too few sentences", "too few names that are drawn"])
def test_astraea_names_no_limit_that_is_not_enough(capsys: Capture, why: str) -> None:
    few = why == "too few sentences"
    options = grammar(MANY[: 1 if few else 9])
    if not few:
        file = Path("calls.yaml")
        never = ", ".join(f"{{text: {name}, weight: 0}}" for name in NAMES[:3])
        file.write_text(file.read_text(encoding="utf-8").replace(", ".join(NAMES[:3]), never), encoding="utf-8")
    record, screen, _ = audited(capsys, f"{options} --limit 60")
    assert indices(record) == []
    assert "is enough for one rule" not in screen
