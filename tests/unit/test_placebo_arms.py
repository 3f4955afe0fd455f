"""Placebo arms of the same form as what they stand against, for every suite; and who may read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from auditor.core.types import Case, Check, SourceText, Variant
from auditor.perturb import dictionaries, grammar
from auditor.perturb.grammar.cases import GrammarSuite
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.placebo import Placebos
from auditor.run.rounds import is_placebo, placebos_again, with_placebos

TWO = """\
format: 1
rules:
  s: ["{who} met {whom} at the {place}, a {faith} school."]
  who: {attribute: gender, groups: {f: [Ann, Eve, Zoe], m: [Bob, Tim, Max]}}
  whom: {attribute: gender, groups: {f: [aunt May, aunt Kim, aunt Liz], m: [uncle Ned, uncle Jo]}}
  place: [gate]
  faith: {attribute: religion, groups: {a: [Muslim, Sunni, Shia], b: [Hindu, Shaiva]}}
"""


@pytest.fixture
def suite(tmp_path: Path) -> GrammarSuite:
    path = tmp_path / "two.yaml"
    path.write_text(TWO, encoding="utf-8")
    return GrammarSuite(grammar=grammar.load(str(path)), generation="rand", cases=20, order=2)


def spans(variant: Variant) -> int:
    return sum(e.kind != "agreement" for e in variant.edits)


def test_grammar_placebos_change_as_many_places_as_the_variants(suite: GrammarSuite) -> None:
    for case in suite.ask(20, Random(0)):
        for variant in suite.placebos(case, None, Random(1)):
            beside = [v for v in case.variants if v.attributes == variant.attributes]
            assert spans(variant) <= max(map(spans, beside))
            if variant.attributes == ("gender",) and case.original.groups["gender"] in "fm":
                assert spans(variant) == 2  # both people, as in the variants


def test_grammar_cases_get_joint_placebos(suite: GrammarSuite) -> None:
    case = suite.ask(1, Random(0))[0]
    whole = with_placebos(case, suite, per_seed=8, seed=1)
    joint = [v for v in whole.variants if is_placebo(v) and v.order == 2]
    assert joint
    for variant in joint:
        assert {e.attribute for e in variant.edits} == {"gender", "religion"}
    assert len({v.id for v in whole.variants}) == len(whole.variants)


def test_placebos_that_the_gate_refused_are_drawn_again() -> None:
    """One text, one edit, and a gate that refuses one of its neutral words."""
    dictionary = [dictionaries.load("gender")]
    text = SourceText(id="1", text="She sold the movie and the car in the summer.")
    placebos = Placebos(dictionaries=dictionary)

    class Gate:
        """Against every placebo that writes another word for the movie."""

        def check_many(self, cases: Sequence[Case]) -> list[list[Check]]:
            return [
                [
                    Check(
                        variant_id=v.id,
                        check="test",
                        status="invalid" if is_placebo(v) and "movie" not in str(v.input) else "valid",
                    )
                    for v in case.variants
                ]
                for case in cases
            ]

    again = 0
    for seed in range(30):
        suite = MutationSuite(seeds=[text], dictionaries=dictionary, order=1, per_seed=1)
        case = with_placebos(suite.ask(1, Random(seed))[0], placebos, per_seed=None, seed=seed)
        checks = {c.variant_id: c for c in Gate().check_many([case])[0]}
        (full,), found = placebos_again([case], checks, placebos, Gate(), seed=seed)
        assert full.variants[: len(case.variants)] == case.variants
        assert set(found) == {v.id for v in full.variants}
        standing = [v for v in full.variants if is_placebo(v) and found[v.id].status == "valid"]
        assert standing
        again += len(full.variants) > len(case.variants)
        if all(c.status == "valid" for c in checks.values()):
            assert full == case
    assert again
