"""Two models of one run: paired differences by seed, and the tables of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged import table_of

from auditor.core.record import read
from auditor.core.types import Verdict
from auditor.measure.claims import MIN_TEXTS
from auditor.measure.comparison import two_models
from auditor.report.build import conditional


def verdict(model: str, case: int, variant: int, changed: bool, *, format: str = "bare", **more: Any) -> Verdict:
    values: dict[str, Any] = {
        "case_id": f"c{case}",
        "variant_id": f"c{case}.v{variant}",
        "order": 1,
        "attributes": ("gender",),
        "outcome": "violation" if changed else "pass",
        "model": model,
        "format": format,
    }
    return Verdict(**(values | more))


def test_a_difference_on_every_seed() -> None:
    told = [verdict("a", c, v, v == 0) for c in range(8) for v in range(2)]
    told += [verdict("b", c, v, False) for c in range(8) for v in range(2)]
    (row,) = two_models(table_of(told))["pairs"]
    assert (row["first"]["model"], row["second"]["model"]) == ("a", "b")
    assert (row["attributes"], row["n"], row["n_variants"], row["value"], row["discordant"]) == (
        ["gender"], 8, 16, 0.5, 8,
    )  # fmt: skip
    assert row["p_value"] == pytest.approx(2 / 2**8)  # exact: two of the 256 sign patterns
    assert row["low"] < 0.5 < row["high"]


def test_only_what_both_were_judged_on() -> None:
    told = [verdict("a", c, v, True) for c in range(8) for v in range(2)]
    told += [verdict("b", c, 0, True) for c in range(8)]
    told += [verdict("b", c, 1, False, outcome="skipped") for c in range(8)]
    told += [verdict("b", c, 9, False, order=0, attributes=("gender",)) for c in range(8)]
    told += [verdict("b", 99, 0, False)]
    (row,) = two_models(table_of(told))["pairs"]
    assert (row["n"], row["n_variants"], row["value"], row["p_value"]) == (8, 8, 0.0, 1.0)
    assert row["low"] < 0 < row["high"]


def test_all_pairs_and_sets_are_one_family() -> None:
    told = [
        verdict(model, c, v, model == "a" and attribute == "gender", attributes=(attribute,))
        for model in "abc"
        for c in range(10)
        for v, attribute in enumerate(("gender", "race"))
    ]
    rows = two_models(table_of(told))["pairs"]
    assert [(r["first"]["model"], r["second"]["model"], r["attributes"]) for r in rows] == [
        (first, second, attributes)
        for first, second in (("a", "b"), ("a", "c"), ("b", "c"))
        for attributes in ([], ["gender"], ["race"])
    ]
    smallest = 2 / 2**10
    assert min(r["p_value"] for r in rows) == pytest.approx(smallest)
    assert min(r["p_adjusted"] for r in rows) == pytest.approx(9 * smallest)


def test_a_clear_difference_is_shown_among_a_hundred() -> None:
    """15 models make 105 pairs, and 1,999 sign patterns have no p value below 2 / 2000."""
    told = [verdict(f"m{m:02d}", c, 0, m == 0) for m in range(15) for c in range(20)]
    rows = two_models(table_of(told))["pairs"]
    assert len(rows) == 105
    clear = [r for r in rows if r["value"]]
    assert len(clear) == 14
    assert max(r["p_adjusted"] for r in clear) < 0.05
    assert min(r["p_adjusted"] for r in rows if not r["value"]) == 1.0


def test_few_seeds_are_not_tested_and_leave_the_family() -> None:
    told = [verdict(m, c, 0, m == "a") for m in "ab" for c in range(MIN_TEXTS - 1)]
    (row,) = two_models(table_of(told))["pairs"]
    assert (row["value"], row["p_value"], row["p_adjusted"]) == (1.0, None, None)


def test_formats() -> None:
    told = [verdict(m, c, 0, False, format=f) for m in "ab" for f in ("x", "y") for c in range(6)]
    told += [verdict("vader", c, 0, False) for c in range(6)]
    pairs = [
        tuple((r[s]["model"], r[s]["format"]) for s in ("first", "second")) for r in two_models(table_of(told))["pairs"]
    ]
    assert sorted(pairs) == [
        (("a", "x"), ("b", "x")),
        (("a", "x"), ("vader", "bare")),
        (("a", "y"), ("b", "y")),
        (("a", "y"), ("vader", "bare")),
        (("b", "x"), ("vader", "bare")),
        (("b", "y"), ("vader", "bare")),
    ]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=25))
@settings(max_examples=50, deadline=None)
def test_exchanging_the_models_turns_the_sign(answers: list[tuple[bool, bool]]) -> None:
    one = [verdict("a", c, 0, x) for c, (x, _) in enumerate(answers)]
    two = [verdict("b", c, 0, y) for c, (_, y) in enumerate(answers)]
    (row,) = two_models(table_of(one + two))["pairs"]
    (turned,) = two_models(table_of(two + one))["pairs"]
    assert turned["value"] == pytest.approx(-row["value"])
    assert turned["low"] == pytest.approx(-row["high"])
    assert -1 <= row["low"] <= row["value"] <= row["high"] <= 1
    if row["p_value"] is not None:
        assert 0 < row["p_value"] <= 1
        assert turned["p_value"] == pytest.approx(row["p_value"], abs=0.1)


def estimate(model: str, value: float, name: str = "violation_rate", **more: Any) -> dict[str, Any]:
    told = {"value": value, "low": 0.0, "high": 1.0, "level": 0.95, "n": 8, "n_skipped": 0, "method": "m"}
    entry = {"name": name, "model": model, "format": "bare", "attributes": ["gender"], "directions": None, "kind": None}
    return entry | {"estimate": told} | more


def test_the_tables() -> None:
    told = [verdict(m, c, 0, m == "a") for m in "ab" for c in range(8)]
    record = {
        "estimates": [estimate("b", 0.0), estimate("a", 1.0)],
        "models": {"a": {}, "b": {}},
        "comparison": two_models(table_of(told)),
    }
    (found,) = conditional(read(record))
    ((pair,),) = (table.lines for table in found.tables)
    assert pair[:4] == ("gender", "a", "b", "8")
    assert str(pair[4]).startswith("+100.0 (")
    assert pair[5] == "0.008"
    assert pair[-1] == "▲ shown"
    assert len(pair) == len(found.tables[0].columns)
    assert conditional(read({k: v for k, v in record.items() if k != "comparison"})) == ()
    assert conditional(read(record | {"estimates": [estimate("a", 1.0)]})) == ()
    assert conditional(read({})) == ()
