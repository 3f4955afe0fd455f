"""When two outputs count as different: Themis, Definition 3.3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ConfigError, PluginError

RESOLUTION = 1e-9  # scores are kept as whole multiples of it


@dataclass(frozen=True, kw_only=True, slots=True)
class Distance:
    """A distance between outputs, in [0, 1], and the threshold above which two outputs differ.

    Parameters
    ----------
    kind : {"exact", "absolute", "table"}
        ``exact``: 0 if equal, else 1. ``absolute``: ``|a - b| / scale`` of numbers. ``table``: listed pairs.
    threshold : float
        Outputs differ if their distance is above it; in [0, 1).
    scale : float
        For ``absolute``: the difference of outputs that counts as 1.
    table : mapping of (label, label) to float
        For ``table``: symmetric; pairs that are not listed have distance 1, a label and itself 0.

    Examples
    --------
    >>> near = Distance(kind="table", threshold=0.3, table={("good", "excellent"): 0.2})
    >>> near.between("excellent", "good"), near.between("good", "bad")
    (0.2, 1.0)
    """

    kind: Literal["exact", "absolute", "table"] = "exact"
    threshold: float = 0.0
    scale: float = 1.0
    table: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in ("exact", "absolute", "table"):
            raise ConfigError(f"distance must be exact, absolute or table; got {self.kind!r}")
        if not 0 <= self.threshold < 1 or not self.scale > 0:
            raise ConfigError(
                f"a distance needs 0 <= threshold < 1 and scale > 0, got {self.threshold}, {self.scale}"
            )
        if any(not 0 <= v <= 1 for v in self.table.values()):
            raise ConfigError("distances in a table must lie in [0, 1]")

    def between(self, a: str, b: str) -> float:
        """The distance of two labels by name (``exact`` and ``table``)."""
        if a == b:
            return 0.0
        return self.table.get((a, b), self.table.get((b, a), 1.0)) if self.kind == "table" else 1.0

    def codes(self, answers: NDArray[Any]) -> NDArray[np.int64]:
        """Scores as whole multiples of 1e-9 (``absolute``)."""
        try:
            numbers = answers.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ConfigError("--distance absolute needs a model that returns numbers") from error
        if not np.isfinite(numbers).all() or (np.abs(numbers) > 1e9).any():
            raise PluginError("the model returned NaN, an infinite number, or one beyond 1e9")
        return np.rint(numbers / RESOLUTION).astype(np.int64)

    def value(self, code: int) -> float:
        """The score behind a code of `codes`."""
        return code * RESOLUTION

    def differ(
        self, labels: NDArray[np.int64], possible: NDArray[np.bool_] | None, name: Callable[[int], str]
    ) -> NDArray[np.bool_]:
        """Which rows of labels, shape (n, m), hold two that differ, shape (n,).

        Cells where ``possible`` is False are left out; ``name`` gives the name of a label code.
        """
        n, m = labels.shape
        if self.kind == "table" and m:
            return self._by_table(labels, possible, name)
        if m <= 1:
            return np.zeros(n, dtype=bool)
        if possible is None or possible.all():
            if self.kind == "exact":
                if m == 2:
                    return np.asarray(labels[:, 0] != labels[:, 1])
                return np.asarray((labels[:, 1:] != labels[:, :1]).any(axis=1))
            low, high = labels.min(axis=1), labels.max(axis=1)
        else:
            limits = np.iinfo(np.int64)
            low = np.where(possible, labels, limits.max).min(axis=1)
            high = np.where(possible, labels, limits.min).max(axis=1)
            low = np.where(possible.any(axis=1), low, high)
        if self.kind == "exact":
            return np.asarray(high != low)
        return np.asarray(high - low > self.threshold * self.scale / RESOLUTION)

    def _by_table(
        self, labels: NDArray[np.int64], possible: NDArray[np.bool_] | None, name: Callable[[int], str]
    ) -> NDArray[np.bool_]:
        distinct, inverse = np.unique(labels, return_inverse=True)
        inverse = inverse.reshape(labels.shape)
        names = [name(int(code)) for code in distinct]
        apart = np.array([[self.between(a, b) > self.threshold for b in names] for a in names], dtype=bool)
        held = np.zeros((len(labels), len(distinct)), dtype=bool)
        rows = np.repeat(np.arange(len(labels)), labels.shape[1])
        keep = slice(None) if possible is None else possible.ravel()
        held[rows[keep], inverse.ravel()[keep]] = True
        return np.asarray(((held.astype(np.int64) @ apart) * held).any(axis=1))


EXACT = Distance()
