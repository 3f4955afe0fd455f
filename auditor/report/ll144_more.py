"""Tables of recorded outcomes as CSV, and two of them side by side; see `auditor.report.ll144`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from auditor.core.record import RunRecord
from auditor.core.shown import csv_text
from auditor.measure.compared import TablesComparison
from auditor.report import ll144, words
from auditor.report.document import Document, Section, Table, beside, noted

CSV = (
    "group", "table", "category", "n", "x", "rate", "impact_ratio", "impact_ratio_exact", "low", "high", "p_value",
    "p_adjusted", "z", "share", "below_four_fifths", "one_person_flip", "below_two_percent", "excluded",
    "justification", "reason",
)  # fmt: skip
COLUMNS = ("Category", "Before", "After", "Ratio before", "after", "p", "p (Holm)")
MEANING = (
    "p: Fisher's exact test of the two rates of a category, adjusted for all categories here (Holm). It takes the "
    "people of the two for different people. A ratio may change because the rate of the category did, or that of "
    "the reference."
)


def to_csv(record: RunRecord) -> str:
    """One line for each category of each table; shares in [0, 1], texts safe for spreadsheets."""
    lines: list[list[object]] = [list(CSV)]
    for part in ll144.parts(record):
        for name, rows in part.tables.items():
            for row in rows:
                low, high = row.interval or (None, None)
                own = {"group": part.title, "table": name, "low": low, "high": high}
                own |= {"p_value": row.fisher_p, "p_adjusted": row.fisher_p_holm}
                told = own | msgspec.structs.asdict(row)
                lines.append([told[key] for key in CSV])
    return csv_text(lines, newlines=False)


def build(compared: TablesComparison) -> Document:
    """Lay the comparison out."""
    sections = [
        Section(
            id=f"tables-{n}",
            title=title,
            short=title,
            blocks=noted(
                [] if n else [MEANING],
                [
                    Table(
                        caption=title,
                        columns=COLUMNS,
                        lines=tuple(map(tuple, rows)),
                        right=frozenset(COLUMNS[1:]),
                    )
                ],
            ),
        )
        for n, (title, rows) in enumerate(_tables(compared))
    ]
    return beside(compared, "", sections, what="Tables")


def _tables(compared: TablesComparison) -> list[tuple[str, list[Sequence[str]]]]:
    found: dict[str, list[Sequence[str]]] = {}
    for row in compared.rows:
        name = ll144.TITLES[row.table]
        title = f"{row.group}: {name}" if row.group else name
        found.setdefault(title, []).append(
            (
                row.category,
                _rate(row.n_before, row.x_before, row.rate_before),
                _rate(row.n_after, row.x_after, row.rate_after),
                row.ratio_text_before or "–",
                row.ratio_text_after or "–",
                ll144.p_value(row.p_value),
                ll144.p_value(row.p_adjusted),
            )
        )
    return list(found.items())


def _rate(n: int | None, x: int | None, share: float | None) -> str:
    if n is None:
        return "nobody"
    counts = f"({words.count(x)}/{words.count(n)})"
    return counts if share is None else f"{words.percent(share)} {counts}"
