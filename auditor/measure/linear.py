"""One linear estimate with two kinds of uncertainty: of the texts, and of the words that stand for a group.

A row is one contrast of one source text; rows of one text may depend on each other in any way. The words that a
contrast puts in and takes out are random effects that cross texts (multiple membership): a word is one unit,
however many texts it stands in. Sources: Clark 1973; Baayen, Davidson and Bates 2008; Judd, Westfall and Kenny 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from auditor.measure.adjustment import Adjustment, Unidentified
from auditor.measure.likelihood import MOST_ROWS, Floats, Ints, Variances, likelihood

MIN_ROWS = 6  # that any weights are spread over


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """Contrasts of source texts.

    Attributes
    ----------
    y : (n,) array
        Contrasts, in the unit of the answers.
    focal : (n,) array
        1 for a contrast between groups, 0 for a placebo contrast.
    covariates : (n, k) array
        What else differs between the two sides: edited or not, words, characters.
    text : (n,) array of int
        The source text of each row; at most two rows have one text.
    words : (m, 3) array
        ``row, word, weight``: weights are positive for words put in on the first side.
    """

    y: Floats
    focal: Floats
    covariates: Floats
    text: Ints
    words: Floats


ROUNDING = 1e-9  # standard errors below it are errors of adding up


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimated:
    """A mean contrast and how sure it is.

    Attributes
    ----------
    value : float
        Mean contrast, covariates taken out.
    se, df : float
        Standard error and degrees of freedom; a standard error of 0 means that nothing varies.
    """

    value: float
    se: float
    df: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Limits with equal tails."""
        from scipy.special import stdtrit

        half = self.se * float(stdtrit(self.df, 0.5 + level / 2))
        return self.value - half, self.value + half

    def p_beyond(self, limit: float = 0.0) -> float:
        """One-sided p value against a true contrast on the other side of ``limit``."""
        from scipy.special import stdtr

        distance = abs(self.value - limit)
        return float(stdtr(self.df, -distance / max(self.se, ROUNDING)))

    def p_value(self) -> float:
        """Two-sided, against a contrast of 0."""
        return min(1.0, 2 * self.p_beyond())


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """One contrast under the two views of what is random.

    Attributes
    ----------
    these : Estimated
        For these words: the mean over texts, each with the same weight; texts are random.
    group : Estimated
        For the group: texts and words are random; texts that share their words with many others weigh less.
    texts, words : int, float
        Texts with a contrast between groups; effective number of words (1 / Σ share²).
    tau : float
        Standard deviation of the effect of a word (`auditor.measure.likelihood`).
    """

    these: Estimated
    group: Estimated
    texts: int
    words: float
    tau: float


def fit(rows: Rows, taken_out: Adjustment | None = None) -> Fit:
    """Estimate the mean contrast between groups.

    *For these words*: the mean over texts, the bias-reduced sandwich by text with Satterthwaite degrees of freedom
    (Bell and McCaffrey 2002). *For the group*: weights by the covariance that shared words give (none below zero),
    the same sandwich, and on top of it ``tau²`` times what words add by standing in several texts; degrees of freedom
    by Satterthwaite. Placebo contrasts add to what is known of ``tau``.

    Parameters
    ----------
    rows : Rows
        The contrasts.
    taken_out : Adjustment or None
        The effect of the covariates.

    Raises
    ------
    Unidentified
        No contrast between groups, or nothing tells it from another change that always comes with it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> n = 60
    >>> rows = Rows(y=0.2 + 0.1 * rng.normal(size=n), focal=np.ones(n), covariates=np.zeros((n, 1)),
    ...             text=np.arange(n), words=np.column_stack([np.arange(n), rng.integers(0, 12, n), np.ones(n)]))
    >>> found = fit(rows)
    >>> found.texts, round(found.these.value, 1), found.group.p_value() < 0.001
    (60, 0.2, True)
    """
    x = rows.focal[:, None]
    if not (rows.focal > 0).any():
        raise Unidentified("no text has a version about each of the two")
    if taken_out is not None:
        rows = replace(rows, y=rows.y - rows.covariates @ taken_out.effect)
    plain = x.T / float(rows.focal.sum())
    membership = _Words(rows)
    found = _restricted(rows, x, membership)
    tau2, unsure = (0.0, 0.0) if found is None else (found.words, found.unsure)
    weights = plain
    if found is not None and tau2 > 0:
        weights = _weighted(rows.focal, membership, tau2 / found.rest)[None, :]
    added = membership.shared(weights[0])
    text = _sandwich(x, weights, rows)
    other = 0.0 if taken_out is None else taken_out.variance(rows.covariates.T @ weights[0])
    var = text.se**2 + tau2 * added + other
    spread = 2 * text.se**4 / text.df + added**2 * unsure
    these = _sandwich(x, plain, rows)
    if taken_out is not None:
        more = taken_out.variance(rows.covariates.T @ plain[0])
        these = replace(these, se=math.sqrt(these.se**2 + more))
    return Fit(
        these=these,
        group=Estimated(
            value=text.value,
            se=math.sqrt(var),
            df=max(1.0, min(2 * var * var / spread, 1e6)) if spread > 0 else text.df,
        ),
        texts=len(np.unique(rows.text[rows.focal > 0])),
        words=membership.effective(plain[0]),
        tau=math.sqrt(tau2),
    )


def _sandwich(x: Floats, weights: Floats, rows: Rows) -> Estimated:
    """The first coefficient of ``weights @ y``, its variance by text, and Satterthwaite's degrees of freedom.

    The residuals of each row are scaled by its own leverage. Under independent rows the scores of the texts have
    covariance ``diag(own) + L M L'`` with ``L`` of twice as many columns as the design: nothing of the size
    texts × texts is made.
    """
    beta = weights @ rows.y
    leverage = np.maximum(1.0 - np.einsum("ij,ji->i", x, weights), 1e-6)
    w = weights[0] / np.sqrt(leverage)
    _, text = np.unique(rows.text, return_inverse=True)
    size = int(text.max()) + 1
    score = np.bincount(text, w * (rows.y - x @ beta), size)
    own = np.bincount(text, w * w, size)
    left = np.column_stack([np.bincount(text, w * column, size) for column in (*x.T, *weights)])
    p = x.shape[1]
    middle = np.block([[weights @ weights.T, -np.eye(p)], [-np.eye(p), np.zeros((p, p))]])
    cross = middle @ (left.T @ left)
    trace = float(own.sum() + np.trace(cross))
    square = float(
        (own**2).sum()
        + 2 * (own * np.einsum("ij,jk,ik->i", left, middle, left)).sum()
        + np.trace(cross @ cross)
    )
    df = trace * trace / square if square > 0 else 1.0
    return Estimated(value=float(beta[0]), se=float(np.sqrt(score @ score)), df=max(1.0, df))


class _Words:
    """Rows by words."""

    def __init__(self, rows: Rows) -> None:
        from scipy.sparse import csr_array

        n = len(rows.y)
        row = rows.words[:, 0].astype(np.int64)
        ids, word = np.unique(rows.words[:, 1], return_inverse=True)
        weight = rows.words[:, 2]
        self.sums = csr_array((weight, (row, word)), shape=(n, max(1, len(ids))))

    def shared(self, weights: Floats) -> float:
        """What words of unit variance add to the variance of ``weights @ y`` by standing in several rows.

        What they add within a row is part of how much rows vary.
        """
        c = self.sums.T @ weights
        own = (self.sums * self.sums).sum(axis=1) @ (weights * weights)
        return max(0.0, float(c @ c - own))

    def effective(self, weights: Floats) -> float:
        """The effective number of words."""
        c = np.abs(self.sums.T @ weights)
        return float(c.sum() ** 2 / (c @ c)) if c.any() else 0.0


def _restricted(rows: Rows, x: Floats, words: _Words) -> Variances | None:
    """`likelihood` of rows, on a part of very many."""
    kept = (
        np.arange(len(rows.y))
        if len(rows.y) <= MOST_ROWS
        else np.flatnonzero(np.isin(rows.text, np.unique(rows.text)[: MOST_ROWS // 2]))
    )
    z = words.sums[kept].toarray()
    return likelihood(rows.y[kept], x[kept], z[:, np.any(z != 0, axis=0)])


def _weighted(focal: Floats, words: _Words, ratio: float) -> Floats:
    """Weights of the smallest variance where a word has ``ratio`` times the variance of a row; none is negative.

    Unbounded weights would set texts with many words against texts with a part of them, and rest on the effects of
    words being sums to the last digit. Rows that would weigh less than nothing are left out, until none does.
    """
    active = np.flatnonzero(focal > 0)
    out = np.zeros_like(focal)
    while True:
        z = words.sums[active]
        z = z[:, np.unique(z.indices)]
        x = focal[active]
        vx = x
        if z.shape[1]:
            inner = np.eye(z.shape[1]) / ratio + (z.T @ z).toarray()
            vx = x - z @ np.linalg.solve(inner, z.T @ x)
        if (vx >= 0).all() or len(active) <= MIN_ROWS:
            break
        active = active[vx > 0]
    if (vx < 0).any() or not vx.any():
        return focal / float(focal @ focal)
    out[active] = vx / float(x @ vx)
    return out
