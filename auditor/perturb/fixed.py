"""Words of a text that stay as they are: in titles, in quotation marks that hold a name, and in fixed phrases."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from auditor.perturb.dictionaries import Term, phrases, titles

_QUOTED = re.compile(r"\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”")
_FEW = re.compile(r"\s?(?:[\w'’-]+ ){1,4}[\w'’-]+\s?[,.!]?\s?")
_VERBS = frozenset(("is", "are", "was", "were", "has", "have", "had", "can", "will"))  # of a sentence


class _Span(NamedTuple):
    start: int
    end: int
    kind: str  # "title", "quoted" (pronouns in it may change) or "phrase" (of a gender alone)


@lru_cache(maxsize=256)
def _spans(text: str) -> tuple[_Span, ...]:
    low = text.lower()
    spans = [
        _Span(*match.span(), "title")
        for word in titles().keys() & set(re.findall(r"[\w’'-]+", low))
        for known in titles()[word]
        for match in re.finditer(rf"(?<!\w){re.escape(known)}(?!\w)", low)
    ]
    spans += [_Span(*match.span(), "quoted") for match in _QUOTED.finditer(text) if _named(match[1] or match[2])]
    spans += [_Span(*match.span(), "phrase") for match in phrases().finditer(text)]
    return tuple(spans)


def _named(quoted: str) -> bool:
    """Whether these are a few words that are no sentence, or more of which each has a capital."""
    if _FEW.fullmatch(quoted):
        return not _VERBS & set(quoted.lower().split())
    long = [word for word in quoted.split() if len(word) > 3 and word.isalpha()]
    return len(long) > 2 and all(word[0].isupper() for word in long)


def is_fixed(text: str, start: int, term: Term) -> bool:
    """Whether a word that begins at ``start`` stays as it is."""
    for first, last, kind in _spans(text):
        if first <= start < last:
            free = term.slot.startswith("pronoun.") if kind == "quoted" else term.attribute != "gender"
            if kind == "title" or not free:
                return True
    return False
