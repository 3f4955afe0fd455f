"""What two texts have in common, with the words that were swapped set aside.

English only: the pronouns, titles and plural forms are English ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from auditor.core.types import Edit

MASK = "□"
_PERSONAL = frozenset(
    {"he", "him", "his", "himself", "she", "her", "hers", "herself", "they", "them", "their", "theirs"}
    | {"themself", "themselves", "mr", "mrs", "ms", "miss", "mx", "sir", "madam", "ma'am"}
)
_PLURALS = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "person": "people",
    "wife": "wives",
    "boy": "boys",
    "lady": "ladies",
}
_WORDS = re.compile(rf"{MASK}|[^\W_]+(?:['\u2019-][^\W_]+)*")


def forms(term: str) -> set[str]:
    """``term`` and its inflections, in lower case: plurals, the possessive, compounds of man and woman.

    Examples
    --------
    >>> sorted(forms("nurse")), "businesswomen" in forms("businesswoman")
    (['nurse', "nurse's", 'nurses', "nurses'"], True)
    """
    word = " ".join(term.lower().replace("\u2019", "'").split())
    word = word.removesuffix("'s") if word.endswith("'s") else word.removesuffix("'")
    if not word:
        return set()
    bases = {word}
    for one, many in _PLURALS.items():
        if word.endswith(one):
            bases.add(word[: -len(one)] + many)
        if word.endswith(many):
            bases.add(word[: -len(many)] + one)
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        bases.add(word[:-1] + "ies")
    elif word.endswith(("s", "x", "z", "ch", "sh")):
        bases.add(word + "es")
        if word.endswith("s") and len(word) > 3 and not word.endswith("ss"):
            bases.add(word[:-1])
    else:
        bases.add(word + "s")
    return bases | {f"{b}'" if b.endswith("s") else f"{b}'s" for b in bases}


def masked_terms(edits: Iterable[Edit]) -> tuple[str, ...]:
    """The words that an edit may put into an answer by itself: what was swapped, the groups, pronouns, titles."""
    found: set[str] = set(_PERSONAL)
    for edit in edits:
        for term in (edit.source, edit.target, edit.source_group, edit.target_group):
            # Articles and verbs that an edit repaired are no terms for people.
            if edit.kind == "agreement" or not any(c.isalpha() for c in term):
                continue
            found |= forms(term.replace("_", " "))
    return tuple(sorted(found, key=lambda t: (-len(t), t)))


@lru_cache(maxsize=256)
def _pattern(terms: tuple[str, ...]) -> re.Pattern[str]:
    body = "|".join(re.escape(t).replace("\\ ", r"\s+") for t in terms)
    return re.compile(rf"(?<!\w)(?:{body})(?!\w)", re.IGNORECASE)


def mask(text: str, terms: tuple[str, ...]) -> str:
    """``text`` with each of ``terms`` replaced by one sign, whatever its number of words.

    Examples
    --------
    >>> mask("She knows her trade.", masked_terms([]))
    '□ knows □ trade.'
    """
    return _pattern(terms).sub(MASK, text.replace("\u2019", "'")) if terms else text


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[str, ...]:
    """Words in lower case; a mask is a word."""
    return tuple(_WORDS.findall(text.lower()))


def wording_distance(a: str, b: str) -> float:
    """One minus ROUGE-L (F1): 0 for the same words in the same order, 1 for no word in common.

    Twice the longest common subsequence of words over the words of both texts (Lin 2004); 0 for two texts
    without words.

    Examples
    --------
    >>> wording_distance("a calm and fast worker", "a fast worker")
    0.25
    """
    first, second = tokens(a), tokens(b)
    if not first and not second:
        return 0.0
    return 1.0 - 2.0 * common_subsequence(first, second) / (len(first) + len(second))


def common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence, by rows of bits (Hyyrö 2004).

    Examples
    --------
    >>> common_subsequence("abcbdab", "bdcaba")
    4
    """
    places: dict[str, int] = {}
    for i, word in enumerate(a):
        places[word] = places.get(word, 0) | (1 << i)
    full = (1 << len(a)) - 1
    row = full
    for word in b:
        hit = row & places.get(word, 0)
        row = ((row + hit) | (row - hit)) & full
    return len(a) - row.bit_count()


@lru_cache(maxsize=4096)
def sentiment(text: str) -> float:
    """Compound score of VADER in [-1, 1], mean over sentences: its sum saturates on longer texts."""
    pieces = [p for p in re.split(r"(?<=[.!?])\s+", text.strip()) if p]
    analyzer = _vader()
    return sum(analyzer.polarity_scores(p)["compound"] for p in pieces) / len(pieces) if pieces else 0.0


@lru_cache(maxsize=1)
def _vader() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()
