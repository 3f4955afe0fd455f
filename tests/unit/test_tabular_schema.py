"""Schemas: codes, files, inference, constraints; and what bad input gets."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.errors import ConfigError, DataFileError
from auditor.tables.coded import enumerate_rows, row_keys, uniform
from auditor.tables.columns import Column
from auditor.tables.csv_table import read_table
from auditor.tables.row_data import infer
from auditor.tables.row_schema import Schema, dump_schema, load_schema

DATA = Path(__file__).parents[3] / "shared" / "data"


def people(*rules: str) -> Schema:
    return Schema(
        columns=(
            Column(name="age", kind="integer", codes=5, low=18, step=10, ordered=True),
            Column(name="sex", kind="category", codes=2, values=("Female", "Male"), protected=True),
            Column(name="role", kind="category", codes=3, values=("Husband", "Wife", "other one")),
            Column(name="income", kind="binned", codes=3, values=(5, 20.5, 70), edges=(10.0, 40.0), ordered=True),
            Column(name="years", kind="integer", codes=60),
        ),
        target="credit",
        favourable="yes",
        constraints=rules,
    )


ROWS = {
    "age": [18, 58, 28],
    "sex": ["Male", "Female", "Male"],
    "role": ["Husband", "other one", "Wife"],
    "income": [1.0, 10.0, 1e6],
    "years": [0, 59, 7],
    "ignored": [1, 1, 1],
}


def test_codes_and_back() -> None:
    schema = people()
    codes = schema.encode(ROWS)
    assert codes.dtype == np.int32
    assert codes.tolist() == [[0, 1, 0, 0, 0], [4, 0, 2, 1, 59], [1, 1, 1, 2, 7]]
    assert schema.decode(codes).tolist()[1] == [58, "Female", "other one", 20.5, 59]
    frame = schema.frame(codes)
    assert list(frame.columns) == list(schema.names)
    assert frame["age"].dtype == np.int64
    assert schema.encode(frame).tolist() == codes.tolist()
    assert schema.row(codes[2])["income"] == 70


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("role", "Uncle", r"row 2: column 'role' is Uncle"),
        ("age", 19, r"row 2: column 'age' is 19.*whole numbers 18 to 58 in steps of 10"),
        ("age", float("nan"), r"row 2: column 'age' is missing \(NaN\)"),
        ("sex", None, r"row 2: column 'sex' is missing \(NaN\)"),
        ("income", "much", r"row 2: column 'income' is much"),
    ],
)
def test_values_that_the_schema_does_not_have(column: str, value: object, text: str) -> None:
    rows = {key: list(values) for key, values in ROWS.items()}
    rows[column][1] = value
    with pytest.raises(DataFileError, match=text):
        people().encode(rows)


def test_a_schema_file_reads_back_equal(tmp_path: Path) -> None:
    schema = people("role == Husband implies sex == Male", "not (age < 28 and years > 20)")
    path = tmp_path / "schema.yaml"
    path.write_text(dump_schema(schema), encoding="utf-8")
    assert load_schema(path) == replace(schema, name=schema.name)
    assert load_schema(path).constraints[0] == "role == Husband implies sex == Male"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("columns: [a]", DataFileError, "entry `columns`"),
        ("colums: {}\ncolumns: {a: {kind: integer, low: 1, high: 2}}", DataFileError, "unknown entry 'colums'"),
        ("columns: {a: {kind: number}}", DataFileError, "column 'a': kind must be"),
        ("columns: {a: {kind: integer, low: 3, high: 2}}", DataFileError, "column 'a': needs whole numbers"),
        ("columns: {a: {kind: category, values: [x, x]}}", ConfigError, "lists a value twice"),
        ("columns: {a: {kind: category, values: [x], colour: 1}}", DataFileError, "unknown field 'colour'"),
        ("columns: {a: {kind: binned, values: [1, 2], edges: [3, 4]}}", ConfigError, "2 bins need 1 rising"),
        ("columns: {a: {kind: derived, values: [x]}}", DataFileError, "needs source"),
        ("columns: {a: {kind: integer, low: 1, high: 1, protected: true}}", ConfigError, "one value only"),
        ("columns: {a: {kind: integer, low: 1, high: 2}}\nconstraints: [b == 1]", ConfigError, "no column 'b'"),
        ("columns: {a: {kind: integer, low: 1, high: 2}}\nconstraints: [a ==]", ConfigError, "expected a value"),
        ("columns: {a: {kind: integer, low: 1, high: 2}}\nconstraints: [a == 7]", ConfigError, "no value '7'"),
        ("target: a\ncolumns: {a: {kind: integer, low: 1, high: 2}}", ConfigError, "also an input column"),
        ("columns: {a: {", DataFileError, "no valid YAML"),
    ],
)
def test_schema_files_that_are_wrong(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=message):
        load_schema(path)


def test_inference() -> None:
    rng = np.random.default_rng(7)
    schema = infer(
        {
            "code": [0, 1, 7, 100] * 50,
            "age": list(range(20, 70)) * 4,
            "pay": rng.normal(1000, 300, 200).round(2),
            "sex": ["m", "f"] * 100,
            "y": [0, 1] * 100,
        },
        "y",
        ["sex"],
    )
    kinds = {c.name: (c.kind, c.codes) for c in schema.columns}
    assert kinds == {"code": ("category", 4), "age": ("integer", 50), "pay": ("binned", 10), "sex": ("category", 2)}
    assert schema.protected == ("sex",)


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_truth_values_reach_the_model_as_such(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "own,n,y", "True,1,0", "false,2,1", "TRUE,3,0"))
    assert table["own"].tolist() == [True, False, True]
    schema = infer(table, "y", ["n"])
    rows = schema.frame(schema.encode(table))
    assert rows["own"].dtype == bool
    assert rows["own"].tolist() == [True, False, True]
    file = tmp_path / "s.yaml"
    file.write_text(dump_schema(schema), encoding="utf-8")
    assert load_schema(file).encode(table).tolist() == schema.encode(table).tolist()
    old = Schema(columns=(Column(name="own", kind="category", codes=2, values=("False", "True")),))
    assert old.decode(old.encode(table))[:, 0].tolist() == ["True", "False", "True"]


def test_missing_values_reach_the_model_as_nan(tmp_path: Path) -> None:
    lines = ["age,job,pay,sex,y"] + [f"{20 + i % 30},cook,{i * 7.5},{'mf'[i % 2]},{i % 2}" for i in range(60)]
    lines += [",,,m,0", "30,waiter,5,,1", "31,cook,6,f,"]
    table = read_table(written(tmp_path, *lines)).without_missing(["sex", "y"])
    assert table.notes == ("sex is missing in 1 row: left out.", "y is missing in 1 row: left out.")
    schema = infer(table, "y", ["sex"])
    assert [c.may_lack for c in schema.columns] == [True, True, True, False]
    codes = schema.encode(table)
    last = schema.frame(codes).iloc[-1]
    assert last[["age", "job", "pay"]].isna().all()
    assert schema.row(codes[-1])["pay"] == "(missing)"
    assert schema.frame(codes)["age"].iloc[0] == 20
    file = tmp_path / "s.yaml"
    file.write_text(dump_schema(schema), encoding="utf-8")
    assert load_schema(file).encode(table).tolist() == codes.tolist()
    with pytest.raises(DataFileError, match=r"'pay' is much"):
        schema.encode({**table, "pay": np.array(["much"] * len(codes), dtype=object)})


@pytest.mark.parametrize(
    ("values", "read", "note"),
    [
        (["7", "n/a", "8"], [7, None, 8], "read as missing, since all other values are numbers: 'n/a' (1 row)"),
        (["2,000", "950", "7"], ["2,000", "950", "7"], "2 of 3 values are numbers; not '2,000' (1 row)"),
        ([*["1"] * 19, "x"], [*["1"] * 19, "x"], "19 of 20 values are numbers; not 'x' (1 row)"),
        (["?", "a"], ["?", "a"], ""),
    ],
)
def test_texts_among_numbers_are_named(tmp_path: Path, values: list[str], read: list[object], note: str) -> None:
    table = read_table(written(tmp_path, "a;b", *(f"{v};1" for v in values)))
    found = [None if isinstance(v, float) and np.isnan(v) else v for v in table["a"].tolist()]
    assert found == read
    assert (note in " ".join(table.notes)) if note else not table.notes


def test_ids_dates_names_and_columns_that_go_together_are_named(tmp_path: Path) -> None:
    lines = ["id,name,day,age,age_cat,sex,y"]
    lines += [
        f"{i},person {i},2024-01-{i % 28 + 1:02d},{20 + i % 9},{'young' if i % 9 < 4 else 'old'},{'mf'[i // 5 % 2]},{i % 2}"
        for i in range(120)
    ]
    notes = infer(read_table(written(tmp_path, *lines)), "y", ["age", "sex"]).notes
    assert len(notes) == 4
    assert "id numbers the rows from 0 to 119" in notes[0]
    assert "name has 120 different texts in 120 rows (names" in notes[1]
    assert "day has 28 different texts in 120 rows (dates)" in notes[2]
    assert notes[3].startswith("age_cat follows from age in every row")
    assert "kind: derived, source: age" in notes[3]


RULES = [
    ("role == Husband implies sex == Male", lambda r: r["role"] != "Husband" or r["sex"] == "Male"),
    ("role in [Husband, Wife] and age >= 28", lambda r: r["role"] in ("Husband", "Wife") and r["age"] >= 28),
    ("not (sex == Male) or income > 10", lambda r: r["sex"] != "Male" or r["income"] > 10),
    ("years <= age", lambda r: r["years"] <= r["age"]),
    ('role != "other one"', lambda r: r["role"] != "other one"),
    (
        "role not in [Wife] implies age < 30 implies years > 3",
        lambda r: r["role"] == "Wife" or r["age"] >= 30 or r["years"] > 3,
    ),
]


@pytest.mark.parametrize(("rule", "truth"), RULES)
def test_constraints_hold_where_they_should(rule: str, truth: object) -> None:
    schema = people(rule)
    codes = uniform(schema, 500, np.random.default_rng(7))
    expected = [truth(schema.row(row)) for row in codes]  # type: ignore[operator]
    assert schema.on_manifold(codes).tolist() == expected
    assert 0 < sum(expected) < 500


@pytest.mark.parametrize(("rule", "truth"), RULES)
def test_the_solver_reads_the_same_rules(rule: str, truth: object) -> None:
    z3 = pytest.importorskip("z3", reason="the extra `tabular` is not installed")
    from auditor.tables.sg_paths import formulas

    schema = people(rule)
    variables, bounds, rules = formulas(schema)
    for row in uniform(schema, 25, np.random.default_rng(3)):
        solver = z3.Solver()
        solver.add(*bounds, *rules, *(v == int(c) for v, c in zip(variables, row, strict=True)))
        assert (solver.check() == z3.sat) == truth(schema.row(row))  # type: ignore[operator]


@given(
    st.lists(st.sampled_from([2, 3, 200, 300, 70_000, 2**31 - 1]), min_size=1, max_size=8), st.integers(0, 2**32 - 1)
)
@settings(max_examples=40, deadline=None)
def test_keys_are_exact(cards: list[int], seed: int) -> None:
    """Equal keys exactly for equal rows, in the order of rows, beyond 2^63 too."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.choice([0, 1, c // 2, c - 1], 60) for c in cards], axis=1).astype(np.int32)
    keys = row_keys(rows, cards)
    listed = [tuple(row) for row in rows.tolist()]
    distinct = sorted(set(listed))
    inverse = np.unique(keys, return_inverse=True)[1].reshape(-1)
    assert [distinct[i] for i in inverse] == listed


def test_enumeration_is_complete() -> None:
    schema = Schema(columns=tuple(Column(name=f"c{i}", kind="integer", codes=c) for i, c in enumerate((3, 1, 4))))
    rows = np.concatenate(list(enumerate_rows(schema, chunk=5)))
    assert [tuple(r) for r in rows.tolist()] == list(itertools.product(range(3), range(1), range(4)))
