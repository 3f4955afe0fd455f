"""Rows: schemas, files, inference and rules; verdicts, limits and distances of the evaluator; pairs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.errors import ConfigError, DataFileError, PluginError
from auditor.tables import tabular_plan, themis
from auditor.tables.columns import Column
from auditor.tables.evaluate import Distance, Evaluator
from auditor.tables.finds import lattice
from auditor.tables.row_data import infer, read_table
from auditor.tables.row_schema import Schema, dump_schema, load_schema, row_keys, uniform


def number(name: str, codes: int, **more: Any) -> Column:
    return Column(name=name, kind="integer", codes=codes, **more)


def people(*rules: str) -> Schema:
    return Schema(
        columns=(
            number("age", 5, low=18, step=10, ordered=True),
            Column(name="sex", kind="category", codes=2, values=("Female", "Male"), protected=True),
            Column(name="role", kind="category", codes=3, values=("Husband", "Wife", "other one")),
            Column(name="income", kind="binned", codes=3, values=(5, 20.5, 70), edges=(10.0, 40.0), ordered=True),
            number("years", 60),
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


def test_codes_and_back(tmp_path: Path) -> None:
    schema = people("role == Husband implies sex == Male", "not (age < 28 and years > 20)")
    codes = schema.encode(ROWS)
    assert codes.tolist() == [[0, 1, 0, 0, 0], [4, 0, 2, 1, 59], [1, 1, 1, 2, 7]]
    assert schema.decode(codes).tolist()[1] == [58, "Female", "other one", 20.5, 59]
    frame = schema.frame(codes)
    assert list(frame.columns) == list(schema.names)
    assert frame["age"].dtype == np.int64
    assert schema.encode(frame).tolist() == codes.tolist()
    path = tmp_path / "table.yaml"
    path.write_text(dump_schema(schema), encoding="utf-8")
    assert load_schema(path) == schema


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


def one(column: str) -> str:
    return f"columns: {{a: {{{column}}}}}"


AB = one("kind: integer, low: 1, high: 2")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("columns: [a]", DataFileError, "field columns: Input should be a valid dictionary"),
        (f"colums: {{}}\n{AB}", DataFileError, "line 1: field colums: no such field; did you mean columns"),
        (one("kind: number"), DataFileError, "line 1: field columns.a.kind: Input should be 'integer', 'category'"),
        (one("kind: integer, low: 3, high: 2"), DataFileError, "field columns.a: needs whole numbers low <= high"),
        (one("kind: category, values: [x, x]"), ConfigError, "lists a value twice"),
        (one("kind: category, values: [x], colour: 1"), DataFileError, "field columns.a.colour: no such field"),
        (one("kind: binned, values: [1, 2], edges: [3, 4]"), ConfigError, "2 bins need 1 rising"),
        (one("kind: derived, values: [x]"), DataFileError, "field columns.a: a derived column needs source"),
        (one("kind: integer, low: 1, high: 1, protected: true"), ConfigError, "one value only"),
        (f"{AB}\nconstraints: [b == 1]", ConfigError, "no column 'b'"),
        (f"{AB}\nconstraints: [a ==]", ConfigError, "it cannot be read. Example"),
        (f"{AB}\nconstraints: [a == 7]", ConfigError, "no value '7'"),
        (f"target: a\n{AB}", ConfigError, "also an input column"),
        ("columns: {a: {", DataFileError, "not valid YAML"),
    ],
)
def test_schema_files_that_are_wrong(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=message):
        load_schema(path)


def read_lines(tmp_path: Path, *lines: str) -> Any:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_table(path)


def read_back(tmp_path: Path, schema: Schema, table: Any) -> Any:
    """The codes of a table, which are those of the schema's file too."""
    path = tmp_path / "s.yaml"
    path.write_text(dump_schema(schema), encoding="utf-8")
    codes = schema.encode(table)
    assert load_schema(path).encode(table).tolist() == codes.tolist()
    return codes


def test_kinds_are_inferred_and_truth_values_stay(tmp_path: Path) -> None:
    lines = [f"{(0, 1, 7, 100)[i % 4]},{20 + i % 50},{i * 7.5},{'mf'[i % 2]},{(i % 3 > 0)},{i % 2}" for i in range(200)]
    table = read_lines(tmp_path, "code,age,pay,sex,own,y", *lines)
    schema = infer(table, "y", ["sex"])
    kinds = "code category 4, age integer 50, pay binned 10, sex category 2, own category 2"
    assert ", ".join(f"{c.name} {c.kind} {c.codes}" for c in schema.columns) == kinds
    assert [c.name for c in schema.columns if c.protected] == ["sex"]
    rows = schema.frame(read_back(tmp_path, schema, table))
    assert rows["own"].dtype == bool
    assert rows["own"].tolist()[:3] == [False, True, True]
    old = Schema(columns=(Column(name="own", kind="category", codes=2, values=("False", "True")),))
    assert old.decode(old.encode(table))[:2, 0].tolist() == ["False", "True"]


def test_missing_values_reach_the_model_as_nan(tmp_path: Path) -> None:
    lines = [f"{20 + i % 30},cook,{i * 7.5},{'mf'[i % 2]},{i % 2}" for i in range(60)]
    table = read_lines(tmp_path, "age,job,pay,sex,y", *lines, ",,,m,0", "30,waiter,5,,1", "31,cook,6,f,")
    table = table.without_missing(["sex", "y"])
    assert table.notes == ("sex is missing in 1 row: left out.", "y is missing in 1 row: left out.")
    schema = infer(table, "y", ["sex"])
    assert [c.may_lack for c in schema.columns] == [True, True, True, False]
    codes = read_back(tmp_path, schema, table)
    assert schema.frame(codes).iloc[-1][["age", "job", "pay"]].isna().all()
    assert schema.row(codes[-1])["pay"] == "(missing)"
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
    table = read_lines(tmp_path, "a;b", *(f"{v};1" for v in values))
    assert [None if isinstance(v, float) and np.isnan(v) else v for v in table["a"].tolist()] == read
    assert (note in " ".join(table.notes)) if note else not table.notes


def test_ids_names_and_columns_that_go_together_are_named(tmp_path: Path) -> None:
    aged = ((i, i % 9) for i in range(120))
    lines = [f"{i},person {i},{20 + n},{'young' if n < 4 else 'old'},{'mf'[i // 5 % 2]},{i % 2}" for i, n in aged]
    notes = infer(read_lines(tmp_path, "id,name,age,age_cat,sex,y", *lines), "y", ["age", "sex"]).notes
    numbered, names, follows = notes
    assert "id numbers the rows from 0 to 119" in numbered
    assert "name has 120 different texts in 120 rows (names" in names
    assert "age_cat follows from age in every row" in follows
    assert "kind: derived, source: age" in follows


RULES: list[tuple[str, Any]] = [
    ("role == Husband implies sex == Male", lambda r: r["role"] != "Husband" or r["sex"] == "Male"),
    ("role in [Husband, Wife] and age >= 28", lambda r: r["role"] in ("Husband", "Wife") and r["age"] >= 28),
    ("not (sex == Male) or income > 10", lambda r: r["sex"] != "Male" or r["income"] > 10),
    ("years <= age", lambda r: r["years"] <= r["age"]),
    ('role != "other one"', lambda r: r["role"] != "other one"),
    ("role not in [Wife] implies age < 30 implies years > 3",
     lambda r: r["role"] == "Wife" or r["age"] >= 30 or r["years"] > 3),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "truth"), RULES)
def test_rules_hold_where_they_should_and_the_solver_reads_them_too(rule: str, truth: Any) -> None:
    schema = people(rule)
    codes = uniform(schema, 500, np.random.default_rng(7))
    expected = [truth(schema.row(row)) for row in codes]
    assert schema.on_manifold(codes).tolist() == expected
    assert 0 < sum(expected) < 500
    z3 = pytest.importorskip("z3", reason="the extra `tabular` is not installed")
    from auditor.tables.sg_paths import formulas

    variables, bounds, rules = formulas(schema)
    for row, holds in zip(codes[:25], expected, strict=False):
        solver = z3.Solver()
        solver.add(*bounds, *rules, *(v == int(c) for v, c in zip(variables, row, strict=True)))
        assert (solver.check() == z3.sat) == holds


@given(
    st.lists(st.sampled_from([2, 3, 200, 300, 70_000, 2**31 - 1]), min_size=1, max_size=8), st.integers(0, 2**32 - 1)
)
@settings(max_examples=40, deadline=None)
def test_keys_are_exact(cards: list[int], seed: int) -> None:
    """Equal keys exactly for equal rows, in the order of rows, beyond 2^63 too."""
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.choice([0, 1, c // 2, c - 1], 60) for c in cards], axis=1).astype(np.int32)
    listed = [tuple(row) for row in rows.tolist()]
    distinct = sorted(set(listed))
    inverse = np.unique(row_keys(rows, cards), return_inverse=True)[1].reshape(-1)
    assert [distinct[i] for i in inverse] == listed


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda rows: np.zeros(len(rows) - 1), PluginError, "one label a row"),
        (lambda rows: np.full(len(rows), np.nan), PluginError, "NaN"),
        (lambda rows: np.full(len(rows), 0.5), ConfigError, "not whole"),
        (lambda rows: np.zeros((len(rows), 2)), PluginError, "shape"),
    ],
)
def test_answers_that_are_no_labels(answer: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Evaluator(answer, people()).labels(uniform(people(), 5, np.random.default_rng(7)))


def test_scores_as_far_apart_as_the_threshold_are_equal() -> None:
    """Definition 3.3 has "above the threshold"; 0.29 is no whole multiple of anything in binary."""
    for base, k in itertools.product((0.0, 0.1, 7.0), range(1, 100)):
        far = Distance(k / 100)
        codes = far.codes(np.array([[base, base + k / 100], [base, base + k / 100 + 1e-8]]))
        assert far.differ(codes, None).tolist() == [False, True]


def test_under_a_threshold_a_row_counts_by_its_own_output() -> None:
    """Every way to count changes, against a loop over pairs of rows, on random outputs."""
    grades = np.array([0.0, 0.1, 0.3, 0.6, 0.7, 1.0])
    at = np.random.default_rng(5).integers(0, 6, (4, 3, 3))
    s = Schema(columns=(number("x", 4), number("sex", 3, protected=True), number("race", 3, protected=True)))

    def asked() -> Evaluator:
        return Evaluator(lambda rows: grades[at[tuple(rows.astype(int).T)]], s, distance=Distance(0.4))

    def share(columns: tuple[int, ...]) -> float:
        changed = 0
        for one in np.ndindex(4, 3, 3):
            others = [o for o in np.ndindex(4, 3, 3) if all(o[i] == one[i] for i in range(3) if i not in columns)]
            changed += any(abs(grades[at[one]] - grades[at[o]]) > 0.4 + 1e-12 for o in others)
        return changed / 36

    def first(given: Any = None, **options: Any) -> Any:
        settings = tabular_plan.ThemisOptions.of(options)
        return themis.run(asked(), settings, np.random.default_rng(7), given).scores[0].estimate

    truth = share((1, 2))
    assert 0 < truth < 1
    rows = np.array(list(np.ndindex(4, 3, 3)), dtype=np.int32)
    assert first().value == first(rows).value == pytest.approx(truth)
    sampled = first(max_samples=4000, epsilon=0.001)
    assert sampled.low <= truth <= sampled.high
    assert first(protocol="themis", max_samples=4000, epsilon=0.01).value == pytest.approx(truth, abs=0.05)
    for prune in (True, False):
        options = tabular_plan.ThemisOptions(theta=0.0)
        result = themis.search(asked(), options, np.random.default_rng(7), prune=prune)
        for test in result.details["tests"]:  # type: ignore[attr-defined]
            assert test["value"] == pytest.approx(share(tuple(map(s.names.index, test["columns"]))))
    judged = asked().judge(rows[::9])
    for subset in lattice(asked(), judged.labels, judged.possible):
        assert subset.changes / subset.rows == pytest.approx(share(tuple(map(s.names.index, subset.columns))))
