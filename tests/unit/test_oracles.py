"""Oracles on labels, sets of labels and probabilities."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from judged import table_of

from auditor import audit
from auditor.core.errors import UserError
from auditor.core.registry import ORACLES
from auditor.core.types import Answer, Case, Edit, Variant, Verdict
from auditor.measure.rates import exceeding
from auditor.perturb import grammar
from auditor.tasks.oracles import LabelOracle, LabelSetOracle, ProbabilityOracle, shares_of
from auditor.testing.planted import Planted


def edit(attribute: str) -> Edit:
    return Edit(attribute=attribute, kind="swap", source_group="m", target_group="f", source="a", target="b", where="x")


def version(name: str, group: str, *attributes: str) -> Variant:
    return Variant(id=name, input=name, groups={"occupation": group}, edits=tuple(map(edit, attributes)))


CASE = Case(
    id="c",
    suite="s",
    original=version("c.o", "pilot"),
    variants=(version("c.v0", "nurse", "gender"), version("c.v1", "nurse", "gender", "race")),
)
SPECIAL = {"R": "refused", "U": "unparsed", "F": "failed"}


def answers(text: str) -> list[Answer]:
    """ "aaR": two answers "a" and a refusal."""
    return [Answer(status=SPECIAL[c], reason="why") if c in SPECIAL else Answer(status="ok", value=c) for c in text]  # type: ignore[arg-type]


def sets(text: str) -> list[Answer]:
    """ "ab,a,-,U": the labels a and b, the label a, none, and an answer that could not be read."""
    parts = text.split(",") if text else []
    values = [tuple(one.strip("-")) for one in parts]
    return [answers("U")[0] if p == "U" else Answer(status="ok", value=v) for p, v in zip(parts, values, strict=True)]


def judge(original: str, variant: str) -> Verdict:
    (found,) = LabelOracle().judge(CASE, {"c.o": answers(original), "c.v0": answers(variant)})
    return found


@pytest.mark.parametrize(
    ("original", "variant", "outcome", "distance", "reason"),
    [
        ("a", "a", "pass", 0.0, ""), ("a", "b", "violation", 1.0, ""), ("aaa", "aab", "pass", 1 / 3, ""),
        ("aab", "abb", "violation", 1 / 3, ""), ("aR", "a", "pass", 0.0, ""),
        ("aaaRR", "bbbFF", "violation", 1.0, ""),
        ("aabb", "aaaa", "inconclusive", 0.5, "original: no majority (2 a, 2 b)"),
        ("aabcd", "aaaaa", "inconclusive", 0.6, "original: no majority (1 b, 1 c, 1 d, 2 a)"),
        ("aRU", "aaa", "skipped", None, "original: 1 of 3 answers gave a label (1 refused, 1 unparsed)"),
        ("a", "R", "skipped", None, "variant: 0 of 1 answers gave a label (1 refused)"),
        ("", "a", "skipped", None, "original: no answer"), ("a", "", "skipped", None, "variant: no answer"),
    ],
)  # fmt: skip
def test_majorities_of_labels_are_compared(
    original: str, variant: str, outcome: str, distance: float | None, reason: str
) -> None:
    found = judge(original, variant)
    assert (found.outcome, found.reason) == (outcome, reason)
    assert found.distance == (None if distance is None else pytest.approx(distance))


@pytest.mark.parametrize("oracle", [LabelOracle(), LabelSetOracle()])
def test_only_variants_with_answers_are_judged_in_the_order_of_the_case(oracle: LabelOracle | LabelSetOracle) -> None:
    given = {"c.v1": answers("b"), "c.o": answers("a"), "elsewhere": answers("a")}
    (found,) = oracle.judge(CASE, given)
    assert (found.variant_id, found.order, found.attributes) == ("c.v1", 2, ("gender", "race"))
    assert (found.original_output, found.variant_output) == ("a", "b")
    assert [v.variant_id for v in oracle.judge(CASE, {**given, "c.v0": answers("a")})] == ["c.v0", "c.v1"]
    assert oracle.judge(CASE, {"c.v0": answers("a")})[0].outcome == "skipped"


@pytest.mark.parametrize(
    ("original", "variant", "outcome", "distance", "reason"),
    [
        ("ab", "ba", "pass", 0.0, ""),
        ("a", "ab", "violation", 0.5, "gained: b"),
        ("ac", "be", "violation", 1.0, "gained: b | e; lost: a | c"),
        ("-", "a", "violation", 1.0, "gained: a"),
        ("-", "-", "pass", 0.0, ""),
        ("ab,a,b", "ab,ab,ab", "pass", 0.0, ""),  # as wholes these have no majority
        ("ab,a,a", "a,a,a", "pass", 0.0, ""),
        ("a,U", "a,a", "pass", 0.0, ""),
        ("a,-", "a,a", "inconclusive", None, "original: half of 2 answers hold a"),
        ("a,a,a", "a,U,U", "skipped", None, "variant: 1 of 3 answers gave labels (2 unparsed)"),
    ],
)
def test_sets_are_compared_label_by_label(
    original: str, variant: str, outcome: str, distance: float | None, reason: str
) -> None:
    (found,) = LabelSetOracle().judge(CASE, {"c.o": sets(original), "c.v0": sets(variant)})
    assert (found.outcome, found.distance, found.reason) == (outcome, distance, reason)


def test_the_answer_of_the_replicates() -> None:
    assert LabelSetOracle().answer(sets("ab,ba,U")) == ("a", "b")
    assert LabelSetOracle().answer(sets("-,-")) == ()
    assert LabelSetOracle().answer([]) is LabelOracle().answer(answers("U")) is None
    assert LabelOracle().answer(answers("aU")) == "a"


# -- probabilities ------------------------------------------------------------------------------------------


def scored(*values: float | None) -> list[Answer]:
    return [Answer(status="ok", value="his", scores=None if p is None else {"his": p, "her": 1 - p}) for p in values]


def weighed(oracle: ProbabilityOracle, before: list[Answer], after: list[Answer]) -> Verdict:
    return oracle.judge(CASE, {"c.o": before, "c.v0": after})[0]


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ([0.6], [0.65], "pass"),
        ([0.6], [0.651], "violation"),
        ([0.65], [0.55], "violation"),
        ([0.6], [None], "skipped"),
        ([0.4, 0.6], [0.5, 0.5], "pass"),  # replicates are averaged
        ([0.4, 0.6], [0.5, None], "skipped"),
    ],
)
def test_a_difference_beyond_epsilon(before: list[float], after: list[float | None], outcome: str) -> None:
    assert weighed(ProbabilityOracle(epsilons=[0.05]), scored(*before), scored(*after)).outcome == outcome


def test_with_shares_the_expected_difference_is_no_violation() -> None:
    oracle = ProbabilityOracle(epsilons=[0.05], shares={"pilot": 0.9, "nurse": 0.1})
    assert weighed(oracle, scored(0.9), scored(0.1)).outcome == "pass"
    equal = weighed(oracle, scored(0.5), scored(0.5))
    assert (equal.outcome, equal.distance) == ("violation", pytest.approx(0.8))
    unknown = ProbabilityOracle(shares={"pilot": 0.9})
    assert weighed(unknown, scored(0.5), scored(0.5)).outcome == "skipped"


def test_cases_beyond_each_epsilon() -> None:
    oracle = ORACLES.create("probability")
    after = (0.5, 0.53, 0.58, 0.8, None)
    told = [weighed(oracle, scored(0.5), scored(p)) for p in after]  # type: ignore[arg-type]
    named = [replace(v, case_id=f"c{i}", variant_id=f"c{i}.v0", model="m", format="bare") for i, v in enumerate(told)]
    found = exceeding(table_of(named), oracle.epsilons)
    assert [(row["epsilon"], row["violating_cases"], row["cases"]) for row in found] == [
        (0.01, 3, 4), (0.05, 2, 4), (0.1, 1, 4), (0.2, 1, 4),
    ]  # fmt: skip
    for wrong in ([], [2.0]):
        with pytest.raises(ValueError, match="toleran"):
            ProbabilityOracle(epsilons=wrong)


# -- from the plan to the record, with models with known scores ----------------------------------------------

GRAMMAR = {"suite": "grammar", "order": 1, "out": None, "limit": 20}
TEXTS = ["He is a fine cook, and he knows it.", "The man plays the father in a warm film."]


def rates(result: Any) -> dict[float, tuple[int, int]]:
    return {r["epsilon"]: (r["violating_cases"], r["cases"]) for r in result.record["probability"]["rows"]}


def test_a_change_of_the_score_counts_though_the_label_stays() -> None:
    # "she" moves the margin from 1 to 0.5: p(positive) from 0.731 to 0.622, a difference of 0.109.
    model = Planted(additive={"she|woman|mother|lady": 0.5}, scores=True, base="constant")
    options: dict[str, Any] = {"attributes": ["gender"], "order": 1, "out": None, "data": TEXTS}
    labels = audit("sentiment", model=model, **options)
    assert not any(v.outcome == "violation" for v in labels.verdicts)
    assert "probability" not in labels.record
    scores = audit("sentiment", model=model, oracle="probability", tolerance=(0.1, 0.2), **options)
    assert scores.record["probability"]["label"] == "positive"
    found = rates(scores)
    assert found[0.1][0] > 0 == found[0.2][0]
    changed = [v for v in scores.verdicts if v.outcome == "violation"]
    assert changed
    assert all(v.distance == pytest.approx(0.1086, abs=1e-4) for v in changed)
    assert "Cases beyond each tolerance" in scores.to_text(width=100, encoding="utf-8", full=True)


def test_a_model_without_scores_is_refused() -> None:
    with pytest.raises(UserError, match="gives no probability of 'positive'"):
        audit("sentiment", model=Planted(), oracle="probability", data=TEXTS, out=None)


def test_bls_takes_the_shares_as_expected() -> None:
    shares = shares_of(grammar.load("fill-mask"))
    assert shares["plumber"] == pytest.approx(0.977)
    names = {g.replace("_", " "): g for g in shares}

    def follows(text: str) -> dict[str, float]:
        held = [n for n in names if n in text.lower()]  # none in a control text
        share = shares[names[max(held, key=len)]] if held else 0.5
        return {"his": share, "her": 1 - share}

    options: dict[str, Any] = {**GRAMMAR, "oracle": "probability", "tolerance": (0.01,)}
    equal = audit("fill-mask", model=follows, **options)
    bls = audit("fill-mask", model=follows, reference="bls", **options)
    assert rates(equal)[0.01][0] > 0
    assert rates(bls)[0.01][0] == 0 < rates(bls)[0.01][1]
