from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from auditor.measure.summary import (
    EditInfo,
    estimates,
    noise_of,
    percent,
    tabulate,
    valid_share,
    with_interval,
)

from auditor.core.types import Interaction, Verdict
from auditor.measure.claim_words import hidden_text
from auditor.measure.findings import Settings, as_records, findings
from auditor.measure.intervals import korn_graubard

GENDER = ("gender", "male", "female")
BACK = ("gender", "female", "male")
RACE = ("race_ethnicity", "white", "black")
FORBIDDEN = re.compile(r"\b(fair|unfair|unbiased|biased|compliant|passes|passed|certified)\b", re.IGNORECASE)


def verdict(
    case: int, variant: str, outcome: str, *, hidden: bool | None = None, order: int = 1, **more: Any
) -> Verdict:
    attributes = ("gender",) if order == 1 else ("gender", "race_ethnicity")
    return Verdict(
        case_id=f"c{case}",
        variant_id=f"c{case}.{variant}",
        order=order,
        attributes=attributes,
        outcome=outcome,
        hidden=hidden,
        original_output="positive",
        variant_output="negative",
        model="m",
        format="bare",
        **more,
    )  # type: ignore[arg-type]


def world() -> tuple[list[Verdict], dict[str, EditInfo]]:
    """Four seeds: gender in two directions and two kinds; and joint variants."""
    verdicts = [
        verdict(0, "a", "violation", distance=1.0),
        verdict(0, "b", "pass", distance=0.0),
        verdict(1, "a", "pass"),
        verdict(1, "b", "pass"),
        verdict(2, "a", "pass"),
        verdict(2, "b", "skipped"),
        verdict(3, "a", "skipped"),
        verdict(3, "b", "inconclusive"),
        verdict(0, "j", "violation", order=2, hidden=False),
        verdict(1, "j", "violation", order=2, hidden=True),
        verdict(2, "j", "violation", order=2, hidden=None),
        verdict(3, "j", "pass", order=2, hidden=False),
    ]
    edits = {}
    for case in range(4):
        edits[f"c{case}.a"] = EditInfo((GENDER,), ("swap",))
        edits[f"c{case}.b"] = EditInfo((BACK,), ("marking",))
        edits[f"c{case}.j"] = EditInfo((GENDER, RACE), ("marking", "swap"))
    return verdicts, edits


def rows(**wanted: Any) -> list[dict[str, Any]]:
    verdicts, edits = world()
    found = estimates(tabulate(verdicts, edits))
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def test_rates_are_by_seed_and_say_what_was_left_out() -> None:
    (row,) = rows(name="violation_rate", attributes=["gender"], directions=None, kind=None)
    assert row["estimate"]["value"] == 1 / 5
    assert (row["estimate"]["n"], row["estimate"]["n_variants"], row["estimate"]["n_skipped"]) == (3, 5, 1)
    assert (row["model"], row["format"]) == ("m", "bare")
    (seeds,) = rows(name="seed_violation_rate", attributes=["gender"])
    assert (seeds["estimate"]["value"], seeds["estimate"]["n_skipped"]) == (1 / 3, 1)


def test_rates_by_direction_and_by_kind() -> None:
    (there,) = rows(attributes=["gender"], directions=[list(GENDER)])
    (back,) = rows(attributes=["gender"], directions=[list(BACK)])
    assert (there["estimate"]["value"], back["estimate"]["value"]) == (1 / 3, 0.0)
    kinds = {row["kind"]: row["estimate"]["value"] for row in rows(name="violation_rate") if row["kind"]}
    assert kinds == {"swap": 1 / 3, "marking": 0.0, "mixed": 3 / 4}


def test_hidden_rates_leave_out_what_could_not_be_settled() -> None:
    (rate,) = rows(name="hidden_rate")
    (share,) = rows(name="hidden_share")
    assert rate["estimate"]["value"] == 1 / 3
    assert share["estimate"]["value"] == 1 / 2
    assert "1 joint violations left out" in rate["estimate"]["note"]


def test_directed_cases_enter_no_rate() -> None:
    verdicts, edits = world()
    table = tabulate(verdicts, edits, directed={"c0"})
    assert all("c0" not in cases for cases in table.values())


def test_nothing_judged_gives_no_rate() -> None:
    edits = {"c0.a": EditInfo((GENDER,), ("swap",))}
    assert estimates(tabulate([verdict(0, "a", "skipped")], edits)) == []
    assert estimates(tabulate([], {})) == []


def test_valid_share_by_attribute_set() -> None:
    found = valid_share(
        {"c0": {("gender",): (2, 4), ("gender", "race"): [0, 2]}, "c1": {("gender",): (4, 4)}}
    )
    assert [(row["attributes"], row["estimate"]["value"]) for row in found] == [
        (["gender"], 6 / 8),
        (["gender", "race"], 0.0),
    ]
    assert valid_share({}) == []


def test_a_seed_asked_in_two_formats_is_one_seed_of_noise() -> None:
    found = noise_of(
        {("c0", "x"): {"c0.o": "aab"}, ("c0", "y"): {"c0.o": "aaa"}, ("c1", "x"): {"c1.o": "bb"}}
    )
    assert found is not None
    assert (found.n, found.value) == (2, pytest.approx(1 / 6))
    assert noise_of({("c0", "x"): {"c0.o": "a"}}) is None


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0"),
        (1.0, "100"),
        (0.041, "4.1"),
        (0.2646, "26"),
        (0.0996, "10"),
        (0.002, "0.2"),
        (0.00004, "0.004"),
        (0.95, "95"),
        (0.994, "99.4"),
        (0.9999, "99.99"),
        (0.5, "50"),
    ],
)
def test_percentages(share: float, text: str) -> None:
    assert percent(share) == text


def test_none_of_twelve_prints_its_interval() -> None:
    assert with_interval(korn_graubard([0] * 12, [8] * 12)) == "0 % (0–26 %)"


# -- findings -----------------------------------------------------------------------------------------------


def test_rates_of_changes_without_a_claim_determine_nothing() -> None:
    verdicts, edits = world()
    found = findings(verdicts, edits, Settings(deterministic={"m": True}))
    assert [(f.id, f.code, f.kind, f.verdict) for f in found] == [
        ("F001", "MUT101", "claim", "not_determined"),
        ("F002", "MUT102", "claim", "not_determined"),
        ("F003", "HID201", "hidden", "not_tested"),
    ]
    atomic, joint, hidden = found
    assert atomic.exemplars == ("c0.a",)
    assert "the label changed in 20 % of 5 variants of 3 seeds (95 %: " in atomic.text
    assert "the same prompt repeated changed in 0 % (declared deterministic)" in atomic.text
    assert any("3 variants were not judged" in note for note in atomic.notes)
    assert "gender and race ethnicity terms were changed together" in joint.text
    assert any("1 of 3 changes are hidden" in note for note in joint.notes)
    assert hidden.exemplars == ("c1.j",)
    assert hidden.directions == (GENDER, RACE)
    assert "gender (male → female) and race ethnicity (white → black)" in hidden.text
    assert "it stayed positive when either was changed alone" in hidden.text


def test_one_direction_is_named_in_the_text() -> None:
    edits = {"c0.a": EditInfo((GENDER,), ("swap",))}
    (found,) = findings([verdict(0, "a", "violation")], edits, Settings(deterministic={"m": True}))
    assert "when gender terms were changed from male to female" in found.text


def test_three_attributes_have_a_text_of_their_own() -> None:
    v = Verdict(case_id="c", variant_id="v", order=3, attributes=("a", "b", "c"), outcome="violation")
    assert hidden_text(v, (GENDER,)).endswith("when fewer of them were changed")


CONFIRMED = Interaction(kind="confirmed", contrast=1.0, se=0.1, scale="share", p_value=0.01, p_adjusted=0.02)


@pytest.mark.parametrize(
    ("told", "came_again", "p_value", "kind", "verdict"),
    [
        (CONFIRMED, True, 0.001, "confirmed", "shown"),
        (CONFIRMED, True, 0.2, "threshold_crossing", "not_determined"),
        (CONFIRMED, False, 0.001, "threshold_crossing", "not_determined"),
        (CONFIRMED, None, None, "not_tested", "not_tested"),
        (replace(CONFIRMED, scale="log_odds"), None, None, "confirmed", "shown"),
        (
            replace(CONFIRMED, kind="threshold_crossing", why="x"),
            True,
            0.001,
            "threshold_crossing",
            "not_determined",
        ),
        (None, True, 0.001, "not_tested", "not_tested"),
    ],
)
def test_a_hidden_change_of_a_model_that_varies_is_confirmed_by_placebos_and_fresh_answers(
    told: Interaction | None, came_again: bool | None, p_value: float | None, kind: str, verdict: str
) -> None:
    verdicts, edits = world()
    labels = {
        "m": {(f"c{n}", "bare"): {f"c{n}.o": ["a", "b", "a"], f"c{n}.j": ["a", "a", "a"]} for n in range(4)}
    }
    key = ("m", "c1.j", "bare")
    settings = Settings(
        deterministic={"m": False},
        labels=labels,
        confirmed={key: came_again},
        fresh={key: p_value},
        interactions={} if told is None else {key: told},
    )
    (hidden,) = [f for f in findings(verdicts, edits, settings) if f.kind == "hidden"]
    assert (hidden.interaction, hidden.verdict) == (kind, verdict)
    assert any("would look hidden by chance" in note for note in hidden.notes)


def test_a_claim_without_a_judged_seed_is_not_tested() -> None:
    edits = {"c0.a": EditInfo((GENDER,), ("swap",))}
    (found,) = findings([verdict(0, "a", "skipped")], edits, Settings(deterministic={"m": True}))
    assert (found.verdict, found.rate) == ("not_tested", None)


def test_findings_are_plain_data_and_say_only_what_was_measured() -> None:
    verdicts, edits = world()
    found = findings(verdicts, edits, Settings(deterministic={"m": True}))
    text = json.dumps(as_records(found), allow_nan=False)
    assert not FORBIDDEN.search(text)
