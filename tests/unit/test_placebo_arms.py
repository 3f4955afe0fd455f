"""Placebo arms of the same form as what they stand against, for every suite; and who may read them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from auditor.contrib.hinter.mutants import HinterSuite
from auditor.core.types import Case, Check, Edit, SourceText, Variant
from auditor.perturb import dictionaries, grammar
from auditor.perturb.grammar.cases import GrammarSuite
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.placebo import Placebos
from auditor.run.rounds import TRIED, is_placebo, placebos_again, with_placebos

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


def test_grammar_placebos_are_counted_for_each_attribute(suite: GrammarSuite) -> None:
    for case in suite.ask(20, Random(0)):
        for n in (1, 2):
            count = Counter(v.attributes for v in suite.placebos(case, n, Random(1)))
            assert set(count) == {("gender",), ("religion",)}
            assert max(count.values()) <= n
            single = Counter(v.attributes for v in case.variants if v.order == 1)
            assert all(count[key] <= single[key] for key in count)


def test_grammar_cases_get_joint_placebos(suite: GrammarSuite) -> None:
    case = suite.ask(1, Random(0))[0]
    whole = with_placebos(case, suite, per_seed=8, seed=1)
    joint = [v for v in whole.variants if is_placebo(v) and v.order == 2]
    assert joint
    for variant in joint:
        assert {e.attribute for e in variant.edits} == {"gender", "religion"}
    assert len({v.id for v in whole.variants}) == len(whole.variants)


def swap(attribute: str, at: int, target: str, kind: Any = "placebo") -> Edit:
    return Edit(
        attribute=attribute,
        kind=kind,
        source_group="g",
        target_group="g",
        source="x",
        target=target,
        where=(at, at + 1),
    )


class Many:
    """24 placebo edits for each of two attributes: more combinations than are tried."""

    def placebos(self, case: Case, n: int | None, rng: Random) -> list[Variant]:
        return [
            Variant(id=f"{a}{i}", input=f"{a}{i}", edits=(swap(a, at, f"{a}{i:02d}"),))
            for a, at in (("a", 0), ("b", 2), ("c", 4))
            for i in range(24)
        ]


def test_joint_placebos_use_any_combination_of_the_single_ones() -> None:
    assert TRIED < 24**2
    edits = (swap("a", 0, "A", "swap"), swap("b", 2, "B", "swap"), swap("c", 4, "C", "swap"))
    variants = [Variant(id=f"c.v{n}", input=f"v{n}", edits=edits[n : n + 1]) for n in range(3)]
    variants += [Variant(id=f"c.j{n}", input=f"j{n}", edits=edits) for n in range(8)]
    first: set[str] = set()
    for seed in range(60):
        case = Case(id=f"c{seed}", suite="s", original=Variant(id="c.o", input="x x x"), variants=tuple(variants))
        whole = with_placebos(case, Many(), per_seed=None, seed=seed)
        joint = [v for v in whole.variants if is_placebo(v) and v.order == 3]
        assert len(joint) == 8
        first |= {e.target for v in joint for e in v.edits if e.attribute == "a"}
    assert len(first) == 24


def test_asking_for_no_case_gives_none() -> None:
    from auditor.perturb.dictionaries import load

    suite = HinterSuite(
        seeds=[SourceText(id=str(n), text="the man left") for n in range(3)], dictionaries=[load("gender")]
    )
    assert suite.ask(0, Random(0)) == []
    assert [len(suite.ask(2, Random(0))) for _ in range(3)] == [2, 1, 0]


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


class Stub:
    """A suite whose placebos are one text for each attribute, and whose neutral words are two others."""

    def placebos(self, case: Case, n: int, rng: Random) -> list[Variant]:
        names = sorted({name for v in case.variants for name in v.attributes})
        return [placed(case, name, 0, "PAIR") for name in names]

    def neutral(self, case: Case, most: int, rng: Random) -> list[Variant]:
        framed = dataclasses.replace(placed(case, "neutral", 0, "Here it is. a"), edits=(
            dataclasses.replace(swap("neutral", 0, "Here it is. a"), kind="wording"),))  # fmt: skip
        return [framed, placed(case, "neutral", 2, "WORD"), placed(case, "neutral", 4, "TERM")]


def placed(case: Case, attribute: str, at: int, target: str) -> Variant:
    text = str(case.original.input)
    edit = swap(attribute, at, target)
    return Variant(id="", input=text[:at] + target + text[at + 1 :], edits=(edit,))


class Refuses:
    """Against every placebo of a pair."""

    def check_many(self, cases: Sequence[Case]) -> list[list[Check]]:
        return [
            [
                Check(variant_id=v.id, check="t", status="invalid" if "PAIR" in str(v.input) else "valid")
                for v in case.variants
            ]
            for case in cases
        ]


def drawn_again(*edited: tuple[str, ...]) -> list[Variant]:
    """The valid placebos of a text with one edit for each set of attributes, after those of pairs were refused."""
    original = Variant(id="c.o", input="a b c d e f")
    places = {"age": 6, "gender": 8, "race": 10}
    variants = [
        Variant(id=f"c.v{n}", input=f"edited {n}", edits=tuple(swap(name, places[name], "x", "swap") for name in names))
        for n, names in enumerate(edited)
    ]
    case = Case(id="c", suite="s", original=original, variants=tuple(variants))
    case = with_placebos(case, Stub(), per_seed=None, seed=1)
    checks = {c.variant_id: c for c in Refuses().check_many([case])[0]}
    (full,), found = placebos_again([case], checks, Stub(), Refuses(), seed=1)
    assert len({v.id for v in full.variants}) == len(full.variants)
    return [v for v in full.variants if v.id not in {"c.v0", "c.v1", "c.v2"} and found[v.id].status == "valid"]


def test_a_neutral_word_stands_for_each_attribute_whose_placebos_were_refused() -> None:
    standing = drawn_again(("gender",), ("race",))
    assert {v.attributes for v in standing} == {("gender",), ("race",)}
    assert all(is_placebo(v) for v in standing)  # and no sentence about the text


def test_joint_placebos_are_drawn_for_each_set_that_has_none() -> None:
    standing = drawn_again(("gender",), ("gender", "race"), ("age", "gender"))
    assert {("gender", "race"), ("age", "gender")} <= {v.attributes for v in standing}
