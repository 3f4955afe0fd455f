"""The oracle on sets of labels."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.registry import ORACLES
from auditor.core.types import Answer, Case, Edit, Variant, Verdict
from auditor.tasks.oracles import LabelOracle, LabelSetOracle, jaccard_distance, majority_set

EDIT = Edit(
    attribute="gender", kind="swap", source_group="m", target_group="f", source="man", target="woman", where=(0, 3)
)
CASE = Case(
    id="c",
    suite="s",
    original=Variant(id="c.o", input="man"),
    variants=(Variant(id="c.v0", input="woman", edits=(EDIT,)), Variant(id="c.v1", input="x", edits=(EDIT,))),
)
SETS = st.lists(st.sampled_from(["a", "b", "c, d", "e"]), max_size=4).map(tuple)


def ok(*labels: str) -> Answer:
    return Answer(status="ok", value=tuple(sorted(labels)))


BAD = Answer(status="unparsed", reason="names no label of the task")


def judge(original: list[Answer], variant: list[Answer]) -> Verdict:
    (verdict,) = LabelSetOracle().judge(CASE, {"c.o": original, "c.v0": variant})
    return verdict


def test_it_is_registered() -> None:
    assert isinstance(ORACLES.create("labelset"), LabelSetOracle)


def test_equal_sets_in_any_order() -> None:
    verdict = judge([Answer(status="ok", value=("b", "a"))], [Answer(status="ok", value=("a", "b", "a"))])
    assert (verdict.outcome, verdict.distance, verdict.reason) == ("pass", 0.0, "")
    assert (verdict.order, verdict.attributes) == (1, ("gender",))


@pytest.mark.parametrize(
    ("before", "after", "distance", "reason"),
    [
        (("a",), ("a", "b"), 0.5, "gained: b"),
        (("a", "b"), ("b",), 0.5, "lost: a"),
        (("a", "c, d"), ("b", "e"), 1.0, "gained: b | e; lost: a | c, d"),
        ((), ("a",), 1.0, "gained: a"),
        (("a", "b", "e"), ("a", "b", "c, d"), 0.5, "gained: c, d; lost: e"),
    ],
)
def test_labels_gained_and_lost(before: tuple[str, ...], after: tuple[str, ...], distance: float, reason: str) -> None:
    verdict = judge([ok(*before)], [ok(*after)])
    assert (verdict.outcome, verdict.distance, verdict.reason) == ("violation", distance, reason)


def test_outputs_as_text() -> None:
    verdict = judge([ok("b", "a")], [ok()])
    assert (verdict.original_output, verdict.variant_output) == ("a, b", "none")


def test_majority_of_each_label() -> None:
    verdict = judge([ok("a", "b"), ok("a"), ok("b")], [ok("a", "b")] * 3)
    assert (verdict.outcome, verdict.original_output) == ("pass", "a, b")
    # The same answers as wholes have no majority: this is why sets are judged label by label.
    answers = {"c.o": [ok("a", "b"), ok("a"), ok("b")], "c.v0": [ok("a", "b")] * 3}
    assert LabelOracle().judge(CASE, answers)[0].outcome == "inconclusive"


def test_a_label_that_one_of_three_answers_holds_is_not_in_the_set() -> None:
    assert majority_set([("a", "b"), ("a",), ("a",)]) == {"a"}
    assert judge([ok("a", "b"), ok("a"), ok("a")], [ok("a")] * 3).outcome == "pass"


def test_a_tie_is_inconclusive() -> None:
    verdict = judge([ok("a"), ok()], [ok("a"), ok("a")])
    assert verdict.outcome == "inconclusive"
    assert verdict.reason == "original: half of 2 answers hold a"
    assert (verdict.original_output, verdict.distance) == (None, None)


def test_half_that_parse_are_enough_fewer_are_not() -> None:
    assert judge([ok("a"), BAD], [ok("a"), ok("a")]).outcome == "pass"
    refused = Answer(status="refused", reason="declines to answer")
    verdict = judge([ok("a")] * 3, [ok("a"), BAD, refused])
    assert verdict.outcome == "skipped"
    assert verdict.reason == "variant: 1 of 3 answers gave labels (1 refused, 1 unparsed)"
    assert judge([], [ok("a")]).reason == "original: no answer"


def test_only_variants_that_were_asked() -> None:
    verdicts = LabelSetOracle().judge(CASE, {"c.o": [ok("a")], "c.v1": [ok("b")]})
    assert [v.variant_id for v in verdicts] == ["c.v1"]


def test_the_answer_that_stands_for_the_replicates() -> None:
    assert LabelSetOracle().answer([ok("b", "a"), ok("a", "b"), BAD]) == ("a", "b")
    assert LabelSetOracle().answer([ok(), ok()]) == ()
    assert LabelSetOracle().answer([]) is None
    assert LabelOracle().answer([Answer(status="ok", value="yes"), BAD]) == "yes"
    assert LabelOracle().answer([BAD]) is None


@given(SETS, SETS)
@settings(max_examples=60, deadline=None)
def test_jaccard_is_a_distance(a: tuple[str, ...], b: tuple[str, ...]) -> None:
    distance = jaccard_distance(a, b)
    assert 0 <= distance <= 1
    assert distance == jaccard_distance(b, a)
    assert (distance == 0) == (set(a) == set(b))


@given(st.lists(SETS, min_size=1, max_size=7))
@settings(max_examples=60, deadline=None)
def test_an_odd_number_of_answers_always_has_a_set(answers: list[tuple[str, ...]]) -> None:
    found = majority_set(answers)
    if len(answers) % 2:
        assert found is not None
    if len(set(map(frozenset, answers))) == 1:
        assert found == frozenset(answers[0])


@given(st.lists(SETS, min_size=1, max_size=5), st.lists(SETS, min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_one_answer_each_agrees_with_the_oracle_on_labels(
    before: list[tuple[str, ...]], after: list[tuple[str, ...]]
) -> None:
    answers = {"c.o": [ok(*before[0])], "c.v0": [ok(*after[0])]}
    assert LabelSetOracle().judge(CASE, answers)[0].outcome == LabelOracle().judge(CASE, answers)[0].outcome
