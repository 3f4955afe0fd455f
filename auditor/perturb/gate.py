"""The default gate: whether a variant is a text that its original could have been, still English, not against itself.

A whole parse changes with a word that the parser knows less well; the sentence may be as good as before. This gate
looks at what an edit can break. Only originals are parsed: the words around an edit keep their tags and relations, and
a written word takes the tag of the word that it replaced.

A rule takes the `Place` of one edit and says in a few words what is wrong there, "" where nothing is. What a word
may mean before or after another belongs in the dictionaries, where edits are made. A rule stays as long as leaving it
out lowers the weighted precision on sets of variants that readers judged (``tests/planted/test_gate_readings.py``).

How often the gate is right: ``docs/method/validity.md``.
"""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar, Literal, NamedTuple

from auditor.core import reading
from auditor.core.protocols import Gate
from auditor.core.types import NEUTRAL, Case, Check, Edit, Variant, grouped
from auditor.perturb.dictionaries import load, neutral, persons
from auditor.perturb.edits import replacing, span_of
from auditor.perturb.matching import lexicon
from auditor.text.english import FUNCTION_WORDS, plural_verb, word_set
from auditor.text.english import words as tokens_of
from auditor.text.parse import MAX_CHARS, Parse, Parser, agreeing_verbs, sentences
from auditor.text.people import Person, people


class TextGate(Gate):
    """A gate that reads texts, many originals together; what it cannot read it calls unknown."""

    reads: ClassVar[str] = "the gate reads"

    def check(self, original: Variant, variants: Sequence[Variant]) -> list[Check]:
        """Return one check for each variant of ``original``, in their order."""
        return self.check_many([Case(id="", suite="", original=original, variants=tuple(variants))])[0]

    @abstractmethod
    def check_many(self, cases: Iterable[Case]) -> list[list[Check]]:
        """Check the variants of several cases together, which makes larger batches for the parser."""

    def _result(self, variant: Variant, status: Literal["valid", "invalid", "unknown"], reason: str = "") -> Check:
        return Check(variant_id=variant.id, check=self.name, status=status, reason=reason)

    def _judged(self, variant: Variant, wrong: str) -> Check:
        """A check by what is wrong, "" where nothing is."""
        return self._result(variant, "invalid" if wrong else "valid", wrong)

    def _row(self, variant: Variant) -> Check:
        return self._result(variant, "unknown", f"{self.reads} texts, and this input is a table row")


# -- the rules: what an edit can break in its sentence or contradict in its text -----------------------------


LONGEST = 6_000  # characters of a text whose persons are told from each other
_CASED = word_set("he she him her his hers himself herself")
_AFTER_ABSOLUTE = FUNCTION_WORDS | word_set("alone too either now is was are were has have had will would")
_ALL_OF_IT = word_set("whole entire own former latest only overall")  # and no object before: *her whole time*
_GENDER_OF: Mapping[str, str] = {"female": "f", "trans_female": "f", "male": "m", "trans_male": "m", "nonbinary": "n"}
_FILE: Any = reading.load_yaml(reading.shipped("embedded", "gate.yaml"))  # lists, belongs, countries
_LISTS = {name: frozenset(words.split()) for name, words in _FILE["lists"].items()}


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """The words of a text of the file, which are regular expressions, as one."""
    return re.compile(rf"\b(?:{'|'.join(text.split())})\b".replace("~", " "), re.IGNORECASE)


@cache
def _belongings(attribute: str) -> tuple[tuple[frozenset[str], re.Pattern[str]], ...]:
    """Return what belongs to some groups of an attribute, after the groups."""
    rows = _FILE["belongs"].get(attribute, {}).items()
    return tuple((frozenset(groups.split()), _pattern(things)) for groups, things in rows)


@cache
def _person_nouns() -> frozenset[str]:
    """Return the nouns, in lower case, that name a person or several."""
    singular, plural, _ = persons()
    return singular | plural


@cache
def _gendered_words() -> dict[str, str]:
    """Return "f" or "m" for each word of the dictionary that names one person's gender."""
    out: dict[str, str] = {}
    for term in load("gender").sources:
        word, group = term.text.lower().rstrip("."), {"female": "f", "male": "m"}.get(term.group)
        if group is not None and " " not in word and term.number != "pl":
            out[word] = group
    return out


def verb_of_they(place: Place) -> str:
    """*They sit and reads*: a verb of the changed pronoun keeps the form that it had with "he"."""
    if place.edit.target.lower() != "they" or place.edit.source.lower() not in ("he", "she") or place.token < 0:
        return ""
    changed = {unit.token for unit in place.units if unit.edit is not None}
    verb = next((i for i in agreeing_verbs(place.parse, place.token) if i not in changed), None)
    return f"'they' with {place.parse.words[verb]!r}" if verb is not None else ""


def pronoun(place: Place) -> str:
    """*told him roommate*, *with hers back*: a pronoun of the wrong kind for the next word."""
    source, target, after = place.edit.source.lower(), place.edit.target.lower(), place.after()
    if source not in _CASED or after.low == "/":
        return ""
    if target in ("him", "them", "xem"):
        wrong = _owned(place, after)
    elif target in ("hers", "theirs", "zirs", "xyrs") or (target == "his" and source == "hers"):
        wrong = _owned_twice(place, after)
    else:
        counted = after.tag == "CD" and place.after(2).low in ("times", "days", "hours")  # *visits her three times*
        owned = ("his", "their", "zir", "xyr")
        wrong = counted and source == "her" and target in owned and place.before().tag[:2] == "VB"
    return f"{target!r} before {after.text!r}" if wrong else ""


def _owned(place: Place, after: Unit) -> bool:
    """Whether the word after an object is more likely something that the person has."""
    then, before = place.after(2), place.before()
    if after.low in _LISTS["always_owned"] or (after.low in _ALL_OF_IT and then.tag[:1] in "NVJR"):
        return True
    if before.low in _LISTS["takes_two"] or after.joined or after.low in _LISTS["often_bare"] | _LISTS["of_times"]:
        return False
    if after.tag in ("NN", "NNP", "NNS"):
        return True
    return after.tag in ("JJ", "JJR", "VBN") and then.tag[:1] == "N" and then.low not in _LISTS["often_bare"]


def _owned_twice(place: Place, after: Unit) -> bool:
    """Whether a noun follows a pronoun that has none after it (*hers only son*)."""
    if after.low in ("back", *_ALL_OF_IT):
        return after.low != "back" or place.before().tag[:2] in ("IN", "VB")
    return after.text[:1].isalpha() and after.low not in _AFTER_ABSOLUTE and after.tag[:1] not in "VM"


def compound(place: Place) -> str:
    """*men management*, *girl abuse*: the changed noun says what kind of thing the next noun is."""
    edit, after, low = place.edit, place.after(), place.noun.low
    source = edit.source.lower().split()
    if not source or source[-1] not in _person_nouns() or edit.attribute == "nationality":
        return ""
    if after.joined or after.tag not in ("NN", "NNS") or after.edit is not None or low in ("male", "female"):
        return ""
    if after.low in _person_nouns() | FUNCTION_WORDS | _LISTS["no_compound"] or _verbal(place, after):
        return ""
    one_noun = edit.kind == "marking" or _one_noun(place, after)
    return f"{low!r} is a part of a compound with {after.text!r}" if one_noun else ""


def _verbal(place: Place, after: Unit) -> bool:
    """Whether a word with the tag of a noun is more likely the verb of the clause (*the prince proposes, …*)."""
    if after.low.endswith("ators") or (plural_verb(after.low) is None and not after.low.endswith("ed")):
        return False
    following = place.after(2)
    return not following.text[:1].isalpha() or following.tag[:2] in ("IN", "DT", "PR", "RB", "TO", "CD", "JJ", "WR")


def _one_noun(place: Place, after: Unit) -> bool:
    """Whether the parse takes the changed word and the next one for one noun phrase."""
    parse, i = place.parse, place.token
    return i >= 0 and (parse.deps[i] in ("compound", "amod", "nmod") or parse.heads[i] == after.token)


def neutral_word(place: Place) -> str:
    """*sleeping suitcase*, *special requires*: a neutral word that is part of a compound, or of another class."""
    edit, before, tag = place.edit, place.before(), place.noun.tag
    term = _neutral().get((edit.source.lower(), edit.target.lower())) if edit.kind in NEUTRAL else None
    if term is None:
        return ""
    pos, slot = term
    thing = slot.startswith(("thing.", "house"))
    if thing and before.tag in ("NN", "NNS", "NNP", "VBG") and not place.units[place.first].joined:
        return f"{edit.source!r} is a part of a compound"
    other = {pos[:1], tag[:1]} == {"N", "V"} and before.tag not in ("DT", "PRP$")  # *the ending* is tagged VBG
    return f"{edit.source!r} is tagged {tag} here" if other else ""


@lru_cache(maxsize=1)
def _neutral() -> dict[tuple[str, str], tuple[str, str]]:
    """Source and target of the neutral words → their tag and their slot."""
    words = neutral()
    pairs = ((term, other) for term in words.sources for other in words.alternatives(term))
    return {(term.text.lower(), other.text.lower()): (term.pos, term.slot) for term, other in pairs}


def two_genders(place: Place) -> str:
    """*Her … the boy*: one person's changed words and unchanged words name two genders."""
    if place.edit.attribute != "gender" or len(place.whole) > LONGEST or not _may_clash(place):
        return ""
    now = _GENDER_OF.get(place.edit.target_group)
    for person in place.original.persons if now else ():
        own = any(place.edited(*span) is place.edit for span in person.spans)
        other = _other_gender(place, person, str(now)) if own and not person.plural else ""
        if other:
            return f"{place.edit.target!r} and {other!r} for one person"
    return ""


_WORD = re.compile(r"[^\W\d_]+")


def _may_clash(place: Place) -> bool:
    """Whether two target groups, or an unchanged word that names a gender, are there at all."""
    if len({e.target_group for e in place.edits if e.attribute == "gender"}) > 1:
        return True
    words = (m for m in _WORD.finditer(place.whole) if m[0].lower() in _gendered_words())
    return any(not place.edited(*m.span()) for m in words)


def _other_gender(place: Place, person: Person, now: str) -> str:
    """Return the first word of ``person`` that names another gender, "" where none does."""
    for start, end in person.spans:
        edit = place.edited(start, end)
        word = edit.target if edit else place.whole[start:end]
        says = _GENDER_OF.get(edit.target_group, "") if edit else _gendered_words().get(word.lower(), "")
        if says not in ("", now):
            return word
    return ""


_ONES = ["", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_YEARS: Mapping[str, int] = {
    **{word: 10 + i for i, word in enumerate(_TEENS)},
    **{f"{tens}-{one}".rstrip("-"): 10 * i + k for i, tens in enumerate(_TENS, 2) for k, one in enumerate(_ONES)},
    **{str(years): years for years in range(6, 111)},
}
_SAID = rf"({'|'.join(sorted(_YEARS, key=len, reverse=True))})"
_AGE = re.compile(
    rf"(?:,\s*|\()(\d\d?)\b(?=\s*(?:[,.;)]|years?\s+old|$))|\b{_SAID}[- ]years?[- ]old\b"
    rf"|\b(?:aged?|of|turn(?:ed|s))\s+{_SAID}\b(?=\s*(?:[,.;)]|years?\s+old|$|\s+when))"
    rf"|\b(?:(?:wo)?m[ae]n|girl|boy|person|child|youth|lad|lass) of {_SAID}\b",
    re.IGNORECASE,
)
_AGES: Mapping[str, tuple[int, int]] = {
    "adolescent": (11, 20), "young": (14, 44), "middle_aged": (36, 69), "old": (55, 120),
}  # fmt: skip


@lru_cache(maxsize=256)
def _ages(text: str) -> Sequence[tuple[int, int]]:
    """Return where an age is given, and the age."""
    ages = ((match.start(), next(filter(None, match.groups())).lower()) for match in _AGE.finditer(text))
    return [(at, _YEARS[word]) for at, word in ages if word in _YEARS]


def age(place: Place) -> str:
    """*Elderly woman, 19*: the text gives another age than the changed word."""
    text, start, end = place.whole, place.start, place.end
    low, high = _AGES.get(place.edit.target_group, (0, 120)) if place.edit.attribute == "age" else (0, 120)
    for at, years in _ages(text) if low else ():
        near = abs(at - start) < 60 and "." not in text[min(at, end) : max(at, start)]
        if near and not start <= at < end and not low <= years <= high:
            return f"{place.edit.target!r} and {years} years"
    return ""


_YOUNG = r"boys?|girls?|kids?|child(?:ren)?|bab(?:y|ies)|teen(?:ager)?s?|lads?|lass(?:es)?|toddlers?|schoolboys?"
_GROWN = "gentlem[ae]n|lad(?:y|ies)|widow(?:er)?s?|grand(?:mother|father|parent)s?|pensioners?|retirees?|veterans?"
_TWO_AGES = re.compile(
    rf"\b(?<![-\d])(?<!years )(?<!year )(?:old|elderly|middle-aged|older|aged)\s+(?:[\w'’-]+\s+){{0,2}}?(?:{_YOUNG})\b"
    rf"|\b(?:teenage|adolescent|1\d-year-old)\s+(?:[\w'’-]+\s+){{0,2}}?(?:{_GROWN}|m[ae]n)\b"
    r"|\bM(?:rs?|s|x)\.? [A-Z][\w'-]+,? an? 1\d-year-old",
    re.IGNORECASE,
)


def two_ages(place: Place) -> str:
    """*an elderly boy*, *Mrs. Smith, a 15-year-old*: one phrase of the variant names two ages."""
    if place.edit.attribute not in ("age", "gender"):
        return ""
    new = [match[0] for match in _TWO_AGES.finditer(place.made)]
    had = {match[0].lower() for match in _TWO_AGES.finditer(place.whole)} if new else set()
    return next((repr(words) for words in new if words.lower() not in had), "")


_TWICE = re.compile(r"\b([a-z][\w'’-]+) (?:and|or|nor|in) \1\b", re.IGNORECASE)


def twice(place: Place) -> str:
    """*blind or blind*: both halves of a pair became one word."""
    return next((repr(match[0]) for match in _TWICE.finditer(place.made) if match[0] not in place.whole), "")


def belongs(place: Place) -> str:
    """*a Hindu … the mosque*, *a 15-year-old … dementia*: a thing that only people of other groups have."""
    edit, text = place.edit, place.whole
    near = (0, len(text)) if edit.attribute == "disability" else (max(0, place.start - 150), place.end + 250)
    for groups, things in _belongings(edit.attribute):
        if edit.target_group in groups or edit.source_group not in groups:
            continue
        match = next((m for m in things.finditer(text, *near) if not place.edited(m.start(), m.start() + 1)), None)
        if match is not None:
            return f"{edit.target!r} and {match[0]!r}"
    return ""


def country(place: Place) -> str:
    """*a Japanese farmer … in Ireland*: the text names the country of the people who were there before."""
    edit = place.edit
    moved = edit.kind == "swap" and edit.attribute == "nationality"
    names = _FILE["countries"].get(edit.source_group) if moved else None
    match = _pattern(names).search(place.whole) if names is not None else None
    return f"{edit.target!r} and {match[0]!r}" if match else ""


RULES: Sequence[Callable[[Place], str]] = (
    verb_of_they, pronoun, compound, neutral_word, age, two_ages, twice, belongs, country, two_genders,
)  # fmt: skip


# -- the place of an edit ------------------------------------------------------------------------------------


class Unit(NamedTuple):
    """One word or mark of the changed sentence."""

    text: str
    low: str
    tag: str
    edit: Edit | None
    token: int
    joined: bool


NOTHING = Unit("", "", "", None, -1, False)


class Original:
    """The text of an original, where its sentences stand, and its persons, who are looked for when asked for."""

    def __init__(self, text: str, parser: Parser) -> None:
        self.text, self.sentences, self._parser = text, sentences(text), parser

    @cached_property
    def persons(self) -> Sequence[Person]:
        """Everybody of whom the text speaks."""
        return people(self._parser.parse_text(self.text), lexicon()).persons


class Place:
    """An edit among the words of its sentence: ``units[first:last]`` were written, ``noun`` is the last of them."""

    def __init__(
        self, original: Original, made: str, edits: Sequence[Edit], edit: Edit, units: Sequence[Unit], parse: Parse
    ) -> None:
        self.original, self.whole, self.made = original, original.text, made
        self.edits, self.edit, (self.start, self.end) = edits, edit, span_of(edit)
        self.units, self.parse = units, parse
        own = [i for i, unit in enumerate(units) if unit.edit is edit]
        self.first, self.last = own[0], own[-1] + 1
        self.noun = units[own[-1]]
        self.token = self.noun.token

    def before(self, step: int = 1) -> Unit:
        """Return the unit ``step`` before the change."""
        i = self.first - step
        return self.units[i] if i >= 0 else NOTHING

    def after(self, step: int = 1) -> Unit:
        """Return the unit ``step`` after the change."""
        i = self.last - 1 + step
        return self.units[i] if i < len(self.units) else NOTHING

    def edited(self, start: int, end: int) -> Edit | None:
        """Return the edit of the variant that touches ``whole[start:end]``."""
        return next(
            (e for e in self.edits if span_of(e)[0] < end and start < max(span_of(e)[1], span_of(e)[0] + 1)), None
        )


def units_of(sentence: str, offset: int, parse: Parse, edits: Sequence[Edit]) -> list[Unit]:
    """Lay out the changed sentence, which begins at ``offset``; ``edits`` are in order and do not overlap."""
    out: list[Unit] = []
    starts = [offset + start for start in parse.starts]
    ends = [start + len(word) for start, word in zip(starts, parse.words, strict=True)]
    n, k, at = len(ends), 0, offset
    for edit in (*edits, None):  # None: only what stands behind the last one is left
        start, end = span_of(edit) if edit else (offset + len(sentence), 0)
        while k < n and ends[k] <= start:
            word = parse.words[k]
            joined = bool(out) and starts[k] == at
            out.append(Unit(word, word.lower().replace("’", "'"), parse.tags[k], None, k, joined))
            k, at = k + 1, ends[k]
        if edit is None:
            break
        first = k
        while k < n and starts[k] < end:
            k += 1
        text, joined = edit.target, bool(out) and start == at
        if k > first:
            begin, stop = min(starts[first], start), max(ends[k - 1], end)
            text = sentence[begin - offset : start - offset] + text + sentence[end - offset : stop - offset]
            joined, at = bool(out) and begin == at, stop
        token, tag = (k - 1, parse.tags[k - 1]) if k > first else (-1, "JJ")
        for i, word in enumerate(written := text.split()):
            last = i == len(written) - 1
            out.append(Unit(word, word.lower(), tag if last else "JJ", edit, token, joined and not i))
    return out


# -- the gate that goes by the rules -------------------------------------------------------------------------


# Lines are fitted to the text by what writes them (`auditor.perturb.name_lines`); an agreement follows another edit.
UNASKED = frozenset(("name_line", "statement", "agreement"))


class _Part(NamedTuple):
    """A changed sentence: its number, where it starts, the sentence of the original, and the edits in it."""

    number: int
    start: int
    sentence: str
    edits: Sequence[Edit]


class _Laid(NamedTuple):
    """A variant beside its original: its edits, and those of each changed sentence."""

    original: Original
    variant: Variant
    edits: Sequence[Edit]
    parts: Sequence[_Part]


def _lay(original: Original, variant: Variant) -> _Laid:
    """Deal the edits to the sentences that they change; one that reaches over an end belongs to the first."""
    text, spans = original.text, original.sentences
    edits, last = edits_of(text, variant), len(spans) - 1
    rows = grouped((next((i for i, (_, end) in enumerate(spans) if span_of(e)[0] < end), last), e) for e in edits)
    parts = [
        _Part(i, spans[i][0], text[spans[i][0] : max(spans[i][1], span_of(own[-1])[1])], own) for i, own in rows.items()
    ]
    return _Laid(original, variant, edits, parts)


class Constructs(TextGate):
    """Checks variants by the constructs that their edits touch.

    Parameters
    ----------
    parser : Parser
        Parses sentences of originals; shared with whoever else needs parses, so that none is made twice.
    rules : sequence of functions
        Say what is wrong at a place, "" where nothing is; without it, `RULES`.

    Attributes
    ----------
    name : str
        ``constructs.v2``.
    """

    name = "constructs.v2"

    def __init__(self, *, parser: Parser, rules: Sequence[Callable[[Place], str]] = RULES) -> None:
        self.parser, self._rules = parser, rules

    def check_many(self, cases: Iterable[Case]) -> list[list[Check]]:
        """Check the variants of several cases; the sentences of all originals are parsed together."""
        laid: list[list[_Laid | Check]] = []
        for case in cases:
            text = case.original.input
            old = Original(text, self.parser) if isinstance(text, str) else None
            laid.append([_lay(old, v) if old and isinstance(v.input, str) else self._row(v) for v in case.variants])
        parts = (part for row in laid for one in row if isinstance(one, _Laid) for part in one.parts)
        todo = list(dict.fromkeys(part.sentence for part in parts if len(part.sentence) <= MAX_CHARS))
        parses = dict(zip(todo, self.parser.parse(todo), strict=True))
        return [[self._check(one, parses) if isinstance(one, _Laid) else one for one in row] for row in laid]

    def _check(self, laid: _Laid, parses: Mapping[str, Parse]) -> Check:
        for part in laid.parts:
            if part.sentence not in parses:
                reason = f"sentence {part.number + 1} is longer than {MAX_CHARS} characters"
                return self._result(laid.variant, "unknown", reason)
        for part in laid.parts:
            for place, rule in itertools.product(_places(laid, part, parses[part.sentence]), self._rules):
                if wrong := rule(place):
                    name = rule.__name__.replace("_", " ")
                    return self._judged(laid.variant, f"sentence {part.number + 1}: {name}: {wrong}")
        return self._judged(laid.variant, "")


def _places(laid: _Laid, part: _Part, parse: Parse) -> list[Place]:
    """The place of each edit of a sentence that wrote something."""
    units, made = units_of(part.sentence, part.start, parse, part.edits), str(laid.variant.input)
    written = (e for e in part.edits if e.target.split() and e.kind not in UNASKED)
    return [Place(laid.original, made, laid.edits, e, units, parse) for e in written]


def edits_of(text: str, variant: Variant) -> tuple[Edit, ...]:
    """The edits of a variant in order; where it says none, those that a comparison of words finds."""
    if variant.edits and all(isinstance(edit.where, tuple) for edit in variant.edits):
        return variant.edits
    assert isinstance(variant.input, str)
    old, new = tokens_of(text), tokens_of(variant.input)
    out = []
    matcher = SequenceMatcher(
        None, [text[w.start : w.end] for w in old], [variant.input[w.start : w.end] for w in new], autojunk=False
    )
    for op, a, b, c, d in matcher.get_opcodes():
        if op == "equal":
            continue
        start = old[a].start if a < len(old) else len(text)
        end = old[b - 1].end if b > a else start
        written = variant.input[new[c].start : new[d - 1].end] if d > c else ""
        blank = " " if a == b and written else ""
        out.append(replacing(text, (start, end), written + blank, "", "swap", ("", "")))
    return tuple(out)
