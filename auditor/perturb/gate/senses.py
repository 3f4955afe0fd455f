"""Senses: whether a changed word still means in its place what the edit says.

Compounds (*kid's meal*), names (*the Americans with Disabilities Act*), languages, adjectives before what is no person.
Each rule takes the place of one change and says in a few words what is wrong there, "" where nothing is.
"""

from __future__ import annotations

from auditor.perturb.dictionaries import nations, persons, single_nationals
from auditor.perturb.gate import lexicon, words
from auditor.perturb.gate.forms import heading_ahead, proper
from auditor.perturb.gate.units import Place, Unit
from auditor.text.english import FUNCTION_WORDS, plural_verb

_WORDS = frozenset(("swap", "marking", "placebo", "wording"))


def _is_person(low: str) -> bool:
    singular, plural, _ = persons()
    return low in singular or low in plural or low in words.SINGULAR or low in words.PLURAL


def _noun(place: Place) -> bool:
    """Whether the change writes a person noun for a person noun (no pronoun, title, adjective)."""
    edit = place.change.edit
    words_out = edit.source.lower().split()  # none where a comparison of words found that one was put in
    return edit.kind in _WORDS and bool(words_out) and _is_person(words_out[-1])


def compound(place: Place) -> str:
    """*kid meal*, *people watching*, *individual contributor*, *brother bond*: the noun is a part of another word."""
    if not _noun(place):
        return ""
    after, low = place.after(), place.units[place.last - 1].low
    before = place.before()
    if before.low in lexicon.OF_A_TRADE and low not in ("woman", "women"):
        return f"{place.change.edit.source!r} is a part of a compound with {before.text!r}"
    if _kind(before) and not place.units[place.first].joined and _of_a_kind(place, after):
        return f"{place.change.edit.source!r} may be a part of a compound with {before.text!r}"
    if _name_without_capitals(place):
        return f"{place.change.edit.source!r} may be a part of a name"
    if after.joined and after.low in {"-", "/"} and place.after(2).text[:1].isalpha():
        return f"{low!r} is a part of a hyphenated word" if after.low == "-" else ""
    if after.joined and after.low in {"'s", "'", "’s", "’"}:
        return _possessor(place)
    if after.joined or not after.text[:1].isalpha() or after.change is not None:
        return ""
    plain = place.change.edit.attribute != "nationality" and low not in ("male", "female", "nonbinary")
    any_parse = place.change.edit.kind == "marking"
    if plain and after.tag in ("NN", "NNS") and (any_parse or _one_noun(place)) and not _is_person(after.low):
        if after.low in FUNCTION_WORDS or after.low in lexicon.NO_COMPOUND or _verbal(place, after):
            return ""
        return f"{low!r} is a part of a compound with {after.text!r}"
    if after.low == "watching" and place.change.edit.source.lower() == "people" and _activity(place):
        return "'people watching' is an activity"
    if low in ("person", "people") and after.tag in ("NN", "NNS") and _is_person(after.low):
        return f"{low!r} before {after.text!r}"
    if place.change.edit.source.lower() in lexicon.ALSO_ADJECTIVES and after.tag[:1] == "N":
        return f"{place.change.edit.source!r} is an adjective before {after.text!r}"
    return ""


def _kind(unit: Unit) -> bool:
    """Whether a noun may say what kind of person follows (*party girl*, *corner man*), and names nobody."""
    told = (
        unit.tag == "NN"
        and unit.text.islower()
        and unit.change is None
        and not unit.joined
        and unit.low not in lexicon.COUNTS
    )
    return told and not (_is_person(unit.low) or unit.low in proper() or unit.low in persons()[2])


def _of_a_kind(place: Place, after: Unit) -> bool:
    """Whether a noun before another says with it who is meant: *sorority sisters*, *party girl annabel*."""
    several = place.units[place.last - 1].tag == "NNS"
    return several or " " in place.change.text.strip() or (after.tag[:2] == "NN" and not after.joined)


def _name_without_capitals(place: Place) -> bool:
    """Whether a noun of a text without capitals has no article but a noun or *of* beside it (*stephen king*)."""
    before = place.before()
    if before.tag not in ("NN", "NNP") or before.joined or before.change is not None or _is_person(before.low):
        return False
    own = [unit.text for unit in place.units if unit.change is None]
    if len(own) < 6 or any(text != text.lower() for text in own):
        return False
    first = place.before(2)
    return (
        first.tag not in ("DT", "PRP$", "CD", "POS", "JJ", "JJS", "NN", "NNP", "VBN", "VBG", "HYPH")
        and not first.joined
    )


def _activity(place: Place) -> bool:
    return place.before().tag not in ("DT", "JJ", "CD", "PRP$") and place.after(2).low in lexicon.AFTER_ACTIVITY


def people(place: Place) -> str:
    """*such a trans woman*, *the Israeli trans men*: "person" or "people" that stand for all, or for a nation."""
    edit, before, first = place.change.edit, place.before(), place.before(2)
    noun = place.after().low
    if edit.target_group == "adolescent" and edit.attribute == "age" and noun in lexicon.TRADES:
        return f"{edit.target!r} before {noun!r}"
    if edit.attribute == "age" and edit.kind != "agreement" and (first.low, before.low) in (("as", "a"), ("as", "an")):
        return f"{edit.source!r} after 'as a' is a role, or a time of life"
    source, after = edit.source.lower(), place.after()
    if source in lexicon.ALSO_ADJECTIVES and after.low == "and" and place.units[place.last - 1].tag == "JJ":
        return f"{edit.source!r} is an adjective"
    if place.units[place.last - 1].tag[:2] == "VB" and _is_person(source.split()[-1]):
        return f"{edit.source!r} is a verb"
    if edit.kind != "agreement" and (after.low == "/" and source not in words.PRONOUNS):
        return f"{edit.source!r} is a part of a title with {place.after(2).text!r}"
    if source in ("man", "woman") and before.low in lexicon.GENERIC_AFTER:
        return f"{edit.source!r} without an article is everybody"
    if before.low == "latina" and edit.target_group in ("male", "trans_male", "nonbinary"):
        return f"{before.text!r} and {edit.target!r}"
    if edit.target.lower().startswith("middle-aged ") and before.low in nations():
        return f"{edit.target!r} after {before.text!r}"
    if edit.kind not in ("swap", "marking") or not edit.target_group:
        return ""
    if source == "person" and before.low in lexicon.IN_PERSON:
        return f"'{before.text} person' is a phrase"
    if edit.kind == "marking":
        if source in lexicon.EVERYBODY and before.low == "the" and edit.target_group not in ("female", "male"):
            return f"'the {source}' may be anybody"
        if source == "kids" and edit.target_group == "nonbinary":
            return f"{edit.source!r} may be anybody"
        if source == "parents" and after.low in ("'", "’") and place.after(2).low in lexicon.OF_A_SCHOOL:
            return f"{edit.source!r} before {place.after(2).text!r}"
        if (
            source == "people"
            and (before.tag == "VBG" or (first.low, before.low) == ("good", "with"))
            and not after.text[:1].isalpha()
        ):
            return f"'people' after {before.text!r} is everybody"
        if before.low == "a" and first.low == "as":
            return f"'as a {source}' is a time of life"
        if before.low == "a" and first.low == "such":
            return f"{edit.source!r} after 'such a' goes back to somebody"
        if (
            source == "people"
            and place.token > 0
            and place.parse.words[place.token - 1].lower() in nations()
            and first.low == "the"
        ):
            return f"{edit.source!r} is a nation"
    if source == "teens" and before.low in lexicon.OF_DECADES:
        return "'teens' are years"
    if edit.target.lower() in ("single", "divorced", "widowed") and after.low in ("couple", "couples"):
        return f"{edit.target!r} before {after.text!r}"
    return _pair(place)


def nation(place: Place) -> str:
    """*Native American British*: a term that ends with a nation beside the word for another."""
    edit = place.change.edit
    own = set(edit.target.lower().split())
    if edit.attribute == "nationality" or edit.kind == "agreement" or not own & nations():
        return ""
    for unit in (place.before(), place.after()):
        if unit.low in nations() and unit.change is None:
            return f"{edit.target!r} beside {unit.text!r}"
    return ""


def _one_person(place: Place) -> bool:
    return place.before().low in ("a", "an", "the", "this", "that", "one", "another", "every", "each")


_PHRASE_HEADS = frozenset(("nsubj", "nsubj:pass", "obj", "iobj", "obl", "nmod"))


def one_of_a_nation(place: Place) -> str:
    """*the Finnish arrived*: an adjective that is no noun for one person, where such a noun stood."""
    edit, i = place.change.edit, place.token
    if edit.attribute != "nationality" or edit.kind != "swap" or i < 0 or not _one_person(place):
        return ""
    alone = (
        place.parse.deps[i] in _PHRASE_HEADS
        and place.after().tag[:1] not in "NJ"
        and edit.target.lower() not in single_nationals()
    )
    return f"{edit.target!r} is no noun" if alone and edit.source.lower() in single_nationals() else ""


def _pair(place: Place) -> str:
    """*her sons and children*: a word for both beside a word for one."""
    target = place.units[place.last - 1].low
    one = lexicon.ONE_OF.get(target)
    if one is None:
        return ""
    around = {place.before(2).low, place.after(2).low, place.after(3).low if place.after(2).tag == "PRP$" else ""}
    links = (place.before().low, place.after().low)
    found = sorted(one & around) if {"and", "or"} & set(links) else []
    return f"{target!r} beside {found[0]!r}" if found else ""


def contrast(place: Place) -> str:
    """*men's jackets have five pockets and men's none*: a plural for a group beside which it stood as another."""
    edit, written = place.change.edit, place.units[place.last - 1]
    if edit.attribute == "age" and edit.kind != "agreement":
        links = [(place.after(), place.after(2)), (place.before(), place.before(2))]
        other = next((u.text for link, u in links if link.low in ("and", "or") and u.low in lexicon.OF_AN_AGE), "")
        return f"{edit.target!r} beside {other!r}" if other else ""
    if edit.attribute != "gender" or edit.kind not in ("swap", "marking") or written.tag != "NNS":
        return ""
    same = any(unit.change is None and unit.low == written.low for unit in place.units)
    return f"{written.text!r} beside {written.text!r}" if same else ""


def _verbal(place: Place, after: Unit) -> bool:
    """Whether a word that is tagged as a noun is more likely the verb of the clause (*the prince proposes, …*)."""
    if after.low.endswith("ators"):
        return False
    if plural_verb(after.low) is None and not after.low.endswith("ed") and after.low not in lexicon.PAST_FORMS:
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
    thing = place.after(2)
    if thing.low not in lexicon.KINDS_OF_THINGS:
        return ""
    target = place.units[place.last - 1].low
    multiword = place.last - place.first > 1
    child = target in lexicon.CHILDREN
    return f"{target!r} before {thing.text!r}" if multiword or child != (thing.low in lexicon.CHILD_THINGS) else ""


def name(place: Place) -> str:
    """*the Americans with Disabilities Act*, *Institute for Men*: the word is a part of a name."""
    if place.change.edit.kind == "agreement" or place.change.edit.attribute in ("names",):
        return ""
    source = place.change.edit.source
    if source[:1].isupper() and not source.isupper() and _named(place):
        return f"{source!r} is a part of a name"
    if source.isupper() and len(source) > 1 and _title_in_capitals(place):
        return f"{source!r} is a part of a title"
    if not source[:1].isupper() or source.lower() in words.THIRD or source.endswith("."):
        return ""
    if in_heading(place):
        return ""
    link, before = place.before(), place.before(2)
    if link.low in lexicon.LINKS and _capital(before) and before.token > 0 and before.tag in ("NNP", "NNPS"):
        return f"a part of the name '{before.text} {link.text} …'"
    link, after = place.after(), place.after(2)
    if link.low in lexicon.LINKS_AHEAD and _capital(after) and after.low not in lexicon.MONTHS:
        own = place.before().low not in ("the", "a", "an", "some") or place.after(3).text[:1].isupper()
        return f"a part of the name '… {link.text} {after.text}'" if own else ""
    after = place.after()
    if _capital(after) and not after.joined and after.tag in ("NNP", "NNPS") and place.after(2).text[:1].isupper():
        return f"a part of the name '… {after.text} {place.after(2).text}'"
    if _capital(after) and after.low in lexicon.INSTITUTIONS:
        return f"a part of the name '… {after.text}'"
    return ""


def _title_in_capitals(place: Place) -> bool:
    """Whether capitals stand around, in a sentence that is not written in them (*A WOMAN OF AFFAIRS (1928)*)."""
    around = [place.before().text, place.after().text]
    if not any(word.isupper() and len(word) > 1 for word in around):
        return False
    small = sum(unit.text.islower() and unit.text.isalpha() for unit in place.units)
    return small > len(place.units) / 3


def _named(place: Place) -> bool:
    """Whether a common noun has a capital inside a sentence (*the Bride of …*, *its Board*), which makes it a name."""
    edit = place.change.edit
    low = edit.source.lower()
    if (
        edit.attribute != "gender"
        or edit.kind == "agreement"
        or place.first == 0
        or not _is_person(low.split()[-1])
        or low in lexicon.ADDRESSED
    ):
        return False
    if heading_ahead(place):
        return False
    return low not in proper() and not in_heading(place) and place.before().text[:1].isalpha()


def _capital(unit: Unit) -> bool:
    return unit.change is None and unit.text[:1].isupper() and len(unit.text) > 1 and unit.text.isalpha()


def in_heading(place: Place) -> bool:
    """Whether every word of the sentence that may has a capital."""
    own = [u for u in place.units if u.change is None and u.text[:1].isalpha() and u.low not in FUNCTION_WORDS]
    return len(own) > 1 and all(u.text[0].isupper() for u in own)


def language(place: Place) -> str:
    """*speaks Kenyan*, *Brazilian proficiency*: the word named a language, and the new one does not."""
    edit = place.change.edit
    if edit.attribute != "nationality" or edit.kind == "agreement" or edit.source_group == "neutral":
        return ""
    after, before = place.after(), place.before()
    if after.low in lexicon.OF_A_PLACE:
        return f"{edit.target!r} before {after.text!r}"
    if edit.target.lower() in lexicon.LANGUAGES:
        return ""
    if after.low in lexicon.OF_LANGUAGE or (place.after(2).low in lexicon.OF_LANGUAGE and after.tag[:1] in "NJ"):
        return f"{edit.target!r} is no language"
    spoken = before.low in lexicon.SPOKEN or (before.low == "in" and not after.text[:1].isalpha())
    if spoken and (not after.text[:1].isalpha() or after.low in FUNCTION_WORDS or after.tag[:1] not in "NJ"):
        return f"{edit.target!r} is no language"
    if before.low in lexicon.OWNERS and after.low in ("is", "was", "has", "(", "-"):
        return f"{edit.target!r} is no language"
    return ""


def insertion(place: Place) -> str:
    """*a middle-aged couple of months*, *a cisgender wheelchair*: what follows is no person."""
    edit = place.change.edit
    if edit.kind != "insertion":
        return ""
    noun, after = place.after(), place.after(2)
    negated = place.before(2) if place.before().low in ("a", "an") else place.before()
    if negated.low in ("without", "no", "neither", "nor"):
        return f"{negated.text!r} {edit.target!r} leaves the others"
    if place.before().low == "the" and noun.low in lexicon.ANY_OF_A_TRADE and place.before(2).low in lexicon.CALLS_ON:
        return f"'the {noun.low}' is whoever works there"
    if noun.low in lexicon.ALSO_ADJECTIVES | {"juvenile"} and after.low in ("and", "or"):
        return f"{noun.text!r} may be an adjective"
    if place.change.edit.attribute == "sexual_orientation" and noun.low in lexicon.CHILDREN:
        return f"{place.change.text.strip()!r} before {noun.text!r}"
    if after.low == "of" and (noun.low == "couple" or place.after(3).low == "all"):
        return f"{noun.text!r} of is nobody"
    if noun.change is not None:
        return ""  # what was written there is a person as what stood there
    if after.low == "/" or noun.joined:
        return f"{noun.text!r} is a part of a pair"
    if place.before().low == "one" and noun.tag != "NN":
        return f"{noun.text!r} may be what one does"
    if noun.low in lexicon.NOT_ALWAYS_PERSONS or not _is_person(noun.low):
        return f"{noun.text!r} need be no person"
    if noun.tag == "NNS" and after.joined and after.low in {"'s", "'", "’s", "’"} and place.after(3).text[:1].isalpha():
        return f"{noun.text + after.text!r} may say what kind of {place.after(3).text!r}"
    if after.tag in ("NN", "NNS") and not after.joined:
        return f"{noun.text!r} is a part of a compound with {after.text!r}"
    return ""


RULES = (compound, people, contrast, nation, one_of_a_nation, name, language, insertion)
