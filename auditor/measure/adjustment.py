"""What an edit does by itself, whoever the text is about: estimated from all edits, and taken out of contrasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from auditor.measure.likelihood import MOST_ROWS, Floats, Ints, likelihood

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


def adjustment(y: Floats, covariates: Floats, others: Floats, text: Ints, words: csr_array) -> Adjustment:
    """The effect of covariates beside groups, least squares over versions with an effect for each text.

    Where nothing tells the last covariate (length) from the groups and the other covariates, it stays out: a group
    whose words are all one letter longer is compared all the same.

    Parameters
    ----------
    y, covariates, text
        Of versions, originals among them.
    others : (n, g) array
        Columns that are taken out too: the groups.
    words : (n, w) sparse array
        1 for a word that was put in, -1 for one that was taken out.
    """
    k = covariates.shape[1]
    _, by_text, size = np.unique(text, return_inverse=True, return_counts=True)
    x = np.column_stack([covariates, others])
    scale = np.maximum(np.abs(x).max(axis=0, initial=0.0), 1e-12)

    if not len(y):
        return Adjustment(effect=np.zeros(k), covariance=np.zeros((k, k)), span=np.zeros((k, k)))
    x, y = _within(x / scale, by_text), _within(y[:, None], by_text)[:, 0]
    rest = np.delete(x, k - 1, axis=1)
    last = x[:, k - 1]
    unseen = bool(last.any()) and float(np.abs(last - rest @ np.linalg.lstsq(rest, last)[0]).max()) < 1e-6
    if unseen:
        x[:, k - 1] = 0.0
    inverse = np.linalg.pinv(x.T @ x, rcond=1e-8, hermitian=True)
    effect = inverse @ (x.T @ y)
    left = inverse[:k] @ x.T
    resid = y - x @ effect
    score = np.column_stack([np.bincount(by_text, row * resid) for row in left])
    kept = slice(None) if len(y) <= MOST_ROWS else by_text < MOST_ROWS * len(size) // len(y)
    z = words[kept].toarray()
    found = likelihood(
        y[kept],
        x[kept],
        _within(z[:, np.any(z != 0, axis=0)], by_text[kept]),
        lost=len(np.unique(by_text[kept])),
    )
    c = words.T @ left.T
    tau2 = 0.0 if found is None else found.likely
    texts = len(size)
    covariance = (score.T @ score) * texts / max(1, texts - 1) + tau2 * (c.T @ c)
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


def _within(table: Floats, text: Ints) -> Floats:
    """Minus the mean of each text."""
    from scipy.sparse import csr_array

    size = np.maximum(np.bincount(text), 1)
    member = csr_array((np.ones(len(text)), (text, np.arange(len(text)))), shape=(len(size), len(text)))
    return np.asarray(table - ((member @ table) / size[:, None])[text])
