"""Small facts about written English that suites and validity checks share.

Rules and closed word lists only: no model, no state. Offsets are characters of the text that was given.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal, NamedTuple

Case = Literal["lower", "title", "upper", "mixed"]

_TOKEN = re.compile(r"\w+|[^\w\s]")
# Addresses and markup: a word inside them is no word of the sentence.
_OPAQUE = re.compile(r"https?://\S+|www\.\S+|[\w.+-]+@[\w-]+\.[\w.]+|</?[A-Za-z][^<>]*>")
_OPENERS = "\"'“‘([{*_«"


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


BE_FORMS = _set("am is are was were be been being 's 're 'm")
FUNCTION_WORDS = _set(
    """a about above across after again against all along also although am an and another any anyone
    anything are around as at away back be because been before behind being below beneath beside besides
    between beyond both but by can could did do does doing down during each either else enough even ever
    every everyone everything except few for from had has have having he hence her here hers herself him
    himself his how however i if in inside instead into is it its itself just least less like many may
    maybe me mere might mine more most much must my myself near neither never next no nobody none nor
    not nothing now of off on once one only onto or other others our ours ourselves out outside over own
    perhaps quite rather really same shall she should since so some somehow someone something sometimes
    soon still such than that the their theirs them themselves then there therefore these they this
    those though through throughout till to today together tomorrow tonight too toward towards under
    unless until unto up upon us very was we were what whatever when where whereas whether which while
    who whoever whom whose why will with within without would yesterday yet you your yours yourself
    again alone anyway afterwards meanwhile"""
)
ABBREVIATIONS = _set("mr mrs ms mx dr prof st sr jr rev capt lt sgt col gen gov sen rep vs")

_SPELLED_AN = _set(
    """mba fbi hiv mri mit nba nfl nhl suv lgbt lgbtq mvp mp rn hr hmo ngo xml html http sms ssn lpn mfa
    msc ma ms md emt rpg sat llm ai lsat ibm aarp ada atm ama abc acl icu irs it aka faq npr nypd lapd"""
)
_SPELLED_A = _set("uk us usa eu un ufo usb uae usc ucla uc url uv ux ui")
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
    opaque = opaque_spans(text)
    if not opaque:
        return [Word(m.start(), m.end(), _key(m[0])) for m in _TOKEN.finditer(text)]
    out: list[Word] = []
    at = 0
    for start, end in [*opaque, (len(text), len(text))]:
        out += [Word(m.start(), m.end(), _key(m[0])) for m in _TOKEN.finditer(text, at, start)]
        at = end
    return out


def keys(text: str) -> list[str]:
    """Only the keys of `words`, in less time.

    >>> keys("She's in.")
    ['she', "'", 's', 'in', '.']
    """
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

    Examples
    --------
    >>> [article_for(w) for w in ("hour", "European", "university", "MBA", "one", "umbrella", "8-year-old")]
    ['an', 'a', 'a', 'an', 'a', 'an', 'an']
    """
    found = re.search(r"\w+", word)
    if found is None:
        return "a"
    first, low = found[0], found[0].lower()
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
    """Whether the word at ``start`` opens a sentence, a line or a quotation after a full stop.

    Only punctuation is read, so a word after an abbreviation's full stop (Mr. Black) is told apart by list.
    """
    at = start
    while at and (text[at - 1] in _OPENERS or text[at - 1].isspace()):
        at -= 1
        if text[at] == "\n":
            return True
    if not at or text[at - 1] in "!?:>•|…–—":
        return True
    if text[at - 1] != ".":
        return text[at - 2 : at] == "--"
    found = re.search(r"\w+$", text[max(0, at - 12) : at - 1])
    return not (found and found[0].lower() in ABBREVIATIONS)


_DOUBLED_ES = re.compile(r"(ss|sh|ch|x|zz|[^aeiou]o)es$")
_THIRD_PERSON = {
    "is": "are",
    "was": "were",
    "has": "have",
    "does": "do",
    "goes": "go",
    "aches": "ache",
    "focuses": "focus",
    "quizzes": "quiz",
    "lies": "lie",
    "dies": "die",
    "ties": "tie",
    "vies": "vie",
    "shoes": "shoe",
    "biases": "bias",
}
_NO_VERB = _set(
    """as his this thus plus yes us is's always sometimes perhaps besides towards afterwards backwards
    forwards upstairs downstairs nevertheless nonetheless across unless whereas its ours hers theirs
    yours indoors outdoors overseas nowadays alas minus versus"""
)


def plural_verb(verb: str) -> str | None:
    """Return the form of a third-person singular ``verb`` that goes with "they", or None.

    Examples
    --------
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


_TRADE = re.compile(r"\w\w(?:[^e]er|or|ist|eer|ess|man|woman|person|[^l]ian)$")
# End as the names of trades do.
_NO_TRADE = _set(
    """access address answer anterior behavior bladder blister boiler border buffer bumper business
    butter cancer career center chapter charger charter checklist cleaner closer cluster clutter
    color computer container copper corner counter cover cylinder december decor dinner disorder
    door drawer dress dryer elevator error exterior factor favor fever fiber filter finger fist
    fitness flavor floor flower folder freezer gender guess gutter hammer harbor header heater
    helicopter honor horror humor illness indoor inferior interior kindness labor ladder laser layer
    leather ledger letter lighter list liter liver locker loss lumber major manner matter mess meter
    minor mirror mist motor murder november number october odor offer order outdoor paper parlor
    pepper poster posterior powder power press printer prior process progress quarter rafter
    register river roller rooster router rubber rumor scanner sector semester sensor september sewer
    shelter shoulder shower silver slipper sneaker spider stapler sticker stress success sugar
    summer superior supper sweater temper tenor terror theater thriller tiger timber timer toaster
    toner tower tractor trailer transfer trigger tumor tuner twist twitter ulcer vector vinegar
    waist washer water weather wilderness winter wonder wrist zipper"""
)


def ends_as_trade(noun: str) -> bool:
    """Whether ``noun``, in the singular, ends as the names of trades do (a roofer, a flutist), and is no known thing.

    Examples
    --------
    >>> [ends_as_trade(noun) for noun in ("roofer", "ledger", "archivist", "chairwoman")]
    [True, False, True, True]
    """
    return noun not in _NO_TRADE and _TRADE.search(noun) is not None
