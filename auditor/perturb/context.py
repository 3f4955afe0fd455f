"""Which of the terms that share a spelling fit their neighborhood, by the words around them."""

from __future__ import annotations

import re
from functools import cached_property

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
    """The words of dictionaries by which terms are told apart: adjectives, and nouns for people."""

    def __init__(self, adjectives: frozenset[str], nouns: set[str]) -> None:
        self.singular, self.plural, self.modifiers = persons()
        self.adjectives = adjectives
        self.people = self.singular | self.plural | {n.split()[-1] for n in nouns}

    def fitting(self, text: str, tokens: list[Word], i: int, n: int, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        """Return the terms that fit; several only where they differ in group, or in a pronoun's slot."""
        at = _Place(self, text, tokens, i, n)
        if at.case == "mixed" and all(at.surface.replace("’", "'") != t.text for t in terms):
            return ()
        if terms[0].slot == "pair":
            return terms
        pronoun = terms[0].slot.startswith("pronoun.")
        if at.key(1) == "/" and not pronoun:
            return ()  # writer/director, Mom / Pop
        if at.case == "title" and at.in_a_name(terms[0]):
            return ()
        good = tuple(t for t in terms if at.fits(t))
        return good if good and good[0].slot.startswith("pronoun.") else good[:1]


class _Place:
    """A match and its neighbors; steps count tokens from the match: -1 before it, 1 after it."""

    def __init__(self, known: Context, text: str, tokens: list[Word], i: int, n: int) -> None:
        self.known, self.text, self.tokens, self.i, self.end = known, text, tokens, i, i + n
        self.surface = text[tokens[i].start : tokens[i + n - 1].end]
        self.case = case_of(self.surface)

    @cached_property
    def at_start(self) -> bool:
        return starts_sentence(self.text, self.tokens[self.i].start)

    def _at(self, step: int) -> Word | None:
        j = self.i + step if step < 0 else self.end - 1 + step
        return self.tokens[j] if 0 <= j < len(self.tokens) else None

    def key(self, step: int) -> str:
        token = self._at(step)
        return token.key if token else ""

    def word(self, step: int) -> str:
        """The word or mark at a step as the text has it, "" outside."""
        token = self._at(step)
        return self.text[token.start : token.end] if token else ""

    def near(self, step: int) -> str:
        """Return the neighboring word if only white space lies between, else ""."""
        token, word = self._at(step), self.word(step)
        if token is None:
            return ""
        last = self.tokens[self.end - 1]
        gap = self.text[last.end : token.start] if step > 0 else self.text[token.end : self.tokens[self.i].start]
        return word if (not gap or gap.isspace()) and (word[0].isalnum() or word in _AND) else ""

    def fits(self, term: Term) -> bool:
        """Whether the words around allow the term, and all of its conditions hold."""
        before, after = self.key(-1), self.key(1)
        if before in term.not_after or after in term.not_before or f"{self.key(-2)} {before}" in term.not_after:
            return False
        conditions = (getattr(self, "when_" + tag.replace(":", "_"), None) for tag in term.tags)
        return all(condition is None or condition(term) for condition in conditions)

    def in_a_name(self, term: Term) -> bool:
        """Whether a capitalized word is part of a name (Iron Man, American Beauty, Jack Black)."""
        if "before:name" in term.tags or "name" in term.tags:
            return False
        following = self.near(1)
        if _capital(following):
            known = following.lower() in self.known.people or following.lower() in self.known.adjectives
            if not known and not (self.at_start and term.slot.startswith("pronoun.")):
                return True
        if self.at_start:
            return False
        if self._tied():
            return True
        before = self.near(-1)
        if not _capital(before):
            return False
        if before.lower() in ABBREVIATIONS:
            return True
        return not (term.text[0].isupper() and starts_sentence(self.text, self.tokens[self.i - 1].start))

    def _tied(self) -> bool:
        """Whether *of*, *for* or *with* ties a capitalized word to another (*Institute for Men*, *Sons of Anarchy*)."""
        link, name = self.key(-1), self.word(-2)
        if link in ("of", "for") and _is_name(name) and not starts_sentence(self.text, self.tokens[self.i - 2].start):
            return True
        link, name = self.key(1), self.word(2)
        if link not in ("with", "of", "for") or not _is_name(name) or name.lower() in _MONTHS:
            return False
        return self.key(-1) not in ("the", "a", "an", "some") or self.word(3)[:1].isupper()

    # -- conditions of terms: each is called as its tag in a dictionary is ----

    def when_lower(self, term: Term) -> bool:
        return self.case != "title" or self.at_start or self.key(-1) in DETERMINERS

    def when_start(self, term: Term) -> bool:
        """Whether a capital opens a sentence; a heading has no end of one."""
        line = self.text[self.tokens[self.i].start :].partition("\n")[0]
        return self.at_start and self.surface[0].isupper() and any(mark in line for mark in ".!?")

    def when_spoken(self, term: Term) -> bool:
        return _SPOKEN.search(self.text) is not None

    def when_no_exclamation(self, term: Term) -> bool:
        return not (self.at_start and self.key(1) in {",", "!"})

    def when_before_name(self, term: Term) -> bool:
        name = self.near(1)
        if self.case == "lower" or not name or not name[0].isupper() or not name[0].isalpha():
            return False
        return self.case == "title" or case_of(name) == "upper"

    def when_name(self, term: Term) -> bool:
        """Whether a capitalized word opens a name: nothing but a person word or a function word before it."""
        before = self.near(-1)
        low = before.lower()
        if self.case != "title" or low in DETERMINERS or low == "saint":
            return False
        if _capital(before) and low not in self.known.people:
            return low in ABBREVIATIONS or starts_sentence(self.text, self.tokens[self.i - 1].start)
        return True

    def when_after_person(self, term: Term) -> bool:
        return bool(self.near(-1)) and self.key(-1) in self.known.people

    def when_after_pointer(self, term: Term) -> bool:
        """Whether a determiner or a possessor comes before a noun, with at most one adjective between."""
        for step in (-1, -2):
            word = self.key(step)
            if word in _POINTS or (word == "s" and self.key(step - 1) in ("'", "’")):
                return True
            if not word.isalpha() or word in FUNCTION_WORDS or not self.near(-1):
                return False
        return False

    def when_after_comma(self, term: Term) -> bool:
        return self.key(-1) == ","

    def when_case(self, term: Term) -> bool:
        """Whether a capital is the word's own; where any word has one, a noun for a person has to follow."""
        if self.case != "lower" and (self.at_start or self.case == "upper"):
            return self.near(1).lower() in self.known.people
        return self.case != "lower"

    def when_before_person(self, term: Term) -> bool:
        known, j, steps, coordinated, last = self.known, self.end, 0, False, ""
        while j < len(self.tokens) and steps < 4:
            word, j = _hyphenated(self.tokens, j)
            if word in known.modifiers or word in known.adjectives:
                steps += 1
            elif word in known.plural or (word in known.singular and not coordinated):
                return True
            elif word in _AND and not coordinated:
                following = _hyphenated(self.tokens, j)[0] if j < len(self.tokens) else ""
                if following not in known.adjectives:
                    return last in known.singular
                coordinated = True
            elif word.endswith("-year-old") and j < len(self.tokens) and self.tokens[j].key in known.people:
                return True
            else:  # a white American., a black teenager
                return last in known.singular and (not word[0].isalnum() or closes(word))
            last = word
        return last in known.singular and j == len(self.tokens)

    def _leads_to_person(self) -> bool:
        """Whether the noun phrase that goes on after a match names a person (*a Polish crane driver*)."""
        adjectives = True  # so far: *and* goes on with the phrase (*Kenyan and Swedish captains*)
        for token in self.tokens[self.end : self.end + 5]:
            word = token.key
            if word in self.known.people or word in _HELD:
                return True
            if word == "-" or (word in _AND and adjectives):
                continue
            if not word.isalpha() or word in FUNCTION_WORDS:
                return False
            adjectives = adjectives and word in self.known.adjectives
        return False

    def when_as_noun(self, term: Term) -> bool:
        after = self.key(1)
        if after and after not in FUNCTION_WORDS and after[0].isalnum():
            return False
        before, further = self.key(-1), self.key(-2)
        if before in DETERMINERS:
            return True
        return further in DETERMINERS and before not in FUNCTION_WORDS and before.isalpha()

    def when_as_adjective(self, term: Term) -> bool:
        following, before = self.near(1), self.key(-1)
        if before in _ADVERBS:
            before = self.key(-2)
        low = following.lower()
        if not following or (low in FUNCTION_WORDS and low not in _AND):
            return before in BE_FORMS or (before == "s" and self.key(-2) == "'")
        if term.attribute == "nationality":
            return self._leads_to_person()  # not *Cuban coffee*
        if low in _AND:
            return self.key(2) in self.known.adjectives
        if self.case == "lower" and term.text[0].isupper():  # without capitals no title can be told
            return self.when_before_person(term)
        return following[0].islower() or low in self.known.people or self.case == "upper"


def _capital(word: str) -> bool:
    """Whether a word has a capital and is no function word."""
    return word[:1].isupper() and word.lower() not in FUNCTION_WORDS


def _is_name(word: str) -> bool:
    return len(word) > 1 and word.isalpha() and _capital(word)


def _hyphenated(tokens: list[Word], j: int) -> tuple[str, int]:
    """Return the token at ``j`` with what hyphens join to it, and the number of the token after."""
    word, end = tokens[j].key, tokens[j].end
    j += 1
    while j + 1 < len(tokens) and tokens[j].key == "-" and tokens[j].start == end == tokens[j + 1].start - 1:
        word, end = f"{word}-{tokens[j + 1].key}", tokens[j + 1].end
        j += 2
    return word, j
