"""Two sets of tables side by side: which rates differ between them.

Each category's rate in the one is laid beside that in the other, with Fisher's exact test of the two and Holm's
adjustment over all categories that were tested. Two tables from one data set share their people, and then the test
says nothing: it assumes that the people of the one are not those of the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from auditor.core.record import RunRecord
from auditor.core.record.outcome_tables import Category
from auditor.measure.compared import CategoryChange, PlanDifference, TablesComparison

TABLES = ("sex", "race_ethnicity", "intersectional")
Key = tuple[str, str, str]  # group, table, category


def compare(before: RunRecord, after: RunRecord) -> TablesComparison:
    """Lay two records of ``audit ll144`` side by side."""
    from auditor.measure.multiplicity import holm

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
        for name in TABLES:
            for row in (pool.tables or {}).get(name, ()):
                if row.n:
                    yield (pool.group, name, row.category), row


def _change(key: Key, a: Category | None, b: Category | None) -> CategoryChange:
    made = CategoryChange(group=key[0], table=key[1], category=key[2], p_value=_p(a, b))
    if a is not None:
        made = replace(
            made,
            n_before=a.n,
            x_before=a.x,
            rate_before=a.rate,
            ratio_before=a.impact_ratio,
            ratio_text_before=a.impact_ratio_text,
        )
    if b is None:
        return made
    return replace(
        made,
        n_after=b.n,
        x_after=b.x,
        rate_after=b.rate,
        ratio_after=b.impact_ratio,
        ratio_text_after=b.impact_ratio_text,
    )


def _p(before: Category | None, after: Category | None) -> float | None:
    if before is None or after is None:
        return None
    from scipy.stats import fisher_exact

    return float(fisher_exact([[row.x, row.n - row.x] for row in (before, after)]).pvalue)


def _settings(before: RunRecord, after: RunRecord) -> Iterator[PlanDifference]:
    sides = [
        {
            "mode": record.outcomes.mode,
            "data kind": record.outcomes.data_kind,
            "median population": record.outcomes.median_population,
            "partly known": record.outcomes.partly_known,
            "median": record.outcomes.median,
            "file": record.data.file,
            "source": record.data.source,
            "SHA-256 of the file": record.data.sha256,
        }
        for record in (before, after)
    ]
    for name, a in sides[0].items():
        if a != sides[1][name]:
            yield PlanDifference(name=name, before=_told(a), after=_told(sides[1][name]))


def _told(value: object) -> str:
    return "not given" if value is None else str(value)


def _notes(before: RunRecord, after: RunRecord) -> Iterator[str]:
    if before.kind != after.kind or before.outcomes.mode != after.outcomes.mode:
        yield "The two measure different outcomes; their rates are not rates of the same thing."
    if before.data.sha256 == after.data.sha256:
        yield "Both were computed from the same file: the people are the same, and p values say nothing."
