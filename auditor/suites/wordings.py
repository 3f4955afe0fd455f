"""Further wordings of a text: the same neutral words changed on both sides of a comparison.

A text says one thing in many ways, and an answer may hang on the way. Where texts are few, both sides are asked
in several wordings: the original with some neutral edits, and each version about another group with the same
edits beside its own.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from random import Random

from auditor.suites.mutation import apply
from auditor.types import Case, Edit, Variant, is_beside

GAP = 2  # characters at least between a neutral edit and one that changes a group: no article is shared


def worded(case: Case, n: int, neutral: Sequence[tuple[Edit, ...]]) -> tuple[Variant, ...]:
    """Up to ``n`` further wordings of ``case``: of its original, and of each variant of one attribute and direction.

    Parameters
    ----------
    case : Case
        With the variants that are worth another wording, and placebo variants.
    n : int
        Wordings for each attribute.
    neutral : sequence of tuple of Edit
        Edits of the original that change no group, the preferred ones first. One is taken if it stands apart from
        the edits of every variant of the attribute, so that both sides get the same wordings.

    Returns
    -------
    tuple of Variant
        ``<case id>.w0`` and on. Neutral edits are of kind ``wording``. A placebo variant that is the original in
        the same words stands for it, and is not made twice.
    """
    single: dict[str, list[Variant]] = {}
    placebos = {(v.attributes, v.input) for v in case.variants if is_beside(v)}
    for v in case.variants:
        if v.order == 1 and len(v.directions) == 1 and not is_beside(v):
            single.setdefault(v.attributes[0], []).append(v)
    standing = {v.input for v in case.variants if not is_beside(v)} | {case.original.input}
    out: list[Variant] = []
    for attribute, own in sorted(single.items()):
        changed = [edit for v in own for edit in v.edits]
        taken, made = set(standing), 0
        for given in neutral:
            if made == n:
                break
            edits = tuple(_of(edit, attribute) for edit in given)
            if any(_near(a, b) for a in edits for b in changed):
                continue
            versions = [_version(v, case.original, edits) for v in (case.original, *own)]
            texts = {v.input for v in versions}
            if len(texts) < len(versions) or texts & taken:
                continue
            made += 1
            taken |= texts
            there = ((attribute,), versions[0].input) in placebos
            out += versions[1:] if there else versions
    return tuple(dataclasses.replace(v, id=f"{case.id}.w{i}") for i, v in enumerate(out))


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
