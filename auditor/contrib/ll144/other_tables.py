"""Compares tables with published ratios and with the tables of another run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from auditor.contrib.ll144.applicants import ALL, EQUAL, TRUNCATED, Cell, printed
from auditor.contrib.ll144.breakdowns import NAMES, place_of
from auditor.core.record import RunRecord
from auditor.core.record.outcome_tables import Category
from auditor.measure.impact import FOUR_FIFTHS, Count, ImpactTable, Row, impact_ratio, ratio_text, round_half_up
from auditor.measure.run_changes import CategoryChange, PlanDifference, TablesComparison

WITHIN, NOT = "within rounding", "not reproducible"
VERDICTS = (EQUAL, TRUNCATED, WITHIN, NOT)
_DIGITS = {0: "whole percent", 1: "one decimal of a percent", 2: "two decimals", 3: "three decimals"}


def published(tables: Mapping[str, ImpactTable], cells: Sequence[Cell]) -> dict[str, object] | None:
    """Compare published ratios with those computed here; None where none was given."""
    known = _placed(cells)
    rows = []
    for (name, where), cell in known.items():
        if cell.published is None:
            continue
        table = tables[name]
        by_name = {row.count.category: row for row in table.rows}
        row, reference = by_name[where], table.reference or ""
        verdict, how = _verdict(cell, row, by_name.get(reference), known.get((name, reference)))
        line: dict[str, str | None] = {"table": name, "category": where, "published": cell.published}
        computed = None if row.ratio is None else ratio_text(row.ratio)
        rows.append(line | {"computed": computed, "verdict": verdict, "how": how})
    if not rows:
        return None
    return {"counts": {v: sum(row["verdict"] == v for row in rows) for v in VERDICTS}, "rows": rows}


def _placed(cells: Sequence[Cell]) -> dict[tuple[str, str], Cell]:
    """Return the lines of counts by table and category, without those of unknown people."""
    published = {}
    for cell in cells:
        name = "sex" if cell.race == ALL else "race_ethnicity" if cell.sex == ALL else "intersectional"
        category = place_of(cell, name)
        if category and ALL not in category:
            published[name, category] = cell
    return published


def _verdict(cell: Cell, row: Row, top: Row | None, reference: Cell | None) -> tuple[str, str]:
    value = printed(cell.published or "")
    if value is None:
        return NOT, "the published value is no number"
    if row.ratio is None or top is None:
        return NOT, row.reason
    fits = value.fits(row.ratio)
    if fits is not None:
        return fits, "" if fits == EQUAL else "its last digits were cut, not rounded"
    for digits, rounding in _DIGITS.items():
        mine, best = (Fraction(round_half_up(100 * (r.count.rate or Fraction(0)), digits)) for r in (row, top))
        if best and value.fits(mine / best):
            return WITHIN, f"from rates rounded to {rounding} before they were divided"
    if reference is not None:
        low, high = _range(cell, reference)
        half = value.step / 2
        if low is not None and high is not None and low - half <= value.value <= high + half:
            return WITHIN, "the given rates leave room for it"
    return NOT, ""


def _range(cell: Cell, reference: Cell) -> tuple[Fraction | None, Fraction | None]:
    """Return the lowest and highest ratio to a reference that given rates leave open."""
    (low, high), (low0, high0) = ((c.low, c.high) for c in (cell, reference))
    if low is None or high is None or low0 is None or high0 is None:
        return None, None
    pairs = ((low, high0), (high, low0))
    return tuple(  # type: ignore[return-value]
        impact_ratio(Count(category="", n=cell.n, x=x), Count(category="", n=reference.n, x=x0)) for x, x0 in pairs
    )


def open_counts(cells: Sequence[Cell], tables: Mapping[str, ImpactTable]) -> Iterator[str]:
    """Yield the consequences of given rates; nothing where counts were given."""
    open_cells = [c for c in cells if c.low is not None and c.high is not None]
    if not open_cells:
        return
    wide = [c for c in open_cells if c.low != c.high]
    text = "Rates were given, not counts: each count is the whole number whose share is nearest to the rate. "
    if wide:
        most = max(wide, key=lambda c: (c.high or 0) - (c.low or 0))
        text += (
            f"In {len(wide):,} of {len(open_cells):,} lines several fit, such as {most.low:,} to {most.high:,} of "
            f"{most.n:,}: ratios, intervals and p values there are as exact as the rates are."
        )
    else:
        text += "In every line one count fits."
    yield text
    known = _placed(open_cells)
    for name, table in tables.items():
        best = known.get((name, table.reference or ""))
        for row in table.rows:
            cell = known.get((name, row.count.category))
            if cell is None or best is None or cell is best:
                continue
            low, high = _range(cell, best)
            if low is not None and high is not None and low < FOUR_FIFTHS <= high:
                yield (
                    f"{row.count.category}: the given rates leave open whether the ratio is below "
                    f"4/5 (from {ratio_text(low)} to {ratio_text(high)})."
                )


SETTINGS = ("mode", "data_kind", "median_population", "partly_known", "median")
Key = tuple[str, str, str]  # group, table, category


def compare(before: RunRecord, after: RunRecord) -> TablesComparison:
    """Compare two records of ``audit ll144``."""
    from auditor.measure.p_values import holm

    first, second = dict(_rows(before)), dict(_rows(after))
    rows = [_change(key, first.get(key), second.get(key)) for key in dict.fromkeys([*first, *second])]
    adjusted = holm([row.p_value for row in rows])
    return TablesComparison(
        before=before.id or before.data.file,
        after=after.id or after.data.file,
        settings=tuple(_settings(before, after)),
        notes=tuple(_notes(before, after)),
        rows=tuple(replace(row, p_adjusted=p) for row, p in zip(rows, adjusted, strict=True)),
    )


def _rows(record: RunRecord) -> Iterator[tuple[Key, Category]]:
    for pool in record.outcomes.pools:
        for name in NAMES:
            for row in (pool.tables or {}).get(name, ()):
                if row.n:
                    yield (pool.group, name, row.category), row


def _change(key: Key, a: Category | None, b: Category | None) -> CategoryChange:
    sides = {
        f"{name.removeprefix('impact_')}_{when}": getattr(row, name)
        for when, row in (("before", a), ("after", b))
        if row is not None
        for name in ("n", "x", "rate", "impact_ratio", "impact_ratio_text")
    }
    return CategoryChange(group=key[0], table=key[1], category=key[2], p_value=_p(a, b), **sides)


def _p(before: Category | None, after: Category | None) -> float | None:
    if before is None or after is None:
        return None
    from scipy.stats import fisher_exact

    return float(fisher_exact([[row.x, row.n - row.x] for row in (before, after)]).pvalue)


def _settings(before: RunRecord, after: RunRecord) -> Iterator[PlanDifference]:
    sides = [
        [(name.replace("_", " "), getattr(record.outcomes, name)) for name in SETTINGS]
        + [("file", record.data.file), ("source", record.data.source), ("SHA-256 of the file", record.data.sha256)]
        for record in (before, after)
    ]
    for (name, a), (_, b) in zip(*sides, strict=True):
        if a != b:
            both = ["not given" if value is None else str(value) for value in (a, b)]
            yield PlanDifference(name=name, before=both[0], after=both[1])


def _notes(before: RunRecord, after: RunRecord) -> Iterator[str]:
    if before.kind != after.kind or before.outcomes.mode != after.outcomes.mode:
        yield "The two measure different outcomes; their rates are not rates of the same thing."
    if before.data.sha256 == after.data.sha256:
        yield "Both were computed from the same file: the people are the same, and p values say nothing."
