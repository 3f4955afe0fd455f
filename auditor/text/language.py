"""Whether a text looks like English: by its script and its function words. Cheap and rough, for a warning only."""

from __future__ import annotations

import re
import unicodedata

from auditor.text.english import BE_FORMS, FUNCTION_WORDS

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
FEW = 8  # words; a text of so many without one English function word is taken for another language
READ = 2000  # characters of a text that are looked at


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_INFORMAL = _set(
    """u ur r im ive id ill dont cant wont didnt doesnt isnt wasnt thats whats theres youre theyre gonna wanna
    gotta lol omg yeah ok okay got get go please thanks too really ever one two"""
)
_ENGLISH = FUNCTION_WORDS | BE_FORMS | _INFORMAL
# Common function words of languages in Latin letters: German and Dutch, French, then Spanish, Portuguese and Italian.
_FOREIGN = _set(
    """mein meine der das und ist nicht ein eine einen einem einer ich sie wir ihr mit auf für von zu dem des sich
    auch sehr sind wurde aber wenn wie dass oder beim vom zum zur het een niet zijn voor maar ook naar deze
    mon ma mes le la les un une et est pas je il elle nous vous ils elles dans sur avec que qui ce cette ces mais
    très sont été du au aux ne se sa ses
    el los las y una unos unas es mi del por para con su sus muy pero más como está este esta fue
    lo os uma um não muito ele ela eles sem mas foi são da dos das na nos
    di che non sono è gli della delle nel molto anche questo questa più lui lei"""
)
_OTHER = _FOREIGN - _ENGLISH


def looks_english(text: str) -> bool:
    """Whether ``text`` looks like English, or is too short to tell.

    Half of its letters are Latin, or more; it holds no two function words of other European languages, or at least as
    many English ones; and if it has `FEW` words or more, one of them is an English function word.

    Examples
    --------
    >>> looks_english("omg she is sooo good"), looks_english("Die Ärztin ist sehr nett."), looks_english("医生很好。")
    (True, False, False)
    """
    text = text[:READ]
    if not text.isascii() and not _latin(text):
        return False
    words = [word.lower().replace("’", "'") for word in _WORD.findall(text)]
    distinct = set(words)  # a name may hold the same particle twice
    english = sum(_is_english(word) for word in distinct)
    other = len(distinct & _OTHER)
    if other > max(english, 1):
        return False
    return english > 0 or len(words) < FEW


def _is_english(word: str) -> bool:
    """Whether a word is an English function word; of a contraction, its first part decides."""
    return word in _ENGLISH or ("'" in word and word.partition("'")[0].removesuffix("n") in _ENGLISH)


def _latin(text: str) -> bool:
    """Whether at least half of the letters are Latin ones."""
    letters = [c for c in text if c.isalpha()]
    latin = sum(c.isascii() or unicodedata.name(c, "").startswith("LATIN") for c in letters)
    return 2 * latin >= len(letters)
