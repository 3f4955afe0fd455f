"""What words and edits do to answers, whoever a text is about.

*Words.* How much their effects vary, and what that leaves open. Three things speak about the standard deviation of a
word's effect. The *restricted likelihood* of contrasts: do texts that share a word differ alike? The *size* of
contrasts: words that moved answers far would turn many of them, one way or the other. And *placebo edits*, which change
words that stand for no group. Labels say little by the first, because one label is right or wrong and no more; the
second bounds what words can do from above.

*Edits.* Being edited, a word more and a character more do something by themselves: estimated from all edits, and taken
out of contrasts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from auditor.measure.observations import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Shares of a row's variance that its words may have; the restricted likelihood is taken over them.
SHARES: Floats = np.r_[
    0.0, np.geomspace(0.0005, 0.02, 9), np.linspace(0.025, 0.95, 38), 0.97, 0.985, 0.993, 0.998, 0.9995, 0.9999, 0.99999
]
LEAST_NOISE = 1e-4  # share of the variance that is never words': a model without noise is no reason to divide by 0
MOST_ROWS = 2000  # rows that the variance of the words is estimated from
ENDS = (1e-3, 4.0)  # times the standard deviation of a contrast: what words may have
POINTS = 100  # of the grid that what is known of words is put together on
APART = 1.0  # standard deviation of the log of how far words for groups and placebo words differ in how much they do
MEAN_SIZE = math.sqrt(2 / math.pi)  # mean absolute value of a standard normal
UNEVEN = math.pi / 2 - 1  # its squared coefficient of variation
MANY_TIMES = 3  # as many rows in all as the moved ones: then these are added to the others, taken apart before
FAR = 1e11  # a ratio beyond those of all shares


class Curve(NamedTuple):
    """Log restricted likelihood, the largest 0, of rising standard deviations of words."""

    sd: Floats
    log: Floats

    def at(self, sd: Floats) -> Floats:
        """The log likelihood at other standard deviations; above the last, next to nothing is likely."""
        return np.interp(sd, self.sd, self.log, right=-700.0)

    @property
    def likely(self) -> float:
        """The most likely standard deviation."""
        return float(self.sd[self.log.argmax()])


class Ceiling(NamedTuple):
    """How far words can move answers at most, from how far they did.

    Whatever else moves contrasts, their mean size is at least what words alone would give: ``MEAN_SIZE`` times the
    standard deviation of what words do to a row. Where fewer answers changed than that, words do less.
    """

    changed: float  # that were seen: as many as changed alike, (Σ |y|)² / Σ y²
    each: float  # changes that words alone would give, for each unit of their standard deviation
    words: float  # effective number: how sure the size of their effects is

    def at(self, sd: Floats) -> Floats:
        """Log likelihood (Poisson), 0 up to what was seen."""
        least = np.maximum(self.each * sd, 1e-300)
        more = least - self.changed
        if self.changed > 0:
            more = more - self.changed * np.log(least / self.changed)
        return np.where(least > self.changed, -more / (1 + UNEVEN * least / max(self.words, 1.0)), 0.0)


Known = Curve | Ceiling


@dataclass(frozen=True, slots=True)
class Spread:
    """What is known of the standard deviation of words: possible values, and how likely each is."""

    sd: Floats
    weight: Floats

    @property
    def variance(self) -> float:
        """The mean of the variance."""
        return float(self.weight @ self.sd**2)


def spread(size: float, own: Iterable[Known], placebos: Iterable[Known] = ()) -> Spread:
    """Put together what is known; before that each standard deviation is as likely as any other.

    Placebo words are a sample of other words: those for groups may do more or less, by a factor whose logarithm has
    a standard deviation of ``APART``.

    Parameters
    ----------
    size : float
        Standard deviation of a contrast: no word does more than a few times that.
    own, placebos : iterable of Curve or Ceiling
        From contrasts between groups, and from placebo edits.
    """
    sd = size * np.geomspace(*ENDS, POINTS)
    log = np.log(sd) + sum((one.at(sd) for one in own), np.zeros(POINTS))
    other = sum((one.at(sd) for one in placebos), np.zeros(POINTS))
    blurred = _blur() @ np.exp(other - other.max())
    log += np.log(np.maximum(blurred, 1e-300))
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    kept = weight > 1e-7
    return Spread(sd[kept], weight[kept] / weight[kept].sum())


@cache
def _blur() -> Floats:
    step = math.log(ENDS[1] / ENDS[0]) / (POINTS - 1)
    off = (np.arange(POINTS)[:, None] - np.arange(POINTS)) * step / APART
    blur: Floats = np.exp(-off * off / 2)
    blur /= blur.sum(axis=1, keepdims=True)
    return blur


class Random:
    """Fixed effects of ``x`` and random ones of ``z``, taken apart once for any number of outcomes.

    ``lost`` are degrees of freedom that went before, as by taking out the means of texts.
    """

    def __init__(self, x: Floats, z: Floats | csr_array, lost: int = 0) -> None:
        self._fixed, _ = _range(x)
        self._left = len(x) - self._fixed.shape[1] - lost
        unit = max(float((z * z).sum()) / max(1, len(x)), 1e-300)
        self._ratio = SHARES / (1 - SHARES) / unit
        moved = np.any(x != 0, axis=1)
        self._parts: _Whole | _Bordered
        if isinstance(z, np.ndarray):
            self._parts = _Whole(_outside(z, self._fixed), self._ratio)
        elif z.shape[1] > len(x) > MANY_TIMES * moved.sum():
            few = _outside(z[moved].toarray(), self._fixed[moved])
            self._parts = _Bordered(few, z[~moved], moved, self._ratio, FAR / unit)
        else:
            self._parts = _Whole(_outside(z.toarray(), self._fixed), self._ratio)

    def curve(self, y: Floats) -> Curve | None:
        """The restricted likelihood of ``y``; None where nothing varies."""
        if self._left <= 2 or not self._parts.spans:
            return None
        resid = _outside(y, self._fixed)
        total = float(resid @ resid)
        if total <= 1e-20 * max(1.0, float(y @ y)):
            return None
        outside, within = self._parts.squares(resid)
        quad = max(outside, LEAST_NOISE * total) + within
        log = -0.5 * self._parts.determinant - 0.5 * self._left * np.log(quad)
        return Curve(np.sqrt(self._ratio * quad / self._left), log - log.max())


def _outside(z: Floats, fixed: Floats) -> Floats:
    """What is left of ``z`` beside the space with the orthonormal basis ``fixed``."""
    return np.asarray(z - fixed @ (fixed.T @ z))


class _Whole:
    """``1 + ratio z z'`` for some ratios, by what ``z`` spans: log determinants, and squares that it scales."""

    def __init__(self, z: Floats, ratio: Floats) -> None:
        self._basis, squares = _range(z)
        self.spans = len(squares) > 0
        d = 1.0 + ratio[:, None] * squares
        self.determinant, self._shrunk = np.log(d).sum(axis=1), 1.0 / d

    def squares(self, resid: Floats) -> tuple[float, Floats]:
        """The squared length of what lies outside of what ``z`` spans, and what is left of the rest by ratio."""
        seen = (self._basis.T @ resid) ** 2
        return float(resid @ resid) - float(seen.sum()), self._shrunk @ seen


class _Bordered:
    """The same where few rows are moved by fixed effects and many are not.

    Those many (placebo contrasts) are the same for one pair of groups after another, and are taken apart once; the
    few are added by the Schur complement. What lies outside is what is left at a ratio beyond all others, ``far``.
    """

    def __init__(self, few: Floats, rest: csr_array, moved: Bools, ratio: Floats, far: float) -> None:
        column = np.unique(rest.indices, return_inverse=True)[1]  # the same whatever words the few bring
        squares, self._vectors = _eigen(
            rest.indptr.astype(np.int64).tobytes(), column.astype(np.int64).tobytes(), rest.data.tobytes()
        )
        self.spans = bool(squares.any() or few.any())
        self._moved, self._ratio = moved, np.r_[ratio, far]
        d = 1.0 + self._ratio[:, None] * squares
        self._across = self._vectors.T @ (rest @ few.T)
        self._shrunk, self._scaled = 1.0 / d, self._ratio[:, None] / d
        n = len(few)
        if n < len(d):
            products = self._across[:, :, None] * self._across[:, None, :]
            taken = self._scaled @ products.reshape(len(squares), n * n)
        else:
            taken = (self._across.T * self._scaled[:, None, :]).reshape(len(d) * n, -1) @ self._across
        self._inner = np.eye(n) + self._ratio[:, None, None] * (few @ few.T - taken.reshape(len(d), n, n))
        self.determinant = (np.log(d).sum(axis=1) + np.linalg.slogdet(self._inner)[1])[:-1]

    def squares(self, resid: Floats) -> tuple[float, Floats]:
        """As of the whole."""
        rest = self._vectors.T @ resid[~self._moved]
        few = resid[self._moved] - (self._scaled * rest) @ self._across
        left = self._shrunk @ rest**2 + (few * np.linalg.solve(self._inner, few[..., None])[..., 0]).sum(axis=1)
        return float(left[-1]), left[:-1] - left[-1]


@lru_cache(maxsize=4)
def _eigen(starts: bytes, columns: bytes, cells: bytes) -> tuple[Floats, Floats]:
    """Of the Gram matrix of the rows of a sparse table."""
    from scipy.sparse import csr_array

    places = (np.frombuffer(columns, np.int64), np.frombuffer(starts, np.int64))
    table = csr_array((np.frombuffer(cells), *places))
    squares, vectors = np.linalg.eigh((table @ table.T).toarray())
    return np.maximum(squares, 0.0), vectors


def _range(table: Floats) -> tuple[Floats, Floats]:
    """An orthonormal basis of what the columns span, and the squared singular values.

    Eigenvectors of the smaller Gram matrix in place of a singular value decomposition: several times faster.
    """
    tall = table.shape[1] <= len(table)
    squares, vectors = np.linalg.eigh(table.T @ table if tall else table @ table.T)
    kept = squares > 1e-9 * max(float(squares.max(initial=0.0)), 1e-9)
    squares, vectors = squares[kept], vectors[:, kept]
    return (table @ vectors) / np.sqrt(squares) if tall else vectors, squares


def ceiling(y: Floats, z: Floats | csr_array, text: Ints) -> Ceiling:
    """Of contrasts ``y`` that words enter by ``z``, several of a ``text`` being one change."""
    by_text = np.bincount(text, np.abs(y))
    total, square = float(by_text.sum()), float(by_text @ by_text)
    changed = total * total / square if square > 0 else 0.0
    size = np.sqrt((z * z).sum(axis=1))
    # One change of an answer is 1 on the scale of shares: what none of the rows did is measured in those.
    unit = total / changed if changed else float(np.bincount(text).max(initial=1))
    use = abs(z).sum(axis=0)
    words = float(use.sum() ** 2 / (use @ use)) if use.any() else 0.0
    return Ceiling(changed, MEAN_SIZE * float(size.sum()) / unit, words)


# -- edits ----------------------------------------------------------------------------------------------------


class Unidentified(ValueError):
    """The contrast cannot be told from what else differs between the two sides."""


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


class Edits:
    """Versions whose outcomes tell the effect of covariates beside groups, worked out once for any number of these.

    Least squares with an effect for each text. Words and characters that come with a group nearly always would make
    a claim of any size uncertain: what placebo edits did in all bounds what their words and characters can do, and is
    the prior of these effects (ridge). Where nothing tells the last covariate (length) from the groups and the other
    covariates, it stays out: a group whose words are all one letter longer is compared all the same.

    Parameters
    ----------
    covariates, text
        Of versions, originals among them.
    others : (n, g) array
        Columns that are taken out too: the groups.
    words : (n, w) sparse array
        1 for a word that was put in, -1 for one that was taken out.
    neutral : (n,) array of bool
        Originals and placebos.
    unit : (n,) array
        What is independent of all else: the text, or the source that it shares with others.
    """

    def __init__(
        self, covariates: Floats, others: Floats, text: Ints, words: csr_array, neutral: Bools, unit: Ints
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
        self._random = Random(x[self._kept], z, lost=len(np.unique(own)))

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
        curve = self._random.curve(y[self._kept])
        c = self._words.T @ left.T
        tau2 = 0.0 if curve is None else curve.likely**2
        covariance = (score.T @ score) * self._units / max(1, self._units - 1) + tau2 * (c.T @ c)
        covariance += (inverse[:k] * (penalty**2 * prior)) @ inverse[:k].T
        # An estimable combination has no part in the null space, groups included.
        unit = self._scale[:k]
        return Adjustment(
            effect=effect[:k] / unit,
            covariance=covariance / np.outer(unit, unit),
            span=self._span * unit[:, None] / unit[None, :],
        )

    def _ridge(self, y: Floats) -> tuple[Floats, Floats]:
        """Prior variance and penalty of each column: of all covariates but the first, being edited."""
        x = self._x
        prior, penalty = np.zeros(x.shape[1]), np.zeros(x.shape[1])
        resid = y - x @ (self._plain @ (x.T @ y))
        left = max(1, len(y) - self._texts - x.shape[1])
        done = float((y[self._neutral] ** 2).sum())
        for column in range(1, self._k):
            square = float((x[self._neutral, column] ** 2).sum())
            if square > 0 and done > 0:
                prior[column] = done / square
                penalty[column] = float(resid @ resid) / left / prior[column]
        return prior, penalty


def within(table: Floats, text: Ints) -> Floats:
    """Minus the mean of each text."""
    from scipy.sparse import csr_array

    size = np.maximum(np.bincount(text), 1)
    member = csr_array((np.ones(len(text)), (text, np.arange(len(text)))), shape=(len(size), len(text)))
    return np.asarray(table - ((member @ table) / size[:, None])[text])
