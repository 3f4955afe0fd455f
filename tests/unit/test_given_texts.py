"""Texts handed over by a program: what is taken, what is refused, and that nothing but the text is sent."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import pytest

from auditor import audit
from auditor.core.errors import DataFileError, UserError
from auditor.core.plan import Plan
from auditor.core.types import SourceText
from auditor.tasks import read_given
from auditor.testing import assert_invariant

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


def of_pandas() -> Any:
    return pytest.importorskip("pandas").DataFrame(COLUMNS)


def of_arrow() -> Any:
    return pytest.importorskip("pyarrow").table(COLUMNS)


KINDS = {
    "dicts": lambda: ROWS,
    "a generator of dicts": lambda: (row for row in ROWS),
    "seeds": lambda: SEEDS,
    "seeds and dicts": lambda: [*SEEDS[:1], *ROWS[1:]],
    "pandas": of_pandas,
    "polars": lambda: pytest.importorskip("polars").DataFrame(COLUMNS),
    "arrow": of_arrow,
    "a record batch": lambda: of_arrow().to_batches()[0],
    "datasets, by its methods": lambda: HubData(ROWS),
    "datasets": lambda: pytest.importorskip("datasets").Dataset.from_list(ROWS),
}


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
    numpy = pytest.importorskip("numpy")
    frame = pandas.DataFrame(
        {
            "text": ["One.", None, "Three.", float("nan"), "Five.", "One."],
            "label": [1, 2, 3, 4, 5, 6],
            "id": numpy.array([10, 11, 12, 13, 14, 15]),
        },
        index=[3, 3, 3, 1, 1, 1],
    )
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
    assert "DataFrame" in str(caught.value) or "data frame" in str(caught.value) or "data[" in str(caught.value)


def test_wrong_columns_are_named_as_the_call_names_them() -> None:
    rows = [{"review": "She came.", "stars": 5}]
    with pytest.raises(DataFileError, match=r"columns: review, stars\..*columns=\{\"text\": "):
        read_given(rows)
    with pytest.raises(DataFileError, match='"label": …'):
        read_given(rows, columns={"text": "review", "label": "gold"})
    with pytest.raises(DataFileError, match=r"holds a number \(5\), not a text; name the column .* columns="):
        read_given(rows, columns={"text": "stars"})
    with pytest.raises(DataFileError, match="no rows"):
        read_given([])


def test_a_text_counts_once() -> None:
    assert [s.id for s in read_given(["She is kind.", "", "He is late."], limit=2)] == ["text-1"]
    result = audit("sentiment", model="reviews", data=[*ROWS, ROWS[0], {"text": " "}], out=None, cache=False)
    facts = result.record["provenance"]["seeds"]
    assert (facts["n"], facts["skipped"], facts["repeated"], len(facts["sha256"])) == (3, 1, 1, 64)


def test_names_may_be_a_list_or_one_text() -> None:
    wanted = ("gender", "race")
    for given in ("gender,race", "gender, race", ["gender", "race"], wanted):
        assert Plan(attributes=given).attributes == wanted  # type: ignore[arg-type]
    assert Plan(attributes="gender", groups="gender:female").groups == ("gender:female",)  # type: ignore[arg-type]
    assert Plan(formats="plain", models="vader, reviews").models == ("vader", "reviews")  # type: ignore[arg-type]
    assert_invariant("vader", [row["text"] for row in ROWS], attributes="gender")
    assert_invariant("vader", of_pandas(), attributes=["gender"])
