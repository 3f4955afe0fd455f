from __future__ import annotations

from itertools import combinations

import pytest

from auditor.core.types import Case, Check, Edit, Variant, Verdict
from auditor.measure.interactions import mark_hidden

NAMES = ("body", "gender", "race")


def edits(attribute: str, target: str = "t") -> tuple[Edit, ...]:
    """One swap, and the repair that it forces: the repair must not count as a choice."""
    at = NAMES.index(attribute) * 10
    base = {"attribute": attribute, "source_group": "a", "target_group": "b"}
    return (
        Edit(**base, kind="agreement", source="a", target="an" if target == "t" else "a", where=(at, at + 1)),
        Edit(**base, kind="swap", source="s", target=target, where=(at + 2, at + 3)),
    )


def full_case(order: int, targets: tuple[str, ...] = ("t",)) -> Case:
    """Every non-empty set of the first ``order`` attributes, for each target word."""
    variants = []
    for size in range(1, order + 1):
        for names in combinations(NAMES[:order], size):
            for target in targets:
                name = "+".join(names) + ("" if target == "t" else f":{target}")
                variants.append(Variant(id=name, input=name, edits=sum((edits(n, target) for n in names), ())))
    return Case(id="c", suite="s", original=Variant(id="o", input="o"), variants=tuple(variants))


def verdicts(case: Case, outcomes: dict[str, str], model: str = "m") -> list[Verdict]:
    return [
        Verdict(
            case_id=case.id, variant_id=v.id, order=v.order, attributes=v.attributes, model=model,
            outcome=outcomes.get(v.id, "pass"),
        )
        for v in case.variants
        if outcomes.get(v.id) != "absent"
    ]  # fmt: skip


def valid(case: Case, **status: str) -> dict[str, Check]:
    return {v.id: Check(variant_id=v.id, check="k", status=status.get(v.id, "valid")) for v in case.variants}


def hidden(case: Case, outcomes: dict[str, str], checks: dict[str, Check] | None = None) -> dict[str, bool | None]:
    found = mark_hidden(case, verdicts(case, outcomes), valid(case) if checks is None else checks)
    return {v.variant_id: v.hidden for v in found}


@pytest.mark.parametrize(
    ("gender", "body", "joint", "expected"),
    [
        ("pass", "pass", "violation", True), ("violation", "pass", "violation", False),
        ("pass", "violation", "violation", False), ("violation", "violation", "violation", False),
        ("pass", "pass", "pass", False), ("violation", "pass", "pass", False), ("skipped", "pass", "violation", None),
        ("inconclusive", "pass", "violation", None), ("absent", "pass", "violation", None),
        ("absent", "violation", "violation", False), ("pass", "pass", "skipped", None),
        ("pass", "pass", "inconclusive", None),
    ],
)  # fmt: skip
def test_two_attributes(gender: str, body: str, joint: str, expected: bool | None) -> None:
    found = hidden(full_case(2), {"gender": gender, "body": body, "body+gender": joint})
    assert found["body+gender"] is expected
    assert found.get("gender") is None
    assert found.get("body") is None


def test_an_invalid_part_leaves_it_open_and_its_verdict_does_not_count() -> None:
    case = full_case(2)
    for outcome in ("pass", "violation", "absent"):
        found = hidden(case, {"gender": outcome, "body+gender": "violation"}, valid(case, gender="invalid"))
        assert found["body+gender"] is None
    assert hidden(case, {"body+gender": "violation"}, valid(case, gender="unknown"))["body+gender"] is True
    some = {k: c for k, c in valid(case).items() if k != "gender"}
    assert hidden(case, {"body+gender": "violation"}, some)["body+gender"] is None


def test_parts_are_those_with_the_same_choices() -> None:
    case = full_case(2, targets=("t", "u"))
    found = hidden(case, {"gender:u": "violation", "body+gender": "violation", "body+gender:u": "violation"})
    assert found["body+gender"] is True
    assert found["body+gender:u"] is False


def test_three_attributes_need_all_six_parts() -> None:
    case = full_case(3)
    top = "body+gender+race"
    assert hidden(case, {top: "violation"})[top] is True
    for part in (v.id for v in case.variants if v.id != top):
        assert hidden(case, {top: "violation", part: "violation"})[top] is False
        assert hidden(case, {top: "violation", part: "skipped"})[top] is None
    both = hidden(case, {top: "violation", "body+gender": "violation"})
    assert (both["body+gender"], both[top]) == (True, False)


def test_models_are_kept_apart() -> None:
    case = full_case(2)
    mixed = verdicts(case, {"body+gender": "violation"}, "a") + verdicts(
        case, {"body+gender": "violation", "gender": "violation"}, "b"
    )
    found = mark_hidden(case, mixed, valid(case))
    assert [v.hidden for v in found if v.order == 2] == [True, False]
