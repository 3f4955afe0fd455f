"""What the model said about cases, and the limits within which it was asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]
NOT_JUDGED = int(np.iinfo(np.int64).min)  # stands where the model gave no label; equal to no label


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """When a search stops, whatever it has found.

    Parameters
    ----------
    evaluations : int, optional
        Rows passed to the model at most.
    seconds : float, optional
        Wall time at most, from the making of the `Evaluator`.
    """

    evaluations: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """What the model says about a batch of cases.

    Attributes
    ----------
    labels : array of int64, shape (n, m)
        The label of each case with each combination of protected values.
    possible : array of bool, shape (n, m)
        Which of these rows a person could have (all, if the schema has no constraints).
    discriminatory : array of bool, shape (n,)
        Two possible rows of the case get different labels.
    off_manifold : array of bool, shape (n,)
        The label differs only if rows that no person could have are counted: reported apart.

    Notes
    -----
    Where the model gave no label, ``labels`` holds `NOT_JUDGED` and ``possible`` is False.
    """

    labels: Labels
    possible: NDArray[np.bool_]
    discriminatory: NDArray[np.bool_]
    off_manifold: NDArray[np.bool_]

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Cases without a difference for which some row got no label, shape (n,): neither yes nor no."""
        return np.asarray((self.labels == NOT_JUDGED).any(axis=1) & ~self.discriminatory)
