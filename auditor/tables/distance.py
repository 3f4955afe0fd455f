"""When two outputs count as different: Themis, Definition 3.3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError, PluginError
from auditor.tables.columns import Mask, name

Labels = NDArray[np.int64]
RESOLUTION = 1e-9  # scores are kept as whole multiples of it


@dataclass(frozen=True, kw_only=True, slots=True)
class Distance:
    """A distance between outputs, in [0, 1], and the threshold above which two outputs differ.

    Examples
    --------
    >>> near = Distance(kind="table", threshold=0.3, table={("good", "excellent"): 0.2})
    >>> near.between("excellent", "good"), near.between("good", "bad")
    (0.2, 1.0)
    """

    # ``exact``: 0 if equal, else 1. ``absolute``: ``|a - b| / scale`` of numbers. ``table``: listed pairs.
    kind: Literal["exact", "absolute", "table"] = "exact"
    threshold: float = 0.0  # outputs differ if their distance is above it; in [0, 1)
    scale: float = 1.0  # for ``absolute``: the difference of outputs that counts as 1
    # for ``table``: symmetric; pairs that are not listed have distance 1, a label and itself 0
    table: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1 or not self.scale > 0:
            raise ConfigError(
                "a distance needs 0 <= threshold < 1 and scale > 0 (--distance-threshold, --distance-scale), got "
                f"{self.threshold:g} and {self.scale:g}"
            )
        if any(not 0 <= v <= 1 for v in self.table.values()):
            raise ConfigError("distances in a table must lie in [0, 1]")

    def between(self, a: str, b: str) -> float:
        """The distance of two labels by name (``exact`` and ``table``)."""
        if a == b:
            return 0.0
        return self.table.get((a, b), self.table.get((b, a), 1.0)) if self.kind == "table" else 1.0

    def codes(self, answers: NDArray[np.generic]) -> Labels:
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

    @property
    def limit(self) -> int:
        """The largest difference of two codes of `codes` that counts as equal: whole, so free of rounding."""
        return round(self.threshold * self.scale / RESOLUTION)

    def differ(self, labels: Labels, possible: Mask | None, name: Callable[[int], str]) -> Mask:
        """Which rows of labels, shape (n, m), hold two that differ, shape (n,).

        Cells where ``possible`` is False are left out; ``name`` gives the name of a label code.
        """
        n, m = labels.shape
        if m <= 1:
            return np.zeros(n, dtype=bool)
        if self.kind == "table":
            return np.asarray(self._by_table(labels, possible, name).any(axis=1))
        if self.kind == "exact" and (possible is None or possible.all()):
            if m == 2:
                return np.asarray(labels[:, 0] != labels[:, 1])
            return np.asarray((labels[:, 1:] != labels[:, :1]).any(axis=1))
        low, high = _ends(labels, possible)
        return np.asarray(high - low > (0 if self.kind == "exact" else self.limit))

    def each(self, labels: Labels, possible: Mask | None, name: Callable[[int], str]) -> Mask:
        """Which cells differ from some other cell of their row, shape (n, m).

        Under a threshold that is not so for every cell of a row that holds two that differ: of the scores 0, 0.3 and
        0.6 at a threshold of 0.4 the middle one differs from none.
        """
        if self.kind == "exact":
            cells = np.broadcast_to(self.differ(labels, possible, name)[:, None], labels.shape)
        elif self.kind == "table":
            cells = self._by_table(labels, possible, name)
        elif not labels.size:
            cells = np.zeros(labels.shape, dtype=bool)
        else:
            low, high = (end[:, None] for end in _ends(labels, possible))
            cells = (labels - low > self.limit) | (high - labels > self.limit)
        return np.asarray(cells if possible is None else cells & possible)

    def _by_table(self, labels: Labels, possible: Mask | None, name: Callable[[int], str]) -> Mask:
        distinct, inverse = np.unique(labels, return_inverse=True)
        inverse = inverse.reshape(labels.shape)
        names = [name(int(code)) for code in distinct]
        apart = np.array([[self.between(a, b) > self.threshold for b in names] for a in names], dtype=bool)
        held = np.zeros((len(labels), len(distinct)), dtype=bool)
        rows = np.repeat(np.arange(len(labels)), labels.shape[1])
        keep = slice(None) if possible is None else possible.ravel()
        held[rows[keep], inverse.ravel()[keep]] = True
        far = (held.astype(np.int64) @ apart) > 0
        cells = far[rows, inverse.ravel()].reshape(labels.shape)
        return np.asarray(cells if possible is None else cells & possible)


def _ends(labels: Labels, possible: Mask | None) -> tuple[Labels, Labels]:
    """The smallest and the largest possible label of each row; equal where none is possible."""
    if possible is None or possible.all():
        return labels.min(axis=1), labels.max(axis=1)
    limits = np.iinfo(np.int64)
    low = np.where(possible, labels, limits.max).min(axis=1)
    high = np.where(possible, labels, limits.min).max(axis=1)
    return np.where(possible.any(axis=1), low, high), high


EXACT = Distance()


def read_distance(spec: str, threshold: float, scale: float) -> Distance:
    """The distance that a user names: ``exact``, ``absolute``, or a YAML file of distances between labels.

    ::

        good: {excellent: 0.2, poor: 0.9}     # the other way round is the same; pairs that are not listed: 1
    """
    if spec == "exact" and (threshold or scale != 1):
        raise ConfigError(
            "--distance-threshold and --distance-scale go with --distance absolute or a file of distances"
        )
    if spec in ("exact", "absolute"):
        return Distance(kind="exact" if spec == "exact" else "absolute", threshold=threshold, scale=scale)
    if not spec.endswith((".yaml", ".yml")):
        raise ConfigError(f"--distance must be exact, absolute or a .yaml file of distances; got {spec!r}")
    path, table = Path(spec), dict[tuple[str, str], float]()
    value = reading.load_yaml(path)
    if not isinstance(value, dict) or not all(isinstance(row, dict) for row in value.values()):
        raise DataFileError(f"{path}: expected distances by label, e.g. `good: {{excellent: 0.2}}`")
    for a, b, far in ((a, b, far) for a, row in value.items() for b, far in row.items()):
        pair = (name(a), name(b))
        if isinstance(a, bool) or isinstance(b, bool):
            raise DataFileError(f"{path}: yes, no, true and false are read as truth values; quote them")
        if isinstance(far, bool) or not isinstance(far, int | float):
            raise DataFileError(f"{path}: the distance of {a} and {b} is no number: {far!r}")
        if table.get(pair[::-1], far) != far:
            raise DataFileError(f"{path}: {a} and {b} have two distances, {table[pair[::-1]]} and {far}")
        table[pair] = float(far)
    return Distance(kind="table", threshold=threshold, scale=scale, table=table)
