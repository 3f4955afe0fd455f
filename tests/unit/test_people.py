"""The persons of a text, one construction at a time, and against texts that say where they speak of their subject."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from auditor import tasks
from auditor.perturb.persons import lexicon
from auditor.text.parse import Parser
from auditor.text.people import PRONOUNS, People, people

PARSER = Parser()
WINOGENDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "winogender"
JUDGED = ("hiring", "lending", "triage", "salary", "rating", "letter", "advice")


def read(text: str, subject: str = "the applicant") -> People:
    return people(PARSER.parse_text(text), lexicon(subject))


def clusters(text: str) -> list[list[str]]:
    return [[text[start:end] for start, end in p.spans] for p in read(text).persons]


def subject(text: str, called: str = "the applicant") -> list[str]:
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
    assert subject(text) == expected


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


def _winogender() -> list[tuple[str, str, str]]:
    """(Text, noun that the pronoun means, the other noun) of the schemas with *he* or *she*."""
    with (WINOGENDER / "all_sentences.tsv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if "neutral" not in row["sentid"]]
    out = []
    for row in rows:
        occupation, participant, answer, *_ = row["sentid"].split(".")
        pair = (occupation, participant) if answer == "0" else (participant, occupation)
        out.append((row["sentence"], *pair))
    return out


@pytest.mark.skipif(not WINOGENDER.exists(), reason="the shared Winogender schemas are not here")
def test_the_pronouns_of_schemas_are_given_to_a_noun_no_worse_than_by_chance() -> None:
    """Half of the schemas mean the first noun: the best reading, clear or not, is right in 242 of 480; a third of them is read."""
    right = 0
    texts = _winogender()[::3]
    for text, meant, other in texts:
        for person in read(text).persons:
            mentions = [text[start:end].lower() for start, end in person.spans]
            if any(m in PRONOUNS for m in mentions):
                nouns = [m for m in mentions if m not in PRONOUNS]
                right += any(meant.endswith(n) for n in nouns) and not any(other.endswith(n) for n in nouns)
                break
    assert len(texts) == 160
    assert right >= 76
