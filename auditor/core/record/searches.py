"""Sections that the protocol hinter has in a record of texts."""

from __future__ import annotations

import msgspec

from auditor.core.record.base import Part


class Level(Part, frozen=True, kw_only=True):
    """Counts of mutants of one order under the HInter protocol."""

    generated: int = 0
    valid: int = 0  # that the invariant kept (RQ3.1)
    discarded: int = 0  # that it rejected
    tested: int = 0  # valid mutants that were judged
    errors: int = 0  # of these, with another label than their original
    originals: int = 0  # texts with a tested mutant
    originals_with_error: int = 0
    discarded_tested: int = 0  # as `tested` and `errors`, where the run asks about discarded ones (RQ3.2)
    discarded_errors: int = 0


class Split(Part, frozen=True, kw_only=True):
    """Joint errors by their atomic parts, and atomic errors by the joint mutants that they are part of (RQ1, RQ4.1)."""

    hidden: int = 0  # joint errors, all atomic mutants of which are valid and no errors
    joint_only: int = 0  # joint errors without an atomic error among their parts
    joint_with_atomic: int = 0
    atomic_only: int = 0  # atomic errors that are part of joint mutants, none of which is an error
    atomic_with_joint: int = 0


class HinterPair(Split, frozen=True, kw_only=True):
    """The paper's measures of one pair of attributes."""

    attributes: tuple[str, ...]
    joint: Level
    atomic: dict[str, Level]


class HinterTotals(Split, frozen=True, kw_only=True):
    """One model over all pairs of attributes, or several models added up."""

    joint: Level = Level()  # mutants of two attributes
    atomic: Level = Level()  # of one
    both: Level = Level()


class HinterFigures(Part, frozen=True, kw_only=True):
    """Counts of the paper's tables and figures."""

    models: dict[str, HinterTotals] = msgspec.field(default_factory=dict)
    all: HinterTotals = HinterTotals()
