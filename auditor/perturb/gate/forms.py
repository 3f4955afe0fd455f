"""Forms: what grammar asks of a changed word and of the words that agree with it.

Each rule takes the place of one change and says in a few words what is wrong there, "" where nothing is.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import takewhile

from auditor.core.types import NEUTRAL
from auditor.perturb.dictionaries import builtin, load
from auditor.perturb.gate import lexicon, words
from auditor.perturb.gate.units import Place, Unit
from auditor.text.english import FUNCTION_WORDS
from auditor.text.trees import agreeing_verbs


def verb_of_they(place: Place) -> str:
    """*They sit and reads*: a verb that goes with the changed pronoun keeps the form it had with "he"."""
    edit = place.change.edit
    if edit.target.lower() != "they" or edit.source.lower() not in words.THIRD or place.token < 0:
        return ""
    changed = {unit.token: unit for unit in place.units if unit.change is not None}
    for i in agreeing_verbs(place.parse, place.token):
        if i not in changed:
            return f"'they' with {place.parse.words[i]!r}"
    return ""


def pronoun(place: Place) -> str:
    """*told him roommate*, *with hers back*: a pronoun of the wrong kind for the word that follows."""
    source, target = place.change.edit.source.lower(), place.change.edit.target.lower()
    if place.change.edit.kind == "agreement" or source not in lexicon.CASED:
        return ""
    after = place.after()
    if after.low == "/":
        return ""
    if after.low in lexicon.MARKS:  # *her* office, <b>her</b> office: what follows the mark decides
        after = _past_marks(place)
    return f"{target!r} before {after.text!r}" if _misfits(place, source, target, after) else ""


def _misfits(place: Place, source: str, target: str, after: Unit) -> bool:
    """Whether the word ``after`` a pronoun cannot follow one of this kind."""
    if target == "her" and source == "him":  # both stand as objects
        return after.tag in ("NN", "NNP") and not after.joined and not _takes_two(place)
    if target in lexicon.OBJECTS:
        bare = after.tag in ("NN", "NNP", "NNS") and after.low not in lexicon.OFTEN_BARE and not after.joined
        whole = after.low in lexicon.ALL_OF_IT and place.after(2).tag[:1] in "NVJ"
        phrase = after.tag in ("JJ", "JJR", "VBN") and place.after(2).tag[:1] == "N" and not after.joined
        phrase = phrase and after.low not in lexicon.OF_TIMES and place.after(2).low not in lexicon.OFTEN_BARE
        verb = after.tag in ("VBZ", "VBP") and after.low not in words.FINITE | FUNCTION_WORDS
        listed = place.before().low == "and" and after.text.isalpha() and after.tag in ("JJ", "NN", "NNS", "RB")
        verb = verb and place.before().tag[:2] == "VB" and place.before(2).low not in ("who", "that", "which")
        phrase = phrase or verb or (listed and after.low not in FUNCTION_WORDS)
        return ((bare or phrase) and not _takes_two(place)) or after.low in lexicon.ALWAYS_OWNED or whole
    if target in words.ABSOLUTE or (target == "his" and source == "hers"):
        if place.before().low == "with" and after.low == "back":
            return True
        return after.text[:1].isalpha() and after.low not in lexicon.AFTER_ABSOLUTE and after.tag[:1] not in "VM"
    if target in lexicon.POSSESSIVES and source in ("her", "his", "him"):
        if target == "his" and source == "hers":
            return False
        if after.tag == "CD" and place.after(2).low in ("times", "days", "hours"):
            return place.before().tag[:2] == "VB"  # *visits her three times*
        if not after.text[:1].isalnum():
            return after.low not in lexicon.OPENING and not (target == "his" and source == "his")
        return after.low in FUNCTION_WORDS - lexicon.OWNED and after.tag not in ("NN", "NNS", "JJ")
    return False


def _past_marks(place: Place) -> Unit:
    for step in range(1, 8):
        unit = place.after(step)
        if unit.low not in lexicon.MARKS and not unit.low.startswith("/"):
            return unit
    return place.after()


def _takes_two(place: Place) -> bool:
    """Whether the verb before the pronoun takes a person and a thing (*gave her time*)."""
    return place.before().low in lexicon.TAKES_TWO


def capital(place: Place) -> str:
    """*The Multiracial woman*, *A Trans woman's Guide*: a capital where none belongs, or none where one does."""
    change = place.change
    if change.edit.kind == "agreement" or not change.text[:1].isalpha():
        return ""
    written = [unit for unit in place.units[place.first : place.last] if unit.text[:1].isalpha()]
    if not written or change.text.isupper() or (change.edit.kind in NEUTRAL and not place.first):
        return ""
    title = _in_title(place) or heading_ahead(place)
    if title:
        small = [unit for unit in written if unit.text[0].islower() and unit.low not in FUNCTION_WORDS]
        upper = place.change.edit.source[:1].isupper()
        return f"no capital on {small[0].text!r} in a title" if small and upper else ""
    first = written[0]
    if not first.text[0].isupper() or first.low in proper() or place.opens or place.first == 0:
        return ""
    if not place.before().text[:1].isalnum() and place.before().low not in {",", ";"}:
        return ""
    if change.edit.source[:1].isupper() and change.edit.source.lower() not in proper():
        return ""  # the original has a capital there too: a title, a name, an emphasis
    return f"capital letter on {first.text!r}"


_ENDS = frozenset(("(", ")", '"', "”", "''", "``"))  # where a title is over


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
    written = place.units[place.last - 1]
    before, first = place.before(), place.before(2)
    if before.low not in ("and", "or") or place.change.edit.kind == "agreement":
        return ""
    if first.low in lexicon.SEX_ADJECTIVES and written.low in words.SINGULAR and place.after().tag[:1] != "N":
        return f"{first.text!r} and {written.text!r}"
    return ""


def same_class(place: Place, pos: str, tag: str) -> bool:
    """Whether ``tag`` is one of a word of class ``pos``, or one that the parser gives it by mistake."""
    if tag in ("NNP", "NNPS") and place.change.edit.source.islower():
        return True  # a name without a capital
    if pos[:2] == "NN" and tag == "VBG" and place.before().tag in ("DT", "PRP$"):
        return True  # the ending
    same = pos[:2] == tag[:2] or (pos[:1] == "V" and tag[:1] == "V")
    return same or (pos, tag) in lexicon.NEAR_TAGS or pos in ("DT", "CD", "IN", "") or tag == ""


RULES = (verb_of_they, pronoun, capital, coordination)
