"""The gate against what readers found; thresholds are below what was measured when it was fixed (docs/method/validity.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache

import pytest

from auditor.perturb.dependency import DependencyInvariant
from auditor.perturb.gate import RULES, Constructs, Place
from auditor.text.parse import Parser
from tests.planted.gate_set import SHARED, Read, case_of, measure, precision, read, recall, rows

PARSER = Parser()
Rule = Callable[[Place], str]


def test_the_set_is_as_it_was_drawn() -> None:
    found = rows()
    assert len({row["id"] for row in found}) == len(found) == 1157
    assert sum("text" in row for row in found) >= 800
    assert {row["verdict"] for row in found} == {"good", "grammar", "meaning", "contradiction"}
    assert all(row["verdict"] == row["first"] for row in found if row["first"] == row["second"])
    documents = {(row["file"], row["source"].split("#")[0]): set() for row in found}  # type: ignore[var-annotated]
    for row in found:
        documents[row["file"], row["source"].split("#")[0]].add(row["half"])
    assert all(len(halves) == 1 for halves in documents.values())
    assert max(Counter((row["file"], row["source"].split("#")[0]) for row in found).values()) <= 3


@pytest.mark.parametrize(
    ("half", "least_precision", "least_recall"), [("dev", 0.96, 0.95), ("opened", 0.90, 0.97), ("held_out", 0.90, 0.94)]
)
def test_what_readers_found_good_is_kept(half: str, least_precision: float, least_recall: float) -> None:
    found = read(half, shared=False, made=True)
    cells = measure(Constructs(parser=PARSER), found)
    assert sum(cells.values()) > 120
    assert precision(cells) >= least_precision
    assert recall(cells) >= least_recall


def test_what_was_drawn_later_is_kept_where_it_is_good() -> None:
    cells = measure(Constructs(parser=PARSER), read(shared=False, file="later.jsonl", made=True))
    assert sum(cells.values()) > 50
    assert precision(cells) >= 0.95
    assert recall(cells) >= 0.95


def fresh() -> list[Read]:
    """The variants of all fresh sets that are still made; each set weighs as much as it has variants."""
    found = read(shared=SHARED.exists(), file="fresh.jsonl", made=True)
    number = Counter(one.half for one in found)
    total = {half: sum(one.weight for one in found if one.half == half) for half in number}
    return [one._replace(weight=one.weight * number[one.half] / total[one.half]) for one in found]


FRESH = fresh()
OURS = ("auditor/embedded/", "recorded_llm/")  # embedded texts, care notes and assessments of applicants


@pytest.mark.parametrize(("ours", "least_precision", "least_recall"), [(True, 0.95, 0.88), (False, 0.85, 0.85)])
def test_the_aims_are_met_on_what_was_drawn_fresh(ours: bool, least_precision: float, least_recall: float) -> None:
    found = [one for one in FRESH if one.file.startswith(OURS) is ours]
    cells = measure(Constructs(parser=PARSER), found, weighted=True)
    assert len(found) > 200
    assert precision(cells) >= least_precision
    assert recall(cells) >= least_recall


@cache
def caught(rule: Rule) -> frozenset[int]:
    """The fresh variants that a rule refuses alone; a gate refuses what any of its rules does."""
    checks = Constructs(parser=PARSER, rules=[rule]).check_many(case_of(one) for one in FRESH)
    return frozenset(n for n, (check,) in enumerate(checks) if check.status == "invalid")


def precision_of(rules: Iterable[Rule], but: str) -> float:
    """The precision of a gate on the fresh variants, without one of their sets."""
    refused = frozenset[int]().union(*map(caught, rules))
    cells: Counter[tuple[bool, bool]] = Counter()
    for n, one in enumerate(FRESH):
        if one.half != but:
            cells[one.verdict == "good", n not in refused] += one.weight
    return precision(cells)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_each_rule_pays(rule: Rule) -> None:
    """A rule that does not raise the precision on fresh texts, also without the set that it serves best, goes."""
    others = [one for one in RULES if one is not rule]
    halves = Counter(FRESH[n].half for n in caught(rule) if FRESH[n].verdict != "good")
    best = max(halves.items(), key=lambda item: item[1])[0]
    # The committed half of the texts is too little to leave a set out.
    for but in ("", best) if SHARED.exists() else ("",):
        assert precision_of(RULES, but) > precision_of(others, but)


@pytest.mark.parametrize("half", ["fresh_7", "fresh_8", "fresh_9"])
def test_two_readers_and_where_they_differ_a_third_settled_the_later_sets(half: str) -> None:
    own = [row for row in rows("fresh.jsonl") if row["half"] == half]
    assert len(own) > 350
    differ = [row for row in own if (row["first"] == "good") != (row["second"] == "good")]
    assert 0 < len(differ) < 0.04 * len(own)
    assert all(row["verdict"] == row["first"] for row in own if row["first"] == row["second"])


def test_it_keeps_far_more_of_what_is_good_than_the_dependency_invariant() -> None:
    found = read("held_out", shared=False)
    ours, theirs = (measure(Constructs(parser=PARSER), found), measure(DependencyInvariant(parser=PARSER), found))
    assert recall(ours) > recall(theirs) + 0.25
    assert precision(ours) > precision(theirs)


@pytest.mark.skipif(not SHARED.exists(), reason="the texts that are not committed are in ../shared")
def test_texts_that_are_not_committed_are_found_again() -> None:
    assert len(read()) == 1157  # each is compared with its digest
    assert len(read(file="fresh.jsonl")) == len(rows("fresh.jsonl"))
