"""Finds dictionary terms in a text: one pass over its tokens, all terms at once, the longest first.

Matching is on whole words, in lower, Title or UPPER case. The conditions of a term (only before a person
noun, only with a capital letter …) are read from the neighbouring tokens. Ambiguous pronouns (her, his) are
settled by the tag that the parser gives them, or by rule where there is no parser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from auditor.dictionaries import Dictionary, Term, persons
from auditor.text.english import (
    ABBREVIATIONS,
    BE_FORMS,
    FUNCTION_WORDS,
    Word,
    case_of,
    plural_verb,
    stands_alone,
    starts_sentence,
    words,
)

_DETERMINERS = frozenset(
    ("a", "an", "the", "one", "another", "every", "each", "this", "that", "first", "only")
)
_BEFORE_NOUN = _DETERMINERS | frozenset(
    ("these", "those", "my", "your", "his", "their", "our", "its", "some", "two", "three", "many", "several")
)
_COMMON_VERBS = frozenset(
    (
        "be",
        "are",
        "were",
        "have",
        "do",
        "go",
        "say",
        "know",
        "see",
        "come",
        "want",
        "work",
        "live",
        "play",
        "love",
        "find",
    )
)
_PAST = frozenset(
    (
        "left", "went", "came", "said", "told", "took", "made", "got", "gave", "saw", "knew", "found", "sat",
        "stood", "ran", "wrote", "spoke", "met", "held", "thought", "brought", "felt", "kept", "lost", "won",
    )
)  # fmt: skip
_AND = frozenset(("and", "or", ",", "/", "&"))
_ADVERBS = frozenset(
    ("not", "also", "really", "originally", "actually", "half", "part", "both", "all", "very")
)
_LETS = frozenset(("let", "lets", "make", "makes", "made", "making", "letting"))
AMBIGUOUS = frozenset(("her", "his"))


class Hit(NamedTuple):
    """One place where a term stands: ``text[start:end]``, the terms it may be, and its token's number."""

    start: int
    end: int
    surface: str
    terms: tuple[Term, ...]
    token: int


class Scan(NamedTuple):
    """The tokens of a text and the terms in it; ``open`` are the hits that need a parse (her, his)."""

    text: str
    tokens: list[Word]
    hits: list[Hit]
    open: list[Hit]


class Place(NamedTuple):
    """Where a modifier may be put: ``text[at:]`` begins with a person noun, which is token ``token``."""

    at: int
    token: int
    upper: bool  # the noun is written in capitals


_Entry = tuple[tuple[str, ...], tuple[Term, ...]]


class Matcher:
    """All source terms of some dictionaries, by first token.

    Typed dictionaries are searched together, so that "Native American" is never read as a nationality; each
    raw dictionary on its own, since the published pair files of different attributes hold the same words.

    Parameters
    ----------
    dictionaries : sequence of Dictionary
        The dictionaries to search for.
    """

    def __init__(self, dictionaries: Sequence[Dictionary]) -> None:
        typed = [d for d in dictionaries if not d.raw]
        layers = [typed] if typed else []
        layers += [[d] for d in dictionaries if d.raw]
        self._layers = [_index([t for d in layer for t in d.sources]) for layer in layers]
        self._adjectives = frozenset(
            t.text.lower() for d in typed for t in d.sources if t.slot.startswith("adjective")
        )
        nouns = {t.text.lower() for d in typed for t in d.sources if t.pos in {"NN", "NNS"} and t.role}
        self._context = _Context(self._adjectives, nouns)

    def scan(self, text: str) -> Scan:
        """Find every term in ``text``; hits are in order and those of one dictionary do not overlap."""
        tokens = words(text)
        hits: list[Hit] = []
        for index in self._layers:
            self._search(index, text, tokens, hits)
        if len(self._layers) > 1:
            hits.sort(key=lambda h: (h.start, h.end, h.terms[0].attribute))
        pending = [h for h in hits if len({t.slot for t in h.terms}) > 1]
        return Scan(text, tokens, hits, pending)

    def places(self, scan: Scan) -> list[Place]:
        """Find person nouns that stand right behind a determiner and are no part of a compound.

        Only there a modifier can be put before the noun by the neighbouring words alone (a man, his wife;
        not a police officer, the student union, tall men).
        """
        out = []
        for i in range(1, len(scan.tokens)):
            word, before = scan.tokens[i], scan.tokens[i - 1]
            if word.key not in self._context.people or before.key not in _BEFORE_NOUN:
                continue
            surface = scan.text[word.start : word.end]
            if scan.text[before.end : word.start] != " " or not stands_alone(scan.text, word.start, word.end):
                continue
            following = scan.tokens[i + 1] if i + 1 < len(scan.tokens) else None
            if following is not None and following.key[0].isalnum() and not _closes(following.key):
                continue
            if case_of(surface) in {"lower", "upper"}:
                out.append(Place(word.start, i, case_of(surface) == "upper"))
        return out

    def _search(
        self, index: Mapping[str, list[_Entry]], text: str, tokens: list[Word], hits: list[Hit]
    ) -> None:
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
                if not stands_alone(text, start, end):
                    continue
                fitting = self._context.fitting(text, tokens, i, n, terms)
                if fitting:
                    hits.append(Hit(start, end, text[start:end], fitting, i))
                    free = i + n
                    break


def _closes(word: str) -> bool:
    """Whether a noun phrase ends before ``word``, by its form: a function word or a past or third-person verb."""
    if word in _PAST:
        return True
    return word in FUNCTION_WORDS or word.endswith("ed") or plural_verb(word) in _COMMON_VERBS


def _index(terms: Sequence[Term]) -> dict[str, list[_Entry]]:
    by_keys: dict[tuple[str, ...], list[Term]] = {}
    for term in terms:
        by_keys.setdefault(_keys(term.text), []).append(term)
    index: dict[str, list[_Entry]] = {}
    for keys, found in by_keys.items():
        # A noun reading is the narrower one: it is asked before the adjective.
        found.sort(key=lambda t: "as:noun" not in t.tags)
        index.setdefault(keys[0], []).append((keys, tuple(found)))
    for entries in index.values():
        entries.sort(key=lambda e: -len(e[0]))
    return index


def _keys(term: str) -> tuple[str, ...]:
    """Tokens of a term; a token after white space carries a leading blank."""
    found = words(term)
    glued = [w.key for w in found[:1]]
    for before, word in pairwise(found):
        glued.append(word.key if before.end == word.start else " " + word.key)
    return tuple(glued)


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


class _Context:
    """Says which of the terms that share a spelling fit their neighbourhood."""

    def __init__(self, adjectives: frozenset[str], nouns: set[str]) -> None:
        self._singular, self._plural, self._modifiers = persons()
        self._adjectives = adjectives
        self.people = self._people = self._singular | self._plural | {n.split()[-1] for n in nouns}

    def fitting(
        self, text: str, tokens: list[Word], i: int, n: int, terms: tuple[Term, ...]
    ) -> tuple[Term, ...]:
        """Return the terms that fit; several only where they differ in group, or in a pronoun's slot."""
        surface = text[tokens[i].start : tokens[i + n - 1].end]
        case = case_of(surface)
        if case == "mixed" and all(surface != t.text for t in terms):
            return ()
        if terms[0].slot == "pair":
            return terms
        at = _Place(text, tokens, i, n, surface, case)
        if case == "title" and not self._name_rule(at, terms[0]):
            return ()
        good = [t for t in terms if self._fits(at, t)]
        if len(good) > 1 and not good[0].slot.startswith("pronoun."):
            good = good[:1]
        return tuple(good)

    def _name_rule(self, at: _Place, term: Term) -> bool:
        """Refuse a capitalised word that is part of a name (Iron Man, American Beauty, Jack Black)."""
        if "before:name" in term.tags or "name" in term.tags:
            return True
        own = term.text[0].isupper()
        following = at.near(1)
        if following and following[0].isupper() and following.lower() not in FUNCTION_WORDS:
            known = following.lower() in self._people or following.lower() in self._adjectives
            if not known and not (at.at_start and term.slot.startswith("pronoun.")):
                return False
        if at.at_start:
            return True
        before = at.near(-1)
        if not before or not before[0].isupper() or before.lower() in FUNCTION_WORDS:
            return True
        if before.lower() in ABBREVIATIONS:
            return False
        return own and starts_sentence(at.text, at.tokens[at.i - 1].start)

    def _fits(self, at: _Place, term: Term) -> bool:
        tags = term.tags
        before, after = at.key(-1), at.key(1)
        if before in term.not_after or after in term.not_before:
            return False
        if not tags:
            return True
        if "lower" in tags and at.case == "title" and not at.at_start and before not in _DETERMINERS:
            return False
        if "no_exclamation" in tags and at.at_start and after in {",", "!"}:
            return False
        if "before:name" in tags and not self._before_name(at):
            return False
        if "name" in tags and not self._first_name(at):
            return False
        if "after:person" in tags and not self._after_person(at):
            return False
        if "case" in tags and not self._capital(at):
            return False
        if "before:person" in tags and not self._before_person(at):
            return False
        if "as:noun" in tags and not self._as_noun(at):
            return False
        return not ("as:adjective" in tags and not self._as_adjective(at, term))

    def _before_name(self, at: _Place) -> bool:
        name = at.near(1)
        if at.case == "lower" or not name or not name[0].isupper() or not name[0].isalpha():
            return False
        return at.case == "title" or case_of(name) == "upper"

    def _first_name(self, at: _Place) -> bool:
        """Whether a capitalised word opens a name: nothing but a person word or a function word before it."""
        if at.case != "title":
            return False
        before = at.near(-1)
        low = before.lower()
        if low in _DETERMINERS or low == "saint":
            return False
        if before and before[0].isupper() and low not in FUNCTION_WORDS and low not in self._people:
            return low in ABBREVIATIONS or starts_sentence(at.text, at.tokens[at.i - 1].start)
        return True

    def _after_person(self, at: _Place) -> bool:
        return bool(at.near(-1)) and at.key(-1) in self._people

    def _capital(self, at: _Place) -> bool:
        if at.case == "lower":
            return False
        if at.at_start or at.case == "upper":
            return (at.near(1) or "").lower() in self._people
        return True

    def _before_person(self, at: _Place) -> bool:
        j, steps, coordinated = at.i + at.n, 0, False
        while j < len(at.tokens) and steps < 4:
            word, j = _hyphenated(at.text, at.tokens, j)
            if word in self._modifiers or word in self._adjectives:
                steps += 1
            elif word in self._plural or (word in self._singular and not coordinated):
                return True
            elif word in _AND and not coordinated:
                following = _hyphenated(at.text, at.tokens, j)[0] if j < len(at.tokens) else ""
                if following not in self._adjectives:
                    return False
                coordinated = True
            else:
                return word.endswith("-year-old") and self._person_at(at, j)
        return False

    def _person_at(self, at: _Place, j: int) -> bool:
        return j < len(at.tokens) and at.tokens[j].key in self._people

    def _as_noun(self, at: _Place) -> bool:
        after = at.key(1)
        if after and after not in FUNCTION_WORDS and after[0].isalnum():
            return False
        if not after and at.glued(1):
            return False
        before, further = at.key(-1), at.key(-2)
        if before in _DETERMINERS:
            return True
        return further in _DETERMINERS and before not in FUNCTION_WORDS and before.isalpha()

    def _as_adjective(self, at: _Place, term: Term) -> bool:
        following, before = at.near(1), at.key(-1)
        if before in _ADVERBS:
            before = at.key(-2)
        if following:
            low = following.lower()
            if low in _AND:
                further = at.tokens[at.i + at.n + 1 :][:1]
                return bool(further) and further[0].key in self._adjectives
            if low not in FUNCTION_WORDS:
                return following[0].islower() or low in self._people or at.case == "upper"
        return before in BE_FORMS or (before == "s" and at.key(-2) == "'")


class _Place:
    """A match and its neighbours; steps count tokens from the match: -1 before it, 1 after it."""

    __slots__ = ("_start", "case", "i", "n", "surface", "text", "tokens")

    def __init__(self, text: str, tokens: list[Word], i: int, n: int, surface: str, case: str) -> None:
        self.text, self.tokens, self.i, self.n, self.surface, self.case = text, tokens, i, n, surface, case
        self._start: bool | None = None

    @property
    def at_start(self) -> bool:
        if self._start is None:
            self._start = starts_sentence(self.text, self.tokens[self.i].start)
        return self._start

    def _index(self, step: int) -> int:
        return self.i + step if step < 0 else self.i + self.n - 1 + step

    def key(self, step: int) -> str:
        j = self._index(step)
        return self.tokens[j].key if 0 <= j < len(self.tokens) else ""

    def glued(self, step: int) -> bool:
        j = self._index(step)
        return 0 <= j < len(self.tokens) and self.tokens[j].start == self.tokens[j - 1].end

    def near(self, step: int) -> str:
        """Return the neighbouring word if only white space lies between, else ""."""
        j = self._index(step)
        if not 0 <= j < len(self.tokens):
            return ""
        one = self.tokens[j]
        gap = (
            self.text[self.tokens[self.i + self.n - 1].end : one.start]
            if step > 0
            else (self.text[one.end : self.tokens[self.i].start])
        )
        if gap and not gap.isspace():
            return ""
        word = self.text[one.start : one.end]
        return word if word[0].isalnum() or word in _AND else ""


def _hyphenated(text: str, tokens: list[Word], j: int) -> tuple[str, int]:
    """Return the token at ``j`` with what hyphens join to it, and the number of the token after."""
    word, end = tokens[j].key, tokens[j].end
    j += 1
    while j + 1 < len(tokens) and tokens[j].key == "-" and tokens[j].start == end == tokens[j + 1].start - 1:
        word, end = f"{word}-{tokens[j + 1].key}", tokens[j + 1].end
        j += 2
    return word, j


def settle(scan: Scan, tags: Mapping[int, str]) -> list[Hit]:
    """Give every ambiguous pronoun its slot.

    Parameters
    ----------
    scan : Scan
        The text with its hits.
    tags : mapping of int to str
        Penn tags of ambiguous hits by start offset; a hit without one goes by rule.

    Returns
    -------
    list of Hit
        All hits, each with terms of one slot.
    """
    if not scan.open:
        return scan.hits
    pending = {h.start for h in scan.open}
    return [_one_slot(scan, h, tags.get(h.start)) if h.start in pending else h for h in scan.hits]


def _one_slot(scan: Scan, hit: Hit, tag: str | None) -> Hit:
    slots = {t.slot for t in hit.terms}
    if not all(s.startswith("pronoun.") for s in slots):
        return hit
    low = hit.surface.lower()
    following = scan.tokens[hit.token + 1] if hit.token + 1 < len(scan.tokens) else None
    ends = following is None or (not following.key[0].isalnum() and following.key not in "\"'“‘(*")
    closed = ends or (
        following is not None and following.key in FUNCTION_WORDS - {"own", "other", "mere", "many"}
    )
    other = "pronoun.object" if low == "her" else "pronoun.independent"
    if closed and (ends or low == "his" or tag != "PRP$"):
        slot = other
    elif low == "his":
        slot = "pronoun.possessive"
    elif tag is not None:
        slot = "pronoun.possessive" if tag == "PRP$" else other
    else:
        before = scan.tokens[hit.token - 1].key if hit.token else ""
        singular, plural, _ = persons()
        person = following is not None and (following.key in singular or following.key in plural)
        slot = other if before in _LETS and not person else "pronoun.possessive"
    return hit._replace(terms=tuple(t for t in hit.terms if t.slot == slot))
