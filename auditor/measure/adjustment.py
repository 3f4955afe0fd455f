"""What an edit does by itself, whoever the text is about: estimated from all edits, and taken out of contrasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from auditor.measure.likelihood import MOST_ROWS, Random
from auditor.measure.observations import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


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
        self._kept = np.flatnonzero(
            self._text < (len(size) if len(x) <= MOST_ROWS else MOST_ROWS * len(size) // len(x))
        )
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
