"""The smaller sets of embedded seed texts: format, labels, people-terms, and that no text repeats another."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, NamedTuple

import pytest

from auditor.core import reading
from auditor.perturb import dictionaries
from auditor.tasks import load


class Kind(NamedTuple):
    """What one file of seed texts has to keep to."""

    prefix: str
    words: tuple[int, int]
    labels: int  # distinct labels at least


KINDS = {
    "ecthr": Kind("ecthr", (25, 60), 10),
    "scotus": Kind("scotus", (25, 60), 14),
    "ledgar": Kind("ledgar", (25, 60), 40),
    "eurlex": Kind("eurlex", (25, 60), 50),
    "lending": Kind("lend", (20, 60), 2),
    "moderation": Kind("mod", (15, 60), 2),
    "triage": Kind("triage", (20, 60), 2),
}
FILES = sorted(KINDS)
BINARY = ("lending", "moderation", "triage")
FEMALE = re.compile(
    r"\b(she|her|hers|herself|wom[ae]n|girls?|female|(grand)?(mother|daughter|sister)s?|wi(fe|ves)|widow|mrs\.|ms\.)(?![\w-])",
    re.IGNORECASE,
)
MALE = re.compile(
    r"\b(he|him|his|himself|m[ae]n|boys?|male|guy|(grand|step)?(father|son|brother)s?|husband|widower|mr\.)(?![\w-])",
    re.IGNORECASE,
)
RELIGION = re.compile(r"\b(Muslim|Christian|Jewish|Sikh|Hindu|Catholic|Baptist|rabbi|bishop|priest|Jehovah's)\b")
AGE = re.compile(r"\b(young|elderly|old|aged|age|minor|retired|pensioner)\b|\b\d{2}\b(?! percent)", re.IGNORECASE)


@cache
def rows(name: str) -> tuple[dict[str, Any], ...]:
    lines = reading.shipped("embedded", "seeds", f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


@cache
def words(attribute: str) -> re.Pattern[str]:
    terms = sorted({t.text for t in dictionaries.load(attribute).terms}, key=lambda t: (-len(t), t))
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, terms))})(?![\w-])")


def labels(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(row["label"]) if isinstance(row["label"], list) else (row["label"],)


def runs(text: str, length: int) -> set[tuple[str, ...]]:
    found = re.findall(r"\w+(?:'\w+)*", text.lower())
    return {tuple(found[i : i + length]) for i in range(len(found) - length + 1)}


def share(name: str, pattern: re.Pattern[str]) -> float:
    return sum(bool(pattern.search(row["text"])) for row in rows(name)) / len(rows(name))


@pytest.mark.parametrize("name", FILES)
def test_every_line_has_the_three_fields_and_the_ids_count_up(name: str) -> None:
    assert len(rows(name)) >= 40
    for number, row in enumerate(rows(name), start=1):
        assert set(row) - {"subject"} == {"id", "text", "label"}
        assert row["id"] == f"{KINDS[name].prefix}-{number:03d}"


@pytest.mark.parametrize("name", FILES)
def test_labels_are_the_tasks_and_many_of_them(name: str) -> None:
    task = load(name)
    used = {label for row in rows(name) for label in labels(row)}
    assert used <= set(task.labels)
    assert len(used) >= KINDS[name].labels
    for seed, row in zip(task.seeds(), rows(name), strict=True):
        assert seed.label is not None
        value = task.read(seed.label, "text").value
        assert value == (tuple(sorted(row["label"])) if task.kind.several else row["label"])
        assert task.kept(seed.text) == len(seed.text)


@pytest.mark.parametrize("name", BINARY)
def test_labels_are_balanced_over_all_by_order_and_by_gender(name: str) -> None:
    first = load(name).labels[0]

    def rate(chosen: list[dict[str, Any]]) -> float:
        return sum(row["label"] == first for row in chosen) / len(chosen)

    every = list(rows(name))
    assert rate(every) == 0.5
    for part in (every[::2], every[1::2], every[:21], every[21:]):
        assert 0.3 <= rate(part) <= 0.7
    for pattern in (FEMALE, MALE):
        assert 0.35 <= rate([row for row in every if pattern.search(row["text"])]) <= 0.65


@pytest.mark.parametrize("name", FILES)
def test_she_is_about_as_common_as_he(name: str) -> None:
    female = sum(len(FEMALE.findall(row["text"])) for row in rows(name))
    male = sum(len(MALE.findall(row["text"])) for row in rows(name))
    assert 0.35 <= female / (female + male) <= 0.65


@pytest.mark.parametrize("name", FILES)
def test_texts_name_people_by_several_attributes(name: str) -> None:
    gender, nation, race = words("gender"), words("nationality"), words("race")
    low = {"ledgar": 0.3}.get(name, 0.4)
    texts = [row["text"] for row in rows(name)]
    gendered = [bool(FEMALE.search(text) or MALE.search(text)) for text in texts]
    assert sum(gendered) >= 0.9 * len(texts)
    assert all(
        found or any(pattern.search(text) for pattern in (gender, nation, race))
        for found, text in zip(gendered, texts, strict=True)
    )
    assert share(name, nation) >= low
    assert sum(bool(race.search(r["text"])) for r in rows(name)) >= 1
    assert any(RELIGION.search(r["text"]) for r in rows(name))
    assert sum(bool(AGE.search(r["text"])) for r in rows(name)) >= 3


def test_no_two_texts_share_a_run_of_eight_words() -> None:
    owner: dict[tuple[str, ...], str] = {}
    for name in [*FILES, "sentiment", "hiring"]:
        for row in rows(name):
            for run in runs(row["text"], 8):
                assert owner.setdefault(run, row["id"]) == row["id"], " ".join(run)


def test_no_example_of_a_prompt_is_a_seed_text() -> None:
    for name in FILES:
        shown = {run for example in load(name).examples for run in runs(example.text, 6)}
        for row in rows(name):
            assert not shown & runs(row["text"], 6), row["id"]
