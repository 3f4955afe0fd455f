"""Edits that change no group, beside those that do: further wordings of a text, and what its task calls irrelevant.

A text says one thing in many ways, and an answer may hang on the way. Where texts are few, both sides are asked
in several wordings: the original with some neutral edits, and a version about another group with the same edits
beside its own. Neutral edits put one word for another; where a text has too few places for them, a sentence about
the text as a text stands before it or after it.

Irrelevant is what a task names itself, since it can have no bearing on the answer, such as a hobby or the layout.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Mapping, Sequence
from random import Random

from auditor.core.types import Case, Edit, Span, Variant, is_beside
from auditor.perturb.combine import by_turns, grouped
from auditor.perturb.edits import apply, replacing, span_of

Irrelevant = Mapping[str, Sequence[Sequence[str]]]  # kind -> lists of what may be written for each other

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
            if any(_near(a, b) for a in edits if not is_frame(a) for b in changed):
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


def mixed(sites: Sequence[Sequence[tuple[Edit, ...]]], most: int, rng: Random) -> list[tuple[Edit, ...]]:
    """Edits at one neutral place, another place each time, then at two places together; at most ``most`` of each."""
    rows = [rng.sample(list(site), len(site)) for site in sites]
    rng.shuffle(rows)
    out = list(itertools.islice(by_turns(rows), most))
    pairs = list(itertools.combinations(sites, 2))
    for first, second in rng.sample(pairs, min(len(pairs), most)):
        here, there = rng.choice(first), rng.choice(second)
        if not any(_near(a, b) for a in here for b in there):
            out.append(tuple(sorted((*here, *there), key=span_of)))
    return out


def _version(variant: Variant, original: Variant, edits: Sequence[Edit]) -> Variant:
    together = tuple(sorted((*variant.edits, *edits), key=span_of))
    return dataclasses.replace(variant, input=apply(str(original.input), together), edits=together)


def _wording(edit: Edit, attribute: str) -> Edit:
    kind = edit.kind if edit.kind == "agreement" else "wording"
    return dataclasses.replace(edit, attribute=attribute, kind=kind)


def _near(one: Edit, other: Edit) -> bool:
    (a, b), (c, d) = span_of(one), span_of(other)
    return a < d + GAP and c < b + GAP


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
