"""Tables of recorded outcomes as CSV, and two of them side by side; see `auditor.render.ll144`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.render import ll144, words
from auditor.render.ll144_chart import interval
from auditor.render.markdown import escape, table
from auditor.render.page import Page
from auditor.shown import csv_text

Data = Mapping[str, Any]
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


def to_csv(record: Data) -> str:
    """One line for each category of each table; shares in [0, 1], texts safe for spreadsheets."""
    lines: list[list[object]] = [list(CSV)]
    for part in ll144.parts(record):
        for name, rows in part.tables.items():
            for row in rows:
                limits = interval(row) or (None, None)
                values = {key: row.get(key) for key in CSV} | {
                    "group": part.title,
                    "table": name,
                    "low": limits[0],
                    "high": limits[1],
                    "p_value": row["fisher_p"],
                    "p_adjusted": row["fisher_p_holm"],
                }
                lines.append([values[key] for key in CSV])
    return csv_text(lines, newlines=False)


def text(compared: Data, *, width: int | None = None, encoding: str = "utf-8") -> str:
    """The comparison for a terminal."""
    page = Page(width=width or 100, encoding=encoding, color=False)
    page.heading(f"Tables {compared['before']} before, {compared['after']} after")
    for note in compared["notes"]:
        page.paragraph(note, first="!! ", indent="   ")
    page.heading("What differs in how they were made")
    if compared["settings"]:
        columns = [("Setting", False), ("Before", False), ("After", False)]
        page.table(columns, [(s["name"], s["before"], s["after"]) for s in compared["settings"]])
    else:
        page.paragraph("Nothing that was recorded.")
    for title, rows in _tables(compared):
        page.heading(title)
        page.table([(name, i > 0) for i, name in enumerate(COLUMNS)], rows)
    page.line()
    page.paragraph(MEANING)
    return page.value()


def markdown(compared: Data) -> str:
    """The comparison as Markdown; texts are escaped."""
    lines = [f"# Tables {escape(compared['before'])} before, {escape(compared['after'])} after", ""]
    lines += [f"> {escape(note)}\n" for note in compared["notes"]]
    lines += ["## What differs in how they were made", ""]
    if compared["settings"]:
        settings = [(s["name"], s["before"], s["after"]) for s in compared["settings"]]
        lines += table(("Setting", "Before", "After"), settings)
    else:
        lines += ["Nothing that was recorded.", ""]
    for title, rows in _tables(compared):
        lines += [f"## {escape(title)}", "", *table(COLUMNS, rows)]
    return "\n".join([*lines, escape(MEANING)]).rstrip() + "\n"


def _tables(compared: Data) -> list[tuple[str, list[Sequence[str]]]]:
    found: dict[str, list[Sequence[str]]] = {}
    for row in compared["rows"]:
        name = ll144.TITLES[row["table"]]
        title = f"{row['group']}: {name}" if row["group"] else name
        found.setdefault(title, []).append(
            (
                row["category"],
                _rate(row, "before"),
                _rate(row, "after"),
                row["ratio_text_before"] or "–",
                row["ratio_text_after"] or "–",
                ll144.p_value(row["p_value"]),
                ll144.p_value(row["p_adjusted"]),
            )
        )
    return list(found.items())


def _rate(row: Data, side: str) -> str:
    if row[f"n_{side}"] is None:
        return "nobody"
    share = row[f"rate_{side}"]
    counts = f"({words.count(row[f'x_{side}'])}/{words.count(row[f'n_{side}'])})"
    return counts if share is None else f"{words.percent(share)} {counts}"
