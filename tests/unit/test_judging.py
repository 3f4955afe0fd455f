"""What the judge of a run remembers is what its oracle says each time."""

from __future__ import annotations

from random import Random

import pytest

from auditor.core.types import Answer, Case, Edit, Variant
from auditor.measure.observations import shape_of
from auditor.run import loop
from auditor.tasks.oracles import LabelOracle, LabelSetOracle

LABELS = ("yes", "no", "maybe")
SETS = ((), ("a",), ("b",), ("a", "b"))


def answers(rng: Random, values: tuple[object, ...]) -> list[Answer]:
    """Up to three replicates, some of them without a label."""
    return [
        Answer(status="ok", value=rng.choice(values))  # type: ignore[arg-type]
        if rng.random() < 0.6
        else Answer(status=rng.choice(("refused", "unparsed", "failed")), reason=str(rng.random()))
        for _ in range(rng.randrange(4))
    ]


def cased(number: int) -> Case:
    variants = [
        Variant(
            id=f"c{number}.v{n}",
            input=f"text {n}",
            edits=tuple(
                Edit(
                    attribute=name,
                    kind="swap",
                    source_group="a",
                    target_group="b",
                    source="x",
                    target="y",
                    where=(0, 1),
                )
                for name in names
            ),
        )
        for n, names in enumerate((("gender",), ("race",), ("gender", "race")))
    ]
    original = Variant(id=f"c{number}.o", input="text")
    return Case(id=f"c{number}", suite="s", original=original, variants=tuple(variants))


@pytest.mark.parametrize(("oracle", "values"), [(LabelOracle(), LABELS), (LabelSetOracle(), SETS)])
@pytest.mark.parametrize("kept", [0, 40, loop.KEPT_PAIRS])
def test_what_is_remembered_is_what_the_oracle_says(
    monkeypatch: pytest.MonkeyPatch, oracle: object, values: tuple[object, ...], kept: int
) -> None:
    monkeypatch.setattr(loop, "KEPT_PAIRS", kept)
    rng, judge = Random(5), loop.Judge(oracle)  # type: ignore[arg-type]
    for number in range(600):
        case = cased(number)
        asked = [v for v in (case.original, *case.variants) if rng.random() < 0.9]
        given = {v.id: answers(rng, values) for v in asked}
        told = judge.judge(case, given, {v.id: shape_of(v.edits) for v in case.variants})
        assert told == oracle.judge(case, given)  # type: ignore[attr-defined]
