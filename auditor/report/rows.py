"""Rows and columns of the comparison that every report of a run shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.core.record.parts import Control
from auditor.core.types import Estimate, Finding
from auditor.measure.two_models import MIN_SEEDS as MIN_SEEDS
from auditor.report import words

DECLARED = "not measured: the model is declared deterministic"


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """One column of the comparison: a model, in one prompt format."""

    model: str
    format: str
    name: str  # what the column is called


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """What one subject did in one row."""

    rate: Estimate | None
    noise: Control | None
    verdict: str
    hidden: Estimate | None  # share of judged joint variants that are hidden
    claim: Finding | None
    placebo: Estimate | None = None  # how often edits that change no group changed the answer

    @property
    def noise_text(self) -> str:
        """The same-prompt noise in words."""
        return noise_text(self.noise)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One attribute set, with one cell per subject."""

    label: str
    attributes: tuple[str, ...]
    seeds: int | None
    valid: int | None
    discarded: int | None
    cells: tuple[Cell, ...]


def split(rows: Sequence[Row]) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Part rows into those of at least `MIN_SEEDS` seeds and the others; few others stay where they are."""
    few = tuple(r for r in rows if r.attributes and (r.seeds or 0) < MIN_SEEDS)
    if len(few) < 2 or not any(r.attributes and r not in few for r in rows):
        return tuple(rows), ()
    return tuple(r for r in rows if r not in few), few


def noise_text(noise: Control | None) -> str:
    """Put a noise floor into words."""
    if noise is None:
        return "not measured"
    if noise.declared:
        return DECLARED
    if noise.estimate is not None:
        return words.interval(noise.estimate)
    return noise.reason or "not measured"
