"""Turns a hit and its replacement into edits: the word itself, and the repairs that it forces.

Repairs are made only where the neighbouring characters decide them: the indefinite article right before the
word, the possessive apostrophe right after it, and, for she/he → they, a verb that stands next to the
pronoun (adverbs may stand between). A second, coordinated verb ("she sits and reads") is left as it is for
the validity gate to judge.
"""

from __future__ import annotations

import re

from auditor.core.types import Edit, EditKind
from auditor.perturb._match import Hit, Place, Scan
from auditor.perturb.dictionaries import Term
from auditor.text.english import (
    FUNCTION_WORDS,
    article_for,
    capitalise,
    case_of,
    match_case,
    plural_verb,
    starts_sentence,
)

_ADVERBS = frozenset(
    (
        "also", "always", "never", "ever", "just", "still", "even", "only", "often", "sometimes", "soon",
        "then", "now", "already", "almost", "rather", "quite", "simply", "really", "perhaps", "usually",
        "eventually", "finally", "actually", "rarely", "seldom", "merely",
    )
)  # fmt: skip
_NEGATED = {"isn": "aren", "wasn": "weren", "hasn": "haven", "doesn": "don"}
_QUOTE = re.compile(r"(?P<open>(?<![\w.,;:!?'’])['‘](?=\w))|(?<=[\w.,;:!?])['’](?!\w)")
_AUXILIARIES = frozenset(("is", "was", "has", "does", *_NEGATED))
_COLOURS = frozenset(("black", "white"))  # written with a capital or without, of people
_LETTERS = re.compile(r"[^\W\d_]+")
_MARKUP = re.compile(r"(?:\s|[*_]|</?[A-Za-z][^<>]*>)+")
_SAME_TAG = frozenset(("a", "an", "was", "wasn"))
_PERFECT = frozenset(("been", "got", "had"))
_ASKS = frozenset(
    ("what", "where", "when", "why", "how", "who", "whom", "which", "and", "but", "or", "so", "then", "nor")
)


def written(scan: Scan, hit: Hit, source: Term, target: Term) -> str:
    """Return ``target`` in the case in which ``source`` stands in the text.

    A word with a capital of its own (American) says nothing about the sentence's case, so its replacement
    keeps its dictionary form and is capitalised only at a sentence start.
    """
    case = case_of(hit.surface)
    if case == "title" and "start" not in source.tags and _in_heading(scan, hit):
        return " ".join(map(capitalise, target.text.split(" ")))
    if case == "title" and source.text in _COLOURS and target.text.islower() and target.text not in _COLOURS:
        return capitalise(target.text) if starts_sentence(scan.text, hit.start) else target.text
    if not source.text[0].isupper() or case in {"upper", "mixed"}:
        return match_case(hit.surface, target.text)
    if case == "lower":
        return target.text.lower()
    return capitalise(target.text) if starts_sentence(scan.text, hit.start) else target.text


def _in_heading(scan: Scan, hit: Hit) -> bool:
    """Whether the next two words that are no function words begin with capitals, as in *A Woman's Guide to Court*."""
    after = scan.text[hit.end : hit.end + 60].partition("\n")[0]
    following = [w for w in _LETTERS.findall(after) if w not in FUNCTION_WORDS and len(w) > 1][:2]
    return len(following) == 2 and all(w[0].isupper() and not w.isupper() for w in following) and "." not in after[:20]


def edits_of(scan: Scan, hit: Hit, source: Term, target: Term, target_group: str, kind: EditKind) -> tuple[Edit, ...]:
    """Return the edit of ``hit`` and its repairs, in order; empty if the text would not change."""
    new = written(scan, hit, source, target)
    if new == hit.surface:
        return ()

    def edit(kind: EditKind, start: int, end: int, text: str) -> Edit:
        return Edit(
            attribute=source.attribute,
            kind=kind,
            source_group=source.group,
            target_group=target_group,
            source=scan.text[start:end],
            target=text,
            where=(start, end),
        )

    repairs = [_article(scan, hit, source, target), _possessive(scan, hit, target)]
    if source.slot == "pronoun.subject" and target.text == "they":
        repairs.append(_verb_after(scan, hit) or _verb_before(scan, hit))
    out = [edit(kind, hit.start, hit.end, new)]
    out += [edit("agreement", *repair) for repair in repairs if repair is not None]
    out.sort(key=lambda e: e.where)
    return tuple(out)


def inserted(scan: Scan, place: Place, term: Term) -> tuple[Edit, ...]:
    """Return the edits that put ``term`` before the person noun of ``place``, the article repaired."""
    at = place.at
    text, after = term.text, scan.text[at:]
    if place.upper:
        text = text.upper()

    def edit(kind: EditKind, start: int, end: int, new: str) -> Edit:
        return Edit(
            attribute=term.attribute,
            kind=kind,
            source_group="unmarked",
            target_group=term.group,
            source=scan.text[start:end],
            target=new,
            where=(start, end),
        )

    out = [edit("insertion", at, at, f"{text} ")]
    word = scan.tokens[place.token - 1] if place.token else None
    if word is not None and word.key in {"a", "an"}:
        want = article_for(term.text)
        if want != word.key and article_for(after) == word.key:
            old = scan.text[word.start : word.end]
            upper = place.upper or old == "AN"
            new = want if old.islower() else want.upper() if upper else capitalise(want)
            out.insert(0, edit("agreement", word.start, word.end, new))
    return tuple(out)


def changes_tag(edit: Edit) -> bool:
    """Whether a repair gives a verb another Penn tag (is → are: VBZ → VBP; was → were stays VBD)."""
    return edit.kind == "agreement" and edit.source.isalpha() and edit.source.lower() not in _SAME_TAG


_Repair = tuple[int, int, str]


def _article(scan: Scan, hit: Hit, source: Term, target: Term) -> _Repair | None:
    if not hit.token:
        return None
    word = scan.tokens[hit.token - 1]
    if word.key not in {"a", "an"} or not scan.text[word.end : hit.start].isspace():
        return None
    want = article_for(target.text)
    if want == word.key or want == article_for(source.text):
        return None
    old = scan.text[word.start : word.end]
    if old.islower():
        return word.start, word.end, want
    upper = case_of(hit.surface) == "upper" or old == "AN"
    return word.start, word.end, want.upper() if upper else capitalise(want)


def _possessive(scan: Scan, hit: Hit, target: Term) -> _Repair | None:
    """Repair the apostrophe of ladies' ↔ gentlemen's and actress' → actor's; singulars may take 's in any case."""
    text, at = scan.text, hit.end
    if text[at : at + 1] not in {"'", "’"}:
        return None
    before, after = hit.surface[-1:].lower(), target.text[-1:].lower()
    follows = text[at + 1 : at + 2]
    if before == "s" and after != "s":
        belongs = follows == " " and text[at + 2 : at + 3].isalpha() and not _in_quotes(text, hit.start)
        return (at, at + 1, text[at] + ("S" if case_of(hit.surface) == "upper" else "s")) if belongs else None
    if target.number == "sg":
        return None
    if before != "s" and after == "s" and follows in {"s", "S"} and not text[at + 2 : at + 3].isalnum():
        return at, at + 2, text[at]
    return None


def _in_quotes(text: str, at: int) -> bool:
    """Whether a single quotation mark before ``at`` in the same line waits for its other half."""
    start = text.rfind("\n", 0, at) + 1
    opened = None
    for found in _QUOTE.finditer(text, start, at + 1):  # a mark needs to see what follows it
        opened = found if found["open"] else None
    return opened is not None


def _verb_after(scan: Scan, hit: Hit) -> _Repair | None:
    tokens, j = scan.tokens, hit.token + 1
    if j + 1 < len(tokens) and tokens[j].key == "'" and tokens[j].start == hit.end:
        if tokens[j + 1].key != "s" or tokens[j + 1].start != tokens[j].end:
            return None
        following = [w.key for w in tokens[j + 2 : j + 4] if w.key not in _ADVERBS]
        new = "ve" if following[:1] and following[0] in _PERFECT else "re"
        return (tokens[j + 1].start, tokens[j + 1].end, _like(scan, tokens[j + 1].start, tokens[j + 1].end, new))
    end, steps = hit.end, 0
    while j < len(tokens) and steps < 3:
        word = tokens[j]
        if word.key in {"*", "_"}:
            j += 1
            continue
        steps += 1
        if not _MARKUP.fullmatch(scan.text, end, word.start):
            return None
        new_form = _NEGATED.get(word.key) or plural_verb(word.key)
        if new_form is not None and word.key not in _ADVERBS:
            if scan.text[word.start].isupper() and not scan.text[word.start : word.end].isupper():
                return None
            return word.start, word.end, _like(scan, word.start, word.end, new_form)
        if word.key not in _ADVERBS and not word.key.endswith("ly"):
            return None
        end, j = word.end, j + 1
    return None


def _verb_before(scan: Scan, hit: Hit) -> _Repair | None:
    """Is he … / what was she …: an auxiliary right before the pronoun, in a question."""
    tokens, j = scan.tokens, hit.token - 1
    if j >= 2 and tokens[j].key == "t" and tokens[j - 1].key == "'":
        j -= 2
    if j < 0 or tokens[j].key not in _AUXILIARIES or not scan.text[tokens[hit.token - 1].end : hit.start].isspace():
        return None
    word = tokens[j]
    before = tokens[j - 1].key if j else ""
    if not (starts_sentence(scan.text, word.start) or before in _ASKS or before in {",", ";"}):
        return None
    new = _NEGATED.get(word.key) or plural_verb(word.key) or word.key
    return word.start, word.end, _like(scan, word.start, word.end, new)


def _like(scan: Scan, start: int, end: int, new: str) -> str:
    return match_case(scan.text[start:end], new)
