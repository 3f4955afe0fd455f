"""Senses: whether a changed word still means in its place what the edit says.

Compounds (*kid's meal*), names (*the Americans with Disabilities Act*), languages, adjectives before what is no person,
and neutral words. Each rule takes the place of one change and says in a few words what is wrong there, "" where nothing
is. Rules that need no more than words and tags are in ``auditor/embedded/gate.yaml``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import takewhile

from auditor.core.types import NEUTRAL
from auditor.perturb.dictionaries import Term, nations, neutral, persons, single_nationals
from auditor.perturb.gate.forms import heading_ahead, proper, same_class
from auditor.perturb.gate.lexicon import FILE, Condition, Row, Rule, is_person, listed, words
from auditor.perturb.gate.units import Place, Unit
from auditor.text.english import FUNCTION_WORDS, plural_verb
from auditor.text.parse import Parse

_WORDS = frozenset(("swap", "marking", "placebo", "wording"))
_POSSESSIVE = frozenset(("'s", "'", "’s", "’"))
_ACTIVITY_ENDS = frozenset(("is", "was", "and", ",", ".", "at", "in", "from"))
_PHRASE_HEADS = frozenset(("nsubj", "nsubj:pass", "obj", "iobj", "obl", "nmod"))
_ONE_PERSON = frozenset(("a", "an", "the", "this", "that", "one", "another", "every", "each"))
_BEGINS_NAMES = frozenset(
    ("DT", "PRP$", "CD", "POS", "JJ", "JJS", "NN", "NNP", "VBN", "VBG", "HYPH")
)  # tags before a noun that is no first name


def compound(place: Place) -> str:
    """*kid meal*, *people watching*, *individual contributor*, *brother bond*: the noun is a part of another word."""
    edit = place.edit
    words_out = edit.source.lower().split()  # none where a comparison of words found that one was put in
    if edit.kind not in _WORDS or not words_out or not is_person(words_out[-1]):
        return ""
    before, after, low, source = place.before(), place.after(), place.noun.low, edit.source
    if before.low in listed("trade_modifiers") and low not in ("woman", "women"):
        return f"{source!r} is a part of a compound with {before.text!r}"
    if _kind(before) and not place.units[place.first].joined and _of_a_kind(place, after):
        return f"{source!r} may be a part of a compound with {before.text!r}"
    if _name_without_capitals(place):
        return f"{source!r} may be a part of a name"
    if after.joined and after.low in {"-", "/"} and place.after(2).text[:1].isalpha():
        return f"{low!r} is a part of a hyphenated word" if after.low == "-" else ""
    if after.joined and after.low in _POSSESSIVE:
        return _possessor(place)
    if after.joined or not after.text[:1].isalpha() or after.change is not None:
        return ""
    noun = after.tag in ("NN", "NNS")
    plain = edit.attribute != "nationality" and low not in ("male", "female", "nonbinary")
    if plain and noun and (edit.kind == "marking" or _one_noun(place)) and not is_person(after.low):
        if after.low in FUNCTION_WORDS or after.low in listed("no_compound") or _verbal(place, after):
            return ""
        return f"{low!r} is a part of a compound with {after.text!r}"
    if after.low == "watching" and source.lower() == "people" and _activity(place):
        return "'people watching' is an activity"
    if low in ("person", "people") and noun and is_person(after.low):
        return f"{low!r} before {after.text!r}"
    if source.lower() in ("individual", "adult") and after.tag[:1] == "N":
        return f"{source!r} is an adjective before {after.text!r}"
    return ""


def _kind(unit: Unit) -> bool:
    """Whether a noun may say what kind of person follows (*party girl*, *corner man*), and names nobody."""
    if unit.tag not in ("NN", "NNS") or not unit.text.islower() or unit.change is not None or unit.joined:
        return False
    return not (unit.low in listed("counts") or is_person(unit.low) or unit.low in proper() or unit.low in persons()[2])


def _of_a_kind(place: Place, after: Unit) -> bool:
    """Whether a noun before another says with it who is meant: *sorority sisters*, *party girl annabel*."""
    several = place.noun.tag == "NNS"
    return several or " " in place.change.text.strip() or (after.tag[:2] == "NN" and not after.joined)


def _name_without_capitals(place: Place) -> bool:
    """Whether a noun of a text without capitals has no article but a noun or *of* beside it (*stephen king*)."""
    before = place.before()
    if before.tag not in ("NN", "NNP") or before.joined or before.change is not None or is_person(before.low):
        return False
    own = [unit.text for unit in place.units if unit.change is None]
    if len(own) < 6 or any(text != text.lower() for text in own):
        return False
    first = place.before(2)
    return first.tag not in _BEGINS_NAMES and not first.joined


def _activity(place: Place) -> bool:
    return place.before().tag not in ("DT", "JJ", "CD", "PRP$") and place.after(2).low in _ACTIVITY_ENDS


def _verbal(place: Place, after: Unit) -> bool:
    """Whether a word that is tagged as a noun is more likely the verb of the clause (*the prince proposes, …*)."""
    if after.low.endswith("ators"):
        return False
    if plural_verb(after.low) is None and not after.low.endswith("ed") and after.low not in listed("irregular_past"):
        return False
    following = place.after(2)
    return not following.text[:1].isalpha() or following.tag[:2] in ("IN", "DT", "PR", "RB", "TO", "CD", "JJ", "WR")


def _one_noun(place: Place) -> bool:
    """Whether the parse takes the changed word and the next one for one noun phrase."""
    parse, i, after = place.parse, place.token, place.after()
    if i < 0 or after.token < 0:
        return False
    return parse.deps[i] in ("compound", "amod", "nmod") or (after.tag != "VBG" and parse.heads[i] == after.token)


def _possessor(place: Place) -> str:
    """*kid's meal* → *trans boy's meal*: a kind of thing, not the thing of some person."""
    thing, target = place.after(2), place.noun.low
    if thing.low not in listed("kinds_of_things"):
        return ""
    childs = (target in listed("children")) == (thing.low in listed("child_things"))
    return "" if childs and place.last - place.first == 1 else f"{target!r} before {thing.text!r}"


_people = Rule("people")


def people(place: Place) -> str:
    """*such a trans woman*, *her sons and children*: "people" for all, for a nation, or for both sexes."""
    if wrong := _people(place):
        return wrong
    edit, target = place.edit, place.noun.low
    if edit.kind not in ("swap", "marking") or not edit.target_group or target not in FILE.one_of:
        return ""
    if not {"and", "or"} & {place.before().low, place.after().low}:
        return ""
    after = place.after(2)
    around = {place.before(2).low, after.low, place.after(3).low if after.tag == "PRP$" else ""}
    beside = sorted(words(FILE.one_of[target]) & around)
    return f"{target!r} beside {beside[0]!r}" if beside else ""


def contrast(place: Place) -> str:
    """*men's jackets have five pockets and men's none*: a plural for a group beside which it stood as another."""
    edit, written = place.edit, place.noun
    if edit.attribute == "age" and edit.kind != "agreement":
        links = [(place.after(), place.after(2)), (place.before(), place.before(2))]
        other = next((u.text for link, u in links if link.low in ("and", "or") and u.low in listed("of_an_age")), "")
        return f"{edit.target!r} beside {other!r}" if other else ""
    if edit.attribute != "gender" or edit.kind not in ("swap", "marking") or written.tag != "NNS":
        return ""
    same = any(unit.change is None and unit.low == written.low for unit in place.units)
    return f"{written.text!r} beside {written.text!r}" if same else ""


def nation(place: Place) -> str:
    """*Native American British*: a term that ends with a nation beside the word for another."""
    edit = place.edit
    if edit.attribute == "nationality" or edit.kind == "agreement" or nations().isdisjoint(edit.target.lower().split()):
        return ""
    beside = (place.before(), place.after())
    other = next((unit for unit in beside if unit.low in nations() and unit.change is None), None)
    return f"{edit.target!r} beside {other.text!r}" if other is not None else ""


def one_of_a_nation(place: Place) -> str:
    """*the Finnish arrived*: an adjective that is no noun for one person, where such a noun stood."""
    edit, i = place.edit, place.token
    if edit.attribute != "nationality" or edit.kind != "swap" or i < 0 or place.before().low not in _ONE_PERSON:
        return ""
    alone = place.parse.deps[i] in _PHRASE_HEADS and place.after().tag[:1] not in "NJ"
    noun = edit.source.lower() in single_nationals() and edit.target.lower() not in single_nationals()
    return f"{edit.target!r} is no noun" if alone and noun else ""


def name(place: Place) -> str:
    """*the Americans with Disabilities Act*, *Institute for Men*: the word is a part of a name."""
    source = place.edit.source
    if place.edit.kind == "agreement" or place.edit.attribute == "names":
        return ""
    if source[:1].isupper() and not source.isupper() and _named(place):
        return f"{source!r} is a part of a name"
    if source.isupper() and len(source) > 1 and _title_in_capitals(place):
        return f"{source!r} is a part of a title"
    if not source[:1].isupper() or source.lower() in ("he", "she") or source.endswith(".") or in_heading(place):
        return ""
    link, before = place.before(), place.before(2)
    if link.low in ("of", "for") and _capital(before) and before.token > 0 and before.tag in ("NNP", "NNPS"):
        return f"a part of the name '{before.text} {link.text} …'"
    after, second = place.after(), place.after(2)
    if after.low in ("with", "of", "for") and _capital(second) and second.low not in listed("months"):
        own = link.low not in ("the", "a", "an", "some") or place.after(3).text[:1].isupper()
        return f"a part of the name '… {after.text} {second.text}'" if own else ""
    if _capital(after) and not after.joined and after.tag in ("NNP", "NNPS") and second.text[:1].isupper():
        return f"a part of the name '… {after.text} {second.text}'"
    institution = _capital(after) and after.low in listed("institutions")
    return f"a part of the name '… {after.text}'" if institution else ""


def _title_in_capitals(place: Place) -> bool:
    """Whether capitals stand around, in a sentence that is not written in them (*A WOMAN OF AFFAIRS (1928)*)."""
    if not any(len(unit.text) > 1 and unit.text.isupper() for unit in (place.before(), place.after())):
        return False
    small = sum(unit.text.islower() and unit.text.isalpha() for unit in place.units)
    return small > len(place.units) / 3


def _named(place: Place) -> bool:
    """Whether a common noun has a capital inside a sentence (*the Bride of …*, *its Board*), which makes it a name."""
    edit, low = place.edit, place.edit.source.lower()
    if edit.attribute != "gender" or place.first == 0 or not is_person(low.split()[-1]):
        return False
    if low in listed("addressed"):
        return place.before().text == "The" and place.first > 1  # *her memoir, The Girl at the Back*
    if heading_ahead(place) or low in proper() or in_heading(place):
        return False
    return place.before().text[:1].isalpha()


def _capital(unit: Unit) -> bool:
    return unit.change is None and unit.text[:1].isupper() and len(unit.text) > 1 and unit.text.isalpha()


def in_heading(place: Place) -> bool:
    """Whether every word of the sentence that may has a capital."""
    own = [u for u in place.units if u.change is None and u.text[:1].isalpha() and u.low not in FUNCTION_WORDS]
    return len(own) > 1 and all(u.text[0].isupper() for u in own)


def neutral_word(place: Place) -> str:
    """*at the until*, *kept the novels*: a neutral word in another sense, or one that is not said in this place."""
    edit = place.edit
    if edit.kind not in NEUTRAL:
        return ""
    source, target = edit.source.lower(), edit.target.lower()
    known = _neutral()
    if source not in known.by_source and source not in known.written:
        return ""  # other words of a group, or words of the user's own
    terms = [term for term in known.by_source.get(source, ()) if target in known.slots.get(term.slot, ())]
    if not terms:
        return f"{edit.target!r} does not stand for {edit.source!r}"
    if not _plainly(place, terms[0]):
        return f"{edit.source!r} is a part of a name or a compound"
    before, after, tag = place.before(), place.after(), place.noun.tag
    if any(before.low in term.not_after or after.low in term.not_before for term in terms):
        return f"{edit.source!r} has another sense here"
    pos, slot = terms[0].pos, terms[0].slot
    verb = tag == "NNS" and pos == "VBZ" and after.tag not in ("PRP", "PRP$", "DT")
    if verb or not any(same_class(place, term.pos, tag) for term in terms):
        return f"{edit.source!r} is tagged {tag} here"
    counted = pos == tag == "NN" and slot not in listed("without_article")
    if counted and before.tag in ("IN", "TO") and after.tag not in ("NN", "NNS", "NNP"):
        return f"{edit.target!r} after {before.text!r}, without an article"
    if slot.startswith("opener.") and not _opens_a_clause(place):
        return f"{edit.target!r} opens no clause"
    rows = _fits().get((source, target))
    if rows is not None and not any(row.holds(place) for row in rows):
        return f"{edit.target!r} before {after.text!r}"
    return ""


class _Neutral:
    """The dictionary of neutral words: terms by what is looked for, and the words of each slot and of all."""

    def __init__(self) -> None:
        self.by_source: dict[str, list[Term]] = {}
        self.slots: dict[str, set[str]] = {}
        for term in neutral().sources:
            self.by_source.setdefault(term.text.lower(), []).append(term)
        for term in neutral().terms:
            self.slots.setdefault(term.slot, set()).add(term.text.lower())
        self.written = frozenset(word for own in self.slots.values() for word in own)


_neutral = lru_cache(maxsize=1)(_Neutral)
_VERBS = frozenset(("asks", "wants", "says", "comes", "goes", "knows"))  # tagged as nouns behind some names of people
_FINITE = frozenset(("VBZ", "VBD", "VBP", "MD"))


def _plain_verb(parse: Parse, root: int) -> bool:
    """Whether a verb comes before any word that opens a clause beside (*a clerk asks*; not *a clerk who asks*)."""
    for i, (word, tag) in enumerate(zip(parse.words, parse.tags, strict=True)):
        if word.lower() in ("who", "which", "that", "whose", "where", "what"):
            return False
        if tag in _FINITE or (tag == "NNS" and (word in _VERBS or (i == root and plural_verb(word)))):
            return True
    return False


def _opens_a_clause(place: Place) -> bool:
    """Whether an adverb may stand before a sentence: it has a verb, no colon, and no such adverb."""
    parse, own = place.parse, place.change.text.split(",")[0].lower()
    rest = [unit.low for unit in place.units[place.last :]]
    if ":" in own:  # *in short: a woman who …*
        return ":" not in rest
    root = next((i for i, dep in enumerate(parse.deps) if dep == "ROOT"), 0)
    verb = (
        parse.tags[root][:2] == "VB"
        or any(dep == "cop" and head == root for dep, head in zip(parse.deps, parse.heads, strict=True))
        or _plain_verb(parse, root)
    )
    return verb and ":" not in rest and own not in rest


def _plainly(place: Place, term: Term) -> bool:
    """Whether a neutral word stands for itself: no capital inside a sentence, and no thing whose kind a noun says."""
    edit, before = place.edit, place.before()
    capital = edit.source[:1].isupper() and not edit.source.isupper() and term.text.islower()
    if capital and before.text[:1].isalpha() and not in_heading(place):
        return False
    if term.role == "occupation" and before.low in (",", "and") and place.after().tag == "NNS":
        return False  # a verb: *watch lessons, coach colleagues*
    return not (
        term.slot.startswith(("thing.", "house"))
        and before.tag in ("NN", "NNS", "NNP", "VBG")
        and before.low not in nations()
        and not place.units[place.first].joined
    )


def _alone(place: Place) -> bool:
    return not any(unit.low in ("either", "both", "neither", "other") for unit in place.units)


def _one_number(place: Place) -> bool:
    """Whether digits may stand: not where a sentence opens, nor beside a number in letters."""
    others = any(u.change is None and u.tag == "CD" and u.text.isalpha() for u in place.units)
    return place.before().text[:1].isalpha() and not others


def _clause_ahead(place: Place) -> bool:
    """Whether a comma stands before, and a verb or a short subject with its verb follows (*…, and her prices are*)."""
    if place.before().low not in (",", ""):
        return False
    if place.after().tag in _FINITE:
        return True
    if place.after().tag not in ("PRP", "PRP$", "DT", "NNS", "NNP", "EX"):
        return False
    for unit in map(place.after, range(2, 8)):
        if unit.tag in _FINITE:
            return True
        if unit.tag[:1] not in "NJ" and unit.tag not in ("RB", "HYPH") and unit.text not in ("-", "in"):
            return False
    return False


def _list_ahead(place: Place) -> bool:
    """Whether the last of several things follows a comma, and no clause (*…, and her prices*)."""
    ahead = takewhile(lambda unit: unit.text[:1].isalpha() or unit.joined, map(place.after, range(1, 9)))
    clause = any(unit.tag in _FINITE for unit in ahead) or _clause_ahead(place)
    return place.before().low == "," and place.after().tag[:1] in ("N", "J", "P") and not clause


def _restrictive(place: Place) -> bool:
    """Whether a clause follows that says which person is meant."""
    verb = place.after(2) if place.after().tag == "RB" else place.after()
    return place.before().tag in ("NN", "NNS") and verb.tag in _FINITE and not verb.joined


_LOOKING: Mapping[str, Condition] = {
    "alone": _alone, "one number": _one_number, "restrictive": _restrictive,
    "clause ahead": _clause_ahead, "list ahead": _list_ahead,
}  # fmt: skip


@lru_cache(maxsize=1)
def _fits() -> dict[tuple[str, str], list[Row]]:
    """(Source, target) → rows of which one must hold."""
    out: dict[tuple[str, str], list[Row]] = {}
    for pairs, rows in FILE.fits.items():
        conditions = [Row(row, _LOOKING) for row in rows]
        for pair in pairs.split("; "):
            source, _, target = pair.partition(" > ")
            out[source, target] = conditions
    return out


RULES: Mapping[str, Callable[[Place], str]] = {
    "compound": compound,
    "people": people,
    "contrast": contrast,
    "nation": nation,
    "one of a nation": one_of_a_nation,
    "name": name,
    "language": Rule("language"),
    "insertion": Rule("insertion"),
    "neutral word": neutral_word,
}
