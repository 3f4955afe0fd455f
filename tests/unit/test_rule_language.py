"""The rule language of ``--fail-on``."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from auditor.core import rules, waivers
from auditor.core.errors import ConfigError
from auditor.core.record import read


def rate(attributes: list[str], value: float, low: float, high: float, **more: Any) -> dict[str, Any]:
    estimate = {"value": value, "low": low, "high": high, "level": 0.95, "n": 50, "n_skipped": 0, "method": "m"}
    row = {"name": "violation_rate", "model": "m", "format": "bare", "attributes": attributes}
    return {**row, "directions": None, "kind": None, "estimate": estimate, **more}


def finding(id: str, kind: str, attributes: list[str], verdict: str, **more: Any) -> dict[str, Any]:
    code = {"claim": "MUT101", "hidden": "HID201"}.get(kind, "MUT101")
    row = {"id": id, "kind": kind, "code": code, "model": "m", "format": "bare", "attributes": attributes}
    return {**row, "directions": [], "verdict": verdict, **more}


RECORD: dict[str, Any] = {
    "id": "run-1",
    "status": "complete",
    "counts": {"calls": 90, "cached": 10, "failed": 6, "refused": 0, "unparsed": 2, "violations": {"1": 3, "2": 4}},
    "estimates": [
        rate(["gender"], 0.04, 0.01, 0.09),
        rate(["gender", "race"], 0.12, 0.03, 0.2),
        rate([], 0.05, 0.02, 0.1),
        rate(["gender"], 0.5, 0.4, 0.6, directions=[["gender", "men", "women"]]),
        rate(["gender"], 0.9, 0.8, 1.0, kind="swap"),
        rate(["gender"], 0.9, 0.8, 1.0, name="placebo_rate"),
    ],
    "findings": [
        finding("F1", "claim", ["gender"], "shown"),
        finding("F2", "claim", ["gender", "race"], "not_determined"),
        finding("F3", "hidden", ["gender", "race"], "shown"),
        finding("F4", "hidden", ["gender", "race"], "not_determined"),
    ],
}


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("shown", True),
        ("SHOWN", True),
        ("hidden", True),
        ("never", False),
        ("partial", False),
        ("hidden>0", True),
        ("hidden>1", False),
        ("hidden = 1", True),
        ("hidden != 1", False),
        ("shown >= 2", True),
        ("shown>2", False),
        ("violations>6", True),
        ("violations>7", False),
        ("failed>5%", True),
        ("failed>6 %", False),
        ("failed>=6%", True),
        ("failed>6", False),
        ("refused", False),
        ("rate(gender)>0.02", True),
        ("rate(gender)>4%", False),
        ("rate(gender)>=4%", True),
        ("lower(gender)>1%", False),
        ("upper(gender)<=9%", True),
        ("rate(race x gender)>0.1", True),
        ("rate(gender × race)>0.1", True),
        ("rate(gender + race) > .1", True),
        ("rate(gender, race) > .1", True),
        ("rate(all)>4%", True),
        ("rate(all)>6%", False),
        ("rate(any)>11%", True),
        ("rate(any)>13%", False),
        ("rate(gender: men -> women)>0.45", True),
        ('rate("gender": "men"->"women")>0.55', False),
        ("not shown", False),
        ("not not shown", True),
        ("shown and hidden", True),
        ("shown and refused", False),
        ("refused or hidden", True),
        ("refused and refused or shown", True),
        ("refused and (refused or shown)", False),
        ("not refused and shown", True),
        ("not (refused and shown)", True),
        # What was not measured decides only where it must.
        ("rate(age)>0 or shown", True),
        ("rate(age)>0 and refused", False),
    ],
)
def test_rules(rule: str, holds: bool) -> None:
    assert rules.evaluate(rule, RECORD).holds is holds


@pytest.mark.parametrize(
    ("rule", "at", "what"),
    [
        ("", 0, "expected one of shown"),
        ("hiden", 0, "expected one of shown"),
        ("hidden >", 8, "expected a number"),
        ("hidden > x", 9, "expected a number"),
        ("hidden && shown", 7, "means nothing here"),
        ("hidden shown", 7, "expected"),
        ("(hidden", 7, "expected ')'"),
        ("hidden)", 6, "expected"),
        ("hidden > 5%", 10, "is a count"),
        ("hidden > 0.5", 9, "whole number"),
        ("hidden > " + "9" * 400, 9, "whole number"),
        ("rate(gender)", 12, "expected a comparison"),
        ("rate gender > 1", 5, "expected '('"),
        ("rate() > 1%", 5, "expected an attribute"),
        ("rate(gender) > 2", 15, "write 2%"),
        ("rate(gender: men) > 2%", 16, "expected '->'"),
        ("rate(gender: men -> women x race) > 2%", 0, "for every attribute, or for none"),
        ("rate(gender x gender) > 2%", 0, "twice"),
        ("never > 1", 6, "stands alone"),
        ("(" * 60 + "shown" + ")" * 60, 50, "levels"),
    ],
)
def test_slips_show_their_place(rule: str, at: int, what: str) -> None:
    with pytest.raises(rules.RuleError) as error:
        rules.parse(rule)
    assert error.value.at == at
    assert what in error.value.what
    quoted, mark = str(error.value).split("\n    ")[1:]
    assert quoted == rule
    assert mark.index("^") == at


def test_what_was_not_measured_is_told() -> None:
    with pytest.raises(ConfigError, match=r"rate\(gendr\) was not measured.*rate\(gender\)"):
        rules.evaluate("rate(gendr) > 1%", RECORD)


def test_findings_are_not_gone_through_for_every_rate() -> None:
    class Counted(tuple[Any, ...]):
        times = 0

        def __iter__(self) -> Iterator[Any]:
            self.times += 1
            return super().__iter__()

    record = read(RECORD)
    many = tuple(structs.replace(record.estimates[0], attributes=(f"a{i}",)) for i in range(40))
    Counted.times = 0
    found = Counted(record.findings)
    assert rules.evaluate("rate(any) > 0", structs.replace(record, findings=found, estimates=many)).holds
    assert 0 < found.times < 10


def test_matches_name_the_findings() -> None:
    outcome = rules.evaluate("hidden and rate(gender) > 1%", RECORD)
    assert [m.findings for m in outcome.matches] == [("F3",), ("F1",)]
    assert "4 %" in outcome.matches[1].text
    # A branch that came to nothing does not appear.
    outcome = rules.evaluate("(hidden and refused) or rate(gender) > 1%", RECORD)
    assert [m.findings for m in outcome.matches] == [("F1",)]
    assert rules.evaluate("hidden > 5", RECORD).matches == ()


def test_waived_findings_do_not_count() -> None:
    waiver = waivers.Waiver(finding="*/gender", reason="r", owner="o", expires=datetime.date(2030, 1, 1), line=1)
    record = waivers.apply(RECORD, [waiver], datetime.date(2026, 1, 1))
    assert rules.evaluate("shown > 1", record).holds is False
    assert rules.evaluate("rate(gender) > 1%", record).holds is False
    assert rules.evaluate("hidden", record).holds is True
    late = waivers.apply(RECORD, [waiver], datetime.date(2031, 1, 1))
    assert rules.evaluate("shown > 1", late).holds is True


def test_rate_of_rows_is_the_causal_score() -> None:
    record = {"findings": [], "counts": {}, "estimates": [rate(["sex"], 0.3, 0.2, 0.4, name="causal")]}
    assert rules.evaluate("lower(sex) > 10%", record).holds


ATOMS = st.sampled_from(["shown", "hidden", "refused", "failed>5%", "rate(gender)>1%", "never", "partial"])
RULES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda t: f"not {t}"),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(RULES)
def test_rules_mean_what_python_means(text: str) -> None:
    source = text.replace("failed>5%", "True").replace("rate(gender)>1%", "True")
    for word, value in (("shown", True), ("hidden", True), ("refused", False), ("never", False), ("partial", False)):
        source = source.replace(word, str(value))
    assert rules.evaluate(text, RECORD).holds is eval(source)
    assert rules.evaluate(f"not ({text})", RECORD).holds is not eval(source)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from(list('shownrate()><=!%0.5 x×,:"-')) | st.characters(), max_size=25))
def test_any_text_is_a_rule_or_a_clear_error(text: str) -> None:
    told = ""
    try:
        rules.evaluate(text, RECORD)
    except ConfigError as error:
        told = str(error)
    assert not told or told.startswith("--fail-on")
