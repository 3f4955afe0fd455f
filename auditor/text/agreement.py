"""Closed rules for the agreement errors that careless substitution makes; the record has their rate in variants.

No parser and no model: adjacent words and closed word lists. The rules do not look for all errors of English; what
they do not list they do not see.

========================  ==========================================================================
rule                      flags, for example
========================  ==========================================================================
determiner and noun       *a men*, *these young man*, *every women*, *a people*
subject and verb          *he are*, *they was*, *she have*, *they wants*, *The women is*
a or an                   *a Asian*, *an woman* (by sound; acronyms and *an historic* are left alone)
pronoun case              *to she*, *Him is*, *him wife*, *she wife*, *hers Asian*, *their is*
repeated word             *the the*, *woman woman*, *women's's* (not *had had*, *that that*)
========================  ==========================================================================

False alarms, measured on the 2,001 sentences of the UD English-EWT development set (web text, with the
errors its authors made): 6 sentences, 0.3 %, have a problem by these rules, and most of the six are errors. A
sentence that begins in lower case is no problem.

Misses: of the single swaps in the texts of the training set, the rules see 75 % of her→hers, 60 % of
them→they, 56 % of him→he, 27 % of he→him, 23 % of his→him and 42 % of man→men (some of these swaps make good
English). The rate is a floor on what is wrong, never a proof that nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from auditor.text.english import FUNCTION_WORDS, article_for, word_list, word_set
from auditor.text.split import sentences, strip_breaks

_TOKEN = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*|\d[\w.,%-]*|[^\w\s]")

_NATION = re.compile(r"[A-Z][a-z]{2,}ans")
_EITHER_ARTICLE = ("histor", "hotel", "hero", "horrif", "habitual", "hallucin", "hilar", "hyster", "herb", "hispanic")
_NAMES = word_set(
    """absolute adjectives after_no_possessive after_object base clause complements finite giving inflected letter_a
    loosens many_of never_owned no_third_person owned agree_past plural prepositions repeats singular wishes"""
)
_LISTS = {name: word_list(name) for name in _NAMES}
_ONE = word_set("a an this every each another")
_MANY = word_set("these those many several few two three four five six seven eight nine ten")
_SUBJECTS, _OBJECTS = word_set("he she they we"), word_set("him them me us")
_SINGULAR, _PLURAL, _ADJECTIVES = _LISTS["singular"], _LISTS["plural"], _LISTS["adjectives"]
_FINITE, _PAST, _OWNED = _LISTS["finite"], _LISTS["agree_past"], _LISTS["owned"]
_OWNED_BY_THIRD = _OWNED - word_set("own face voice mother father")
_NO_OBJECT = FUNCTION_WORDS | _FINITE | _PAST | word_set("say says am be been ain't did'nt")
_NOT_OWNED = FUNCTION_WORDS | _FINITE | _PAST | _LISTS["never_owned"]
KNOWN_CHARS = 1000  # longer sentences are looked at anew each time


class _Token(NamedTuple):
    text: str
    low: str
    touches: bool  # nothing but one space, or nothing at all, before it


class Problem(NamedTuple):
    """One agreement problem: the rule and the words that break it."""

    rule: str
    words: str


def problems(text: str) -> list[str]:
    """List the agreement problems of a text.

    Parameters
    ----------
    text : str
        English text; sentences are looked at one by one.

    Returns
    -------
    list of str
        ``rule: 'words'``, in the order of the text; empty where no rule applies.

    Examples
    --------
    >>> problems("A men came. They was late.")
    ["determiner and noun: 'A men'", "subject and verb: 'They was'"]
    >>> problems("She had had a European car.")
    []
    """
    return [f"{problem.rule}: {problem.words!r}" for problem in find(text)]


def find(text: str) -> list[Problem]:
    """List the agreement problems of a text as values, see `problems`."""
    out: list[Problem] = []
    text = strip_breaks(text)
    for start, end in sentences(text):
        read = _known if end - start <= KNOWN_CHARS else _broken
        out.extend(read(text[start:end]))
    return out


def _broken(sentence: str) -> tuple[Problem, ...]:
    tokens = _tokens(sentence)
    broken = ((name, rule(tokens, i)) for i in range(len(tokens)) for name, rule in _RULES.items())
    return tuple(Problem(name, words) for name, words in broken if words)


# A variant shares nearly all of its sentences with its original.
_known = lru_cache(maxsize=1 << 15)(_broken)


def _tokens(sentence: str) -> list[_Token]:
    tokens: list[_Token] = []
    last = 0
    for match in _TOKEN.finditer(sentence):
        text = match[0].replace("’", "'")
        tokens.append(_Token(text, text.lower(), match.start() - last <= 1 and last > 0))
        last = match.end()
    return tokens


def _low(tokens: Sequence[_Token], i: int) -> str:
    """Give the lower-case token at ``i``, "" outside the sentence."""
    return tokens[i].low if 0 <= i < len(tokens) else ""


def _span(tokens: Sequence[_Token], first: int, last: int) -> str:
    return " ".join(token.text for token in tokens[first : last + 1])


def _is_plural(token: _Token) -> bool:
    return token.low in _PLURAL or _NATION.fullmatch(token.text) is not None


def _noun_at(tokens: Sequence[_Token], i: int) -> int:
    """Find the person noun at ``i`` or after two adjectives at most: its index, -1 where none is."""
    for j in range(i, min(i + 3, len(tokens))):
        if not tokens[j].touches:
            return -1
        if tokens[j].low in _SINGULAR or _is_plural(tokens[j]):
            return j
        if tokens[j].low not in _ADJECTIVES:
            return -1
    return -1


def _determiner(tokens: Sequence[_Token], i: int) -> str:
    """Flag a determiner and a person noun of different number."""
    low = tokens[i].low
    if low == "most" and _low(tokens, i + 1) in _SINGULAR and _low(tokens, i - 1) != "the":
        return _span(tokens, i, i + 1)
    if low not in _ONE and low not in _MANY:
        return ""
    j = _noun_at(tokens, i + 1)
    if j < 0 and low in ("a", "an") and _low(tokens, i + 2) in _PLURAL:  # one adjective that is not listed
        between, after = _low(tokens, i + 1), _low(tokens, i + 3)
        if between.isalpha() and between not in _LISTS["many_of"] and (after in FUNCTION_WORDS or not after.isalpha()):
            j = i + 2
    if j < 0:
        return ""
    following = _low(tokens, j + 1)
    if following in _SINGULAR or following in _PLURAL or following == "-":  # a people person, two man teams
        return ""
    wrong = _is_plural(tokens[j]) if low in _ONE else tokens[j].low in _SINGULAR
    return _span(tokens, i, j) if wrong else ""


def _subject_verb(tokens: Sequence[_Token], i: int) -> str:
    """Flag a pronoun, or a noun phrase that opens the clause, with a verb of the other number."""
    low, verb = tokens[i].low, _low(tokens, i + 1)
    if low in ("he", "she") or low in ("they", "we"):
        before = [_low(tokens, k) for k in range(max(0, i - 6), i)]
        joined = i >= 2 and tokens[i - 1].low in ("and", "or", "nor", "&", "/") and tokens[i - 2].low.isalpha()
        if joined or not verb or not tokens[i + 1].touches:
            return ""
        wrong = False
        if low in ("they", "we"):
            wrong = verb in _LISTS["inflected"] or _third_person(verb)
        elif verb in _LISTS["base"]:
            wrong = not _LISTS["loosens"].intersection(before[-3:])
        elif verb in ("were", "weren't"):
            wrong = not _LISTS["wishes"].intersection(before)
        return _span(tokens, i, i + 1) if wrong else ""
    if low in ("the", "these", "those", "this") and (i == 0 or tokens[i - 1].low in _LISTS["clause"]):
        j = _noun_at(tokens, i + 1)
        if j < 0 or j + 1 >= len(tokens):
            return ""
        wrong_verbs = ("is", "was", "has") if _is_plural(tokens[j]) else ("are", "were", "have")
        return _span(tokens, i, j + 1) if tokens[j + 1].low in wrong_verbs else ""
    return ""


def _third_person(word: str) -> bool:
    """Whether the word after "they" has the form of a verb in the third person singular."""
    return (
        len(word) > 3
        and word.isalpha()
        and word.endswith("s")
        and not word.endswith(("ss", "us"))
        and word not in FUNCTION_WORDS
        and word not in _LISTS["no_third_person"]
    )


def _article(tokens: Sequence[_Token], i: int) -> str:
    """Flag "a" before a vowel sound and "an" before a consonant sound."""
    low = tokens[i].low
    if low not in ("a", "an") or i + 1 >= len(tokens) or not tokens[i + 1].touches:
        return ""
    word = tokens[i + 1]
    if low == "a" and ((tokens[i].text == "A" and i) or word.low in _LISTS["letter_a"]):  # the letter
        return ""
    if not word.text[0].isalnum() or (word.text.isupper() and word.text.isalpha()):
        return ""
    if word.low.startswith(_EITHER_ARTICLE):
        return ""
    return _span(tokens, i, i + 1) if article_for(word.text) != low else ""


def _pronoun(tokens: Sequence[_Token], i: int) -> str:
    """Flag a pronoun in the wrong case for its neighbours."""
    low, before, after = tokens[i].low, _low(tokens, i - 1), _low(tokens, i + 1)
    joined = i + 1 < len(tokens) and tokens[i + 1].touches
    wrong_after = False
    if low in _SUBJECTS:
        if _in_object_place(tokens, i):
            return _span(tokens, i - 1, i)
        wrong_after = after in _OBJECTS or (low in ("he", "she") and after in _OWNED_BY_THIRD)
    elif low in _OBJECTS or low == "her":
        verbs = _FINITE if low == "her" else _FINITE | _PAST
        opens = _LISTS["clause"] if low in ("me", "us") else _LISTS["complements"]
        if after in verbs and (i == 0 or before in opens):
            return _span(tokens, i, i + 1)
        owned = low in ("him", "them") and before in _LISTS["prepositions"] and _is_content(tokens, i + 1)
        wrong_after = low not in ("her", "us") and (after in _OWNED or owned)
    elif low in ("my", "our", "their"):
        wrong_after = after in _LISTS["after_no_possessive"]
    elif low == "his":
        wrong_after = after in ("a", "an", "the")
    elif low in _LISTS["absolute"] and before != "of":
        owned = after in _SINGULAR | _PLURAL | _ADJECTIVES | _OWNED
        wrong_after = owned or (low in ("hers", "theirs") and _is_content(tokens, i + 1))
    return _span(tokens, i, i + 1) if wrong_after and joined else ""


def _in_object_place(tokens: Sequence[_Token], i: int) -> bool:
    """Whether the subject pronoun at ``i`` stands where only an object can."""
    before, after = _low(tokens, i - 1), _low(tokens, i + 1)
    if i == 0 or not tokens[i].touches or not before.isalpha():
        return False
    if before in _LISTS["prepositions"]:
        return after not in _FINITE
    if before in _LISTS["giving"] and after in FUNCTION_WORDS | {"", ".", ",", "!", "?"}:
        return after not in _FINITE | {"had", "have"}
    return before not in _NO_OBJECT and after in _LISTS["after_object"]


def _is_content(tokens: Sequence[_Token], i: int) -> bool:
    """Whether a lower-case word that reads as a noun or adjective follows directly."""
    if i >= len(tokens) or not tokens[i].touches:
        return False
    word = tokens[i].text
    if not word.isalpha() or not word.islower() or word in _NOT_OWNED:
        return False
    return not word.endswith(("ly", "ing", "ed", "en", "wards"))


def _repeated(tokens: Sequence[_Token], i: int) -> str:
    """Flag a function or person word that stands twice, and a possessive ending that does."""
    low = tokens[i].low
    if low.endswith("'s's"):
        return tokens[i].text
    if i == 0 or not tokens[i].touches or low != tokens[i - 1].low or low == _low(tokens, i + 1):
        return ""
    if i >= 2 and tokens[i - 2].low == low:
        return ""
    if (
        low in _LISTS["repeats"]
        or low in _SINGULAR
        or low in _PLURAL
        or low in _ADJECTIVES - {"big", "great", "good", "bad"}
    ):
        return _span(tokens, i - 1, i)
    return ""


_RULES: Mapping[str, Callable[[Sequence[_Token], int], str]] = {
    "determiner and noun": _determiner,
    "subject and verb": _subject_verb,
    "a or an": _article,
    "pronoun case": _pronoun,
    "repeated word": _repeated,
}
