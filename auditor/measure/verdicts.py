"""From estimates to verdicts: one claim is filled from a fit, and all claims of a family are decided together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from auditor.core.types import ClaimVerdict
from auditor.measure.claims import MIN_TEXTS, MIN_WORDS, USUAL_DELTA, Claim, Question
from auditor.measure.enough import texts_needed
from auditor.measure.likelihood import Floats
from auditor.measure.linear import ROUNDING, Fit, Rows
from auditor.measure.multiplicity import holm_in_blocks

POWER_Z = 1.959964 + 0.841621  # two-sided 5 %, power 80 %


@dataclass(frozen=True, slots=True)
class Tested:
    """A claim with what its verdict is made from.

    Attributes
    ----------
    claim : Claim
        With its verdict "not_tested" and why, where there is nothing more.
    weight : float
        Of alpha, before the family is known.
    main, share : Fit or None
        What decides, and what delta is compared with: shares or numbers.
    rows : Rows or None
        The contrasts behind ``share``.
    calls : int
        Answers that the contrasts were made of; 0 where nobody asks how many it would take.
    missing : int
        Versions about either side that lack before a difference of 30 points would be shown.
    """

    claim: Claim
    weight: float = 0.0
    main: Fit | None = None
    share: Fit | None = None
    rows: Rows | None = None
    calls: int = 0
    missing: int = 0

    @property
    def block(self) -> tuple[str, ...]:
        """Claims that pass their share of the level on among themselves first: those of one attribute."""
        c = self.claim
        return c.model, c.format, c.label, c.attribute


def filled(claim: Claim, main: Fit, share: Fit | None = None, *, level: float = 0.95) -> Claim:
    """``claim`` with its estimates, intervals and p values.

    Parameters
    ----------
    main, share : Fit, Fit or None
        What decides; the difference of shares where that is another.
    level : float
        Of the intervals.
    """
    low, high = main.group.interval(level)
    words_low, words_high = main.these.interval(level)
    claim = dataclasses.replace(
        claim,
        estimate=main.group.value,
        low=low,
        high=high,
        words_estimate=main.these.value,
        words_low=words_low,
        words_high=words_high,
        texts=main.texts,
        words=main.words,
        p_value=main.group.p_value(),
        p_words=main.these.p_value(),
    )
    if share is not None and share is not main:
        share_low, share_high = share.group.interval(level)
        claim = dataclasses.replace(
            claim, share_difference=share.group.value, share_low=share_low, share_high=share_high
        )
    return claim


def rare(found: Fit, rows: Rows) -> Fit:
    """Intervals of shares where next to nothing changed: none shrinks to a point.

    With ``s`` texts that changed (``(Σ |y|)² / Σ y²``: as many as changed alike), ``3 exp(−s / 2)`` more are added to
    the variance: without any the 95 % limits are 3.4 / n (Clopper and Pearson: 3.7 / n), and from six on it is small.
    """
    y = changes(rows)
    square = float(y @ y)
    changed = float(np.abs(y).sum()) ** 2 / square if square else 0.0
    added = 3 * math.exp(-changed / 2) / len(y) ** 2
    return dataclasses.replace(found, these=found.these.wider(added), group=found.group.wider(added))


def changes(rows: Rows) -> Floats:
    """The contrasts between groups, summed by source text."""
    focal = rows.design.focal > 0
    text = np.unique(rows.design.text[focal], return_inverse=True)[1]
    return np.bincount(text, rows.y[focal]).astype(np.float64)


def decide(tested: Sequence[Tested], question: Question) -> list[Claim]:
    """Adjust within the family and give each claim its verdict."""
    family = [t for t in tested if t.main is not None]
    weights, blocks = [t.weight for t in family], [t.block for t in family]

    def holm(p_values: Iterable[float]) -> list[float]:
        spread = [question.overall(t.claim.attribute, p) for t, p in zip(family, p_values, strict=True)]
        return holm_in_blocks(spread, weights, blocks)

    shown = holm(t.claim.p_value or 0.0 for t in family)
    words = holm(t.claim.p_words or 0.0 for t in family)
    bounds = holm(_bound(t) for t in family)
    adjusted = {id(t): PValues(*three) for t, *three in zip(family, shown, words, bounds, strict=True)}
    return [t.claim if id(t) not in adjusted else _verdict(t, adjusted[id(t)], question, len(family)) for t in tested]


class PValues(NamedTuple):
    """Of one claim, adjusted within its family: for the group, for these words, for the bound."""

    group: float
    words: float
    bound: float


def _bound(t: Tested) -> float:
    delta = t.claim.delta
    if delta is None or t.share is None or abs(t.share.group.value) >= delta:
        return 1.0
    return max(t.share.group.p_beyond(delta), t.share.group.p_beyond(-delta))


def _verdict(t: Tested, p: PValues, question: Question, family: int) -> Claim:
    claim, main = t.claim, t.main
    assert main is not None
    assert t.rows is not None
    differs = (np.abs(t.rows.y) > 1e-9) & (t.rows.design.focal > 0)
    changed = len(np.unique(t.rows.design.text[differs]))
    few = claim.scale == "share" and changed < MIN_TEXTS
    verdict: ClaimVerdict = "not_determined"
    why = ""
    alpha = question.alpha
    if few:
        why = f"the answers differ in {changed} of {claim.texts} texts, and fewer than {MIN_TEXTS} show nothing"
    elif max(p.group, p.words) < alpha and main.words >= MIN_WORDS:
        verdict = "shown"
    elif p.words < alpha:
        verdict = "shown_for_words"
        why = (
            "which words name the groups is not recorded"
            if not main.words
            else f"{main.words:.0f} words stand for the groups, too few to speak of the groups themselves"
            if main.words < MIN_WORDS
            else "other words for the same groups may give another difference"
        )
    if verdict == "not_determined":
        if p.bound < alpha and question.positive_control.get(claim.model) is True:
            verdict, why = "bounded", ""
        elif p.bound < alpha:
            why = "below delta, but the positive control was not seen"
        elif missing := t.missing or _missing(claim):
            why = f"too few texts: {claim.texts}; {missing} more texts are needed to show even 30 points"
        elif not few and _leaves_out_zero(claim):
            why = (
                f"its interval alone leaves out 0, but it is one of {family:,} comparisons: p = {p.words:.2g} among "
                f"them, on {claim.texts} texts"
            )
        elif not few:
            why = f"too little data for a difference this small: {claim.texts} texts, {main.words:.0f} words"
    return dataclasses.replace(
        claim, verdict=verdict, why=why, p_adjusted=p.group, calls_needed=_calls(t, verdict, question)
    )


def _leaves_out_zero(claim: Claim) -> bool:
    return claim.low is not None and claim.high is not None and (claim.low > ROUNDING or claim.high < -ROUNDING)


def _missing(claim: Claim) -> int:
    """Texts that lack before the whole level would show a difference of 30 points of answers that are labels."""
    return 0 if claim.scale != "share" or claim.family == "interaction" else max(0, texts_needed() - claim.texts)


def _calls(t: Tested, verdict: ClaimVerdict, question: Question) -> int | None:
    """Calls after which a net difference of delta would be shown with 80 %; None where words forbid it."""
    if verdict != "not_determined" or t.share is None or not t.calls:
        return None
    target = t.claim.delta or (None if question.number else question.limit(t.claim.unit, USUAL_DELTA))
    if target is None or t.share.these.se == 0:
        return None
    words2 = max(0.0, t.share.group.se**2 - t.share.these.se**2)
    room = (target / POWER_Z) ** 2 - words2
    if room <= 0:
        return None
    return math.ceil(t.calls * max(1.0, t.share.these.se**2 / room))
