"""Further wordings of a text: the same neutral change on both sides of a comparison.

A text says one thing in many ways, and an answer may hang on the way. Where texts are few, both sides are asked
in several wordings: the original with some neutral edits, and a version about another group with the same edits
beside its own. Neutral edits put one word for another; where a text has too few places for them, a sentence about
the text as a text stands before it or after it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from random import Random

from auditor.core.types import Case, Edit, Variant, is_beside
from auditor.perturb.mutation import apply

GAP = 2  # characters at least between a neutral edit and one that changes a group: no article is shared
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
    """Up to ``n`` further wordings of both sides of ``case``, for each attribute.

    Parameters
    ----------
    case : Case
        With the variants that are worth another wording, and placebo variants.
    n : int
        Wordings for each attribute.
    neutral : sequence of tuple of Edit
        Edits of the original that change no group, the preferred ones first. One is taken if it stands apart from
        the edits of every variant of the attribute, so that both sides get the same wordings.
    primary : mapping of str to tuple, optional
        Attribute → its two groups that are compared first. Of these attributes only the two get further wordings.

    Returns
    -------
    tuple of Variant
        ``<case id>.w0`` and on: for each wording one version of either side. A side that has several variants (other
        words, other groups) gives them by turns. Neutral edits are of kind ``wording``. A placebo variant that is the
        original in the same words stands for it, and is not made twice.
    """
    single: dict[str, list[Variant]] = {}
    placebos = {(v.attributes, v.input) for v in case.variants if is_beside(v)}
    for v in case.variants:
        if v.order == 1 and len(v.directions) == 1 and not is_beside(v):
            single.setdefault(v.attributes[0], []).append(v)
    standing = {v.input for v in case.variants if not is_beside(v)} | {case.original.input}
    out: list[Variant] = []
    for attribute, own in sorted(single.items()):
        sides = _sides(case.original, own, (primary or {}).get(attribute))
        changed = [edit for side in sides for v in side for edit in v.edits]
        taken, made = set(standing), 0
        for given in neutral if sides else ():
            if made == n:
                break
            edits = tuple(_of(edit, attribute) for edit in given)
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
        return Edit(
            attribute="neutral",
            kind="wording",
            source_group="neutral",
            target_group="neutral",
            source="",
            target=target,
            where=(at, at),
        )

    before = [edit(f"{sentence}\n", 0) for sentence in BEFORE]
    after = [edit(f"\n{sentence}", len(text)) for sentence in AFTER]
    single = [(one,) for one in (*before, *after)]
    both = list(itertools.product(before, after))
    return [*rng.sample(single, len(single)), *rng.sample(both, len(both))][:most]


def mixed(sites: Sequence[Sequence[tuple[Edit, ...]]], most: int, rng: Random) -> list[tuple[Edit, ...]]:
    """Edits at one neutral place, another place each time, then at two places together; at most ``most`` of each.

    ``sites`` holds, for each place in the order of the text, the edits that may be made there.
    """
    rows = [rng.sample(list(site), len(site)) for site in sites]
    rng.shuffle(rows)
    turns = itertools.zip_longest(*rows)
    out = [edits for turn in turns for edits in turn if edits is not None][:most]
    pairs = list(itertools.combinations(sites, 2))
    for first, second in rng.sample(pairs, min(len(pairs), most)):
        here, there = rng.choice(first), rng.choice(second)
        if not any(_near(a, b) for a in here for b in there):
            out.append(tuple(sorted((*here, *there), key=_where)))
    return out


def _version(variant: Variant, original: Variant, edits: Sequence[Edit]) -> Variant:
    together = tuple(sorted((*variant.edits, *edits), key=_where))
    return dataclasses.replace(variant, input=apply(str(original.input), together), edits=together)


def _of(edit: Edit, attribute: str) -> Edit:
    kind = edit.kind if edit.kind == "agreement" else "wording"
    return dataclasses.replace(edit, attribute=attribute, kind=kind)


def _near(one: Edit, other: Edit) -> bool:
    (a, b), (c, d) = _where(one), _where(other)
    return a < d + GAP and c < b + GAP


def _where(edit: Edit) -> tuple[int, int]:
    assert isinstance(edit.where, tuple)
    return edit.where
