"""A committed list of edits that break a sentence: how many of them does the dependency invariant reject?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from auditor.core.types import Variant
from auditor.perturb.dependency import DependencyInvariant
from auditor.text.parse import Parser

LISTS = yaml.safe_load(Path(__file__).with_name("known_bad_edits.yaml").read_text(encoding="utf-8"))
EDITS, UNSEEN = LISTS["edits"], LISTS["unseen"]


@pytest.fixture(scope="module")
def gate() -> DependencyInvariant:
    return DependencyInvariant(parser=Parser())


def rejected(gate: DependencyInvariant, before: str, after: str) -> bool:
    original = Variant(id="c.o", input=before)
    return gate.check(original, [Variant(id="c.v0", input=after)])[0].status == "invalid"


def test_the_list_is_long_and_varied() -> None:
    assert len(EDITS) >= 80
    everything = [*EDITS, *UNSEEN]
    assert len({tuple(edit) for edit in everything}) == len(everything)
    assert len({kind for kind, _, _ in EDITS}) >= 8
    assert all(before != after for _, before, after in everything)


def test_known_bad_edits_are_rejected(gate: DependencyInvariant) -> None:
    kept = [(kind, after) for kind, before, after in EDITS if not rejected(gate, before, after)]
    share = 1 - len(kept) / len(EDITS)
    assert share >= 0.85, (f"{share:.1%} rejected", Counter(kind for kind, _ in kept), kept)


def test_what_the_invariant_cannot_see_is_counted_apart(gate: DependencyInvariant) -> None:
    # Were most of these rejected, they would belong in the other list.
    assert sum(rejected(gate, before, after) for _, before, after in UNSEEN) <= len(UNSEEN) // 2


def test_good_edits_of_the_same_kind_are_kept(gate: DependencyInvariant) -> None:
    good = [
        ("She sold his car.", "She sold her car."),
        ("The man opens the door.", "The woman opens the door."),
        ("Many women know this.", "Many men know this."),
        ("The British director was praised.", "The French director was praised."),
        ("My father is a farmer.", "My mother is a farmer."),
        ("He went home.", "She went home."),
    ]
    assert [after for before, after in good if rejected(gate, before, after)] == []
