"""Pairs that the user brings are asked as they are: no check leaves any out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auditor import audit, resume
from auditor.core.errors import ConfigError, DataFileError
from auditor.run.own_pairs import Pair, edits, spans
from tests.asking import csv_file

JOBS = ("nurse", "driver", "teacher", "cook", "clerk", "painter", "plumber", "pilot")


def lines() -> list[dict[str, str]]:
    """A man and a woman, a placebo, a sentence that is no English, and two attributes at once."""
    out = []
    for job, others in zip(JOBS, ("some", "most", "several", "many") * 2, strict=True):
        first = f"He works as a {job}, and all are glad."
        for second, gender, race, arm in (
            (f"She works as a {job}, and all are glad.", "female", "white", ""),
            (f"He works as a {job}, and {others} are glad.", "male", "white", "placebo"),
            (f"They works as a {job}, and all are glad.", "nonbinary", "white", ""),
            (f"A black woman works as a {job}, and all are glad.", "female", "black", ""),
        ):
            row = {"text_a": first, "text_b": second, "gender_a": "male", "gender_b": gender}
            out.append(row | {"race_a": "white", "race_b": race, "arm": arm, "label": "positive"})
    return out


def test_pairs_are_asked_as_they_are(tmp_path: Path) -> None:
    asked: list[str] = []

    def model(text: str) -> str:
        asked.append(text)
        return "negative" if text.startswith("She") else "positive"

    rows = lines()
    result = audit(model=model, data=csv_file(tmp_path / "pairs.csv", rows), out=tmp_path / "runs")
    texts = {row["text_a"] for row in rows} | {row["text_b"] for row in rows}
    assert texts <= set(asked)
    counts = result.record["counts"]
    assert (counts["seeds"], counts["variants"], counts["placebos"], counts["discarded"]) == (8, 24, 16, 0)
    by = {tuple(c["groups"]): c for c in result.record["claims"] if c["family"] == "net"}
    assert by["female", "male"]["estimate"] == pytest.approx(-1.0)
    assert by["female", "male"]["texts"] == len(JOBS)
    assert result.record["performance"]["gold"]["given"] == len(JOBS)


def test_a_run_of_pairs_goes_on(tmp_path: Path) -> None:
    file = csv_file(tmp_path / "pairs.csv", lines())
    cut = audit(model="vader", data=file, out=tmp_path / "runs", max_calls=9, replicates=2)
    assert cut.path is not None
    assert not cut.complete
    whole = resume(cut.path, limits={"max_calls": 999})
    assert whole.complete
    assert whole.record["claims"] == audit(model="vader", data=file, replicates=2).record["claims"]


def test_one_span_is_one_edit_of_each_attribute() -> None:
    pair = Pair(
        "A man asks.", "A black woman asks.", (("gender", "male", "female"), ("race", "white", "black")), False, None
    )
    made = edits(pair)
    assert {(e.attribute, e.source, e.target, e.where) for e in made} == {
        ("gender", "man", "black woman", (2, 5)),
        ("race", "man", "black woman", (2, 5)),
    }
    assert [s.target for s in spans("It is red and it is big.", "It is blue and it is small.")] == ["blue", "small"]


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    rows = [{"text_a": "He asks.", "text_b": "She asks.", "label": "positive"}]
    with pytest.raises(DataFileError, match="no groups"):
        audit(data=csv_file(tmp_path / "a.csv", rows))
    same = [{"text_a": "He asks.", "text_b": "He asks.", "gender_a": "m", "gender_b": "f"}]
    with pytest.raises(DataFileError, match="no pair of texts \\(1 both texts are the same\\)"):
        audit(data=csv_file(tmp_path / "b.csv", same))
    with pytest.raises(ConfigError, match="leave --attributes out"):
        audit(data=csv_file(tmp_path / "c.csv", lines()), attributes="gender")


@pytest.mark.parametrize(("kind", "kept"), [("list", True), ("pandas", False)])
def test_pairs_that_a_program_hands_over(tmp_path: Path, kind: str, kept: bool) -> None:
    rows: Any = [{"group_a": "m", "group_b": "f", "text_a": f"He {j}s.", "text_b": f"She {j}s."} for j in JOBS]
    data = pytest.importorskip("pandas").DataFrame(rows) if kind == "pandas" else rows
    result = audit(model="vader", data=data, out=tmp_path / "runs" if kept else None)
    assert {c["attribute"] for c in result.record["claims"]} == {"group"}
    assert result.record["counts"]["variants"] == len(JOBS)
    assert len(list(tmp_path.rglob("data-*.jsonl"))) == kept


def test_what_is_redacted_is_not_kept_as_a_file(tmp_path: Path) -> None:
    audit(model="vader", data=lines(), out=tmp_path, redact=True)
    assert not list(tmp_path.rglob("data-*.jsonl"))
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"and all are glad" not in held
