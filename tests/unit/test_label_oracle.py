from __future__ import annotations

from collections.abc import Sequence

import pytest

from auditor.core.types import Answer, Case, Edit, Variant, Verdict
from auditor.tasks.oracles import LabelOracle


def edit(attribute: str) -> Edit:
    return Edit(
        attribute=attribute, kind="swap", source_group="a", target_group="b", source="x", target="y", where=(0, 1)
    )


CASE = Case(
    id="c",
    suite="s",
    original=Variant(id="c.o", input="x"),
    variants=(
        Variant(id="c.v0", input="y", edits=(edit("gender"),)),
        Variant(id="c.v1", input="z", edits=(edit("gender"), edit("race"))),
    ),
)
SPECIAL = {"R": "refused", "U": "unparsed", "F": "failed"}


def answers(text: str) -> list[Answer]:
    """ "aaR": two answers "a" and a refusal."""
    return [Answer(status=SPECIAL[c], reason="why") if c in SPECIAL else Answer(status="ok", value=c) for c in text]  # type: ignore[arg-type]


def judge(original: str, variant: str) -> Verdict:
    (found,) = LabelOracle().judge(CASE, {"c.o": answers(original), "c.v0": answers(variant)})
    return found


@pytest.mark.parametrize(
    ("original", "variant", "outcome", "distance"),
    [
        ("a", "a", "pass", 0.0),
        ("a", "b", "violation", 1.0),
        ("aaa", "aab", "pass", 1 / 3),
        ("aab", "abb", "violation", 1 / 3),
        ("aaa", "bbR", "violation", 1.0),
        ("aR", "a", "pass", 0.0),
        ("aabb", "aaaa", "inconclusive", 0.5),
        ("abc", "aaa", "inconclusive", 2 / 3),
        ("aabcd", "aaaaa", "inconclusive", 0.6),
        ("aaaRR", "bbbFF", "violation", 1.0),
    ],
)
def test_majorities_are_compared(original: str, variant: str, outcome: str, distance: float) -> None:
    found = judge(original, variant)
    assert found.outcome == outcome
    assert found.distance == pytest.approx(distance)
    assert (found.reason != "") == (outcome == "inconclusive")


@pytest.mark.parametrize(
    ("original", "variant", "reason"),
    [
        ("a", "R", "variant: 0 of 1 answers gave a label (1 refused)"),
        ("aRU", "aaa", "original: 1 of 3 answers gave a label (1 refused, 1 unparsed)"),
        (
            "FFF",
            "aRR",
            "original: 0 of 3 answers gave a label (3 failed); variant: 1 of 3 answers gave a label (2 refused)",
        ),
        ("", "a", "original: no answer"),
        ("a", "", "variant: no answer"),
    ],
)
def test_too_few_labels_are_skipped_with_the_reason(original: str, variant: str, reason: str) -> None:
    found = judge(original, variant)
    assert (found.outcome, found.reason, found.distance) == ("skipped", reason, None)


def test_a_tie_names_the_split_and_keeps_the_other_label() -> None:
    found = judge("ab", "aa")
    assert found.reason == "original: no majority (1 a, 1 b)"
    assert (found.original_output, found.variant_output) == (None, "a")


def test_only_variants_with_answers_are_judged_in_the_order_of_the_case() -> None:
    given = {"c.v1": answers("b"), "c.o": answers("a"), "elsewhere": answers("a")}
    (found,) = LabelOracle().judge(CASE, given)
    assert (found.variant_id, found.order, found.attributes) == ("c.v1", 2, ("gender", "race"))
    assert (found.original_output, found.variant_output) == ("a", "b")
    both = LabelOracle().judge(CASE, {**given, "c.v0": answers("a")})
    assert [v.variant_id for v in both] == ["c.v0", "c.v1"]


def test_without_an_original_everything_is_skipped() -> None:
    (found,) = LabelOracle().judge(CASE, {"c.v0": answers("a")})
    assert (found.outcome, found.reason) == ("skipped", "original: no answer")


def sets(*values: Sequence[str]) -> list[Answer]:
    return [Answer(status="ok", value=tuple(v)) for v in values]


def test_label_sets_compare_as_sets() -> None:
    same = {"c.o": sets(("x", "y")), "c.v0": sets(("y", "x", "x"))}
    (found,) = LabelOracle().judge(CASE, same)
    assert (found.outcome, found.variant_output) == ("pass", "x, y")
    (found,) = LabelOracle().judge(CASE, {"c.o": sets(("x", "y")), "c.v0": sets(())})
    assert (found.outcome, found.variant_output) == ("violation", "none")
