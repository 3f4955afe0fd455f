"""What an original holds that limits its edits, and what an edit leaves behind of the group that was there before.

Titles, phrases and languages stay as they are; ages, things and countries belong to some groups only. Each rule takes
a text and one of its changes (and all of them) and says in a few words what is wrong, "" where nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from auditor.core.types import NEUTRAL
from auditor.perturb.dictionaries import neutral, persons, titles
from auditor.perturb.gate.genders import WORD
from auditor.perturb.gate.lexicon import FILE, listed, pattern
from auditor.perturb.gate.units import Change

# What stays.

_QUOTED = re.compile(r"\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”")
_FEW = re.compile(r"\s?(?:[\w'’-]+ ){1,4}[\w'’-]+\s?[,.!]?\s?")
_VERBS = frozenset(("is", "are", "was", "were", "has", "have", "had", "can", "will"))  # of a sentence
_PHRASES = re.compile(rf"\b(?:{'|'.join(FILE.phrases)})", re.IGNORECASE)
_COUPLE = re.compile(r"\blesbian (?:couple|pair|parents)\b", re.IGNORECASE)
_ONLY = re.compile(r"\bthe only (woman|girl|man|boy)\b", re.IGNORECASE)
_MORE = {
    "woman": ("women", "ladies", "girls"),
    "girl": ("girls",),
    "man": ("men", "gentlemen", "guys"),
    "boy": ("boys",),
}
_KIN = re.compile(r"\b(?:your|my) (mother|mom|mum|father|dad|wife|husband)\b", re.IGNORECASE)  # one has one
_TONGUE = "|".join(FILE.languages_of)
_OWN_LANGUAGE = re.compile(rf"\b({_TONGUE})(?: |-)(?:accents?|speak\w+)\b|\baccent is ({_TONGUE})\b")


class _Span(NamedTuple):
    """A place whose words stay; ``what`` is "title", "quoted" (pronouns in it may change) or "phrase" (of a gender)."""

    start: int
    end: int
    what: str


class _Marks(NamedTuple):
    spans: tuple[_Span, ...]
    couple: re.Match[str] | None
    only: re.Match[str] | None
    kin: tuple[re.Match[str], ...]
    languages: tuple[re.Match[str], ...]


@lru_cache(maxsize=256)
def _marks(text: str) -> _Marks | None:
    """Read an original once for all its variants."""
    low = text.lower()
    spans = [
        _Span(*match.span(), "title")
        for word in titles().keys() & set(re.findall(r"[\w’'-]+", low))
        for known in titles()[word]
        for match in re.finditer(rf"(?<!\w){re.escape(known)}(?!\w)", low)
    ]
    spans += [_Span(*match.span(), "quoted") for match in _QUOTED.finditer(text) if _of_a_title(match[0][1:-1])]
    spans += [_Span(*match.span(), "phrase") for match in _PHRASES.finditer(text)]
    kin, languages = tuple(_KIN.finditer(text)), tuple(_OWN_LANGUAGE.finditer(text))
    marks = _Marks(tuple(spans), _COUPLE.search(text), _ONLY.search(text), kin, languages)
    return marks if any(marks) else None


def _of_a_title(quoted: str) -> bool:
    """Whether these are a few words that are no sentence, or more of which each has a capital."""
    if _FEW.fullmatch(quoted):
        return not _VERBS & set(quoted.lower().split())
    long = [word for word in quoted.split() if len(word) > 3 and word.isalpha()]
    return len(long) > 2 and all(word[0].isupper() for word in long)


def fixed(text: str, change: Change, changes: Sequence[Change]) -> str:
    """Find a change of what stays, or that goes against it (*an Indian beauty*, *party women* beside the only one)."""
    edit, marks = change.edit, _marks(text)
    if marks is None:
        return ""
    for start, end, what in marks.spans:
        pronoun = what == "quoted" and edit.source.lower() in listed("pronouns")
        may = edit.attribute != "gender" if what == "phrase" else pronoun
        if start <= change.start < end and not may:
            return f"{text[start:end]!r} is a {'title' if what == 'quoted' else what}"
    for match in marks.languages if edit.attribute == "nationality" else ():
        groups = FILE.languages_of[match[1] or match[2]].split()
        if edit.source_group in groups and edit.target_group not in groups and not _within(change, match.start()):
            return f"{change.text!r} and {match[0]!r}"
    return _against(marks, change, changes) if edit.attribute == "gender" else ""


def _against(marks: _Marks, change: Change, changes: Sequence[Change]) -> str:
    if marks.couple and change.edit.target_group in ("male", "trans_male"):
        return f"{change.text!r} and {marks.couple[0]!r}"
    for match in marks.kin:
        kept = not any(c.start < match.end() and match.start() < c.end for c in changes)
        if kept and match[1].lower() == change.text.lower():
            return f"{change.text!r} and {match[0]!r}"
    only = marks.only
    if only and not _within(change, only.start(1)) and change.text.lower().endswith(_MORE[only[1].lower()]):
        return f"{change.text!r} beside {only[0]!r}"
    return ""


def _within(change: Change, at: int) -> bool:
    return change.start <= at < change.end


# Ages, and what goes with them.

_ONES = ["", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_IN_WORDS: Mapping[str, int] = {
    **{word: 10 + i for i, word in enumerate(_TEENS)},
    **{f"{tens}-{one}".rstrip("-"): 10 * i + k for i, tens in enumerate(_TENS, 2) for k, one in enumerate(_ONES)},
}
_SAID = "|".join(sorted(_IN_WORDS, key=len, reverse=True))
_AGE = re.compile(
    r"(?:,\s*|\baged?\s+|\bof\s+|\bturn(?:ed|s)\s+|\()(\d{1,2})\b"
    r"(?=\s*(?:[,.;)]|years?\s+old|$|\s+when))"
    r"|\b(?:wo)?m[ae]n of (\d\d)\b|\b(?:girl|boy|person|child) of (\d\d?)\b|\b(\d{1,3})[- ]years?[- ]old\b"
    rf"|\b(?:(?:(?:wo)?m[ae]n|girl|boy|person|child|youth|lad|lass) of|aged|turn(?:ed|s)) ({_SAID})\b"
    rf"|\b({_SAID})[- ]years?[- ]old\b",
    re.IGNORECASE,
)
_AGES: Mapping[str, tuple[int, int]] = {
    "adolescent": (11, 20),
    "young": (14, 44),
    "middle_aged": (36, 69),
    "old": (55, 120),
}


@lru_cache(maxsize=256)
def _ages(text: str) -> list[tuple[int, int]]:
    """Where an age stands, and the age."""
    out = []
    for match in _AGE.finditer(text):
        written = next(filter(None, match.groups())).lower()
        years = _IN_WORDS[written] if written in _IN_WORDS else int(written)
        if 5 < years < 111:
            out.append((match.start(), years))
    return out


def age(text: str, change: Change, changes: Sequence[Change]) -> str:
    """Find a person whose age in digits, or in another word, is not that of the changed word."""
    low, high = _AGES.get(change.edit.target_group, (0, 120))
    for at, years in _ages(text):
        apart = abs(at - change.start) < 60 and not _within(change, at) and not low <= years <= high
        if apart and "." not in text[min(at, change.end) : max(at, change.start)]:
            return f"{change.text!r} and {years} years"
    return ""


# A working life, which a teenager does not have.
_LONG = re.compile(
    r"\b(?:ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|[1-4]\d) years\b(?! old)"
    r"|\b(?:twenty|thirty|forty|fifty)(?:-\w+)? years\b(?! old)|\bfirst career\b|\bdecades?\b",
    re.IGNORECASE,
)


def career(text: str, change: Change, changes: Sequence[Change]) -> str:
    """Find years of work behind somebody who is now young (*a younger developer … after twenty years*)."""
    if change.edit.target_group not in ("adolescent", "young"):
        return ""
    match = _LONG.search(text, max(0, change.start - 150), change.end + 250)
    return f"{change.text!r} and {match[0]!r}" if match and not _within(change, match.start()) else ""


_BORN = re.compile(r"\b(?:un|new|still)?born\b|\bbab(?:y|ies)\b|\binfants?\b|\btoddlers?\b", re.IGNORECASE)


def newborn(text: str, change: Change, changes: Sequence[Change]) -> str:
    """Find a child of whom nobody can say yet what the edit says (*when his trans boy is born*)."""
    edit = change.edit
    if edit.target_group not in ("trans_female", "trans_male", "nonbinary") or edit.source_group.startswith("trans"):
        return ""
    if (change.text.lower().split() or [""])[-1] not in listed("children"):
        return ""
    match = _BORN.search(text, change.end, change.end + 40)
    return f"{change.text!r} and {match[0]!r}" if match and "." not in text[change.end : match.start()] else ""


# Numbers, things, countries and words that stand there once more.

_NUMBERS = frozenset(("two", "three", "four", "five", "six", "2", "3", "4", "5", "6"))
_ONE_OF_THEM = re.compile(
    r"\bthe (?:second|third|fourth|fifth|other|others|last|older|younger)\b(?! \w+ of)|\bboth\b|\bneither\b"
    r"|\beach other\b|\ball (?:two|three|four|five|six)\b",
    re.IGNORECASE,
)


_SEX = re.compile(r" ?\((?:\d\d ?([MF])|([MF]) ?\d\d)\)")  # *my brother (36M)*


def marked(text: str, change: Change, changes: Sequence[Change]) -> str:
    """Find a sex in brackets behind somebody who is now of another gender."""
    match = _SEX.match(text, change.end)
    groups = ("female", "trans_female") if match and "F" in match[0] else ("male", "trans_male")
    return f"{change.text!r} and {match[0].strip()!r}" if match and change.edit.target_group not in groups else ""


def counted(text: str, change: Change, changes: Sequence[Change]) -> str:
    """Find the one of a number that was changed (*four sites … the third one*)."""
    edit = change.edit
    if edit.kind not in NEUTRAL or edit.source.lower() not in _NUMBERS or change.text.isdigit():
        return ""
    match = _ONE_OF_THEM.search(text, change.end, change.end + 200)
    return f"{change.text!r} and {match[0]!r}" if match else ""


_pattern = lru_cache(maxsize=None)(pattern)


@cache
def _belongings(attribute: str) -> list[tuple[frozenset[str], re.Pattern[str]]]:
    """What belongs to some groups of an attribute, after the groups."""
    return [(frozenset(groups.split()), pattern(things)) for groups, things in FILE.belongs[attribute].items()]


def belief(text: str, change: Change, changes: Sequence[Change]) -> str:
    """Find a thing of one religion, or of one disability, with a person who is now of another."""
    edit, near = change.edit, (max(0, change.start - 150), change.end + 250)
    if edit.attribute == "disability":
        if edit.kind == "insertion" and edit.target_group != "nondisabled":
            return ""  # one may be deaf and blind
        near = (0, len(text))  # what one needs may stand anywhere in the text
    for groups, things in _belongings(edit.attribute):
        if edit.target_group in groups or (edit.source_group not in groups and edit.kind != "insertion"):
            continue
        for match in things.finditer(text, *near):
            if not any(_within(one, match.start()) for one in changes):
                return f"{change.text!r} and {match[0]!r}"
    return ""


def country(text: str, change: Change, changes: Sequence[Change]) -> str:
    """Find the country whose people, films or weather were given to another one (*Japanese weather*, in Ireland)."""
    edit = change.edit
    names = FILE.countries.get(edit.source_group) if edit.kind == "swap" else None
    match = _pattern(names).search(text) if names is not None else None
    return f"{change.text!r} and {match[0]!r}" if match else ""


def again(text: str, change: Change, changes: Sequence[Change]) -> str:
    """Find a changed word that stands in the text once more, unchanged (*the truck driver*, *Asians … Caucasian*)."""
    edit, neutral_word = change.edit, change.edit.kind in NEUTRAL
    low = edit.source.lower()
    if not low:
        return ""
    if neutral_word:
        if low not in _things():
            return ""
    elif edit.attribute == "nationality":
        for match in _language_of(low).finditer(text) if edit.kind == "swap" else ():
            if not any(_within(one, match.start(match.lastindex or 0)) for one in changes):
                return f"{change.text!r}, and {match[0].strip()!r}"
        if not low.endswith("ans") or low == "americans":
            return ""
    elif edit.attribute not in ("race", "religion", "disability") or low in ("black", "white"):
        return ""
    stem = low[:-1] if low.endswith("s") and not low.endswith("ss") else low
    for match in re.finditer(rf"\b{re.escape(stem)}s?\b", text, re.IGNORECASE):
        if not neutral_word and not match[0].islower() and edit.source.islower():
            continue  # a name: the Disability Rights Union
        changed = any(c.start < match.end() and match.start() < max(c.end, c.start + 1) for c in changes)
        if not changed and (neutral_word or not _of_a_person(text, match.end())):
            return f"{change.text!r}, and {match[0]!r} once more"
    return ""


@lru_cache(maxsize=256)
def _language_of(nation: str) -> re.Pattern[str]:
    """Where a word for a nation names its language: *speaks no Russian*, *skills in German*."""
    own = rf"({re.escape(nation)})\b"
    return re.compile(
        rf"\b(?:sp(?:eaks?|oke|oken|eaking)|learn\w*|taught|teach(?:es)?|fluent in|underst\w+|reads?|writes?)"
        rf"\s+(?:no|some|good|fluent|basic|only|a little|any)?\s*{own}(?!\s+(?!and\b|or\b)[a-z])"
        rf"|\bin\s+{own}(?=[.,;:)]|$)|\b{own}\s+(?:language|skills?|proficiency|fluency|vocabulary|grammar)\b"
        rf"|\b(?:[abc][12]|native|fluent|basic|level)(?:[- ]level)?\s+{own}(?!\s+(?!and\b|or\b)[a-z])",
        re.IGNORECASE,
    )


def _of_a_person(text: str, end: int) -> bool:
    """Whether a person noun follows: somebody else, whom the edit leaves alone."""
    following = WORD.match(text, end + 1)
    singular, plural, _ = persons()
    return following is not None and (following[0].lower() in singular or following[0].lower() in plural)


@lru_cache(maxsize=1)
def _things() -> frozenset[str]:
    """Neutral words that are no synonyms: things, work, months, numbers, colours."""
    kinds = ("thing.", "month", "weekday", "colour", "firm", "job", "nurse", "court", "city")
    return frozenset(term.text.lower() for term in neutral().terms if term.slot.startswith(kinds))


_Rule = Callable[[str, Change, Sequence[Change]], str]
_RULES: Sequence[tuple[_Rule, frozenset[str]]] = (
    (fixed, frozenset()),
    (age, frozenset(("age",))),
    (career, frozenset(("age",))),
    (counted, frozenset()),
    (marked, frozenset(("gender",))),
    (belief, frozenset(FILE.belongs)),
    (newborn, frozenset()),
    (country, frozenset(("nationality",))),
    (again, frozenset()),
)  # with the attributes that they look at, none where that is any


def left_behind(text: str, changes: Sequence[Change]) -> str:
    """What the first rule that is broken says of a change; forms that only agree with another are not asked about."""
    own = [change for change in changes if change.edit.kind != "agreement"]
    for rule, attributes in _RULES:
        for change in own:
            if (not attributes or change.edit.attribute in attributes) and (wrong := rule(text, change, changes)):
                return wrong
    return ""


_TWICE = re.compile(r"\b([a-z][\w'’-]+) (?:and|or|nor|in) \1\b", re.IGNORECASE)
_YOUNG = r"boys?|girls?|kids?|child(?:ren)?|bab(?:y|ies)|teen(?:ager)?s?|lads?|lass(?:es)?|toddlers?|schoolboys?"
_GROWN = (
    "gentlem[ae]n|lad(?:y|ies)|widow(?:er)?s?|grand(?:mother|father|parent)s?|grandmas?|grandpas?|pensioners?|retirees?"
    "|veterans?|professors?|judges?|surgeons?"
)
_AGE_PHRASE = re.compile(
    rf"\b(?<![-\d])(?:old|elderly|middle-aged|older|aged)\s+(?:[\w'’-]+\s+){{0,2}}?(?:{_YOUNG})\b"
    rf"|\b(?:teenage|adolescent|1\d-year-old)\s+(?:[\w'’-]+\s+){{0,2}}?(?:{_GROWN})\b"
    r"|\b(?:teenage|adolescent) m[ae]n\b|\badolescent (?:\w+, an? (?:\w+ )?(?:wo)?man)\b"
    r"|\bM(?:rs?|s|x)\.? [A-Z][\w'-]+,? an? 1\d-year-old",
    re.IGNORECASE,
)


def phrase(text: str, changes: Sequence[Change], made: str) -> str:
    """Find *an old boy* and *blind or blind*: two ages in one phrase of the changed text, or one word twice."""
    twice = next((m[0] for m in _TWICE.finditer(made) if m[0] not in text), "")
    if twice or not any(c.edit.attribute in ("age", "gender") for c in changes):
        return repr(twice) if twice else ""
    new = [m[0] for m in _AGE_PHRASE.finditer(made)]
    had = {m[0].lower() for m in _AGE_PHRASE.finditer(text)} if new else set()
    return next((repr(words) for words in new if words.lower() not in had), "")
