"""Oracles on labels, sets of labels and probabilities; answers against gold labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judged import edit, swap, table_of
from msgspec import to_builtins

from auditor import audit
from auditor.core.errors import UserError
from auditor.core.protocols import ORACLES
from auditor.core.record import read
from auditor.core.types import Answer, Case, Variant, Verdict
from auditor.measure import answer_quality
from auditor.measure.observations import Observations, shape_of
from auditor.measure.rates import exceeding
from auditor.perturb import grammar
from auditor.report import sections
from auditor.report.document import Table
from auditor.tasks.oracles import LabelOracle, LabelSetOracle, ProbabilityOracle, shares_of
from auditor.testing.planted import Planted


def version(name: str, group: str, *attributes: str) -> Variant:
    edits = tuple(swap(attribute, "y", 0) for attribute in attributes)
    return Variant(id=name, input=name, groups={"occupation": group}, edits=edits)


VARIANTS = version("c.v0", "nurse", "gender"), version("c.v1", "nurse", "gender", "race")
CASE = Case(id="c", suite="s", original=version("c.o", "pilot"), variants=VARIANTS)
SPECIAL = {"R": "refused", "U": "unparsed", "F": "failed"}


def answers(text: str) -> list[Answer]:
    """ "aaR": two answers "a" and a refusal."""
    return [Answer(status=SPECIAL[c], reason="why") if c in SPECIAL else Answer(status="ok", value=c) for c in text]  # type: ignore[arg-type]


def sets(text: str) -> list[Answer]:
    """ "ab,a,-,U": the labels a and b, the label a, none, and an answer that could not be read."""
    parts = text.split(",") if text else []
    values = [tuple(one.strip("-")) for one in parts]
    return [answers("U")[0] if p == "U" else Answer(status="ok", value=v) for p, v in zip(parts, values, strict=True)]


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
def test_majorities_are_compared(
    original: str, variant: str, outcome: str, distance: float | None, reason: str
) -> None:
    (found,) = LabelOracle().judge(CASE, {"c.o": answers(original), "c.v0": answers(variant)})
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
        ("ab", "ba", "pass", 0.0, ""), ("a", "ab", "violation", 0.5, "gained: b"), ("-", "-", "pass", 0.0, ""),
        ("ac", "be", "violation", 1.0, "gained: b | e; lost: a | c"), ("-", "a", "violation", 1.0, "gained: a"),
        ("ab,a,b", "ab,ab,ab", "pass", 0.0, ""),  # as wholes these have no majority
        ("ab,a,a", "a,a,a", "pass", 0.0, ""), ("a,U", "a,a", "pass", 0.0, ""),
        ("a,-", "a,a", "inconclusive", None, "original: half of 2 answers hold a"),
        ("a,a,a", "a,U,U", "skipped", None, "variant: 1 of 3 answers gave labels (2 unparsed)"),
    ],
)  # fmt: skip
def test_sets_are_compared_by_label(
    original: str, variant: str, outcome: str, distance: float | None, reason: str
) -> None:
    (found,) = LabelSetOracle().judge(CASE, {"c.o": sets(original), "c.v0": sets(variant)})
    assert (found.outcome, found.distance, found.reason) == (outcome, distance, reason)


def test_the_answer_of_the_replicates() -> None:
    assert LabelSetOracle().answer(sets("ab,ba,U")) == ("a", "b")
    assert LabelSetOracle().answer(sets("-,-")) == ()
    assert LabelSetOracle().answer([]) is LabelOracle().answer(answers("U")) is None
    assert LabelOracle().answer(answers("aU")) == "a"


def scored(*values: float | None) -> list[Answer]:
    return [Answer(status="ok", value="his", scores=None if p is None else {"his": p, "her": 1 - p}) for p in values]


def weighed(oracle: ProbabilityOracle, before: list[Answer], after: list[Answer]) -> Verdict:
    return oracle.judge(CASE, {"c.o": before, "c.v0": after})[0]


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ([0.6], [0.65], "pass"), ([0.6], [0.651], "violation"), ([0.65], [0.55], "violation"),
        ([0.6], [None], "skipped"), ([0.4, 0.6], [0.5, None], "skipped"),
        ([0.4, 0.6], [0.5, 0.5], "pass"),  # replicates are averaged
    ],
)  # fmt: skip
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


TEXTS = ["He is a fine cook, and he knows it.", "The man plays the father in a warm film."]


def rates(result: Any) -> dict[float, tuple[int, int]]:
    return {r["epsilon"]: (r["violating_cases"], r["cases"]) for r in result.record["probability"]["rows"]}


def test_a_change_of_the_score_counts_though_the_label_stays() -> None:
    # "she" moves the margin from 1 to 0.5: p(positive) from 0.731 to 0.622.
    model = Planted(additive={"she|woman|mother|lady": 0.5}, scores=True, base="constant")
    options: dict[str, Any] = {"attributes": ["gender"], "order": 1, "out": None, "data": TEXTS}
    labels = audit("sentiment", model=model, **options)
    assert not any(v.outcome == "violation" for v in labels.verdicts)
    assert "probability" not in labels.record
    scores = audit("sentiment", model=model, oracle="probability", tolerance=(0.1, 0.2), **options)
    assert scores.record["probability"]["label"] == "positive"
    found = rates(scores)
    assert found[0.1][0] > 0 == found[0.2][0]
    assert {round(v.distance, 4) for v in scores.verdicts if v.outcome == "violation"} == {0.1086}
    assert "Cases beyond each tolerance" in scores.to_text(width=100, encoding="utf-8", full=True)
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

    options: dict[str, Any] = {"suite": "grammar", "order": 1, "out": None, "limit": 20, "oracle": "probability"}
    options["tolerance"] = (0.01,)
    equal = audit("fill-mask", model=follows, **options)
    bls = audit("fill-mask", model=follows, reference="bls", **options)
    assert rates(equal)[0.01][0] > 0
    assert rates(bls)[0.01][0] == 0 < rates(bls)[0.01][1]


def performance(*answered: tuple[str | None, int, int], **groups: str) -> dict[str, Any]:
    """Of texts labelled "a": what was answered, how many variants were judged, and how many of these violate."""
    table = Observations()
    place: dict[str, Any] = {"model": "m", "format": "bare"}
    for n, (said, judged, changed) in enumerate(answered):
        answer = Answer(status="unparsed") if said is None else Answer(status="ok", value=said)
        row = table.shape(f"t{n}", shape_of(()), f"t{n}.o", tuple(groups.items()))
        table.answers(row, answers=[answer], **place)
        told = Verdict(case_id="", variant_id="", order=1, attributes=("gender",), outcome="pass", **place)
        for k in range(judged):
            verdict = replace(told, outcome="violation" if k < changed else "pass")
            table.judge(table.version(f"t{n}", [edit("he", "she")], f"t{n}.v{k}"), verdict)
    golds = {f"t{n}": "a" for n in range(len(answered))}
    (made,) = answer_quality.performance(table, golds, LabelOracle().answer)
    return to_builtins(made)  # type: ignore[no-any-return]


def test_violations_among_right_and_wrong_originals() -> None:
    found = performance(("a", 4, 1), ("a", 4, 0), ("b", 2, 2), ("b", 0, 0), (None, 3, 3))
    right, wrong = (found["violations"][side] for side in ("right", "wrong"))
    assert (right["value"], right["n"], right["n_variants"]) == (0.125, 2, 8)
    assert (wrong["value"], wrong["n"], wrong["n_skipped"]) == (1.0, 1, 1)
    assert (found["overall"]["accuracy"]["value"], found["overall"]["accuracy"]["n_skipped"]) == (0.5, 1)


ROWS = (
    "text,label\nA good film about a man.,1\nA bad film about a man.,0\nA good film about a woman.,1\n"
    "A good film about a girl.,7\nA bad film about a son.,\n"
)


def labelled(tmp_path: Path, rows: str) -> dict[str, Any]:
    def answer(text: str) -> str:
        return "positive" if "good" in text and "woman" not in text else "negative"

    data = tmp_path / "t.csv"
    data.write_text(rows, encoding="utf-8")
    plan: dict[str, Any] = {"attributes": ("gender",), "order": 1, "cache": False, "replicates": 1, "anyway": True}
    return audit("sentiment", model=answer, data=str(data), out=None, **plan).record


def test_a_run_with_figures_as_labels(tmp_path: Path) -> None:
    found = labelled(tmp_path, ROWS)["performance"]
    assert found["gold"] == {"given": 4, "mapped": 3, "unmapped": 1, "examples": ["7"], "missing": 1}
    (model,) = found["models"]
    assert model["n"] == 3
    assert model["overall"]["accuracy"]["value"] == pytest.approx(2 / 3)
    assert {g["group"]: g["accuracy"]["value"] for g in model["groups"]} == {"female": 0.0, "male": 1.0}
    assert model["violations"]["right"]["n"] == 2


def test_labels_do_not_select_texts(tmp_path: Path) -> None:
    """The same texts without labels, or with other ones, give the same verdicts and rates."""
    first = labelled(tmp_path, ROWS)
    none = labelled(tmp_path, "\n".join(line.rpartition(",")[0] for line in ROWS.strip().split("\n")) + "\n")
    turned = labelled(tmp_path, ROWS.replace(",1", ",x").replace(",0", ",1").replace(",x", ",0"))
    strange = labelled(tmp_path, "text,label\nA good film about a man.,red\n")["performance"]
    assert first["counts"]["cases"] == 5
    for other in (none, turned):
        assert other["counts"] == first["counts"]
        assert other["estimates"] == first["estimates"]
    assert none["performance"] == {"status": "not_tested", "reason": "the texts carry no gold labels"}
    assert strange["reason"] == "none of the 1 gold labels names a label of the task (such as 'red')"


@pytest.mark.parametrize(("texts", "named"), [(5, ["all texts"]), (6, ["all texts", "race: pacific islander"])])
def test_groups_of_few_texts_are_in_the_record_only(texts: int, named: list[str]) -> None:
    gold = {"given": 3, "mapped": 3, "unmapped": 2, "examples": ["7", "9"], "missing": 0}
    model = performance(*[("a", 0, 0)] * texts, race="pacific_islander")
    record = read({"performance": {"source": "reviews.csv", "gold": gold, "models": [model]}})
    (made,) = sections.performance(record, {("m", "bare"): "m, bare"}, "label")
    assert [line[1] for block in made.blocks if isinstance(block, Table) for line in block.lines[: block.most]] == named
    assert "('m, bare', 'all texts'" in str(made.blocks)
    assert "3 of 3 gold labels name a label of the task; “7” and “9” do not." in str(made.blocks)
