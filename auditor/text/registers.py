"""How a text is written: words, sentences, ease of reading, and words that hedge, that act, that are able.

The lists (``auditor/embedded/english.yaml``) hold stems, and a word counts where it begins with one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from auditor.text.english import word_list

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_SENTENCE = re.compile(r"[.!?]+(?:\s|$)")
_VOWELS = re.compile(r"[aeiouy]+")

HEDGES = word_list("hedges")
AGENCY = word_list("agency")
COMPETENCE = word_list("competence")


def words(text: str) -> list[str]:
    """The words of a text in lower case; figures and signs are none.

    >>> words("She can't, 3 times.")
    ['she', "can't", 'times']
    """
    return [word.replace("\u2019", "'") for word in _WORD.findall(text.lower())]


def syllables(word: str) -> int:
    """About how many syllables a word has: groups of vowels, a silent e at the end left out.

    >>> [syllables(word) for word in ("care", "table", "physical", "a")]
    [1, 2, 3, 1]
    """
    groups = len(_VOWELS.findall(word))
    return max(1, groups - (word.endswith("e") and not word.endswith("le") and groups > 1))


def reading_ease(text: str) -> float:
    """Flesch's reading ease: about 100 is very easy, 0 very hard.

    References
    ----------
    R. Flesch, A new readability yardstick, J. Appl. Psychol. 32 (1948).
    """
    said = words(text)
    if not said:
        return 0.0
    sentences = max(1, len(_SENTENCE.findall(text)))
    return 206.835 - 1.015 * len(said) / sentences - 84.6 * sum(map(syllables, said)) / len(said)


def share(text: str, stems: Iterable[str]) -> float:
    """Words of 100 that begin with one of ``stems``."""
    said, wanted = words(text), tuple(stems)
    return 100.0 * sum(word.startswith(wanted) for word in said) / len(said) if said else 0.0


FIGURES: Mapping[str, tuple[str, Callable[[str], float]]] = {
    "length": ("words", lambda text: float(len(words(text)))),
    "reading ease": ("points of reading ease", reading_ease),
    "hedging": ("hedging words of 100", lambda text: share(text, HEDGES)),
    "agency": ("words of agency of 100", lambda text: share(text, AGENCY)),
    "competence": ("words of competence of 100", lambda text: share(text, COMPETENCE)),
}
