from __future__ import annotations

from collections.abc import Iterable

from auditor.contrib.hinter.measures import Mutant, measures, mutants, totals
from auditor.core.types import Case, Edit, Variant, Verdict
from auditor.run.observed import Observed


def atom(name: str, original: str, attribute: str, error: bool | None = False, valid: bool = True) -> Mutant:
    return Mutant(id=name, original=original, attributes=(attribute,), valid=valid, error=error)


def pair(name: str, original: str, parts: tuple[str, str], error: bool | None = False, valid: bool = True) -> Mutant:
    return Mutant(id=name, original=original, attributes=("race", "gender"), valid=valid, error=error, parts=parts)


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
    out += [pair("cut.j", "cut", ("cut.g", "cut.r"), True), pair("cut.k", "cut", ("cut.g", "cut.r"), None, valid=False)]
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
    assert (found.joint_only, found.joint_with_atomic) == (2, 1)
    assert (found.atomic_only, found.atomic_with_joint) == (1, 1)


def edit(attribute: str, at: int) -> Edit:
    return Edit(
        attribute=attribute, kind="swap", source_group="a", target_group="b", source="x", target="y", where=(at, at + 1)
    )


def observed(*variants: Variant, valid: Iterable[str], told: dict[str, str]) -> Observed:
    case = Case(id="c", suite="hinter.v1", original=Variant(id="c.o", input="x"), variants=variants)
    made = Observed(["m"], parts=True)
    made.add(case, set(valid))
    for name, outcome in told.items():
        made.judge(
            Verdict(case_id="c", variant_id=name, order=1, attributes=(), outcome=outcome, model="m", format="f")  # type: ignore[arg-type]
        )
    return made


def test_mutants_of_a_judged_case() -> None:
    g, r = edit("gender", 0), edit("race", 5)
    made = observed(
        Variant(id="g", input="1", edits=(g,)),
        Variant(id="r", input="2", edits=(r,)),
        Variant(id="c.j", input="3", edits=(g, r)),
        valid=["g", "c.j"],
        told={"g": "pass", "c.j": "violation", "r": "skipped"},
    )
    assert list(mutants(made.table, made.discarded, "m", ["f"])) == [
        Mutant(id="g@f", original="c", attributes=("gender",), valid=True, error=False),
        Mutant(id="c.j@f", original="c", attributes=("gender", "race"), valid=True, error=True, parts=("g@f", "r@f")),
        Mutant(id="r@f", original="c", attributes=("race",), valid=False, error=None),
    ]


def test_discarded_mutants_are_judged_where_they_were_asked_about() -> None:
    """Each format makes mutants of its own, and what was skipped is no error."""
    made = observed(
        *(Variant(id=name, input=name, edits=(edit("race", 5 + n),)) for n, name in enumerate("abc")),
        valid="a",
        told={"a": "pass", "b": "violation", "c": "skipped"},
    )
    both = list(mutants(made.table, made.discarded, "m", ["f", "g"]))
    assert {m.id: m.error for m in both} == {
        "a@f": False, "b@f": True, "c@f": None, "a@g": None, "b@g": None, "c@g": None,
    }  # fmt: skip
    assert totals(m for m in both if m.id.endswith("@f")).atomic.discarded_errors == 1
