"""Sentence boundaries by punctuation alone."""

from __future__ import annotations

import re

from auditor.text.english import word_list, word_set

# One leading character class lets the regular-expression engine skip ordinary text at full speed. The
# look-behind against two stops in a row keeps long runs of dots linear.
_GAP = r"(?:\s|<[bB][rR]\s*/?>)"
_CANDIDATE = re.compile(
    rf"""
    [.!?…\n\r\u2028\u2029<]
    (?:
      (?<=[.!?…])(?<![.!?…][.!?…])(?P<more>[.!?…]*+)
      (?:(?P<close>["'”’)\]}}»]*+)(?P<gap>{_GAP}++) | (?<=[a-z][a-z][.!?])(?=[A-Z][a-z]))
    | (?<=[\n\r\u2028\u2029]){_GAP}*+
    | (?<=<)[bB][rR]\s*/?>{_GAP}*+
    )
    """,
    re.VERBOSE,
)
_BREAK = re.compile(r"<[bB][rR]\s*/?>|\n[^\S\n]*\n|\u2029|\r\n?[^\S\n\r]*\r")
_TAG = re.compile(r"<[bB][rR]\s*/?>")
_OPENERS = "\"'“‘([{«*_-–— "
_CLOSERS = "\"'”’)]}»"
_REACH = 24  # characters before a stop that can hold an abbreviation
_CONTENT = re.compile(r"[^\W_]")
_INITIALS = re.compile(r"[A-Za-z](?:\.[A-Za-z])+")
_STOPS = ".!?…"
_GOES_ON = tuple(",;:-–—")
_SHORT = word_set("is it me us so to do go up in on of he we my no be by ok tv")
_NEXT_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")

_BEFORE_NAME, _BEFORE_NUMBER = word_list("before_a_name"), word_list("before_a_number")
_MAY_END, _STARTERS = word_list("may_end"), word_list("starters")


def sentences(text: str) -> list[tuple[int, int]]:
    """Split ``text`` into sentences: spans ``[start, end)`` in characters that tile the text."""
    spans: list[tuple[int, int]] = []
    start, scanned, size = 0, 0, len(text)
    letters = ink = False  # seen since start; looked for once per character, so that this stays linear
    for mark in _CANDIDATE.finditer(text):
        at, end = mark.span()
        letters = letters or _CONTENT.search(text, scanned, at) is not None
        ink = ink or letters or text[at] in _STOPS or (scanned < at and not text[scanned:at].isspace())
        scanned = end
        if end >= size:
            break
        if ink and _ends(text, mark, start, letters):
            spans.append((start, end))
            start = end
            letters = ink = False
    if start < size:
        spans.append((start, size))
    return spans


def strip_breaks(text: str) -> str:
    """Put spaces in the place of ``<br />`` tags, so that every character keeps its offset."""
    if "<" not in text:
        return text
    return _TAG.sub(lambda tag: " " * (tag.end() - tag.start()), text)


def _ends(text: str, mark: re.Match[str], start: int, letters: bool) -> bool:
    """Whether the candidate ends the sentence that began at ``start``; ``letters``: it has some."""
    at, end = mark.span()
    if text[at] not in _STOPS:
        if _BREAK.search(text, at, end):
            return True
        return not (text[end].islower() or text[max(start, at - _REACH) : at].rstrip()[-1:] in _GOES_ON)
    gap = mark["gap"] or ""
    if len(gap) > 1 and _BREAK.search(gap):
        return True
    if not letters:  # nothing but punctuation so far: "... and", ". . ."
        return False
    after = end
    while after < len(text) and text[after] in _OPENERS:
        after += 1
    following = text[after : after + 1]
    stop = text[at] + mark["more"]
    if "!" in stop or "?" in stop:
        return not (mark["close"] and following.islower())
    if len(stop) > 1 or stop == "…":
        return following.isupper()
    return _full_stop_ends(text, at, start, after, following)


def _full_stop_ends(text: str, at: int, start: int, after: int, following: str) -> bool:
    """Whether the single full stop at ``at`` ends a sentence; ``following`` is the next letter or digit."""
    word = text[max(start, at - _REACH) : at].rsplit(None, 1)
    if not word or text[at - 1].isspace():  # tokenised text: the stop stands alone
        return True
    plain = word[-1].strip(_OPENERS + _CLOSERS)
    low = plain.lower()
    if low in _BEFORE_NAME:
        return False
    if low in _BEFORE_NUMBER and following.isdigit():
        return False
    doubtful = low in _MAY_END or (len(plain) == 1 and plain.isalpha()) or _INITIALS.fullmatch(plain)
    if following.islower():
        return not doubtful and (len(plain) > 2 or low in _SHORT)
    if doubtful:
        word_after = _NEXT_WORD.match(text, after)
        return word_after is None or word_after[0].lower() in _STARTERS
    return not (plain.isdigit() and len(plain) <= 2 and text[max(start, at - _REACH) : at].strip() == plain)
