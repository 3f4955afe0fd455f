"""Texts and pairs that a user or a program hands over: what is taken and refused, and that nothing else is sent."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from auditor import audit, resume
from auditor.core.errors import ConfigError, DataFileError, UserError
from auditor.core.types import SourceText
from auditor.run.own_data import Pair, edits, spans
from auditor.tasks import read_given
from tests.asking import csv_file

ROWS: list[dict[str, Any]] = [
    {"text": text, "label": label, "id": id_, "secret": "not-for-models", "subject": subject}
    for text, label, id_, subject in (
        ("She is a kind writer.", "gold-1", "a", [[0, 3], [9, 14]]),
        ("His father came late.", "gold-2", "b", []),
        ("The actress told her son.", None, "c", None),
    )
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
SUBJECTS = (((0, 3), (9, 14)), (), None)
SEEDS = [
    SourceText(id=row["id"], text=row["text"], label=row["label"], subject=subject)
    for row, subject in zip(ROWS, SUBJECTS, strict=True)
]


class HubData:
    """The part of a datasets.Dataset that is used."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows, self.column_names = rows, list(rows[0])
        self.features = {"label": types.SimpleNamespace(names=["neg", "pos"])}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)


KINDS = {
    "dicts": lambda: ROWS, "a generator of dicts": lambda: (row for row in ROWS), "seeds": lambda: SEEDS,
    "seeds and dicts": lambda: [*SEEDS[:1], *ROWS[1:]], "datasets, by its methods": lambda: HubData(ROWS),
    "pandas": lambda: pytest.importorskip("pandas").DataFrame(COLUMNS),
    "polars": lambda: pytest.importorskip("polars").DataFrame(COLUMNS),
    "arrow": lambda: pytest.importorskip("pyarrow").table(COLUMNS),
    "a record batch": lambda: pytest.importorskip("pyarrow").table(COLUMNS).to_batches()[0],
    "datasets": lambda: pytest.importorskip("datasets").Dataset.from_list(ROWS),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_same_seeds(kind: str) -> None:
    assert list(read_given(KINDS[kind]())) == SEEDS
    if "seeds" not in kind:  # a SourceText says itself what its text is
        named = {"text": "secret", "label": "text", "id": "label"}
        (only,) = read_given(KINDS[kind](), columns=named)  # one text three times is one seed
        assert only == SourceText(id="gold-1", text="not-for-models", label=ROWS[0]["text"], subject=SUBJECTS[0])


@pytest.mark.parametrize("kind", ["dicts", "pandas"])
def test_a_model_sees_the_text_and_nothing_else(kind: str) -> None:
    seen: list[str] = []

    def model(text: str) -> str:
        seen.append(text)
        return "positive"

    found = audit("sentiment", model=model, data=KINDS[kind](), attributes="gender", anyway=True)
    assert found.complete
    assert len(found.record["findings"]) > 0
    assert not [t for t in seen if "gold" in t or "{" in t or "not-for" in t]
    assert {row["text"] for row in ROWS} <= set(seen)


def test_cells_of_pandas_are_plain_values() -> None:
    pandas = pytest.importorskip("pandas")
    texts = ["One.", None, "Three.", float("nan"), "Five.", "One."]
    columns = {"text": texts, "label": [1, 2, 3, 4, 5, 6], "id": numpy.arange(10, 16)}
    frame = pandas.DataFrame(columns, index=[3, 3, 3, 1, 1, 1])
    got = read_given(frame)
    assert [(s.id, s.text, s.label) for s in got] == [("10", "One.", "1"), ("12", "Three.", "3"), ("14", "Five.", "5")]
    assert (got.rows, got.skipped, got.repeated) == (6, 2, 1)
    labels = pandas.DataFrame({"text": ["a", "b"], "label": pandas.array([True, pandas.NA], dtype="boolean")})
    assert [s.label for s in read_given(labels)] == ["true", None]
    many = pandas.DataFrame({"text": ["a"], "label": [numpy.array(["x", "y"])]})
    assert [s.label for s in read_given(many)] == ['["x", "y"]']
    assert [s.text for s in read_given(frame["text"])] == ["One.", "Three.", "Five."]
    assert [s.text for s in read_given(numpy.array(["One.", "Two."]))] == ["One.", "Two."]


REFUSED = [
    ([("She came.", "positive")], "a tuple as item 1"), (["She came.", 7], "an int as item 2"),
    ({"text": ["She came."]}, "a dict of columns"), ({"She came."}, "a set"), (b"She came.", "a bytes"),
    (SourceText(id="a", text="She came."), "a SourceText"), (HubData, "the class HubData"),
    ({"train": HubData(ROWS)}, r"data\['train'\]"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "told"), REFUSED)
def test_anything_else_is_a_type_error_that_says_what_is_taken(data: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told) as caught:
        audit("sentiment", model="vader", data=data)
    assert isinstance(caught.value, UserError)
    assert re.search(r"DataFrame|data frame|data\[", str(caught.value))


def test_wrong_columns_are_named_as_the_call_names_them() -> None:
    for rows, columns, told in (
        (1, {}, r"columns: review, stars\..*columns=\{\"text\": "),
        (1, {"text": "review", "label": "gold"}, '"label": …'),
        (1, {"text": "stars"}, r"holds a number \(5\), not a text; name the column .* columns="),
        (0, {}, "no rows"),
    ):
        with pytest.raises(DataFileError, match=told):
            read_given([{"review": "She came.", "stars": 5}] * rows, columns=columns)


def test_a_text_counts_once() -> None:
    assert [s.id for s in read_given(["She is kind.", "", "He is late."], limit=2)] == ["text-1"]
    result = audit("sentiment", model="reviews", data=[*ROWS, ROWS[0], {"text": " "}], out=None, cache=False)
    facts = result.record["provenance"]["seeds"]
    assert (facts["n"], facts["skipped"], facts["repeated"], len(facts["sha256"])) == (3, 1, 1, 64)


JOBS = ("nurse", "driver", "teacher", "cook", "clerk", "painter", "plumber", "pilot")


def lines() -> list[dict[str, str]]:
    """A man and a woman, a placebo, a sentence that is no English, and two attributes at once."""
    out = []
    for job, some in zip(JOBS, ("some", "most", "several", "many") * 2, strict=True):
        for who, others, gender, race, arm in (
            ("She", "all", "female", "white", ""), ("He", some, "male", "white", "placebo"),
            ("They", "all", "nonbinary", "white", ""), ("A black woman", "all", "female", "black", ""),
        ):  # fmt: skip
            first, second = (f"{a} works as a {job}, and {b} are glad." for a, b in (("He", "all"), (who, others)))
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
    assert not cut.complete
    whole = resume(cut.path, limits={"max_calls": 999})
    assert whole.complete
    assert whole.record["claims"] == audit(model="vader", data=file, replicates=2).record["claims"]


def test_one_span_is_one_edit_of_each_attribute() -> None:
    groups = (("gender", "male", "female"), ("race", "white", "black"))
    made = edits(Pair("A man asks.", "A black woman asks.", groups, False, None))
    assert {e.attribute for e in made} == {"gender", "race"}
    assert {(e.source, e.target, e.where) for e in made} == {("man", "black woman", (2, 5))}
    assert [s.target for s in spans("It is red and it is big.", "It is blue and it is small.")] == ["blue", "small"]


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    groupless = [{"text_a": "He asks.", "text_b": "She asks.", "label": "positive"}]
    same = [{"text_a": "He asks.", "text_b": "He asks.", "gender_a": "m", "gender_b": "f"}]
    for rows, options, error, told in (
        (groupless, {}, DataFileError, "no groups"),
        (same, {}, DataFileError, r"no pair of texts \(1 both texts are the same\)"),
        (lines(), {"attributes": "gender"}, ConfigError, "leave --attributes out"),
    ):
        with pytest.raises(error, match=told):
            audit(data=csv_file(tmp_path / "a.csv", rows), **options)


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
