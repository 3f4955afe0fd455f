"""``rules``: coreference by rule, the nearest antecedent that fits; a subject that needs nothing else.

A pronoun refers to the nearer of the two people named first, unless its gender rules that one out. Only the dictionary
of gender gives a noun a gender, so occupations have none unless their word names one (saleswoman).
"""

from __future__ import annotations

import threading
from functools import cache

from auditor.core.errors import BadRequest, CallError
from auditor.core.protocols import LocalClassifier, Reply
from auditor.core.types import digest

PRONOUNS = {
    "female": frozenset({"she", "her", "hers", "herself"}),
    "male": frozenset({"he", "him", "his", "himself"}),
    "": frozenset({"they", "them", "their", "theirs", "themself", "themselves"}),
}
NOUNS = frozenset({"NN", "NNS", "NNP", "NNPS"})
PARTS = frozenset({"compound", "nmod", "npadvmod", "poss"})  # nouns inside another noun's phrase
OPENING = frozenset({"the", "a", "an", "my", "your", "our"})
CLOSING = ("V", "MD", "IN", "TO", "PRP", "W", "CC", ",", ".")  # tags before which a noun phrase has ended
ORDINALS = ("first", "second")


class Rules(LocalClassifier):
    """Answers "first" or "second": which of the two people named first a pronoun refers to.

    >>> Rules().antecedent("The visitor told my aunt that he would be late.")
    'first'
    """

    name = "rules"
    max_batch = 64

    def __init__(self) -> None:
        from auditor.text.parse import Parser

        self._parser = Parser()
        self._lock = threading.Lock()  # the parser is for one thread at a time
        self.fingerprint = "rules:" + digest(
            {"adapter": "rules.v2", "parser": self._parser.fingerprint, "words": sorted(_genders().items())}, size=16
        )

    def answer(self, text: str) -> Reply | CallError:
        """Return the antecedent."""
        person = self.antecedent(text)
        if person is None:
            return BadRequest("the text has no third-person pronoun after two nouns")
        return Reply(text=person)

    def antecedent(self, text: str) -> str | None:
        """Return "first" or "second", the nearest where neither fits; None without a pronoun after two people."""
        with self._lock:
            parses = self._parser.parse_text(text)
        people: list[str | None] = []
        for _, parse in parses:
            waiting, last = False, ""
            for word, tag, dep in zip(parse.words, parse.tags, parse.deps, strict=True):
                plain = word.lower()
                # The tagger takes some occupations for adjectives (the chief executive): where a phrase ends
                # without a noun, its last word is the noun.
                if waiting and last and tag.startswith(CLOSING):
                    people.append(_genders().get(last))
                    waiting = False
                gender = next((g for g, words in PRONOUNS.items() if plain in words), None)
                if gender is not None and tag in ("PRP", "PRP$") and len(people) >= 2:
                    fits = [i for i in (1, 0) if not gender or people[i] in (None, gender)]
                    return ORDINALS[fits[0] if fits else 1]
                if plain in OPENING:
                    waiting, last = True, ""
                elif tag in NOUNS and dep not in PARTS:
                    people.append(_genders().get(plain))
                    waiting = False
                else:
                    last = plain
        return None


@cache
def _genders() -> dict[str, str]:
    """Return the gender of each noun that the dictionary lists for one gender only."""
    from auditor.perturb import dictionaries

    groups_of: dict[str, set[str]] = {}
    for term in dictionaries.load("gender").terms:
        if term.group in ("female", "male"):
            groups_of.setdefault(term.text.lower(), set()).add(term.group)
    return {word: next(iter(groups)) for word, groups in groups_of.items() if len(groups) == 1}
