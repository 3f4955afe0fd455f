"""What words and edits do to answers, whoever a text is about.

*Words.* A token that an edit puts in or takes out has an effect of its own, for a group or not: a random draw whose
variance is one and the same for all tokens of a run, neutral ones included. It is estimated by moments from pairs of
*different* texts that share a token: what happens within one text (an answer on the edge turns with any edit) says
nothing about words.

*Edits.* Being edited, the place of the edit, a word more and a character more do something by themselves: estimated
from all edits, and taken out of contrasts.

References
----------
J. K. Haseman, R. C. Elston, Behavior Genetics 2 (1972): a variance component by regression on pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.measure.observations import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Singles = NDArray[np.float32]
MOST_ROWS = 2000  # rows that the variance of words is estimated from
RATIOS = 2.0  # weights of tokens are made for ratios that are e^(1/2) apart
GRID: Floats = np.r_[0.0, np.geomspace(1e-3, 1.0, 80)]
FAR = 60.0  # times what was estimated: where the grid of possible variances ends
UNLIKELY = 1e-7
SAME = 1e-8  # share of a token's use that groups and covariates do not explain, below which it is theirs


@dataclass(frozen=True, slots=True)
class Spread:
    """What is known of the standard deviation of words: possible values, and how likely each is."""

    sd: Floats
    weight: Floats

    @property
    def variance(self) -> float:
        """The mean of the variance."""
        return float(self.weight @ self.sd**2)


NO_WORDS = Spread(np.zeros(1), np.ones(1))  # where nothing varies


class Seen(NamedTuple):
    """An estimate of the variance of words that behaves like ``(variance + noise) · χ² / df − noise``."""

    variance: float
    noise: float
    df: float

    def spread(self) -> Spread:
        """Return how likely each standard deviation is; before any data, each one is as likely as any other."""
        above = max(self.variance, 0.0)
        variance = GRID * FAR * (above + self.noise)
        total, seen = variance + self.noise, max(self.variance + self.noise, 1e-3 * self.noise)
        log = -(self.df / 2) * (np.log(total) + seen / total) - np.log(total) / 2
        weight = np.exp(log - log.max()) * np.gradient(variance)
        weight /= weight.sum()
        kept = weight > UNLIKELY
        return Spread(np.sqrt(variance[kept]), weight[kept] / weight[kept].sum())

    def p_above(self, neutral: Spread) -> float:
        """Test, one-sided, whether these words differ more in what they do than ``neutral`` ones."""
        from scipy.special import chdtrc

        ratio = max(0.0, self.variance + self.noise) / (neutral.sd**2 + self.noise)
        return float(neutral.weight @ chdtrc(self.df, self.df * ratio))


class Words:
    """Estimates how much words differ in what they do, for any number of outcomes of the same versions.

    ``fixed`` (n, k) is taken out first: groups and covariates. ``words`` (n, w) are put in (positive) or taken out.
    Only pairs of rows of different texts (``text``, from 0 on) are used.
    """

    def __init__(self, fixed: Floats, words: Floats, text: Ints) -> None:
        from scipy.sparse import csr_array

        n = len(text)
        self._fixed = _range(fixed)
        words = _distinct(words)
        z = words - self._fixed @ (self._fixed.T @ words)
        size = (z**2).sum(axis=0)
        own = size > SAME * (words**2).sum(axis=0)  # a token that always comes with a group tells nothing of tokens
        self._z, self._size = np.compress(own, z, axis=1), size[own]
        self._text = csr_array((np.ones(n), (text, np.arange(n))), shape=(int(text.max(initial=-1)) + 1, n))
        self._left = max(1, n - self._fixed.shape[1])
        by_text = self._text @ self._z**2
        self._told = bool((by_text.sum(axis=0) ** 2 > (by_text**2).sum(axis=0) + 1e-300).any())
        self._of, self._texts = text, [np.flatnonzero(text == one) for one in np.unique(text)]
        self._known: dict[int, tuple[Floats, float, float]] = {}

    def spread(self, y: Floats) -> Spread | None:
        """Return how likely each standard deviation is; None where no two texts share a token."""
        seen = self.seen(y)
        return (seen.spread() if seen.df else NO_WORDS) if seen is not None else None

    def seen(self, y: Floats) -> Seen | None:
        """Estimate the variance; None where no two texts share a token, no degrees of freedom where nothing varies.

        Twice by moments: all tokens alike, then each weighted by how well it is known. The estimate plus its noise
        is taken as a multiple of chi-squared, as a variance of normal effects is.
        """
        resid = y - self._fixed @ (self._fixed.T @ y)
        noise = float(resid @ resid) / self._left
        if not self._told:
            return None
        if noise <= 1e-20 * max(1.0, float(y @ y)):
            return Seen(0.0, 0.0, 0.0)
        first, error, _ = self._moments(resid, 0.0)
        estimate, error, df = self._moments(resid, (max(first, 0.0) + error) / noise)
        above = max(estimate, 0.0)
        return Seen(estimate, max(error * math.sqrt(df / 2) - above, 1e-3 * above, 1e-12 * noise), df)

    def _moments(self, resid: Floats, ratio: float) -> tuple[float, float, float]:
        """Return an estimate of the variance, its standard error under no effects, and its degrees of freedom.

        The degrees of freedom are those of a quadratic form in effects of words: 2 mean² / variance.
        """
        weight, total, df = self._weights(ratio)
        scores = (self._text @ (self._z * resid[:, None])) * np.sqrt(weight)
        own, across = np.einsum("ij,ij->i", scores, scores), scores.sum(axis=0)
        pairs = scores.T @ scores if scores.shape[1] < len(scores) else scores @ scores.T  # either has the same squares
        apart = max(0.0, float(np.vdot(pairs, pairs) - own @ own))  # of two texts each
        return (float(across @ across) - float(own.sum())) / total, math.sqrt(2 * apart) / total, df

    @cached_property
    def _single(self) -> tuple[Singles, Singles]:
        """The words in single precision, enough for weights, and their smaller Gram matrix."""
        z = self._z.astype(np.float32)
        return z, z.T @ z if z.shape[1] < len(z) else z @ z.T

    def _weights(self, ratio: float) -> tuple[Floats, float, float]:
        step = round(math.log(max(ratio, 1e-6)) * RATIOS)
        if step not in self._known:
            weight = 1.0 / (1.0 + math.exp(step / RATIOS) * self._size)
            z, gram = self._single
            weighted = z * weight.astype(np.float32)
            if z.shape[1] < len(z):  # all pairs of rows, less those of one text
                own = np.concatenate([weighted[rows] @ z[rows].T @ z[rows] for rows in self._texts])
                form = (gram * weight.astype(np.float32)) @ gram - z[np.concatenate(self._texts)].T @ own
            else:
                across = weighted @ z.T
                across[self._of[:, None] == self._of] = 0.0
                form = across @ gram
            total = max(float(np.trace(form)), 1e-300)
            self._known[step] = weight, total, max(1.0, total**2 / max(float((form * form.T).sum()), 1e-300))
        return self._known[step]


def _distinct(words: Floats) -> Floats:
    """Return the columns, those that are equal as one: the same sum of squares by row, in fewer columns."""
    if not words.size:
        return words
    keys = np.random.default_rng(0).normal(size=len(words)) @ words
    _, first, many = np.unique(np.round(keys, 9), return_index=True, return_counts=True)
    return np.asarray(words[:, first] * np.sqrt(many))


def _range(table: Floats) -> Floats:
    """Return an orthonormal basis of what the columns span.

    Eigenvectors of the smaller Gram matrix in place of a singular value decomposition: several times faster.
    """
    tall = table.shape[1] <= len(table)
    squares, vectors = np.linalg.eigh(table.T @ table if tall else table @ table.T)
    kept = squares > 1e-9 * max(float(squares.max(initial=0.0)), 1e-9)
    squares, vectors = squares[kept], vectors[:, kept]
    return np.asarray((table @ vectors) / np.sqrt(squares) if tall else vectors)


# -- edits ----------------------------------------------------------------------------------------------------


class Unidentified(ValueError):
    """The contrast cannot be told from what else differs between the two sides."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Adjustment:
    """What one unit of each covariate does, estimated from every edit of a run."""

    effect: Floats
    covariance: Floats
    span: Floats
    words: Spread | None = None

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


class Edits:
    """Versions whose outcomes tell the effect of covariates beside groups, worked out once for any number of these.

    Least squares with an effect for each text. Words and characters that come with a group nearly always would make
    a claim of any size uncertain: what placebo edits did in all bounds what their words and characters can do, and is
    the prior of these effects (ridge). Where nothing tells the last covariate (length) from the groups and the other
    covariates, it stays out: a group whose words are all one letter longer is compared all the same.
    """

    def __init__(
        self,
        covariates: Floats,
        others: Floats,  # columns that are taken out too: the groups
        text: Ints,
        words: csr_array,  # 1 for a word that was put in, -1 for one that was taken out
        neutral: Bools,  # originals and placebos
        unit: Ints,  # what is independent of all else: the text, or the source that it shares with others
    ) -> None:
        self._k = k = covariates.shape[1]
        _, self._text, size = np.unique(text, return_inverse=True, return_counts=True)
        self._texts, self._words, self._neutral = len(size), words, neutral
        units, self._unit = np.unique(unit, return_inverse=True)
        self._units = len(units)
        x = np.column_stack([covariates, others])
        self._scale = np.maximum(np.abs(x).max(axis=0, initial=0.0), 1e-12)
        if not len(x):
            return
        self._x = x = within(x / self._scale, self._text)
        rest, last = np.delete(x, k - 1, axis=1), x[:, k - 1]
        unseen = bool(last.any()) and np.abs(last - rest @ np.linalg.lstsq(rest, last)[0]).max() < 1e-6
        if unseen:
            x[:, k - 1] = 0.0
        self._inner = x.T @ x
        self._plain = np.linalg.pinv(self._inner, rcond=1e-8, hermitian=True)
        self._span = (self._plain @ self._inner)[:k, :k]
        if unseen:
            self._span[k - 1, k - 1] = 1.0
        most = len(size) if len(x) <= MOST_ROWS else MOST_ROWS * len(size) // len(x)
        self._kept = np.flatnonzero(self._text < most)
        z = words[self._kept].toarray()
        own = self._text[self._kept]
        z = within(z[:, np.any(z != 0, axis=0)], own)
        self._noise = Words(x[self._kept], z, np.unique(own, return_inverse=True)[1].astype(np.int64))

    def tell(self, y: Floats) -> Adjustment:
        """The effect of the covariates on the outcomes ``y``."""
        k = self._k
        if not len(y):
            return Adjustment(effect=np.zeros(k), covariance=np.zeros((k, k)), span=np.zeros((k, k)))
        x, y = self._x, within(y[:, None], self._text)[:, 0]
        prior, penalty = self._ridge(y)
        inverse = np.linalg.pinv(self._inner + np.diag(penalty), rcond=1e-8, hermitian=True)
        effect = inverse @ (x.T @ y)
        left = inverse[:k] @ x.T
        resid = y - x @ effect
        score = np.column_stack([np.bincount(self._unit, row * resid) for row in left])
        known = self._noise.spread(y[self._kept])
        c = self._words.T @ left.T
        covariance = (score.T @ score) * self._units / max(1, self._units - 1) + (known.variance if known else 0.0) * (
            c.T @ c
        )
        covariance += (inverse[:k] * (penalty**2 * prior)) @ inverse[:k].T
        # An estimable combination has no part in the null space, groups included.
        unit = self._scale[:k]
        return Adjustment(
            effect=effect[:k] / unit,
            covariance=covariance / np.outer(unit, unit),
            span=self._span * unit[:, None] / unit[None, :],
            words=known,
        )

    def _ridge(self, y: Floats) -> tuple[Floats, Floats]:
        """Prior variance and penalty of each column: of all covariates but the first, being edited."""
        x = self._x
        prior, penalty = np.zeros(x.shape[1]), np.zeros(x.shape[1])
        resid = y - x @ (self._plain @ (x.T @ y))
        noise = float(resid @ resid) / max(1, len(y) - self._texts - x.shape[1])
        # Among neutral versions alone: what a group does is no move of a placebo edit. Placebo edits that moved
        # nothing bound what they can do by the noise of one version.
        own = self._text[self._neutral]
        done = max(noise, float((within(y[self._neutral, None], own) ** 2).sum()))
        squares = (within(x[self._neutral, : self._k], own) ** 2).sum(axis=0)
        for column in range(1, self._k):
            if squares[column] > 1e-12 and done > 0:
                prior[column] = done / squares[column]
                penalty[column] = noise / prior[column]
        return prior, penalty


def within(table: Floats, text: Ints) -> Floats:
    """Minus the mean of each text."""
    from scipy.sparse import csr_array

    size = np.maximum(np.bincount(text), 1)
    member = csr_array((np.ones(len(text)), (text, np.arange(len(text)))), shape=(len(size), len(text)))
    return np.asarray(table - ((member @ table) / size[:, None])[text])
