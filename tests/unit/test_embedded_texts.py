"""The embedded texts: format, labels, balance, whom they are about, and that no text repeats another."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from auditor.core import reading
from auditor.perturb import dictionaries
from auditor.perturb.dictionaries import persons
from auditor.tasks import load


class Kept(NamedTuple):
    """What one file of texts has to keep to."""

    prefix: str
    least: int  # texts
    labels: int  # distinct ones at least
    around: float  # how far the share of a gender may be from a half


FILES = {
    "sentiment": Kept("sent", 320, 2, 0.05),
    "hiring": Kept("hire", 320, 2, 0.05),
    "ecthr": Kept("ecthr", 40, 10, 0.15),
    "scotus": Kept("scotus", 40, 14, 0.15),
    "ledgar": Kept("ledgar", 40, 40, 0.15),
    "eurlex": Kept("eurlex", 40, 50, 0.15),
    "lending": Kept("lend", 40, 2, 0.15),
    "moderation": Kept("mod", 40, 2, 0.15),
    "triage": Kept("triage", 40, 2, 0.15),
}
JUDGED = ("hiring", "lending", "triage", "salary", "rating", "letter", "advice")  # texts that name whom they judge
FEMALE = re.compile(
    r"\b(she|her|hers|herself|wom[ae]n|girls?|female|lad(y|ies)|(step|grand)?(mother|daughter|sister)s?"
    r"|wi(fe|ves)|widow|girlfriends?|actress(es)?|queens?|princess|aunts?|m(r)?s\.)(?![\w-])",
    re.IGNORECASE,
)
MALE = re.compile(
    r"\b(he|him|his|himself|m[ae]n|guys?|boys?|male|gentlem[ae]n|(step|grand)?(father|son|brother)s?"
    r"|husbands?|widower|boyfriends?|actors?|kings?|princes?|uncles?|mr\.)(?![\w-])",
    re.IGNORECASE,
)
PRONOUN = re.compile(r"\b(she|her|hers|herself|he|him|his|himself)\b", re.IGNORECASE)


@cache
def rows(name: str) -> tuple[dict[str, Any], ...]:
    lines = reading.shipped("embedded", "seeds", f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


@cache
def terms(attribute: str) -> tuple[re.Pattern[str], dict[str, str]]:
    """The words of a dictionary, and the group of each."""
    groups = {term.text.lower(): term.group for term in dictionaries.load(attribute).sources}
    longest = sorted(groups, key=lambda text: (-len(text), text))
    return re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, longest))})(?![\w-])", re.IGNORECASE), groups


@pytest.mark.parametrize("name", FILES)
def test_ids_count_up_and_labels_are_the_tasks(name: str) -> None:
    kept, task = FILES[name], load(name)
    assert len(rows(name)) >= kept.least
    used: set[str] = set()
    for number, (row, seed) in enumerate(zip(rows(name), task.seeds(), strict=True), start=1):
        assert set(row) - {"subject"} == {"id", "text", "label"}
        assert row["id"] == f"{kept.prefix}-{number:03d}"
        several = isinstance(row["label"], list)
        used |= set(row["label"]) if several else {row["label"]}
        assert seed.label is not None
        assert task.read(seed.label, "text").value == (tuple(sorted(row["label"])) if several else row["label"])
        assert task.kept(seed.text) == len(seed.text)
    assert kept.labels <= len(used)
    assert used <= set(task.labels)


@pytest.mark.parametrize("name", FILES)
def test_she_is_about_as_common_as_he_and_neither_goes_with_a_label(name: str) -> None:
    kept = FILES[name]
    female, male = (sum(len(word.findall(row["text"])) for row in rows(name)) for word in (FEMALE, MALE))
    assert abs(female / (female + male) - 0.5) <= kept.around
    if kept.labels == 2:
        first = load(name).labels[0]
        for word in (re.compile(""), FEMALE, MALE):
            chosen = [row["label"] == first for row in rows(name) if word.search(row["text"])]
            assert abs(sum(chosen) / len(chosen) - 0.5) <= kept.around + 0.02


def named(row: dict[str, Any], attribute: str) -> frozenset[str]:
    """The groups that the words of the person judged name."""
    pattern, groups = terms(attribute)
    words = " ".join(row["text"][start:end] for start, end in row["subject"])
    found = {groups[match.lower()].removeprefix("trans_") for match in pattern.findall(words)}
    return frozenset(found - {"unmarked", "nonbinary"})


@pytest.mark.parametrize("name", JUDGED)
def test_spans_hold_whole_words_in_order_and_one_gender(name: str) -> None:
    singular, plural, _ = persons()
    known = singular | plural | {word for word in terms("gender")[1] if not PRONOUN.fullmatch(word)}
    known |= {"caller", "cousin", "friend", "grower", "he at the bank", "postdoc", "priest"}
    somebody = re.compile(rf"\b({'|'.join(sorted(known))})\b", re.IGNORECASE)
    for row, seed in zip(rows(name), load(name).seeds(), strict=True):
        text, spans = row["text"], row["subject"]
        assert seed.subject == tuple(map(tuple, spans))
        assert all(end <= start for (_, end), (start, _) in pairwise(spans)), row["id"]
        rest = text
        for start, end in spans:
            assert re.fullmatch(r"\w[\w .-]*\w\.?|I", text[start:end]), (row["id"], text[start:end])
            assert not re.search(r"\w$", text[:start]), row["id"]
            assert not re.match(r"\w", text[end:]), row["id"]
            rest = rest[:start] + " " * (end - start) + rest[end:]
        assert somebody.search(rest) or not PRONOUN.search(rest), row["id"]  # another pronoun is of another person
        assert name == "advice" or len(named(row, "gender")) <= 1, row["id"]


def test_gender_and_race_of_an_applicant_go_with_no_label() -> None:
    counts = Counter((group, row["label"]) for row in rows("hiring") for group in named(row, "gender"))
    assert counts.total() >= 250
    for label in ("invite", "reject"):
        assert 0.45 <= counts["female", label] / (counts["female", label] + counts["male", label]) <= 0.55
    bearing = [row for row in rows("hiring") if named(row, "race")]
    assert len(bearing) >= 250
    assert all(len(named(row, "race")) == 1 for row in bearing)
    for group in dictionaries.load("race").groups:
        of_group = [row for row in bearing if group in named(row, "race")]
        assert len(of_group) >= 25
        for held in (
            (row["label"] == "invite" for row in of_group),
            ("female" in named(row, "gender") for row in of_group),
        ):
            assert 0.4 <= sum(held) / len(of_group) <= 0.6, group


def test_every_resume_is_asked_for_every_post_and_those_of_its_field_come_first() -> None:
    texts = load("resume").seeds()
    assert (len(rows("resume")), len(rows("resume_posts")), len(texts)) == (24, 12, 288)
    assert len({text.text for text in texts}) == 288
    for text in texts[:48]:
        resume, post = text.id.split(".")
        assert resume.partition("-")[0] == post.partition("-")[0]
    assert Counter(text.label for text in texts[:48]) == {"invite": 24, "hold": 18, "reject": 6}
    assert {text.label for text in texts[48:]} == {"reject"}
