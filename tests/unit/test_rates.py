from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from judged import shape, table_of

from auditor.core.types import Answer, Interaction, Verdict
from auditor.measure.findings import findings
from auditor.measure.hidden import Settings, hidden_text
from auditor.measure.intervals import mean_share, percent
from auditor.measure.observations import Arm, Observations, Shape
from auditor.measure.rates import estimates, noise_floor

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


def world() -> Observations:
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
    edits: dict[str, Shape] = {}
    for case in range(4):
        edits[f"c{case}.a"] = shape(("gender",), GENDER)
        edits[f"c{case}.b"] = shape(("gender",), BACK, kind="marking")
        edits[f"c{case}.j"] = shape(("gender", "race_ethnicity"), GENDER, RACE, kind="mixed")
    return table_of(verdicts, edits)


def rows(**wanted: Any) -> list[dict[str, Any]]:
    found = estimates(world())
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
    assert rate["estimate"]["value"] == 1 / 3
    assert "1 joint violations left out" in rate["estimate"]["note"]


def test_valid_share_by_attribute_set() -> None:
    valid, discarded = Observations(), Observations()
    for table, text, attributes, n in (
        (valid, "c0", ("gender",), 2),
        (discarded, "c0", ("gender",), 2),
        (discarded, "c0", ("gender", "race"), 2),
        (valid, "c1", ("gender",), 4),
    ):
        for _ in range(n):
            table.shape(text, shape(attributes))
    found = estimates(valid, discarded)
    assert [(row["name"], row["attributes"], row["estimate"]["value"]) for row in found] == [
        ("valid_share", ["gender"], 6 / 8),
        ("valid_share", ["gender", "race"], 0.0),
    ]
    assert found[0]["estimate"]["n"] == 2


def noise(given: dict[tuple[str, str], str]) -> Any:
    """Of answers to originals, by text and format."""
    table = Observations()
    rows = {text: table.version(text) for text, _ in given}
    for (text, name), labels in given.items():
        answers = [Answer(status="ok", value=one) for one in labels]
        table.answers(rows[text], model="m", format=name, answers=answers)
    return noise_floor(table, "m")


def test_noise_counts_pairs_and_weighs_texts_alike() -> None:
    found = noise({("c0", "x"): "aab", ("c0", "y"): "aaa", ("c1", "x"): "bb", ("c2", "x"): "a"})
    assert (found.n, found.n_skipped, found.value) == (2, 1, pytest.approx(1 / 6))
    assert noise({("c0", "x"): "ab"}).value == 1.0
    assert noise({("c0", "x"): "a"}) is None
    assert noise({}) is None


def test_which_placebos_stand_against_a_rate() -> None:
    def rate(*placebos: tuple[tuple[str, ...], int, int]) -> float | None:
        told = [verdict(0, "a", "pass"), verdict(0, "j", "pass", order=2)]
        shapes = {}
        for attributes, changed, of in placebos:
            for n in range(of):
                name = f"p{'-'.join(attributes)}{n}"
                shapes[f"c0.{name}"] = shape(attributes, arm=Arm.PLACEBO)
                told.append(verdict(0, name, "violation" if n < changed else "pass"))
        found = estimates(table_of(told, shapes))
        joint = [r for r in found if r["name"] == "placebo_rate" and len(r["attributes"]) == 2]
        return joint[0]["estimate"]["value"] if joint else None

    both, neutral = ("gender", "race_ethnicity"), ("age",)
    parts = ((("gender",), 1, 2), (("race_ethnicity",), 0, 2))
    assert rate((both, 3, 4), *parts, (neutral, 5, 6)) == 3 / 4
    assert rate(*parts, (neutral, 5, 6), (("age", "gender"), 7, 8)) == 1 / 4  # its parts, and nothing with age
    assert rate((neutral, 5, 6)) == 5 / 6
    assert rate((("age", "gender"), 7, 8)) is None
    assert rate() is None


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


# -- findings -----------------------------------------------------------------------------------------------


def test_rates_of_changes_without_a_claim_determine_nothing() -> None:
    found = findings([world()], Settings(deterministic={"m": True}))
    assert [(f.id, f.code, f.kind, f.verdict) for f in found] == [
        ("F001", "MUT101", "claim", "not_determined"),
        ("F002", "MUT102", "claim", "not_determined"),
        ("F003", "HID201", "hidden", "not_tested"),
    ]
    atomic, joint, hidden = found
    assert atomic.exemplars == ("c0.a",)
    assert atomic.rate is not None
    assert (atomic.rate.value, atomic.rate.n_variants, atomic.rate.n) == (pytest.approx(0.2), 5, 3)
    assert atomic.text == joint.text == ""  # reports say it
    assert any("3 variants were not judged" in note for note in atomic.notes)
    assert any("1 of 3 changes are hidden" in note for note in joint.notes)
    assert hidden.exemplars == ("c1.j",)
    assert hidden.directions == (GENDER, RACE)
    assert "gender (male → female) and race ethnicity (white → black)" in hidden.text
    assert "it stayed positive when either was changed alone" in hidden.text


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
        (replace(CONFIRMED, kind="threshold_crossing", why="x"), True, 0.001, "threshold_crossing", "not_determined"),
        (None, True, 0.001, "not_tested", "not_tested"),
    ],
)
def test_a_hidden_change_of_a_model_that_varies_is_confirmed_by_placebos_and_fresh_answers(
    told: Interaction | None, came_again: bool | None, p_value: float | None, kind: str, verdict: str
) -> None:
    key = ("m", "c1.j", "bare")
    settings = Settings(
        deterministic={"m": False},
        noise={"m": mean_share([0.3] * 4, 12)},
        replicates={"m": 3},
        confirmed={key: came_again},
        fresh={key: p_value},
        interactions={} if told is None else {key: told},
    )
    (hidden,) = [f for f in findings([world()], settings) if f.kind == "hidden"]
    assert (hidden.interaction, hidden.verdict) == (kind, verdict)
    assert any("would look hidden by chance" in note for note in hidden.notes)


def test_a_claim_without_a_judged_seed_is_not_tested() -> None:
    table = table_of([verdict(0, "a", "skipped")], {"c0.a": shape(("gender",), GENDER)})
    (found,) = findings([table], Settings(deterministic={"m": True}))
    assert (found.verdict, found.rate) == ("not_tested", None)
