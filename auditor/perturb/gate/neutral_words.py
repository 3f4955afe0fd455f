"""Neutral words: whether one stands for another in its place, in the sense that both have."""

from __future__ import annotations

from functools import lru_cache

from auditor.core.types import NEUTRAL
from auditor.perturb.dictionaries import Term, nations, neutral
from auditor.perturb.gate import lexicon
from auditor.perturb.gate.forms import same_class
from auditor.perturb.gate.senses import in_heading
from auditor.perturb.gate.units import Place
from auditor.text.english import plural_verb
from auditor.text.parse import Parse


def neutral_word(place: Place) -> str:
    """*at the until*, *kept the novels*: a neutral word in another sense, or one that is not said in this place."""
    edit = place.change.edit
    if edit.kind not in NEUTRAL:
        return ""
    source, target = edit.source.lower(), edit.target.lower()
    terms = [term for term in _neutral().get(source, ()) if target in _fellows().get(term.slot, ())]
    if source not in _neutral() and source not in _targets():
        return ""  # other words of a group, or words of the user's own
    if not terms:
        return f"{edit.target!r} does not stand for {edit.source!r}"
    if not _plainly(place, terms[0]):
        return f"{edit.source!r} is a part of a name or a compound"
    before, after = place.before().low, place.after().low
    for term in terms:
        if before in term.not_after or after in term.not_before:
            return f"{edit.source!r} has another sense here"
    tag = place.units[place.last - 1].tag
    if tag == "NNS" and terms[0].pos == "VBZ" and place.after().tag not in ("PRP", "PRP$", "DT"):
        return f"{edit.source!r} is tagged {tag} here"
    if not any(same_class(place, term.pos, tag) for term in terms):
        return f"{edit.source!r} is tagged {tag} here"
    counted = terms[0].pos == tag == "NN" and terms[0].slot not in lexicon.WITHOUT_ARTICLE
    if counted and place.before().tag in ("IN", "TO") and place.after().tag not in ("NN", "NNS", "NNP"):
        return f"{edit.target!r} after {place.before().text!r}, without an article"
    if terms[0].slot.startswith("opener.") and not _opens_a_clause(place):
        return f"{edit.target!r} opens no clause"
    for (old, new), fits in lexicon.FITS.items():
        if (source, target) == (old, new) and not fits(place):
            return f"{edit.target!r} before {place.after().text!r}"
    return ""


_VERBS = frozenset(("asks", "wants", "says", "comes", "goes", "knows"))  # tagged as nouns behind some names of people


def _plain_verb(parse: Parse, root: int) -> bool:
    """Whether a verb comes before any word that opens a clause beside (*a clerk asks*; not *a clerk who asks*)."""
    for i, (word, tag) in enumerate(zip(parse.words, parse.tags, strict=True)):
        if word.lower() in ("who", "which", "that", "whose", "where", "what"):
            return False
        if tag in lexicon.FINITE_TAGS or (tag == "NNS" and (word in _VERBS or (i == root and plural_verb(word)))):
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
    edit, before = place.change.edit, place.before()
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


@lru_cache(maxsize=1)
def _neutral() -> dict[str, list[Term]]:
    out: dict[str, list[Term]] = {}
    for term in neutral().sources:
        out.setdefault(term.text.lower(), []).append(term)
    return out


@lru_cache(maxsize=1)
def _fellows() -> dict[str, frozenset[str]]:
    out: dict[str, set[str]] = {}
    for term in neutral().terms:
        out.setdefault(term.slot, set()).add(term.text.lower())
    return {slot: frozenset(found) for slot, found in out.items()}


@lru_cache(maxsize=1)
def _targets() -> frozenset[str]:
    return frozenset(term.text.lower() for term in neutral().terms)
