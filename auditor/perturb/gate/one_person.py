"""One person in two genders: the mentions of a person (`auditor.text.people`) after an edit.

The rules of `contradictions` read the order of words; these read whose words they are, wherever in the text they stand.
"""

from __future__ import annotations

from collections.abc import Sequence

from auditor.perturb.gate.contradictions import GENDER_OF, Text, gendered_words
from auditor.perturb.gate.units import Change
from auditor.perturb.persons import lexicon
from auditor.text.parse import Parser
from auditor.text.people import Person, people

LONGEST = 6_000  # characters of a text whose persons are told apart


def two_genders(text: Text, changes: Sequence[Change], parser: Parser) -> str:
    """Find a person whose changed words and unchanged words name two genders, "" where there is none."""
    own = [c for c in changes if c.edit.attribute == "gender" and c.edit.kind in ("swap", "marking")]
    if not own or len(text.text) > LONGEST:
        return ""
    covered = [(c.start, c.end) for c in own]
    left = any(not any(a < m.end and m.start < b for a, b in covered) for m in text.mentions)
    if not left and len({c.edit.target_group for c in own}) == 1:
        return ""  # no word is there that could contradict
    if text.persons is None:
        text.persons = people(parser.parse_text(text.text), lexicon()).persons
    for person in text.persons:
        wrong = "" if person.plural else _clash(text.text, person, own)
        if wrong:
            return wrong
    return ""


def _clash(text: str, person: Person, own: Sequence[Change]) -> str:
    new: dict[str, str] = {}
    left: dict[str, str] = {}
    for mention in person.mentions:
        change = next((c for c in own if c.start < mention.end and mention.start < c.end), None)
        if change is not None:
            new.setdefault(GENDER_OF.get(change.edit.target_group, ""), change.text)
            continue
        word = text[mention.start : mention.end]
        gender, _, plural = gendered_words().get(word.lower(), ("", "", False))
        if gender and not plural:
            left.setdefault(gender, word)
    for gender, word in new.items():
        other = next((w for g, w in (*left.items(), *new.items()) if gender in "fm" and g in "fm" and g != gender), "")
        if gender and other:
            return f"{word!r} and {other!r} for one person"
    return ""
