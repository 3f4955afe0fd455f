"""Answers against gold labels: accuracy, groups, and that nothing is selected by labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from auditor import audit
from auditor.core.record import read
from auditor.core.types import Answer, Edit, Outcome, Verdict
from auditor.measure import answer_quality
from auditor.measure.observations import Observations, shape_of
from auditor.report import also_measured
from auditor.report.document import Table
from auditor.tasks.oracles import LabelOracle

EDIT = Edit(
    attribute="gender", kind="swap", source_group="male", target_group="female", source="he", target="she",
    where=(0, 2),
)  # fmt: skip


def performance(*answered: tuple[str | None, int, int], **groups: str) -> dict[str, Any]:
    """Of texts labelled "a": what was answered, how many variants were judged, and how many of these violate."""
    table = Observations()
    place: dict[str, Any] = {"model": "m", "format": "bare"}
    for n, (said, judged, changed) in enumerate(answered):
        answer = Answer(status="unparsed") if said is None else Answer(status="ok", value=said)
        row = table.shape(f"t{n}", shape_of(()), f"t{n}.o", tuple(groups.items()))
        table.answers(row, answers=[answer], **place)
        for k in range(judged):
            outcome: Outcome = "violation" if k < changed else "pass"
            verdict = Verdict(
                case_id="", variant_id="", order=1, attributes=("gender",), outcome=outcome, **place,
            )  # fmt: skip
            table.judge(table.version(f"t{n}", [EDIT], f"t{n}.v{k}"), verdict)
    golds = {f"t{n}": "a" for n in range(len(answered))}
    (made,) = answer_quality.performance(table, golds, LabelOracle().answer)
    plain: dict[str, Any] = to_builtins(made)
    return plain


def test_violations_among_right_and_wrong_originals() -> None:
    found = performance(("a", 4, 1), ("a", 4, 0), ("b", 2, 2), ("b", 0, 0), (None, 3, 3))
    right, wrong = (found["violations"][side] for side in ("right", "wrong"))
    assert (right["value"], right["n"], right["n_variants"]) == (0.125, 2, 8)
    assert (wrong["value"], wrong["n"], wrong["n_skipped"]) == (1.0, 1, 1)
    assert (found["overall"]["accuracy"]["value"], found["overall"]["accuracy"]["n_skipped"]) == (0.5, 1)


# -- through a whole run ---------------------------------------------------------------------------

ROWS = (
    "text,label\nA good film about a man.,1\nA bad film about a man.,0\nA good film about a woman.,1\n"
    "A good film about a girl.,7\nA bad film about a son.,\n"
)


def run(tmp_path: Path, rows: str) -> dict[str, Any]:
    def answer(text: str) -> str:
        return "positive" if "good" in text and "woman" not in text else "negative"

    data = tmp_path / "t.csv"
    data.write_text(rows, encoding="utf-8")
    plan: dict[str, Any] = {"attributes": ("gender",), "order": 1, "cache": False, "replicates": 1, "anyway": True}
    return audit("sentiment", model=answer, data=str(data), out=None, **plan).record


def test_a_run_with_figures_as_labels(tmp_path: Path) -> None:
    found = run(tmp_path, ROWS)["performance"]
    assert found["gold"] == {"given": 4, "mapped": 3, "unmapped": 1, "examples": ["7"], "missing": 1}
    (model,) = found["models"]
    assert model["n"] == 3
    assert model["overall"]["accuracy"]["value"] == pytest.approx(2 / 3)
    assert {g["group"]: g["accuracy"]["value"] for g in model["groups"]} == {"female": 0.0, "male": 1.0}
    assert model["violations"]["right"]["n"] == 2


def test_labels_do_not_select_texts(tmp_path: Path) -> None:
    """The same texts without labels, or with other ones, give the same verdicts and rates."""
    first = run(tmp_path, ROWS)
    none = run(tmp_path, "\n".join(line.rpartition(",")[0] for line in ROWS.strip().split("\n")) + "\n")
    turned = run(tmp_path, ROWS.replace(",1", ",x").replace(",0", ",1").replace(",x", ",0"))
    strange = run(tmp_path, "text,label\nA good film about a man.,red\n")["performance"]
    assert first["counts"]["cases"] == 5
    for other in (none, turned):
        assert other["counts"] == first["counts"]
        assert other["estimates"] == first["estimates"]
    assert none["performance"] == {"status": "not_tested", "reason": "the texts carry no gold labels"}
    assert strange["reason"] == "none of the 1 gold labels names a label of the task (such as 'red')"


# -- as reports show it ------------------------------------------------------------------------------


def section(model: dict[str, Any], **gold: Any) -> dict[str, Any]:
    counts = {"given": 3, "mapped": 3, "unmapped": 0, "examples": [], "missing": 0} | gold
    return {"performance": {"source": "reviews.csv", "gold": counts, "models": [model]}}


@pytest.mark.parametrize(("texts", "named"), [(5, ["all texts"]), (6, ["all texts", "race: pacific islander"])])
def test_groups_of_few_texts_are_in_the_record_only(texts: int, named: list[str]) -> None:
    record = read(
        section(performance(*[("a", 0, 0)] * texts, race="pacific_islander"), unmapped=2, examples=["7", "9"])
    )
    (made,) = also_measured.performance(record, {("m", "bare"): "m, bare"}, "label")
    assert [line[1] for block in made.blocks if isinstance(block, Table) for line in block.lines[: block.most]] == named
    assert "('m, bare', 'all texts'" in str(made.blocks)
    assert "3 of 3 gold labels name a label of the task; “7” and “9” do not." in str(made.blocks)
