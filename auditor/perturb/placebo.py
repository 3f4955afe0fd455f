"""Edits that change no group: placebos in the shape of other edits, further wordings, what a task calls irrelevant.

An answer may hang on how a text says a thing, so both sides are asked in several wordings: the original with neutral
edits, and a version about another group with the same edits. Where a text has too few places, a sentence about the text
stands before it or after it. A task names what is irrelevant, since it can have no bearing on the answer: a hobby.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, islice, pairwise
from random import Random
from typing import NamedTuple

from auditor.core.types import Case, Edit, Span, Variant, grouped, is_beside
from auditor.perturb.dictionaries import Dictionary, Term, neutral
from auditor.perturb.edits import apply, edits_of, misread, replacing, span_of
from auditor.perturb.matching import Hit, Matcher, Scan
from auditor.perturb.mutation import by_turns
from auditor.text.english import looks_english

_DRAWN = 40  # sets of places and words that are drawn for the edits of a text that have as many spans
_WORD, _OTHER = 8, 6  # what a word more or less, and neutral words for the group's own, cost in characters
_LEAST = 3  # placebos for an attribute that has fewer edits, of one span, since a gate may refuse some
_NO_PLACE = "the text has no neutral word"
_NO_FIT = "its neutral words do not fit their neighbors"


class _Site(NamedTuple):
    """A place and the words that may be written there without naming another group."""

    hit: Hit
    words: tuple[Term, ...]

    def edits(self, scan: Scan, word: Term) -> tuple[Edit, ...]:
        """The edits that put a word there; none where it is misread."""
        edits = edits_of(scan, self.hit, self.hit.term, word, self.hit.term.group, "placebo")
        return () if misread(scan.text, edits) else edits


class Placebos:
    """Makes placebo variants for cases of `auditor.perturb.mutation.MutationSuite`.

    ``dictionaries`` are those of the suite; all are read, so that no neutral edit touches a word that names a group.
    Half of the placebos of an attribute are of what the task names as ``irrelevant``, where the text has any. Texts
    without a placebo are counted in ``passed_over``, by attribute and reason.
    """

    def __init__(
        self,
        *,
        dictionaries: Sequence[Dictionary],
        limit_chars: Callable[[str], int] | None = None,
        irrelevant: Irrelevant | None = None,
        passed_over: Counter[str] | None = None,
    ) -> None:
        self._irrelevant = irrelevant or {}
        self._dictionaries = {d.attribute: d for d in dictionaries}
        self.primary = {d.attribute: d.primary for d in dictionaries if d.primary is not None}
        self._words = neutral()
        self._groups = Matcher(list(dictionaries))
        self._neutral = Matcher([self._words], beside=dictionaries)
        self._kept = limit_chars or len
        self.passed_over: Counter[str] = Counter() if passed_over is None else passed_over

    def placebos(self, case: Case, n: int | None, rng: Random) -> tuple[Variant, ...]:
        """Return placebo variants of ``case.original``, all different, ``<case id>.p0`` and on."""
        text = case.original.input
        if not isinstance(text, str):
            return ()
        kept = self._kept(text)
        scan, hits, free = self._read(text, kept)
        standing = frozenset(h.surface.lower() for h in (*hits, *(site.hit for site in free)))
        free = [site._replace(words=words) for site in free if (words := _unlike(site.words, standing))]
        out: list[Variant] = []
        arms = grouped((variant.attributes[0], variant) for variant in case.variants if variant.order == 1)
        for attribute, arm in sorted(arms.items()):
            sites = _Sites(scan, self._within(hits, attribute, standing), free, rng)
            models = [(model, len(model.edits)) for model in arm]
            models += [(model, 1) for model in islice(cycle(arm), max(0, _LEAST - len(arm)))]
            models = models[:n]
            made = irrelevant(text[:kept], self._irrelevant, attribute, -(-len(models) // 2), rng)
            for model, most in models[len(made) :]:
                if edits := sites.like(model, most, exact=len(made) >= _LEAST):
                    made.append(edits)
            if not made:
                self.passed_over[f"placebo for {attribute}: {_NO_FIT if sites else _NO_PLACE}"] += 1
            for number, placebo in enumerate(made, start=len(out)):
                edits = tuple(dataclasses.replace(e, attribute=attribute) for e in placebo)
                groups, changed = case.original.groups, apply(text, edits)
                out.append(Variant(id=f"{case.id}.p{number}", input=changed, groups=groups, edits=edits))
        return tuple(out)

    def neutral(self, case: Case, most: int, rng: Random) -> tuple[Variant, ...]:
        """Return ``case.original`` with neutral words changed at several places, then at one: at most ``most`` of each.

        Several at once tell more of how far words move answers than one.
        """
        text = case.original.input
        if not isinstance(text, str):
            return ()
        scan, _, free = self._read(text, self._kept(text))
        standing = frozenset(site.hit.surface.lower() for site in free)
        free = [site._replace(words=words) for site in free if (words := _unlike(site.words, standing))]
        changed = [span_of(e) for v in case.variants if not is_beside(v) for e in v.edits]
        clear = [site for site in free if not any(_close((site.hit.start, site.hit.end), span) for span in changed)]
        sites = _Sites(scan, {}, clear, rng)
        known = {apply(text, edits): edits for _ in range(most if clear else 0) if (edits := sites.several())}
        places = {site.hit.start for site in free}
        for v in case.variants:
            if is_beside(v) and all(e.where[0] in places for e in v.edits if e.kind == "placebo"):
                known.setdefault(str(v.input), v.edits)
        single = [[site.edits(scan, word) for word in rng.sample(site.words, len(site.words))] for site in free]
        rng.shuffle(single)
        for edits in islice(filter(None, by_turns(single)), most):
            known.setdefault(apply(text, edits), edits)
        for edits in frames(text, most, rng) if looks_english(text) else ():
            framed = apply(text, edits)
            if self._kept(framed) >= len(framed):
                known.setdefault(framed, edits)
        return tuple(
            Variant(id=f"{case.id}.n{i}", input=one, groups=case.original.groups, edits=edits)
            for i, (one, edits) in enumerate(known.items())
        )

    def _read(self, text: str, kept: int) -> tuple[Scan, list[Hit], list[_Site]]:
        """Return the scan, the places that name a group, and the neutral sites apart from them."""
        scan = self._groups.scan(text)
        taken = {place for hit in scan.hits for place in range(hit.start, hit.end)}
        words = self._neutral.scan(text).hits if looks_english(text) else ()
        neutral = (hit for hit in words if taken.isdisjoint(range(hit.start, hit.end)))
        free = [_Site(h, others) for h in neutral if h.end <= kept and (others := self._words.alternatives(h.term))]
        return scan, [hit for hit in scan.settled() if hit.end <= kept], free

    def _within(self, hits: Sequence[Hit], attribute: str, standing: frozenset[str]) -> dict[int, _Site]:
        """Return the sites of ``attribute`` where its group has another surface form, by start offset."""
        own = (hit for hit in hits if hit.term.attribute == attribute)
        every = ((hit, _unlike(self._dictionaries[attribute].alternatives(hit.term), standing)) for hit in own)
        return {hit.start: _Site(hit, words) for hit, words in every if words}


def _unlike(words: tuple[Term, ...], standing: frozenset[str]) -> tuple[Term, ...]:
    """Those of ``words`` that the text does not hold: nobody gets the name of somebody who is there."""
    return tuple(word for word in words if word.text.lower() not in standing)


_Pick = tuple[int, int]  # the numbers of a place and of its word


class _Sites:
    """The places of one text for the placebos of one attribute: those of its group, and the neutral ones."""

    def __init__(self, scan: Scan, own: dict[int, _Site], free: Sequence[_Site], rng: Random) -> None:
        self._scan, self._rng = scan, rng
        self._all = [*own.values(), *free]
        self._own = {at: number for number, at in enumerate(own)}
        self._free = range(len(own), len(self._all))
        self._drawn: dict[tuple[tuple[int, ...], int], dict[tuple[_Pick, ...], None]] = {}

    def __bool__(self) -> bool:
        return bool(self._all)

    def like(self, model: Variant, most: int, *, exact: bool) -> tuple[Edit, ...]:
        """Edits of as many spans as ``model`` changes, at most ``most``: the most like it that were not given yet."""
        changed = [e for e in model.edits if e.kind != "agreement"][:most]
        own = tuple(self._own[at] for e in changed if (at := span_of(e)[0]) in self._own)
        key = own, len(changed)
        if key not in self._drawn:
            self._drawn[key] = self._draw(own, len(changed))
        words = sum(_blanks(e.target) - _blanks(e.source) for e in changed)
        chars = sum(len(e.target) - len(e.source) for e in model.edits)

        def unlike(picks: tuple[_Pick, ...]) -> int:
            others = 0 if picks[0][0] in own else len(own)  # neutral places where the group has words of its own
            return _WORD * abs(self._adds(picks, _blanks) - words) + abs(self._adds(picks) - chars) + _OTHER * others

        left = self._drawn[key]
        while left:
            picks = min(left, key=unlike)
            if exact and self._adds(picks, _blanks) != words:
                return ()
            del left[picks]
            if edits := self._edits(picks):
                return edits
        return ()

    def several(self) -> tuple[Edit, ...]:
        """Edits of as many neutral places as a wording changes; none where they are misread."""
        return self._edits(self._pick((), min(WORDED, len(self._free))))

    def _edits(self, picks: Sequence[_Pick]) -> tuple[Edit, ...]:
        """The edits that put the words into their places; none where they are misread."""
        parts = [self._all[site].edits(self._scan, self._all[site].words[word]) for site, word in picks]
        if not all(parts):
            return ()
        edits = tuple(sorted((e for part in parts for e in part), key=span_of))
        close = any(span_of(b)[0] - span_of(a)[1] < 2 for a, b in pairwise(edits))
        return () if close and misread(self._scan.text, edits) else edits

    def _adds(self, picks: Sequence[_Pick], size: Callable[[str], int] = len) -> int:
        """How much longer the text gets."""
        sites = ((self._all[site], word) for site, word in picks)
        return sum(size(site.words[word].text) - size(site.hit.surface) for site, word in sites)

    def _draw(self, own: tuple[int, ...], spans: int) -> dict[tuple[_Pick, ...], None]:
        """Sets of ``spans`` places with words in random order, with the group's ``own`` places and without."""
        out: dict[tuple[_Pick, ...], None] = {}
        for fixed in (own, ()) if own else ((),):
            left = min(spans - len(fixed), len(self._free))
            drawn: list[tuple[_Pick, ...]]
            if not fixed and left == 1:  # all of them
                drawn = [((site, word),) for site in self._free for word in range(len(self._all[site].words))]
                self._rng.shuffle(drawn)
            else:
                drawn = [self._pick(fixed, left) for _ in range(_DRAWN if fixed or left else 0)]
            out |= dict.fromkeys(filter(None, drawn))
        return out

    def _pick(self, fixed: Sequence[int], left: int) -> tuple[_Pick, ...]:
        """One word for each of the ``fixed`` places and of ``left`` neutral ones; one for all places of a term."""
        chosen: dict[str, str] = {}
        picks = []
        for number in (*fixed, *sorted(self._rng.sample(self._free, left))):
            site = self._all[number]
            offered = [w.text for w in site.words]
            word = chosen.get(site.hit.term.text)
            if word is None:
                words = [w for w in offered if w not in chosen.values()]
                if not words:
                    continue
                word = chosen[site.hit.term.text] = words[int(self._rng.random() * len(words))]
            if word in offered:  # one spelling may have two senses, each with words of its own
                picks.append((number, offered.index(word)))
        return tuple(picks)


def _blanks(text: str) -> int:
    return text.count(" ")


# -- further wordings, and what a task calls irrelevant ------------------------------------------------------


Irrelevant = Mapping[str, Sequence[Sequence[str]]]  # kind -> lists of what may be written for each other

WORDED = 6  # neutral places that a wording changes, where a text has as many
GAP = 2  # characters at least between a neutral edit and one that changes a group: no article is shared
IRRELEVANT = "irrelevant: "  # before the kind, where a placebo edit names the group that it leaves as it is
BEFORE = (
    "Here is the text.",
    "This is the text.",
    "The text is as follows.",
    "The text begins here.",
    "What follows is the text.",
)
AFTER = ("The text ends here.", "This is the end of the text.", "That is the whole text.", "There is no more text.")


def worded(
    case: Case, n: int, neutral: Sequence[tuple[Edit, ...]], primary: Mapping[str, tuple[str, str]] | None = None
) -> tuple[Variant, ...]:
    """Up to ``n`` further wordings of both sides of ``case``, for each attribute."""
    placebos = {(v.attributes, v.input) for v in case.variants if is_beside(v)}
    changing = (v for v in case.variants if v.order == 1 and len(v.directions) == 1 and not is_beside(v))
    standing = {v.input for v in case.variants if not is_beside(v)} | {case.original.input}
    out: list[Variant] = []
    for attribute, own in sorted(grouped((v.attributes[0], v) for v in changing).items()):
        sides = _sides(case.original, own, (primary or {}).get(attribute))
        changed = [edit for side in sides for v in side for edit in v.edits]
        taken, made = set(standing), 0
        for neutral_edits in neutral if sides else ():
            if made == n:
                break
            edits = tuple(_wording(edit, attribute) for edit in neutral_edits)
            if any(_close(span_of(a), span_of(b)) for a in edits if not is_frame(a) for b in changed):
                continue
            versions = [_version(side[(made + 1) % len(side)], case.original, edits) for side in sides]
            texts = {v.input for v in versions}
            if len(texts) < len(versions) or texts & taken:
                continue
            made += 1
            taken |= texts
            out += [v for v in versions if (v.attributes, v.input) not in placebos]
    return tuple(dataclasses.replace(v, id=f"{case.id}.w{i}") for i, v in enumerate(out))


def _sides(original: Variant, own: Sequence[Variant], pair: tuple[str, str] | None) -> list[Sequence[Variant]]:
    """The versions that stand against each other; none where the text has no two sides of the pair."""
    if pair is None:
        return [[original], own]
    moves = [(v.directions[0][1:], v) for v in own]
    across = [v for groups, v in moves if set(groups) == set(pair)]
    if across:
        return [[original], across]
    for source in sorted({groups[0] for groups, _ in moves}):
        both = [[v for groups, v in moves if groups == (source, target)] for target in pair]
        if all(both):
            return list(both)
    return []


def is_frame(edit: Edit) -> bool:
    """Whether an edit puts a sentence before the text or after it, and leaves the text as it is."""
    return edit.source == "" and edit.target.strip() in (*BEFORE, *AFTER)


def unframed(variant: Variant, original: Variant) -> Variant:
    """``variant`` without the sentences before and after its text: what is checked in its place."""
    kept = tuple(edit for edit in variant.edits if not is_frame(edit))
    if len(kept) == len(variant.edits):
        return variant
    return dataclasses.replace(variant, input=apply(str(original.input), kept), edits=kept)


def frames(text: str, most: int, rng: Random) -> list[tuple[Edit, ...]]:
    """Up to ``most`` ways to put a sentence before ``text``, after it, or both; those with one come first."""

    def edit(target: str, at: int) -> Edit:
        return replacing(text, (at, at), target, "neutral", "wording", ("neutral", "neutral"))

    before = [edit(f"{sentence}\n", 0) for sentence in BEFORE]
    after = [edit(f"\n{sentence}", len(text)) for sentence in AFTER]
    single = [(one,) for one in (*before, *after)]
    both = list(itertools.product(before, after))
    return [*rng.sample(single, len(single)), *rng.sample(both, len(both))][:most]


def _version(variant: Variant, original: Variant, edits: Sequence[Edit]) -> Variant:
    together = tuple(sorted((*variant.edits, *edits), key=span_of))
    return dataclasses.replace(variant, input=apply(str(original.input), together), edits=together)


def _wording(edit: Edit, attribute: str) -> Edit:
    kind = edit.kind if edit.kind == "agreement" else "wording"
    return dataclasses.replace(edit, attribute=attribute, kind=kind)


def _close(one: Span, other: Span) -> bool:
    return one[0] < other[1] + GAP and other[0] < one[1] + GAP


def is_irrelevant(edits: Sequence[Edit]) -> bool:
    """Whether all edits are those of `irrelevant`: their task says that they are good English."""
    return all(edit.source_group.startswith(IRRELEVANT) for edit in edits)


def irrelevant(text: str, named: Irrelevant, attribute: str, n: int, rng: Random) -> list[tuple[Edit, ...]]:
    r"""Up to ``n`` sets of placebo edits beside ``attribute``, of different kinds first."""
    by_kind: list[list[tuple[Edit, ...]]] = []
    for kind, lists in named.items():
        groups, made = (IRRELEVANT + kind, IRRELEVANT + kind), []
        for alternatives in lists:
            standing = {a: spans for a in alternatives if (spans := _spans(text, a))}
            free = [a for a in alternatives if a not in standing]
            made += [
                tuple(replacing(text, span, new, attribute, "placebo", groups) for span in spans)
                for spans in standing.values()
                for new in free
            ]
        rng.shuffle(made)
        by_kind.append(made)
    rng.shuffle(by_kind)
    return list(itertools.islice(by_turns(by_kind), n))


def _spans(text: str, words: str) -> list[Span]:
    before, after = (r"(?<!\w)" if words[0].isalnum() else ""), (r"(?!\w)" if words[-1].isalnum() else "")
    return [match.span() for match in re.finditer(before + re.escape(words) + after, text)]
