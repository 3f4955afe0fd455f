"""One linear estimate with two kinds of uncertainty: of the texts, and of the words that stand for a group.

A row is one contrast of one text; rows of one source text (the text itself, or what it shares with others) may depend
on each other in any way. The words that a
contrast puts in and takes out are random effects that cross texts (multiple membership): a word is one unit,
however many texts it stands in. Sources: Clark 1973; Baayen, Davidson and Bates 2008; Judd, Westfall and Kenny 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from auditor.measure.effects import MOST_ROWS, NO_WORDS, Adjustment, Unidentified, Words
from auditor.measure.observations import Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MIN_ROWS = 6  # that any weights are spread over
LEAST_RATIO, MOST_RATIO, STEPS = 1e-4, 1e6, 4  # weights are made for ratios that are e^(1/4) apart
MOST_DENSE = 1_000_000  # cells of rows by words that are kept with their zeros
LEAST_REST = 0.02  # share of the variance of a row that is not words', where weights are made


class Design:
    """What contrasts of source texts are made of, besides outcomes; worked out once for any number of these."""

    def __init__(
        self,
        *,
        focal: Floats,  # 1 for a contrast between groups, 0 for a placebo contrast
        covariates: Floats,  # (n, k): what else differs between the two sides: edited or not, words, characters
        text: Ints,  # the source text of each row
        words: csr_array,  # (n, w): weights of words, positive for words put in on the first side
        tokens: int | None = None,  # how many of these, the first ones, are whole tokens; None: all
        size: Floats | None = None,  # how much each row represents, for these words; None: all the same
    ) -> None:
        from scipy.sparse import csr_array

        self.focal, self.covariates = focal, covariates
        self.text = np.unique(text, return_inverse=True)[1].astype(np.int64)
        words.data[np.abs(words.data) <= 1e-12] = 0.0
        words.eliminate_zeros()
        words.sort_indices()
        used, word = np.unique(words.indices, return_inverse=True)
        self._tokens = len(used) if tokens is None else int(np.searchsorted(used, tokens))
        self.sums = csr_array((words.data, word, words.indptr), shape=(len(focal), max(1, len(used))))
        # variance that words of unit variance give a row
        self.typical = float(words.data @ words.data) / max(1, len(focal))
        of = focal if size is None else focal * size
        self.plain: Floats = of / max(float(of.sum()), 1.0)
        self._weights: dict[int, Floats] = {}

    @cached_property
    def part(self) -> Ints:
        """The rows that say what words do: of very many, those of some texts."""
        if len(self.focal) <= MOST_ROWS:
            return np.arange(len(self.focal))
        texts = int(np.searchsorted(np.cumsum(np.bincount(self.text)), MOST_ROWS, side="right"))
        return np.flatnonzero(self.text < min(MOST_ROWS // 2, texts))

    @cached_property
    def noise(self) -> Words:
        """What the rows tell of the effects of words."""
        z = self.sums[self.part].toarray()
        text = np.unique(self.text[self.part], return_inverse=True)[1].astype(np.int64)
        return Words(self.focal[self.part, None], z, text)

    def shared(self, weights: Floats) -> float:
        """What words of unit variance add to the variance of ``weights @ y`` by standing in several rows.

        What they add within a row is part of how much rows vary.
        """
        row, word, weight = self._cells
        each = weight * weights[row]
        c = np.bincount(word, each)
        return max(0.0, float(c @ c - each @ each))

    @cached_property
    def _cells(self) -> tuple[Ints, Ints, Floats]:
        """Row, word and weight of each cell that is not 0."""
        return (np.repeat(np.arange(len(self.focal)), np.diff(self.sums.indptr)), self.sums.indices, self.sums.data)

    @cached_property
    def effective(self) -> float:
        """The effective number of words."""
        row, word, weight = self._cells
        c = np.abs(np.bincount(word, weight * self.plain[row], 1)[: self._tokens])
        return float(c.sum() ** 2 / (c @ c)) if c.any() else 0.0

    def weights(self, ratio: float) -> Floats:
        """Weights of least variance where a word has about ``ratio`` times the variance of a row; none is negative.

        Unbounded weights would set texts with many words against texts with a part of them, and rest on the effects
        of words being sums to the last digit. Rows that would weigh less than nothing are left out, until none does.
        """
        step = round(math.log(min(max(ratio, LEAST_RATIO), MOST_RATIO)) * STEPS)
        if step not in self._weights:
            self._weights[step] = self._least(math.exp(step / STEPS))
        return self._weights[step]

    def _least(self, ratio: float) -> Floats:
        active = np.flatnonzero(self.focal > 0)
        out = np.zeros_like(self.focal)
        z = self.sums[active]
        z = z[:, np.unique(z.indices)]
        if z.shape[0] * z.shape[1] <= MOST_DENSE:
            z = z.toarray()
        while True:
            x = self.focal[active]
            if z.shape[1] <= len(active):
                inner = np.eye(z.shape[1]) / ratio + _dense(z.T @ z)
                vx = x - z @ np.linalg.solve(inner, z.T @ x)
            else:
                vx = np.linalg.solve(np.eye(len(active)) + ratio * _dense(z @ z.T), x)
            if (vx >= 0).all() or len(active) <= MIN_ROWS:
                break
            active, z = active[vx > 0], z[vx > 0]
        if (vx < 0).any() or not vx.any():
            return self.focal / float(self.focal @ self.focal)
        out[active] = vx / float(x @ vx)
        return out


def _dense(gram: Floats | csr_array) -> Floats:
    return gram if isinstance(gram, np.ndarray) else gram.toarray()


@dataclass(frozen=True, slots=True)
class Rows:
    """Contrasts of source texts ``y``, in the unit of the answers, and what they are made of."""

    y: Floats
    design: Design

    @property
    def changed(self) -> int:
        """In how many texts the two groups got different answers."""
        return len(np.unique(self.design.text[(np.abs(self.y) > ROUNDING) & (self.design.focal > 0)]))


ROUNDING = 1e-9  # standard errors below it are errors of adding up


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimated:
    """A mean contrast and how sure it is."""

    value: float  # covariates taken out
    ses: Floats  # possible standard errors; 0 means that nothing varies
    likely: Floats  # how likely each is
    df: float  # degrees of freedom of each

    @property
    def se(self) -> float:
        """Standard error: the root of the mean variance."""
        return math.sqrt(float(self.likely @ self.ses**2))

    def wider(self, variance: float) -> Estimated:
        """With ``variance`` more."""
        return replace(self, ses=np.sqrt(self.ses**2 + variance))

    def half(self, level: float = 0.95) -> float:
        """Half the length of the interval of that level."""
        from scipy.special import stdtrit

        quantile = float(stdtrit(self.df, 0.5 + level / 2))
        low, high = quantile * float(self.ses.min()), quantile * float(self.ses.max())
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            if self._beyond(middle) > (1 - level) / 2:
                low = middle
            else:
                high = middle
        return high

    def _beyond(self, distance: float) -> float:
        from scipy.special import stdtr

        return float(self.likely @ stdtr(self.df, -distance / np.maximum(self.ses, ROUNDING)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Limits with equal tails."""
        half = self.half(level)
        return self.value - half, self.value + half

    def p_beyond(self, limit: float = 0.0) -> float:
        """One-sided p value against a true contrast on the other side of ``limit``."""
        return self._beyond(abs(self.value - limit))

    def p_value(self) -> float:
        """Two-sided, against a contrast of 0."""
        return min(1.0, 2 * self.p_beyond())


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """One contrast under the two views of what is random."""

    these: Estimated  # for these words: the mean over texts, each with the same weight; texts are random
    group: Estimated  # texts and words are random; texts that share their words with many others weigh less
    texts: int  # with a contrast between groups
    words: float  # effective number: 1 / Σ share²
    tau: float | None  # standard deviation of the effect of a word (root of the mean); None where nothing tells it


def fit(rows: Rows, taken_out: Adjustment | None = None) -> Fit:
    """Estimate the mean contrast between groups; without ``taken_out`` the rows themselves say what words do.

    *For these words*: the mean over texts, the bias-reduced sandwich by text with Satterthwaite degrees of freedom
    (Bell and McCaffrey 2002). *For the group*: weights by the covariance that shared words give (none below zero),
    the same sandwich, and on top of it what words of an unknown standard deviation add by standing in several texts:
    p values and limits are means over what `auditor.measure.effects` leaves open of it.

    Raises
    ------
    Unidentified
        No contrast between groups, or nothing tells it from another change that always comes with it.
    """
    design = rows.design
    if not (design.focal > 0).any():
        raise Unidentified("no text has a version about each of the two")
    y = rows.y
    if taken_out is not None:
        y = y - design.covariates @ taken_out.effect
    known = design.noise.spread(y[design.part]) if taken_out is None else taken_out.words
    words = NO_WORDS if known is None else known
    weights = design.plain
    total = float((y - design.focal * (design.plain @ y)).var())
    if words.variance > 0 and total > 0:
        rest = total - words.variance * design.typical
        weights = design.weights(words.variance / max(rest, LEAST_REST * total))
    text, these = _sandwich(design, weights, y), _sandwich(design, design.plain, y)
    if taken_out is not None:
        text = text.wider(taken_out.variance(design.covariates.T @ weights))
        these = these.wider(taken_out.variance(design.covariates.T @ design.plain))
    shared = words.sd**2 * design.shared(weights)
    return Fit(
        these=these,
        group=replace(text, ses=np.sqrt(text.ses**2 + shared), likely=words.weight),
        texts=len(np.unique(design.text[design.focal > 0])),
        words=design.effective,
        tau=None if known is None else math.sqrt(known.variance),
    )


def _sandwich(design: Design, weights: Floats, y: Floats) -> Estimated:
    """``weights @ y``, its variance by text, and Satterthwaite's degrees of freedom.

    The residuals of each text are scaled by its leverage. Under independent rows the scores of the texts have
    covariance ``diag(own) + L M L'`` with ``L`` of two columns: nothing of the size texts × texts is made.
    """
    x, text, size = design.focal, design.text, int(design.text.max()) + 1
    value = float(weights @ y)
    leverage = np.bincount(text, x * weights, size)[text]
    w = weights / np.sqrt(np.maximum(1.0 - leverage, 1e-6))
    score = np.bincount(text, w * (y - x * value), size)
    own = np.bincount(text, w * w, size)
    left = np.column_stack([np.bincount(text, w * x, size), np.bincount(text, w * weights, size)])
    middle = np.array([[float(weights @ weights), -1.0], [-1.0, 0.0]])
    cross = middle @ (left.T @ left)
    trace = float(own.sum() + np.trace(cross))
    square = float(own @ own + 2 * (own * np.einsum("ij,jk,ik->i", left, middle, left)).sum() + np.trace(cross @ cross))
    df = trace * trace / square if square > 0 else 1.0
    return Estimated(value=value, ses=np.sqrt(score @ score)[None], likely=np.ones(1), df=max(1.0, df))
