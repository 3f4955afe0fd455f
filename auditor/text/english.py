"""Small facts about written English that suites and validity checks share.

Rules and closed word lists only: no model, no state. Offsets are characters of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from auditor.core import reading

Case = Literal["lower", "title", "upper", "mixed"]

_TOKEN = re.compile(r"\w+|[^\w\s]")
# Addresses and markup: a word inside them is no word of the sentence.
_OPAQUE = re.compile(r"https?://\S+|www\.\S+|[\w.+-]+@[\w-]+\.[\w.]+|</?[A-Za-z][^<>]*>")
_OPENERS = "\"'“‘([{*_«"


def word_set(text: str) -> frozenset[str]:
    """Return the words of ``text``, which white space separates."""
    return frozenset(text.split())


@lru_cache(maxsize=1)
def _lists() -> dict[str, str]:
    return msgspec.convert(reading.load_yaml(reading.shipped("embedded", "english.yaml")), dict[str, str])


def word_list(name: str) -> frozenset[str]:
    """Return one of the closed lists of ``auditor/embedded/english.yaml``."""
    return word_set(_lists()[name])


BE_FORMS = word_set("am is are was were be been being 's 're 'm")
FUNCTION_WORDS = word_list("function_words")
ABBREVIATIONS = word_list("abbreviations")

_SPELLED_AN = word_list("spelled_an")
_SPELLED_A = word_list("spelled_a")
_SILENT_H = ("hour", "honest", "honor", "honour", "heir", "herb")
_YOU_OR_WONE = re.compile(
    r"(eu|ew|uni(?!n|m|d(?!i)|ro)|unanim|u[bt]iq|util|utop|us(e|u|a[gb])|ur(in|an|ol|ug)|uk(r|$|u)|ugan|utah|ubu"
    r"|one(?!r)|once|ouija|uvul|uter)"
)
_VOWEL_DIGITS = re.compile(r"(8|11(?!\d)|18(?!\d)|11\d{3}(?!\d)|18\d{3}(?!\d))")


class Word(NamedTuple):
    """One token: ``text[start:end]``, and its lower-case form with a straight apostrophe."""

    start: int
    end: int
    key: str


def words(text: str) -> list[Word]:
    """Tokens of ``text`` in order: runs of word characters, and single other characters.

    Spans inside addresses and markup tags are left out. White space is not a token.

    >>> [w.key for w in words("She's in, <b>no?")]
    ['she', "'", 's', 'in', ',', 'no', '?']
    """
    out: list[Word] = []
    at = 0
    for start, end in [*opaque_spans(text), (len(text), len(text))]:
        out += [Word(m.start(), m.end(), _key(m[0])) for m in _TOKEN.finditer(text, at, start)]
        at = end
    return out


def keys(text: str) -> list[str]:
    """Return only the keys of `words`, in less time."""
    if opaque_spans(text):
        return [word.key for word in words(text)]
    return _TOKEN.findall(text.replace("’", "'").lower())


def opaque_spans(text: str) -> list[tuple[int, int]]:
    """Spans of web addresses, mail addresses and markup tags, in order."""
    if "<" not in text and "@" not in text and "://" not in text and "www." not in text:
        return []
    return [m.span() for m in _OPAQUE.finditer(text)]


def _key(word: str) -> str:
    return "'" if word == "’" else word.lower()


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` is a word of its own, no part of a longer or hyphenated one.

    A dash of two hyphens separates words; one hyphen between word characters joins them.

    >>> stands_alone("a man-made lake", 2, 5), stands_alone("a man--tall", 2, 5)
    (False, True)
    """
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    if before.isalnum() or before in "_@#" or after.isalnum() or after == "_" or unicodedata.combining(after):
        return False
    if after in "-‐‑" and end + 1 < len(text) and text[end + 1].isalnum():
        return False
    return not (before in "-‐‑" and start > 1 and text[start - 2].isalnum())


@lru_cache(maxsize=8192)
def case_of(word: str) -> Case:
    """How ``word`` is written: lower, title (first letter of each part), upper, or mixed (iPhone)."""
    letters = [c for c in word if c.isalpha()]
    if not letters or all(c.islower() or c.lower() == c.upper() for c in letters):
        return "lower"
    if len(letters) > 1 and not any(c.islower() for c in letters):
        return "upper"
    if letters[0].isupper() and not any(c.isupper() for c in letters[1:]):
        return "title"
    parts = re.findall(r"[^\W\d_]+", word)
    return "title" if all(p[0].isupper() and not any(c.isupper() for c in p[1:]) for p in parts) else "mixed"


def capitalise(word: str) -> str:
    """``word`` with its first character in upper case and the rest as it is."""
    return word[:1].upper() + word[1:]


def match_case(model: str, word: str) -> str:
    """``word`` written as ``model`` is: UPPER, Title (first letter only), lower; mixed leaves ``word`` alone.

    A lower-case model leaves the capitals that ``word`` has of its own (American, Mx.).

    >>> match_case("Woman", "trans man"), match_case("WOMAN", "man"), match_case("iPhone", "man")
    ('Trans man', 'MAN', 'man')
    """
    case = case_of(model)
    if case == "upper":
        return word.upper()
    return capitalise(word) if case == "title" else word


@lru_cache(maxsize=8192)
def article_for(word: str) -> Literal["a", "an"]:
    """Return the indefinite article before ``word``, by the sound of its beginning.

    Acronyms that are spelled out count by the name of their first letter (an MBA, a UFO).
    >>> [article_for(w) for w in ("hour", "European", "university", "MBA", "one", "umbrella", "8-year-old")]
    ['an', 'a', 'a', 'an', 'a', 'an', 'an']
    """
    token = re.search(r"\w+", word)
    if token is None:
        return "a"
    first, low = token[0], token[0].lower()
    if first[0].isdigit():
        return "an" if _VOWEL_DIGITS.match(first) else "a"
    if first.isupper():
        if low in _SPELLED_A:
            return "a"
        if low in _SPELLED_AN:
            return "an"
        if len(low) == 1 or not re.search(r"[aeiouy]", low):
            return "an" if low[0] in "aefhilmnorsx" else "a"
    if low.startswith(_SILENT_H):
        return "an"
    if _YOU_OR_WONE.match(low):
        return "a"
    plain = unicodedata.normalize("NFD", low[0])[0]
    return "an" if plain in "aeiou" else "a"


def starts_sentence(text: str, start: int) -> bool:
    """Whether the word at ``start`` opens a sentence, a line or a quotation after a full stop, by punctuation alone."""
    at = start
    while at and (text[at - 1] in _OPENERS or text[at - 1].isspace()):
        at -= 1
        if text[at] == "\n":
            return True
    if not at or text[at - 1] in "!?:>•|…–—":
        return True
    if text[at - 1] != ".":
        return text[at - 2 : at] == "--"
    token = re.search(r"\w+$", text[max(0, at - 12) : at - 1])
    return not (token and token[0].lower() in ABBREVIATIONS)


_DOUBLED_ES = re.compile(r"(ss|sh|ch|x|zz|[^aeiou]o)es$")
_THIRD_PERSON = {
    "is": "are", "was": "were", "has": "have", "does": "do", "goes": "go", "aches": "ache", "focuses": "focus",
    "quizzes": "quiz", "lies": "lie", "dies": "die", "ties": "tie", "vies": "vie", "shoes": "shoe", "biases": "bias",
}  # fmt: skip
_NO_VERB = word_list("no_verb")


def plural_verb(verb: str) -> str | None:
    """Return the form of a third-person singular ``verb`` that goes with "they", or None.

    >>> [plural_verb(v) for v in ("was", "tries", "watches", "loves", "always", "ran")]
    ['were', 'try', 'watch', 'love', None, None]
    """
    low = verb.lower()
    if low in _THIRD_PERSON:
        return _THIRD_PERSON[low]
    if low in _NO_VERB or not low.endswith("s") or low.endswith(("ss", "us", "ous")) or len(low) < 4:
        return None
    if low.endswith("ies"):
        return low[:-3] + "y"
    if _DOUBLED_ES.search(low):
        return low[:-2]
    return low[:-1]


def plural_of(noun: str) -> str:
    """The regular plural of a ``noun`` in lower case.

    >>> [plural_of(noun) for noun in ("lady", "boy", "coach", "nurse")]
    ['ladies', 'boys', 'coaches', 'nurses']
    """
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")


_TRADE = re.compile(r"\w\w(?:[^e]er|or|ist|eer|ess|man|woman|person|[^l]ian)$")
_NO_TRADE = word_list("no_trade")


def ends_as_trade(noun: str) -> bool:
    """Whether ``noun``, in the singular, ends as the names of trades do (a roofer, a flutist), and is no known thing.

    >>> [ends_as_trade(noun) for noun in ("roofer", "ledger", "archivist", "chairwoman")]
    [True, False, True, True]
    """
    return noun not in _NO_TRADE and _TRADE.search(noun) is not None


FEW = 8  # words; a text of so many without one English function word is taken for another language
READ = 2000  # characters of a text by which its language is told
_SPOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_ENGLISH = FUNCTION_WORDS | BE_FORMS | word_list("informal")
_OTHER = word_list("foreign") - _ENGLISH


def looks_english(text: str) -> bool:
    """Whether ``text`` looks like English, or is too short to tell.

    Half of its letters are Latin, or more; it holds no two function words of other European languages, or at least as
    many English ones; and if it has `FEW` words or more, one of them is an English function word.
    >>> looks_english("omg she is sooo good"), looks_english("Die Ärztin ist sehr nett."), looks_english("医生很好。")
    (True, False, False)
    """
    text = text[:READ]
    if not text.isascii() and not _latin(text):
        return False
    words = [word.lower().replace("’", "'") for word in _SPOKEN.findall(text)]
    distinct = set(words)  # a name may hold the same particle twice
    english = english_words(distinct)
    other = len(distinct & _OTHER)
    if other > max(english, 1):
        return False
    return english > 0 or len(words) < FEW


def english_words(words: Iterable[str]) -> int:
    """Count the English function words among ``words``; of a contraction, its first part decides."""
    return sum(w in _ENGLISH or ("'" in w and w.partition("'")[0].removesuffix("n") in _ENGLISH) for w in words)


def _latin(text: str) -> bool:
    """Whether at least half of the letters are Latin ones."""
    letters = [c for c in text if c.isalpha()]
    latin = sum(c.isascii() or unicodedata.name(c, "").startswith("LATIN") for c in letters)
    return 2 * latin >= len(letters)


_PLAIN = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")


def plain_words(text: str) -> list[str]:
    """Return the words of a text in lower case, hyphens and apostrophes in them; figures and signs are none."""
    return [word.replace("\u2019", "'") for word in _PLAIN.findall(text.lower())]


def share(text: str, stems: Iterable[str]) -> float:
    """Words of 100 that begin with one of ``stems``."""
    said, wanted = plain_words(text), tuple(stems)
    return 100.0 * sum(word.startswith(wanted) for word in said) / len(said) if said else 0.0


FIGURES: Mapping[str, tuple[str, Callable[[str], float]]] = {
    "length": ("words", lambda text: float(len(plain_words(text)))),
    "hedging": ("hedging words of 100", lambda text: share(text, word_list("hedges"))),
    "agency": ("words of agency of 100", lambda text: share(text, word_list("agency"))),
    "competence": ("words of competence of 100", lambda text: share(text, word_list("competence"))),
}
