"""How much the effects of words vary, by restricted likelihood."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Shares of a row's variance that its words may have; the restricted likelihood is taken over them.
SHARES: Floats = np.r_[
    0.0,
    np.geomspace(0.0005, 0.02, 9),
    np.linspace(0.025, 0.95, 38),
    0.97,
    0.985,
    0.993,
    0.998,
    0.9995,
    0.9999,
    0.99999,
]
LEAST_NOISE = (
    1e-4  # share of the variance that is never words': a model without noise is no reason to divide by 0
)
MOST_ROWS = 2000  # rows that the variance of the words is estimated from


class Variances(NamedTuple):
    """Variance of the effects of words, and of the rest.

    Attributes
    ----------
    words, rest : float
        Means under the restricted likelihood, each standard deviation of words as likely before.
    likely : float
        The most likely variance of words.
    unsure : float
        Variance of ``words``.
    """

    words: float
    rest: float
    likely: float
    unsure: float


def likelihood(y: Floats, x: Floats, z: Floats, lost: int = 0) -> Variances | None:
    """Of ``y`` with fixed effects of ``x`` and random ones of ``z``; None where nothing varies.

    ``lost`` are degrees of freedom that went before, as by taking out the means of texts.
    """
    q, r = np.linalg.qr(x)
    diagonal = np.abs(np.diagonal(r))
    q = q[:, diagonal > 1e-9 * diagonal.max(initial=1e-9)]
    left = len(y) - q.shape[1] - lost
    if not z.shape[1] or left <= 2:
        return None
    typical = float((z * z).sum()) / len(y)
    resid = y - q @ (q.T @ y)
    total = float(resid @ resid)
    if total <= 1e-20 * max(1.0, float(y @ y)):
        return None
    z = z - q @ (q.T @ z)
    # Eigenvectors of the smaller Gram matrix in place of a singular value decomposition: several times faster.
    if z.shape[1] <= len(y):
        squares, v = np.linalg.eigh(z.T @ z)
        seen = v.T @ (z.T @ resid)
    else:
        squares, u = np.linalg.eigh(z @ z.T)
        seen = (u.T @ resid) * np.sqrt(np.maximum(squares, 0.0))
    found = squares > 1e-9 * max(float(squares.max()), 1e-9)
    s2, projected = squares[found], seen[found] ** 2 / squares[found]
    rest = max(total - float(projected.sum()), LEAST_NOISE * total)
    ratio = SHARES / (1 - SHARES) / typical
    d = 1.0 + ratio[:, None] * s2
    quad = rest + (projected / d).sum(axis=1)
    log = -0.5 * np.log(d).sum(axis=1) - 0.5 * left * np.log(quad)
    # The most likely variance is often 0 where little is known of it; the mean over all of them is not.
    weight = np.gradient(np.sqrt(ratio)) * np.exp(log - log.max())
    weight /= weight.sum()
    tau2, noise2 = ratio * quad / left, quad / left
    mean = float(weight @ tau2)
    return Variances(
        words=mean,
        rest=float(weight @ noise2),
        likely=float(tau2[log.argmax()]),
        unsure=float(weight @ (tau2 - mean) ** 2),
    )
