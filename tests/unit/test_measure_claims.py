"""Claims from observations: orientation, what an edit does by itself, words as a sample, verdicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from auditor.core.record.measured import Claim
from auditor.core.types import Answer, Edit
from auditor.measure.claims import Question, pairs
from auditor.measure.families import claims
from auditor.measure.observations import Observations

WOMEN = [f"w{n:02d}" for n in range(12)]  # as long as the others: length is a covariate
MEN = [f"m{n:02d}" for n in range(12)]
Margin = Callable[[int, str, str, bool], float]  # text, group, word, edited
ASKED = Question(outcomes=("yes",), primary={"gender": ("female", "male")}, positive_control={"m": True})


def edit(source: str, target: str, *, kind: str = "swap", attribute: str = "gender") -> Edit:
    group = {"w": "female", "m": "male"}
    return Edit(
        attribute=attribute, kind=kind, source_group=group.get(source[0], "neutral"),
        target_group=group.get(target[0], "neutral"), source=source, target=target, where=(0, len(source)),
    )  # fmt: skip


def observe(margin: Margin, *, texts: int = 120, scores: bool = False, flip: bool = True) -> Observations:
    """Texts about a woman or a man in turn, each with the other version and a placebo of the same group."""
    table = Observations()
    rng = np.random.default_rng(5)
    for n in range(texts):
        woman, man = WOMEN[rng.integers(12)], MEN[rng.integers(12)]
        words = [woman, man] if n % 2 or not flip else [man, woman]
        other = (WOMEN if words[0] in WOMEN else MEN)[rng.integers(12)]
        versions = [
            ((), words[0], False),
            ((edit(words[0], words[1]),), words[1], True),
            ((edit(words[0], other, kind="placebo"),), other, True),
        ]
        for edits, word, edited in versions:
            value = margin(n, "female" if word in WOMEN else "male", word, edited)
            p = 1 / (1 + np.exp(-value))
            answer = Answer(status="ok", value="yes" if value > 0 else "no", scores={"yes": p} if scores else None)
            table.answers(table.version(f"t{n}", edits), model="m", format="plain", answers=[answer], score_of="yes")
    return table


def noise(seed: int, size: float = 1.0) -> Callable[[int], float]:
    draws = np.random.default_rng(seed).normal(0, size, 10_000)
    return lambda n: float(draws[n])


def net(table: Observations, question: Question = ASKED) -> Claim:
    (found,) = (c for c in claims(table, question) if c.family == "net")
    return found


def test_a_shift_against_one_group_is_shown_with_its_sign_whichever_was_the_original() -> None:
    base = noise(1)
    found = net(observe(lambda n, g, w, e: base(n) - 0.6 * (g == "female")))
    assert (found.verdict, found.scale, found.groups) == ("shown", "share", ("female", "male"))
    assert -0.5 < found.low < found.estimate < found.high < 0
    assert found.texts == 120
    assert found.shares[0] < found.shares[1]


def test_what_an_edit_does_by_itself_is_no_difference_between_groups() -> None:
    base = noise(2)
    found = net(observe(lambda n, g, w, e: base(n) - 0.8 * e))
    assert found.verdict == "not_determined"
    assert abs(found.estimate or 0) < 0.06


def test_without_both_orientations_and_placebos_an_edit_cannot_be_told_from_a_group() -> None:
    table = Observations()
    for n in range(40):
        for edits in ((), (edit("man", "woman"),)):
            answer = Answer(status="ok", value="no" if edits else "yes")
            table.answers(table.version(f"t{n}", edits), model="m", format="plain", answers=[answer])
    found = net(table)
    assert (found.verdict, found.estimate) == ("not_tested", None)
    assert "the same other change" in found.why


def test_scores_decide_and_the_share_is_printed_beside_them() -> None:
    base = noise(3)
    found = net(observe(lambda n, g, w, e: base(n) - 0.05 * (g == "female"), scores=True))
    assert (found.scale, found.unit, found.verdict) == ("log_odds", "log odds", "shown")
    assert found.estimate == pytest.approx(-0.05, abs=0.01)
    assert found.share_difference is not None


@pytest.mark.parametrize(("control", "verdict"), [(True, "bounded"), (False, "not_determined")])
def test_a_bound_needs_the_positive_control(control: bool, verdict: str) -> None:
    base = noise(4)
    table = observe(lambda n, g, w, e: base(n), texts=200)
    question = dataclasses.replace(ASKED, delta=0.05, positive_control={"m": control})
    assert net(table, question).verdict == verdict
    assert net(table, dataclasses.replace(question, delta=0.005)).verdict == "not_determined"


def test_few_texts_with_different_answers_show_nothing() -> None:
    found = net(observe(lambda n, g, w, e: -1.0 if n < 5 and g == "female" else 1.0))
    assert found.verdict == "not_determined"
    assert "5 of 120 texts" in found.why


def test_without_other_words_a_claim_is_about_the_wording() -> None:
    table = Observations()
    base = noise(6)
    for n in range(80):
        words = ["m00", "w00"] if n % 2 else ["w00", "m00"]
        for edits, word in (((), words[0]), ((edit(*words),), words[1])):
            value = base(n) - 1.0 * (word == "w00")
            answer = Answer(status="ok", value="yes" if value > 0 else "no")
            table.answers(table.version(f"t{n}", edits), model="m", format="plain", answers=[answer])
    found = net(table)
    assert (found.verdict, found.scope) == ("shown", "wording")
    assert found.words <= 2.01


def test_an_edit_that_moves_people_to_different_groups_has_no_orientation() -> None:
    table = observe(lambda n, g, w, e: 1.0, texts=10)
    both = (edit("m00", "w00"), dataclasses.replace(edit("w01", "m01"), where=(9, 15)))
    for n in range(10):
        row = table.version(f"t{n}", both)
        table.answers(row, model="m", format="plain", answers=[Answer(status="ok", value="no")])
    assert net(table).estimate == pytest.approx(0.0)


def test_refusals_are_a_family_of_their_own_and_enter_no_share() -> None:
    base = noise(7)

    def margin(n: int, g: str, w: str, e: bool) -> float:
        return base(n)

    table = Observations()
    plain = observe(margin).columns()
    for n in range(120):
        words = [MEN[n % 12], WOMEN[n % 11]] if n % 2 else [WOMEN[n % 11], MEN[n % 12]]
        for edits, word in (((), words[0]), ((edit(*words),), words[1])):
            refused = word in WOMEN and n % 3 > 0
            answer = Answer(status="refused", reason="no") if refused else Answer(status="ok", value="yes")
            table.answers(table.version(f"t{n}", edits), model="m", format="plain", answers=[answer])
    found = {c.family: c for c in claims(table, ASKED) if c.groups}
    assert found["refusal"].verdict == "shown"
    assert (found["refusal"].estimate or 0) > 0.2
    assert found["net"].verdict == "not_determined"
    assert len(plain.version) == 360


def test_changes_are_unstable_only_beyond_placebo_edits_of_the_same_shape() -> None:
    rng = np.random.default_rng(1)
    anything = observe(lambda n, g, w, e: float(rng.normal()))
    by_family = {c.family: c for c in claims(anything, ASKED)}
    assert by_family["instability"].verdict == "not_determined"
    base = noise(8, 0.3)
    swapped = observe(lambda n, g, w, e: base(n) * (1 if g == "female" else -1))
    assert {c.family: c for c in claims(swapped, ASKED)}["instability"].verdict == "shown"


def test_instability_weighs_variants_as_rates_do() -> None:
    """Texts with many variants change, those with one do not: the figure is the share of variants."""
    table = Observations()
    for n in range(40):
        many = 5 if n < 20 else 1
        swaps = [[edit(f"w{k:02d}", f"m{k:02d}")] for k in range(many)]
        neutral = [[edit("w00", "w99", kind="placebo")]]
        for edits in ([], *swaps, *neutral):
            changed = many > 1 and edits in swaps and (n % 4 == 0 or edits is swaps[0])
            answer = Answer(status="ok", value="no" if changed else "yes")
            table.answers(table.version(f"t{n}", edits), model="m", format="plain", answers=[answer])
    (claim,) = (c for c in claims(table, ASKED) if c.family == "instability")
    # 5 of 20 texts change in all of their 5 variants, 15 in the first: 40 of 120 variants, 40 texts.
    assert claim.shares == (pytest.approx(40 / 120), 0.0)
    assert claim.words_estimate == pytest.approx(40 / 120)


def test_which_groups_are_compared() -> None:
    names = ["black", "other", "white"]
    every = pairs(names, "race", Question())
    assert [(p.group, p.reference, round(p.weight, 3)) for p in every] == [(n, "others", 0.333) for n in names]
    against = pairs(names, "race", Question(references={"race": "white"}))
    assert [(g, r) for g, r, *_ in against] == [("black", "white"), ("other", "white")]
    first = pairs(names, "race", Question(primary={"race": ("black", "white")}))
    assert [(p.group, p.reference, p.weight) for p in first] == [
        ("black", "white", 0.9),
        ("other", "others", pytest.approx(0.1)),
    ]
    two = pairs(["female", "male", "unmarked"], "gender", Question(unmarked={"gender": ["unmarked"]}))
    assert [(p.group, p.reference, p.weight) for p in two] == [("female", "male", 1.0)]


@pytest.mark.parametrize("value", [85.0, 1 / 3, 123_456.7])
def test_numbers_that_never_change_show_nothing(value: float) -> None:
    """The error of adding them up is no difference, however small its spread."""
    table = Observations()
    rng = np.random.default_rng(3)
    for n in range(80):
        here, there = (WOMEN, MEN) if n % 2 else (MEN, WOMEN)
        source, others = str(rng.choice(here)), rng.choice(there, 3, replace=False).tolist()
        more = [(edit(source, other + " x" * int(rng.integers(3))),) for other in others]
        more += [(dataclasses.replace(one, target_group=g),) for (one,), g in zip(more, "abc", strict=True)]
        for edits in ((), *more, (edit(source, source + " y", kind="placebo"),)):
            told = Answer(status="ok", value="yes", number=value)
            table.answers(table.version(f"t{n}", edits), model="m", format="graded", answers=[told])
    asked = dataclasses.replace(ASKED, graded=frozenset({"graded"}), delta=0.02)
    found = [c for c in claims(table, asked) if c.family == "net"]
    assert len(found) > 3
    assert {(c.scale, c.unit, c.delta) for c in found} == {("number", "points of 100", 2.0)}
    assert [c.p_value for c in found] == pytest.approx([1.0] * len(found), abs=0.02)
    assert {c.verdict for c in found} <= {"bounded", "not_determined"}


def test_what_placebo_edits_may_do_is_bounded_by_what_they_did_and_not_by_the_group() -> None:
    """Placebo edits late in the text move answers by 1 point: a large effect of the group is no less certain."""
    width = []
    for effect in (2.0, 30.0):
        rng = np.random.default_rng(6)
        table = Observations()
        for n in range(30):
            late = dataclasses.replace(edit("a00", "b00", kind="placebo"), where=(50 + n, 53 + n))
            for edits, more in (((), 0.0), ((edit("m00", "w00"),), effect), ((late,), 0.0)):
                told = Answer(status="ok", value="yes", number=50 + float(rng.normal()) + more)
                version = table.version(f"t{n}", edits, original="m00" + " a" * 50)
                table.answers(version, model="m", format="graded", answers=[told])
        found = net(table, dataclasses.replace(ASKED, graded=frozenset({"graded"})))
        assert found.low < effect < found.high
        width.append(found.high - found.low)
    assert width[1] == pytest.approx(width[0], rel=0.05)


def test_the_place_of_an_edit_is_taken_out() -> None:
    """Women are named at the end of each text, neutral edits lie anywhere, and only the place moves the score."""
    table = Observations()
    rng = np.random.default_rng(3)
    for n in range(60):
        base = rng.normal()
        where = 90 if n % 4 else 80
        versions = [((), 0), ((at(f"he{n % 9}", f"she{n % 9}", where),), where)]
        versions += [((at(f"old{k}", f"new{k}", 10 * k, kind="placebo"),), 10 * k) for k in range(n % 3, 10, 3)]
        for edits, place in versions:
            row = table.version(f"t{n}", edits, original="x" * 100)
            score = base + 0.006 * place * bool(edits) + rng.normal(0, 0.01)
            table.answers(row, model="m", format="plain", answers=[Answer(status="ok", value=score)])
    (claim,) = (c for c in claims(table, Question(number=True)) if c.family == "net")
    assert claim.estimate is not None
    assert abs(claim.estimate) < 0.08  # 0.25 where the place stays in


def at(out: str, put: str, where: int, kind: str = "swap") -> Edit:
    groups = ("", "") if kind == "placebo" else ("male", "female")
    return Edit(
        attribute="gender", kind=kind, source_group=groups[0], target_group=groups[1], source=out, target=put,
        where=(where, where + len(out)),
    )  # fmt: skip
