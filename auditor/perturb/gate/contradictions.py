"""Contradictions: what a changed word says about a person beside what unchanged words say about the same one.

A text holds the people of its original; an edit that calls one of them by another gender, age, religion or disability
has to leave nothing behind that says the contrary. Who is meant is read from the order of words and from closed lists.
Each rule takes a text and its changes and says in a few words what is wrong, "" where nothing is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from auditor.perturb.dictionaries import load, persons
from auditor.perturb.gate.lexicon import listed
from auditor.perturb.gate.units import Change
from auditor.text.english import opaque_spans
from auditor.text.people import Person

WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_ONES = " one two three four five six seven eight nine"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_IN_WORDS: Mapping[str, int] = {
    **{word: 10 + i for i, word in enumerate(_TEENS.split(" "))},
    **{
        f"{tens}-{one}".rstrip("-"): 10 * i + k
        for i, tens in enumerate(_TENS.split(" "), 2)
        for k, one in enumerate(_ONES)
    },
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
_FAR = 400  # characters between a change and what may speak of the same person


class Mention(NamedTuple):
    """A word that names a person's gender: "f" or "m"; ``kind`` is pronoun, title, noun or adjective."""

    start: int
    end: int
    gender: str
    kind: str
    plural: bool


class Text:
    """An original, with what its words say of people; everything is found when it is asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._mentions: list[Mention] | None = None
        self._people: list[int] | None = None
        self._ages: list[tuple[int, int]] | None = None
        self.persons: Sequence[Person] | None = None  # found by `one_person`, with a parser

    @property
    def mentions(self) -> list[Mention]:
        """Words that name a gender, in order."""
        if self._mentions is None:
            self._mentions = _mentions(self.text)
        return self._mentions

    @property
    def people(self) -> list[int]:
        """Offsets of singular nouns that name a person without a gender."""
        if self._people is None:
            singular = persons()[0] - frozenset(gendered_words())
            self._people = [m.start() for m in WORD.finditer(self.text) if m[0].lower() in singular]
        return self._people

    @property
    def ages(self) -> list[tuple[int, int]]:
        """Where an age stands, and the age."""
        if self._ages is None:
            found = ((m.start(), _number(next(filter(None, m.groups())))) for m in _AGE.finditer(self.text))
            self._ages = [(at, age) for at, age in found if 5 < age < 111]
        return self._ages


def _number(written: str) -> int:
    return _IN_WORDS[written.lower()] if written.lower() in _IN_WORDS else int(written)


@lru_cache(maxsize=1)
def gendered_words() -> dict[str, tuple[str, str, bool]]:
    """Word → gender, kind and whether it is a plural."""
    out: dict[str, tuple[str, str, bool]] = {}
    gender = load("gender")
    for term in gender.sources:
        word, group = term.text.lower().rstrip("."), {"female": "f", "male": "m"}.get(term.group)
        if group is None or " " in word:
            continue
        kind = (
            "pronoun" if term.slot.startswith("pronoun") else "title" if term.role == "title" else
            "adjective" if term.pos == "JJ" else "noun" if term.role else "other"
        )  # fmt: skip
        out[word] = (group, kind, term.number == "pl")
    for group, more in (("f", listed("female_words")), ("m", listed("male_words"))):
        out.update(dict.fromkeys(more, (group, "noun", False)))
    out["lesbian"] = ("f", "adjective", False)
    return out


def _mentions(text: str) -> list[Mention]:
    table, out = gendered_words(), []
    opaque = opaque_spans(text)
    for found in WORD.finditer(text):
        low = found[0].lower().replace("’", "'")
        end = found.end()
        if low.endswith(("'s", "'ll", "'d")):
            low = low.rpartition("'")[0]
            end = found.start() + len(low)
        entry = table.get(low) or _by_ending(low)
        if entry is None and found[0][0].isupper():
            entry = _TITLES.get(low)
        if entry is not None and entry[1] != "other" and not any(a <= found.start() < b for a, b in opaque):
            out.append(Mention(found.start(), end, *entry))
    return out


_TITLES: Mapping[str, tuple[str, str, bool]] = {
    "sir": ("m", "noun", False), "lord": ("m", "noun", False),
    "lady": ("f", "noun", False), "dame": ("f", "noun", False),
}  # fmt: skip


def _by_ending(low: str) -> tuple[str, str, bool] | None:
    if low.startswith(("mother-of-", "father-of-")):
        return "f" if low[0] == "m" else "m", "noun", False
    if len(low) > 5 and low not in listed("no_men"):
        for ending, gender, plural in (
            ("woman", "f", False),
            ("women", "f", True),
            ("man", "m", False),
            ("men", "m", True),
        ):
            if low.endswith(ending):
                return gender, "noun", plural
    return None


GENDER_OF: Mapping[str, str] = {"female": "f", "trans_female": "f", "male": "m", "trans_male": "m", "nonbinary": "n"}


def gender(text: Text, changes: Sequence[Change]) -> str:
    """Find a person who is called by words of two genders."""
    own = [e for e in changes if e.edit.attribute == "gender" and e.edit.kind in ("swap", "marking")]
    if not own:
        return ""
    starts = [e.start for e in own]
    left = [m for m in text.mentions if not _covered(m, own, starts)]
    if not left:
        return ""
    behind = _left_behind(text, own, left)
    if behind is not None:
        return f"{text.text[behind.start : behind.end]!r} is left behind"
    for edit in own:
        new = GENDER_OF.get(edit.edit.target_group)
        if new is None:
            continue
        several = _same_people(text, edit, left)
        if several is not None:
            return f"{edit.text!r} and {text.text[several.start : several.end]!r} for the same people"
        clash = _same_person(text, edit, new, left, own)
        if clash is not None:
            return f"{edit.text!r} and {text.text[clash.start : clash.end]!r} for one person"
    return ""


def _left_behind(text: Text, own: Sequence[Change], left: Sequence[Mention]) -> Mention | None:
    """Return an unchanged pronoun of a gender whose pronouns are changed, where no unchanged noun is of that gender."""
    changed = {GENDER_OF.get(e.edit.source_group, "") for e in own if e.edit.kind == "swap" and _is_pronoun(e)}
    nouns = {m.gender for m in left if m.kind != "pronoun"}
    return next((m for m in left if m.kind == "pronoun" and m.gender in changed - nouns), None)


def _covered(mention: Mention, own: Sequence[Change], starts: Sequence[int]) -> bool:
    i = bisect_left(starts, mention.end) - 1
    return i >= 0 and own[i].end > mention.start


def _same_person(text: Text, edit: Change, new: str, left: Sequence[Mention], own: Sequence[Change]) -> Mention | None:
    """Return an unchanged word of another gender that speaks of the person whom ``edit`` changes."""
    start, end = edit.start, edit.end
    low = edit.edit.source.lower()
    table = gendered_words().get(low)
    pronoun = table is not None and table[1] == "pronoun"
    if pronoun:
        return None if new == "n" else _noun_before(text, start, left, own, new)
    if low in listed("relations"):
        return None
    plural = table[2] if table is not None else low in persons()[1]
    if plural:
        return None
    for mention in left:
        if mention.gender == new or mention.plural or mention.kind == "adjective":
            continue
        if mention.start >= end:
            if mention.start - end > _FAR:
                break
            if mention.kind == "pronoun" and _nearest(text, mention, edit, own) and _line(text, end, mention.start):
                return mention
            if mention.kind == "noun" and _tied(text.text[end : mention.start]):
                return mention
        elif mention.kind in ("pronoun", "noun") and _tied(text.text[mention.end : start]):
            return mention
    return None


def _same_people(text: Text, edit: Change, left: Sequence[Mention]) -> Mention | None:
    """The unchanged plural that *these men* goes back to (*two fishermen … these women*)."""
    if edit.edit.kind != "swap" or not re.search(r"\b(?:these|those)\s+$", text.text[: edit.start], re.IGNORECASE):
        return None
    was = GENDER_OF.get(edit.edit.source_group)
    return next((m for m in left if m.plural and m.gender == was and m.end < edit.start), None)


def _noun_before(text: Text, start: int, left: Sequence[Mention], own: Sequence[Change], new: str) -> Mention | None:
    """The noun that a changed pronoun goes back to, where it is unchanged and of another gender."""
    old = {"f": "m", "m": "f"}
    nouns = [m for m in text.mentions if m.end <= start and m.kind in ("noun", "title") and not m.plural]
    was = _source_gender(own, start)
    nouns = [m for m in nouns if m.gender == was]
    if not nouns or start - nouns[-1].end > _FAR:
        return None
    last = nouns[-1]
    if new == was or last.gender == new or last not in left or old.get(was) is None:
        return None
    between = [e for e in own if last.end <= e.start < start and not _is_pronoun(e)]
    return None if between else last


def _source_gender(own: Sequence[Change], start: int) -> str:
    return next(GENDER_OF.get(e.edit.source_group, "") for e in own if e.start == start)


def _is_pronoun(edit: Change) -> bool:
    entry = gendered_words().get(edit.edit.source.lower())
    return entry is not None and entry[1] == "pronoun"


def _nearest(text: Text, pronoun: Mention, edit: Change, own: Sequence[Change]) -> bool:
    """Whether nobody else stands between, or before, to whom an unchanged pronoun may go back."""
    start = edit.start
    others = [m for m in text.mentions if m.kind != "pronoun" and m.gender == pronoun.gender and not m.plural]
    if any(m.start < pronoun.start and m.start != start for m in others):
        return False
    if any(start < at < pronoun.start for at in text.people):
        return False
    between = text.text[edit.end : pronoun.start]
    if re.search(r"(?<![.!?\"“]\s)(?<!^)\b[A-Z][a-z]+", between[1:]):  # somebody with a name, perhaps
        return False
    if not re.search(r"[.!?]\s", text.text[edit.end : pronoun.start]) and pronoun.start - edit.end < 60:
        return True  # a clause or two: nobody before is nearer
    before = text.text[:start]
    return not re.search(r"(?<=[a-z,] )[A-Z][a-z]+", before)


def _line(text: Text, start: int, end: int) -> bool:
    """Whether at most three sentences lie between."""
    return len(re.findall(r"[.!?](?:\s|$)", text.text[start:end])) <= 2


_IS = re.compile(
    r"^\s+(?:is|was|became|remains|will be|has been)\s+(?:(?:a|an|the|our|my|one)\s+)?(?:[\w'’-]+\s+){0,4}$"
)
_NAMED = re.compile(
    r"^\s+(?:[A-Z][\w'’-]+\s+){1,2}(?:is|was|became|remains)\s+(?:(?:a|an|the)\s+)?(?:[\w'’-]+\s+){0,3}$"
)
_APPOSED = re.compile(r"^,\s+(?:an?|the)\s+(?:[\w'’-]+\s+){0,3}$")  # *the grandmother, a retired railwayman*
_FIRST_AND = re.compile(r"^\s+and\s+(?:(?:the|an|a)\s+)?(?:young|old|eld|first|second|third|only|last)\w*\s+$")


def _tied(between: str) -> bool:
    """Whether the words between two names of people make them one: *she was the fifth …*, *child and youngest …*."""
    return bool(
        _IS.match(between)
        or _NAMED.match(between)
        or _FIRST_AND.match(between)
        or _APPOSED.match(between)
        or between == " "
    )


_EITHER = re.compile(
    r"\b(?:he or she|she or he|his or her|her or his|him or her|his/her|he/she|s/he|her/his)\b", re.IGNORECASE
)
_WRITTEN_TOGETHER = re.compile(r"\b(?:shes|hes)\b", re.IGNORECASE)


def either(text: Text, changes: Sequence[Change]) -> str:
    """Find *he or she* for somebody who is now of one gender, and *shes* that was left behind."""
    own = [e for e in changes if e.edit.attribute == "gender"]
    for edit in own:
        if edit.edit.kind == "marking":
            found = _EITHER.search(text.text, edit.end, edit.end + _FAR)
            if found:
                return f"{edit.text!r} and {found[0]!r} for one person"
        if edit.edit.kind == "swap" and _is_pronoun(edit):
            for found in _EITHER.finditer(text.text, max(0, edit.start - 10), edit.end + 10):
                if found.start() <= edit.start < found.end():
                    return f"{edit.text!r} in {found[0]!r}"
            found = _WRITTEN_TOGETHER.search(text.text)
            if found:
                return f"{edit.text!r} and {found[0]!r} for one person"
    return ""


RULES = (gender, either)
