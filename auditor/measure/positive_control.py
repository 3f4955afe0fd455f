"""The positive control: whether a model tells texts apart that need different answers, judged in one place.

A run and ``audit doctor`` ask different numbers of pairs and come to their result by the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from statistics import fmean
from typing import Literal

import numpy as np
from msgspec.structs import replace

from auditor.core.record.controls import PositiveControl
from auditor.core.types import Answer
from auditor.measure.intervals import mean_interval
from auditor.measure.observations import score_in

SEEN = 0.75  # share of the pairs that must be answered differently, where answers are labels
LEAST = 2  # answers that can be alike
DIGITS = 2  # of a score: smaller differences are none
NAMED = 60  # characters of an answer that is named; longer ones are texts
Kind = tuple[object, ...]  # what tells one answer from another
Pair = tuple[Sequence[Answer], Sequence[Answer]]  # the replicates of both texts


def control(
    pairs: Sequence[Pair],
    differ: Sequence[bool],
    *,
    scale: Literal["share", "log_odds", "number"],
    score_of: str | None = None,
) -> PositiveControl:
    """Judge the answers to the pairs of a control."""
    made = PositiveControl(seen=sum(differ) >= SEEN * len(differ), differ=sum(differ), pairs=len(differ))
    scores = [(_mean(one, score_of), _mean(other, score_of)) for one, other in pairs]
    if scale != "share" and scores and not np.isnan(scores).any():
        apart = [a - b for a, b in scores]
        mean, low, high = mean_interval(apart)
        if len(apart) > 1 and min(apart) == max(apart):
            low = high = mean  # all pairs are equally far apart
        limits = (low, high) if math.isfinite(low) else (None, None)
        seen = made.seen or low > 0 or high < 0
        made = replace(made, seen=seen, scale=scale, mean=mean, low=limits[0], high=limits[1])
    return made


def alike(made: PositiveControl, kinds: Collection[Kind], answers: int) -> PositiveControl:
    """Add to a control whether all ``answers`` that came are of one kind (`kind_of`), and could be read."""
    (kind,) = kinds if len(kinds) == 1 else ((),)
    if not kind or kind[0] != "ok" or answers < LEAST:
        return made
    said = kind[1]
    name = ", ".join(said) or "none" if isinstance(said, tuple) else f"{said:g}" if isinstance(said, float) else said
    return replace(made, alike=True, answers=answers, answer=str(name) if len(str(name)) <= NAMED else None)


def kind_of(answer: Answer, score_of: str | None) -> Kind | None:
    """Return what tells an answer from others on the scale of the claims; None where none came."""
    if answer.status in ("failed", "not_asked"):
        return None
    score = score_in(answer, score_of)
    return answer.status, answer.value, None if math.isnan(score) else round(score, DIGITS)


def _mean(answers: Sequence[Answer], score_of: str | None) -> float:
    """Return the mean score of the replicates of one text; NaN where one of them that could be read has none."""
    scores = [score_in(a, score_of) for a in answers if a.status == "ok"]
    return fmean(scores) if scores else math.nan
