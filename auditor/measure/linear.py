"""One linear estimate with two kinds of uncertainty: of the texts, and of the words that stand for a group.

A row is one contrast of one text; rows of one source text (the text itself, or what it shares with others) may depend
on each other in any way. The words that a contrast puts in and takes out are random effects that cross texts (multiple
membership): a word is one unit, however many texts it stands in.

*Words.* A token that an edit puts in or takes out has an effect of its own, for a group or not: a random draw whose
variance is one and the same for all tokens of a run, neutral ones included. It is estimated by moments from pairs of
*different* texts that share a token: what happens within one text (an answer on the edge turns with any edit) says
nothing about words.

*Edits.* Being edited, the place of the edit, a word more and a character more do something by themselves: estimated
from all edits, and taken out of contrasts.

References
----------
Clark 1973; Baayen, Davidson and Bates 2008; Judd, Westfall and Kenny 2012: words as random effects. J. K. Haseman,
R. C. Elston, Behavior Genetics 2 (1972): a variance component by regression on pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
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
MIN_ROWS = 6  # that any weights are spread over
LEAST_RATIO, MOST_RATIO, STEPS = 1e-4, 1e6, 4  # weights are made for ratios that are e^(1/4) apart
MOST_DENSE = 1_000_000  # cells of rows by words that are kept with their zeros
LEAST_REST = 0.02  # share of the variance of a row that is not words', where weights are made
ROUNDING = 1e-9  # standard errors below it are errors of adding up


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
        log = -(self.df / 2) * (np.log(total) + seen / total)
        weight = np.exp(log - log.max()) * np.gradient(np.sqrt(variance))
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

        Raises `Unidentified` where no edit tells these covariates from the groups.
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


# -- contrasts --------------------------------------------------------------------------------------------------------


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
    p values and limits are means over what `Words` leaves open of it.

    Raises `Unidentified` where there is no contrast between groups, or nothing tells it from another change that always
    comes with it.
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
