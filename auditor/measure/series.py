"""What a series of runs of one plan comes to: each figure by date, and which texts moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from auditor.measure.change import Look

ANSWERS = "answers"  # the figure of all answers, whoever they are about


class Key(NamedTuple):
    """What is followed: a pair of groups, or all answers, of one model."""

    model: str
    format: str
    attribute: str
    group: str
    reference: str
    label: str


class Moved(NamedTuple):
    """A text whose value is another than before."""

    id: str
    text: str
    before: float
    now: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One figure at one date."""

    run: str
    date: str
    value: float | None
    low: float | None
    high: float | None
    look: Look


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One figure over all dates."""

    key: Key
    unit: str
    points: tuple[Point, ...]

    @property
    def changed(self) -> tuple[Point, ...]:
        """The dates at which a change was found."""
        return tuple(point for point in self.points if point.look.changed)


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """All figures of a folder of runs.

    Attributes
    ----------
    runs : tuple of str
        Those of the plan, by date.
    others : mapping of str to str
        Runs that were left out, and why.
    moved : tuple of Moved
        Texts whose answers moved most at the last date where a change was found, else at the last date.
    moved_at : str
        That run.
    """

    folder: str
    runs: tuple[str, ...]
    others: Mapping[str, str]
    series: tuple[Series, ...]
    moved: tuple[Moved, ...] = ()
    moved_at: str = ""

    @property
    def changed(self) -> bool:
        """Whether a change was found at the last date."""
        return any(one.points[-1].look.changed for one in self.series if one.points)

    def as_record(self) -> dict[str, object]:
        """Plain data."""
        return {
            "folder": self.folder,
            "runs": list(self.runs),
            "others": dict(self.others),
            "changed": self.changed,
            "series": [
                one.key._asdict()
                | {
                    "unit": one.unit,
                    "points": [
                        {"run": p.run, "date": p.date, "value": p.value, "low": p.low, "high": p.high}
                        | {
                            "difference": p.look.difference,
                            "p_value": p.look.p_value,
                            "e_value": p.look.e_value,
                            "capital": p.look.capital,
                            "needed": p.look.needed,
                            "texts": p.look.texts,
                            "changed": p.look.changed,
                        }
                        for p in one.points
                    ],
                }
                for one in self.series
            ],
            "moved": [one._asdict() for one in self.moved],
            "moved_at": self.moved_at,
        }
