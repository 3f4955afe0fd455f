"""What a comparison of two runs gives: of texts or rows, and of tables of recorded outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Change = Literal["better", "worse", "same", "unclear", "untested"]
Fate = Literal["new", "gone", "kept"]
Unit = Literal["text", "row"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanDifference:
    """One entry of the plans (or of what they resolved to) that is not the same."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Tested:
    """What a comparison of one figure said; units are source texts, or rows."""

    change: Change = "untested"
    test: str = ""
    before: float | None = None  # on the units that were compared
    after: float | None = None
    difference: float | None = None  # ``after - before``, with its 95 % interval
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    n_before: int = 0  # units compared; equal in a paired test
    n_after: int = 0
    only_before: int | None = None  # units of a paired test that changed in one run only
    only_after: int | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class RateChange(Tested):
    """One rate in both runs: the share of variants whose answer changed, or a score of rows (``format`` names it)."""

    model: str
    format: str
    attributes: tuple[str, ...]
    n_variants: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class FindingChange:
    """One key of shown findings: in which runs, with which ids, and why it may be missing in one."""

    key: str
    fate: Fate
    before: tuple[str, ...]
    after: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What `compare` hands out."""

    before: str
    after: str
    plans: tuple[PlanDifference, ...]
    rates: tuple[RateChange, ...]
    findings: tuple[FindingChange, ...]
    notes: tuple[str, ...] = ()
    unit: Unit = "text"


@dataclass(frozen=True, kw_only=True, slots=True)
class CategoryChange:
    """The rate of one category in both; p values are None where one of the two has nobody."""

    group: str
    table: str
    category: str
    n_before: int | None = None
    x_before: int | None = None
    rate_before: float | None = None
    ratio_before: float | None = None
    ratio_text_before: str | None = None
    n_after: int | None = None
    x_after: int | None = None
    rate_after: float | None = None
    ratio_after: float | None = None
    ratio_text_after: str | None = None
    p_value: float | None = None
    p_adjusted: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TablesComparison:
    """Two sets of tables of recorded outcomes."""

    kind: Literal["ll144"] = "ll144"
    before: str
    after: str
    settings: tuple[PlanDifference, ...]
    notes: tuple[str, ...]
    rows: tuple[CategoryChange, ...]
