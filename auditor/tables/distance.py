"""When two outputs differ: Themis, Definition 3.3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import ConfigError, PluginError
from auditor.tables.columns import Mask

Labels = NDArray[np.int64]
RESOLUTION = 1e-9  # numbers are kept as whole multiples of it


@dataclass(frozen=True, slots=True)
class Distance:
    """Labels differ if they are not equal; numbers if they are more than ``threshold`` apart."""

    threshold: float | None = None  # None: outputs are labels

    @property
    def numeric(self) -> bool:
        """Whether outputs are numbers."""
        return self.threshold is not None

    @property
    def limit(self) -> int:
        """The largest difference of two codes that counts as equal: whole, so free of rounding."""
        return round((self.threshold or 0.0) / RESOLUTION)

    def codes(self, answers: NDArray[np.generic]) -> Labels:
        """Return numbers as whole multiples of 1e-9."""
        try:
            numbers = answers.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ConfigError("--distance-threshold needs a model that returns numbers") from error
        if not np.isfinite(numbers).all() or (np.abs(numbers) > 1e9).any():
            raise PluginError("the model returned NaN, an infinite number, or one beyond 1e9")
        return np.rint(numbers / RESOLUTION).astype(np.int64)

    def differ(self, labels: Labels, possible: Mask | None) -> Mask:
        """Return which rows of labels, shape (n, m), hold two that differ; cells that are not possible are left out."""
        n, m = labels.shape
        if m <= 1:
            return np.zeros(n, dtype=bool)
        if not self.limit and (possible is None or possible.all()):
            if m == 2:
                return np.asarray(labels[:, 0] != labels[:, 1])
            return np.asarray((labels[:, 1:] != labels[:, :1]).any(axis=1))
        low, high = _ends(labels, possible)
        return np.asarray(high - low > self.limit)

    def each(self, labels: Labels, possible: Mask | None) -> Mask:
        """Return which cells differ from some other cell of their row, shape (n, m).

        Under a threshold the middle one of three numbers may differ from neither of the others.
        """
        if not self.limit or not labels.size:
            cells = np.broadcast_to(self.differ(labels, possible)[:, None], labels.shape)
        else:
            low, high = (end[:, None] for end in _ends(labels, possible))
            cells = (labels - low > self.limit) | (high - labels > self.limit)
        return np.asarray(cells if possible is None else cells & possible)


def _ends(labels: Labels, possible: Mask | None) -> tuple[Labels, Labels]:
    """The smallest and the largest possible label of each row; equal where none is possible."""
    if possible is None or possible.all():
        return labels.min(axis=1), labels.max(axis=1)
    limits = np.iinfo(np.int64)
    low = np.where(possible, labels, limits.max).min(axis=1)
    high = np.where(possible, labels, limits.min).max(axis=1)
    return np.where(possible.any(axis=1), low, high), high


LABELS = Distance()
