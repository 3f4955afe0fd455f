"""One person in two genders: what a changed word says beside what unchanged words say about the same one.

An edit that calls somebody by another gender has to leave nothing behind that says the contrary. Who is meant is read
from the order of words and from closed lists (`gender`, `either`), and last from the mentions of each person, wherever
in the text they stand (`two_genders`, `auditor.text.people`). Each rule says in a few words what is wrong, "" where
nothing is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from auditor.perturb.dictionaries import load, persons
from auditor.perturb.gate.lexicon import listed
from auditor.perturb.gate.units import Change
from auditor.perturb.persons import lexicon
from auditor.text.english import opaque_spans
from auditor.text.parse import Parser
from auditor.text.people import Person, people

WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
LONGEST = 6_000  # characters of a text whose persons are told apart
_FAR = 400  # characters between a change and what may speak of the same person
_GENDER_OF: Mapping[str, str] = {"female": "f", "trans_female": "f", "male": "m", "trans_male": "m", "nonbinary": "n"}


class _Named(NamedTuple):
    """What a word says: the gender "f" or "m"; ``kind`` is pronoun, title, noun, adjective or other."""

    gender: str
    kind: str
    plural: bool


class _Word(NamedTuple):
    """A word of a text that names a gender."""

    start: int
    end: int
    gender: str
    kind: str
    plural: bool


_TITLES: Mapping[str, _Named] = {
    **dict.fromkeys(("sir", "lord"), _Named("m", "noun", False)),
    **dict.fromkeys(("lady", "dame"), _Named("f", "noun", False)),
}  # with a capital
_ENDINGS: Mapping[str, _Named] = {
    "woman": _Named("f", "noun", False),
    "women": _Named("f", "noun", True),
    "man": _Named("m", "noun", False),
    "men": _Named("m", "noun", True),
}


class Text:
    """An original, with what its words say of people; everything is found when it is asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._persons: Sequence[Person] | None = None

    @cached_property
    def words(self) -> list[_Word]:
        """Words that name a gender, in order."""
        table, out = gendered_words(), []
        opaque = opaque_spans(self.text)
        for match in WORD.finditer(self.text):
            low, start, end = match[0].lower().replace("’", "'"), match.start(), match.end()
            if low.endswith(("'s", "'ll", "'d")):
                low = low.rpartition("'")[0]
                end = start + len(low)
            named = table.get(low) or _by_ending(low)
            if named is None and match[0][0].isupper():
                named = _TITLES.get(low)
            if named is not None and named.kind != "other" and not any(a <= start < b for a, b in opaque):
                out.append(_Word(start, end, *named))
        return out

    @cached_property
    def neutral_persons(self) -> list[int]:
        """Offsets of singular nouns that name a person without a gender."""
        singular = persons()[0] - frozenset(gendered_words())
        return [m.start() for m in WORD.finditer(self.text) if m[0].lower() in singular]

    def persons(self, parser: Parser) -> Sequence[Person]:
        """Everybody of whom it speaks."""
        if self._persons is None:
            self._persons = people(parser.parse_text(self.text), lexicon()).persons
        return self._persons


@lru_cache(maxsize=1)
def gendered_words() -> dict[str, _Named]:
    """The words that name a gender: those of the dictionary, and those of the lists."""
    out: dict[str, _Named] = {}
    for term in load("gender").sources:
        word, group = term.text.lower().rstrip("."), {"female": "f", "male": "m"}.get(term.group)
        if group is None or " " in word:
            continue
        kind = (
            "pronoun" if term.slot.startswith("pronoun") else "title" if term.role == "title" else
            "adjective" if term.pos == "JJ" else "noun" if term.role else "other"
        )  # fmt: skip
        out[word] = _Named(group, kind, term.number == "pl")
    for group, name in (("f", "female_words"), ("m", "male_words")):
        out.update(dict.fromkeys(listed(name), _Named(group, "noun", False)))
    out["lesbian"] = _Named("f", "adjective", False)
    return out


def _by_ending(low: str) -> _Named | None:
    if low.startswith(("mother-of-", "father-of-")):
        return _Named("f" if low[0] == "m" else "m", "noun", False)
    if len(low) <= 5 or low in listed("no_men"):
        return None
    return next((named for ending, named in _ENDINGS.items() if low.endswith(ending)), None)


def _is_pronoun(change: Change) -> bool:
    named = gendered_words().get(change.edit.source.lower())
    return named is not None and named.kind == "pronoun"


def _of_gender(changes: Sequence[Change]) -> list[Change]:
    return [c for c in changes if c.edit.attribute == "gender" and c.edit.kind in ("swap", "marking")]


def gender(text: Text, changes: Sequence[Change]) -> str:
    """Find a person who is called by words of two genders."""
    own = _of_gender(changes)
    if not own:
        return ""
    starts = [c.start for c in own]
    left = [word for word in text.words if not _covered(word, own, starts)]
    if not left:
        return ""
    behind = _left_behind(own, left)
    if behind is not None:
        return f"{text.text[behind.start : behind.end]!r} is left behind"
    for change in own:
        new = _GENDER_OF.get(change.edit.target_group)
        if new is None:
            continue
        several = _same_people(text, change, left)
        if several is not None:
            return f"{change.text!r} and {text.text[several.start : several.end]!r} for the same people"
        clash = _same_person(text, change, new, left, own)
        if clash is not None:
            return f"{change.text!r} and {text.text[clash.start : clash.end]!r} for one person"
    return ""


def _covered(word: _Word, own: Sequence[Change], starts: Sequence[int]) -> bool:
    i = bisect_left(starts, word.end) - 1
    return i >= 0 and own[i].end > word.start


def _left_behind(own: Sequence[Change], left: Sequence[_Word]) -> _Word | None:
    """Return an unchanged pronoun of a gender whose pronouns are changed, where no unchanged noun is of that gender."""
    changed = {_GENDER_OF.get(c.edit.source_group, "") for c in own if c.edit.kind == "swap" and _is_pronoun(c)}
    nouns = {word.gender for word in left if word.kind != "pronoun"}
    return next((word for word in left if word.kind == "pronoun" and word.gender in changed - nouns), None)


def _same_people(text: Text, change: Change, left: Sequence[_Word]) -> _Word | None:
    """The unchanged plural that *these men* goes back to (*two fishermen … these women*)."""
    if change.edit.kind != "swap" or not _THESE.search(text.text[: change.start]):
        return None
    was = _GENDER_OF.get(change.edit.source_group)
    return next((word for word in left if word.plural and word.gender == was and word.end < change.start), None)


def _same_person(text: Text, change: Change, new: str, left: Sequence[_Word], own: Sequence[Change]) -> _Word | None:
    """Return an unchanged word of another gender that speaks of the person whom ``change`` is about."""
    start, end = change.start, change.end
    low = change.edit.source.lower()
    named = gendered_words().get(low)
    if named is not None and named.kind == "pronoun":
        return None if new == "n" else _noun_before(text, change, left, own, new)
    if low in listed("relations") or (named.plural if named is not None else low in persons()[1]):
        return None
    for word in left:
        if word.gender == new or word.plural or word.kind == "adjective":
            continue
        if word.start >= end:
            if word.start - end > _FAR:
                break
            if word.kind == "pronoun" and _nearest(text, word, change) and _line(text, end, word.start):
                return word
            if word.kind == "noun" and _tied(text.text[end : word.start]):
                return word
        elif word.kind in ("pronoun", "noun") and _tied(text.text[word.end : start]):
            return word
    return None


def _noun_before(text: Text, change: Change, left: Sequence[_Word], own: Sequence[Change], new: str) -> _Word | None:
    """The noun that a changed pronoun goes back to, where it is unchanged and of another gender."""
    start, was = change.start, next(_GENDER_OF.get(c.edit.source_group, "") for c in own if c.start == change.start)
    nouns = [word for word in text.words if word.end <= start and word.kind in ("noun", "title") and not word.plural]
    last = next((word for word in reversed(nouns) if word.gender == was), None)
    if last is None or start - last.end > _FAR or new == was or last not in left or was not in ("f", "m"):
        return None
    between = any(last.end <= c.start < start and not _is_pronoun(c) for c in own)
    return None if between else last


_THESE = re.compile(r"\b(?:these|those)\s+$", re.IGNORECASE)
_NAME_BETWEEN = re.compile(r"(?<![.!?\"“]\s)(?<!^)\b[A-Z][a-z]+")  # somebody with a name, perhaps
_NAME_BEFORE = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")


def _nearest(text: Text, pronoun: _Word, change: Change) -> bool:
    """Whether nobody else stands between, or before, to whom an unchanged pronoun may go back."""
    start = change.start
    others = (w for w in text.words if w.kind != "pronoun" and w.gender == pronoun.gender and not w.plural)
    if any(word.start < pronoun.start and word.start != start for word in others):
        return False
    if any(start < at < pronoun.start for at in text.neutral_persons):
        return False
    between = text.text[change.end : pronoun.start]
    if _NAME_BETWEEN.search(between[1:]):
        return False
    if not re.search(r"[.!?]\s", between) and pronoun.start - change.end < 60:
        return True  # a clause or two: nobody before is nearer
    return not _NAME_BEFORE.search(text.text[:start])


def _line(text: Text, start: int, end: int) -> bool:
    """Whether at most three sentences lie between."""
    return len(re.findall(r"[.!?](?:\s|$)", text.text[start:end])) <= 2


_TIES = (
    re.compile(
        r"^\s+(?:is|was|became|remains|will be|has been)\s+(?:(?:a|an|the|our|my|one)\s+)?(?:[\w'’-]+\s+){0,4}$"
    ),
    re.compile(r"^\s+(?:[A-Z][\w'’-]+\s+){1,2}(?:is|was|became|remains)\s+(?:(?:a|an|the)\s+)?(?:[\w'’-]+\s+){0,3}$"),
    re.compile(r"^\s+and\s+(?:(?:the|an|a)\s+)?(?:young|old|eld|first|second|third|only|last)\w*\s+$"),
    re.compile(r"^,\s+(?:an?|the)\s+(?:[\w'’-]+\s+){0,3}$"),  # *the grandmother, a retired railwayman*
)


def _tied(between: str) -> bool:
    """Whether the words between two names of people make them one: *she was the fifth …*, *child and youngest …*."""
    return between == " " or any(tie.match(between) for tie in _TIES)


_EITHER = re.compile(
    r"\b(?:he or she|she or he|his or her|her or his|him or her|his/her|he/she|s/he|her/his)\b", re.IGNORECASE
)
_WRITTEN_TOGETHER = re.compile(r"\b(?:shes|hes)\b", re.IGNORECASE)


def either(text: Text, changes: Sequence[Change]) -> str:
    """Find *he or she* for somebody who is now of one gender, and *shes* that was left behind."""
    for change in _of_gender(changes):
        match = None
        if change.edit.kind == "marking":
            match = _EITHER.search(text.text, change.end, change.end + _FAR)
        elif _is_pronoun(change):
            for both in _EITHER.finditer(text.text, max(0, change.start - 10), change.end + 10):
                if both.start() <= change.start < both.end():
                    return f"{change.text!r} in {both[0]!r}"
            match = _WRITTEN_TOGETHER.search(text.text)
        if match:
            return f"{change.text!r} and {match[0]!r} for one person"
    return ""


def two_genders(text: Text, changes: Sequence[Change], parser: Parser) -> str:
    """Find a person whose changed words and unchanged words name two genders."""
    own = _of_gender(changes)
    if not own or len(text.text) > LONGEST:
        return ""
    left = any(not any(c.start < word.end and word.start < c.end for c in own) for word in text.words)
    if not left and len({c.edit.target_group for c in own}) == 1:
        return ""  # no word is there that could contradict
    singles = (person for person in text.persons(parser) if not person.plural)
    return next(filter(None, (_clash(text.text, person, own) for person in singles)), "")


def _clash(text: str, person: Person, own: Sequence[Change]) -> str:
    new: dict[str, str] = {}
    left: dict[str, str] = {}
    for mention in person.mentions:
        change = next((c for c in own if c.start < mention.end and mention.start < c.end), None)
        if change is not None:
            new.setdefault(_GENDER_OF.get(change.edit.target_group, ""), change.text)
            continue
        word = text[mention.start : mention.end]
        named = gendered_words().get(word.lower())
        if named is not None and not named.plural:
            left.setdefault(named.gender, word)
    for now, word in new.items():
        other = next((w for g, w in (*left.items(), *new.items()) if now in "fm" and g in "fm" and g != now), "")
        if now and other:
            return f"{word!r} and {other!r} for one person"
    return ""
