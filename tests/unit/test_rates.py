"""Rates of changes, the findings from them, and the reason beside a verdict."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from judged import shape, table_of
from scipy.sparse import csr_array

from auditor import audit
from auditor.core.record.measured import Claim
from auditor.core.types import Answer, Interaction, Verdict
from auditor.measure import claims as verdicts
from auditor.measure.claims import Question
from auditor.measure.findings import ATOMIC, Settings, findings
from auditor.measure.intervals import mean_share
from auditor.measure.linear import Design, Estimated, Fit, Rows
from auditor.measure.observations import Arm, Observations, Shape
from auditor.measure.rates import estimates, noise_floor
from auditor.report import claimed

GENDER = ("gender", "male", "female")
BACK = ("gender", "female", "male")
RACE = ("race_ethnicity", "white", "black")


def verdict(
    case: int, variant: str, outcome: str, *, hidden: bool | None = None, order: int = 1, **more: Any
) -> Verdict:
    attributes = ("gender",) if order == 1 else ("gender", "race_ethnicity")
    return Verdict(
        case_id=f"c{case}", variant_id=f"c{case}.{variant}", order=order, attributes=attributes, outcome=outcome,
        hidden=hidden, original_output="positive", variant_output="negative", model="m", format="bare", **more,
    )  # fmt: skip


def world() -> Observations:
    """Four seeds: gender in two directions and two kinds; and joint variants."""
    verdicts = [
        verdict(0, "a", "violation", distance=1.0), verdict(0, "b", "pass", distance=0.0), verdict(1, "a", "pass"),
        verdict(1, "b", "pass"), verdict(2, "a", "pass"), verdict(2, "b", "skipped"), verdict(3, "a", "skipped"),
        verdict(3, "b", "inconclusive"), verdict(0, "j", "violation", order=2, hidden=False),
        verdict(1, "j", "violation", order=2, hidden=True), verdict(2, "j", "violation", order=2, hidden=None),
        verdict(3, "j", "pass", order=2, hidden=False),
    ]  # fmt: skip
    edits: dict[str, Shape] = {}
    for case in range(4):
        edits[f"c{case}.a"] = shape(("gender",), GENDER)
        edits[f"c{case}.b"] = shape(("gender",), BACK, kind="marking")
        edits[f"c{case}.j"] = shape(("gender", "race_ethnicity"), GENDER, RACE, kind="mixed")
    return table_of(verdicts, edits)


def rows(**wanted: Any) -> list[dict[str, Any]]:
    found = estimates(world())
    return [row for row in found if all(row[key] == value for key, value in wanted.items())]


def test_rates_say_what_was_left_out_by_seed_direction_and_kind() -> None:
    (row,) = rows(name="violation_rate", attributes=["gender"], directions=None, kind=None)
    assert row["estimate"]["value"] == 1 / 5
    assert (row["estimate"]["n"], row["estimate"]["n_variants"], row["estimate"]["n_skipped"]) == (3, 5, 1)
    assert (row["model"], row["format"]) == ("m", "bare")
    (seeds,) = rows(name="seed_violation_rate", attributes=["gender"])
    assert (seeds["estimate"]["value"], seeds["estimate"]["n_skipped"]) == (1 / 3, 1)
    (there,) = rows(attributes=["gender"], directions=[list(GENDER)])
    (back,) = rows(attributes=["gender"], directions=[list(BACK)])
    assert (there["estimate"]["value"], back["estimate"]["value"]) == (1 / 3, 0.0)
    kinds = {row["kind"]: row["estimate"]["value"] for row in rows(name="violation_rate") if row["kind"]}
    assert kinds == {"swap": 1 / 3, "marking": 0.0, "mixed": 3 / 4}
    (hidden,) = rows(name="hidden_rate")
    assert hidden["estimate"]["value"] == 1 / 3
    assert "1 joint violations left out" in hidden["estimate"]["note"]


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
    assert {row["name"] for row in found} == {"valid_share"}
    told = [(row["attributes"], row["estimate"]["value"], row["estimate"]["n"]) for row in found]
    assert told == [(["gender"], 6 / 8, 2), (["gender", "race"], 0.0, 1)]


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


def test_rates_of_changes_without_a_claim_determine_nothing() -> None:
    found = findings([world()], Settings(deterministic={"m": True}))
    assert [(f.id, f.code, f.kind, f.verdict) for f in found] == [
        ("F001", "MUT101", "claim", "not_tested"),
        ("F002", "MUT102", "claim", "not_tested"),
        ("F003", "HID201", "hidden", "not_tested"),
    ]
    atomic, joint, hidden = found
    assert atomic.exemplars == ("c0.a",)
    assert (atomic.rate.value, atomic.rate.n_variants, atomic.rate.n) == (pytest.approx(0.2), 5, 3)
    assert atomic.text == joint.text == ""  # reports say it
    assert any("3 variants were not judged" in note for note in atomic.notes)
    assert any("1 of 3 changes are hidden" in note for note in joint.notes)
    assert hidden.exemplars == ("c1.j",)
    assert hidden.directions == (GENDER, RACE)
    assert "gender (male → female) and race ethnicity (white → black)" in hidden.text
    assert "it stayed positive when either was changed alone" in hidden.text
    unjudged = table_of([verdict(0, "a", "skipped")], {"c0.a": shape(("gender",), GENDER)})
    (found,) = findings([unjudged], Settings(deterministic={"m": True}))
    assert (found.verdict, found.rate) == ("not_tested", None)


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
def test_a_hidden_change_is_confirmed(
    told: Any, came_again: bool | None, p_value: float | None, kind: str, verdict: str
) -> None:
    key = ("m", "c1.j", "bare")
    settings = Settings(
        deterministic={"m": False}, noise={"m": mean_share([0.3] * 4, 12)}, replicates={"m": 3},
        confirmed={key: {"confirmed": came_again, "p_value": p_value}}, interactions={} if told is None else {key: told},
    )  # fmt: skip
    (hidden,) = [f for f in findings([world()], settings) if f.kind == "hidden"]
    assert (hidden.interaction, hidden.verdict) == (kind, verdict)
    assert any("would look hidden by chance" in note for note in hidden.notes)


TEXTS = 40


def difference(value: float, group: str) -> verdicts.Tested:
    """A difference of ``value`` with a standard error of 1, told by twenty words."""
    one = Estimated(value=value, ses=np.array([1.0]), likely=np.array([1.0]), df=1e6)
    main = Fit(these=one, group=one, texts=TEXTS, words=20.0, tau=0.0)
    claim = Claim(
        family="net", attribute="gender", label="yes", groups=(group, "male"), model="m", format="bare", scale="log_odds",
        unit="log odds",
    )  # fmt: skip
    words = csr_array((np.ones(TEXTS), (np.arange(TEXTS), np.arange(TEXTS) % 20)))
    design = Design(focal=np.ones(TEXTS), covariates=np.zeros((TEXTS, 0)), text=np.arange(TEXTS), words=words)
    rows = Rows(y=np.full(TEXTS, value), design=design)
    return verdicts.Tested(verdicts.filled(claim, main), weight=1.0, changed=rows.changed, share=main)


@pytest.mark.parametrize(
    ("value", "others", "why"),
    [
        (1.0, 9, "too little data for a difference this small: 40 texts"),
        (2.5, 9, "taken alone this looks real, but among 10 comparisons it may be chance: p = 0.12"),
        (2.5, 0, ""),
    ],
)
def test_an_interval_without_zero_is_told_apart_from_too_little_data(value: float, others: int, why: str) -> None:
    family = [difference(value, "female"), *(difference(0.1, f"group{n}") for n in range(others))]
    claim = verdicts.decide(family, Question())[0]
    assert claim.verdict == ("not_determined" if why else "shown")
    assert claim.why.startswith(why)
    assert bool(why) == bool(claim.why)


def test_a_rate_of_changes_has_the_verdict_of_changes_beyond_neutral_edits() -> None:
    def unsteady(text: str) -> str:  # any edit moves its answers, and "she" gets more of them
        favoured = {"she", "her", "woman"} & set(re.findall(r"\w+", text.lower()))
        return "invite" if crc32(text.encode()) % 100 < (95 if favoured else 35) else "reject"

    result = audit("hiring", model=unsteady, attributes="gender", cache=False)
    assert any(f.code == "DIR110" and f.verdict == "shown" for f in result.findings)
    (finding,) = [f for f in result.findings if f.code == ATOMIC]
    (claim,) = [c for c in result.run.claims if c.family == "instability"]
    assert (finding.verdict, finding.p_adjusted) == (claim.verdict, claim.p_adjusted)
    assert "neutral edits changed them in" in " ".join(claimed.notes(result.run, finding))
