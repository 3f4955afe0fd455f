"""One linear estimate with two kinds of uncertainty: of the texts, and of the words that stand for a group.

A row is one contrast of one source text; rows of one text may depend on each other in any way. The words that a
contrast puts in and takes out are random effects that cross texts (multiple membership): a word is one unit,
however many texts it stands in. Sources: Clark 1973; Baayen, Davidson and Bates 2008; Judd, Westfall and Kenny 2012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Shares of a row's variance that its words may have; the restricted likelihood is taken over them.
SHARES: Floats = np.r_[np.linspace(0.0, 0.95, 39), 0.97, 0.985, 0.993, 0.998, 0.9995, 0.9999, 0.99999]
LEAST_NOISE = (
    1e-4  # share of the variance that is never words': a model without noise is no reason to divide by 0
)
MOST_ROWS = 2000  # rows that the variance of the words is estimated from


class Unidentified(ValueError):
    """The contrast cannot be told from what else differs between the two sides."""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Adjustment:
    """What one unit of each covariate does, estimated from every edit of a run.

    Attributes
    ----------
    effect, covariance : (k,), (k, k) array
        Texts and words random.
    span : (k, k) array
        Projector onto the combinations of covariates that the edits tell apart from groups.
    """

    effect: Floats
    covariance: Floats
    span: Floats

    def variance(self, mean: Floats) -> float:
        """What taking out ``mean`` units adds to the variance of a contrast.

        Raises
        ------
        Unidentified
            No edit tells these covariates from the groups.
        """
        off = mean - self.span @ mean
        if np.abs(off).max(initial=0.0) > 1e-6 * max(1.0, float(np.abs(mean).max(initial=0.0))):
            raise Unidentified(
                "each change of group comes with the same other change, and no placebo edit tells the two apart"
            )
        return float(mean @ self.covariance @ mean)


def adjustment(y: Floats, covariates: Floats, others: Floats, text: Ints, words: Floats) -> Adjustment:
    """The effect of covariates beside groups, least squares over versions minus their originals.

    Where nothing tells the last covariate (length) from the groups and the other covariates, it stays out: a group
    whose words are all one letter longer is compared all the same.

    Parameters
    ----------
    y, covariates, text, words
        As in `Rows`.
    others : (n, g) array
        Columns that are taken out too: the groups.
    """
    k = covariates.shape[1]
    x = np.column_stack([covariates, others])
    scale = np.maximum(np.abs(x).max(axis=0, initial=0.0), 1e-12)
    x = x / scale
    rest = np.delete(x, k - 1, axis=1)
    last = x[:, k - 1]
    unseen = bool(last.any()) and float(np.abs(last - rest @ np.linalg.lstsq(rest, last)[0]).max()) < 1e-6
    if unseen:
        x[:, k - 1] = 0.0
    inverse = np.linalg.pinv(x.T @ x, rcond=1e-8, hermitian=True)
    effect = inverse @ (x.T @ y)
    rows = Rows(y=y, focal=np.ones(len(y)), covariates=covariates, text=text, words=words)
    membership = _Words(rows)
    tau2, _, _ = _restricted(rows, x, membership)
    left = inverse[:k] @ x.T
    resid = y - x @ effect
    _, by_text = np.unique(text, return_inverse=True)
    score = np.column_stack([np.bincount(by_text, row * resid) for row in left])
    size = score.shape[0]
    c = membership.sums.T @ left.T
    covariance = (score.T @ score) * size / max(1, size - 1) + tau2 * (c.T @ c)
    span = (inverse @ (x.T @ x))[:k, :k]
    if unseen:
        span[k - 1, k - 1] = 1.0
    # An estimable combination has no part in the null space, groups included.
    unit = scale[:k]
    return Adjustment(
        effect=effect[:k] / unit,
        covariance=covariance / np.outer(unit, unit),
        span=span * unit[:, None] / unit[None, :],
    )


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
        if self.se == 0:
            return 0.5 if distance == 0 else 0.0
        return float(stdtr(self.df, -distance / self.se))

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
        Standard deviation of the effect of a word, by restricted maximum likelihood.
    """

    these: Estimated
    group: Estimated
    texts: int
    words: float
    tau: float


def fit(rows: Rows, taken_out: Adjustment | None = None) -> Fit:
    """Estimate the mean contrast between groups.

    *For these words*: the mean over texts, the bias-reduced sandwich by text with Satterthwaite degrees of freedom
    (Bell and McCaffrey 2002). *For the group*: weights by the covariance that shared words give (the words of a side
    count one together, so that no text weighs below zero for having few), the same sandwich, and on top of it the
    variance ``tau² · Σ c²`` that words add, ``c`` a word's summed weight; degrees of freedom by Satterthwaite.
    Placebo contrasts add to what is known of ``tau``.

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
    tau2, noise2, info = _restricted(rows, x, membership)
    weights = plain if tau2 == 0 else _weighted(x, membership, tau2 / noise2)
    added = membership.variance_of(weights[0])
    text = _sandwich(x, weights, rows)
    other = 0.0 if taken_out is None else taken_out.variance(rows.covariates.T @ weights[0])
    var = text.se**2 + tau2 * added + other
    spread = 2 * text.se**4 / text.df + (added**2 / info if tau2 else 0.0)
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
    """Rows by words: as they are (``sums``), and with the words of a side counting one together (``means``)."""

    def __init__(self, rows: Rows) -> None:
        from scipy.sparse import csr_array

        n = len(rows.y)
        row = rows.words[:, 0].astype(np.int64)
        ids, word = np.unique(rows.words[:, 1], return_inverse=True)
        weight = rows.words[:, 2]
        shape = (n, max(1, len(ids)))
        side = np.where(weight > 0, row, n + row)
        total = np.bincount(side, np.abs(weight), 2 * n)
        self.sums = csr_array((weight, (row, word)), shape=shape)
        self.means = csr_array((weight / total[side], (row, word)), shape=shape)
        squares = float((self.sums.power(2)).sum())
        halves = float((self.means.power(2)).sum())
        self.scale = squares / halves if halves else 1.0  # of the variance of means, to that of sums
        self.typical = squares / n if squares else 0.0

    def variance_of(self, weights: Floats) -> float:
        """What words of unit variance add to the variance of ``weights @ y``."""
        c = self.sums.T @ weights
        return float(c @ c)

    def effective(self, weights: Floats) -> float:
        """The effective number of words."""
        c = np.abs(self.sums.T @ weights)
        return float(c.sum() ** 2 / (c @ c)) if c.any() else 0.0


def _restricted(rows: Rows, x: Floats, words: _Words) -> tuple[float, float, float]:
    """Variance of the words and of the rest by restricted likelihood, and the information on the first."""
    kept = (
        np.arange(len(rows.y))
        if len(rows.y) <= MOST_ROWS
        else np.flatnonzero(np.isin(rows.text, np.unique(rows.text)[: MOST_ROWS // 2]))
    )
    n, p = len(kept), x.shape[1]
    z = words.sums[kept].toarray()
    z = z[:, np.any(z != 0, axis=0)]
    none = 0.0, 1.0, 1.0
    if not z.shape[1] or n <= p + 2:
        return none
    q, _ = np.linalg.qr(x[kept])
    r = rows.y[kept] - q @ (q.T @ rows.y[kept])
    total = float(r @ r)
    if total <= 1e-20 * max(1.0, float(rows.y @ rows.y)):
        return none
    z = z - q @ (q.T @ z)
    # Eigenvectors of the smaller Gram matrix in place of a singular value decomposition: several times faster.
    if z.shape[1] <= n:
        squares, v = np.linalg.eigh(z.T @ z)
        seen = v.T @ (z.T @ r)
    else:
        squares, u = np.linalg.eigh(z @ z.T)
        seen = (u.T @ r) * np.sqrt(np.maximum(squares, 0.0))
    found = squares > 1e-9 * squares.max()
    s2, projected = squares[found], seen[found] ** 2 / squares[found]
    rest = max(total - float(projected.sum()), LEAST_NOISE * total)
    ratio = SHARES / (1 - SHARES) / words.typical
    d = 1.0 + ratio[:, None] * s2
    quad = rest + (projected / d).sum(axis=1)
    likelihood = -0.5 * np.log(d).sum(axis=1) - 0.5 * (n - p) * np.log(quad)
    best = int(likelihood.argmax())
    noise2 = float(quad[best]) / (n - p)
    info = 0.5 * float(((s2 / d[best]) ** 2).sum()) / noise2**2
    return float(ratio[best]) * noise2, noise2, info


def _weighted(x: Floats, words: _Words, ratio: float) -> Floats:
    """Weights of generalised least squares where a word has ``ratio`` times the variance of a row."""
    ratio *= words.scale
    m = words.means
    inner = np.eye(m.shape[1]) / ratio + (m.T @ m).toarray()
    vx = x - m @ np.linalg.solve(inner, m.T @ x)
    out: Floats = np.linalg.solve(x.T @ vx, vx.T)
    return out
