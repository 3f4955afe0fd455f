"""Edits of a text: how they are made with the repairs that they force, applied, and where they are misread."""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache

from auditor.core.types import Edit, EditKind, Span
from auditor.perturb.dictionaries import Term, builtin, load, nations, persons
from auditor.perturb.matching import Hit, Scan
from auditor.text.english import (
    FUNCTION_WORDS,
    Word,
    article_for,
    capitalise,
    case_of,
    keys,
    match_case,
    plural_verb,
    stands_alone,
    starts_sentence,
    word_list,
)

_ADVERBS = word_list("adverbs")
_NEGATED = {"isn": "aren", "wasn": "weren", "hasn": "haven", "doesn": "don"}
_QUOTE = re.compile(r"(?P<open>(?<![\w.,;:!?'’])['‘](?=\w))|(?<=[\w.,;:!?])['’](?!\w)")
_AUXILIARIES = frozenset(("is", "was", "has", "does", *_NEGATED))
_COLOURS = frozenset(("black", "white"))  # written with a capital or without, of people
_LETTERS = re.compile(r"[^\W\d_]+")
_MARKUP = re.compile(r"(?:\s|[*_]|</?[A-Za-z][^<>]*>)+")
_SAME_TAG = frozenset(("a", "an", "was", "wasn"))
_PERFECT = frozenset(("been", "got", "had"))
_ASKS = word_list("before_a_question")
_AROUND = 60  # characters on each side in which an edit may be misread
_BLANK_LINE = re.compile(r"\n\s*\n")  # no term reaches over one
_STEPS = 4  # words on each side that may belong to one noun phrase
_GLUE = frozenset(("-", "‐", "‑", ",", "/"))


def span_of(edit: Edit) -> Span:
    """Where an edit of a text stands."""
    assert isinstance(edit.where, tuple)
    return edit.where


def apply(text: str, edits: Iterable[Edit], start: int = 0, end: int | None = None) -> str:
    """Return ``text[start:end]`` with ``edits`` applied at once; they are in order and do not overlap."""
    parts: list[str] = []
    for edit in edits:
        first, last = span_of(edit)
        parts += (text[start:first], edit.target)
        start = last
    parts.append(text[start:end])
    return "".join(parts)


def overlap(spans: Iterable[Span]) -> bool:
    """Whether two neighbours of ``spans``, which are in order, overlap or are one."""
    return any(one[1] > other[0] or one == other for one, other in itertools.pairwise(spans))


def replacing(text: str, span: Span, target: str, attribute: str, kind: EditKind, groups: tuple[str, str]) -> Edit:
    """The edit that puts ``target`` in the place of ``text[start:end]``; ``groups`` are named before and after."""
    return Edit(
        attribute=attribute, kind=kind, source_group=groups[0], target_group=groups[1],
        source=text[span[0] : span[1]], target=target, where=span,
    )  # fmt: skip


def edits_of(scan: Scan, hit: Hit, source: Term, target: Term, target_group: str, kind: EditKind) -> tuple[Edit, ...]:
    """Return the edit of ``hit`` and its repairs, in order; empty if the text would not change."""
    new = _written(scan, hit, source, target)
    if new == hit.surface:
        return ()
    upper = case_of(hit.surface) == "upper"
    repairs = [_article(scan, hit, source, target, upper), _possessive(scan, hit, target, upper)]
    if source.slot == "pronoun.subject" and target.text == "they":
        repairs.append(_verb_after(scan, hit) or _verb_before(scan, hit))
    attribute, groups = source.attribute, (source.group, target_group)
    made = [replacing(scan.text, span, text, attribute, "agreement", groups) for span, text in filter(None, repairs)]
    return tuple(sorted([replacing(scan.text, (hit.start, hit.end), new, attribute, kind, groups), *made], key=span_of))


def changes_tag(edit: Edit) -> bool:
    """Whether a repair gives a verb another Penn tag (is → are: VBZ → VBP; was → were stays VBD)."""
    return edit.kind == "agreement" and edit.source.isalpha() and edit.source.lower() not in _SAME_TAG


_Repair = tuple[Span, str]


def _written(scan: Scan, hit: Hit, source: Term, target: Term) -> str:
    """Return ``target`` in the case in which ``source`` stands in the text."""
    case = case_of(hit.surface)
    if case == "title" and "start" not in source.tags and _in_heading(scan, hit):
        return " ".join(map(capitalise, target.text.split(" ")))
    colour = source.text in _COLOURS and target.text.islower() and target.text not in _COLOURS
    if not (case == "title" and colour):
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


def _article(scan: Scan, hit: Hit, source: Term, target: Term, upper: bool) -> _Repair | None:
    """Repair *a* or *an* before a term."""
    word = scan.tokens[hit.token - 1] if hit.token else None
    if word is None or word.key not in {"a", "an"} or not scan.text[word.end : hit.start].isspace():
        return None
    want = article_for(target.text)
    if want == word.key or want == article_for(source.text):
        return None
    old = scan.text[word.start : word.end]
    new = want if old.islower() else want.upper() if upper or old == "AN" else capitalise(want)
    return (word.start, word.end), new


def _possessive(scan: Scan, hit: Hit, target: Term, upper: bool) -> _Repair | None:
    """Repair the apostrophe of ladies' ↔ gentlemen's and actress' → actor's; singulars may take 's in any case."""
    text, at = scan.text, hit.end
    if text[at : at + 1] not in {"'", "’"}:
        return None
    before, after = hit.surface[-1:].lower(), target.text[-1:].lower()
    follows = text[at + 1 : at + 2]
    if before == "s" and after != "s":
        belongs = follows == " " and text[at + 2 : at + 3].isalpha() and not _in_quotes(text, hit.start)
        return ((at, at + 1), text[at] + ("S" if upper else "s")) if belongs else None
    plural = target.number != "sg" and before != "s" and after == "s"
    if plural and follows in {"s", "S"} and not text[at + 2 : at + 3].isalnum():
        return (at, at + 2), text[at]
    return None


def _in_quotes(text: str, at: int) -> bool:
    """Whether a single quotation mark before ``at`` in the same line waits for its other half."""
    opened = False
    for mark in _QUOTE.finditer(text, text.rfind("\n", 0, at) + 1, at + 1):  # a mark needs to see what follows it
        opened = mark["open"] is not None
    return opened


def _verb_after(scan: Scan, hit: Hit) -> _Repair | None:
    tokens, j = scan.tokens, hit.token + 1
    if j + 1 < len(tokens) and tokens[j].key == "'" and tokens[j].start == hit.end:
        if tokens[j + 1].key != "s" or tokens[j + 1].start != tokens[j].end:
            return None
        following = [w.key for w in tokens[j + 2 : j + 4] if w.key not in _ADVERBS]
        return _like(scan, tokens[j + 1], "ve" if following[:1] and following[0] in _PERFECT else "re")
    end, steps = hit.end, 0
    while j < len(tokens) and steps < 3:
        word = tokens[j]
        j += 1
        if word.key in {"*", "_"}:
            continue
        steps += 1
        if not _MARKUP.fullmatch(scan.text, end, word.start):
            return None
        plural = _NEGATED.get(word.key) or plural_verb(word.key)
        if plural is not None and word.key not in _ADVERBS:
            old = scan.text[word.start : word.end]
            return None if old[0].isupper() and not old.isupper() else _like(scan, word, plural)
        if word.key not in _ADVERBS and not word.key.endswith("ly"):
            return None
        end = word.end
    return None


def _verb_before(scan: Scan, hit: Hit) -> _Repair | None:
    """Is he … / what was she …: an auxiliary right before the pronoun, in a question."""
    tokens, j = scan.tokens, hit.token - 1
    if j >= 2 and tokens[j].key == "t" and tokens[j - 1].key == "'":
        j -= 2
    if j < 0 or tokens[j].key not in _AUXILIARIES or not scan.text[tokens[hit.token - 1].end : hit.start].isspace():
        return None
    word = tokens[j]
    if not (starts_sentence(scan.text, word.start) or (j and tokens[j - 1].key in _ASKS)):
        return None
    return _like(scan, word, _NEGATED.get(word.key) or plural_verb(word.key) or word.key)


def _like(scan: Scan, word: Word, new: str) -> _Repair:
    return (word.start, word.end), match_case(scan.text[word.start : word.end], new)


def misread(text: str, edits: Sequence[Edit]) -> bool:
    """Whether an edit of ``text`` reads as something else with the words around it, so that no suite offers it."""
    changes = [(i, edit) for i, edit in enumerate(edits) if edit.kind != "agreement"]
    if any(_repeats(text, edits, i) for i, _ in changes):
        return True
    loose = (edit for _, edit in changes if not _edges().isdisjoint(edit.target.lower().split()))
    return any(_clashes(text, edits, edit) for edit in loose)


def _repeats(text: str, edits: Sequence[Edit], i: int) -> bool:
    """Whether an edit puts a word next to the same word, where its original had two."""
    edit, own = edits[i], edits[i].target.lower().split()
    start, end = span_of(edit)
    if not own:
        return False
    if i and _touching(edits[i - 1], edit):
        if edits[i - 1].target.lower().split()[-1:] == own[:1]:
            return edits[i - 1].source.lower() != edit.source.lower()
    elif text[start - 1 : start].isspace() and _stands(text, start - 1 - len(own[0]), own[0]):
        return True
    unchanged = i + 1 == len(edits) or not _touching(edit, edits[i + 1])
    return unchanged and text[end : end + 1].isspace() and _stands(text, end + 1, own[-1])


def _touching(one: Edit, other: Edit) -> bool:
    return span_of(other)[0] - span_of(one)[1] == 1


def _stands(text: str, start: int, word: str) -> bool:
    """Whether ``word`` stands at ``start``, no part of a longer or hyphenated one."""
    end = start + len(word)
    return start >= 0 and text[start:end].lower() == word and stands_alone(text, start, end)


def _clashes(text: str, edits: Sequence[Edit], edit: Edit) -> bool:
    """Whether an edit names a second nation, or completes a term of two words that names something else."""
    before, after = _beside(text, edits, edit)
    own = keys(edit.target)
    elsewhere = edit.attribute != "nationality" and not nations().isdisjoint(own)
    if elsewhere and not nations().isdisjoint((*_phrase(before), *_phrase(after))):
        return True
    named = (edit.attribute, edit.target_group)
    seams = [(*before[:1], *own[:1]), (*own[-1:], *after[:1])]
    return any(seam in _terms() and named not in _terms()[seam] for seam in seams)


def _beside(text: str, edits: Sequence[Edit], edit: Edit) -> tuple[list[str], list[str]]:
    """The words before an edit, the nearest first, and those after it, with the other edits made."""
    start, end = span_of(edit)
    left, right = max(0, start - _AROUND), min(len(text), end + _AROUND)
    before = [e for e in _from(edits, left, start) if span_of(e)[1] <= start and e is not edit]
    after = [e for e in _from(edits, end, right) if span_of(e)[1] <= right and e is not edit]
    back = _BLANK_LINE.split(apply(text, before, left, start))[-1]
    ahead = _BLANK_LINE.split(apply(text, after, end, right))[0]
    return keys(back)[::-1], keys(ahead)


def _from(edits: Sequence[Edit], first: int, last: int) -> Sequence[Edit]:
    """Those of ``edits`` (in order) that begin between two offsets, or at one."""
    low = bisect_left(edits, (first, 0), key=span_of)
    return edits[low : bisect_left(edits, (last + 1, 0), low, key=span_of)]


def _phrase(around: Sequence[str]) -> list[str]:
    """The words next to a term that belong to its noun phrase: modifiers, and the first word that is none."""
    out: list[str] = []
    for word in around:
        if word in _GLUE:
            continue
        out.append(word)
        if len(out) == _STEPS or word not in _modifiers():
            break
    return out


@lru_cache(maxsize=1)
def _modifiers() -> frozenset[str]:
    """Words that may stand between a term and the noun of its phrase."""
    return persons()[2] | {t.text.lower() for name in builtin() for t in load(name).terms if t.pos.startswith("JJ")}


@lru_cache(maxsize=1)
def _terms() -> dict[tuple[str, ...], set[tuple[str, str]]]:
    """The terms of two words that are looked for, and what they name."""
    out: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for name in builtin():
        for term in load(name).sources:
            words = tuple(keys(term.text))
            if len(words) == 2:
                out.setdefault(words, set()).add((term.attribute, term.group))
    return out


@lru_cache(maxsize=1)
def _edges() -> frozenset[str]:
    """Words that a term of two words begins or ends with, and nations: others cannot clash."""
    return nations() | {key for words in _terms() for key in words}
