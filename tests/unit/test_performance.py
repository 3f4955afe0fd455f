"""Answers against gold labels: measures, intervals, groups, and that nothing is selected by them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.record import read
from auditor.core.record.measured import Gold
from auditor.measure import answer_quality
from auditor.measure.answer_quality import Original
from auditor.report import also_measured
from auditor.store.folder import RunFolder

LABELS = ("a", "b", "c")
SETS = st.lists(st.sampled_from(LABELS), max_size=3, unique=True).map(lambda x: tuple(sorted(x)))


def rows(pairs: list[tuple[Any, Any]], **more: Any) -> list[Original]:
    return [
        Original(case_id=str(i), gold=g, predicted=p, groups=more.get("groups", {})) for i, (g, p) in enumerate(pairs)
    ]


def value(estimate: Any) -> float:
    assert estimate is not None
    return float(estimate.value)


def test_single_labels_by_hand() -> None:
    found = rows([("a", "a"), ("a", "b"), ("b", "b"), ("b", "b"), ("c", None)])
    accuracy = answer_quality.accuracy(found)
    assert accuracy is not None
    assert (accuracy.value, accuracy.n, accuracy.n_skipped) == (0.75, 4, 1)
    assert accuracy.method == "clopper-pearson"
    assert answer_quality.micro_f1(found) == accuracy
    macro = answer_quality.macro_f1(found)
    assert macro is not None
    assert macro.value == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert macro.note.startswith("mean over 2 labels that occur")
    assert macro.low < macro.value < macro.high


def test_sets_by_hand() -> None:
    found = rows([(("a", "b"), ("a",)), (("a",), ("a",)), ((), ()), ((), ("c",))])
    assert value(answer_quality.accuracy(found)) == 0.5
    # TP: a, a, none; 2 TP = 6; labels given and answered: 3 + 2 + 2 + 2
    assert value(answer_quality.micro_f1(found)) == pytest.approx(6 / 9)
    # a: 1, b: 0, none: 2/3, c: 0
    assert value(answer_quality.macro_f1(found)) == pytest.approx((1 + 0 + 2 / 3 + 0) / 4)


@given(st.lists(st.tuples(SETS, SETS), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_sets_agree_with_a_reference(pairs: list[tuple[Any, Any]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    names = [*LABELS, "none"]

    def matrix(side: int) -> list[list[int]]:
        return [[int(n in (pair[side] or ("none",))) for n in names] for pair in pairs]

    gold, guess = matrix(0), matrix(1)
    used = [i for i in range(len(names)) if any(r[i] for r in gold) or any(r[i] for r in guess)]
    found = rows(pairs)
    micro = metrics.f1_score(gold, guess, average="micro", zero_division=0)
    macro = metrics.f1_score(gold, guess, average=None, zero_division=0)
    assert value(answer_quality.micro_f1(found)) == pytest.approx(micro)
    assert value(answer_quality.macro_f1(found)) == pytest.approx(sum(macro[i] for i in used) / len(used))
    assert value(answer_quality.accuracy(found)) == pytest.approx(metrics.accuracy_score(gold, guess))


def test_macro_f1_covers_the_truth_where_labels_are_rare() -> None:
    """Few texts carry half of the mean: without the linearised variance 175 of 200 intervals held the truth."""
    rng = Random(3)

    def draw(n: int) -> list[tuple[Any, Any]]:
        golds = rng.choices(LABELS, (0.8, 0.1, 0.1), k=n)
        return [(gold, gold if rng.random() < 0.8 else rng.choice(LABELS)) for gold in golds]

    truth = value(answer_quality.macro_f1(rows(draw(40_000))))
    found = [answer_quality.macro_f1(rows(draw(200))) for _ in range(200)]
    assert sum(e is not None and e.low <= truth <= e.high for e in found) >= 182


def test_violations_among_right_and_wrong_originals() -> None:
    found = [
        Original(case_id="1", gold="a", predicted="a", groups={}, judged=4, violations=1),
        Original(case_id="2", gold="a", predicted="a", groups={}, judged=4, violations=0),
        Original(case_id="3", gold="a", predicted="b", groups={}, judged=2, violations=2),
        Original(case_id="4", gold="a", predicted="b", groups={}, judged=0, violations=0),
        Original(case_id="5", gold="a", predicted=None, groups={}, judged=3, violations=3),
    ]
    right, wrong = (answer_quality.violations(found, right=side) for side in (True, False))
    assert right is not None
    assert wrong is not None
    assert (right.value, right.n, right.n_variants) == (0.125, 2, 8)
    assert (wrong.value, wrong.n, wrong.n_skipped) == (1.0, 1, 1)


def test_gold_labels_that_no_label_answers_to_are_counted() -> None:
    golds = {"1": ("a", True), "2": ("9", False), "3": ("9", False), "4": ("x" * 200, False), "5": (None, False)}
    summary = answer_quality.gold_summary(golds)
    assert summary == Gold(given=4, mapped=1, unmapped=3, examples=("9", "x" * 80), missing=1)


# -- through a whole run ---------------------------------------------------------------------------


def run(tmp_path: Any, rows: str, task: str = "sentiment", **plan: Any) -> dict[str, Any]:
    import auditor
    from auditor.core.plan import Plan
    from auditor.models import wrap
    from auditor.run import prepare, run_audit, run_sync

    data = tmp_path / "t.csv"
    data.write_text(rows, encoding="utf-8")
    assert auditor.__version__

    def answer(text: str) -> str:
        return "positive" if "good" in text and "woman" not in text else "negative"

    settings_ = Plan(task=task, data=str(data), attributes=("gender",), order=1, cache=False, replicates=1, **plan)
    parts = prepare(settings_, models=[wrap(answer, name="m")])
    return run_sync(lambda: run_audit(parts, RunFolder.in_memory())).raw


ROWS = (
    "text,label\nA good film about a man.,1\nA bad film about a man.,0\nA good film about a woman.,1\n"
    "A good film about a girl.,7\nA bad film about a son.,\n"
)


def test_a_run_with_figures_as_labels(tmp_path: Any) -> None:
    found = run(tmp_path, ROWS)["performance"]
    assert found["gold"] == {"given": 4, "mapped": 3, "unmapped": 1, "examples": ["7"], "missing": 1}
    (model,) = found["models"]
    assert (model["model"], model["format"], model["n"]) == ("m", "bare", 3)
    assert model["overall"]["accuracy"]["value"] == pytest.approx(2 / 3)
    by_group = {g["group"]: g["accuracy"]["value"] for g in model["groups"]}
    assert by_group == {"female": 0.0, "male": 1.0}
    assert model["violations"]["right"]["n"] == 2


def test_labels_do_not_select_texts(tmp_path: Any) -> None:
    """The same texts without labels, or with other ones, give the same verdicts and rates."""
    first = run(tmp_path, ROWS)
    none = run(tmp_path, "\n".join(line.rpartition(",")[0] for line in ROWS.strip().split("\n")) + "\n")
    turned = run(tmp_path, ROWS.replace(",1", ",x").replace(",0", ",1").replace(",x", ",0"))
    assert first["counts"]["cases"] == 5
    for other in (none, turned):
        assert other["counts"] == first["counts"]
        assert other["estimates"] == first["estimates"]
    assert none["performance"] == {"status": "not_tested", "reason": "the texts carry no gold labels"}


# -- as reports show it ------------------------------------------------------------------------------


def section(originals: list[Original], **gold: Any) -> dict[str, Any]:
    return {
        "performance": {
            "source": "reviews.csv",
            "gold": {"given": 3, "mapped": 3, "unmapped": 0, "examples": [], "missing": 0} | gold,
            "models": [answer_quality.table("m", "bare", originals)],
        }
    }


def test_section_of_single_labels_leaves_out_what_says_the_same() -> None:
    (made,) = also_measured.performance(
        read(section(rows([("a", "a")] * 9, groups={"race": "pacific_islander"}))), {}, "label"
    )
    assert made is not None
    assert made.tables[0].columns == ("Model", "Texts that name", "Texts", "Accuracy", "Macro-F1")
    assert [line[1] for line in made.tables[0].lines] == ["all texts", "race: pacific islander"]
    (sets,) = also_measured.performance(
        read(section(rows([(("a", "b"), ("a",))]))), {("m", "bare"): "m, bare"}, "label"
    )
    assert sets is not None
    assert "Micro-F1" in sets.tables[0].columns
    assert sets.tables[0].lines[0][0] == "m, bare"


def test_unmapped_labels_are_named_once() -> None:
    (made,) = also_measured.performance(read(section(rows([("a", "a")]), unmapped=2, examples=["7", "9"])), {}, "label")
    assert made is not None
    lost = [note for note in made.notes if "'7'" in note]
    assert lost == ["2 labels in the data name no label of the task ('7', '9') and are left out."]
