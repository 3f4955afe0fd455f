"""Whose words the terms of a text are: the person's who is judged, another one's, or nobody's that can be told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from auditor.core.errors import ConfigError
from auditor.core.types import SourceText, Span
from auditor.perturb.dictionaries import load, persons
from auditor.perturb.matching import Hit
from auditor.text.english import word_list
from auditor.text.parse import Parse, Parser, sentences
from auditor.text.people import PRONOUNS, Lexicon, people

ALL, ONE_WAY, EACH, SUBJECT, SUBJECT_OR_ALL = WHO = ("all", "all-one-way", "each", "subject", "subject-or-all")
_BESIDE = frozenset(("amod", "compound", "flat", "nmod:unmarked", "appos", "acl"))
_HELD = word_list("held")
_MORE = word_list("unmodified_persons")
_ROLES = frozenset(("applicant", "candidate", "interviewee"))
_WRITES = re.compile(r"\b(?:asks|asking|writes|writing|writer|author)\b")

Parsed = Sequence[tuple[int, Parse]]


def parsed(parser: Parser, spans: Mapping[str, Sequence[Span]]) -> dict[str, Parsed]:
    """Parse the sentences at ``spans`` of some texts, each distinct one once; gives (offset, parse) for each text."""
    distinct = list(dict.fromkeys(text[a:b] for text, own in spans.items() for a, b in own))
    parses = dict(zip(distinct, parser.parse(distinct), strict=True))
    return {text: [(a, parses[text[a:b]]) for a, b in own] for text, own in spans.items()}


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
        parses = parsed(self._parser, spans) if self._parser is not None and spans else {}
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


def touches(start: int, end: int, spans: Iterable[Span]) -> bool:
    """Whether ``[start, end)`` overlaps one of ``spans``."""
    return any(first < end and start < last for first, last in spans)
