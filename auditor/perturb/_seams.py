"""Tells where a written term reads as something else with the words around it.

"Asian American" put for "white" before "American" gives "Asian American American"; "Hindu" for both words of
"agnostic secular women" gives "Hindu Hindu women"; "Native American" put for "black" before "British" names two
nations; "American" put for "British" before "Indian" gives "American Indian", which is a race. Such a text is no
English, or names another group than its edit says, so that no suite offers it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

from auditor.core.types import Edit
from auditor.perturb.dictionaries import builtin, load, nations, persons
from auditor.text.english import keys, stands_alone

_AROUND = 60  # characters on each side that are looked at
_BLANK_LINE = re.compile(r"\n\s*\n")  # no term reaches over one
_STEPS = 4  # words on each side that may belong to one noun phrase
_GLUE = frozenset(("-", "‐", "‑", ",", "/"))


def misread(text: str, edits: Sequence[Edit]) -> bool:
    """Whether an edit of ``text`` repeats a neighbour, names a second nation or completes another term.

    ``edits`` are in order and are all made; repairs (kind ``agreement``) are not looked at.

    >>> edit = Edit(attribute="race", kind="swap", source_group="white", target_group="asian",
    ...             source="white", target="Asian American", where=(2, 7))
    >>> misread("A white American", [edit]), misread("A white lawyer", [edit])
    (True, False)
    """
    if any(_repeats(text, edits, i) for i in range(len(edits))):
        return True
    return any(edit.kind != "agreement" and _doubtful(edit) and _clashes(text, edits, edit) for edit in edits)


def _repeats(text: str, edits: Sequence[Edit], i: int) -> bool:
    """Whether an edit puts a word next to the same word, where its original had two."""
    edit, own = edits[i], edits[i].target.lower().split()
    assert isinstance(edit.where, tuple)
    start, end = edit.where
    if not own or edit.kind == "agreement":
        return False
    if i and _touching(edits[i - 1], edit):
        if edits[i - 1].target.lower().split()[-1:] == own[:1]:
            return edits[i - 1].source.lower() != edit.source.lower()
    elif text[start - 1 : start].isspace() and _stands(text, start - 1 - len(own[0]), own[0]):
        return True
    unchanged = i + 1 == len(edits) or not _touching(edit, edits[i + 1])
    return unchanged and text[end : end + 1].isspace() and _stands(text, end + 1, own[-1])


def _touching(one: Edit, other: Edit) -> bool:
    assert isinstance(one.where, tuple)
    assert isinstance(other.where, tuple)
    return other.where[0] - one.where[1] == 1


def _stands(text: str, start: int, word: str) -> bool:
    """Whether ``word`` stands at ``start``, no part of a longer or hyphenated one."""
    end = start + len(word)
    return start >= 0 and text[start:end].lower() == word and stands_alone(text, start, end)


def _doubtful(edit: Edit) -> bool:
    return not _edges().isdisjoint(edit.target.lower().split())


def _clashes(text: str, edits: Sequence[Edit], edit: Edit) -> bool:
    before, after = _beside(text, edits, edit)
    own = keys(edit.target)
    elsewhere = edit.attribute != "nationality" and not nations().isdisjoint(own)
    if elsewhere and not nations().isdisjoint((*_phrase(before), *_phrase(after))):
        return True
    named = (edit.attribute, edit.target_group)
    seams = [(*before[:1], *own[:1]), (*own[-1:], *after[:1])]
    return any(seam in _terms() and named not in _terms()[seam] for seam in seams)


def _beside(text: str, edits: Sequence[Edit], edit: Edit) -> tuple[list[str], list[str]]:
    """The words before an edit, the nearest first, and those after it, with the other edits made."""
    start, end = _span(edit)
    left, right = max(0, start - _AROUND), min(len(text), end + _AROUND)
    before = [e for e in _from(edits, left, start) if _span(e)[1] <= start and e is not edit]
    after = [e for e in _from(edits, end, right) if _span(e)[1] <= right and e is not edit]
    back = _BLANK_LINE.split(_made(text, left, start, before))[-1]
    ahead = _BLANK_LINE.split(_made(text, end, right, after))[0]
    return keys(back)[::-1], keys(ahead)


def _from(edits: Sequence[Edit], first: int, last: int) -> Sequence[Edit]:
    """Those of ``edits`` (in order) that begin between two offsets, or at one."""
    low = bisect_left(edits, (first, 0), key=_span)
    return edits[low : bisect_left(edits, (last + 1, 0), low, key=_span)]


def _span(edit: Edit) -> tuple[int, int]:
    assert isinstance(edit.where, tuple)
    return edit.where


def _made(text: str, start: int, end: int, edits: Sequence[Edit]) -> str:
    parts, at = [], start
    for edit in edits:
        first, last = _span(edit)
        parts += [text[at:first], edit.target]
        at = last
    return "".join([*parts, text[at:end]])


def _phrase(around: Sequence[str]) -> list[str]:
    """The words next to a term that belong to its noun phrase: modifiers, and the first word that is none."""
    out: list[str] = []
    for word in around:
        if word in _GLUE:
            continue
        out.append(word)
        if len(out) == _STEPS or word not in _modifiers():
            break
    return out


@lru_cache(maxsize=1)
def _modifiers() -> frozenset[str]:
    """Words that may stand between a term and the noun of its phrase."""
    own = {t.text.lower() for name in builtin() for t in load(name).terms if t.pos.startswith("JJ")}
    return persons()[2] | own


@lru_cache(maxsize=1)
def _terms() -> dict[tuple[str, ...], set[tuple[str, str]]]:
    """The terms of two words that are looked for, and what they name."""
    out: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for name in builtin():
        for term in load(name).sources:
            found = tuple(keys(term.text))
            if len(found) == 2:
                out.setdefault(found, set()).add((term.attribute, term.group))
    return out


@lru_cache(maxsize=1)
def _edges() -> frozenset[str]:
    """Words that a term of two words begins or ends with, and nations: others cannot clash."""
    return nations() | {key for found in _terms() for key in found}
