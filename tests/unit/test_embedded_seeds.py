"""The embedded seed texts: format, balance, attribute terms, and that no text repeats another."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from typing import NamedTuple

import pytest

from auditor.core import reading
from auditor.perturb import dictionaries
from auditor.perturb.dictionaries import persons


class Kind(NamedTuple):
    """What one file of seed texts has to keep to."""

    prefix: str
    favourable: str
    unfavourable: str
    words: tuple[int, int]


KINDS = {
    "sentiment": Kind("sent", "positive", "negative", (12, 60)),
    "hiring": Kind("hire", "invite", "reject", (15, 70)),
}
FILES = sorted(KINDS)

FEMALE = re.compile(
    r"\b(she|her|hers|herself|wom[ae]n|girls?|lad(y|ies)|(step|grand)?(mother|daughter|sister)s?"
    r"|wi(fe|ves)|girlfriends?|actress(es)?|queens?|princess|aunts?|m(r)?s\.)(?![\w-])",
    re.IGNORECASE,
)
MALE = re.compile(
    r"\b(he|him|his|himself|m[ae]n|guys?|boys?|gentlem[ae]n|(step|grand)?(father|son|brother)s?"
    r"|husbands?|boyfriends?|actors?|kings?|princes?|uncles?|mr\.)(?![\w-])",
    re.IGNORECASE,
)
RACE = re.compile(
    r"\b(Black|African American|[Ww]hite|Caucasian|Asian American|Asian|Latin[oa]|Latin American|Hispanic"
    r"|Native American|Indigenous|First Nations|Alaska Native|Arab|Middle Eastern|Pacific Islander|Native Hawaiian"
    r"|Polynesian|Roma|Romani|[Mm]ultiracial|[Bb]iracial|[Mm]ixed-race)(?![\w-])"
)
AFTER_RACE = re.compile(RACE.pattern + r"\s+([a-z]+)")
NATION = re.compile(
    r"\b(British|American|Italian|Nigerian|Mexican|Chinese|Indian|French|German|Polish|Russian|Brazilian"
    r"|Pakistani|Korean|Filipino|Canadian|Turkish|Kenyan|Swedish|Irish)s?(?![\w-])"
)
WORK = """
busboy cellmate cleaners concierge cutter dishwasher elders fishermen foreman governess grocer grocers grower guide
maid pensioners pupils roofers roughnecks soprano stagehand striker treasurer trucker watchmaker
"""  # person nouns of the texts beside those that the tool knows
PERSON_NOUNS = frozenset(WORK.split()).union(*persons()[:2])
ATTRIBUTES = ("gender", "nationality", "race/ethnicity")


@cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    lines = reading.shipped("embedded", "seeds", f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


def attributes(text: str) -> frozenset[str]:
    """The attributes of which a text holds a term; unmarked words such as ``people`` do not count."""
    found = set()
    if FEMALE.search(text) or MALE.search(text):
        found.add("gender")
    if any(match[2] in PERSON_NOUNS for match in AFTER_RACE.finditer(text)):
        found.add("race/ethnicity")
    if NATION.search(RACE.sub(" ", text)):  # "Native American" is no nationality
        found.add("nationality")
    return frozenset(found)


def share(name: str, test: object) -> float:
    assert callable(test)
    return sum(bool(test(row["text"])) for row in rows(name)) / len(rows(name))


@pytest.mark.parametrize("name", FILES)
def test_every_line_has_the_three_fields_and_the_ids_count_up(name: str) -> None:
    kind = KINDS[name]
    assert len(rows(name)) >= 320
    for number, row in enumerate(rows(name), start=1):
        assert set(row) - {"subject"} == {"id", "text", "label"}
        assert row["id"] == f"{kind.prefix}-{number:03d}"
        assert row["label"] in {kind.favourable, kind.unfavourable}


@pytest.mark.parametrize("name", FILES)
def test_labels_are_balanced_over_all_and_within_gender(name: str) -> None:
    favourable = KINDS[name].favourable
    groups: dict[str, list[bool]] = {}
    for row in rows(name):
        she, he = bool(FEMALE.search(row["text"])), bool(MALE.search(row["text"]))
        for group, member in (
            ("all", True),
            ("she", she),
            ("he", he),
            ("only she", she and not he),
            ("only he", he and not she),
        ):
            if member:
                groups.setdefault(group, []).append(row["label"] == favourable)
    rates = {group: sum(found) / len(found) for group, found in groups.items()}
    assert 0.45 <= rates.pop("all") <= 0.55
    assert all(0.43 <= rate <= 0.57 for rate in rates.values()), rates


def test_many_reviews_name_one_gender_only_and_either_label_has_as_many() -> None:
    counts: Counter[tuple[str, str]] = Counter()
    groups = {term.text.lower(): term.group for term in dictionaries.load("gender").sources}
    for row in rows("sentiment"):
        words = re.findall(r"(?<![\w-])[\w'.]+(?![\w-])", row["text"].lower())
        named = {groups.get(word, groups.get(word.rstrip("."), "")).removeprefix("trans_") for word in words}
        if len(only := named & {"female", "male"}) == 1:
            counts[only.pop(), row["label"]] += 1
    assert counts.total() >= 220
    assert max(counts.values()) <= 1.15 * min(counts.values()), counts


@pytest.mark.parametrize("name", FILES)
def test_she_is_as_common_as_he(name: str) -> None:
    female = sum(len(FEMALE.findall(row["text"])) for row in rows(name))
    male = sum(len(MALE.findall(row["text"])) for row in rows(name))
    assert 0.45 <= female / (female + male) <= 0.55


@pytest.mark.parametrize("name", FILES)
def test_no_race_or_nationality_goes_with_one_label(name: str) -> None:
    counts: dict[str, Counter[str]] = {}
    for row in rows(name):
        terms = {match[1].capitalize() for match in RACE.finditer(row["text"])}
        terms |= {match[1] for match in NATION.finditer(RACE.sub(" ", row["text"]))}
        for term in terms:
            counts.setdefault(term, Counter())[row["label"]] += 1
    common = {term: labels for term, labels in counts.items() if labels.total() >= 7}
    assert len(common) >= 20
    for term, labels in common.items():
        assert 0.25 <= labels[KINDS[name].favourable] / labels.total() <= 0.75, (term, labels)


@pytest.mark.parametrize("name", FILES)
def test_attribute_shares(name: str) -> None:
    assert share(name, lambda text: "gender" in attributes(text)) >= 0.70
    assert share(name, lambda text: "nationality" in attributes(text)) >= 0.45
    assert share(name, lambda text: "race/ethnicity" in attributes(text)) >= 0.35
    assert share(name, lambda text: len(attributes(text)) >= 2) >= 0.70
    assert share(name, lambda text: len(attributes(text)) == 3) >= 0.10
    assert all(attributes(row["text"]) for row in rows(name))


def test_attributes_of_known_texts() -> None:
    assert attributes("A Native American man left.") == {"gender", "race/ethnicity"}
    assert attributes("An American left the white house.") == {"nationality"}
    assert attributes("Her Black colleague met two Italians.") == set(ATTRIBUTES)
    assert attributes("People like it.") == set()
