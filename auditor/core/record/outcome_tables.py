"""Tables of recorded outcomes: the record of ``audit ll144``."""

from __future__ import annotations

from auditor.core.record.base import Part


class Tool(Part, frozen=True, kw_only=True):
    """What made the record."""

    name: str = ""
    version: str = ""


class DataFile(Part, frozen=True, kw_only=True):
    """The file that the outcomes come from."""

    file: str = ""
    sha256: str = ""
    rows: int | None = None
    source: str | None = None
    without_outcome: int = 0
    rankings: int = 0
    left_out: int = 0
    unread: int = 0
    models: tuple[str, ...] = ()


class Category(Part, frozen=True, kw_only=True):
    """One category of one table."""

    category: str
    n: int
    x: int
    rate: float | None = None
    rate_text: str | None = None
    impact_ratio: float | None = None
    impact_ratio_text: str | None = None
    impact_ratio_exact: str | None = None
    ratio_to_excluded_text: str | None = None
    ratio_to_steady_text: str | None = None
    ir_ci95_best: tuple[float, float] | None = None  # in records of version 0.2, in place of the next
    ir_ci95: tuple[float, float] | None = None
    reason: str | None = None
    share: float | None = None
    below_two_percent: bool = False
    excluded: bool = False
    justification: str | None = None
    below_four_fifths: bool | None = None
    fisher_p: float | None = None
    fisher_p_holm: float | None = None
    z: float | None = None
    one_person_flip: bool | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval that allows for the choice of the reference."""
        return self.ir_ci95_best or self.ir_ci95

    @property
    def alarm(self) -> bool:
        """Whether it is below four-fifths by more than chance: the upper limit of its ratio is."""
        return self.interval is not None and self.interval[1] < 0.8


class TableFacts(Part, frozen=True, kw_only=True):
    """What a whole table comes to."""

    n: int
    reference: str | None = None
    excluded_reference: str | None = None
    steady_reference: str | None = None
    omnibus_p: float | None = None


class UnknownBound(Part, frozen=True, kw_only=True):
    """Between which ends a ratio could lie if people of unknown category were known."""

    table: str
    category: str
    reference: str
    low_text: str
    high_text: str


Tables = dict[str, tuple[Category, ...]]


class Pool(Part, frozen=True, kw_only=True):
    """The tables of everybody, or of a group."""

    group: str = ""
    tables: Tables | None = None
    table_facts: dict[str, TableFacts] | None = None
    unknown_count: int = 0
    unknown_bounds: tuple[UnknownBound, ...] = ()
    unknown_bounds_reason: str | None = None


class Outcomes(Pool, frozen=True, kw_only=True):
    """Rates and impact ratios, and the choices behind them."""

    mode: str
    data_kind: str | None = None
    test_data_reason: str | None = None
    test_data_generation: str | None = None
    audit_date: str | None = None
    distribution_date: str | None = None
    partly_known: bool = False
    unknown_sex: int = 0
    unknown_race_ethnicity: int = 0
    median: float | None = None
    median_population: str | None = None
    median_n: int = 0
    overall_rate: float | None = None
    overall_count: str = ""
    tie_share: float | None = None
    tie_count: str = ""
    groups: tuple[Pool, ...] = ()

    @property
    def pools(self) -> tuple[Pool, ...]:
        """Everybody, where there are tables of everybody, then the groups."""
        return (*((self,) if self.tables else ()), *self.groups)
