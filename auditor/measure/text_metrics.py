"""What pairs of free answers came to, in columns beside the table of observations."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

import numpy as np

from auditor.measure.observations import Arm, Codes, Direction, Growing, Observations


class About(NamedTuple):
    """What one difference is about; ``directions`` is empty where all of an attribute set are taken."""

    model: str
    format: str
    attributes: tuple[str, ...]
    directions: tuple[Direction, ...] = ()

    @property
    def undirected(self) -> About:
        """All directions of the attribute set."""
        return self._replace(directions=())


class Pair(NamedTuple):
    """One metric of one version against its original.

    ``value`` is a difference or a distance, ``spread`` the same of two answers to one prompt; ``splits`` are as
    `splits` has them.
    """

    about: About
    case_id: str
    variant_id: str
    value: float
    spread: float | None = None
    splits: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The metrics of one variant against its original; a metric that could not be measured is missing."""

    signed: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)
    between: Mapping[str, float] = field(default_factory=dict)
    within: Mapping[str, float] = field(default_factory=dict)
    splits: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)


def splits(matrix: Sequence[Sequence[float]], n: int) -> tuple[float, ...]:
    """Excess of between over within for every way to call ``n`` of the answers the original's, the real one first.

    ``matrix`` holds distances, the original's ``n`` answers first; one side has two answers or more.
    """
    every = range(len(matrix))
    out = []
    for chosen in combinations(every, n):
        rest = [i for i in every if i not in chosen]
        between = fmean(matrix[i][j] for i in chosen for j in rest)
        own = [fmean(matrix[i][j] for i, j in combinations(part, 2)) for part in (chosen, rest) if len(part) > 1]
        out.append(between - fmean(own))
    return tuple(out)


class Metrics:
    """Columns beside ``table``, that of the versions: a row for each version, model, format and metric."""

    def __init__(self, table: Observations) -> None:
        self.table = table
        self._metrics: Codes[str] = Codes()
        self._rows = Growing("ihhhq")  # version, model, format, metric, where its splits begin
        self._values, self._spreads, self._splits = array("d"), array("d"), array("d")

    def add(self, version: int, model: str, format: str, measured: Measured) -> None:
        """Add the metrics of a version against its original."""
        for metric, (before, after) in measured.signed.items():
            self._row(version, model, format, metric, after - before, measured.noise.get(metric))
        for metric, between in measured.between.items():
            self._row(version, model, format, metric, between, measured.within.get(metric))
            self._splits.extend(measured.splits.get(metric, ()))

    def prefer(self, version: int, model: str, format: str, value: float) -> None:
        """Add a judge's preference in [-1, 1]: above 0 the answer to the version was preferred."""
        self._row(version, model, format, "preference", value, None)

    def _row(self, version: int, model: str, format: str, metric: str, value: float, spread: float | None) -> None:
        place = self.table.models.of(model), self.table.formats.of(format)
        self._rows.add(version, *place, self._metrics.of(metric), len(self._splits))
        self._values.append(value)
        self._spreads.append(math.nan if spread is None else spread)

    def of(self, metric: str, *, placebo: bool = False) -> Iterator[Pair]:
        """The rows of one metric, of edited versions or of placebos."""
        version, model, format, code, begin = self._rows.arrays()
        columns, end = self.table.columns(), [*begin[1:], len(self._splits)]
        text, shape = columns.version_text[version], columns.version_shape[version]
        own = self.table.in_arm(Arm.PLACEBO if placebo else Arm.EDITED)
        for row in np.flatnonzero((code == self._metrics.get(metric)) & own[shape]).tolist():
            spread = self._spreads[row]
            yield Pair(
                self._about(model[row], format[row], shape[row]),
                self.table.texts.values[text[row]],
                self.table.name(int(version[row])),
                self._values[row],
                None if math.isnan(spread) else spread,
                tuple(self._splits[begin[row] : end[row]]),
            )

    def places(self) -> set[About]:
        """What edited versions were measured on."""
        version, model, format, *_ = self._rows.arrays()
        shape = self.table.columns().version_shape[version]
        cells = {*zip(model.tolist(), format.tolist(), shape.tolist(), strict=True)}
        edited = self.table.in_arm(Arm.EDITED)
        return {self._about(*cell) for cell in cells if edited[cell[2]]}

    def _about(self, model: int, format: int, shape: int) -> About:
        of = self.table.shapes.values[shape]
        return About(self.table.models.values[model], self.table.formats.values[format], of.attributes, of.directions)
