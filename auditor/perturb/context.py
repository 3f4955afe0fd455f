"""Which of the terms that share a spelling fit their neighbourhood, by the words around them."""

from __future__ import annotations

import re

from auditor.perturb.dictionaries import Term, persons
from auditor.text.english import (
    ABBREVIATIONS,
    BE_FORMS,
    FUNCTION_WORDS,
    Word,
    case_of,
    plural_verb,
    starts_sentence,
    word_list,
)

DETERMINERS = frozenset(("a", "an", "the", "one", "another", "every", "each", "this", "that", "first", "only"))
_POINTS = frozenset(("the", "these", "those", "my", "your", "his", "her", "our", "their", "its"))
_AND = frozenset(("and", "or", ",", "/", "&"))
_ADVERBS = frozenset(("not", "also", "really", "originally", "actually", "half", "part", "both", "all", "very"))
_COMMON_VERBS = word_list("common_verbs")
# Where somebody talks to somebody, *well,* may open a sentence; in a report of a case it does not.
_SPOKEN = re.compile(r"[^\W\d_]n['’]t\b|['’](?:m|re|ve|ll)\b|\b(?:I|my|you|your)\b|[!?]")
_PAST = word_list("past")
_MONTHS = word_list("months")
_HELD = word_list("held")


def closes(word: str) -> bool:
    """Whether a noun phrase ends before ``word``, by its form: a function word or a past or third-person verb."""
    if word in _PAST:
        return True
    return word in FUNCTION_WORDS or word.endswith("ed") or plural_verb(word) in _COMMON_VERBS


class Context:
    """Says which of the terms that share a spelling fit their neighbourhood."""

    def __init__(self, adjectives: frozenset[str], nouns: set[str]) -> None:
        self._singular, self._plural, self._modifiers = persons()
        self._adjectives = adjectives
        self.people = self._people = self._singular | self._plural | {n.split()[-1] for n in nouns}

    def fitting(self, text: str, tokens: list[Word], i: int, n: int, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        """Return the terms that fit; several only where they differ in group, or in a pronoun's slot."""
        surface = text[tokens[i].start : tokens[i + n - 1].end]
        case = case_of(surface)
        if case == "mixed" and all(surface.replace("’", "'") != t.text for t in terms):
            return ()
        if terms[0].slot == "pair":
            return terms
        at = _Place(text, tokens, i, n, surface, case)
        if at.key(1) == "/" and not terms[0].slot.startswith("pronoun."):
            return ()  # writer/director, Mom / Pop
        if case == "title" and not self._name_rule(at, terms[0]):
            return ()
        good = [t for t in terms if self._fits(at, t)]
        if len(good) > 1 and not good[0].slot.startswith("pronoun."):
            good = good[:1]
        return tuple(good)

    def _name_rule(self, at: _Place, term: Term) -> bool:
        """Refuse a capitalised word that is part of a name (Iron Man, American Beauty, Jack Black)."""
        if "before:name" in term.tags or "name" in term.tags:
            return True
        own = term.text[0].isupper()
        following = at.near(1)
        if following and following[0].isupper() and following.lower() not in FUNCTION_WORDS:
            known = following.lower() in self._people or following.lower() in self._adjectives
            if not known and not (at.at_start and term.slot.startswith("pronoun.")):
                return False
        if at.at_start:
            return True
        if self._of_a_name(at):
            return False
        before = at.near(-1)
        if not before or not before[0].isupper() or before.lower() in FUNCTION_WORDS:
            return True
        if before.lower() in ABBREVIATIONS:
            return False
        return own and starts_sentence(at.text, at.tokens[at.i - 1].start)

    def _of_a_name(self, at: _Place) -> bool:
        """Whether *of*, *for* or *with* ties a capitalised word to another (*Institute for Men*, *Sons of Anarchy*)."""
        link, name = at.key(-1), at.word(-2)
        if link in ("of", "for") and _is_name(name) and not starts_sentence(at.text, at.tokens[at.i - 2].start):
            return True
        link, name = at.key(1), at.word(2)
        if link not in ("with", "of", "for") or not _is_name(name) or name.lower() in _MONTHS:
            return False
        return at.key(-1) not in ("the", "a", "an", "some") or at.word(3)[:1].isupper()

    def _fits(self, at: _Place, term: Term) -> bool:
        tags = term.tags
        before, after = at.key(-1), at.key(1)
        if before in term.not_after or after in term.not_before or f"{at.key(-2)} {before}" in term.not_after:
            return False
        if not tags:
            return True
        if "lower" in tags and at.case == "title" and not at.at_start and before not in DETERMINERS:
            return False
        if "start" in tags and not (at.at_start and at.surface[0].isupper() and at.in_sentence):
            return False
        if "spoken" in tags and not _SPOKEN.search(at.text):
            return False
        if "no_exclamation" in tags and at.at_start and after in {",", "!"}:
            return False
        if "before:name" in tags and not self._before_name(at):
            return False
        if "name" in tags and not self._first_name(at):
            return False
        if "after:person" in tags and not self._after_person(at):
            return False
        if "after:pointer" in tags and not self._pointed_at(at):
            return False
        if "after:comma" in tags and before != ",":
            return False
        if "case" in tags and not self._capital(at):
            return False
        if "before:person" in tags and not self._before_person(at):
            return False
        if "as:noun" in tags and not self._as_noun(at):
            return False
        return not ("as:adjective" in tags and not self._as_adjective(at, term))

    def _before_name(self, at: _Place) -> bool:
        name = at.near(1)
        if at.case == "lower" or not name or not name[0].isupper() or not name[0].isalpha():
            return False
        return at.case == "title" or case_of(name) == "upper"

    def _first_name(self, at: _Place) -> bool:
        """Whether a capitalised word opens a name: nothing but a person word or a function word before it."""
        if at.case != "title":
            return False
        before = at.near(-1)
        low = before.lower()
        if low in DETERMINERS or low == "saint":
            return False
        if before and before[0].isupper() and low not in FUNCTION_WORDS and low not in self._people:
            return low in ABBREVIATIONS or starts_sentence(at.text, at.tokens[at.i - 1].start)
        return True

    def _after_person(self, at: _Place) -> bool:
        return bool(at.near(-1)) and at.key(-1) in self._people

    def _pointed_at(self, at: _Place) -> bool:
        """Whether a determiner or a possessor stands before a noun, with at most one adjective between."""
        for step in (-1, -2):
            word = at.key(step)
            if word in _POINTS or (word == "s" and at.key(step - 1) in ("'", "’")):
                return True
            if not word.isalpha() or word in FUNCTION_WORDS or not at.near(-1):
                return False
        return False

    def _capital(self, at: _Place) -> bool:
        if at.case == "lower":
            return False
        if at.at_start or at.case == "upper":
            return (at.near(1) or "").lower() in self._people
        return True

    def _before_person(self, at: _Place) -> bool:
        j, steps, coordinated, last = at.i + at.n, 0, False, ""
        while j < len(at.tokens) and steps < 4:
            word, j = _hyphenated(at.text, at.tokens, j)
            if word in self._modifiers or word in self._adjectives:
                steps += 1
            elif word in self._plural or (word in self._singular and not coordinated):
                return True
            elif word in _AND and not coordinated:
                following = _hyphenated(at.text, at.tokens, j)[0] if j < len(at.tokens) else ""
                if following not in self._adjectives:
                    return last in self._singular
                coordinated = True
            elif word.endswith("-year-old") and self._person_at(at, j):
                return True
            else:  # a white American., a black teenager
                return last in self._singular and (not word[0].isalnum() or closes(word))
            last = word
        return last in self._singular and j == len(at.tokens)

    def _leads_to_person(self, at: _Place) -> bool:
        """Whether the noun phrase that goes on after a match names a person (*a Polish crane driver*)."""
        adjectives = True  # so far: *and* goes on with the phrase (*Kenyan and Swedish captains*)
        for token in at.tokens[at.i + at.n : at.i + at.n + 5]:
            word = token.key
            if word in self._people or word in _HELD:
                return True
            if word == "-" or (word in _AND and adjectives):
                continue
            if not word.isalpha() or word in FUNCTION_WORDS:
                return False
            adjectives = adjectives and word in self._adjectives
        return False

    def _person_at(self, at: _Place, j: int) -> bool:
        return j < len(at.tokens) and at.tokens[j].key in self._people

    def _as_noun(self, at: _Place) -> bool:
        after = at.key(1)
        if after and after not in FUNCTION_WORDS and after[0].isalnum():
            return False
        if not after and at.glued(1):
            return False
        before, further = at.key(-1), at.key(-2)
        if before in DETERMINERS:
            return True
        return further in DETERMINERS and before not in FUNCTION_WORDS and before.isalpha()

    def _as_adjective(self, at: _Place, term: Term) -> bool:
        following, before = at.near(1), at.key(-1)
        if before in _ADVERBS:
            before = at.key(-2)
        if following:
            low = following.lower()
            if term.attribute == "nationality" and (low in _AND or low not in FUNCTION_WORDS):
                return self._leads_to_person(at)  # not *Cuban coffee*
            if low in _AND:
                further = at.tokens[at.i + at.n + 1 :][:1]
                return bool(further) and further[0].key in self._adjectives
            if low not in FUNCTION_WORDS:
                if at.case == "lower" and term.text[0].isupper():  # without capitals no title can be told
                    return self._before_person(at)
                return following[0].islower() or low in self._people or at.case == "upper"
        return before in BE_FORMS or (before == "s" and at.key(-2) == "'")


class _Place:
    """A match and its neighbours; steps count tokens from the match: -1 before it, 1 after it."""

    __slots__ = ("_start", "case", "i", "n", "surface", "text", "tokens")

    def __init__(self, text: str, tokens: list[Word], i: int, n: int, surface: str, case: str) -> None:
        self.text, self.tokens, self.i, self.n, self.surface, self.case = text, tokens, i, n, surface, case
        self._start: bool | None = None

    @property
    def at_start(self) -> bool:
        if self._start is None:
            self._start = starts_sentence(self.text, self.tokens[self.i].start)
        return self._start

    @property
    def in_sentence(self) -> bool:
        """Whether the line holds the end of a sentence, which a heading does not."""
        line = self.text[self.tokens[self.i].start :].partition("\n")[0]
        return any(mark in line for mark in ".!?")

    def _index(self, step: int) -> int:
        return self.i + step if step < 0 else self.i + self.n - 1 + step

    def key(self, step: int) -> str:
        j = self._index(step)
        return self.tokens[j].key if 0 <= j < len(self.tokens) else ""

    def word(self, step: int) -> str:
        """The word or mark at a step as the text has it, "" outside."""
        j = self._index(step)
        return self.text[self.tokens[j].start : self.tokens[j].end] if 0 <= j < len(self.tokens) else ""

    def glued(self, step: int) -> bool:
        j = self._index(step)
        return 0 <= j < len(self.tokens) and self.tokens[j].start == self.tokens[j - 1].end

    def near(self, step: int) -> str:
        """Return the neighbouring word if only white space lies between, else ""."""
        j = self._index(step)
        if not 0 <= j < len(self.tokens):
            return ""
        one = self.tokens[j]
        gap = (
            self.text[self.tokens[self.i + self.n - 1].end : one.start]
            if step > 0
            else (self.text[one.end : self.tokens[self.i].start])
        )
        if gap and not gap.isspace():
            return ""
        word = self.text[one.start : one.end]
        return word if word[0].isalnum() or word in _AND else ""


def _is_name(word: str) -> bool:
    return len(word) > 1 and word.isalpha() and word[0].isupper() and word.lower() not in FUNCTION_WORDS


def _hyphenated(text: str, tokens: list[Word], j: int) -> tuple[str, int]:
    """Return the token at ``j`` with what hyphens join to it, and the number of the token after."""
    word, end = tokens[j].key, tokens[j].end
    j += 1
    while j + 1 < len(tokens) and tokens[j].key == "-" and tokens[j].start == end == tokens[j + 1].start - 1:
        word, end = f"{word}-{tokens[j + 1].key}", tokens[j + 1].end
        j += 2
    return word, j
