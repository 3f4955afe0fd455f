"""Whom the embedded texts of decision tasks judge: that the spans hold, and that no group goes with a label."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from auditor.core import reading
from auditor.perturb import dictionaries
from auditor.perturb.dictionaries import persons
from auditor.tasks import load

FAVOURABLE = {"hiring": "invite", "lending": "approve", "triage": "urgent"}
FILES = (*FAVOURABLE, "salary", "rating", "letter", "advice")
UNMARKED = {"unmarked", "nonbinary"}
PRONOUN = re.compile(r"\b(she|her|hers|herself|he|him|his|himself)\b", re.IGNORECASE)
CHI2 = 3.84  # of one degree of freedom, at 5 %


@cache
def rows(name: str) -> tuple[dict[str, Any], ...]:
    lines = reading.shipped("embedded", "seeds", f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


@cache
def terms(attribute: str) -> tuple[re.Pattern[str], dict[str, str]]:
    groups = {term.text.lower(): term.group for term in dictionaries.load(attribute).sources}
    longest = sorted(groups, key=lambda text: (-len(text), text))
    return re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, longest))})(?![\w-])", re.IGNORECASE), groups


def named(row: dict[str, Any], attribute: str) -> frozenset[str]:
    """The groups that the words of the person judged name."""
    pattern, groups = terms(attribute)
    found: set[str] = set()
    for start, end in row["subject"]:
        words = row["text"][start:end]
        if attribute == "nationality":  # "Native American" is none
            words = terms("race")[0].sub(" ", words)
        found |= {groups[match.lower()].removeprefix("trans_") for match in pattern.findall(words)}
    return frozenset(found - UNMARKED)


def outside(row: dict[str, Any]) -> str:
    """The text, with the words of the person judged blanked out."""
    text = row["text"]
    for start, end in row["subject"]:
        text = text[:start] + " " * (end - start) + text[end:]
    return str(text)


def by_label(name: str, attribute: str) -> Counter[tuple[str, str]]:
    """Texts by the group that they give the person judged, and label."""
    return Counter((group, row.get("label", "")) for row in rows(name) for group in named(row, attribute))


@pytest.mark.parametrize("name", FILES)
def test_spans_hold_whole_words_in_order(name: str) -> None:
    for row, seed in zip(rows(name), load(name).seeds(), strict=True):
        text, spans = row["text"], row["subject"]
        assert seed.subject == tuple(map(tuple, spans))
        assert all(end <= start for (_, end), (start, _) in pairwise(spans)), row["id"]
        for start, end in spans:
            assert re.fullmatch(r"\w[\w .-]*\w\.?|I", text[start:end]), (row["id"], text[start:end])
            assert not re.search(r"\w$", text[:start]), row["id"]
            assert not re.match(r"\w", text[end:]), row["id"]


@pytest.mark.parametrize("name", FILES)
def test_a_pronoun_of_somebody_else_has_somebody_to_stand_for(name: str) -> None:
    singular, plural, _ = persons()
    known = singular | plural | {word for word in terms("gender")[1] if not PRONOUN.fullmatch(word)}
    known |= {"caller", "cousin", "friend", "grower", "he at the bank", "postdoc", "priest"}
    pattern = re.compile(rf"\b({'|'.join(sorted(known))})\b", re.IGNORECASE)
    for row in rows(name):
        rest = outside(row)
        if PRONOUN.search(rest):
            assert pattern.search(rest), row["id"]


@pytest.mark.parametrize("name", [name for name in FILES if name != "advice"])
def test_the_one_judged_has_one_gender(name: str) -> None:
    assert [row["id"] for row in rows(name) if len(named(row, "gender")) > 1] == []


def test_the_gender_of_an_applicant_goes_with_no_label() -> None:
    counts = by_label("hiring", "gender")
    assert counts.total() >= 250
    female = {label: counts["female", label] for label in ("invite", "reject")}
    male = {label: counts["male", label] for label in ("invite", "reject")}
    for label in female:
        assert 0.45 <= female[label] / (female[label] + male[label]) <= 0.55
    cross = female["invite"] * male["reject"] - female["reject"] * male["invite"]
    sides = [sum(female.values()), sum(male.values()), *(female[label] + male[label] for label in female)]
    assert counts.total() * cross**2 / (sides[0] * sides[1] * sides[2] * sides[3]) < CHI2 / 4


def test_applicants_are_of_each_race_with_either_label_and_gender() -> None:
    groups = list(dictionaries.load("race").groups)
    bearing = [row for row in rows("hiring") if named(row, "race")]
    assert len(bearing) >= 250
    assert all(len(named(row, "race")) == 1 for row in bearing)
    for group in groups:
        of_group = [row for row in bearing if group in named(row, "race")]
        assert len(of_group) >= 25
        invited = sum(row["label"] == "invite" for row in of_group)
        female = sum("female" in named(row, "gender") for row in of_group)
        assert 0.4 <= invited / len(of_group) <= 0.6, group
        assert 0.4 <= female / len(of_group) <= 0.6, group
