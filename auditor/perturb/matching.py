"""Finds the terms of dictionaries in a text, and whose words they are.

One pass over the tokens takes all terms at once, the longest first. Matching is on whole words, in lower, Title or
UPPER case. The conditions of a term (only before a person noun, only with a capital letter …) are read from the
neighboring tokens. Ambiguous pronouns (her, his) are settled by the tag that the parser gives them, or by rule where
there is no parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from auditor.core.errors import ConfigError
from auditor.core.types import SourceText, Span, grouped
from auditor.perturb.dictionaries import Dictionary, Term, load, persons, phrases, titles
from auditor.text.english import (
    ABBREVIATIONS,
    BE_FORMS,
    FUNCTION_WORDS,
    Word,
    case_of,
    plural_verb,
    stands_alone,
    starts_sentence,
    word_list,
    words,
)
from auditor.text.parse import Parse, Parsed, Parser, sentences
from auditor.text.people import PRONOUNS, Lexicon, people, touches

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


# -- which of the terms that share a spelling fit, by the words around them ----------------------------------


DETERMINERS = frozenset(("a", "an", "the", "one", "another", "every", "each", "this", "that", "first", "only"))
_POINTS = frozenset(("the", "these", "those", "my", "your", "his", "her", "our", "their", "its"))
_AND = frozenset(("and", "or", ",", "/", "&"))
_ADVERBS = frozenset(("not", "also", "really", "originally", "actually", "half", "part", "both", "all", "very"))
_COMMON_VERBS = word_list("common_verbs")
# Where somebody talks to somebody, *well,* may open a sentence; in a report of a case it does not.
_SPOKEN = re.compile(r"[^\W\d_]n['’]t\b|['’](?:m|re|ve|ll)\b|\b(?:I|my|you|your)\b|[!?]")
_PAST = word_list("past")
_MONTHS = word_list("months")
_HELD = word_list("held")


def closes(word: str) -> bool:
    """Whether a noun phrase ends before ``word``, by its form: a function word or a past or third-person verb."""
    if word in _PAST:
        return True
    return word in FUNCTION_WORDS or word.endswith("ed") or plural_verb(word) in _COMMON_VERBS


class Context:
    """The words of dictionaries by which terms are told apart: adjectives, and nouns for people."""

    def __init__(self, adjectives: frozenset[str], nouns: set[str]) -> None:
        self.singular, self.plural, self.modifiers = persons()
        self.adjectives = adjectives
        self.people = self.singular | self.plural | {n.split()[-1] for n in nouns}

    def fitting(self, text: str, tokens: list[Word], i: int, n: int, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        """Return the terms that fit; several only where they differ in group, or in a pronoun's slot."""
        at = _Place(self, text, tokens, i, n)
        if at.case == "mixed" and all(at.surface.replace("’", "'") != t.text for t in terms):
            return ()
        if terms[0].slot == "pair":
            return terms
        pronoun = terms[0].slot.startswith("pronoun.")
        if at.key(1) == "/" and not pronoun:
            return ()  # writer/director, Mom / Pop
        if at.case == "title" and at.in_a_name(terms[0]):
            return ()
        good = tuple(t for t in terms if at.fits(t))
        return good if good and good[0].slot.startswith("pronoun.") else good[:1]


class _Place:
    """A match and its neighbors; steps count tokens from the match: -1 before it, 1 after it."""

    def __init__(self, known: Context, text: str, tokens: list[Word], i: int, n: int) -> None:
        self.known, self.text, self.tokens, self.i, self.end = known, text, tokens, i, i + n
        self.surface = text[tokens[i].start : tokens[i + n - 1].end]
        self.case = case_of(self.surface)

    @cached_property
    def at_start(self) -> bool:
        return starts_sentence(self.text, self.tokens[self.i].start)

    def _at(self, step: int) -> Word | None:
        j = self.i + step if step < 0 else self.end - 1 + step
        return self.tokens[j] if 0 <= j < len(self.tokens) else None

    def key(self, step: int) -> str:
        token = self._at(step)
        return token.key if token else ""

    def word(self, step: int) -> str:
        """The word or mark at a step as the text has it, "" outside."""
        token = self._at(step)
        return self.text[token.start : token.end] if token else ""

    def near(self, step: int) -> str:
        """Return the neighboring word if only white space lies between, else ""."""
        token, word = self._at(step), self.word(step)
        if token is None:
            return ""
        last = self.tokens[self.end - 1]
        gap = self.text[last.end : token.start] if step > 0 else self.text[token.end : self.tokens[self.i].start]
        return word if (not gap or gap.isspace()) and (word[0].isalnum() or word in _AND) else ""

    def fits(self, term: Term) -> bool:
        """Whether the words around allow the term, and all of its conditions hold."""
        before, after = self.key(-1), self.key(1)
        if before in term.not_after or after in term.not_before or f"{self.key(-2)} {before}" in term.not_after:
            return False
        conditions = (getattr(self, "when_" + tag.replace(":", "_"), None) for tag in term.tags)
        return all(condition is None or condition(term) for condition in conditions)

    def in_a_name(self, term: Term) -> bool:
        """Whether a capitalized word is part of a name (Iron Man, American Beauty, Jack Black)."""
        if "before:name" in term.tags or "name" in term.tags:
            return False
        following = self.near(1)
        if _capital(following):
            known = following.lower() in self.known.people or following.lower() in self.known.adjectives
            if not known and not (self.at_start and term.slot.startswith("pronoun.")):
                return True
        if self.at_start:
            return False
        if self._tied():
            return True
        before = self.near(-1)
        if not _capital(before):
            return False
        if before.lower() in ABBREVIATIONS:
            return True
        return not (term.text[0].isupper() and starts_sentence(self.text, self.tokens[self.i - 1].start))

    def _tied(self) -> bool:
        """Whether *of*, *for* or *with* ties a capitalized word to another (*Institute for Men*, *Sons of Anarchy*)."""
        link, name = self.key(-1), self.word(-2)
        if link in ("of", "for") and _is_name(name) and not starts_sentence(self.text, self.tokens[self.i - 2].start):
            return True
        link, name = self.key(1), self.word(2)
        if link not in ("with", "of", "for") or not _is_name(name) or name.lower() in _MONTHS:
            return False
        return self.key(-1) not in ("the", "a", "an", "some") or self.word(3)[:1].isupper()

    # -- conditions of terms: each is called as its tag in a dictionary is ----

    def when_lower(self, term: Term) -> bool:
        return self.case != "title" or self.at_start or self.key(-1) in DETERMINERS

    def when_start(self, term: Term) -> bool:
        """Whether a capital opens a sentence; a heading has no end of one."""
        line = self.text[self.tokens[self.i].start :].partition("\n")[0]
        return self.at_start and self.surface[0].isupper() and any(mark in line for mark in ".!?")

    def when_spoken(self, term: Term) -> bool:
        return _SPOKEN.search(self.text) is not None

    def when_no_exclamation(self, term: Term) -> bool:
        return not (self.at_start and self.key(1) in {",", "!"})

    def when_before_name(self, term: Term) -> bool:
        name = self.near(1)
        if self.case == "lower" or not name or not name[0].isupper() or not name[0].isalpha():
            return False
        return self.case == "title" or case_of(name) == "upper"

    def when_name(self, term: Term) -> bool:
        """Whether a capitalized word opens a name: nothing but a person word or a function word before it."""
        before = self.near(-1)
        low = before.lower()
        if self.case != "title" or low in DETERMINERS or low == "saint":
            return False
        if _capital(before) and low not in self.known.people:
            return low in ABBREVIATIONS or starts_sentence(self.text, self.tokens[self.i - 1].start)
        return True

    def when_after_person(self, term: Term) -> bool:
        return bool(self.near(-1)) and self.key(-1) in self.known.people

    def when_after_pointer(self, term: Term) -> bool:
        """Whether a determiner or a possessor comes before a noun, with at most one adjective between."""
        for step in (-1, -2):
            word = self.key(step)
            if word in _POINTS or (word == "s" and self.key(step - 1) in ("'", "’")):
                return True
            if not word.isalpha() or word in FUNCTION_WORDS or not self.near(-1):
                return False
        return False

    def when_after_comma(self, term: Term) -> bool:
        return self.key(-1) == ","

    def when_case(self, term: Term) -> bool:
        """Whether a capital is the word's own; where any word has one, a noun for a person has to follow."""
        if self.case != "lower" and (self.at_start or self.case == "upper"):
            return self.near(1).lower() in self.known.people
        return self.case != "lower"

    def when_before_person(self, term: Term) -> bool:
        known, j, steps, coordinated, last = self.known, self.end, 0, False, ""
        while j < len(self.tokens) and steps < 4:
            word, j = _hyphenated(self.tokens, j)
            if word in known.modifiers or word in known.adjectives:
                steps += 1
            elif word in known.plural or (word in known.singular and not coordinated):
                return True
            elif word in _AND and not coordinated:
                following = _hyphenated(self.tokens, j)[0] if j < len(self.tokens) else ""
                if following not in known.adjectives:
                    return last in known.singular
                coordinated = True
            elif word.endswith("-year-old") and j < len(self.tokens) and self.tokens[j].key in known.people:
                return True
            else:  # a white American., a black teenager
                return last in known.singular and (not word[0].isalnum() or closes(word))
            last = word
        return last in known.singular and j == len(self.tokens)

    def _leads_to_person(self) -> bool:
        """Whether the noun phrase that goes on after a match names a person (*a Polish crane driver*)."""
        adjectives = True  # so far: *and* goes on with the phrase (*Kenyan and Swedish captains*)
        for token in self.tokens[self.end : self.end + 5]:
            word = token.key
            if word in self.known.people or word in _HELD:
                return True
            if word == "-" or (word in _AND and adjectives):
                continue
            if not word.isalpha() or word in FUNCTION_WORDS:
                return False
            adjectives = adjectives and word in self.known.adjectives
        return False

    def when_as_noun(self, term: Term) -> bool:
        after = self.key(1)
        if after and after not in FUNCTION_WORDS and after[0].isalnum():
            return False
        before, further = self.key(-1), self.key(-2)
        if before in DETERMINERS:
            return True
        return further in DETERMINERS and before not in FUNCTION_WORDS and before.isalpha()

    def when_as_adjective(self, term: Term) -> bool:
        following, before = self.near(1), self.key(-1)
        if before in _ADVERBS:
            before = self.key(-2)
        low = following.lower()
        if not following or (low in FUNCTION_WORDS and low not in _AND):
            return before in BE_FORMS or (before == "s" and self.key(-2) == "'")
        if term.attribute == "nationality":
            return self._leads_to_person()  # not *Cuban coffee*
        if low in _AND:
            return self.key(2) in self.known.adjectives
        if self.case == "lower" and term.text[0].isupper():  # without capitals no title can be told
            return self.when_before_person(term)
        return following[0].islower() or low in self.known.people or self.case == "upper"


def _capital(word: str) -> bool:
    """Whether a word has a capital and is no function word."""
    return word[:1].isupper() and word.lower() not in FUNCTION_WORDS


def _is_name(word: str) -> bool:
    return len(word) > 1 and word.isalpha() and _capital(word)


def _hyphenated(tokens: list[Word], j: int) -> tuple[str, int]:
    """Return the token at ``j`` with what hyphens join to it, and the number of the token after."""
    word, end = tokens[j].key, tokens[j].end
    j += 1
    while j + 1 < len(tokens) and tokens[j].key == "-" and tokens[j].start == end == tokens[j + 1].start - 1:
        word, end = f"{word}-{tokens[j + 1].key}", tokens[j + 1].end
        j += 2
    return word, j


# -- whose words they are: the judged person's, another's, or nobody's that can be told ----------------------


ALL, ONE_WAY, EACH, SUBJECT, SUBJECT_OR_ALL = WHO = ("all", "all-one-way", "each", "subject", "subject-or-all")
_BESIDE = frozenset(("amod", "compound", "flat", "nmod:unmarked", "appos", "acl"))
_MORE = word_list("unmodified_persons")
_ROLES = frozenset(("applicant", "candidate", "interviewee"))
_WRITES = re.compile(r"\b(?:asks|asking|writes|writing|writer|author)\b")


class Crowd(NamedTuple):
    """The terms of a text that are changed together (``own``), and those that are not (``others``)."""

    own: Sequence[Hit]
    others: Sequence[Hit] = ()
    words: frozenset[int] | None = None

    def of(self, attribute: str) -> Crowd:
        """Return the terms of one attribute."""
        own, others = ([h for h in hits if h.term.attribute == attribute] for hits in (self.own, self.others))
        return self._replace(own=own, others=others)


@lru_cache(maxsize=8)
def lexicon(subject: str = "") -> Lexicon:
    """The words that name persons, from the dictionaries of gender and of names; ``subject`` as "the applicant"."""
    gender: dict[str, str] = {"latina": "female", "latino": "male", "female": "female", "male": "male"}
    for term in load("gender").sources:
        if term.group.endswith("male"):
            gender.setdefault(term.text.lower().split()[-1], "female" if term.group.endswith("female") else "male")
    names = load("names")
    for term in names.sources:
        gender.setdefault(term.text.lower(), names.groups[term.group].agrees or "")
    singular, plural, _ = persons()
    said = frozenset(re.findall(r"\w+", subject.lower())) & singular - {"person"}
    return Lexicon(
        gender=gender,
        singular=singular | _MORE,
        plural=plural,
        names=frozenset(t.text.lower() for t in names.sources),
        roles=said | _ROLES,
        asks=bool(_WRITES.search(subject)),
    )


class Persons:
    """Splits the terms of texts by person."""

    def __init__(self, who: str, subject: str, parser: Parser | None) -> None:
        if who not in WHO:
            raise ConfigError(f"who must be one of {', '.join(WHO)}; got {who!r}")
        if who != ALL and parser is None:
            raise ConfigError(f"who={who!r} tells persons apart, and needs a parser")
        self.who, self._subject, self._parser = who, subject, parser

    def split(self, texts: Sequence[tuple[SourceText, Sequence[Hit], bool]]) -> list[list[Crowd]]:
        """The crowds of each text with its terms: one of everybody, one for each person, or none."""
        asked = [row for row in texts if self._singles(row[2])]
        spans = {seed.text: sentences(seed.text) for seed, hits, _ in asked if hits and self._unread(seed, hits)}
        parses = self._parser.parse_spans(spans) if self._parser is not None and spans else {}
        out: list[list[Crowd]] = []
        for seed, hits, both in texts:
            out.append([Crowd(hits)] if self.who in (ALL, ONE_WAY) else [])
            if self._singles(both):
                out[-1] += self._crowds(seed, hits, parses.get(seed.text, ()))
        return out

    def _singles(self, both: bool) -> bool:
        return both if self.who == ONE_WAY else self.who != ALL

    def _unread(self, seed: SourceText, hits: Sequence[Hit]) -> bool:
        """Whether the parse is needed: spans that are given hold everything but modifiers."""
        spans = seed.subject
        if spans is None or self.who in (EACH, ONE_WAY):
            return True
        return any(not touches(h.start, h.end, spans) and h.surface.lower() not in PRONOUNS for h in hits)

    def _crowds(self, seed: SourceText, hits: Sequence[Hit], rows: Parsed) -> list[Crowd]:
        if self.who in (EACH, ONE_WAY):
            whose: list[Sequence[Span]] = [p.spans for p in people(rows, lexicon(self._subject)).persons if p.clear]
        else:
            whose = [spans] if (spans := self._judged(seed, rows)) else []
        crowds = []
        for spans in whose:
            own = [h for h in hits if says_of(h, spans, rows)]
            starts = {h.start for h in own}
            others = [h for h in hits if h.start not in starts]
            crowds.append(Crowd(own, others, frozenset(start for start, _ in spans)))
        if not crowds and self.who == SUBJECT_OR_ALL:
            return [Crowd(hits)]
        return crowds

    def _judged(self, seed: SourceText, rows: Parsed) -> Sequence[Span]:
        """Where a text speaks of the person who is judged; empty where that is not clear."""
        if seed.subject is not None:
            return seed.subject
        person = people(rows, lexicon(self._subject)).subject
        return () if person is None else person.spans


def says_of(hit: Hit, spans: Sequence[Span], rows: Parsed) -> bool:
    """Whether a term says something of the person whose mentions are ``spans``."""
    if touches(hit.start, hit.end, spans):
        return True
    if hit.surface.lower() in PRONOUNS:
        return False
    offset, parse = next(((o, p) for o, p in reversed(rows) if o <= hit.start), (0, None))
    return parse is not None and bool(parse.heads) and _Tree(offset, parse, spans).holds(hit)


class _Tree(NamedTuple):
    """One sentence, and the mentions of one person."""

    offset: int
    parse: Parse
    spans: Sequence[Span]

    def holds(self, hit: Hit) -> bool:
        """Whether ``hit`` is said of the person."""
        parse = self.parse
        own = [i for i, s in enumerate(parse.starts) if hit.start <= self.offset + s < hit.end]
        outer = [i for i in own if parse.heads[i] not in own or parse.heads[i] == i]
        if not outer:
            return False
        at = outer[-1]
        for _ in range(3):
            if self._said(at):
                return True
            head, label = parse.heads[at], parse.deps[at]
            adjective = parse.tags[at].startswith("JJ")
            if head == at or not (label in _BESIDE or (adjective and label in {"conj", "parataxis"})):
                return False
            if self._own(head):
                return parse.words[head].lower() not in PRONOUNS or label in {"appos", "acl"}
            if parse.words[head].lower() in _HELD:
                return self._held(head)
            if not (adjective and label == "conj"):
                return False
            at = head  # deaf and **Black**
        return False

    def _own(self, i: int) -> bool:
        start = self.offset + self.parse.starts[i]
        return touches(start, start + len(self.parse.words[i]), self.spans)

    def _said(self, at: int) -> bool:
        """Whether ``at`` is the predicate of a mention."""
        parse = self.parse
        below = parse.children(at)
        if not any(parse.deps[i] == "cop" for i in below):
            return False
        return any(parse.deps[i].startswith("nsubj") and self._own(i) for i in below)

    def _held(self, at: int) -> bool:
        """Whether a mention has what ``at`` names."""
        parse = self.parse
        holders = [i for i in parse.children(at) if parse.deps[i] == "nmod:poss"]
        if parse.deps[at] == "nmod":
            holders.append(parse.heads[at])
        return any(map(self._own, holders)) or self._said(at)
