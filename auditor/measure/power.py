"""What a plan can show, worked out on its own versions of texts before anything is asked.

Every text has a margin of its own, drawn from N(0, 1), on the scale of log odds; the favourable answer is given where
the margin of a version is above 0. An edit moves it a little, whatever it says, and each word has an effect. For each
net claim the variance of its contrast under a net difference comes from such draws, and from it the smallest difference
that is shown with 80 %.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from msgspec import structs

from auditor.core.record.rows import Assumed, ExpectedClaim, Power
from auditor.measure.claims import (
    ALPHA,
    ASSUMED_FLIPS,
    MIN_TEXTS,
    POWER,
    Pair,
    Question,
    one_thread,
    pairs,
    with_omnibus,
)
from auditor.measure.contrasts import Contrast, Versions, word_moves
from auditor.measure.linear import Adjustment, Design, Rows, Unidentified, fit
from auditor.measure.observations import Arm, Codes, Floats, Observations, Shape, attributes_of

DRAWS = 200
FITS = 9  # of these, with words of their own, that say how sure a run will be of the group
TARGETS = (0.01, 0.02, 0.05)  # net differences that calls are worked out for
TRIED = (0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
MOST_VERSIONS = 20_000  # a plan with more is worked out on a part of its texts
ASSUMED_WORD = 0.02  # standard deviation of the effect of a word, on log odds; texts have 1


@one_thread
def reach(
    versions: Observations,
    question: Question,
    families: int = 1,
    seed: int = 0,
    times: Mapping[str, float] = MappingProxyType({}),
) -> Power:
    """What the net claims of a plan can show."""
    kept, ratio = _part(versions)
    rng = np.random.default_rng(seed)
    base = np.array([_margins(kept, rng) for _ in range(DRAWS)]).T
    worded = [(_margins(kept, rng, ASSUMED_WORD) > 0).astype(np.float64) for _ in range(FITS)]
    known = np.ones(len(base), dtype=bool)
    all_versions = Versions(kept, kept.columns())
    layout = all_versions.where(known)
    laid_out: list[_LaidOut] = []
    of_omnibus = 0.0
    for attribute in attributes_of(kept):
        taken_out = [layout.adjust(attribute, y) for y in worded]
        chosen = pairs(layout.names(attribute), attribute, question)
        omnibus, kept_pairs = with_omnibus(chosen)
        of_omnibus += omnibus
        for full, pair in zip(chosen, kept_pairs, strict=True):
            contrast, design = layout.contrast(attribute, pair.group, pair.against)
            about = ExpectedClaim(attribute=attribute, groups=(pair.group, pair.reference), texts=len(contrast.text))
            # A group that waits for the omnibus has its whole share once that is shown.
            laid_out.append(_LaidOut(about, full if pair.waits else pair, design, contrast, taken_out))
            of_omnibus -= full.weight if pair.waits else 0.0
    total = (of_omnibus + sum(one.weight for one in laid_out if one.reach.texts >= MIN_TEXTS)) * families
    claims = [
        _reach(
            kept,
            one,
            base,
            [Rows(one.contrast.map @ y, one.design) for y in worded],
            ALPHA * one.weight / total,
            ratio * times.get(one.reach.attribute, 1.0),
        )
        if one.reach.texts >= MIN_TEXTS
        else structs.replace(one.reach, why=f"fewer than {MIN_TEXTS} texts have a version about both")
        for one in laid_out
    ]
    return Power(
        alpha=ALPHA,
        power=POWER,
        assumed=Assumed(flips=ASSUMED_FLIPS, word_sd=ASSUMED_WORD, draws=DRAWS),
        claims=tuple(claims),
    )


class _LaidOut(NamedTuple):
    """A claim with the linear map from outcomes of versions to its contrasts."""

    reach: ExpectedClaim
    pair: Pair
    design: Design
    contrast: Contrast
    taken_out: list[Adjustment]

    @property
    def weight(self) -> float:
        """Its share of alpha, before others have theirs."""
        return self.pair.of(self.contrast.sides, "share")


def _part(versions: Observations) -> tuple[Observations, float]:
    """Texts of a large plan that are enough to work on, at even distances, and how many times more there are."""
    text = versions.columns().version_text
    step = math.ceil(len(text) / MOST_VERSIONS)
    if step <= 1:
        return versions, 1.0
    out = versions.bare(np.flatnonzero(text % step == 0).tolist())
    return out, len(versions.texts.values) / max(1, len(out.texts.values))


def _margins(versions: Observations, rng: np.random.Generator, word: float = 0.0) -> Floats:
    """Draw the margin of each version; ``word`` is the standard deviation of the effect of a word."""
    columns, shapes, codes = versions.columns(), versions.shapes.values, Codes[str]()
    moved = np.zeros(len(shapes))
    if word:
        for known in sorted({w for s in shapes for w in (*s.words_in, *s.words_out)}):
            codes.of(known)
        moves = word_moves(shapes, codes).toarray()[:, : len(codes.values)]
        moved = moves @ rng.normal(0.0, word, len(codes.values))
    of_text = rng.normal(size=len(versions.texts.values))
    out = moved[columns.version_shape] + of_text[columns.version_text]
    return np.asarray(out + rng.normal(0.0, spread(ASSUMED_FLIPS), len(out)))


def sides(shapes: Sequence[Shape], attribute: str, worth: Mapping[str, float]) -> Floats:
    """By shape how far its edits move a text between groups of ``attribute``, by what each group is worth."""
    return np.array(
        [
            sum(worth.get(t, 0.0) - worth.get(s, 0.0) for a, s, t in shape.directions if a == attribute)
            if shape.arm != Arm.PLACEBO
            else 0.0
            for shape in shapes
        ]
    )


def shift(share: float) -> float:
    """The shift of margins between two groups that changes ``share`` of the favourable answers."""
    from scipy.special import ndtri

    return 2 * float(ndtri(0.5 + share / 2))


def spread(flips: float) -> float:
    """The standard deviation of a shift of its own for each version that flips ``flips`` of the answers.

    An original and its version are moved each by itself: the angle between their margins is what flips.

    >>> round(spread(0.016), 4), round(spread(0.032), 4)
    (0.0356, 0.0712)
    """
    r = math.cos(math.pi * flips)
    return math.sqrt(1 / r - 1)


def _reach(
    versions: Observations, one: _LaidOut, base: Floats, worded: Sequence[Rows], level: float, ratio: float
) -> ExpectedClaim:
    from scipy.special import ndtri

    n = len(one.design.focal)
    used = np.unique(one.contrast.map.indices)
    to_contrasts = one.contrast.map[:, used]
    worth = {one.pair.group: 0.5} | dict.fromkeys(one.pair.against, -0.5)
    own = sides(versions.shapes.values, one.reach.attribute, worth)
    shares = own[versions.columns().version_shape[used]]
    try:
        other = one.taken_out[0].variance(one.design.covariates.mean(axis=0)) / ratio
        fits = [fit(rows, said) for rows, said in zip(worded, one.taken_out, strict=True)]
    except Unidentified as error:
        return structs.replace(one.reach, why=str(error))
    effective = float(np.median([f.words for f in fits]))
    # What a run adds for words that it does not know, and how few degrees of freedom that leaves: as the median of
    # some runs estimates them.
    sure = float(ndtri(POWER))
    added = [max(0.0, f.group.se**2 - f.these.se**2) for f in fits]
    plain = -float(ndtri(level / 2))  # where answers leave no spread at all
    needs = [(f.group.half(1 - level) / f.group.se if f.group.se else plain) + sure for f in fits]
    worst = sorted(range(FITS), key=lambda k: needs[k] ** 2 * (fits[k].these.se ** 2 + added[k]))
    counted = worst[FITS // 2]
    word = added[counted]
    need = needs[counted]

    def under(net: float) -> tuple[float, float, float]:
        """Under a net difference: the mean contrast, its variance by text, and texts that change."""
        answers = (base[used] + (shift(net) * shares)[:, None] > 0).astype(np.float64)
        apart = to_contrasts @ answers
        changed = float((np.abs(apart) > 1e-9).sum(axis=0).mean()) * ratio
        text = float(apart.var(axis=0, ddof=1).mean()) / (n * ratio)
        rare = 3 * math.exp(-changed / 2) / (n * ratio) ** 2
        return float(apart.mean()), text + rare + other, changed

    tried = [under(net) for net in TRIED]
    short = [
        max(need * math.sqrt(text + word) / max(mean, 1e-9), MIN_TEXTS / max(changed, 1e-9))
        for mean, text, changed in tried
    ]
    calls = _calls_about(versions, one.reach.attribute) * ratio
    needed: dict[str, int | None] = {}
    for target in TARGETS:
        mean, text, changed = tried[TRIED.index(target)]
        room = (mean / need) ** 2 - word
        enough = room > 0 and changed > 0
        needed[f"{target:g}"] = math.ceil(calls * max(text / room, MIN_TEXTS / changed)) if enough else None
    smallest = _crossing(short)
    return structs.replace(one.reach, texts=round(n * ratio), words=effective, smallest=smallest, calls=needed)


def _crossing(short: Sequence[float]) -> float | None:
    """The net difference from which on nothing is short: ``short`` falls below 1, straight lines between."""
    for n, value in enumerate(short):
        if value <= 1:
            if n == 0:
                return TRIED[0]
            before = short[n - 1]
            share = (before - 1) / (before - value)
            return TRIED[n - 1] + share * (TRIED[n] - TRIED[n - 1])
    return None


def _calls_about(versions: Observations, attribute: str) -> int:
    """Versions that are asked about for one attribute: those edited in it, and the originals of their texts."""
    columns, shapes = versions.columns(), versions.shapes.values
    own = np.isin(columns.version_shape, [n for n, s in enumerate(shapes) if s.attributes == (attribute,)])
    original = np.isin(columns.version_shape, [n for n, s in enumerate(shapes) if s.arm == Arm.ORIGINAL])
    about = np.isin(columns.version_text, np.unique(columns.version_text[own]))
    return int((own | (original & about)).sum())
