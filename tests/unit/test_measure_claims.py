"""Claims from observations: orientation, edits, words as a sample, verdicts; and how changed prompts are compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import judged
import numpy as np
import pytest

from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.core.record.measured import Claim
from auditor.core.types import Answer, Case, Edit, SourceText, Variant
from auditor.measure import mitigation
from auditor.measure.claims import Question, pairs
from auditor.measure.findings import claims
from auditor.measure.observations import Observations
from auditor.perturb.dictionaries import load as dictionary
from auditor.perturb.mutation import MutationSuite
from auditor.run.mitigate import BLANK, IGNORE, from_file, make, redactor
from auditor.tasks import load

WOMEN = [f"w{n:02d}" for n in range(12)]  # as long as the others: length is a covariate
MEN = [f"m{n:02d}" for n in range(12)]
ASKED = Question(outcomes=("yes",), primary={"gender": ("female", "male")}, positive_control={"m": True})


def edit(source: str, target: str, **more: Any) -> Edit:
    group = {"w": "female", "m": "male"}
    return judged.edit(source, target, (group.get(source[0], "neutral"), group.get(target[0], "neutral")), **more)


def say(
    table: Observations, text: int, edits: Sequence[Edit], value: object, form: str = "plain", original: str = "",
    **more: Any,
) -> None:  # fmt: skip
    """Add the answer to one version of a text."""
    answer = Answer(**{"status": "ok", "value": value} | more)
    version = table.version(f"t{text}", edits, original=original)
    table.answers(version, model="m", format=form, answers=[answer], score_of="yes")


def observe(margin: Callable[[int, str, str, bool], float], *, texts: int = 120, scores: bool = False) -> Observations:
    """Texts about a woman or a man in turn, the other version, a placebo; ``margin`` of text, group, word, edited."""
    table = Observations()
    rng = np.random.default_rng(5)
    for n in range(texts):
        woman, man = WOMEN[rng.integers(12)], MEN[rng.integers(12)]
        words = [woman, man] if n % 2 else [man, woman]
        other = (WOMEN if words[0] in WOMEN else MEN)[rng.integers(12)]
        swap, placebo = edit(*words), edit(words[0], other, kind="placebo")
        for edits, word in (((), words[0]), ((swap,), words[1]), ((placebo,), other)):
            value = margin(n, "female" if word in WOMEN else "male", word, bool(edits))
            p = 1 / (1 + np.exp(-value))
            say(table, n, edits, "yes" if value > 0 else "no", scores={"yes": p} if scores else None)
    return table


def noise(seed: int, size: float = 1.0) -> Callable[[int], float]:
    return np.random.default_rng(seed).normal(0, size, 10_000).item


def net(table: Observations, question: Question = ASKED) -> Claim:
    (found,) = (c for c in claims(table, question) if c.family == "net")
    return found


def test_without_both_orientations_and_placebos_an_edit_cannot_be_told_from_a_group() -> None:
    table = Observations()
    for n in range(40):
        say(table, n, (), "yes")
        say(table, n, (edit("man", "woman"),), "no")
    found = net(table)
    assert (found.verdict, found.estimate) == ("not_tested", None)
    assert "the same other change" in found.why


def test_scores_decide_and_the_share_is_printed_beside_them() -> None:
    base = noise(3)
    found = net(observe(lambda n, g, w, e: base(n) - 0.05 * (g == "female"), scores=True))
    assert (found.scale, found.unit, found.verdict) == ("log_odds", "log odds", "shown")
    assert found.estimate == pytest.approx(-0.05, abs=0.01)
    assert found.share_difference is not None


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
            say(table, n, edits, "yes" if base(n) - 1.0 * (word == "w00") > 0 else "no")
    found = net(table)
    assert (found.verdict, found.scope) == ("shown", "wording")
    assert found.words <= 2.01


def test_an_edit_that_moves_people_to_different_groups_has_no_orientation() -> None:
    table = observe(lambda n, g, w, e: 1.0, texts=10)
    both = (edit("m00", "w00"), edit("w01", "m01", at=9))
    for n in range(10):
        say(table, n, both, "no")
    assert net(table).estimate == pytest.approx(0.0)


def test_refusals_are_a_family_of_their_own_and_enter_no_share() -> None:
    table = Observations()
    for n in range(120):
        words = [MEN[n % 12], WOMEN[n % 11]] if n % 2 else [WOMEN[n % 11], MEN[n % 12]]
        for edits, word in (((), words[0]), ((edit(*words),), words[1])):
            if word in WOMEN and n % 3 > 0:
                say(table, n, edits, None, status="refused", reason="no")
            else:
                say(table, n, edits, "yes")
    found = {c.family: c for c in claims(table, ASKED) if c.groups}
    assert found["refusal"].verdict == "shown"
    assert (found["refusal"].estimate or 0) > 0.2
    assert found["net"].verdict == "not_determined"


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
            say(table, n, edits, "no" if changed else "yes")
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
    decided, other = ((pair.group, pair.reference, pair.weight) for pair in first)
    assert decided == ("black", "white", 0.9)
    assert other == ("other", "others", pytest.approx(0.1))
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
            say(table, n, edits, "yes", "graded", number=value)
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
            late = edit("a00", "b00", kind="placebo", at=50 + n)
            for edits, more in (((), 0.0), ((edit("m00", "w00"),), effect), ((late,), 0.0)):
                number = 50 + float(rng.normal()) + more
                say(table, n, edits, "yes", "graded", original="m00" + " a" * 50, number=number)
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
        versions = [((), 0), ((judged.edit(f"he{n % 9}", f"she{n % 9}", at=where),), where)]
        for place in range(10 * (n % 3), 100, 30):
            other = judged.edit(f"old{place}", f"new{place}", ("", ""), kind="placebo", at=place)
            versions.append(((other,), place))
        for edits, place in versions:
            score = base + 0.006 * place * bool(edits) + rng.normal(0, 0.01)
            say(table, n, edits, score, original="x" * 100)
    assert abs(net(table, Question(number=True)).estimate) < 0.08  # 0.25 where the place stays in


WORDS = ("woman", "lady", "mother", "wife", "aunt", "widow")


def scored(prompts: dict[str, tuple[float, float]]) -> Observations:
    """Answers of one model: a number for each text about a man, one about a woman, and one placebo."""
    made = Observations()
    placebo = judged.edit("man", "fellow", ("male", "male"), kind="placebo")
    versions = {}
    for n in range(60):
        for kind, edits in (("o", ()), ("v0", (judged.edit("man", WORDS[n % 6]),)), ("p0", (placebo,))):
            versions[n, kind] = made.version(f"t{n}", edits, f"t{n}.{kind}")
    for prompt, (points, more) in prompts.items():
        rng = Random(prompt)
        for (n, kind), row in versions.items():
            value = Random(n).gauss(50, 10) + points * (kind == "v0") + more + rng.gauss(0, 1)
            made.answers(row, model="m", format=prompt, answers=[Answer(status="ok", value=value)])
    return made


def test_each_verdict_is_that_of_what_was_planted() -> None:
    planted = {  # points for a woman, and for everybody
        "base": (-5.0, 0), "halved": (-2.5, 0), "turned": (4.0, 0), "doubled": (-10.0, 0), "lower": (-5.0, -20),
    }  # fmt: skip
    found = mitigation.compare(scored(planted), Question(number=True, unit="points"), "base")
    changes = {c.mitigation: c for c in found.changes}
    assert {name: c.effect for name, c in changes.items()} == {
        "halved": "reduced", "turned": "reversed", "doubled": "larger", "lower": "not_shown",
    }  # fmt: skip
    for name, change in {"halved": 2.5, "turned": 9.0, "doubled": -5.0, "lower": 0.0}.items():
        claim = changes[name].change
        assert claim.low - 0.3 <= change <= claim.high + 0.3
    assert found.helps() == ["halved"]


def test_accuracy_is_compared_on_texts_with_a_label() -> None:
    made, golds = Observations(), {}
    for n in range(40):
        row = made.version(f"t{n}", (), f"t{n}.o")
        golds[f"t{n}"] = "yes"
        for prompt, right in (("base", True), ("worse", n % 2 == 0)):
            answer = Answer(status="ok", value="yes" if right else "no")
            made.answers(row, model="m", format=prompt, answers=[answer])
    (side,) = mitigation.compare(made, Question(outcomes=("yes",)), "base", golds).sides
    assert (side.what, side.before, side.after, side.texts, side.shown) == ("accuracy", 1.0, 0.5, 40, True)


def cases() -> list[Case]:
    texts = ["She is a nurse and her husband is Italian.", "An old Black woman asked the man for help."]
    seeds = [SourceText(id=str(n), text=t, label=("invite", "reject")[n]) for n, t in enumerate(texts)]
    return list(MutationSuite(seeds=seeds, dictionaries=[dictionary("gender")]).ask(5, Random(0)))


def test_blinding_leaves_no_word_that_tells_versions_apart() -> None:
    redact = redactor([dictionary(name) for name in ("gender", "nationality", "race", "age")])
    for case in cases():
        blind = redact(case)
        assert {str(v.input) for v in blind.variants} == {str(blind.original.input)}
        assert BLANK in str(blind.original.input)
    line = Case(
        id="n1", suite="name_line.v1", original=Variant(id="n1.o", input="Applicant: Emily Larson\n\nRan the shift."),
        variants=(Variant(id="n1.v0", input="Applicant: Lakisha Jones\n\nRan the shift."),),
    )  # fmt: skip
    assert redact(line).original.input == redact(line).variants[0].input == "Ran the shift."


def test_instructions_and_files(tmp_path: Path) -> None:
    task = load("hiring")
    own, empty = tmp_path / "ours.txt", tmp_path / "empty.txt"
    own.write_text("Judge the work alone.\n")
    empty.write_text(" ")
    assert make("ignore", task, "chat").task.system.endswith(IGNORE)
    assert from_file(own, task).task.system.endswith("Judge the work alone.")
    with pytest.raises(UnknownPlugin):
        make("pray", task, "chat")
    with pytest.raises(ConfigError, match="no prompt"):
        make("ignore", task, "text")
    for path, told in ((empty, "empty"), (Path("prompts/salary.yaml"), "are not those")):
        with pytest.raises(ConfigError, match=told):
            from_file(path, task)
