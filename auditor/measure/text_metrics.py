"""What pairs of free answers came to, beside the table of observations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Any, NamedTuple

from auditor.measure.observations import Arm, Direction, Observations


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
    """The metrics of the versions of ``table``, each against its original."""

    def __init__(self, table: Observations) -> None:
        self.table = table
        self._pairs: dict[tuple[str, Arm], list[Pair]] = defaultdict(list)

    def add(self, version: int, model: str, format: str, measured: Measured) -> None:
        """Add the metrics of a version against its original."""
        for metric, (before, after) in measured.signed.items():
            self._put(version, model, format, metric, after - before, measured.noise.get(metric))
        for metric, between in measured.between.items():
            splits = measured.splits.get(metric, ())
            self._put(version, model, format, metric, between, measured.within.get(metric), splits)

    def prefer(self, version: int, model: str, format: str, value: float) -> None:
        """Add a judge's preference in [-1, 1]: above 0 the answer to the version was preferred."""
        self._put(version, model, format, "preference", value)

    def _put(self, version: int, model: str, format: str, metric: str, *measured: Any) -> None:
        text, shape = self.table.version_of(version)
        about = About(model, format, shape.attributes, shape.directions)
        self._pairs[metric, shape.arm].append(Pair(about, text, self.table.name(version), *measured))

    def of(self, metric: str, *, placebo: bool = False) -> list[Pair]:
        """The pairs of one metric, of edited versions or of placebos."""
        return self._pairs[metric, Arm.PLACEBO if placebo else Arm.EDITED]

    def places(self) -> set[About]:
        """What edited versions were measured on."""
        return {pair.about for (_, arm), pairs in self._pairs.items() if arm == Arm.EDITED for pair in pairs}
