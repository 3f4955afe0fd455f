"""What an original holds that limits its edits: titles, phrases, the only one of a room, languages, two of one kin.

An original is read once for all its variants.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from auditor.perturb.dictionaries import titles
from auditor.perturb.gate.contradictions import Text
from auditor.perturb.gate.lexicon import FILE, listed
from auditor.perturb.gate.units import Change

_QUOTED = re.compile(r"\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”")
_FEW = re.compile(r"\s?(?:[\w'’-]+ ){1,4}[\w'’-]+\s?[,.!]?\s?")
_VERBS = frozenset(("is", "are", "was", "were", "has", "have", "had", "can", "will"))  # of a sentence
_COUPLE = re.compile(r"\blesbian (?:couple|pair|parents)\b", re.IGNORECASE)
_ONLY = re.compile(r"\bthe only (woman|girl|man|boy)\b", re.IGNORECASE)
_MORE = {
    "woman": ("women", "ladies", "girls"),
    "girl": ("girls",),
    "man": ("men", "gentlemen", "guys"),
    "boy": ("boys",),
}
_KIN = re.compile(r"\b(?:your|my) (mother|mom|mum|father|dad|wife|husband)\b", re.IGNORECASE)  # one has one

_PHRASES = re.compile(rf"\b(?:{'|'.join(FILE.phrases)})", re.IGNORECASE)
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
    low = text.lower()
    spans = [
        _Span(*found.span(), "title")
        for word in titles().keys() & set(re.findall(r"[\w’'-]+", low))
        for known in titles()[word]
        for found in re.finditer(rf"(?<!\w){re.escape(known)}(?!\w)", low)
    ]
    spans += [_Span(*found.span(), "quoted") for found in _QUOTED.finditer(text) if _of_a_title(found[0][1:-1])]
    spans += [_Span(*found.span(), "phrase") for found in _PHRASES.finditer(text)]
    found = _Marks(
        tuple(spans),
        _COUPLE.search(text),
        _ONLY.search(text),
        tuple(_KIN.finditer(text)),
        tuple(_OWN_LANGUAGE.finditer(text)),
    )
    return found if any(found) else None


def _of_a_title(quoted: str) -> bool:
    """Whether these are a few words that are no sentence, or more of which each has a capital."""
    if _FEW.fullmatch(quoted):
        return not _VERBS & set(quoted.lower().split())
    long = [word for word in quoted.split() if len(word) > 3 and word.isalpha()]
    return len(long) > 2 and all(word[0].isupper() for word in long)


def fixed(text: Text, changes: Sequence[Change]) -> str:
    """Find a change of what stays, or that goes against it (*an Indian beauty*, *party women* beside the only one)."""
    marks = _marks(text.text)
    if marks is None:
        return ""
    for edit in changes:
        if edit.edit.kind != "agreement" and (wrong := _against(marks, text.text, edit, changes)):
            return wrong
    return ""


def _against(marks: _Marks, text: str, change: Change, changes: Sequence[Change]) -> str:
    edit = change.edit
    for start, end, what in marks.spans:
        may = (
            edit.attribute != "gender"
            if what == "phrase"
            else edit.source.lower() in listed("pronouns") and what == "quoted"
        )
        if start <= change.start < end and not may:
            return f"{text[start:end]!r} is a {'title' if what == 'quoted' else what}"
    for found in marks.languages if edit.attribute == "nationality" else ():
        groups = FILE.languages_of[found[1] or found[2]].split()
        lost = edit.source_group in groups and edit.target_group not in groups
        if lost and not change.start <= found.start() < change.end:
            return f"{change.text!r} and {found[0]!r}"
    if edit.attribute != "gender":
        return ""
    if marks.couple and edit.target_group in ("male", "trans_male"):
        return f"{change.text!r} and {marks.couple[0]!r}"
    for found in marks.kin:
        kept = not any(e.start < found.end() and found.start() < e.end for e in changes)
        if kept and found[1].lower() == change.text.lower():
            return f"{change.text!r} and {found[0]!r}"
    only = marks.only
    if only and not change.start <= only.start(1) < change.end and change.text.lower().endswith(_MORE[only[1].lower()]):
        return f"{change.text!r} beside {only[0]!r}"
    return ""
