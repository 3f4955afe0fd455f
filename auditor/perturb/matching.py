"""Finds dictionary terms in a text: one pass over its tokens, all terms at once, the longest first.

Matching is on whole words, in lower, Title or UPPER case. The conditions of a term (only before a person
noun, only with a capital letter …) are read from the neighbouring tokens. Ambiguous pronouns (her, his) are
settled by the tag that the parser gives them, or by rule where there is no parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from auditor.perturb.combine import grouped
from auditor.perturb.context import Context
from auditor.perturb.dictionaries import Dictionary, Term, persons, phrases, titles
from auditor.text.english import FUNCTION_WORDS, Word, stands_alone, word_list, words

_LETS = frozenset(("let", "lets", "make", "makes", "made", "making", "letting"))
_OWNED = frozenset(("own", "other", "mere", "many"))
_WHOSE = frozenset(("own", "whole", "entire", "next", "last", "latest", "former"))  # and no object before them
_TIMES = word_list("times")
_VERBS = word_list("verbs_behind_her")
_MARKUP = re.compile(r"(?:</[A-Za-z][^<>]*>|[*_])+")  # closes behind a word
_TIES = frozenset("\u00ad\u200c\u200d\u2060")  # soft hyphen, joiners
_QUOTED = re.compile(r"\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”")
_FEW_WORDS = re.compile(r"\s?(?:[\w'’-]+ ){1,4}[\w'’-]+\s?[,.!]?\s?")
_CLAUSAL = frozenset(("is", "are", "was", "were", "has", "have", "had", "can", "will"))  # of a sentence


class Hit(NamedTuple):
    """One place where a term stands: ``text[start:end]``, the terms it may be, and its token's number."""

    start: int
    end: int
    surface: str
    terms: tuple[Term, ...]
    token: int

    @property
    def term(self) -> Term:
        """The first of the terms; all are of one attribute."""
        return self.terms[0]

    @property
    def open(self) -> bool:
        """Whether the terms are of several slots (her, his), so that a parse has to say which."""
        return any(term.slot != self.term.slot for term in self.terms)


class Scan(NamedTuple):
    """The tokens of a text and the terms in it."""

    text: str
    tokens: list[Word]
    hits: list[Hit]

    def settled(self, tags: Mapping[int, str] | None = None) -> list[Hit]:
        """Give every ambiguous pronoun its slot: by its Penn tag (``tags`` by start offset), or else by rule."""
        return [_one_slot(self, hit, (tags or {}).get(hit.start)) if hit.open else hit for hit in self.hits]


_Entry = tuple[tuple[str, ...], tuple[Term, ...]]


class Matcher:
    """All source terms of some dictionaries, by first token."""

    def __init__(self, dictionaries: Sequence[Dictionary], beside: Sequence[Dictionary] = ()) -> None:
        typed = [d for d in dictionaries if not d.raw]
        layers = [typed] if typed else []
        layers += [[d] for d in dictionaries if d.raw]
        self._layers = [_index([t for d in layer for t in d.sources]) for layer in layers]
        known = [t for d in (*typed, *beside) if not d.raw for t in d.sources]
        adjectives = frozenset(t.text.lower() for t in known if t.slot.startswith("adjective"))
        nouns = {t.text.lower() for d in typed for t in d.sources if t.pos in {"NN", "NNS"} and t.role}
        self._context = Context(adjectives, nouns)

    def scan(self, text: str) -> Scan:
        """Find every term in ``text``; hits are in order and those of one dictionary do not overlap."""
        tokens = words(text)
        hits = [hit for index in self._layers for hit in self._search(index, text, tokens)]
        return Scan(text, tokens, sorted(hits, key=lambda h: (h.start, h.end, h.term.attribute)))

    def _search(self, index: Mapping[str, list[_Entry]], text: str, tokens: list[Word]) -> Iterator[Hit]:
        free = 0
        for i, token in enumerate(tokens):
            entries = index.get(token.key)
            if entries is None or i < free:
                continue
            for keys, terms in entries:
                n = len(keys)
                if n > 1 and not _follows(text, tokens, i, keys):
                    continue
                start, end = token.start, tokens[i + n - 1].end
                if not _alone(text, start, end):
                    continue
                fitting = self._context.fitting(text, tokens, i, n, terms)
                if fitting and not _is_fixed(text, start, fitting[0]):
                    yield Hit(start, end, text[start:end], fitting, i)
                    free = i + n
                    break


def _alone(text: str, start: int, end: int) -> bool:
    """Whether a word of its own stands there; what an invisible hyphen or joiner ties to another is none."""
    if text[start - 1 : start] in _TIES or text[end : end + 1] in _TIES:
        tied = text[start - 2 : start - 1].isalnum() or text[end + 1 : end + 2].isalnum()
        return not tied and stands_alone(text, start, end)
    return stands_alone(text, start, end)


class _Span(NamedTuple):
    start: int
    end: int
    kind: str  # "title", "quoted" (pronouns in it may change) or "phrase" (of a gender alone)


@lru_cache(maxsize=256)
def _fixed_spans(text: str) -> tuple[_Span, ...]:
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
    if _FEW_WORDS.fullmatch(quoted):
        return not _CLAUSAL & set(quoted.lower().split())
    long = [word for word in quoted.split() if len(word) > 3 and word.isalpha()]
    return len(long) > 2 and all(word[0].isupper() for word in long)


def _is_fixed(text: str, start: int, term: Term) -> bool:
    """Whether a word stays as it is: in a title, in quotation marks that hold a name, or in a fixed phrase."""
    for first, last, kind in _fixed_spans(text):
        if first <= start < last:
            free = term.slot.startswith("pronoun.") if kind == "quoted" else term.attribute != "gender"
            if kind == "title" or not free:
                return True
    return False


def _index(terms: Sequence[Term]) -> dict[str, list[_Entry]]:
    index: dict[str, list[_Entry]] = {}
    for keys, same in grouped((_keys(term.text), term) for term in terms).items():
        # A noun reading is the narrower one: it is asked before the adjective.
        same.sort(key=lambda t: "as:noun" not in t.tags)
        index.setdefault(keys[0], []).append((keys, tuple(same)))
    for entries in index.values():
        entries.sort(key=lambda e: -len(e[0]))
    return index


def _keys(term: str) -> tuple[str, ...]:
    """Tokens of a term; a token after white space carries a leading blank."""
    tokens = words(term)
    following = (word.key if before.end == word.start else " " + word.key for before, word in pairwise(tokens))
    return (*(word.key for word in tokens[:1]), *following)


def _follows(text: str, tokens: list[Word], i: int, keys: tuple[str, ...]) -> bool:
    if i + len(keys) > len(tokens):
        return False
    for k in range(1, len(keys)):
        before, word = tokens[i + k - 1], tokens[i + k]
        key = word.key
        if before.end != word.start:
            gap = text[before.end : word.start]
            if not gap.isspace() or gap.count("\n") > 1:
                return False
            key = " " + key
        if key != keys[k]:
            return False
    return True


def _after_pair(scan: Scan, hit: Hit) -> Word | None:
    """The token after a pronoun and its markup, or after the pair that a slash ties together (his/her bag)."""
    tokens, j = scan.tokens, hit.token + 1
    glued = tokens[j : j + 2]
    if len(glued) == 2 and glued[0].key == "/" and hit.end == glued[0].start and glued[0].end == glued[1].start:
        j += 2
    marks = _MARKUP.match(scan.text, hit.end)
    while marks and j < len(tokens) and tokens[j].start < marks.end():
        j += 1
    return tokens[j] if j < len(tokens) else None


def _owned(scan: Scan, hit: Hit, following: Word) -> bool:
    """Whether the word after a pronoun says that something is owned (*her whole time*, *his next film*)."""
    then = next((w.key for w in scan.tokens[hit.token + 2 : hit.token + 3]), "")
    if following.key in ("on", "off") and then in ("screen", "stage", "camera"):
        return True  # *his on screen presence*
    if following.key == "need" and then == "for":
        return True
    return following.key in _WHOSE and then[:1].isalnum() and then not in FUNCTION_WORDS | _TIMES


def _one_slot(scan: Scan, hit: Hit, tag: str | None) -> Hit:
    if not all(term.slot.startswith("pronoun.") for term in hit.terms):
        return hit
    low = hit.surface.lower()
    following = _after_pair(scan, hit)
    ends = following is None or (not following.key[0].isalnum() and following.key not in "\"'“‘(*")
    owned = following is not None and not ends and _owned(scan, hit, following)
    closed = ends or (following is not None and following.key in FUNCTION_WORDS - _OWNED and not owned)
    before = scan.tokens[hit.token - 1].key if hit.token else ""
    other = "pronoun.object" if low == "her" else "pronoun.independent"
    verb = low == "her" and following is not None and following.key in _VERBS
    if verb or (closed and (ends or low == "his" or tag != "PRP$")):
        slot = other
    elif low == "his" or (owned and before not in _LETS):
        slot = "pronoun.possessive"
    elif tag is not None:
        slot = "pronoun.possessive" if tag == "PRP$" else other
    else:
        singular, plural, _ = persons()
        person = following is not None and (following.key in singular or following.key in plural)
        slot = other if before in _LETS and not person else "pronoun.possessive"
    return hit._replace(terms=tuple(t for t in hit.terms if t.slot == slot))
