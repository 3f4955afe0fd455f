"""The persons of a text: which words speak of whom, and of whom the text is.

Rules on a dependency parse, in the order of the text (`auditor.text.mentions`). What they are not sure of is marked: a
wrong person is worse than none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from auditor.text.mentions import PRONOUNS, SEVERAL, WRITER, Lexicon, Person, Reading
from auditor.text.parse import Parse
from auditor.text.trees import SUBJECT, Tokens

__all__ = ["People", "Person", "people"]

LEAD = 2.0  # and the subject of the text by so much
LEAST = 4.0  # and it needs as much to be the subject at all


class People(NamedTuple):
    """The persons of a text in the order of their first mention, and the one it is about."""

    persons: Sequence[Person]
    subject: Person | None  # None where it is not clear who is judged


def people(parsed: Sequence[tuple[int, Parse]], lexicon: Lexicon) -> People:
    """Find the persons of a text, from its sentences in order, each with its offset (`Parser.parse_text`)."""
    reading = Reading(Tokens(parsed), lexicon)
    reading.read()
    return People(reading.persons, _subject(reading))


def _subject(reading: Reading) -> Person | None:
    """The person who is judged; None where it is not clear."""
    scored = sorted(((_weight(reading, e), -n) for n, e in enumerate(reading.persons)), reverse=True)
    if not scored or scored[0][0] < LEAST or (len(scored) > 1 and scored[0][0] - scored[1][0] < LEAD):
        return None
    chosen = reading.persons[-scored[0][1]]
    first = reading.persons[0]
    if not chosen.clear or (first.plural and first.nouns & SEVERAL and first.intro in {"fragment", "new", "definite"}):
        return None
    w = reading.w
    if (
        chosen.intro in {"fragment", "new", "definite"}
        and not _says(w, chosen)
        and any(_says(w, e) for e in reading.persons)
    ):
        return None  # Mother with her son. He …
    return chosen


def _weight(reading: Reading, person: Person) -> float:
    """How much speaks for a person as the one whom the text is about."""
    w, lexicon = reading.w, reading.lexicon
    if person.plural:
        return -9.0
    acts = _acts(w, person)
    if person.intro == "writer":
        if lexicon.asks:
            return 20.0
        return (6.0 if person.nouns else 3.0 if not reading.house else 0.0) + acts
    weight = {"role": 12.0, "pronoun": 8.0, "fragment": 7.0, "this": 6.0, "name": 5.0, "definite": 3.0, "new": 2.0}.get(
        person.intro, 0.0
    )
    first = person.tokens[0]
    if person.intro == "pronoun" and not acts and w.sentence[first]:
        weight = 4.0
    if person.intro == "definite" and w.child(first, "acl:relcl") is not None:
        weight = 1.0
    if person.intro == "kin" and w.words(first, "nmod:poss") & WRITER and w.low[first] not in lexicon.gender:
        weight = 3.0  # my assistant, a man of 61
    if person.nouns & lexicon.roles:
        weight = 12.0
    return weight + acts + (1.0 if person is reading.persons[0] else 0.0)


def _acts(w: Tokens, person: Person) -> int:
    """In how many clauses a person is the subject; four count as many."""
    joined = (w.head[t] if w.dep[t] == "conj" else t for t in person.tokens)
    return min(4, sum(w.dep[t] in SUBJECT for t in joined))


def _says(w: Tokens, person: Person) -> bool:
    """Whether *he* or *she* is the subject of a clause for this person."""
    return any(w.low[t] in PRONOUNS and w.dep[t] in SUBJECT for t in person.tokens)
