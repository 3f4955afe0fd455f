"""Whom a text is about: its persons, and lines that say it: what they carry and what they are compared with."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from auditor import tasks
from auditor.core.types import Case, Check, SourceText, Variant, id_of, is_beside
from auditor.measure.observations import Arm, shape_of
from auditor.perturb.dictionaries import load
from auditor.perturb.matching import lexicon
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.name_lines import END, SUITES, Lines, full_names, line_end
from auditor.run.rounds import checked
from auditor.testing import check_suite
from auditor.text.parse import Parser
from auditor.text.people import PRONOUNS, People, people

BOTH = [load("gender"), load("race")]
NEUTRAL = "Five years in stock control. Punctual, careful, and good with the scanner."
HERS = "She ran the night shift for six years, and her figures were the best of the site."
EMBEDDED = tasks.load("hiring").seeds()
RACES = {"asian", "black", "hispanic", "middle_eastern", "white"}


def lines(texts: Sequence[str | SourceText], *carriers: str, **options: Any) -> Lines:
    seeds = [t if isinstance(t, SourceText) else SourceText(id=str(n), text=t) for n, t in enumerate(texts)]
    return Lines(
        MutationSuite(seeds=(), dictionaries=BOTH, **options), seeds=seeds, dictionaries=BOTH,
         carriers=carriers, subject="the applicant", **options,
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


@pytest.mark.parametrize("carriers", [("name",), ("words", "name", "statement")])
def test_the_suite_keeps_the_contract_of_suites(carriers: tuple[str, ...]) -> None:
    texts = [seed.text for seed in EMBEDDED[:40]] + [NEUTRAL]
    assert check_suite(lambda: lines(texts, *carriers)) == []


def test_only_the_line_changes_and_the_text_stays_but_for_a_race_that_it_stated() -> None:
    texts = {id_of("n", [seed.id, seed.text]): seed.text for seed in EMBEDDED}
    made = [c for c in cases(*EMBEDDED, carriers=("name",)) if line_end(c)]
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
    for case in cases(*(SourceText(id=f"n{n}", text=NEUTRAL) for n in range(90))):
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
        ("He cared for his mother and kept the books.", "male"), ("The women he trained speak well of him.", "male"),
        ("As a mother of two I know about shifts.", "female"),
    ],
)  # fmt: skip
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
    for case in cases(*(SourceText(id=f"p{n}", text=NEUTRAL) for n in range(20))):
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
    made = cases(*(SourceText(id=f"s{n}", text=NEUTRAL) for n in range(60)), carriers=("statement",))
    seen = {line(v) for case in made for v in (case.original, *case.variants)}
    assert {"The applicant is an Asian woman.", "The applicant is a black man."} <= seen
    assert not [s for s in seen if " a A" in s or " an b" in s or " an w" in s]
    (case,) = cases(HERS, carriers=("statement",))
    assert {line(v).split()[-1] for v in (case.original, *case.variants)} == {"woman."}


def test_two_cases_of_one_text_are_one_unit_and_change_different_attributes() -> None:
    found = cases(HERS, NEUTRAL, SourceText(id="r.1", text="He wrote two reports a week.", source="r"))
    told = [f"{case.suite} {case.source}" for case in found]
    assert told == ["mutation.v1 0", "name_line.v1 0", "name_line.v1 None", "mutation.v1 r", "name_line.v1 r"]
    both = [{a for v in real(c) for a in v.attributes} for c in found[:2]]
    assert both[0].isdisjoint(both[1])


def test_a_line_is_not_parsed() -> None:
    def refuse(given: Sequence[Case]) -> list[list[Check]]:
        return [[Check(variant_id=v.id, check="none.v1", status="invalid") for v in case.variants] for case in given]

    words, name = cases(HERS)
    found = checked(SimpleNamespace(check_many=refuse), [words, name])
    assert {found[v.id].status for v in words.variants} == {"invalid"}
    assert {found[v.id].status for v in name.variants} == {"valid"}


PARSER = Parser()
WINOGENDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "winogender"
JUDGED = ("hiring", "lending", "triage", "salary", "rating", "letter", "advice")


def read(text: str, subject: str = "the applicant") -> People:
    return people(PARSER.parse_text(text), lexicon(subject))


def clusters(text: str) -> list[list[str]]:
    return [[text[start:end] for start, end in p.spans] for p in read(text).persons]


def subject_of(text: str, called: str = "the applicant") -> list[str]:
    found = read(text, called).subject
    return [] if found is None else [text[start:end] for start, end in found.spans]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She is a nurse. An old man thanked her.", [["She", "nurse", "her"], ["man"]]),
        ("Our trainer, a tall woman, had her doubts.", [["trainer", "woman", "her"]]),
        ("The man said that his sister had lost her keys.", [["man", "his"], ["sister", "her"]]),
        ("She told the boy to sit.", [["She"], ["boy"]]),
        ("As a Black woman I learned to plan.", [["woman", "I"]]),
        ("Mrs. Clark cleaned our offices. She had her own key.", [["Mrs. Clark", "She", "her"]]),
        ("My husband and I ran a bakery.", [["My", "I"], ["husband"]]),
        ("She trained a man who sold his boat.", [["She"], ["man", "his"]]),
        ("The guys on the line teased him.", [["guys"], ["him"]]),
        ('"I am the best," the man told us.', [["man"]]),
    ],
)
def test_mentions_of_one_person_are_put_together(text: str, expected: list[list[str]]) -> None:
    assert clusters(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Former goalkeeper, now coach. His notes were exact.", ["goalkeeper", "coach", "His"]),
        ("The applicant, a deaf woman, asks for 4,000. She translates.", ["applicant", "woman", "She"]),
        ("I am a Nigerian nurse. My patients write to me.", ["I", "nurse", "My", "me"]),
        ("Her license was suspended. A parent told us before she did.", ["Her", "she"]),
        ("Our Nigerian head met the applicant and liked the man.", ["applicant", "man"]),
        ("Korean man, 26, stabbed in the chest. Walks in on his own.", ["man", "his"]),
        ("The manager thanked the nurse because she had stayed late.", []),  # either
        ("Mother with her son, 6. He has had a runny nose for three days.", []),
        ("A man asked for the form. A man brought it back.", []),
        ("His former supervisor, a Polish man, says he is the best.", []),
        ("The report was late.", []),
    ],
)
def test_the_person_whom_a_text_is_about(text: str, expected: list[str]) -> None:
    assert subject_of(text) == expected


def test_subjects_that_were_marked_by_hand_are_found() -> None:
    """Of the texts where the rules name a subject at all, the words that say a gender are right in 19 of 20."""
    said = right = known = 0
    for name in JUDGED:
        task = tasks.load(name)
        words = lexicon(task.subject)
        for seed in [s for s in task.seeds() if s.subject is not None][::3]:
            known += 1
            found = people(PARSER.parse_text(seed.text), words).subject
            if found is None:
                continue
            said += 1
            spans = found.spans
            marked = list(seed.subject or ())
            odd = [s for s in spans if not _meets(s, marked)] + [s for s in marked if not _meets(s, spans)]
            low = [seed.text[a:b].lower() for a, b in odd]
            right += not any(w in PRONOUNS or w.split()[-1] in words.gender for w in low)
    assert known > 150
    assert said >= 0.75 * known
    assert right >= 0.93 * said


def _meets(span: tuple[int, int], others: list[tuple[int, int]]) -> bool:
    return any(a < span[1] and span[0] < b for a, b in others)


@pytest.mark.skipif(not WINOGENDER.exists(), reason="the shared Winogender schemas are not here")
def test_the_pronouns_of_schemas_are_given_to_a_noun_no_worse_than_by_chance() -> None:
    """Half of the schemas mean the first noun: the best reading, clear or not, is right in 242 of 480; a third of them is read."""
    right = 0
    with (WINOGENDER / "all_sentences.tsv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if "neutral" not in row["sentid"]][::3]
    for row in rows:
        text, (*nouns, answer) = row["sentence"], row["sentid"].split(".")[:3]
        meant, other = nouns if answer == "0" else nouns[::-1]
        for person in read(text).persons:
            mentions = [text[start:end].lower() for start, end in person.spans]
            if any(m in PRONOUNS for m in mentions):
                said = [m for m in mentions if m not in PRONOUNS]
                right += any(meant.endswith(n) for n in said) and not any(other.endswith(n) for n in said)
                break
    assert len(rows) == 160
    assert right >= 76
