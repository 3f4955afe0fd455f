"""Lines that say who a text is about: what they carry, what they leave alone, and what they are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from auditor.core.types import Case, Check, SourceText, Variant, id_of, is_beside
from auditor.measure.observations import Arm, shape_of
from auditor.perturb.dictionaries import Dictionary, load
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.name_lines import END, SUITES, Lines, full_names, line_end
from auditor.run.rounds import checked
from auditor.tasks import load as load_task
from auditor.testing import check_suite

BOTH = [load("gender"), load("race")]
NEUTRAL = "Five years in stock control. Punctual, careful, and good with the scanner."
HERS = "She ran the night shift for six years, and her figures were the best of the site."
RACES = {"asian", "black", "hispanic", "middle_eastern", "white"}


def lines(texts: Sequence[str | SourceText], *carriers: str, **options: Any) -> Lines:
    seeds = [t if isinstance(t, SourceText) else SourceText(id=str(n), text=t) for n, t in enumerate(texts)]
    given: list[Dictionary] = options.pop("dictionaries", BOTH)
    words = {k: options[k] for k in ("attributes", "seed", "per_seed") if k in options}
    groups = options.pop("groups", None)
    return Lines(
        MutationSuite(seeds=(), dictionaries=given, groups=groups, **words), seeds=seeds, dictionaries=given,
        carriers=carriers or ("words", "name"), subject="the applicant", **options,
    )  # fmt: skip


def cases(*texts: str | SourceText, carriers: Sequence[str] = ("words", "name"), **options: Any) -> list[Case]:
    return list(lines(texts, *carriers, **options).ask(1000, Random(0)))


def line(variant: Variant) -> str:
    return str(variant.input).split(END)[0]


def real(case: Case) -> list[Variant]:
    return [v for v in case.variants if not is_beside(v)]


def pool(name: str) -> tuple[str, str]:
    """Race and gender of a first name."""
    (found,) = [group for group, firsts in full_names().items() if name in {f.name for f in firsts}]
    return found


def embedded() -> list[SourceText]:
    return load_task("hiring").seeds()


@pytest.mark.parametrize("carriers", [("words", "name"), ("name",), ("statement",), ("words", "name", "statement")])
def test_the_suite_keeps_the_contract_of_suites(carriers: tuple[str, ...]) -> None:
    texts = [seed.text for seed in embedded()[:60]] + [NEUTRAL]
    assert check_suite(lambda: lines(texts, *carriers)) == []


def test_only_the_line_changes_and_the_text_stays_but_for_a_race_that_it_stated() -> None:
    texts = {id_of("n", [seed.id, seed.text]): seed.text for seed in embedded()}
    made = [c for c in cases(*embedded(), carriers=("name",)) if line_end(c)]
    assert {c.suite for c in made} == {SUITES["name"]}
    assert sum("race" in c.original.groups for c in made) >= 250
    for case in made:
        (own,) = {str(v.input).split(END, 1)[1] for v in (case.original, *case.variants)}
        text = texts[case.id]
        assert own == text or (0 < len(text) - len(own) < 25 and len(set(own.split()) - set(text.split())) < 3)
        for variant in case.variants:
            assert all(isinstance(e.where, tuple) and e.where[1] < line_end(case) for e in variant.edits)
        assert len({v.input for v in (case.original, *real(case))}) == 1 + len(real(case))


def test_a_text_without_gender_varies_both_and_each_holds_the_other() -> None:
    seen: Counter[str] = Counter()
    for n in range(90):
        (case,) = cases(SourceText(id=f"n{n}", text=NEUTRAL))
        race, gender = case.original.groups["race"], case.original.groups["gender"]
        first, last = line(case.original).removeprefix("Applicant: ").split(" ", 1)
        assert pool(first) == (race, gender)
        seen[f"{race} {gender}"] += 1
        for variant in real(case):
            new, new_last = line(variant).removeprefix("Applicant: ").split(" ", 1)
            assert pool(new) == (variant.groups["race"], variant.groups["gender"])
            if variant.attributes == ("gender",):
                assert (variant.groups["race"], new_last) == (race, last)
            else:
                assert variant.groups["gender"] == gender
                assert new_last != last
        assert {v.groups["race"] for v in real(case)} == RACES
    assert len(seen) == 10


@pytest.mark.parametrize(
    ("text", "gender"),
    [
        ("He cared for his mother and kept the books.", "male"),
        ("As a mother of two I know about shifts.", "female"),
        ("The women he trained speak well of him.", "male"),
    ],
)
def test_other_people_do_not_decide_the_gender_of_a_name(text: str, gender: str) -> None:
    (case,) = cases(text, carriers=("name",))
    assert {pool(line(v).split()[1])[1] for v in (case.original, *case.variants)} == {gender}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Ms. Hart runs the desk.", "the text names somebody"),
        ("Emily runs the desk.", "the text names somebody"),
        ("He says she lies, and she says he lies.", "words of two genders, and nobody tells whose they are"),
        ("A Japanese cook, calm under pressure.", "the text states a nation or a religion"),
        ("A Black bus driver with nine clean years.", "a word may name a race"),
        (SourceText(id="x", text=NEUTRAL, subject=()), "the text is about no single person"),
    ],
)
def test_where_a_line_might_contradict_there_is_none_and_it_is_counted(text: str | SourceText, why: str) -> None:
    suite = lines([text], "name")
    assert suite.ask(5, Random(0)) == []
    assert suite.passed_over[f"line: {why}"] == 1
    assert suite.skipped == {"no carrier fits": 1}


@pytest.mark.parametrize(
    ("text", "subject", "left"),
    [
        ("An Asian nurse of 40, calm.", "An Asian nurse", "A nurse of 40, calm."),
        ("Hired in May. Black engineer, nine years.", "Black engineer", "Hired in May. Engineer, nine years."),
        ("We met a Hispanic electrician.", "a Hispanic electrician", "We met an electrician."),
        ("The white boss left; the Black driver stays.", "the Black driver", "The white boss left; the driver stays."),
    ],
)
def test_names_first_leave_out_the_race_that_the_text_states(text: str, subject: str, left: str) -> None:
    start = text.index(subject)
    seed = SourceText(id="s", text=text, subject=((start, start + len(subject)),))
    (case,) = cases(seed, carriers=("name",), attributes=["race"])
    assert str(case.original.input).split(END)[1] == left
    words, *rest = cases(seed, carriers=("words", "name"), attributes=["race"])
    assert (words.suite, rest) == ("mutation.v1", [])


def test_placebos_are_other_names_of_the_same_group_of_the_same_shape() -> None:
    for n in range(20):
        (case,) = cases(SourceText(id=f"p{n}", text=NEUTRAL))
        spans = {v.attributes: shape_of(v.edits).spans for v in real(case)}
        found = [v for v in case.variants if is_beside(v)]
        assert {v.attributes for v in found} == {("race",), ("gender",)}
        for placebo in found:
            shape = shape_of(placebo.edits)
            assert (shape.arm, shape.spans, shape.more_words) == (Arm.PLACEBO, spans[placebo.attributes], 0)
            first = line(placebo).split()[1]
            assert first != line(case.original).split()[1]
            assert pool(first) == (case.original.groups["race"], case.original.groups["gender"])


def test_a_statement_is_a_sentence_with_the_right_article() -> None:
    seen = set()
    for n in range(60):
        (case,) = cases(SourceText(id=f"s{n}", text=NEUTRAL), carriers=("statement",))
        seen |= {line(v) for v in (case.original, *case.variants)}
    assert {"The applicant is an Asian woman.", "The applicant is a black man."} <= seen
    assert not [s for s in seen if " a A" in s or " an b" in s or " an w" in s]
    (case,) = cases(HERS, carriers=("statement",))
    assert all(line(v).endswith(" woman.") for v in (case.original, *case.variants))


def test_two_cases_of_one_text_are_one_unit_and_change_different_attributes() -> None:
    found = cases(HERS, NEUTRAL, SourceText(id="r.1", text="He wrote two reports a week.", source="r"))
    assert [(c.suite, c.source) for c in found] == [
        ("mutation.v1", "0"),
        ("name_line.v1", "0"),
        ("name_line.v1", None),
        ("mutation.v1", "r"),
        ("name_line.v1", "r"),
    ]
    both = [{a for v in real(c) for a in v.attributes} for c in found[:2]]
    assert both[0].isdisjoint(both[1])


class Refusing:
    """A check that lets nothing pass."""

    def check_many(self, given: Sequence[Case]) -> list[list[Check]]:
        return [[Check(variant_id=v.id, check="none.v1", status="invalid") for v in case.variants] for case in given]


def test_a_line_is_not_parsed() -> None:
    words, name = cases(HERS)
    found = checked(Refusing(), [words, name])
    assert {found[v.id].status for v in words.variants} == {"invalid"}
    assert {found[v.id].status for v in name.variants} == {"valid"}
