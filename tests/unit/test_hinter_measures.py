from __future__ import annotations

from auditor.contrib.hinter.statistics import NOTE, Mutant, measures, mutants_of, with_discarded
from auditor.core.types import Case, Check, Edit, Variant, Verdict


def atom(name: str, original: str, attribute: str, error: bool | None = False, valid: bool = True) -> Mutant:
    return Mutant(id=name, original=original, attributes=(attribute,), valid=valid, error=error)


def pair(
    name: str, original: str, parts: tuple[str, str], error: bool | None = False, valid: bool = True
) -> Mutant:
    return Mutant(
        id=name, original=original, attributes=("race", "gender"), valid=valid, error=error, parts=parts
    )


def world() -> list[Mutant]:
    """Five originals, one for each thing that can happen."""
    out = []
    for o, gender, race, joint in (
        ("hidden", False, False, True),
        ("both", True, False, True),
        ("atomic", False, True, False),
        ("none", False, False, False),
    ):
        out += [atom(f"{o}.g", o, "gender", gender), atom(f"{o}.r", o, "race", race)]
        out.append(pair(f"{o}.j", o, (f"{o}.g", f"{o}.r"), joint))
    # The joint change shows; an atomic mutant was discarded, so it is no hidden one and still joint only.
    out += [atom("cut.g", "cut", "gender", None, valid=False), atom("cut.r", "cut", "race")]
    out += [
        pair("cut.j", "cut", ("cut.g", "cut.r"), True),
        pair("cut.k", "cut", ("cut.g", "cut.r"), None, valid=False),
    ]
    return out


def test_counts_by_hand() -> None:
    (found,) = measures(world())
    assert found.attributes == ("gender", "race")
    joint = found.joint
    assert (joint.generated, joint.valid, joint.discarded, joint.tested, joint.errors) == (6, 5, 1, 5, 3)
    assert (joint.originals, joint.originals_with_error) == (5, 3)
    gender, race = found.atomic["gender"], found.atomic["race"]
    assert (gender.generated, gender.discarded, gender.tested, gender.errors) == (5, 1, 4, 1)
    assert (race.tested, race.errors) == (5, 1)
    assert found.hidden == 1
    assert (found.joint_errors_only, found.joint_errors_both) == (2, 1)
    assert (found.atomic_errors_only, found.atomic_errors_both) == (1, 1)
    assert found.originals == {"joint_only": 2, "atomic_only": 1, "both": 1, "neither": 1}


def test_shares_and_the_note_are_in_the_record() -> None:
    record = measures(world())[0].as_record()
    assert record["joint"]["error_rate"] == 3 / 5
    assert record["joint"]["valid_share"] == 5 / 6
    assert record["joint"]["originals_with_error_share"] == 3 / 5
    assert record["hidden_share"] == 1 / 3
    assert record["mutants"]["joint_only_share"] == 2 / 3
    assert record["note"] == NOTE


def test_nothing_counted_is_none_and_not_zero() -> None:
    record = measures([pair("j", "o", ("a", "b"), None, valid=False)])[0].as_record()
    assert record["joint"]["error_rate"] is None
    assert record["hidden_share"] is None
    assert record["atomic"]["gender"]["error_rate"] is None
    assert measures([atom("a", "o", "gender", True)]) == []


def test_an_error_of_a_discarded_mutant_does_not_count() -> None:
    found = measures([
        atom("g", "o", "gender", True, valid=False),
        atom("r", "o", "race"),
        pair("j", "o", ("g", "r"), True),
        pair("k", "o", ("g", "r"), True, valid=False),
    ])[0]  # fmt: skip
    assert (found.joint.errors, found.atomic["gender"].errors, found.joint_errors_only) == (1, 0, 1)
    assert found.hidden == 0


def edit(attribute: str, at: int) -> Edit:
    return Edit(
        attribute=attribute,
        kind="swap",
        source_group="a",
        target_group="b",
        source="x",
        target="y",
        where=(at, at + 1),
    )


def test_mutants_of_a_judged_case() -> None:
    g, r = edit("gender", 0), edit("race", 5)
    case = Case(
        id="c",
        suite="hinter.v1",
        original=Variant(id="c.o", input="x"),
        variants=(
            Variant(id="g", input="1", edits=(g,)),
            Variant(id="r", input="2", edits=(r,)),
            Variant(id="j", input="3", edits=(g, r)),
        ),
    )
    verdicts = [
        Verdict(case_id="c", variant_id=v, order=1, attributes=(), outcome=o)  # type: ignore[arg-type]
        for v, o in (("g", "pass"), ("j", "violation"))
    ]
    checks = {"r": Check(variant_id="r", check="k", status="invalid")}
    assert list(mutants_of(case, verdicts, checks)) == [
        Mutant(id="g", original="c", attributes=("gender",), valid=True, error=False),
        Mutant(id="r", original="c", attributes=("race",), valid=False, error=None),
        Mutant(id="j", original="c", attributes=("gender", "race"), valid=True, error=True, parts=("g", "r")),
    ]


def test_discarded_mutants_of_a_text_without_a_valid_one_are_judged() -> None:
    case = Case(
        id="c",
        suite="hinter.v1",
        original=Variant(id="c.o", input="x"),
        variants=(Variant(id="r", input="2", edits=(edit("race", 5),)),),
    )
    checks = {"r": Check(variant_id="r", check="k", status="invalid")}
    told = Verdict(
        case_id="c", variant_id="r", order=1, attributes=("race",), outcome="violation", format="chat"
    )
    (mutant,) = with_discarded(mutants_of(case, [], checks, "chat"), [told])
    assert (mutant.id, mutant.valid, mutant.error) == ("r@chat", False, True)
