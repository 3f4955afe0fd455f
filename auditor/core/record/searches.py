"""Sections that the protocol hinter has in a record of texts."""

from __future__ import annotations

import msgspec

from auditor.core.record.base import Part


class Level(Part, frozen=True, kw_only=True):
    """Counts of mutants of one order under the HInter protocol.

    Attributes
    ----------
    generated, valid, discarded : int
        Mutants, and how many of them the invariant kept and rejected (RQ3.1).
    tested, errors : int
        Valid mutants that were judged, and those with another label than their original.
    originals, originals_with_error : int
        Texts with a tested mutant, and those with an error among them.
    discarded_tested, discarded_errors : int
        The same as ``tested`` and ``errors`` for discarded mutants, where the run asks about them (RQ3.2): what
        a tester without the invariant would have looked at in vain.
    """

    generated: int = 0
    valid: int = 0
    discarded: int = 0
    tested: int = 0
    errors: int = 0
    originals: int = 0
    originals_with_error: int = 0
    discarded_tested: int = 0
    discarded_errors: int = 0


class HinterPair(Part, frozen=True, kw_only=True):
    """The paper's measures of one pair of attributes."""

    attributes: tuple[str, ...]
    joint: Level
    atomic: dict[str, Level]
    hidden: int


class HinterRegions(Part, frozen=True, kw_only=True):
    """Texts by which kinds of mutant are an error."""

    attributes: tuple[str, ...]
    counts: dict[str, int]


class Split(Part, frozen=True, kw_only=True):
    """Joint and atomic errors laid beside each other (RQ1, RQ4.1).

    Attributes
    ----------
    hidden : int
        Joint errors all of whose atomic mutants are valid and no errors.
    joint_only, joint_with_atomic : int
        Joint errors without and with an atomic error among their parts.
    atomic_only, atomic_with_joint : int
        Atomic errors without and with an error among the joint mutants that they are a part of; atomic mutants
        that are part of no joint one are left out.
    """

    hidden: int = 0
    joint_only: int = 0
    joint_with_atomic: int = 0
    atomic_only: int = 0
    atomic_with_joint: int = 0


class HinterTotals(Split, frozen=True, kw_only=True):
    """One model over all pairs of attributes, or several models added up."""

    joint: Level = Level()  # mutants of two attributes
    atomic: Level = Level()  # of one
    both: Level = Level()
    regions: tuple[HinterRegions, ...] = ()


class HinterFigures(Part, frozen=True, kw_only=True):
    """Counts of the paper's tables and figures."""

    models: dict[str, HinterTotals] = msgspec.field(default_factory=dict)
    all: HinterTotals = HinterTotals()
