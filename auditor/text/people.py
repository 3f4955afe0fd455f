"""The persons of a text: which words speak of whom, and of whom the text is.

Rules on a dependency parse, in the order of the text: each mention is joined to a person who is there or to a new one.
Agreement in gender and number and the binding of objects rule persons out; subjecthood, nearness and being what the
text is about rank those that are left (Hobbs 1978; Lappin and Leass 1994). What the rules are not sure of is marked: a
wrong person is worse than none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from auditor.core.types import Span
from auditor.text.english import ends_as_trade, word_set
from auditor.text.parse import SUBJECT, Parsed, Tokens

PRONOUNS = {
    **dict.fromkeys(("she", "her", "hers", "herself"), "female"),
    **dict.fromkeys(("he", "him", "his", "himself"), "male"),
}
WRITER = frozenset(("i", "me", "my", "mine", "myself"))
_HOUSE = frozenset(("we", "us", "our", "ours"))
_TITLES = {"mr": "male", "mrs": "female", "ms": "female", "miss": "female", "mx": "", "dr": "", "prof": ""}
_GENERIC = word_set("man woman gentleman lady guy girl boy fellow kid person lad gal individual applicant candidate")
_POINTS = frozenset(("the", "this", "that", "said"))
SEVERAL = frozenset(("couple", "family", "audience", "pair", "crew", "team", "staff"))
_MODIFIES = frozenset(("amod", "compound", "flat", "nmod:unmarked", "nummod"))
_FINITE = frozenset(("VBD", "VBZ", "VBP", "MD"))


class Lexicon(NamedTuple):
    """What words say of the person they name; made of the dictionaries (`auditor.perturb.matching`)."""

    gender: Mapping[str, str]  # noun, modifier or first name in lower case -> female, male
    singular: frozenset[str]  # nouns for one person
    plural: frozenset[str]
    names: frozenset[str] = frozenset()  # first names
    roles: frozenset[str] = frozenset()  # nouns for the person who is judged
    asks: bool = False  # whether the person who writes is the one who is judged


MARGIN = 1.5  # a mention is clear where the best reading leads by so much
LEAD = 2.0  # and the subject of the text by so much
LEAST = 4.0  # and it needs as much to be the subject at all


@dataclass(slots=True)
class Person:
    """A person, or several who are named together (``plural``), as far as the text was read."""

    gender: str
    plural: bool
    intro: str  # writer, pronoun, role, fragment, name, definite, new, kin
    nouns: set[str] = field(default_factory=set)
    tokens: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)  # of the mentions, in characters of the text
    clear: bool = True  # False where a mention may be another person's, or another person's mention this one's


class Reading:
    """One text being read from its start."""

    def __init__(self, words: Tokens, lexicon: Lexicon) -> None:
        self.w, self.lexicon = words, lexicon
        self.persons: list[Person] = []
        self.at: dict[int, Person] = {}  # by token
        self.house = any(low in _HOUSE and not q for low, q in zip(words.low, words.quoted, strict=True))

    def read(self) -> None:
        """Take every token in turn."""
        w, skip = self.w, -1
        for i, low in enumerate(w.low):
            if i <= skip:
                continue
            if low in WRITER and w.tag[i].startswith("PRP"):
                if not w.quoted[i]:
                    self._writer(i)
            elif low in PRONOUNS:
                self._pronoun(i)
            elif (end := self._name(i)) is not None:
                skip = end
            elif self._is_person(i):
                self._noun(i)

    # -- mentions -----------------------------------------------------------

    def _join(self, person: Person, i: int, end: int | None = None, gender: str = "") -> None:
        if not person.tokens:
            self.persons.append(person)
        person.tokens.append(i)
        last = i if end is None else end
        person.spans.append((self.w.span[i][0], self.w.span[last][1]))
        person.gender = person.gender or gender
        for token in range(i, last + 1):
            self.at[token] = person

    def _who(self, i: int | None) -> Person | None:
        return self.at.get(-1 if i is None else i)

    def _writer(self, i: int) -> None:
        own = next((e for e in self.persons if e.intro == "writer"), None)
        if own is None:
            own = Person("", False, "writer")
            if (early := self._as_early(i)) is not None:  # As a Black woman who taught …, I learned
                self._absorb(own, early)
        self._join(own, i)

    def _as_early(self, i: int) -> Person | None:
        """The person of an *as* phrase that opens the sentence of ``i``."""
        w = self.w
        first = w.sentence.index(w.sentence[i])
        if w.low[first] != "as":
            return None
        early = next((self.at[j] for j in range(first, i) if j in self.at), None)
        return early if early is not None and len(early.tokens) == 1 else None

    def _absorb(self, into: Person, other: Person) -> None:
        """Make two persons one."""
        at = self.persons.index(other)
        if not into.tokens:
            self.persons[at] = into
        else:
            self.persons.pop(at)
        into.tokens = sorted(into.tokens + other.tokens)
        into.spans = sorted(into.spans + other.spans)
        into.gender = into.gender or other.gender
        into.nouns |= other.nouns
        for token, owner in self.at.items():
            if owner is other:
                self.at[token] = into

    def _name(self, i: int) -> int | None:
        """Read a name that begins at ``i``; returns its last token."""
        w = self.w
        if not w.title[i] or w.tag[i] not in {"NNP", "NNPS", "NN"}:
            return None
        low, end, names = w.low[i].rstrip("."), i, self.lexicon.names
        if low not in _TITLES and not (
            low in names and (w.dep[i] not in {"amod", "compound"} or w.tag[w.head[i]] == "NNP")
        ):
            return None
        gender = _TITLES[low] if low in _TITLES else self.lexicon.gender.get(low, "")
        while end + 1 < len(w.low) and w.sentence[end + 1] == w.sentence[i]:
            if not (w.title[end + 1] and w.tag[end + 1] == "NNP") and not (w.low[end + 1] == "." and low in _TITLES):
                break
            end += 1
        parts = {p for p in w.low[i : end + 1] if p.isalpha() and p not in _TITLES}
        if not parts:
            return None
        head = next((j for j in range(i, end + 1) if not i <= w.head[j] <= end or w.head[j] == j), end)
        same = [e for e in self.persons if parts & e.nouns and agrees(e, gender, False)]
        person = same[0] if same else self._linked(head, gender, False) or Person(gender, False, "name")
        self._join(person, i, end, gender)
        person.nouns |= parts
        person.tokens[-1] = head
        return end

    def _is_person(self, i: int) -> bool:
        w, low = self.w, self.w.low[i]
        known = low in self.lexicon.gender or (low in self.lexicon.singular and w.dep[i] in {*SUBJECT, "obj"})
        if not (w.tag[i].startswith("NN") or (w.tag[i] == "JJ" and known)):
            return False
        following = w.head[i] == i + 1 and w.tag[i + 1].startswith("NN")
        if w.dep[i] in _MODIFIES and (following or w.head[i] > i):
            return False
        if low in self.lexicon.singular or low in self.lexicon.plural:
            return True
        if low in self.lexicon.gender:
            return w.dep[i] not in _MODIFIES
        if w.tag[i] == "NNP" and w.title[i]:
            return False
        if not ends_as_trade(low[:-1] if w.tag[i] == "NNS" and low.endswith("s") else low):
            return False
        return w.child(i, "det", "nmod:poss", "amod", "acl:relcl") is not None or w.dep[i] in {"ROOT", "appos"}

    def _noun(self, i: int) -> None:
        w, low = self.w, self.w.low[i]
        plural = w.tag[i] in {"NNS", "NNPS"} or low in self.lexicon.plural or low in SEVERAL
        own = w.words(i, *_MODIFIES)
        gender = self.lexicon.gender.get(low, "") or next(
            (self.lexicon.gender[m] for m in own if m in self.lexicon.gender), ""
        )
        person = self._linked(i, gender, plural)
        if person is None and not plural:
            person = self._again(i, gender)
        if person is None:
            person = Person(gender, plural, self._intro(i))
        self._join(person, i, gender=gender)
        person.nouns.add(low)

    def _intro(self, i: int) -> str:
        w = self.w
        if w.low[i] in self.lexicon.roles:
            return "role"
        if w.child(i, "nmod:poss") is not None:
            return "kin"
        if self._bare(i) or ("as" in w.words(i, "case") and w.doer(w.clause(i)) is None):
            return "fragment"
        determiners = w.words(i, "det")
        return "this" if "this" in determiners else "definite" if determiners & _POINTS else "new"

    def _bare(self, i: int) -> bool:
        """Whether a noun is a note of its own, without a verb of which it is a part."""
        w = self.w
        first = w.sentence.index(w.sentence[i])
        verbless = _FINITE.isdisjoint(t for t, s in zip(w.tag, w.sentence, strict=True) if s == w.sentence[i])
        if not verbless and w.words(i, "det") & _POINTS:
            return False
        if any(w.dep[c] == "conj" and w.tag[c].startswith("VB") for c in w.children[i]):
            return False
        if w.dep[i] == "ROOT":
            return w.child(i, *SUBJECT) is None
        if verbless:  # Kitchen porter to pastry chef in five years
            return not any(j in self.at for j in range(first, i))
        return all(w.dep[j] in _MODIFIES or w.tag[j] in {"DT", "JJ", "RB", "CD"} for j in range(first, i)) and (
            w.dep[i] not in {*SUBJECT, "obl", "obj", "nmod:poss"} and "nmod" not in w.dep[i]
        )

    def _linked(self, i: int, gender: str, plural: bool) -> Person | None:
        """The person whom the grammar says a noun to be: of a predicate, an apposition or an *as* phrase."""
        w = self.w
        other: int | None = None
        if w.child(i, "cop") is not None and not w.words(i, "advmod", "det") & {"not", "n't", "never", "no"}:
            other = w.child(i, *SUBJECT)
            if other is not None and w.low[other] in {"who", "that"} and w.dep[i].startswith("acl"):
                other = w.head[i]
        elif w.dep[i] == "appos" and not w.words(i, "cc"):
            other = w.head[i]
        elif w.dep[i] == "conj" and self._note(i):
            other = w.head[i]  # Former goalkeeper, now coach.
        elif (before := self._beside(i)) is not None:
            other = before
        elif w.dep[i] == "conj" and w.child(w.head[i], "cop") is not None and self._predicate(w.head[i]):
            other = w.head[i]  # I am a woman and a machinist
        elif "as" in w.words(i, "case") and not {"such", "same", "well", "much"} & set(w.low[max(0, i - 4) : i]):
            verb = w.clause(i)
            other = w.child(verb, "obj") if w.words(verb, "obj") & PRONOUNS.keys() else w.doer(verb)
        person = self._who(other)
        return person if person is not None and agrees(person, gender, plural) else None

    def _beside(self, i: int) -> int | None:
        """The mention right before ``, a careful woman``, whatever the parse says of it."""
        w, at = self.w, i
        if i + 1 < len(w.low) and w.low[i + 1] in {"and", "or"}:
            return None
        while at and w.low[at] not in {"a", "an"} and (at == i or w.tag[at][:2] in {"JJ", "NN", "VB", "RB", "HY"}):
            at -= 1
        if at < 2 or w.low[at] not in {"a", "an"} or w.low[at - 1] != "," or w.sentence[at - 2] != w.sentence[i]:
            return None
        return at - 2 if at - 2 in self.at else None

    def _note(self, i: int) -> bool:
        """Whether the sentence of ``i`` has neither a verb nor an *and*: a note on one person."""
        rows = zip(self.w.sentence, self.w.tag, self.w.low, strict=True)
        return all(t not in _FINITE and low != "and" for s, t, low in rows if s == self.w.sentence[i])

    def _predicate(self, i: int) -> bool:
        """Whether the noun ``i`` says who its subject is."""
        doer = self._who(self.w.child(i, *SUBJECT))
        return doer is not None and doer is self.at.get(i)

    def _again(self, i: int, gender: str) -> Person | None:
        """The person whom a definite noun, or a note without a verb, speaks of once more."""
        w, low = self.w, self.w.low[i]
        determiners = w.words(i, "det")
        if w.quoted[i]:
            return None
        fit = [e for e in self.persons if agrees(e, gender, False) and e.intro != "writer"]
        if determiners & _POINTS:
            if low in self.lexicon.roles:
                named = [e for e in fit if e.intro == "role"]
                return named[0] if named else _topic(fit)
            same = [e for e in fit if low in e.nouns]
            if same:
                return same[-1]
            told_apart = w.child(i, "acl:relcl", "nmod", "acl") is not None
            if (low in _GENERIC and not told_apart) or ("this" in determiners):
                return self._best(i, fit)
            return None
        described = not determiners or w.child(i, "acl:relcl") is not None
        if described and self._bare(i) and w.child(i, "nmod:poss") is None:
            return _topic(fit)
        return None

    # -- pronouns -----------------------------------------------------------

    def _pronoun(self, i: int) -> None:
        gender = PRONOUNS[self.w.low[i]]
        out = self._bound(i)
        fit = [e for e in self.persons if agrees(e, gender, False) and e not in out and e.intro != "writer"]
        early = self._as_early(i)  # As treasurer …, she …
        early = early if early is not None and agrees(early, gender, False) else None
        person = self._best(i, fit) or early or Person(gender, False, "pronoun")
        if not person.gender or not person.tokens:
            for other in out:  # the parse sets them apart, and little else does
                if agrees(other, gender, False) and (other.gender or not person.tokens):
                    person.clear = other.clear = False
        self._join(person, i, gender=gender)

    def _bound(self, i: int) -> list[Person]:
        """Persons whom the grammar rules out: who does what is done to the pronoun, who is possessed by it."""
        w, low = self.w, self.w.low[i]
        possessive = w.tag[i] == "PRP$" or w.dep[i] == "nmod:poss"
        if possessive or low in {"herself", "himself"} or w.dep[i] in SUBJECT:
            return []
        verb = w.head[i] if w.dep[i] in {"obj", "iobj"} else w.clause(i)
        doer = w.doer(verb)
        if w.dep[verb].startswith("acl") and (doer is None or w.low[doer] in {"who", "that"}):
            doer = w.head[verb]
        owner = self._who(doer)
        return [] if owner is None else [owner]

    def _best(self, i: int, fit: Sequence[Person]) -> Person | None:
        """The best reading; who comes close to it is marked."""
        if not fit:
            return None
        w = self.w
        scored = sorted(((self._score(i, e), -n, e) for n, e in enumerate(fit)), key=lambda s: s[:2])
        best = scored[-1]
        certain = self._within(i, best[2])
        for other in scored[:-1]:
            # Two of whom neither's gender is known yet: what each of them does decides, and rules do not know it.
            near = w.sentence[i] - w.sentence[other[2].tokens[-1]] < 2
            if best[0] - other[0] < MARGIN or (near and not best[2].gender and not certain):
                best[2].clear = other[2].clear = False
        return best[2]

    def _score(self, i: int, person: Person) -> float:
        w, last = self.w, person.tokens[-1]
        gender = PRONOUNS.get(w.low[i], "")
        score = 1.0 if person.gender == gender and gender else 0.0
        score -= 1.0 * min(3, w.sentence[i] - w.sentence[last])
        topic = {"pronoun": 3.0, "role": 3.0, "fragment": 3.0, "name": 2.0}.get(person.intro, 0.0)
        if person is self.persons[0] and person.intro != "kin":
            topic = max(topic, 2.0)
        score += topic if person.gender or not gender else 0.5 * topic
        score += 0.5 * min(3, len(person.tokens))
        if any(w.dep[t] in SUBJECT for t in person.tokens if w.sentence[t] == w.sentence[last]):
            score += 1.0
        if w.dep[last] in SUBJECT and w.clause(last) == w.clause(i):
            score += 2.0
        score += 3.0 * self._within(i, person)
        for at in (i, *w.above(i)):
            if w.dep[at] == "ccomp" and self._who(w.doer(w.head[at])) is person:
                score += 2.0  # the man said that he …
        return score

    def _within(self, i: int, person: Person) -> bool:
        """Whether ``i`` stands in what a relative clause says that a person did (a man who sold his car)."""
        w = self.w
        return any(
            w.dep[at].startswith("acl")
            and w.head[at] in person.tokens
            and ((doer := w.doer(at)) is None or w.low[doer] in {"who", "that"})
            for at in (i, *w.above(i))
        )


def _topic(among: Sequence[Person]) -> Person | None:
    """The person whom the text has been about, if one of ``among`` is."""
    return next((e for e in among if e.intro in {"pronoun", "role", "fragment", "name"}), None)


def agrees(person: Person, gender: str, plural: bool) -> bool:
    """Whether a word of this gender and number may speak of ``person``."""
    return person.plural == plural and (not gender or not person.gender or person.gender == gender)


class People(NamedTuple):
    """The persons of a text in the order of their first mention, and the one it is about."""

    persons: Sequence[Person]
    subject: Person | None  # None where it is not clear who is judged


def people(parsed: Parsed, lexicon: Lexicon) -> People:
    """Find the persons of a text, from its sentences in order, each with its offset (`Parser.parse_text`)."""
    reading = Reading(Tokens(parsed), lexicon)
    reading.read()
    return People(reading.persons, _subject(reading))


def _subject(reading: Reading) -> Person | None:
    """The person who is judged; None where it is not clear."""
    scored = sorted(((_weight(reading, e), -n) for n, e in enumerate(reading.persons)), reverse=True)
    if not scored or scored[0][0] < LEAST or (len(scored) > 1 and scored[0][0] - scored[1][0] < LEAD):
        return None
    chosen = reading.persons[-scored[0][1]]
    first = reading.persons[0]
    if not chosen.clear or (first.plural and first.nouns & SEVERAL and first.intro in {"fragment", "new", "definite"}):
        return None
    w = reading.w
    if (
        chosen.intro in {"fragment", "new", "definite"}
        and not _says(w, chosen)
        and any(_says(w, e) for e in reading.persons)
    ):
        return None  # Mother with her son. He …
    return chosen


def _weight(reading: Reading, person: Person) -> float:
    """How much speaks for a person as the one whom the text is about."""
    w, lexicon = reading.w, reading.lexicon
    if person.plural:
        return -9.0
    acts = _acts(w, person)
    if person.intro == "writer":
        if lexicon.asks:
            return 20.0
        return (6.0 if person.nouns else 3.0 if not reading.house else 0.0) + acts
    weight = {"role": 12.0, "pronoun": 8.0, "fragment": 7.0, "this": 6.0, "name": 5.0, "definite": 3.0, "new": 2.0}.get(
        person.intro, 0.0
    )
    first = person.tokens[0]
    if person.intro == "pronoun" and not acts and w.sentence[first]:
        weight = 4.0
    if person.intro == "definite" and w.child(first, "acl:relcl") is not None:
        weight = 1.0
    if person.intro == "kin" and w.words(first, "nmod:poss") & WRITER and w.low[first] not in lexicon.gender:
        weight = 3.0  # my assistant, a man of 61
    if person.nouns & lexicon.roles:
        weight = 12.0
    return weight + acts + (1.0 if person is reading.persons[0] else 0.0)


def _acts(w: Tokens, person: Person) -> int:
    """In how many clauses a person is the subject; four count as many."""
    joined = (w.head[t] if w.dep[t] == "conj" else t for t in person.tokens)
    return min(4, sum(w.dep[t] in SUBJECT for t in joined))


def _says(w: Tokens, person: Person) -> bool:
    """Whether *he* or *she* is the subject of a clause for this person."""
    return any(w.low[t] in PRONOUNS and w.dep[t] in SUBJECT for t in person.tokens)


def touches(start: int, end: int, spans: Iterable[Span]) -> bool:
    """Whether ``[start, end)`` overlaps one of ``spans``."""
    return any(first < end and start < last for first, last in spans)
