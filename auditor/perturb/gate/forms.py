"""Forms: what grammar asks of a changed word and of the words that agree with it.

Each rule takes the place of one change and says in a few words what is wrong there, "" where nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import takewhile

from auditor.core.types import NEUTRAL
from auditor.perturb.dictionaries import builtin, load
from auditor.perturb.gate.lexicon import FILE, listed
from auditor.perturb.gate.units import Place, Unit
from auditor.text.english import FUNCTION_WORDS, word_set
from auditor.text.trees import agreeing_verbs

_CASED = word_set("he she him her his hers himself herself")
_AFTER_ABSOLUTE = FUNCTION_WORDS | word_set("alone too either now is was are were has have had will would")
_ALWAYS_OWNED = word_set("own roommate husband wife career birthday")
_ALL_OF_IT = word_set(
    "whole entire own former latest only overall"
)  # and no object before them: *devotes her whole time*
_MARKS = word_set("* ** _ __ < > b i em strong b> i> em> strong>")
_OPENING = word_set("\" ' “ ‘ ( [ * _ < ** $ - `")
_ENDS = word_set("( ) \" ” '' ``")  # where a title is over


def verb_of_they(place: Place) -> str:
    """*They sit and reads*: a verb that goes with the changed pronoun keeps the form it had with "he"."""
    if place.edit.target.lower() != "they" or place.edit.source.lower() not in ("he", "she") or place.token < 0:
        return ""
    changed = {unit.token for unit in place.units if unit.change is not None}
    verb = next((i for i in agreeing_verbs(place.parse, place.token) if i not in changed), None)
    return f"'they' with {place.parse.words[verb]!r}" if verb is not None else ""


def pronoun(place: Place) -> str:
    """*told him roommate*, *with hers back*: a pronoun of the wrong kind for the word that follows."""
    source, target = place.edit.source.lower(), place.edit.target.lower()
    after = place.after()
    if place.edit.kind == "agreement" or source not in _CASED or after.low == "/":
        return ""
    if after.low in _MARKS:  # *her* office, <b>her</b> office: what follows the mark decides
        ahead = (unit for unit in map(place.after, range(1, 8)) if not unit.low.startswith("/"))
        after = next((unit for unit in ahead if unit.low not in _MARKS), after)
    return f"{target!r} before {after.text!r}" if _misfits(place, source, target, after) else ""


def _misfits(place: Place, source: str, target: str, after: Unit) -> bool:
    """Whether the word ``after`` a pronoun cannot follow one of this kind."""
    if target == "his" and source == "hers":
        target = "hers"
    takes_two = place.before().low in listed("takes_two")  # a person and a thing: *gave her time*
    if target == "her" and source == "him":  # both stand as objects
        return after.tag in ("NN", "NNP") and not after.joined and not takes_two
    if target in ("him", "them"):
        return _owned(place, after, takes_two)
    if target in listed("absolute"):
        if place.before().tag[:2] in ("IN", "VB") and after.low == "back":
            return True  # *with her back to the door*
        if after.low in _ALL_OF_IT and place.after(2).tag[:1] in "NJ":
            return True  # *her only son*
        if after.text in ("`", "'", '"', "“", "‘"):
            after = place.after(2)  # *hers "plump" friend*
        if not after.text:
            return not place.before().text[:1].isalpha() or place.before().tag[:2] in ("VB", "IN", "TO")  # cut off
        return after.text[:1].isalpha() and after.low not in _AFTER_ABSOLUTE and after.tag[:1] not in "VM"
    if target in ("their", "his", "my", "her") and source in ("her", "his", "him"):
        if after.tag == "CD" and place.after(2).low in ("times", "days", "hours"):
            return place.before().tag[:2] == "VB"  # *visits her three times*
        if not after.text[:1].isalnum():
            return after.low not in _OPENING and not target == source == "his"
        function = after.low in FUNCTION_WORDS and after.low not in listed("owned_after_pronoun")
        return function and after.tag not in ("NN", "NNS", "JJ")
    return False


def _owned(place: Place, after: Unit, takes_two: bool) -> bool:
    """Whether what follows an object is more likely something that the person has."""
    then, before, own = place.after(2), place.before(), after.low not in FUNCTION_WORDS
    if after.low in _ALWAYS_OWNED or (after.low in _ALL_OF_IT and then.tag[:1] in "NVJR"):
        return True
    if takes_two:
        return False
    often_bare = listed("often_bare")
    if after.tag in ("NN", "NNP", "NNS") and after.low not in often_bare and not after.joined:
        return True
    described = after.tag in ("JJ", "JJR", "VBN") and then.tag[:1] == "N" and not after.joined
    if described and after.low not in listed("of_times") and then.low not in often_bare:
        return True
    misread = after.tag in ("VBZ", "VBP") and own and after.low not in listed("finite")  # a noun, perhaps
    if misread and before.tag[:2] == "VB" and place.before(2).low not in ("who", "that", "which"):
        return True
    return own and before.low == "and" and after.text.isalpha() and after.tag in ("JJ", "NN", "NNS", "RB")


def capital(place: Place) -> str:
    """*The Multiracial woman*, *A Trans woman's Guide*: a capital where none belongs, or none where one does."""
    text, edit, before = place.change.text, place.edit, place.before()
    if edit.kind == "agreement" or not text[:1].isalpha():
        return ""
    written = [unit for unit in place.units[place.first : place.last] if unit.text[:1].isalpha()]
    if not written or text.isupper() or (edit.kind in NEUTRAL and not place.first):
        return ""
    if _in_title(place) or heading_ahead(place):
        small = [unit for unit in written if unit.text[0].islower() and unit.low not in FUNCTION_WORDS]
        return f"no capital on {small[0].text!r} in a title" if small and edit.source[:1].isupper() else ""
    first = written[0]
    if not first.text[0].isupper() or first.low in proper() or place.first == 0:
        return ""
    if not before.text[:1].isalnum() and before.low not in {",", ";"}:
        return ""
    if edit.source[:1].isupper() and edit.source.lower() not in proper():
        return ""  # the original has a capital there too: a title, a name, an emphasis
    return f"capital letter on {first.text!r}"


def heading_ahead(place: Place) -> bool:
    """Whether the next two words that are no function words have capitals, as in a title."""
    line = takewhile(lambda unit: unit.text not in _ENDS, place.units[place.last :])
    ahead = [u for u in line if u.text[:1].isalpha() and u.low not in FUNCTION_WORDS][:2]
    return len(ahead) == 2 and all(u.text[0].isupper() for u in ahead)


def _in_title(place: Place) -> bool:
    """Whether the words around begin with capitals, as in a heading."""
    content = [
        unit
        for unit in place.units
        if unit.change is None and unit.text[:1].isalpha() and unit.low not in FUNCTION_WORDS and len(unit.text) > 1
    ]
    return len(content) > 1 and sum(unit.text[0].isupper() for unit in content) > 0.8 * len(content)


@lru_cache(maxsize=1)
def proper() -> frozenset[str]:
    """Words that have a capital of their own, in lower case."""
    out = {"black", "white"}
    for name in builtin():
        for term in load(name).terms:
            out.update(word.lower() for word in term.text.replace("-", " ").split() if word[:1].isupper())
    return frozenset(out)


def coordination(place: Place) -> str:
    """*the first female and woman*: a noun where the other half of the pair is an adjective."""
    written, link, first = place.noun, place.before(), place.before(2)
    if link.low not in ("and", "or") or place.edit.kind == "agreement":
        return ""
    if first.low in ("female", "male", "young", "old") and written.low in listed("singular"):
        return f"{first.text!r} and {written.text!r}" if place.after().tag[:1] != "N" else ""
    return ""


def same_class(place: Place, pos: str, tag: str) -> bool:
    """Whether ``tag`` is one of a word of class ``pos``, or one that the parser gives it by mistake."""
    if tag in ("NNP", "NNPS") and place.edit.source.islower():
        return True  # a name without a capital
    if pos[:2] == "NN" and tag == "VBG" and place.before().tag in ("DT", "PRP$"):
        return True  # the ending
    same = pos[:2] == tag[:2] or (pos[:1] == "V" and tag[:1] == "V")
    return same or tag in FILE.near_tags.get(pos, "").split() or pos in ("DT", "CD", "IN", "") or tag == ""


RULES: Mapping[str, Callable[[Place], str]] = {
    "verb of they": verb_of_they,
    "pronoun": pronoun,
    "capital": capital,
    "coordination": coordination,
}
